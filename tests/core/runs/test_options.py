"""The options of a run are written down once: `kb.run`, command line, manifest and rerun have the same."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

import kernbench_core as kb
from kernbench_core.cli import main
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.runs import bench_run
from kernbench_core.runs.options import RunCall, RunOptions

#: What is typed for each field, and what the field then is, unlike its default.
TYPED: dict[str, tuple[tuple[str, ...], Any]] = {
    "bench": (("toy",), "toy"),
    "topology": (("--topology", "one"), "one"),
    "params": (("-p", "n=4"), {"n": "4"}),
    "components": (("--components", "more.yaml"), "more.yaml"),
    "set": (("--set", "system.sips=2", "--set", "cube.pes=2"), ("system.sips=2", "cube.pes=2")),
    "device": (("--device", "sip:1"), "sip:1"),
    "seed": (("--seed", "9"), 9),
    "grid": (("--grid", "8,4"), "8,4"),
    "data": (("--no-data",), False),
    "verify_data": (("--verify-data",), True),
    "verify_ops": (("--verify-ops",), True),
    "backend": (("--backend", "torch:cpu"), "torch:cpu"),
    "strict_races": (("--strict-races",), True),
    "strict_python": (("--strict-python",), True),
    "race_by": (("--race-by", "program"), "program"),
    "materialize": (("--materialize", "on_demand"), "on_demand"),
    "oob": (("--oob", "poison"), "poison"),
    "pipeline_loops": (("--no-pipeline-loops",), False),
    "placement": (("--placement", "blocks"), "blocks"),
    "resident": (("--resident", "a, b"), "a,b"),
    "out": (("--out", "o"), "o"),
    "outputs": (("--outputs",), True),
    "depends": (("--depends", "a.csv", "--depends", "$B"), ("a.csv", "$B")),
    "max_events": (("--max-events", "5"), 5),
    "max_sim_ns": (("--max-sim-time", "2 us"), 2000.0),
    "timeout_s": (("--timeout", "1.5 s"), 1.5),
}
#: What a call alone can give.
BY_CALL = ("on_progress", "plugins")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[RunCall]:
    """Collect the calls of `run`, none of which gets further."""
    found: list[RunCall] = []

    def stop(call: RunCall, *_: object) -> None:
        found.append(call)
        raise UsageError("far enough.")

    monkeypatch.setattr(bench_run, "request_of", stop)
    monkeypatch.setattr(bench_run, "configure", lambda *_: None)
    return found


@pytest.mark.parametrize("field", TYPED)
def test_every_option_of_the_command_line_is_an_argument_of_run(
    toy: ModuleType, calls: list[RunCall], field: str
) -> None:
    """It sets the field of its name to what was typed, and no other."""
    assert {*TYPED, *BY_CALL} == {each.name for each in attrs.fields(RunCall)}
    typed, value = TYPED[field]
    assert main(["run", *(() if field == "bench" else ("tay",)), *typed], toy.plugins) == 2
    (call,) = calls
    expected = RunCall("tay", params={}, on_progress=call.on_progress, plugins=toy.plugins)
    assert call == attrs.evolve(expected, **{field: value})
    with pytest.raises(UsageError, match=r"far enough"):
        kb.run(**{"bench": "tay", "params": {}, field: value}, on_progress=call.on_progress, plugins=toy.plugins)
    assert calls[1] == call


def test_help_and_editors_see_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench`, `topology` and `params` may be given by place, all others by name only; no type is decorated."""
    monkeypatch.setattr(kb.run, "__signature__", inspect.signature(kb.run))  # whatever parts a test before had
    bench_run.describe_run(kb.load_plugins([], installed=False))
    parameters = inspect.signature(kb.run).parameters
    by_place = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_name = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
    assert by_place == ["bench", "topology", "params"]
    assert sorted(by_name) == sorted([*(name for name in TYPED if name not in by_place), *BY_CALL])
    assert (parameters["data"].annotation, parameters["data"].default) == (bool, True)
    assert parameters["out"].annotation == str | Path | None
    assert inspect.getdoc(kb.run) == inspect.getdoc(bench_run.run) != inspect.getdoc(RunCall)


@pytest.mark.parametrize(
    ("args", "named", "told"),
    [
        ((), {}, "run() missing a required argument: 'bench'"),
        (("a", "b", {}, "c"), {}, "run() too many positional arguments"),
        (("a",), {"verfy_data": True}, "run() got an unexpected keyword argument 'verfy_data'"),
    ],
)
def test_a_wrong_call_names_the_function(
    plugins: Plugins, args: tuple[Any, ...], named: dict[str, Any], told: str
) -> None:
    """As Python does for a function that is written out."""
    with pytest.raises(TypeError) as caught:
        kb.run(*args, **named, plugins=plugins)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"set": "a=b"},
            "set must be a list of 'key.path=value' texts, or a mapping of 'key.path' to values, not 'a=b'.",
        ),
        ({"set": [3]}, "set must be a list of 'key.path=value' texts, or a mapping of 'key.path' to values, not [3]."),
        ({"set": 3}, "set must be a list of 'key.path=value' texts, or a mapping of 'key.path' to values, not 3."),
        ({"seed": -1}, "the seed must be an integer of at least 0, not -1; give another --seed."),
        ({"race_by": "warp"}, "race_by must be 'pe' or 'program', not 'warp'."),
        ({"out": 5}, "out must be a path, as text or a Path, or None, not 5."),
        ({"out": b"o"}, "out must be a path, as text or a Path, or None, not b'o'."),
        ({"max_events": 0}, "max_events must be a positive integer or None, not 0."),
        (
            {"verify_ops": True, "data": False},
            "verifying data needs data; leave out either --verify-ops or --no-data.",
        ),
    ],
)
def test_options_that_no_run_can_have_are_sentences(given: dict[str, Any], sentence: str) -> None:
    """They are refused when they are written down, before plug-ins are loaded."""
    with pytest.raises(UsageError) as caught:
        RunOptions(**given)
    assert str(caught.value) == sentence


def test_help_knows_the_options_of_parts(toy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the plug-ins that are there; nothing of `kb.run` itself is another one."""
    monkeypatch.setattr(bench_run.run, "__signature__", inspect.signature(kb.run))
    before = set(inspect.signature(kb.run).parameters)
    bench_run.describe_run(toy.plugins)
    assert set(inspect.signature(kb.run).parameters) - before == {"note", "words"}
