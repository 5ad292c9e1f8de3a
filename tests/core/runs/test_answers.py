"""What a part of a run gives that nothing can be made of is told of, with whose it is."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins
from tests.core.offered import MACHINES, SAVED

PART = """
from typing import Annotated
import attrs
from kernbench_core.plugins import RunPartEntry
from kernbench_core.runs import Option, OptionRecord, RunPart
kernbench_api = 1
def kernbench_run_parts():
    return [RunPartEntry("odd", f"{__name__}:Odd", "A part.")]
@attrs.frozen(kw_only=True)
class OddOptions(OptionRecord):
    odd: Annotated[bool, Option("Be there.")] = False
class Answer:
    def to_json(self):
        return {"volts": 1.5}
class Odd(RunPart):
    NAME, OPTIONS = "odd", OddOptions
    def conclude(self, answer, result):
        return Answer()
"""


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, *more: str) -> list[str]:
    """Run the toy with a part that this text makes odd; return the lines of its error, which ends it with 6."""
    file = tmp_path / f"odd_{name}.py"  # a module for each case
    file.write_text(PART + text)
    plugins = load_plugins(["toy = toy_plugin", MACHINES, SAVED, str(file)], installed=False)
    assert main(["run", "toy", "--topology", "one", "--odd", *more], plugins) == 6
    lines = capsys.readouterr().err.replace(str(tmp_path), "").splitlines()
    return [line for line in lines if line != "the kernel says hello"]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("set", "{1}", "TypeError: Object of type set is not JSON serializable"),
        ("nan", "float('nan')", "ValueError: Out of range float values are not JSON compliant: nan"),
        ("inf", "float('inf')", "ValueError: Out of range float values are not JSON compliant: inf"),
    ],
)
@pytest.mark.parametrize("where", ["--json", "--out=saved"])
def test_an_answer_that_is_no_json_is_told(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    where: str, name: str, value: str, why: str,
) -> None:  # fmt: skip
    """With the part, the class and what it gave; a run that has no JSON is made."""
    monkeypatch.chdir(tmp_path)
    name = f"{name}_{where[2:5]}"
    lines = told(tmp_path, capsys, name, f"Answer.to_json = lambda self: {value}\n", where)
    must = "error: part of runs 'odd' must answer plain JSON types, without NaN and inf, but"
    assert lines == [f"{must} odd_{name}.Answer.to_json raised {why}; correct it."]
    assert not (tmp_path / "saved").exists()
    plugins = load_plugins(["toy = toy_plugin", MACHINES, SAVED, str(tmp_path / f"odd_{name}.py")], installed=False)
    assert main(["run", "toy", "--topology", "one", "--odd"], plugins) == 0


def test_an_answer_whose_json_raises_is_told(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its words."""
    lines = told(tmp_path, capsys, "raising", "Answer.to_json = lambda self: self.volts\n", "--json")
    must = "error: part of runs 'odd' must answer plain JSON types, without NaN and inf, but"
    why = "odd_raising.Answer.to_json raised AttributeError: 'Answer' object has no attribute 'volts'; correct it."
    assert lines == [f"{must} {why}"]


def test_a_part_around_a_run_must_return_its_result(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else nothing of the run would be there."""
    of = "of file /odd_lost.py"
    lines = told(tmp_path, capsys, "lost", "Odd.around = lambda self, make: print(make())\n")
    assert lines == [
        f"error: part of runs 'odd' {of} must return what make() does from around, not None; repair or "
        "reinstall file /odd_lost.py."
    ]


def test_an_observer_that_is_none_is_told(toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is built."""
    assert told(tmp_path, capsys, "seer", "Odd.observer = lambda self: 3\n") == [
        "error: part of runs 'odd' of file /odd_seer.py must give a RunObserver as its observer, not 3; "
        "repair or reinstall file /odd_seer.py."
    ]
