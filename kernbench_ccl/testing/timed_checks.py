"""The checks of an algorithm by timed runs on a small machine: its data, its times, its log."""

from __future__ import annotations

from collections.abc import Iterator

from kernbench_ccl.contract import Network
from kernbench_ccl.measure.machine import Setup
from kernbench_ccl.measure.measurement import closed_form
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.testing.algorithm_under_test import AlgorithmUnderTest
from kernbench_ccl.testing.log_hashes import SEEDS, log_hashes
from kernbench_ccl.testing.rank_calls import NoFunction, first_line, group_fault, reference
from kernbench_core.errors import KernbenchError
from kernbench_core.testing import CheckFailed, NotApplicable
from kernbench_core.units import format_time
from kernbench_core.values.dtypes import NAMES

TOLERANCE = 0.01
"""How far a run of whole steps may be from the closed form; a pipelined one may be sooner."""

#: The reductions that are tried beside sums, each in one dtype, whose results show what is wrong with it.
_OTHERS = {"avg": "f32", "product": "f16", "min": "bf16", "max": "int16"}
#: nccl's count of a call whose data is looked at: PEs and ranks do not divide it.
_COUNT = 13
#: Elements of f16 of a call on the idealised machine, as nccl-tests counts them.
_TIMED = 8 << 10


def computes_right_data(under_test: AlgorithmUnderTest) -> None:
    """In every dtype results are those of numpy: exact of integers, of reals within the dtype's tolerance."""
    kind = under_test.algorithm.kind
    if kind.barrier:
        raise NotApplicable("it moves no data")
    (world, *_) = under_test.chosen(3, 5, 4)
    setup = under_test.setup(under_test.homes[world])
    asked = [(dtype, "sum", 1 + number % 2) for number, dtype in enumerate(NAMES)]
    asked += [(dtype, redop, 1) for redop, dtype in _OTHERS.items()] if kind.reduces else []
    for dtype, redop, pes in asked:
        call = f"with {world} ranks, {_COUNT} elements of {f'{dtype}, {redop}' if kind.reduces else dtype}"
        try:
            found = under_test.run(setup, under_test.case(world, _COUNT, dtype, redop=redop, pes=pes))
        except KernbenchError as fault:
            raise CheckFailed(f"{call}: {first_line(fault)}") from None
        if found.wrong:
            raise CheckFailed(f"{call}: {' '.join(found.failures)}")
        if found.hazards:
            raise CheckFailed(f"{call}: uses of memory must be ordered, not {' '.join(found.hazards)}")


def does_not_beat_its_bound(under_test: AlgorithmUnderTest) -> None:
    """On the idealised machine no call ends before the time that no algorithm can beat on these links."""
    for setup, case in _ideal_runs(under_test):
        try:
            under_test.run(setup, case)
        except KernbenchError as fault:
            raise CheckFailed(_on(under_test, setup, first_line(fault))) from None


def takes_the_time_of_its_form(under_test: AlgorithmUnderTest) -> None:
    """Of whole steps a call takes what its closed form says, within 1 %, and pipelined not more."""
    if under_test.algorithm.formula is None:
        raise NotApplicable("its module publishes none")
    tried = False
    for setup, case in _ideal_runs(under_test):
        machine = under_test.machine(setup)
        form = closed_form(case, machine, under_test.algorithm, case.settings.pes)
        if isinstance(form, str):
            continue
        tried = True
        bound = machine.bound(under_test.algorithm.kind, case.nbytes, case.root)
        if form < bound.ns * (1 - 1e-12):
            told = f"its form must be at least the lower bound of {format_time(bound.ns)}, not {format_time(form)}"
            raise CheckFailed(_on(under_test, setup, told))
        try:
            took = under_test.run(setup, case).time_ns
        except KernbenchError:
            continue  # told by the check of bounds
        off = took / form - 1
        if off > TOLERANCE or (off < -TOLERANCE and not case.settings.pipeline):
            how = "pipelined" if case.settings.pipeline else "step by step"
            must = f"must take {format_time(form)}, as its form says, within {TOLERANCE:.0%}"
            told = f"{case.nbytes} B {how} {must}, not {format_time(took)}"
            raise CheckFailed(_on(under_test, setup, told))
    if not tried:
        raise NotApplicable("it has no form where it was tried")


def serves_groups_of_ranks(under_test: AlgorithmUnderTest) -> None:
    """Ranks of a group, which are others than those of the world, get the same from `dist` as all ranks do."""
    if "sip" not in under_test.algorithm.contributors:
        raise NotApplicable("ranks of a bench call nothing to which every PE brings a vector")
    world, network = _group_of(under_test)
    setup = under_test.setup(network)
    try:
        kind, last = under_test.algorithm.kind, network.world - 1
        ranks = range(last, last - world, -1)
        fault = group_fault(under_test.plugins, setup, kind, ranks, under_test.algorithm.name, reference(kind, world))
    except NoFunction as why:
        raise NotApplicable(str(why)) from None
    if fault is not None:
        raise CheckFailed(f"with the ranks {list(ranks)} of {network.world}: {fault}")


def logs_the_same_twice(under_test: AlgorithmUnderTest) -> None:
    """A second call in the same process does just what the first did: modules keep nothing."""
    first, second = _hashes(under_test, SEEDS[0])
    if first != second:
        raise CheckFailed(f"the log of the second call must be that of the first, {first[:8]}…, not {second[:8]}…")


def logs_the_same_under_every_hash_seed(under_test: AlgorithmUnderTest) -> None:
    """In processes with other hash seeds it does the same: nothing goes by the order of a set."""
    found = {seed: _hashes(under_test, seed)[0] for seed in SEEDS}
    if len(set(found.values())) > 1:
        told = ", ".join(f"{sha[:8]}… with seed {seed}" for seed, sha in found.items())
        raise CheckFailed(f"its log must be the same under every hash seed, not {told}")


def _hashes(under_test: AlgorithmUnderTest, seed: int) -> tuple[str, str]:
    (world, *_) = under_test.chosen(4, 3, 5)
    count = 1 if under_test.algorithm.kind.barrier else _COUNT
    setup = under_test.setup(under_test.homes[world])
    if seed not in under_test.logs:
        under_test.logs[seed] = log_hashes(under_test.plugins, seed, setup, under_test.case(world, count, pes=2))
    return under_test.logs[seed]


def _group_of(under_test: AlgorithmUnderTest) -> tuple[int, Network]:
    """Return a number of ranks, and a network of more that it takes them on; NotApplicable where there is none."""
    for world in under_test.chosen(3, 5, 4, 2, 6, 8):
        for sips in (world + 1, 2 * world):
            for name in under_test.algorithm.topologies:
                network = under_test.network(name, sips)
                if isinstance(network, Network) and under_test.algorithm.refusal(network, world) is None:
                    return world, network
    raise NotApplicable("it takes neither all ranks but one nor half of them")


def _ideal_runs(under_test: AlgorithmUnderTest) -> Iterator[tuple[Setup, TimedCase]]:
    """Yield calls on idealised machines: at home step by step and pipelined, of even and odd ranks, and elsewhere."""
    (even, *_), (odd, *_) = under_test.chosen(4, 2), under_test.chosen(5, 3)
    home = under_test.homes[even]
    asked = [(home, False), (home, True), (under_test.homes[odd], False)]
    others = [under_test.network(name, even) for name in under_test.algorithm.topologies if name != home.name]
    asked += [(network, False) for network in others if isinstance(network, Network)][-1:]
    kind = under_test.algorithm.kind
    for network, pipeline in dict.fromkeys(asked):
        count = 1 if kind.barrier else max(1, kind.count_of(_TIMED, network.world))
        if "sip" not in under_test.algorithm.contributors:
            count = max(1, count // 4)
        setup = under_test.setup(network, idealised=True)
        yield setup, under_test.case(network.world, count, pes=under_test.algorithm.ways, pipeline=pipeline)


def _on(under_test: AlgorithmUnderTest, setup: Setup, told: str) -> str:
    network = under_test.machine(setup).network
    return f"with {network.world} ranks on {network.name}, idealised: {told}"
