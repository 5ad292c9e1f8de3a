"""What parts of runs must not be called: names that every run has, or another part."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from kernbench_core.cli import main
from kernbench_core.errors import KernbenchWarning
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.part_names import taken_name
from kernbench_core.runs.parts import RunPart, parts_of
from tests.core.offered import MACHINES

PART = """
from typing import Annotated
import attrs
from kernbench_core.plugins import RunPartEntry
from kernbench_core.runs import Option, OptionRecord, RunPart
kernbench_api = 1
def kernbench_run_parts():
    return [RunPartEntry("NAME", f"{__name__}:Part", "A part.")]
@attrs.frozen(kw_only=True)
class Options(OptionRecord):
    FIELD: Annotated[str, Option("An option."MORE)] = ""
class Part(RunPart):
    NAME, OPTIONS = "NAME", Options
"""


def with_part(tmp_path: Path, *files: tuple[str, str, str, str], strict: bool = False) -> Plugins:
    """Load the toy, and files that register a part each: the file, the part, a field and the rest of its Option."""
    for file, name, field, more in files:
        text = PART.replace('"NAME"', f'"{name}"').replace("FIELD", field).replace("MORE", more)
        (tmp_path / f"{file}.py").write_text(text)
    paths = [str(tmp_path / f"{file}.py") for file, *_ in files]
    return load_plugins(["toy = toy_plugin", MACHINES, *paths], installed=False, strict=strict)


@pytest.mark.parametrize(
    ("name", "field", "more", "what", "who"),
    [
        ("volts", "seed", "", "an option called 'seed'", "every run"),
        ("volts", "timeout", "", "an option called 'timeout'", "every run"),
        ("volts", "params", "", "an option called 'params'", "every run"),
        ("volts", "x", ", name='no-data'", "an option called 'no_data'", "every run"),
        ("total_ns", "volts", "", "a result called 'total_ns'", "every run"),
        ("schema", "volts", "", "a result called 'schema'", "every run"),
    ],
)
def test_a_part_with_a_name_that_is_taken_is_left_out(
    toy: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    field: str,
    more: str,
    what: str,
    who: str,
) -> None:
    """One line says so, and runs keep what they had; with strict plug-ins it is an error."""
    part = (f"taking_{name}_{field}", name, field, more)
    plugins = with_part(tmp_path, part)
    assert main(["run", "toy", "--topology", "one", "--seed", "5", "-q"], plugins) == 0
    file = f"file {tmp_path}/{part[0]}.py"
    told = f"part of runs {name!r} of {file} must not have {what}, which {who} has; repair or reinstall {file}.\n"
    assert capsys.readouterr().err == f"warning: {told}"
    assert main(["run", "toy", "--topology", "one"], with_part(tmp_path, part, strict=True)) == 6
    assert capsys.readouterr().err == f"error: {told}"


def test_of_two_parts_with_one_option_neither_is_there(toy: ModuleType, tmp_path: Path) -> None:
    """Else one would be given what was meant for the other, without a word; a line for each says whose it is, too."""
    plugins = with_part(tmp_path, ("one_of", "first", "pj", ""), ("another_of", "second", "pj", ""))
    with pytest.warns(KernbenchWarning) as told:
        assert {part.NAME for part in parts_of(plugins)} == {"note"}
    one, other = (f"file {tmp_path}/{file}.py" for file in ("one_of", "another_of"))
    must = "must not have an option called 'pj', which part of runs"
    assert [str(each.message) for each in told] == [
        f"part of runs 'first' of {one} {must} 'second' of {other} has; repair or reinstall {one}.",
        f"part of runs 'second' of {other} {must} 'first' of {one} has; repair or reinstall {other}.",
    ]


def test_no_key_of_a_result_is_free_for_a_part(toy: ModuleType) -> None:
    """All that the JSON of a run has is refused as the name of a part."""
    for key in run("toy", "one", plugins=toy.plugins).to_json():
        words = taken_name(type("Named", (RunPart,), {"NAME": key}), ())
        assert words == f"a result called {key!r}, which every run has"
