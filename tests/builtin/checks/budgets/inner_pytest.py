"""A pytest inside the tests, in this process or in others, with the plug-in that everybody's pytest loads."""

from __future__ import annotations

import textwrap
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs
import pytest

from kernbench_core import run
from kernbench_core.runs.result import RunResult
from tests.builtin.working_machine import on_machine

REPO = Path(__file__).parents[4]
PLUGIN = "kernbench_builtin.checks.budgets.plugin"
#: Where this tree was installed before it had the entry point, the plug-in is named.
NAMED = () if entry_points(group="pytest11", name="kernbench") else ("-p", PLUGIN)


@attrs.frozen
class Inner:
    """Writes tests, and runs them."""

    pytester: pytest.Pytester

    @property
    def folder(self) -> Path:
        """The folder of the tests."""
        return self.pytester.path

    def write(self, *parts: str, name: str = "test_k.py") -> Path:
        """Write a file of tests."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(map(textwrap.dedent, parts)), encoding="utf-8")
        return file

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in this process, whose own pytest may have left asserts as they are."""
        late = ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")
        return self.pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", *NAMED, *args, *late)

    def run_apart(self, *args: str, **environment: str) -> pytest.RunResult:
        """Run pytest in a process of its own, whose environment has more."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"PYTHONPATH": str(REPO), **environment}.items():
                patch.setenv(name, value)
            return self.pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *NAMED, *args)


def copy(x: Any, y: Any, n: int, tl: Any) -> None:
    """Copy some numbers."""
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at))


def bench(rt: Any, n: int = 8, times: int = 1) -> None:
    """Copy some numbers, several times."""
    x, y = rt.zeros((n,), "f32"), rt.empty((n,), "f32")
    for _ in range(times):
        rt.launch(copy, x, y, n, grid=(1,))


def ran(**options: Any) -> RunResult:
    """Run the bench on the machine of toys."""
    return run(bench, **on_machine(**options))
