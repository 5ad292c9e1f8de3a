"""A collective as ranks of a bench call it, by its function of `dist`, with what every rank must end with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from attrs import frozen

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_ccl.collectives import COLLECTIVES, CallShape, CollectiveKind, right_outputs
from kernbench_ccl.measure.machine import Setup
from kernbench_ccl.testing.algorithm_under_test import LIMITS
from kernbench_core.errors import KernbenchError
from kernbench_core.plugins import Plugins
from kernbench_core.values import Array

COUNT: Final = 20
"""nccl's count of the calls."""

_DTYPE: Final = "f32"


class NoFunction(Exception):
    """Ranks cannot call a collective; the message says why."""


@frozen
class RankCall:
    """One rank's part of a call: its runtime, the group, the record, what it brings and what it must end with."""

    rt: Any
    group: Any
    kind: CollectiveKind
    brings: Array | None
    ends: Array | None

    def given(self, shape: tuple[int, ...] = (-1,)) -> Any:
        """Return a tensor of what the rank brings, None where it brings nothing."""
        return None if self.brings is None else self.rt.tensor(self.brings.reshape(shape), name="x")

    def made(self, shape: tuple[int, ...] = (-1,)) -> Any:
        """Return a tensor for what the rank ends with, None where it ends with nothing."""
        return None if self.ends is None else self.rt.empty(self.ends.reshape(shape).shape, _DTYPE, name="out")

    def rows(self, whole: Any) -> list[Any] | None:
        """Return the rows of a tensor, one for each rank."""
        return None if whole is None else [whole[row : row + 1] for row in range(self.group.size())]


def _all_reduce(call: RankCall) -> Any:
    x = call.given()
    dist.all_reduce(x, group=call.group)
    return x


def _reduce(call: RankCall) -> Any:
    x = call.given()
    dist.reduce(x, group_dst=0, group=call.group)
    return x


def _broadcast(call: RankCall) -> Any:
    x = call.made() if call.brings is None else call.given()
    dist.broadcast(x, group_src=0, group=call.group)
    return x


def _all_gather(call: RankCall) -> Any:
    out = call.made()
    dist.all_gather_into_tensor(out, call.given(), group=call.group)
    return out


def _reduce_scatter(call: RankCall) -> Any:
    out = call.made()
    dist.reduce_scatter_tensor(out, call.given(), group=call.group)
    return out


def _all_to_all(call: RankCall) -> Any:
    out = call.made()
    dist.all_to_all_single(out, call.given(), group=call.group)
    return out


def _gather(call: RankCall) -> Any:
    out = call.made((-1, COUNT))
    dist.gather(call.given((1, COUNT)), call.rows(out), group=call.group, group_dst=0)
    return out


def _scatter(call: RankCall) -> Any:
    out = call.made((1, COUNT))
    dist.scatter(out, call.rows(call.given((-1, COUNT))), group=call.group, group_src=0)
    return out


def _barrier(call: RankCall) -> Any:
    dist.barrier(call.group)


def _named(call: RankCall) -> Any:
    kind, out = call.kind, call.made()
    root = dist.get_global_rank(call.group, 0) if kind.rooted else None
    op = "sum" if kind.reduces else None
    function = getattr(dist, kind.function) if kind.function else partial(dist.collective, kind.name)
    function(COUNT, out, call.given(), op, root, group=call.group)
    return out


_CALLS: Final[Mapping[str, Callable[[RankCall], Any]]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter, "broadcast": _broadcast,
    "all_to_all": _all_to_all, "reduce": _reduce, "gather": _gather, "scatter": _scatter, "barrier": _barrier,
}  # fmt: skip


def rank_call(kind: CollectiveKind) -> Callable[[RankCall], Any]:
    """Return what makes a rank call a collective; NoFunction for one that ranks have no function for."""
    if kind.name in _CALLS:
        return _CALLS[kind.name]
    if kind.name in COLLECTIVES:
        raise NoFunction(f"ranks have no function for {kind.name}")
    return _named


def first_line(fault: BaseException) -> str:
    """Return the sentence of an error, without the lines below it that say more."""
    return str(fault).partition("\n")[0]


def group_fault(
    plugins: Plugins,
    setup: Setup,
    kind: CollectiveKind,
    ranks: Sequence[int],
    algorithm: str,
    right: Sequence[Array | None],
) -> str | None:
    """Have some ranks of a machine, in this order, call a collective; return what is wrong of what they end with.

    `algorithm` serves it ("auto": one that suits), rank r of them brings `brought(kind, …)[r]`, and must end with
    `right[r]`. NoFunction for a collective that ranks cannot call.
    """
    call, given = rank_call(kind), brought(kind, len(ranks))

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(set=[f"collectives.{kind.name}={algorithm}"])
        group = dist.new_group(list(ranks), sort_ranks=False)
        if rank not in ranks:
            return
        place = dist.get_rank(group)
        out = call(RankCall(rt, group, kind, given[place], right[place]))
        must_be = right[place]
        if must_be is not None:
            rt.check(out, must_be.reshape(out.shape), rtol=0, atol=0)

    def bench(rt: Any) -> None:
        dist.spawn(program)

    try:
        result = kb.run(
            bench, setup.topology, set=setup.sets, verify_data=True, plugins=plugins, max_events=LIMITS.max_events,
            timeout_s=LIMITS.timeout_s,
        )
    except KernbenchError as fault:
        return first_line(fault)
    if result.hazards:
        return " ".join(result.hazards[0].lines(folders=False))
    if result.verification is not None and not result.verification.ok:
        return result.verification.failures[0]
    return None


def brought(kind: CollectiveKind, world: int) -> list[Array | None]:
    """Return what each of so many ranks brings: small integers, of which no rank's are another's."""
    shape = CallShape(world, COUNT, "sum" if kind.reduces else None)
    sizes = [kind.brings(shape, rank) for rank in range(world)]
    return [
        None if size is None else (np.arange(size) * (rank + 3) % 17 + rank).astype(np.float32)
        for rank, size in enumerate(sizes)
    ]


def reference(kind: CollectiveKind, world: int) -> list[Array | None]:
    """Return what ranks that bring this must end with, as the record has it."""
    shape = CallShape(world, COUNT, "sum" if kind.reduces else None)
    empty = np.zeros(0, np.float32)
    return right_outputs(kind, shape, [empty if each is None else each for each in brought(kind, world)])
