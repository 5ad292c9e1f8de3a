"""Components that break the contract: which node, which class, what it must do; never a wrong result, never a hang."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from tests.conftest import without_carets

MODELS = Path(__file__).with_name("hostile_models.py")
BENCH = """
def kernel(x, tl):
    a = tl.load(x, shape=(16, 16))
    tl.store(x, tl.dot(a, a))
def bench(rt):
    rt.launch(kernel, rt.zeros((256,)), grid=(1,), wait=False)
"""
GEMM = "sip0.cube0.pe0.pe_gemm"
MODEL = GEMM + ": hostile_models."
DELAY = "a delay must be a finite time in ns, at least 0, not -5"
CASES = {
    "Yields": MODEL + "Yields.run must yield SimPy events, not 5; write `yield env.timeout(ns)` to wait.",
    "Returns": MODEL + "Returns.run must be a generator, but it has no yield and returned a plain value ('int' object "
    "is "
    "not iterable); write `yield env.timeout(ns)` to wait.",
    "Negative": MODEL + "Negative.overhead must return a finite time in ns, at least 0, not -1.0; correct the "
    "component or "
    "choose another one for kind 'pe_gemm'.",
    "NotANumber": MODEL + "NotANumber.overhead must return a finite time in ns, at least 0, not nan; correct the "
    "component "
    "or choose another one for kind 'pe_gemm'.",
    "Text": MODEL + "Text.interval must return a finite time in ns, at least 0, not '5 ns'; correct the component or "
    "choose "
    "another one for kind 'pe_gemm'.",
    "BadDelay": MODEL + f"BadDelay raised ValueError: {DELAY} at simulated time {{time}}.\n"
    '  File "{models}", line {line}, in run\n    yield env.timeout(-5)',
    "Raises": MODEL + "Raises raised ValueError: my own fault at simulated time {time}.\n"
    '  File "{models}", line {line}, in run\n    raise ValueError("my own fault")',
    "Exits": MODEL + "Exits raised SystemExit: 0 at simulated time {time}.\n"
    '  File "{models}", line {line}, in overhead\n    raise SystemExit(0)',
    "Stops": MODEL + "Stops raised StopIteration at simulated time {time}.\n"
    '  File "{models}", line {line}, in run\n    yield next(iter(()))',
    "RaisesEarly": MODEL + "RaisesEarly.connect raised KeyError: 'nowhere' before simulated time 0.\n"
    '  File "{models}", line {line}, in connect\n    self.out_ports["nowhere"]',
    "Twice": GEMM + " must answer each GemmCmd once, not twice; call emit once for a message.",
    "IntoThePast": GEMM + " must send nothing before now, nor a last byte before the first: at {number} ns it sent a "
    "GemmCmd with its head at {number} ns and its tail at {number} ns; correct what emit is given.",
}
#: Those that the model itself raised, or that Python or SimPy raised in it.
RAISED = ("Yields", "Returns", "BadDelay", "Raises", "Exits", "Stops", "RaisesEarly")
CASES |= {name: f"{CASES[name]}\nThe model is of hostile_models (source tree)." for name in RAISED}


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """Load the builtin plug-in, and the one with the hostile models."""
    monkeypatch.syspath_prepend(MODELS.parent)
    return load_plugins([*own_plugins("builtin"), "hostile = hostile_models"], installed=False)


def run(folder: Any, plugins: Plugins, name: str, *args: str) -> Any:
    """Run the bench with one hostile model in the place of the matrix unit."""
    folder.write("k.py", BENCH)
    choice = ("--set", f"components.pe_gemm.impl=hostile.{name.lower()}", "--set", "components.pe_gemm.params={}")
    return folder.run("k.py", *choice, *args, plugins=plugins)


@pytest.mark.parametrize("name", CASES)
def test_a_broken_contract_names_node_and_class(folder: Any, hostile: Plugins, name: str) -> None:
    """Exit code 6, one sentence, nothing written."""
    outcome = run(folder, hostile, name)
    pattern = re.escape(f"error: {CASES[name]}\n")
    forms = {"time": r"[0-9.]+ [nu]s", "number": "[0-9.]+", "models": re.escape(str(MODELS)), "line": "[0-9]+"}
    for mark, form in forms.items():
        pattern = pattern.replace(re.escape(f"{{{mark}}}"), form)
    assert re.fullmatch(pattern, without_carets(outcome.err)), outcome.err
    assert (outcome.code, outcome.out, outcome.left) == (6, "", frozenset())


def test_what_is_no_component_is_a_configuration_error(folder: Any, hostile: Plugins) -> None:
    """A class without PARAMS, and one that is not there: exit code 3, with the setting that chose it."""
    where = (
        "--set components.pe_gemm.impl=hostile.{0}: components.pe_gemm.impl must be usable, not 'hostile.{0}': "
        "component "
    )
    lacks = run(folder, hostile, "NoComponent")
    assert lacks.err == where.format("nocomponent") + (
        "'hostile.nocomponent' of hostile_models (source tree) must be a ComponentBase class whose PARAMS is a tuple "
        "of "
        "Param, not <class 'hostile_models.NoComponent'>; repair 'hostile_models:NoComponent'.\n"
    )
    missing = run(folder, hostile, "Missing")
    assert missing.err == where.format("missing") + (
        "'hostile.missing' of hostile_models (source tree) must be importable from 'hostile_models:Missing', but that "
        "raised AttributeError: module 'hostile_models' has no attribute 'Missing'; repair or reinstall "
        "hostile_models (source tree).\n"
    )
    assert (lacks.code, missing.code, lacks.left | missing.left) == (3, 3, frozenset())


@pytest.mark.parametrize(("name", "serves"), [("Never", 1), ("Loses", 0)])
def test_an_answer_that_never_comes_is_a_deadlock_report(folder: Any, hostile: Plugins, name: str, serves: int) -> None:
    """Exit code 4; the report names the kernel's line, the unit and the request, though the host did not wait."""
    outcome = run(folder, hostile, name)
    lines = outcome.err.splitlines()
    assert re.fullmatch(
        r"error: deadlock at simulated time [0-9.]+ us: nothing is left to happen, but something still "
        r"waits\.",
        lines[0],
    )
    assert re.fullmatch(r"  host waits for KernelLaunchMsg since [0-9.]+ us", lines[1])
    assert lines[2] == "  kernels that wait:"
    kernel = rf"    sip0\.cube0\.pe0\.pe_cpu kernel 'kernel' at {re.escape(str(folder.path))}/k\.py:4 waits for "
    assert re.fullmatch(kernel + r"tl\.dot from its pe_gemm, for [0-9.]+ ns", lines[3])
    unit = f"    {GEMM} (hostile.{name.lower()}): serves {serves}, the oldest for 0 ns; 0 wait in its queue; 0 of its "
    assert (f"{unit}messages are unanswered" in lines) == bool(serves)
    assert lines[-1] == f"  wait-for cycle: none; {'an answer' if serves else 'a message'} was lost"
    assert (outcome.code, outcome.out, outcome.left) == (4, "", frozenset())


def test_a_component_that_never_ends_meets_the_limits(folder: Any, hostile: Plugins) -> None:
    """With simulated time: --max-events, and where the kernel waits; without: --timeout, and the component's line."""
    loops = run(folder, hostile, "Loops", "--max-events", "5000")
    first, second, third, *until = loops.err.splitlines()
    assert re.fullmatch(
        r"error: the run reached its limit of 5000 events at simulated time [0-9.]+ us; raise --max-events if it is "
        r"only "
        r"long\.",
        first,
    )
    assert (second, third.partition(", for ")[0]) == (
        "  kernels that wait:",
        f"    sip0.cube0.pe0.pe_cpu kernel 'kernel' at {folder.path}/k.py:4 waits for tl.dot from its pe_gemm",
    )
    assert until and ("until then" in until[0])
    hangs = run(folder, hostile, "Hangs", "--timeout", "1 s")
    head, line = hangs.err.splitlines()[0].split(f" events in {MODELS}:")
    assert head.startswith("error: the run reached its limit of 1 s of wall time at simulated time ")
    assert re.fullmatch(r"[0-9]+, which never returned to the simulator; raise --timeout if it is only long\.", line)
    assert (loops.code, hangs.code, loops.left | hangs.left) == (5, 5, frozenset())
