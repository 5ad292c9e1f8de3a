"""A planned collective: which PEs, which arguments, scratch memory, and the common start of all ranks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_ccl.catalogue import read_algorithm
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.contract import Collective, KernelContext, kernel_args
from kernbench_ccl.plan import Group, machine_network, make_group, plan_collective
from kernbench_ccl.plan.backend import ARGUMENTS, TensorSlice, elapsed_ns, pes_of
from kernbench_core.errors import UsageError
from kernbench_core.kernel.arguments import PerPe
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.peers import Channel
from tests.ccl import naive

naive.plugins()


def module(kernel: Any, **more: Any) -> Any:
    """Return an algorithm for all_gather with this kernel."""
    made = ModuleType("made", "Made for a test.")
    kinds = {"ring": 3, "torus_2d": 5}
    made.__dict__.update(
        {"COLLECTIVE": "all_gather", "TOPO_NAME_TO_KIND": kinds, "kernel": kernel, "kernel_args": kernel_args, **more}
    )
    return read_algorithm(made, "made.all_gather")


def run(bench: Any, sips: int = 3, **options: Any) -> kb.RunResult:
    """Run a bench on so many small SIPs, with its data checked."""
    result = kb.run(bench, "tiny", set=[f"system.sips={sips}"], verify_data=True, **options)
    assert result.verification is not None and result.verification.ok
    return result


def call(rt: Any, group: Any, **details: Any) -> Collective:
    """Return an all_gather of the group."""
    return Collective(COLLECTIVES["all_gather"], "f32", machine_network(rt.design), group.sips, **details)


def copy_own(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Copy the input to the rank's own place by way of scratch memory, on PE 0 alone."""
    if pe == 0:
        tl.store(scratch_ptr, tl.load(in_ptr, shape=(count,)))
        tl.store(out_ptr + rank * count, tl.load(scratch_ptr, shape=(count,)) + 10.0 * topo_kind)


def test_every_pe_gets_its_own_nine() -> None:
    """Pointers into parts of tensors, ranks, places; what is the same for all is passed once."""
    contexts: list[KernelContext] = []

    def noting(ctx: KernelContext) -> tuple[Any, ...]:
        contexts.append(ctx)
        return kernel_args(ctx)

    def bench(rt: Any) -> None:
        group = make_group(rt.pes, [2, 0], pes=[1, 3])
        x, y = rt.tensor(np.arange(24, dtype=np.float32)), rt.empty((16,))
        algorithm = module(copy_own, kernel_args=noting, scratch_count=lambda count, world: count * world)
        planned = plan_collective(
            rt, group, call(rt, group), algorithm, [TensorSlice(x, 8), TensorSlice(x, 16)], [y, None], 8, pes=2
        )
        assert (planned.ranks, planned.n_pe, planned.peers.ranks) == ((0, 1), 2, ((9, 11), (1, 3)))
        assert planned.label == "all_gather #0 of world"
        handle = planned.launch(rt, wait=False, ranks=[0])
        assert handle.tensors[:2] == (x, y) and handle.tensors[2].shape == (16,)
        named = handle.launch.arguments
        assert tuple(named) == ARGUMENTS
        assert (named["count"], named["rank"], named["world"], named["n_pe"], named["topo_kind"]) == (8, 0, 2, 2, 3)
        place, source = named["pe"], named["in_ptr"]
        assert isinstance(place, PerPe) and place.values == {9: 0, 11: 1}
        assert isinstance(source, PerPe) and all(
            isinstance(pointer, Pointer) and pointer.offset == 8 for pointer in source.values.values()
        )
        rt.wait(handle)
        both = [(ctx.rank, ctx.pe, None if ctx.out_ptr is None else ctx.out_ptr.offset) for ctx in contexts]
        assert both == [(0, 0, 0), (0, 1, 0), (1, 0, None), (1, 1, None)]

    kb.run(bench, "tiny", set=["system.sips=3"])


def test_ranks_that_are_launched_together_start_together() -> None:
    """One stamp for all PEs; the elapsed time is from it to the last end, without the way of the launch."""

    def bench(rt: Any) -> None:
        group = make_group(rt.pes)
        x = [rt.tensor(np.full(16, rank, np.float32), device=rank, name=f"x{rank}") for rank in range(3)]
        y = [rt.tensor(np.zeros(48, np.float32), device=rank, name=f"y{rank}") for rank in range(3)]
        algorithm = module(copy_own, scratch_count=lambda count, world: count)
        planned = plan_collective(rt, group, call(rt, group), algorithm, x, y, 16)
        times = []
        for _ in range(2):
            handle = planned.launch(rt)
            launch = handle.launch
            assert set(launch.started_ns.values()) == {launch.target_start_ns}
            times.append(elapsed_ns(handle))
            assert times[-1] == max(launch.ended_ns.values()) - launch.target_start_ns > 0
        assert times[0] >= times[1]
        for rank in range(3):
            right = np.zeros(48)
            right[16 * rank : 16 * rank + 16] = rank + 30
            rt.check(y[rank], right)

    assert not run(bench).hazards


@pytest.mark.parametrize(
    ("nbytes", "given", "found"),
    [
        *((1, "auto", 1), (255, None, 1), (256, "auto", 2), (512, "auto", 4), (16384, "auto", 4), (16386, "auto", 5)),
        *((1 << 20, "auto", 64), (1, 3, 3), (1 << 20, 1, 1)),
    ],
)
def test_how_many_pes_take_part(nbytes: int, given: Any, found: int) -> None:
    """One for each 2 KiB of a rank's part, but four from 64 B each on; no more than there are; or as many as asked."""
    group = Group("pair", (0, 1), (tuple(range(64)), tuple(range(64, 128))), Channel())
    assert pes_of(group, nbytes, given) == found


@pytest.mark.parametrize("pes", [0, 5, True, "many"])
def test_pes_that_are_not_there_are_refused(pes: Any) -> None:
    """The number that there are is named."""
    with pytest.raises(UsageError) as caught:
        kb.run(lambda rt: pes_of(make_group(rt.pes), 8, pes), "tiny")
    assert str(caught.value).splitlines()[0] == (
        f"pes must be 'auto' or a number of PEs from 1 to 4, which each rank of world has, not {pes!r}; choose another."
    )


def test_a_network_that_the_algorithm_does_not_know_is_refused() -> None:
    """As the algorithm says it."""

    def bench(rt: Any) -> None:
        group = make_group(rt.pes)
        x = rt.zeros((16,))
        plan_collective(rt, group, call(rt, group), module(copy_own), [x, x], [x, x], 8)

    with pytest.raises(UsageError) as caught:
        kb.run(bench, "tiny", set=["system.sips=2", "system.network.topology=switch"])
    assert str(caught.value).splitlines()[0] == (
        "made.all_gather must run on one of the networks ring, torus_2d, not 'switch'; choose another."
    )


def pass_east(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give the own input to the SIP in the east, and keep what comes from the west in its place."""
    if pe == 0:
        sent = tl.send(tl.load(in_ptr, shape=(count,)), "e", wait=False)
        west = rank - 1 if rank % 3 else rank + 2
        tl.store(out_ptr + west * count, tl.recv((count,), "f32", "w"))
        tl.wait(sent)


def test_directions_are_those_of_the_network() -> None:
    """On a torus of three by two the PE in the east is the same place on the next SIP of the row, which is closed."""

    def bench(rt: Any) -> None:
        group = make_group(rt.pes)
        x = [rt.tensor(np.full(4, rank + 1.0, np.float32), device=rank, name=f"x{rank}") for rank in range(6)]
        y = [rt.tensor(np.zeros(24, np.float32), device=rank, name=f"y{rank}") for rank in range(6)]
        plan_collective(rt, group, call(rt, group), module(pass_east), x, y, 4).launch(rt)
        for rank in range(6):
            west = rank - 1 if rank % 3 else rank + 2
            right = np.zeros(24)
            right[4 * west : 4 * west + 4] = west + 1.0
            rt.check(y[rank], right)

    sets = ["system.sips=6", "system.network.topology=torus_2d"]
    result = kb.run(bench, "tiny", set=sets, verify_data=True)
    assert result.verification is not None
    assert result.verification.ok
