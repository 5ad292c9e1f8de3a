"""What ranks must end with, written out in numpy: a second way that shares nothing with records and their pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from kernbench_ccl.collectives import CallShape, CollectiveKind
from kernbench_core.values import Array

_UFUNCS: Final = {
    "sum": np.add, "avg": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip

RankOutputs = list[Array | None]


def _whole(inputs: Sequence[Array], call: CallShape) -> Array:
    found = _UFUNCS[call.redop or "sum"].reduce(np.stack(list(inputs)), axis=0)
    return np.asarray(found / call.world if call.redop == "avg" else found)


def _at_root(found: Array, call: CallShape) -> RankOutputs:
    return [found if rank == call.root else None for rank in range(call.world)]


def _all_to_all(inputs: Sequence[Array], call: CallShape) -> RankOutputs:
    blocks = np.stack(list(inputs)).reshape(call.world, call.world, call.count)
    return list(blocks.transpose(1, 0, 2).reshape(call.world, -1))


_DEFINITIONS: Final[Mapping[str, Callable[[Sequence[Array], CallShape], RankOutputs]]] = {
    "all_reduce": lambda inputs, call: [_whole(inputs, call)] * call.world,
    "all_gather": lambda inputs, call: [np.concatenate(list(inputs))] * call.world,
    "reduce_scatter": lambda inputs, call: list(_whole(inputs, call).reshape(call.world, -1)),
    "all_to_all": _all_to_all,
    "broadcast": lambda inputs, call: [inputs[call.root]] * call.world,
    "reduce": lambda inputs, call: _at_root(_whole(inputs, call), call),
    "gather": lambda inputs, call: _at_root(np.concatenate(list(inputs)), call),
    "scatter": lambda inputs, call: list(inputs[call.root].reshape(call.world, -1)),
    "send_recv": lambda inputs, call: list(np.roll(np.stack(list(inputs)), 1, axis=0)),
    "barrier": lambda inputs, call: [None] * call.world,
}


def defined(kind: CollectiveKind, call: CallShape, inputs: Sequence[Array]) -> RankOutputs:
    """Return what each rank must end with, None where it ends with nothing.

    Of a collective that numpy has no definition of here, that is what its record says, read element by element.
    """
    if kind.name in _DEFINITIONS:
        return _DEFINITIONS[kind.name](inputs, call)
    return [_by_elements(kind, call, inputs, rank) for rank in range(call.world)]


def _by_elements(kind: CollectiveKind, call: CallShape, inputs: Sequence[Array], rank: int) -> Array | None:
    ends = kind.ends(call, rank)
    if ends is None:
        return None
    found = []
    for piece in ends:
        for element in range(piece.first, piece.first + piece.count):
            values = [inputs[other][element] for other in piece.ranks]
            whole = _UFUNCS[call.redop or "sum"].reduce(values) if piece.reduced else values[0]
            found.append(whole / call.world if piece.reduced and call.redop == "avg" else whole)
    return np.array(found)
