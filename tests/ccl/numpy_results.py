"""The right result of every collective, written out in numpy: what the records say by pieces is compared with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench_ccl.reductions import reduced

Array = NDArray[Any]
Splits = Sequence[Sequence[int]]


def expected(
    name: str,
    inputs: Sequence[Array],
    *,
    redop: str | None = None,
    root: int = 0,
    counts: Splits | None = None,
) -> list[Array | None]:
    """Return what each rank's output must hold, from all ranks' inputs (one-dimensional); None where it has none."""
    world = len(inputs)
    if name in ("all_reduce", "reduce", "reduce_scatter"):
        assert redop is not None
        whole = reduced(inputs, redop)
        if name == "all_reduce":
            return [whole] * world
        if name == "reduce":
            return [whole if rank == root else None for rank in range(world)]
        return list(np.split(whole, world))
    if name == "all_gather":
        return [np.concatenate(list(inputs))] * world
    if name == "gather":
        return [np.concatenate(list(inputs)) if rank == root else None for rank in range(world)]
    if name == "broadcast":
        return [inputs[root]] * world
    if name == "scatter":
        return list(np.split(inputs[root], world))
    if name == "send_recv":
        return [inputs[(rank - 1) % world] for rank in range(world)]
    if name == "all_to_all":
        return list(_exchanged(inputs, counts))
    return [None] * world


def _exchanged(inputs: Sequence[Array], counts: Splits | None) -> list[Array]:
    world = len(inputs)
    if counts is None:
        blocks = [np.split(x, world) for x in inputs]
    else:
        blocks = [np.split(x, np.cumsum(row)[:-1]) for x, row in zip(inputs, counts, strict=True)]
    return [np.concatenate([blocks[sender][rank] for sender in range(world)]) for rank in range(world)]
