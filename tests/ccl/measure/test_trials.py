"""Short simulations by which `auto` chooses: the times of real measurements, whatever a cache holds or cannot hold."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Chooser, Question, Setup, Sweep, machine_of
from kernbench_ccl.measure.measurement import measure
from kernbench_ccl.measure.sweep import counts_of
from kernbench_ccl.measure.trials import AlgorithmTrial, AlgorithmTrials, TrialCall
from kernbench_ccl.plan import load_ccl, make_group
from kernbench_ccl.plan.trial_choice import TriedChoice, choose_by_trial
from kernbench_core.cache.store import Cache
from kernbench_core.errors import KernbenchWarning
from kernbench_core.host import GraphEngine
from kernbench_core.plugins import load_plugins
from kernbench_core.process import collection
from kernbench_core.process.collection import no_automatic_collection
from kernbench_core.topology import design_of

PLUGINS = load_plugins()
SIZE = 6144
RING, DIRECT = "ccl.ring_all_reduce", "ccl.direct_all_reduce"


def chooser(collective: str = "all_reduce", ranks: int = 3) -> tuple[Sweep, Chooser]:
    """Return what measures on a ring of SIPs whose links are in no table."""
    sets = (f"system.sips={ranks}", "system.network.bandwidth=37GB/s", "cube.pes=2")
    setup = Setup("tiny", None, sets, checked=False)
    machine = machine_of(setup, PLUGINS)
    kind = COLLECTIVES[collective]
    question = Question(kind, "f16", "sum" if kind.reduces else None, 0)
    return Sweep(question, setup, machine, PLUGINS, workers=1), Chooser(question, machine, load_ccl(), PLUGINS)


@pytest.fixture(scope="module")
def exhaustive() -> dict[str, float]:
    """Measure algorithms as `kernbench ccl` does."""
    sweep, found = chooser()
    count = counts_of([SIZE], sweep.question.kind, "f16", 3)[0]
    return {
        name: measure(sweep.case(count, choice, False), sweep.machine, PLUGINS, checked=False).time_ns
        for name, choice in found.able().items()
        if name in (RING, DIRECT)
    }


def asked(monkeypatch: pytest.MonkeyPatch) -> tuple[AlgorithmTrials, TriedChoice, int]:
    """Choose with what the environment says of the cache; return how many simulations that took, too."""
    ran = []
    run = AlgorithmTrial.run
    with monkeypatch.context() as patch:
        patch.setattr(AlgorithmTrial, "run", lambda *given: (ran.append(given), run(*given))[1])
        trials = chooser()[1].trials
        return trials, choose_by_trial((RING, DIRECT), SIZE, trials), len(ran)


Meddle = Callable[[Path, pytest.MonkeyPatch], object]


def damage(folder: Path, _: object) -> None:
    """Change a byte in the middle of every entry."""
    for path in folder.rglob("*.entry"):
        data = bytearray(path.read_bytes())
        data[-20] ^= 1
        path.write_bytes(data)


def turn_off(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cache hold nothing."""
    monkeypatch.setenv("KERNBENCH_CACHE_BYTES", "0")


def put_a_file_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody write where the cache would be."""
    blocked = folder.with_name("file")
    blocked.write_text("")
    monkeypatch.setenv("KERNBENCH_CACHE", str(blocked))


def leave(_: Path, __: object) -> None:
    """Change nothing."""


@pytest.mark.parametrize(
    ("meddle", "simulated"),
    [(leave, False), (damage, True), (turn_off, True), (put_a_file_there, True)],
)
def test_the_choice_is_the_same_whatever_becomes_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exhaustive: dict[str, float], meddle: Meddle, simulated: bool
) -> None:
    """Warm, damaged, off, not to be written: the same times, those of a measurement; a warm one simulates nothing."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path / "cache"))
    _, cold, ran = asked(monkeypatch)
    assert ran == len(exhaustive) and cold.estimates == exhaustive
    meddle(tmp_path / "cache", monkeypatch)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        _, again, ran = asked(monkeypatch)
    assert again == cold and bool(ran) is simulated
    assert {each.category for each in told} <= {KernbenchWarning}


def test_a_kept_time_that_no_simulation_gives_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative one, and one that is busy for longer than it takes."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path))
    cold = asked(monkeypatch)[1]
    cache = Cache.of_user()
    for content in (b'{"ns": -1.0, "busy_ns": 0.0}', b'{"ns": 1.0, "busy_ns": 2.0}'):
        for entry in list(cache.entries()):
            assert entry.about is not None
            if entry.about.get("what") == "trial":
                cache.put(entry.key, {"time.json": content}, entry.about)
        assert asked(monkeypatch)[1] == cold


def test_what_a_time_depends_on_is_in_its_key() -> None:
    """Another size, root, dtype, group, setting or machine is another key; the name of an entry is none of it."""
    trials = chooser()[1].trials
    algorithm, settings = trials.able[RING]
    call = trials.call
    group = make_group(design_of(trials.machine.graph).pes, [0, 2, 1])
    others: list[Any] = [
        AlgorithmTrial(call, algorithm, settings, 10),
        AlgorithmTrial(call, algorithm, settings, 11),
        AlgorithmTrial(evolve(call, root=1), algorithm, settings, 10),
        AlgorithmTrial(evolve(call, dtype="f32"), algorithm, settings, 10),
        AlgorithmTrial(evolve(call, redop="max"), algorithm, settings, 10),
        AlgorithmTrial(evolve(call, group=group), algorithm, settings, 10),
        AlgorithmTrial(call, algorithm, evolve(settings, chunk=4096), 10),
        AlgorithmTrial(call, algorithm, evolve(settings, pes=1), 10),
        AlgorithmTrial(call, trials.able[DIRECT][0], settings, 10),
    ]
    keys = [trials.store._key(trial) for trial in others]
    keys.append(chooser(ranks=6)[1].trials.store._key(others[0]))
    assert len(set(keys)) == len(keys) and None not in keys
    assert trials.store._key(AlgorithmTrial(call, algorithm, evolve(settings, name="mine"), 10)) == keys[0]


def test_an_algorithm_that_fails_is_told_and_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here because it takes more events than a trial may."""
    trials = evolve(chooser()[1].trials, most_events=300)
    monkeypatch.setenv("KERNBENCH_CACHE_BYTES", "0")
    assert trials.time(RING, SIZE) is None
    assert trials.failures[RING].startswith("the run reached its limit of 300 events")


def test_a_group_is_timed_with_its_own_ranks() -> None:
    """Three neighbours of five are faster than three that are not; and there is no closed form for them."""
    whole = chooser(ranks=5)[1].trials
    pes = design_of(whole.machine.graph).pes
    times = []
    for ranks in ([0, 1, 2], [0, 2, 4]):
        call = TrialCall(whole.call.kind, "f16", "sum", 0, group=make_group(pes, ranks))
        trials = AlgorithmTrials(call, whole.machine, PLUGINS, whole.able)
        assert trials.form(RING, SIZE) is None and trials.world == 3
        found = trials.time(RING, SIZE)
        assert found is not None
        times.append(found.ns)
    assert whole.form(RING, SIZE) is not None
    assert times[0] < times[1]


def test_the_form_of_a_long_chain_is_not_that_of_tiles_that_wait_for_each_other() -> None:
    """Of a message of one PE: with those of all PEs it would be left out where it is the fastest."""
    nbytes, trials = 128 << 10, chooser("broadcast", ranks=9)[1].trials
    bandwidth, latency = trials.machine.link()
    told = trials.form("ccl.ring_broadcast", nbytes)
    assert told == pytest.approx(8 * latency + (7 * (16 << 10) + nbytes) / bandwidth)


class Knot:
    """Refers to itself, so that only a look for garbage takes it away."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("most_events", [None, 300], ids=["to its end", "stopped"])
def test_a_trial_takes_its_own_garbage_away_and_no_other(
    monkeypatch: pytest.MonkeyPatch, most_events: int | None
) -> None:
    """A machine tried on is gone when the next one comes; when the garbage of a run goes shows in its op log.

    A trial that is stopped leaves as much as one that ends.
    """
    engines = []

    def made(*given: Any, **named: Any) -> GraphEngine:
        engine = GraphEngine(*given, **named)
        engines.append(weakref.ref(engine))
        return engine

    monkeypatch.setattr("kernbench_ccl.measure.trials.GraphEngine", made)
    monkeypatch.setenv("KERNBENCH_CACHE_BYTES", "0")
    trials = evolve(chooser()[1].trials, most_events=most_events)
    gc.unfreeze()  # what conftest.py froze
    monkeypatch.setattr(collection, "_has_frozen", lambda: gc.get_freeze_count() > 0)
    with no_automatic_collection():
        left = weakref.ref(Knot())
        assert (trials.time(RING, SIZE) is None) is bool(trials.failures) is (most_events is not None)
        assert [engine() for engine in engines] == [None]
        assert left() is not None
    gc.freeze()
