"""How far a run is, of requests and launches made by hand and with a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kernbench_core.engine.watchdog import Progress
from kernbench_core.messages import KernelLaunchMsg, Launch, MemoryReadMsg, MemoryWriteMsg, ResponseMsg
from kernbench_core.oplog.log import OpLog
from kernbench_core.runs.run_progress import RunProgress, programs_done
from kernbench_core.values.region import Region


class Clock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 50.0

    def perf_counter(self) -> float:
        return self.now


class Rig:
    """A run that is told of, its requests, and the PEs that run programs."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.seen: list[Progress] = []
        self.requests: list[Any] = []
        self.states: dict[int, Any] = {}
        self.progress = RunProgress(self.seen.append)
        self.engine: Any = SimpleNamespace(
            shared=SimpleNamespace(requests=self.requests, tensors={}),
            op_log=OpLog(),
            device=SimpleNamespace(kernels=SimpleNamespace(states=self.states)),
        )
        self.progress.watch(self.engine)

    def tick(self, after_s: float = 0.5) -> Progress:
        """Have the engine tell that it has simulated on, some time later; return what was told last."""
        self.clock.now += after_s
        assert self.progress.on_tick is not None
        self.progress.on_tick(Progress(self.clock.now, 1000, 10.0))
        return self.seen[-1]

    def runs(self, launch: Launch, pe: int, turn: int, part: float | None) -> None:
        launch.started_ns[pe] = 1.0
        runner = SimpleNamespace(turn=turn, part_done=lambda: part)
        self.states[pe] = SimpleNamespace(launch=launch, runner=runner)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    clock = Clock()
    monkeypatch.setattr("kernbench_core.runs.run_progress.time", clock)
    return Rig(clock)


def kernel() -> None:
    """Do nothing."""


def launch_of(pes: int, programs: int = 1) -> Launch:
    ids = tuple((number, 0, 0) for number in range(programs))
    return Launch(kernel, {}, (pes * programs, 1, 1), dict.fromkeys(range(pes), ids))


def over(request: Any) -> None:
    request.response = ResponseMsg("", 0.0, 1.0)


def test_a_copy_is_followed_by_its_bytes(rig: Rig) -> None:
    """A part of the bytes is a part of the copy, and the time that is left follows from that; the next is another."""
    rig.progress.begin("bench")
    assert (rig.seen[-1].phase, rig.seen[-1].fraction) == ("bench", None)
    first, second = (MemoryWriteMsg((Region(0, 800),)) for _ in range(2))
    rig.requests.append(first)
    assert (rig.tick().phase, rig.tick().fraction) == ("host_to_device", None)
    first.copied = 200
    told = rig.tick(1.0)
    assert (told.done, told.of, told.unit, told.fraction, told.step_s) == (200, 800, "bytes", 0.25, 1.5)
    assert told.left_s == pytest.approx(4.5)
    over(first)
    rig.requests.append(second)
    told = rig.tick()
    assert (told.phase, told.fraction, told.step_s) == ("host_to_device", None, 0.0)
    assert told.wall_s == pytest.approx(2.5)
    assert told.events_per_s == 100.0


def test_the_phase_is_that_which_the_result_counts(rig: Rig) -> None:
    """A kernel before a launch, that before a copy to the host, and that before one to the device; else the bench."""
    write, read = MemoryWriteMsg((Region(0, 8),)), MemoryReadMsg((Region(0, 8),))
    launched = KernelLaunchMsg(launch_of(2))
    rig.requests += [write, read, launched]
    assert (rig.tick().phase, rig.seen[-1].what) == ("launch", "kernel")
    rig.runs(launched.launch, 0, 0, None)
    told = rig.tick()
    assert (told.phase, told.what, told.done, told.of, told.fraction) == ("kernel", "kernel", 0, 2, None)
    launched.launch.started_ns[1] = 1.0
    launched.launch.ended_ns.update({0: 2.0, 1: 2.0})
    assert rig.tick().phase == "launch"  # its answer is on its way
    over(launched)
    assert rig.tick().phase == "device_to_host"
    over(read)
    assert rig.tick().phase == "host_to_device"
    over(write)
    assert rig.tick().phase == "bench"


def test_a_part_does_not_go_back(rig: Rig) -> None:
    """Though what is known of a kernel comes and goes; the counts are those of the moment."""
    launched = KernelLaunchMsg(launch_of(4))
    rig.requests.append(launched)
    rig.runs(launched.launch, 0, 0, 0.8)
    assert rig.tick().fraction == pytest.approx(0.2)
    rig.runs(launched.launch, 0, 0, None)
    assert rig.tick().fraction == pytest.approx(0.2)
    rig.runs(launched.launch, 0, 0, 0.4)
    assert rig.tick().fraction == pytest.approx(0.2)


def test_it_looks_four_times_a_second(rig: Rig) -> None:
    """Whatever the engine does in between."""
    rig.progress.begin("bench")
    for _ in range(1000):
        rig.tick(0.01)
    assert 35 <= len(rig.seen) <= 41


def test_nobody_is_told_of_what_nobody_asks_for() -> None:
    """Then the engine has nothing to call."""
    progress = RunProgress(None)
    assert progress.on_tick is None
    progress.begin("computing", 4, "ops")
    progress.did(2)


def test_ops_are_counted_and_never_more_than_all(rig: Rig) -> None:
    """What is computed once more counts in both numbers."""
    rig.progress.begin("computing", 4, "ops")
    for number, expected in ((1, (1, 4, 0.25)), (3, (4, 4, 1.0)), (2, (6, 6, 1.0))):
        rig.clock.now += 1.0
        rig.progress.did(number)
        told = rig.seen[-1]
        assert (told.done, told.of, told.fraction, told.unit) == (*expected, "ops")
    rig.progress.begin("computing")
    rig.progress.did(2)
    assert (rig.seen[-1].done, rig.seen[-1].of, rig.seen[-1].fraction) == (None, None, None)


def test_counts_are_told_four_times_a_second_and_at_the_end(rig: Rig) -> None:
    """However many there are."""
    rig.progress.begin("computing", 1000, "ops")
    for _ in range(1000):
        rig.clock.now += 0.01
        rig.progress.did(1)
    told = [each.done for each in rig.seen]
    assert 35 <= len(told) <= 42 and told[-1] == 1000
    assert told == sorted(told, key=lambda done: done or 0)
    for before, after in zip(rig.seen, rig.seen[1:-1], strict=False):
        assert 0.25 <= after.wall_s - before.wall_s < 0.27
        assert after.done == round(after.wall_s * 100)
    rig.progress.begin("computing", 10, "ops")
    rig.progress.did(3)
    rig.progress.begin("computing", 10, "ops")
    rig.clock.now += 1.0
    rig.progress.did(1)
    assert rig.seen[-1].done == 1


def test_a_host_program_that_goes_on_is_told_of_at_once(rig: Rig) -> None:
    """The copy before is over then; and so is the next one told of."""
    first, second = (MemoryWriteMsg((Region(0, 800),)) for _ in range(2))
    rig.requests.append(first)
    first.copied = 720
    assert (rig.tick().phase, rig.seen[-1].fraction) == ("host_to_device", 0.9)
    over(first)
    host = rig.engine.shared.on_host
    host(True)
    assert (rig.seen[-1].phase, rig.seen[-1].fraction, rig.seen[-1].step_s) == ("bench", None, 0.0)
    rig.requests.append(second)
    rig.clock.now += 9.0
    host(False)
    assert (rig.seen[-1].phase, rig.seen[-1].step_s) == ("host_to_device", 0.0)
    over(second)
    launched = KernelLaunchMsg(launch_of(2))
    rig.requests.append(launched)
    rig.runs(launched.launch, 0, 0, 0.5)
    for after_s, fraction in ((0.01, 0.25), (1.0, 0.25)):
        rig.clock.now += after_s
        host(False)
        assert (rig.seen[-1].phase, rig.seen[-1].what, rig.seen[-1].fraction) == ("kernel", "kernel", fraction)


@pytest.mark.parametrize("pes", [1, 3, 64, 65, 512])
def test_programs_and_parts_of_them_make_the_whole(rig: Rig, pes: int) -> None:
    """Each PE has 4 programs; PE p has run p % 3, and half of the next, however many are looked at."""
    launch = launch_of(pes, 4)
    for pe in range(pes):
        rig.runs(launch, pe, pe % 3, 0.5)
    done = sum(pe % 3 for pe in range(pes))
    assert programs_done(launch, rig.engine) == (done, 4 * pes, pytest.approx((done + 0.5 * pes) / (4 * pes)))
    for pe in range(pes):
        launch.ended_ns[pe] = 9.0
    assert programs_done(launch, rig.engine) == (4 * pes, 4 * pes, 1.0)


def test_a_program_of_which_nothing_is_known_counts_for_nothing(rig: Rig) -> None:
    """Until all are over, not all is said to be."""
    launch = launch_of(4)
    assert programs_done(launch, rig.engine) == (0, 4, None)
    rig.runs(launch, 0, 0, None)
    assert programs_done(launch, rig.engine) == (0, 4, None)
    rig.runs(launch, 1, 0, 0.5)
    assert programs_done(launch, rig.engine) == (0, 4, None)
    rig.runs(launch, 0, 0, 0.0)
    assert programs_done(launch, rig.engine) == (0, 4, pytest.approx(0.125))
    for pe in range(4):
        rig.runs(launch, pe, 0, 1.0)
    assert programs_done(launch, rig.engine) == (0, 4, 0.99)


def test_the_first_programs_to_end_tell_nothing_of_the_others(rig: Rig) -> None:
    """Until as many are over as PEs run them: with one on each PE all are then, with two half of them."""
    for programs, part in ((1, 1.0), (2, 0.5), (10, 0.1)):
        launch = launch_of(4, programs)
        for pe in range(4):
            rig.runs(launch, pe, 0, 0.0)
        assert programs_done(launch, rig.engine) == (0, 4 * programs, None)  # none has begun
        for pe in range(4):
            rig.runs(launch, pe, 0, None)
        for pe in range(4):
            assert programs_done(launch, rig.engine) == (pe, 4 * programs, None)
            if programs == 1:
                launch.ended_ns[pe] = 9.0
            else:
                rig.runs(launch, pe, 1, None)
        assert programs_done(launch, rig.engine) == (4, 4 * programs, part)
