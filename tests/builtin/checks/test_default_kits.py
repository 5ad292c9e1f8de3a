"""Entries of sorts that core has no kit for: each is opened, and fits what will be asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_builtin.checks import Conformance
from kernbench_builtin.pages.plugin import EXPORTERS
from kernbench_builtin.pages.trace_file import open_trace
from kernbench_core.cli import main
from kernbench_core.errors import PluginError
from kernbench_core.plugins import load_plugins, own_plugins
from tests.core.plugin_site import Site

CHECKS = own_plugins("builtin.checks", "builtin.pages", "builtin.calibrate")
ENTRIES = {
    "benches": "BenchEntry('thing', '{}')",
    "topologies": "TopologyEntry('thing', '{}', 'X.')",
    "machines": "MachineEntry('thing', '{}', 'X.')",
    "exporters": "ExporterEntry('thing', '{}', ('.x',), 'X.')",
    "commands": "CommandEntry('thing', '{}', 'X.')",
    "calibrators": "CalibratorEntry('thing', '{}', 'X.')",
    "report_sections": "ReportSectionEntry('thing', '{}', 'X.')",
    "run_parts": "RunPartEntry('thing', '{}', 'X.')",
    "folders": "FolderEntry('thing', '{}', 'X.')",
    "pictures": "PictureEntry('thing', '{}', 'X.')",
    "language": "LanguageEntry('thing', '{}', 'X.')",
    "diagnoses": "DiagnosisEntry('thing', '{}', 'X.')",
}
THINGS = """
import click
import kernbench_core.plugins as kb
from attrs import evolve
from kernbench_builtin.pages.report import Section
from kernbench_core.runs.parts import RunPart
from kernbench_builtin.machines.mesh import MESH
from kernbench_core.cli.options import JSON, TOPOLOGY
def nothing(): pass
def bench(rt, n: int = 3): "Do nothing."
async def waiting(log, out): pass
def making(log, out): yield
@click.command()
async def waiter(): pass
@click.command()
@TOPOLOGY
@JSON
@click.pass_context
@click.pass_obj
def roof(shell, ctx, topology, as_json): pass
@click.command()
@JSON
@click.pass_obj
def misnamed(shell, json): pass
@click.command()
@JSON
def unshared(shell, as_json): pass
@click.command()
@JSON
@click.pass_obj
def whatever(*args, **options): pass
LATE = evolve(MESH, read=waiting)
def export(log, out): pass
def read(config): pass
WRONG_READ = evolve(MESH, read=read)
SECTION = Section("S", 1, lambda: "")
class Part(RunPart):
    NAME = "thing"
class FOLDER:
    NOUN = "a thing"
    is_one = read
    def read_page(plugins, folder, run_at): pass
    def write_page(shell, folder, path, points): pass
class NoForm:
    def __init__(self, plugins, options): pass
class Log(NoForm):
    FORM = "a line"
    @staticmethod
    def recognises(text): pass
    def read(self, name, text): pass
    def settings(self, rows): pass
    def unknowns(self, rows, machine): pass
    def slopes(self, rows, machine, values): pass
    def simulate(self, rows, machine): pass
class ShortRead(Log):
    def read(self, text): pass
class NoSlopes(Log):
    slopes = None
"""


def verdict(site: Site, sort: str, target: str) -> str:
    """Return how the check of one entry ended, and why."""
    target = target if ":" in target and "." in target else f"opening_things:{target}"
    hook = f"def kernbench_{sort}(): return [kb.{ENTRIES[sort].format(target)}]\n"
    site.module("opening_things", THINGS + hook)
    (found,) = Conformance.of("acme", load_plugins([*CHECKS, "acme = opening_things"], installed=False)).results()
    assert (found.sort, found.entry, found.check) == (sort, "thing", "opens")
    return f"{found.outcome} {found.reason}".strip()


@pytest.mark.parametrize("sort", ENTRIES)
def test_a_target_that_cannot_be_imported_fails(site: Site, sort: str) -> None:
    assert "ModuleNotFoundError: No module named 'no_such" in verdict(site, sort, "no_such.module:thing")


@pytest.mark.parametrize(
    ("sort", "target", "told"),
    [
        ("benches", "bench", "passed"),
        ("benches", "nothing", "failed it raised UsageError: bench 'thing' must take the runtime as its first "
         "parameter: def nothing(rt, …)"),
        ("exporters", "export", "passed"),
        ("exporters", "nothing", "failed its target must take 2 arguments, but () does not: too many positional "
         "arguments"),
        ("exporters", "waiting", "failed its target must be a function without async: it would never run"),
        ("exporters", "making", "failed its target must be a plain function, with neither yield nor async: it would "
         "never run"),
        ("machines", "LATE", "failed its read must be a function without async: it would never run"),
        ("commands", "waiter", "failed it must be a plain function, with neither yield nor async: it would never run"),
        ("commands", "roof", "passed"),
        ("commands", "whatever", "passed"),
        ("commands", "misnamed", "failed its function must take as_json, as its options are named, but (shell, json) "
         "does not: missing a required argument: 'json'"),
        ("commands", "unshared", "failed its function must take as_json, as its options are named, but (shell, "
         "as_json) does not: missing a required argument: 'shell'"),
        ("machines", "WRONG_READ", "failed its read must take 2 arguments, but (config) does not: too many positional "
         "arguments"),
        ("commands", "SECTION.title", "failed it must be a click command, not 'S'"),
        ("run_parts", "Log", "failed it raised PluginError: part of runs 'thing' of opening_things (source tree) must "
         "be a RunPart class whose NAME is 'thing', not <class 'opening_things.Log'>"),
        ("folders", "FOLDER", "passed"),
        ("folders", "LATE", "failed its is_one must be a function, not None"),
        ("pictures", "read", "passed"),
        ("language", "read", "passed"),
        ("diagnoses", "export", "passed"),
        ("diagnoses", "read", "failed its target must take 2 arguments, but (config) does not: too many positional "
         "arguments"),
        ("language", "nothing", "failed its target must be a function of tl, without async, not <function nothing at "),
        ("pictures", "export", "failed its target must take 1 argument, but (log, out) does not: missing a required "
         "argument: 'out'"),
        ("report_sections", "SECTION", "failed its html must take 1 argument, but () does not: too many positional "
         "arguments"),
        ("calibrators", "Log", "passed"),
        ("calibrators", "bench", "failed it must be a class, as Calibrator of kernbench_core.calibration, not "
         "<function bench at "),
        ("calibrators", "NoForm", "failed it must say as FORM, in words, what a log of it is, not None"),
        ("calibrators", "ShortRead", "failed its read must take 3 arguments, but (self, text) does not: too many "
         "positional arguments"),
        ("calibrators", "NoSlopes", "failed its slopes must be a function, not None"),
        ("topologies", "kernbench_core.topology:no.yaml", "failed it raised PluginError: topology preset 'thing' of "
         "opening_things (source tree) must have its file, and '"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(site: Site, sort: str, target: str, told: str) -> None:
    """By the number of arguments that it will be called with."""
    found = verdict(site, sort, target)
    assert found == told if told == "passed" else found.startswith(told)


def test_a_command_of_a_group_needs_the_group(site: Site) -> None:
    """One that others may register commands for, of core or of any plug-in."""
    hooks = """
def kernbench_commands():
    return [kb.CommandEntry(f'{group} roof', 'grouped:roof', 'X.') for group in ('plugins', 'run', 'nowhere')]
@click.command()
def roof(): pass
"""
    site.module("grouped", THINGS + hooks)
    results = Conformance.of("acme", load_plugins(["acme = grouped"], installed=False)).results()
    assert {found.entry: found.reason.partition(".")[0] for found in results} == {
        "nowhere roof": "it raised UnknownName: command must be a registered name, not 'nowhere'",
        "plugins roof": "",
        "run roof": "'run' must be a CommandGroup of kernbench_core",
    }


def test_a_preset_of_a_module_of_one_file_is_beside_it(site: Site) -> None:
    """As that of a package is in it."""
    beside = site.folder / "beside.yaml"
    beside.write_text("machine: {}")
    told = verdict(site, "topologies", "opening_things:beside.yaml")
    assert told.startswith(f"failed it raised ConfigError: {beside}:1:1: machine ")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("opening_things:gone.yaml", ", and '{folder}/gone.yaml' is not there"),
        ("sys:gone.yaml", " beside a module that can be imported, not at 'sys:gone.yaml', which raised "
         "AttributeError: module 'sys' has no attribute '__file__'"),
        ("no_such:gone.yaml", " beside a module that can be imported, not at 'no_such:gone.yaml', which raised "
         "ModuleNotFoundError: No module named 'no_such'"),
    ],
)  # fmt: skip
def test_a_preset_without_its_file_is_told_in_a_sentence(site: Site, target: str, told: str) -> None:
    """Without the frames of what was raised."""
    assert verdict(site, "topologies", target) == (
        "failed it raised PluginError: topology preset 'thing' of opening_things (source tree) must have its file"
        f"{told.format(folder=site.folder)}; repair or reinstall opening_things (source tree)."
    )


def test_what_would_never_run_is_refused_where_it_is_used(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Instead of a trace without a byte, or a command that does nothing, with a warning of Python's."""
    hooks = """
def kernbench_exporters(): return [kb.ExporterEntry('thing', 'never_running:waiting', ('.x',), 'X.')]
def kernbench_commands(): return [kb.CommandEntry('later', 'never_running:waiter', 'X.')]
"""
    site.module("never_running", THINGS + hooks)
    plugins = load_plugins([*CHECKS, "acme = never_running"], installed=False)
    told = (
        "of never_running (source tree) must be a plain function, with neither yield nor async: it would never run; "
        "repair or reinstall never_running (source tree)."
    )
    with pytest.raises(PluginError) as caught:
        open_trace(tmp_path / "a.x", plugins.of(EXPORTERS))
    assert str(caught.value) == f"exporter 'thing' {told}"
    assert main(["later"], plugins) == 6
    assert capsys.readouterr().err == f"error: command 'later' {told}\n"


def test_a_plugin_whose_targets_are_all_gone_is_no_good(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """It must not pass because core has no kit for any of them."""
    hooks = "".join(
        f"def kernbench_{sort}(): return [kb.{entry.format('gone.away:x')}]\n" for sort, entry in ENTRIES.items()
    )
    site.module("all_gone", f"import kernbench_core.plugins as kb\n{hooks}")
    assert main(["plugins", "check", "acme"], load_plugins([*CHECKS, "acme = all_gone"], installed=False)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "12 of 12 checks did not end as they must."


@pytest.mark.parametrize("suffix", [".log.gz", ".gz", "log", ".", "./log", ""])
def test_a_suffix_that_no_trace_can_have_fails(site: Site, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The entry is left out when it is loaded, with the same sentence, and --trace knows the others alone."""
    hook = f"def kernbench_exporters(): return [kb.ExporterEntry('thing', 'x:y', ({suffix!r},), 'X.')]\n"
    site.module("opening_suffix", f"import kernbench_core.plugins as kb\n{hook}")
    plugins = load_plugins([*CHECKS, "acme = opening_suffix"], installed=False)
    (failure,) = plugins.failures
    assert failure.reason == (
        "plug-in 'acme' (opening_suffix (source tree)) must give exporter 'thing' suffixes like '.vcd', none that ends "
        f"in .gz, which compresses what any exporter writes, not ({suffix!r},)"
    )
    assert "thing" not in plugins.of(EXPORTERS)
    (found,) = Conformance.of("acme", plugins).results()
    assert (found.sort, found.entry, found.outcome.value, found.reason) == (
        "exporters", "thing", "failed", failure.reason,
    )  # fmt: skip
    assert main(["plugins", "check", "acme"], plugins) == 1
    assert "1 of 1 checks did not end as they must." in capsys.readouterr().out
