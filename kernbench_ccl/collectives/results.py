"""The right results of a collective in numpy, put together from the pieces that its ranks must end with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece
from kernbench_ccl.reductions import reduced
from kernbench_core.values import Array


def right_outputs(kind: CollectiveKind, call: CallShape, inputs: Sequence[Array]) -> list[Array | None]:
    """Return what each rank's output must hold, from all ranks' inputs (one-dimensional); None where it has none.

    An input that a collective does not read, as those that are not of the root in a broadcast, may be anything.
    """
    redop = call.redop or ""
    return outputs(kind, call, inputs, lambda parts: reduced(parts, redop, call.world))


def outputs(
    kind: CollectiveKind,
    call: CallShape,
    inputs: Sequence[Array],
    combine: Callable[[Sequence[Array]], Array],
    move: Callable[[Array], Array] = lambda part: part,
) -> list[Array | None]:
    """Put each rank's output together: `combine` makes what is reduced, `move` what is moved, from parts of inputs.

    Ranks that end with the same share an array.
    """
    known: dict[tuple[Piece, ...], Array] = {}

    def made(piece: Piece) -> Array:
        parts = [inputs[rank][piece.first : piece.first + piece.count] for rank in piece.ranks]
        return combine(parts) if piece.reduced else move(parts[0])

    found: list[Array | None] = []
    for rank in range(call.world):
        ends = kind.ends(call, rank)
        pieces = None if ends is None else tuple(ends)
        if pieces is not None and pieces not in known:
            parts = [made(piece) for piece in pieces]
            known[pieces] = parts[0] if len(parts) == 1 else np.concatenate(parts or [move(inputs[rank][:0])])
        found.append(None if pieces is None else known[pieces])
    return found
