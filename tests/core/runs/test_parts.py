"""Parts of runs: what they are asked for, what they answer, and what surrounds what."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernbench_core.cli import main
from kernbench_core.errors import KernbenchWarning, PluginError, UsageError
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.result import RunResult
from tests.core.offered import MACHINES, SAVED

MORE = '''
from typing import Annotated
import attrs
from kernbench_core.plugins import RunPartEntry
from kernbench_core.runs.options import Option, OptionRecord
from kernbench_core.runs.parts import RunPart
kernbench_api = 1
calls = []
def kernbench_run_parts():
    return [RunPartEntry(name, f"{__name__}:{name.title()}", "A part.") for name in ("inner", "outer", "helper")]
@attrs.frozen(kw_only=True)
class InnerOptions(OptionRecord):
    inner: Annotated[bool, Option("Be there.")] = False
@attrs.frozen(kw_only=True)
class OuterOptions(OptionRecord):
    outer: Annotated[bool, Option("Be there.")] = False
    outer_pj: Annotated[float, Option("Energy of a bit.")] = 4.0
class Around(RunPart):
    def around(self, make):
        calls.append(f"{self.NAME} begins")
        made = make()
        calls.append(f"{self.NAME} ends")
        return made
    def end(self, result, answers):
        calls.append(f"{self.NAME} has {sorted(answers)}")
class Inner(Around):
    NAME, OPTIONS, NEEDS = "inner", InnerOptions, ("helper", "not_there")
class Outer(Around):
    NAME, OPTIONS, ORDER = "outer", OuterOptions, 100
class Helper(RunPart):
    NAME, KEPT = "helper", False
    def answer(self, session):
        return "helped"
'''


@pytest.fixture
def more(toy: ModuleType, tmp_path: Path) -> Any:
    """Give plug-ins of the toy and of three more parts, and what these were called for."""
    file = tmp_path / f"more_{tmp_path.name}.py"  # a process loads a file of one name once
    file.write_text(MORE)
    found = load_plugins(["toy = toy_plugin", MACHINES, str(file)], installed=False)
    return found, found.run_parts.load("inner").around.__globals__["calls"]


def test_an_answer_is_an_attribute_of_the_result_and_in_its_json(toy: ModuleType, tmp_path: Path) -> None:
    """By its name, and by its class; None where it was not asked for, and no key of JSON."""
    result = run("toy", "one", note=tmp_path / "n.txt", words="ill", plugins=toy.plugins)
    assert result.note.words == "ill: 1"
    assert result.part(type(result.note)) is result.note is result.parts["note"]
    assert result.to_json()["note"] == {"words": "ill: 1"}
    without = run("toy", "one", plugins=toy.plugins)
    assert without.note is None and "note" not in without.to_json()
    assert without.part(type(result.note)) is None
    with pytest.raises(AttributeError, match=r"^a run has no 'hops'; its \.timing\.hops has it$"):
        _ = without.hops
    with pytest.raises(AttributeError, match=r"^a run has no 'nots'; its parts are note$"):
        _ = without.nots
    assert pickle.loads(pickle.dumps(without.parts)) == {"note": None}
    with pytest.raises(AttributeError, match=r"^parts$"):  # and no recursion
        _ = RunResult.__new__(RunResult).note


def test_the_command_line_has_the_options_of_parts(
    toy: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one answers is printed below the result; a mistake is told as of any option."""
    monkeypatch.chdir(tmp_path)
    assert main(["run", "toy", "--topology", "one", "--note", "n.txt", "--words", "fine"], toy.plugins) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "fine: 1"
    assert Path("n.txt").read_text() == "fine: 1"
    assert main(["run", "toy", "--topology", "one", "--words", "fine"], toy.plugins) == 2
    assert capsys.readouterr().err == "error: --words must come with --note.\n"
    assert main(["run", "toy", "--topology", "one", "--json", "--note", "n.txt"], toy.plugins) == 0
    assert json.loads(capsys.readouterr().out)["note"] == {"words": "well: 1"}
    assert main(["run", "--help"], toy.plugins) == 0
    assert "Write a line on the run." in capsys.readouterr().out


def test_parts_stand_around_each_other_and_get_what_they_need(more: Any) -> None:
    """The one of the highest order is outermost; what is needed and not there is left out."""
    plugins, calls = more
    result = run("toy", "one", inner=True, outer=True, plugins=plugins)
    assert calls == [
        "outer begins", "inner begins", "inner has ['helper', 'inner', 'outer']",
        "outer has ['helper', 'inner', 'outer']", "inner ends", "outer ends",
    ]  # fmt: skip
    assert set(result.parts) == {"inner", "outer", "note"}
    calls.clear()
    run("toy", "one", plugins=plugins)
    assert calls == []


def test_a_part_that_cannot_be_used_is_left_out_and_told_of(toy: ModuleType, tmp_path: Path) -> None:
    """Runs that do not ask for it are made; with strict plug-ins none is."""
    (tmp_path / "lost_parts.py").write_text(
        "from kernbench_core.plugins import RunPartEntry\nkernbench_api = 1\n"
        'def kernbench_run_parts():\n    return [RunPartEntry("lost", "builtins:print", "Lost.")]\n'
    )
    given = ["toy = toy_plugin", MACHINES, str(tmp_path / "lost_parts.py")]
    with pytest.warns(KernbenchWarning, match=r"must be a RunPart class whose NAME is 'lost', not <built-in function"):
        assert run("toy", "one", plugins=load_plugins(given, installed=False)).total_ns
    with pytest.raises(PluginError, match=r"part of runs 'lost' of .* must be a RunPart class"):
        run("toy", "one", plugins=load_plugins(given, installed=False, strict=True))


FAULTY = '''
from typing import Annotated
import attrs
from kernbench_core.plugins import RunPartEntry
from kernbench_core.runs.options import Option, OptionRecord
from kernbench_core.runs.parts import RunPart
kernbench_api = 1
def kernbench_run_parts():
    return [RunPartEntry("faulty", f"{__name__}:Faulty", "A part.")]
@attrs.frozen(kw_only=True)
class FaultyOptions(OptionRecord):
    faulty: Annotated[bool, Option("Be there.")] = False
def fail(*given, **more):
    raise KeyError("volts")
class Faulty(RunPart):
    NAME, OPTIONS = "faulty", FaultyOptions
    def answer(self, session):
        return "an answer"
'''


@pytest.mark.parametrize(
    "method", ["wanted", "check", "__init__", "begin", "observer", "answer", "show", "save", "end"]
)
def test_what_a_part_raises_is_its_plugin_s_fault(
    toy: ModuleType, method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence that names part and distribution, with the part's own line, and exit code 6; no traceback of ours."""
    written = FAULTY + f"Faulty.{method} = {'classmethod(fail)' if method in ('wanted', 'check', 'show') else 'fail'}\n"
    file = tmp_path / f"faulty_{method.strip('_')}.py"  # a module for each case
    file.write_text(written)
    monkeypatch.chdir(tmp_path)
    plugins = load_plugins(["toy = toy_plugin", MACHINES, SAVED, str(file)], installed=False)
    assert main(["run", "toy", "--topology", "one", "--faulty", "--out", "saved"], plugins) == 6
    told = capsys.readouterr().err
    assert "part of runs 'faulty' of " in told and file.name in told and "raised KeyError: 'volts'" in told
    assert 'raise KeyError("volts")' in told and "Traceback" not in told


DEFERRED = """
from __future__ import annotations
from typing import TYPE_CHECKING, Annotated
import attrs
from kernbench_core.plugins import RunPartEntry
from kernbench_core.runs.options import Option, OptionRecord
from kernbench_core.runs.parts import RunPart
if TYPE_CHECKING:
    from pathlib import Path
kernbench_api = 1
def kernbench_run_parts():
    return [RunPartEntry("loud", f"{__name__}:Loud", "A part.")]
@attrs.frozen(kw_only=True)
class LoudOptions(OptionRecord):
    loud: Annotated[KIND, Option("Be loud.")] = False
    unused: Path | None = None
class Loud(RunPart):
    NAME, OPTIONS = "loud", LoudOptions
    def answer(self, session):
        return "LOUD"
    @classmethod
    def show(cls, answer, console, *, verbose=False):
        console.print(answer)
"""


def test_a_part_may_defer_its_annotations(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its options are there all the same; one that cannot be read is told of, and no silence."""
    for name, kind in (("deferring", "bool"), ("lacking", "Path")):
        (tmp_path / f"{name}.py").write_text(DEFERRED.replace("KIND", kind))
    right, wrong = (
        load_plugins(["toy = toy_plugin", MACHINES, str(tmp_path / f"{name}.py")], installed=False)
        for name in ("deferring", "lacking")
    )
    assert main(["run", "toy", "--topology", "one", "--loud"], right) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "LOUD"
    assert main(["run", "toy", "--topology", "one"], wrong) == 0
    told = capsys.readouterr().err
    assert "part of runs 'loud' of" in told and "name 'Path' is not defined" in told


def test_an_option_whose_default_is_a_number_takes_numbers(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the command line and in Python; else both refuse it."""
    (tmp_path / "numeric.py").write_text(
        DEFERRED.replace("KIND", "bool")
        .replace("unused: Path | None = None", 'volts: Annotated[float, Option("V.")] = 1.5\n'
                 '    times: Annotated[int, Option("How often.")] = 2')
        .replace('"LOUD"', "f'{self.options.volts * 2} {self.options.times * 2}'")
    )  # fmt: skip
    plugins = load_plugins(["toy = toy_plugin", MACHINES, str(tmp_path / "numeric.py")], installed=False)
    asked = ["run", "toy", "--topology", "one", "--loud"]
    assert main([*asked, "--volts", "3", "--times", "-4"], plugins) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "6.0 -8"
    assert main(asked, plugins) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3.0 4"
    refused = (("volts", "x", "a number"), ("volts", "inf", "a number"), ("times", "1.5", "an integer"))
    for option, given, kind in refused:
        assert main([*asked, f"--{option}", given], plugins) == 2
        assert capsys.readouterr().err == f"error: option --{option} must be {kind}, not {given!r}.\n"
    for option, kind in (("volts", "a number"), ("times", "an integer")):
        with pytest.raises(UsageError, match=rf"^{option} must be {kind}, not '3'\.$"):
            run("toy", "one", loud=True, plugins=plugins, **{option: "3"})


def test_parts_of_one_name_are_left_out_without_a_word_on_what_they_are(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence says that two plug-ins have it, and runs are made."""
    for name in ("hers", "his"):
        (tmp_path / f"{name}.py").write_text(DEFERRED.replace("KIND", "bool"))
    given = ["toy = toy_plugin", MACHINES, *(str(tmp_path / f"{name}.py") for name in ("hers", "his"))]
    plugins = load_plugins(given, installed=False)
    assert main(["run", "toy", "--topology", "one", "-q"], plugins) == 0
    told = capsys.readouterr().err
    assert told.count("warning: ") == 1
    assert "part of runs 'loud' is left out: it must be registered once" in told


def test_an_option_of_a_part_that_is_not_there_is_refused(more: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It would say nothing, and nobody would know."""
    plugins, calls = more
    assert main(["run", "toy", "--topology", "one", "--outer-pj", "9"], plugins) == 2
    told = "--outer-pj must be given with --outer, not alone; add that, or leave it out."
    assert (capsys.readouterr().err, calls) == (f"error: {told}\n", [])
    for given in ({"outer": True, "outer_pj": 9.0}, {"outer_pj": 4.0}):
        run("toy", "one", plugins=plugins, **given)
