"""What is kept of uses stays small, and neither dropping nor joining changes which hazards are found."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.callsite import CallSite
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.memory.device_memory import TensorAllocation
from kernbench_core.memory.hazards import Hazards
from kernbench_core.memory.memory_uses import LastUse, TensorUses, UseGroup
from kernbench_core.messages import Launch
from kernbench_core.values.region import Region

X = TensorAllocation("x", 0, (1 << 20,), "int8", 1 << 20, ())
NUMBERS = count()


def line_a() -> None:
    """Stand for a line."""


def line_b() -> None:
    """Stand for another line."""


SITES: tuple[CallSite, ...] = ((line_a.__code__, 0), (line_b.__code__, 0))


class Command(KernelCommand):
    """Use some bytes."""

    def __init__(self, pe: int, regions: tuple[Region, ...], writes: bool, line: int, waits: bool = True) -> None:
        super().__init__((pe, next(NUMBERS)), "tl.use", SITES[line], (), 0)
        self.blocking = waits
        self.memory_uses = ((X, regions, regions, writes),)  # virtual and physical alike


def hazards(pes: int = 4, race_by: str = "pe") -> Hazards:
    """Return a search."""
    return Hazards([f"pe{pe}" for pe in range(pes)], lambda: 0.0, race_by)


def used(search: Hazards, pe: int, regions: Any, writes: bool = False, line: int = 0, waits: bool = True) -> Command:
    """Issue and complete a command."""
    command = Command(pe, regions if isinstance(regions, tuple) else (regions,), writes, line, waits)
    search.issued(command, 0.0)
    search.landed(command, 1.0)
    return command


def kept(search: Hazards) -> int:
    """Count the last uses that are kept."""
    tensors = search._tensors.values()
    groups = [group for tensor in tensors for side in (tensor.reads, tensor.writes) for group in side.values()]
    return sum(len(group.uses) for group in groups)


def keep(group: UseGroup, thread: int, number: int, epoch: int) -> None:
    """Put a last use into a group."""
    use = LastUse(group, thread, (thread, number), 0.0)
    use.epoch = epoch
    group.keep(use)


def test_a_loop_over_the_same_bytes_keeps_its_last_use() -> None:
    """However often it comes by, and however many it does not wait for."""
    search = hazards()
    for turn in range(1000):
        for tile in range(4):
            used(search, 0, Region(64 * tile, 64), writes=tile == 3, waits=turn % 2 == 0)
    assert kept(search) == 4


def test_a_stream_is_joined() -> None:
    """Forty thousand loads one after another, of four PEs, are a few thousand last uses; the race is found."""
    search = hazards()
    for start in range(10_000):
        for pe in range(4):
            used(search, pe, Region(start * 32, 32))
    assert kept(search) < 8_000
    used(search, 3, Region(7777 * 32 + 3, 1), writes=True, line=1)
    (hazard,) = search.found()
    assert (hazard.kind, hazard.count, hazard.byte, hazard.nbytes) == ("unordered_read", 3, 7777 * 32 + 3, 1)


def test_columns_of_a_matrix_are_joined() -> None:
    """Tiles beside each other become wider rows, and whole rows one run."""
    tensor, group = TensorUses(), None
    for tile in (2, 0, 3, 1):
        group = UseGroup(X, (Region(64 * tile, 64, 8, 256),), False, "tl.load", SITES[0])
        keep(group, 0, tile, 5)
        tensor.add(group)
    other = UseGroup(X, (Region(0, 64, 8, 256),), True, "tl.store", SITES[0])
    keep(other, 1, 0, 5)
    tensor.add(other)
    assert tensor.tidy(hazards(2).floor()) == 2
    (joined,) = tensor.reads.values()
    assert joined.physical == (Region(0, 2048),)
    assert joined.meets == [other]
    assert set(other.meets) == {other, joined}


@pytest.mark.parametrize(("epoch", "line", "then"), [(6, 0, 256), (5, 1, 256), (5, 0, 257)])
def test_unlike_neighbours_are_not_joined(epoch: int, line: int, then: int) -> None:
    """Another epoch, another line, a gap."""
    tensor = TensorUses()
    for base, when, site in ((0, 5, SITES[0]), (then, epoch, SITES[line])):
        group = UseGroup(X, (Region(base, 256),), False, "tl.load", site)
        keep(group, 0, base, when)
        tensor.add(group)
    assert tensor.tidy(hazards(2).floor()) == 2
    assert len(tensor.reads) == 2


def test_what_cannot_be_joined_keeps_nothing_from_it() -> None:
    """A use of scattered bytes, or one that is pending, stands for itself; neighbours behind it are joined."""
    tensor = TensorUses()
    scattered = (Region(0, 8), Region(64, 8))
    for number, physical in enumerate((scattered, (Region(1024, 64),), (Region(1088, 64),), (Region(1152, 64),))):
        group = UseGroup(X, physical, False, "tl.load", SITES[0])
        keep(group, 0, number, 5)
        tensor.add(group)
    assert tensor.tidy(hazards(2).floor()) == 2
    assert [group.physical for group in tensor.reads.values()] == [scattered, (Region(1024, 192),)]


@pytest.mark.parametrize("order", [("halves", "whole"), ("whole", "halves"), ("whole", "halves", "whole")])
def test_halves_that_become_a_whole_are_united_with_it(order: tuple[str, ...]) -> None:
    """One line uses bytes at once and in halves: the last use of each PE is kept, the latest of PE 0 is told."""
    search = hazards(3)
    for turn, how in enumerate(order):
        search.publish((0, -turn - 1))
        size = 64 if how == "halves" else 128
        commands = [used(search, 0, Region(at, size)) for at in range(0, 128, size)]
    used(search, 1, Region(0, 128))
    search._tidy()
    assert kept(search) == 2
    used(search, 2, Region(0, 128), writes=True, line=1)
    (hazard,) = search.found()
    assert (hazard.count, hazard.first.op_id, hazard.nbytes) == (2, commands[0].op_id, 128)


@pytest.mark.parametrize("order", [("halves", "whole"), ("whole", "halves")])
def test_who_knows_of_the_first_only_is_unordered_with_what_was_united(order: tuple[str, ...]) -> None:
    """A message sent between the two uses of the same bytes orders the earlier one alone."""
    search = hazards(3)
    for turn, how in enumerate(order):
        size = 64 if how == "halves" else 128
        commands = [used(search, 0, Region(at, size)) for at in range(0, 128, size)]
        search.publish((0, -turn - 1))
    search._tidy()
    for sent, found in ((-2, 0), (-1, 1)):
        search.order((0, sent), -sent)
        used(search, -sent, Region(0, 128), writes=True, line=1)
        of_reads = [hazard for hazard in search.found() if hazard.first.op_id == commands[0].op_id]
        assert len(of_reads) == found


def test_what_is_over_for_all_that_comes_is_dropped() -> None:
    """Two host programs whose PEs tell each other: nothing grows, though neither of them waits for the other."""
    search = hazards(2)
    search._tidy_at = 50
    for child in (1, 2):
        search.program_started(child, 0)
    for turn in range(500):
        launches = [Launch(None, {}, (1, 1, 1), {pe: ((0, 0, 0),)}) for pe in range(2)]  # type: ignore[arg-type]
        for pe, launch in enumerate(launches):
            search.launched(launch, pe + 1)
            search.begun(launch, pe)
            used(search, pe, Region(64 * turn, 8, 2, 32), writes=True)
        for pe in range(2):
            search.publish((pe, -turn))
        for pe in range(2):
            search.order((1 - pe, -turn), pe)
        for pe, launch in enumerate(launches):
            search.ended(launch, pe)
            search.joined(launch, pe + 1)
    assert len(search.found()) == 1  # the stores of one turn
    assert kept(search) < 8500
    search._tidy()
    assert kept(search) <= 4


def test_a_launch_knows_what_the_host_has_waited_for() -> None:
    """Also while another launch goes on, so that nothing is forgotten: one comes after it, the other does not."""
    search = hazards(4)
    first, beside, then = (
        Launch(None, {}, (1, 1, 1), {pe: ((0, 0, 0),)}) for pe in (0, 1, 2)  # type: ignore[arg-type]
    )
    for launch, pe in ((first, 0), (beside, 1)):
        search.launched(launch)
        search.begun(launch, pe)
        used(search, pe, Region(64 * pe, 64), writes=True)
    search.ended(first, 0)
    search.joined(first)
    search.launched(then)
    search.begun(then, 2)
    used(search, 2, Region(0, 64), line=1)
    assert search.found() == ()
    used(search, 2, Region(64, 64), line=1)
    assert [hazard.kind for hazard in search.found()] == ["unordered_read"]


def test_all_is_forgotten_when_the_host_has_waited() -> None:
    """Then nothing can be unordered with anything any more."""
    search = hazards(2)
    launch = Launch(None, {}, (1, 1, 1), {0: ((0, 0, 0),)})  # type: ignore[arg-type]
    search.launched(launch)
    search.begun(launch, 0)
    used(search, 0, Region(0, 64), writes=True)
    search.publish((0, 5))
    search.ended(launch, 0)
    search.joined(launch)
    assert (search._tensors, search._published) == ({}, {})


def launch_on(*pes: int) -> Launch:
    """Return a launch of one program on each of some PEs."""
    return Launch(None, {}, (len(pes), 1, 1), {pe: ((pe, 0, 0),) for pe in pes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("race_by", "pes", "waits", "left"),
    [("pe", (0, 1), True, 0), ("pe", (0, 1), False, 1), ("pe", (0, 1, 2), True, 1), ("program", (0, 1), True, 1)],
)
def test_what_every_pe_has_heard_of_is_over(race_by: str, pes: tuple[int, ...], waits: bool, left: int) -> None:
    """While the host waits: else it may launch what has heard of nothing, as may begin a PE, or a program of it."""
    search, launch = hazards(3, race_by), launch_on(*pes)
    search.launched(launch)
    for pe in (0, 1):
        search.begun(launch, pe)
        search.turned(pe, 0)
    used(search, 0, Region(0, 64), writes=True)
    for sender, receiver in ((0, 1), (1, 0)):
        search.publish((sender, 0))
        search.order((sender, 0), receiver)
    if waits:
        search.waiting(launch)
    search._tidy()
    assert kept(search) == left


def test_a_host_that_goes_on_knows_what_its_launch_learnt() -> None:
    """And nothing of another one that it did not wait for."""
    search, first, second = hazards(), launch_on(0), launch_on(1)
    for pe, launch in enumerate((first, second)):
        search.launched(launch)
        search.begun(launch, pe)
        used(search, pe, Region(64 * pe, 64), writes=True)
    search.waiting(first)
    search.ended(first, 0)
    search._tidy()
    assert kept(search) == 2  # the second does not know of the first
    search.ended(second, 1)
    search._tidy()
    assert kept(search) == 1
    search.joined(first)
    search._tidy()
    assert kept(search) == 1


class Machine:
    """Takes steps that a run could take: PEs run launches one after another, a host that waits does nothing else."""

    def __init__(self) -> None:
        self.search = hazards()
        self.queues: dict[int, list[Launch]] = {pe: [] for pe in range(4)}
        self.begun: set[int] = set()
        self.left: dict[Launch, set[int]] = {}
        self.waited: Launch | None = None
        self.number = 0

    def take(self, kind: str, pe: int, other: int, start: int, writes: bool) -> None:
        """Take a step, where it can be taken now."""
        self.number += 1
        if kind == "launch" and self.waited is None:
            launch = launch_on(*{pe, other, start % 4})
            self.left[launch] = set(launch.programs)
            self.search.launched(launch)
            for each in launch.programs:
                self.queues[each].append(launch)
        elif kind == "wait" and self.waited is None and self.left:
            self.waited = [*self.left][start % len(self.left)]
            self.search.waiting(self.waited)
        elif kind == "join" and self.waited is not None and not self.left[self.waited]:
            self.search.joined(self.waited)
            del self.left[self.waited]
            self.waited = None
        elif kind == "step" and self.queues[pe] and pe not in self.begun:
            self.search.begun(self.queues[pe][0], pe)
            self.begun.add(pe)
        elif kind == "step" and pe in self.begun:
            self.begun.remove(pe)
            launch = self.queues[pe].pop(0)
            self.search.ended(launch, pe)
            self.left[launch].discard(pe)
        elif pe in self.begun:
            if kind == "use":
                used(self.search, pe, Region(8 * start, 16), writes, line=start % 2)
            elif kind == "edge" and other in self.begun:
                self.search.publish((pe, -self.number))
                self.search.order((pe, -self.number), other)


machine_steps = st.tuples(
    st.sampled_from(["use", "use", "use", "edge", "edge", "step", "step", "launch", "wait", "join"]),
    st.integers(0, 3), st.integers(0, 3), st.integers(0, 7), st.booleans(),
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(machine_steps, max_size=120))
def test_tidying_among_launches_finds_the_same(steps: list[Any]) -> None:
    """By kind, lines and how often: after each step, or never."""
    found = []
    for tidies in (False, True):
        machine = Machine()
        for step in steps:
            machine.take(*step)
            if tidies:
                machine.search._tidy()
        found.append([(h.kind, h.count, *sorted([h.first.line, h.second.line])) for h in machine.search.found()])
    assert sorted(found[0]) == sorted(found[1])


uses = st.tuples(
    st.sampled_from(["use", "use", "use", "later", "wait", "edge"]),
    st.integers(0, 3), st.integers(0, 3), st.integers(0, 30), st.integers(1, 9), st.booleans(), st.integers(0, 1),
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(uses, max_size=60), st.integers(0, 2**32))
def test_tidying_at_any_time_finds_the_same(steps: list[Any], seed: int) -> None:
    """By kind, lines and tensor: after each step, or never."""
    found = []
    for often in (0.0, 0.3, 1.0):
        search, chance = hazards(), random.Random(seed)
        pending: list[Command] = []
        for number, (kind, pe, other, start, size, writes, line) in enumerate(steps):
            if kind == "edge":
                search.publish((pe, -number - 1))
                search.order((pe, -number - 1), other)
            elif kind == "wait" and pending:
                search.waited([pending.pop(start % len(pending))])
            elif kind in ("use", "later"):
                region = Region(4 * start, 4 * size) if line else Region(4 * start, 4, size, 16)
                command = used(search, pe, region, writes, line, waits=kind == "use")
                if kind == "later":
                    pending.append(command)
            if chance.random() < often:
                search._tidy()
        found.append({(h.kind, h.first.line, h.second.line) for h in search.found()})
    ordered = [{(kind, *sorted(lines)) for kind, *lines in each} for each in found]
    assert ordered[0] == ordered[1] == ordered[2]


def test_programs_that_use_one_place_are_looked_at_a_few_times_each(monkeypatch: Any) -> None:
    """Of 400 that write it each pair counts, and yet the lines of a pair are spelt out for each program only."""
    spelt: list[CallSite | None] = []
    monkeypatch.setattr("kernbench_core.memory.hazards.describe_site", lambda site: spelt.append(site) or "a line")
    search = hazards(400)
    for pe in range(400):
        used(search, pe, Region(0, 4), True)
    (found,) = search.found()
    assert found.count == 400 * 399 // 2
    assert len(spelt) < 400 * 3 + 10 * 17 * 16
