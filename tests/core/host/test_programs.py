"""What a file may hold beside a bench: a kernel of core's, and a kind of program that somebody else brings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import KernbenchWarning, PluginError, UsageError
from kernbench_core.host.programs import ProgramKind, open_program, program_bench
from kernbench_core.plugins import Plugins, load_plugins
from tests.core.offered import MACHINES
from tests.core.working_machine import MACHINE

WORDS: list[str] = []


class Doubled(ProgramKind):
    """Functions of a number whose module says `doubled`: each program gives twice as much to its element."""

    @contextmanager
    def _noted(self, file: str) -> Iterator[None]:
        WORDS.append(f"begin {file}")
        yield
        WORDS.append("end")

    def loading(self, sources: Any) -> Any:
        return self._noted(sources.given.name)

    def is_one(self, function: Callable[..., Any]) -> bool:
        if function.__name__ == "odd":
            raise RuntimeError("no idea")
        return hasattr(function, "doubled")

    def open(self, name: str, function: Any, sources: Any) -> Any:
        def program(grid: Any, run_trial: Any) -> Callable[..., None]:
            def launch(rt: Any, /, **given: object) -> None:
                def kernel(x: Any, tl: Any) -> None:
                    at = x + tl.program_id(0)
                    tl.store(at, tl.load(at) * 2)

                rt.launch(kernel, rt.tensor(given["x"], name="x"), grid=grid.of(given))

            return launch

        if function.__name__ == "wrong":
            return "a bench"
        return program_bench(name, function, sources, program, needs_grid=True)


DOUBLED = Doubled()
OTHER = object()
FILE = """
def doubled(function):
    function.doubled = True
    return function

@doubled
def twice(x):
    '''Double each element.'''

@doubled
def wrong(x):
    '''Be opened as what is no bench.'''

def odd(x):
    '''Have a kind raise.'''

def plain(x, n: int = 4, *, tl):
    '''Run alone.'''

def bench(rt, n: int = 3):
    '''Be a bench.'''
"""


def plugins_with(monkeypatch: pytest.MonkeyPatch, *targets: str, strict: bool = False) -> Plugins:
    module = ModuleType("programs_of_a_test")
    found = [kb.ProgramEntry(f"p{at}", f"{__name__}:{target}", "A kind.") for at, target in enumerate(targets)]
    vars(module).update(kernbench_programs=lambda: found, kernbench_api=1)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    own = "test = tests.core.working_machine"
    return load_plugins([f"acme = {module.__name__}", own, MACHINES], installed=False, strict=strict)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_a_file_holds_what_the_kinds_say(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of a plug-in's kind, a kernel, a bench; the file is executed inside what the kind enters."""
    plugins = plugins_with(monkeypatch, "DOUBLED")
    WORDS.clear()
    found = [open_program(f"{file}{name}", plugins) for name in (":twice", ":plain", "")]
    assert [each.noun for each in found] == ["kernel", "kernel", "bench"]
    assert [[param.name for param in each.params] for each in found] == [["x"], ["x", "n"], ["n"]]
    assert [each.sentence for each in found] == ["Double each element.", "Run alone.", "Be a bench."]
    assert WORDS == ["begin mine.py", "end"] * 3


def test_one_runs_from_a_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its grid; without one it is refused where it says that it needs one."""
    plugins = plugins_with(monkeypatch, "DOUBLED")
    x = np.arange(4, dtype="f4")
    ran = kb.run(f"{file}:twice", MACHINE, {"x": x}, grid="3", outputs=True, plugins=plugins)
    assert ran.outputs["x"].tolist() == [0, 2, 4, 3]
    with pytest.raises(UsageError) as caught:
        kb.run(f"{file}:twice", MACHINE, {"x": x}, plugins=plugins)
    assert str(caught.value) == (
        "kernel 'mine:twice' must have a grid; add --grid X, --grid X,Y or --grid X,Y,Z."
    )


def test_a_kind_that_is_none_is_left_out(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a warning, and what is no program of another kind is a bench; an error where plug-ins are strict."""
    must = f"kind of program 'p0' of programs_of_a_test (source tree) must be a ProgramKind, not {OTHER!r}; "
    with pytest.warns(KernbenchWarning) as told:
        assert open_program(file, plugins_with(monkeypatch, "OTHER")).name == "mine"
    assert [str(each.message) for each in told] == [f"{must}repair or reinstall programs_of_a_test (source tree)."]
    with pytest.raises(PluginError, match="must be a ProgramKind"):
        open_program(file, plugins_with(monkeypatch, "OTHER", strict=True))


@pytest.mark.parametrize(
    ("name", "told"),
    [("odd", "raised RuntimeError: no idea; "), ("wrong", "must open a Bench with a program, not 'a bench'; ")],
)
def test_faults_of_a_kind_name_it(file: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str) -> None:
    """What it raises, and what it gives that is no bench."""
    with pytest.raises(PluginError) as caught:
        open_program(f"{file}:{name}", plugins_with(monkeypatch, "DOUBLED"))
    assert str(caught.value).startswith(f"kind of program 'p0' of programs_of_a_test (source tree) {told}")
