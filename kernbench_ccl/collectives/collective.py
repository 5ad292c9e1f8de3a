"""The collectives: how nccl counts and rates each, its right result in numpy, and inputs whose results are exact.

`count` is nccl's: for all_reduce, broadcast and reduce the elements of the input and of the output; for all_gather and
gather those that each rank brings; for reduce_scatter and scatter those that each rank gets; for all_to_all those of
one pair of ranks (the largest where pairs differ); for send_recv those that each rank sends to the next.

Source: nccl-tests, doc/PERFORMANCE.md, for sizes and bus bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from kernbench_core.values.dtypes import cast, exact_limit, is_float, to_compute

Array = NDArray[Any]
Splits = Sequence[Sequence[int]]

REDOPS: Final = ("sum", "avg", "product", "min", "max")
"""The reductions that there are."""


@frozen
class CollectiveKind:
    """One collective: whether input and output have `count` elements or that for every rank, and what a call names.

    `factor(world)` is bus bandwidth over algorithm bandwidth. `reduces`: a call names a reduction; `rooted`: a root;
    `takes_counts`: it may name uneven splits. `in_at_root`, `out_at_root`: only the root has an input, an output.
    `in_place`: the output may be, hold, or be a part of the input.
    """

    name: str
    in_world: bool
    out_world: bool
    factor: Callable[[int], float]
    reduces: bool = False
    rooted: bool = False
    takes_counts: bool = False
    in_at_root: bool = False
    out_at_root: bool = False
    in_place: bool = True

    def in_count(self, count: int, world: int, rank: int = 0, root: int = 0, counts: Splits | None = None) -> int:
        """Return the elements of a rank's input; 0 where it has none."""
        if counts is not None:
            return sum(counts[rank])
        if self.in_at_root and rank != root:
            return 0
        return count * (world if self.in_world else 1) if self.name != "barrier" else 0

    def out_count(self, count: int, world: int, rank: int = 0, root: int = 0, counts: Splits | None = None) -> int:
        """Return the elements of a rank's output; 0 where it has none."""
        if counts is not None:
            return sum(row[rank] for row in counts)
        if self.out_at_root and rank != root:
            return 0
        return count * (world if self.out_world else 1) if self.name != "barrier" else 0

    def size_count(self, count: int, world: int) -> int:
        """Return the elements that nccl-tests reports as the size: the larger of input and output."""
        return count * (world if self.in_world or self.out_world else 1) if self.name != "barrier" else 0

    def count_of(self, size_count: int, world: int) -> int:
        """Return the `count` that makes a size of at most `size_count` elements."""
        return size_count // world if self.in_world or self.out_world else size_count

    def busbw(self, nbytes: float, ns: float, world: int) -> float:
        """Return the bus bandwidth in GB/s of a collective of the size `nbytes` that took `ns`; 0 for no time."""
        return nbytes / ns * self.factor(world) if ns else 0.0


def _twice(world: int) -> float:
    return 2 * (world - 1) / world


def _once(world: int) -> float:
    return (world - 1) / world


def _whole(world: int) -> float:
    return 1.0


COLLECTIVES: Final[Mapping[str, CollectiveKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            CollectiveKind("all_reduce", False, False, _twice, reduces=True),
            CollectiveKind("all_gather", False, True, _once),
            CollectiveKind("reduce_scatter", True, False, _once, reduces=True),
            CollectiveKind("all_to_all", True, True, _once, takes_counts=True, in_place=False),
            CollectiveKind("broadcast", False, False, _whole, rooted=True, in_at_root=True),
            CollectiveKind("reduce", False, False, _whole, reduces=True, rooted=True, out_at_root=True),
            CollectiveKind("gather", False, True, _once, rooted=True, out_at_root=True),
            CollectiveKind("scatter", True, False, _once, rooted=True, in_at_root=True),
            CollectiveKind("send_recv", False, False, _whole),
            CollectiveKind("barrier", False, False, _whole),
        )
    }
)
"""Every collective, by its name."""


def refuse_redop(redop: str, dtype: str) -> str | None:
    """Return a sentence why a reduction does not go with a dtype, or None if it does."""
    if redop not in REDOPS:
        return f"a reduction must be one of {', '.join(REDOPS)}, not {redop!r}; choose one of these."
    if redop == "avg" and not is_float(dtype):
        return f"avg must be of a float dtype, not of {dtype}, which cannot hold the quotient; use sum, or cast first."
    return None


# What is right -----------------------------------------------------------------------------------------


def expected(
    name: str,
    inputs: Sequence[Array],
    *,
    redop: str | None = None,
    root: int = 0,
    counts: Splits | None = None,
) -> list[Array | None]:
    """Return what each rank's output must hold, from all ranks' inputs (one-dimensional); None where it is left open.

    Reductions are computed in f64 (integers: in their own type, which wraps) and rounded once: exact where every
    partial result is. An input that a collective does not read, as those that are not of the root in a broadcast, may
    be anything.
    """
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


def reduced(inputs: Sequence[Array], redop: str) -> Array:
    """Return the reduction of arrays of one dtype, rounded once; of bool, a sum is "any" and a product is "all"."""
    dtype = inputs[0].dtype
    if dtype.kind == "b":
        return np.asarray((np.any if redop in ("sum", "max") else np.all)(np.stack(list(inputs)), axis=0))
    wide = [x if dtype.kind in "iu" else to_compute(x).astype(np.float64) for x in inputs]
    stacked = np.stack(wide)
    if redop in ("min", "max"):
        found = stacked.min(axis=0) if redop == "min" else stacked.max(axis=0)
    elif redop == "product":
        found = np.multiply.reduce(stacked, axis=0, dtype=stacked.dtype)
    else:
        found = np.add.reduce(stacked, axis=0, dtype=stacked.dtype)
        if redop == "avg":
            found = found / len(inputs)
    if dtype.kind in "iu":
        return np.asarray(found.astype(dtype))
    return np.asarray(found.astype(np.float32).astype(dtype))


def _exchanged(inputs: Sequence[Array], counts: Splits | None) -> list[Array]:
    world = len(inputs)
    if counts is None:
        blocks = [np.split(x, world) for x in inputs]
    else:
        blocks = [np.split(x, np.cumsum(row)[:-1]) for x, row in zip(inputs, counts, strict=True)]
    return [np.concatenate([blocks[sender][rank] for sender in range(world)]) for rank in range(world)]


# Inputs whose results are exact ------------------------------------------------------------------------


def exact_inputs(dtype: str, redop: str | None, count: int, world: int, rank: int, seed: int = 0) -> Array:
    """Return `count` small integers of a rank, such that any order of reducing all ranks' is exact in the dtype.

    For sums no partial sum is above what the dtype holds: where every rank may bring at most 0, only some ranks bring
    a 1 at each element. For products few ranks bring a 2 and all others a 1. Otherwise numbers differ by rank and
    element, so that data that went the wrong way shows. Same arguments, same numbers.
    """
    limit = exact_limit(dtype)
    generator = np.random.default_rng((seed, rank))
    if dtype == "bool":
        values = generator.integers(0, 2, count)
    elif redop == "product":
        values = 1 + _of_few(count, world, rank, seed, min(2, world))
    elif redop in ("sum", "avg") and limit // world < 1:
        values = _of_few(count, world, rank, seed, limit)
    else:
        most = limit // world if redop in ("sum", "avg") else limit
        values = generator.integers(0, min(most, 1000) + 1, count)
    return cast(values.astype(np.int64), dtype)


def _of_few(count: int, world: int, rank: int, seed: int, few: int) -> NDArray[np.int64]:
    """Return 1 where this rank is among the `few` that are chosen for the element, else 0."""
    first = np.random.default_rng((seed, world)).integers(0, world, count)
    return ((rank - first) % world < few).astype(np.int64)
