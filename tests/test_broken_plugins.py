"""Plug-ins that are broken in every way: a line each, runs go on, and who names something of theirs is told why."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, distribution, distributions
from pathlib import Path

import pytest
from markupsafe import escape

from kernbench_core import ComponentEntry
from kernbench_core.cli import main
from kernbench_core.errors import PluginError
from kernbench_core.plugins import Provider, load_plugins, own_plugins
from tests.core.plugin_site import Site

API = "kernbench_api = 1\n"
IMPORT = "from kernbench_core import ComponentEntry, OpEntry\n"
ENTRY = "ComponentEntry('broken.sfu', 'm:Sfu', 'pe_math', 'A unit.')"
HOOK = f"{API}{IMPORT}def kernbench_components():\n    return [{ENTRY}]\n"
MUST_BE = "a function without arguments that returns a list of OpEntry objects"
VERSION = "kernbench_api of module 'broken_plugin', the version of the hooks that it is written for, must be 1"
HOOKS = (
    "kernbench_components, kernbench_benches, kernbench_programs, kernbench_topologies, "
    "kernbench_memory_standards, kernbench_networks, kernbench_machines, kernbench_exporters, kernbench_ops, "
    "kernbench_language, kernbench_backends, kernbench_algorithms, kernbench_collectives, kernbench_commands, "
    "kernbench_calibrators, kernbench_report_sections, kernbench_run_parts, kernbench_folders, kernbench_pictures, "
    "kernbench_diagnoses, kernbench_kits, kernbench_points"
)
#: The text of a plug-in's module, and why it is left out.
FAULTS = {
    "an import that fails": (f"{HOOK}import no_such_module\n",
                             "ModuleNotFoundError: No module named 'no_such_module' (broken_plugin.py:5)"),
    "a declaration that is none": (
        f"{HOOK}from kernbench_core import Param\nParam('n', 'int', 0, 'Lanes.', minimum=1)\n",
        "ValueError: default of parameter 'n' must be an integer of at least 1, not 0 (broken_plugin.py:6)"),
    "no Python": (f"{HOOK}def (:\n", "SyntaxError: invalid syntax (broken_plugin.py, line 5)"),
    "an exit at import": (f"{HOOK}raise SystemExit('gone')\n", "SystemExit: gone (broken_plugin.py:5)"),
    "a wrong signature": (f"{HOOK}def kernbench_ops(plugins): return []\n",
                          f"kernbench_ops must be {MUST_BE}, not kernbench_ops(plugins)"),
    "a hook that is none": (f"{HOOK}kernbench_ops = []\n", f"kernbench_ops must be {MUST_BE}, not []"),
    "a misspelt hook": (f"{HOOK}def kernbench_op(): return []\n",
                        f"its hooks must be among {HOOKS}, not 'kernbench_op'; perhaps 'kernbench_ops' is meant"),
    "no version": (HOOK.removeprefix(API), f"{VERSION}, and is missing; write 'kernbench_api = 1' into it"),
    "a newer version": (HOOK.replace(API, "kernbench_api = 2\n"),
                        f"{VERSION}, which kernbench 0.1.0 has, not 2; use a newer kernbench"),
    "a hook that raises": (f"{HOOK}def kernbench_ops(): raise ValueError('no')\n",
                           "ValueError: no (broken_plugin.py:5)"),
    "a hook that exits": (f"{HOOK}import sys\ndef kernbench_ops(): sys.exit(0)\n",
                          "SystemExit: 0 (broken_plugin.py:6)"),
    "a hook that raises when it is asked": (
        f"{HOOK}def kernbench_ops():\n    yield OpEntry('silu', 'm:silu')\n    1 / 0\n",
        "ZeroDivisionError: division by zero (broken_plugin.py:7)"),
    "a hook that returns nothing": (f"{HOOK}def kernbench_ops(): pass\n",
                                    "kernbench_ops must return a list of OpEntry objects, not None"),
    "a hook that returns rubbish": (f"{HOOK}def kernbench_ops(): return [len]\n",
                                    "kernbench_ops must return OpEntry objects, not <built-in function len>"),
    "an entry of another sort": (
        f"{HOOK}def kernbench_ops(): return [ComponentEntry('broken.a', 'm:A', '', 'A.')]\n",
        "kernbench_ops must return OpEntry objects, not ComponentEntry(name='broken.a', target='m:A', kind='', "
        "sentence='A.')"),
    "an entry with a number": (f"{HOOK}def kernbench_ops(): return [OpEntry('silu', 5)]\n",
                               "target of op 'silu' must be a text, not 5"),
}  # fmt: skip


@pytest.fixture(params=FAULTS)
def broken(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Install kernbench's own plug-ins and one that is broken, nothing else; give why that one is left out."""
    text, reason = FAULTS[request.param]
    site = Site(tmp_path / "site")
    site.folder.mkdir()
    site.distribution("broken", "0.3", "broken", "")
    (site.folder / "broken_plugin.py").write_text(text)
    monkeypatch.syspath_prepend(site.folder)
    own = [
        EntryPoint(*text.split(" = "), "kernbench")._for(distribution("kernbench"))  # type: ignore[attr-defined]
        for text in own_plugins()
    ]
    theirs = [point for each in distributions(path=[str(site.folder)]) for point in each.entry_points]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [*own, *theirs])
    yield reason
    sys.modules.pop("broken_plugin", None)


def test_a_line_names_it_and_all_else_goes_on(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With its distribution and version; what is kernbench's own is there, and the list has the reason."""
    told = f"plug-in 'broken' (broken 0.3) is left out: {broken}"
    assert main(["plugins", "list", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == f"warning: {told}.\n"
    found = {each["name"]: each for each in json.loads(out)["plugins"]}
    assert (found["broken"]["state"], found["broken"]["reasons"]) == ("left out", [broken])
    assert found["builtin"]["state"] == "loaded" and found["builtin"]["reasons"] == []


def test_naming_something_of_it_fails_with_its_reason(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether or not it would have had a thing of that name."""
    plugins = load_plugins()
    for name in ("broken.sfu", "broken:sfu"):
        with pytest.raises(PluginError) as caught:
            plugins.components.load(name)
        assert str(caught.value) == (
            f"component {name!r} belongs to plug-in 'broken' (broken 0.3), which could not be loaded: {broken}"
        )
    assert main(["--strict-plugins", "list"]) == 6
    assert capsys.readouterr() == ("", f"error: plug-in 'broken' (broken 0.3) is left out: {broken}.\n")


@pytest.mark.parametrize("broken", ["an import that fails"], indirect=True)
def test_a_run_goes_on_unless_its_configuration_names_it(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same run, the same result; a bare name may be of the one that is left out."""
    run = ["run", "vector-add", "--topology", "tiny", "-p", "n=64", "-q"]
    warning = f"warning: plug-in 'broken' (broken 0.3) is left out: {broken}.\n"
    assert main(run) == 0
    assert capsys.readouterr().err == warning
    assert main([*run, "--set", "components.pe_math.impl=broken.sfu"]) == 3
    told = f"'broken.sfu' belongs to plug-in 'broken' (broken 0.3), which could not be loaded: {broken}"
    assert f"components.pe_math.impl must be usable, not 'broken.sfu': component {told}" in capsys.readouterr().err
    assert main(["run", "their-bench", "--topology", "tiny"]) == 2
    assert "It may belong to a plug-in that was left out: 'broken' (broken 0.3).\n" in capsys.readouterr().err
    assert main([*run, "--no-plugin", "broken"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("OpEntry('bend', 'nowhere')", "op 'bend' is left out: plug-in 'broken' (broken 0.3) must write the target of "
         "op 'bend' as 'module:attr', not 'nowhere'"),
        ("OpEntry('bend', 'm:a'), OpEntry('bend', 'm:b')", "op 'bend' is left out: it must be registered once, and "
         "broken 0.3 registers it twice; rename one of the two"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("broken", ["an import that fails"], indirect=True)
def test_an_entry_that_is_wrong_is_left_out_alone(
    broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: str, reason: str
) -> None:
    """All else of its plug-in is there; strictly, it is fatal too."""
    (tmp_path / "site" / "broken_plugin.py").write_text(f"{HOOK}def kernbench_ops(): return [{entry}]\n")
    plugins = load_plugins()
    assert [str(failure) for failure in plugins.failures] == [reason]
    assert plugins.components["broken.sfu"].target == "m:Sfu"
    with pytest.raises(PluginError) as caught:
        plugins.ops.load("bend")
    assert str(caught.value) == f"{reason}."
    assert main(["--strict-plugins", "list"]) == 6
    assert capsys.readouterr().err == f"error: {reason}.\n"


def test_an_entry_point_to_something_in_a_module_is_told_so() -> None:
    """Whether or not it is there: hooks are functions of a module."""
    (failure,) = load_plugins(["broken = broken_plugin:hooks"], installed=False).failures
    assert str(failure) == (
        "plug-in 'broken' (broken_plugin:hooks (source tree)) is left out: its entry point must name a module, not "
        "'broken_plugin:hooks'; write 'broken_plugin'"
    )


@pytest.mark.parametrize(
    ("vendor", "name", "letters"),
    [("two words", "two words.x", True), ("acme", "acme.ä", True), ("acme", "other.x", False)],
)
def test_a_name_with_other_letters_is_told_which_it_may_have(vendor: str, name: str, letters: bool) -> None:
    """A vendor that no name may begin with, too: what it must be is never what it is."""
    with pytest.raises(PluginError) as caught:
        ComponentEntry(name, "m:A", "", "A.").check(Provider(vendor, "made", "1.0"))
    may = ", in lower-case letters, digits, '-' and '_'" if letters else ""
    assert str(caught.value) == (
        f"plug-in {vendor!r} (made 1.0) must name its components '{vendor}.<thing>'{may}, not {name!r}; rename the "
        "component or the entry point."
    )


@pytest.mark.parametrize("broken", ["an import that fails"], indirect=True)
def test_a_section_of_the_report_that_breaks_ends_no_run(
    broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is written, with a line that names its distribution and version; strictly, the run fails without one."""
    hook = "def kernbench_report_sections(): return [Entry('theirs', 'no_such:S', 'Theirs.')]\n"
    text = f"{API}from kernbench_core import ReportSectionEntry as Entry\n{hook}"
    (tmp_path / "site" / "broken_plugin.py").write_text(text)
    page = tmp_path / "page.html"
    run = ["run", "vector-add", "--topology", "tiny", "-p", "n=64", "-q", "--report", str(page)]
    told = "section of the report 'theirs' of broken 0.3 must be importable from 'no_such:S', but that raised "
    assert main(["--strict-plugins", *run]) == 6
    assert f"error: {told}" in capsys.readouterr().err
    assert not page.exists()
    assert main(run) == 0
    assert f"warning: {told}" in capsys.readouterr().err
    assert f"This section cannot be shown: {escape(told)}" in page.read_text()
    assert page.read_text().count('<section id="') > 3
