"""Run cases of Triton's own tests in this process, by pytest under kernbench, and write down what came of each.

    python tools/triton_suite_cases.py WORK.json NOTES      # what tools/triton_suite.py starts

Each case has a run of its own on the simulated machine, and a limit of processor time that ends the process.
"""

from __future__ import annotations

import ast
import json
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_builtin.triton import simulation
from kernbench_builtin.triton.session import TritonRun
from kernbench_core.errors import KernbenchError
from kernbench_core.units import parse_quantity
from tools.triton_internal_testing import NAMES

ROOT = Path(__file__).resolve().parent.parent
PASSED, SKIPPED = "passed", "skipped"
REFUSED, ASSERTED, WORDS = "refused in a sentence", "the kernel's own assertion", "other words than Triton's"
ACCEPTED, WRONG, CRASHED = "accepted, though Triton refuses it", "silently wrong", "internal error"
UNCONFIRMED = "not confirmed by phase 2"
_WALL = 20
"""What a case may take of the clock, of what it may take of the processor."""


def classified(error: BaseException) -> tuple[str, str, str]:
    """Return the outcome that an error of a case stands for, the beginning of its text, and where it was raised."""
    told, where = _beginning(str(error)), _place(error)
    cause = error.__cause__ if isinstance(error, KernbenchError) else None
    if isinstance(cause, AssertionError) or (isinstance(error, KernbenchError) and "_assert at " in told):
        return ASSERTED, told, where
    if cause is not None and not isinstance(cause, KernbenchError):
        outcome = REFUSED if _in_words(cause) else CRASHED
        return outcome, f"{type(cause).__name__}: {_beginning(str(cause))}", _place(cause)
    if isinstance(error, KernbenchError):
        return REFUSED, told, where
    if isinstance(error, pytest.fail.Exception):
        return (ACCEPTED if told.startswith("DID NOT RAISE") else WRONG), told, where
    if isinstance(error, AssertionError):
        return (WORDS if _about_text(error) else WRONG), _beginning(str(error), lines=5), where
    return (REFUSED if _in_words(error) else CRASHED), f"{type(error).__name__}: {told}", where


def _beginning(text: str, lines: int = 1) -> str:
    return " ".join([line.strip() for line in text.splitlines() if line.strip()][:lines])[:300]


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames that an error went through, the innermost first, without those of installed packages."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return [frame for frame in frames if "site-packages" not in frame.filename]


def _place(error: BaseException) -> str:
    while isinstance(error, KernbenchError) and error.__cause__ is not None:
        error = error.__cause__
    for frame in _frames(error):
        file = Path(frame.filename)
        return f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name}:{frame.lineno}"
    return ""


def _in_words(error: BaseException) -> bool:
    """Tell whether kernbench raised an error itself, with a text of its own, whatever its class."""
    for frame in _frames(error):
        return Path(frame.filename).is_relative_to(ROOT) and (frame.line or "").startswith("raise ")
    return False


def _about_text(error: BaseException) -> bool:
    """Tell whether what failed is an assertion about a text, as that of a message."""
    if "Regex pattern did not match" in str(error):
        return True
    for frame in _frames(error):
        if (frame.line or "").startswith("assert"):
            return _mentions_text(Path(frame.filename), frame.lineno or 0)
    return False


def _mentions_text(file: Path, line: int) -> bool:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8", errors="replace"))):
        if isinstance(node, ast.Assert) and node.lineno == line:
            return any(_is_of_text(each) for each in ast.walk(node.test))
    return False


def _is_of_text(node: ast.AST) -> bool:
    """Tell whether a part of a condition compares with a text, makes one by `str`, or looks for a pattern."""
    if isinstance(node, ast.Compare):
        texts = [each for each in (node.left, *node.comparators) if isinstance(each, ast.JoinedStr | ast.Constant)]
        return any(isinstance(each, ast.JoinedStr) or isinstance(each.value, str) for each in texts)
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("str", "re.search", "re.match")


class Cases:
    """A pytest plugin that runs cases named in `wanted`, or only lists them, and writes lines of JSON to `notes`."""

    def __init__(self, notes: Path, wanted: Sequence[str] | None, topology: str, timeout: float) -> None:
        self._notes = notes.open("a", encoding="utf-8", buffering=1)
        self._wanted, self._topology, self._timeout = wanted, topology, timeout
        self._found: dict[str, Any] | None = None

    def write(self, **line: object) -> None:
        """Write a line."""
        self._notes.write(f"{json.dumps(line)}\n")

    @pytest.fixture
    def device(self) -> str:
        """Give the device of tensors, to a suite whose own `device` was not taken along."""
        return "cpu"

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Iterator[None]:
        """Note a file that cannot be imported, with the error's last line."""
        report: Any = yield
        if report.failed:
            text = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
            self.write(file=Path(report.nodeid).name, error=text[-1] if text else str(report.longrepr)[-200:])
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the cases that are wanted, or none where they are to be listed."""
        named = {_name(item): item for item in items if item.get_closest_marker("interpreter") is not None}
        if self._wanted is None:
            for name in named:
                self.write(case=name)
        items[:] = [named[name] for name in self._wanted or () if name in named]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run a case on a machine of its own, within its time."""
        name, began = _name(item), time.process_time()
        self._found = None
        self.write(begun=name)
        self._limit(self._timeout)
        run = TritonRun(self._topology, {})
        simulation.leave()
        simulation.enter(run)
        result: Any = yield
        found = self._found or confirmed(run)
        if self._found is not None:
            run.__exit__(None, AssertionError(), None)  # which gives it up
        self._limit(None)
        self.write(**found, seconds=round(time.process_time() - began, 2))
        return result

    def _limit(self, seconds: float | None) -> None:
        """Have the process end where it takes more than these seconds of the processor from now on."""
        used = int(time.process_time())
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (most if seconds is None else used + int(seconds) + 1, most))
        signal.setitimer(signal.ITIMER_REAL, 0 if seconds is None else _WALL * seconds)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Keep the first phase of a case that did not pass."""
        report: Any = yield
        if self._found is None and not report.passed:
            assert call.excinfo is not None
            error = call.excinfo.value
            outcome, line, where = classified(error) if report.failed else (SKIPPED, _beginning(str(error)), "")
            self._found = {"outcome": outcome, "line": line, "where": where}
        return report


def confirmed(run: TritonRun) -> dict[str, Any]:
    """End the run of a case that passed, and return what came of the case then."""
    try:
        run.__exit__(None, None, None)
    except Exception as error:
        outcome, line, where = classified(error)
        return {"outcome": outcome, "line": line, "where": where}
    right = run.result is None or run.result.right
    return {"outcome": PASSED if right else UNCONFIRMED, "line": "", "where": ""}


def _name(item: pytest.Item) -> str:
    return f"{item.path.name}::{item.name}"


def main(work: dict[str, Any], notes: Path) -> int:
    """Run or list cases as `work` says; return pytest's exit code."""
    memory = int(parse_quantity(work["memory"], "size"))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for each in (signal.SIGXCPU, signal.SIGALRM):
        signal.signal(each, signal.SIG_DFL)
    plugin = Cases(notes, work["cases"], work["topology"], work["timeout"])
    session = TritonRun(work["topology"], {})
    with session:
        sys.modules["triton._internal_testing"] = internal = ModuleType("triton._internal_testing")
        vars(internal).update(NAMES)
        try:
            return int(pytest.main([*work["arguments"], *work["files"]], plugins=[plugin]))
        finally:
            simulation.leave()
            simulation.enter(session)


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])))
