"""A plug-in may be a file that is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernbench_core.errors import PluginError, UsageError
from kernbench_core.plugins import load_plugins
from tests.core.plugin_site import Site

SOURCE = """
import helper_of_mine
from kernbench_core import BenchEntry
def bench(rt):
    '''Do {what}.'''
def kernbench_benches():
    return [BenchEntry("mine", f"{{__name__}}:bench")]
"""
NAMED = (
    "plug-in file must be a .py file whose name, the vendor, is of lower-case letters, digits and '_', not {!r}; "
    "rename it."
)


@pytest.fixture
def file(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a plug-in file beside a module of its own, in a folder that nothing is imported from."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "helper_of_mine.py").write_text("")
    path = folder / "my_models.py"
    path.write_text("kernbench_api = 1" + SOURCE.format(what="this"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    return path


def test_it_is_loaded_under_its_name(file: Path) -> None:
    """Its targets are found in it, and its vendor is its name."""
    plugins = load_plugins(["./my_models.py"], installed=False)
    assert plugins.benches.load("mine").__doc__ == "Do this."
    provider = plugins.benches.provider("mine")
    assert (provider.plugin, str(provider)) == ("my_models", "file ./my_models.py")


def test_it_is_loaded_again_when_its_text_has_changed_only(file: Path) -> None:
    """However soon: whoever edits it sees what it says now, and who does not keeps its classes."""
    first = load_plugins([str(file)], installed=False).benches.load("mine")
    assert load_plugins([str(file)], installed=False).benches.load("mine") is first
    file.write_text(file.read_text().replace("this", "that"))
    assert load_plugins([str(file)], installed=False).benches.load("mine").__doc__ == "Do that."


def test_its_annotations_are_what_the_file_makes_them(file: Path) -> None:
    """They are texts only where the file says so: what reads them, as of options, finds what is written."""
    file.write_text(file.read_text().replace("def bench(rt)", "def bench(rt, n: int = 1)"))
    found = load_plugins([str(file)], installed=False).benches.load("mine")
    assert found.__annotations__ == {"n": int}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("My-Models.py", "", NAMED.format("My-Models.py")),
        ("models.txt.py", "", NAMED.format("models.txt.py")),
        ("gone.py", None, "plug-in file must exist, and 'gone.py' does not."),
    ],
)  # fmt: skip
def test_what_is_no_plugin_file_is_refused(file: Path, name: str, text: str | None, told: str) -> None:
    """Before anything is loaded."""
    if text is not None:
        Path(name).write_text(text)
    with pytest.raises(UsageError) as caught:
        load_plugins([name], installed=False)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("json.py", "", "plug-in 'json' (file json.py) is left out: plug-in file '{folder}/json.py' must not have the "
         "name of another module, 'json'; rename it."),
        ("bad.py", "kernbench_api = 1\n1/0", "plug-in 'bad' (file bad.py) is left out: ZeroDivisionError: division by "
         "zero (bad.py:2)."),
        ("old.py", "", "plug-in 'old' (file old.py) is left out: kernbench_api of module 'old', the version of the "
         "hooks that it is written for, must be 1, and is missing; write 'kernbench_api = 1' into it."),
        ("one.py", "kernbench_api = 1\nfrom kernbench_core import ComponentEntry\ndef kernbench_components():\n"
         "    return [ComponentEntry('two.sfu', 'one:Sfu', 'pe_math', 'A unit.')]\n",
         "component 'two.sfu' is left out: plug-in 'one' (file one.py) must name its components 'one.<thing>', not "
         "'two.sfu'; rename the component or the entry point."),
    ],
)  # fmt: skip
def test_one_that_is_named_and_fails_is_an_error(file: Path, name: str, text: str, told: str) -> None:
    """Who names a file wants it: a run without would be that of another machine."""
    Path(name).write_text(text)
    with pytest.raises(PluginError) as caught:
        load_plugins([name], installed=False)
    assert str(caught.value) == told.format(folder=file.parent)
    assert name == "json.py" or Path(name).stem not in sys.modules or name in ("old.py", "one.py")
