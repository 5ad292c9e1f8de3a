"""What a plug-in registers is checked with the kits that there are, by a test of its own or from the command line."""

from __future__ import annotations

import json

import pytest

from kernbench_builtin.checks import Conformance, conform
from kernbench_core.cli import main
from kernbench_core.errors import PluginError, UsageError
from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from kernbench_core.testing import CheckOutcome
from tests.core.plugin_site import Site

CHECKS = own_plugins("builtin.checks", "builtin.pages", "builtin.calibrate")
PLUGIN = """
import numpy as np
from kernbench_core import KitEntry, NetworkEntry, OpEntry
from kernbench_core.compute.ops import Again, MathOp
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import floats
from kernbench_core.topology import NetworkShape, ScaleUpLink
CUBE = MathOp(
    "cube", lambda params, x: x**3, types=floats, shapes=elementwise, again=Again(lambda params, x: {again}),
)
LINE = NetworkShape(
    lambda extent: [ScaleUpLink(sip, "r", sip + 1, "l") for sip in range(extent.sips - 1)],
    lambda extent, here, there: here + (1 if there > here else -1),
)
def kernbench_ops():
    return [OpEntry("cube", f"{{__name__}}:CUBE"), OpEntry("gone", f"{{__name__}}:GONE")][: {ops}]
def kernbench_networks():
    return [NetworkEntry("acme.line", f"{{__name__}}:LINE", "A row.")]
{more}
"""


def loaded(site: Site, *, again: str = "x * x * x", ops: int = 1, more: str = "") -> Plugins:
    """Load a plug-in with an op and a network."""
    site.module("acme_conforming", PLUGIN.format(again=again, ops=ops, more=more))
    return load_plugins([*CHECKS, "acme = acme_conforming"], installed=False)


def test_one_that_keeps_its_word_conforms(site: Site) -> None:
    """Every check of every entry is tried, in the order of the kits."""
    plugins = loaded(site)
    conform("acme", plugins)
    conformance = Conformance.of("acme", plugins)
    verdicts = list(conformance.results())
    assert [(each.sort, each.entry, each.check) for each in verdicts] == list(conformance)
    assert {each.outcome for each in verdicts} == {CheckOutcome.PASSED, CheckOutcome.NOT_APPLICABLE}
    assert {each.entry for each in verdicts} == {"cube", "acme.line"}


def test_one_that_does_not_fails_with_a_line_for_each_check(site: Site) -> None:
    """That an entry cannot be opened is a failure too."""
    with pytest.raises(AssertionError) as caught:
        conform("acme", loaded(site, again="x * x", ops=2))
    first, second = str(caught.value).splitlines()
    assert first.startswith("cube agrees_with_its_second_way failed: of f8e4m3 it must give ")
    assert second.startswith("gone opens failed: it raised PluginError: op 'gone' of acme_conforming (source tree) ")


def test_what_is_said_to_fail_must_fail(site: Site) -> None:
    """Its reason is told; a check that passes all the same is wrong."""
    said = "kernbench_expected_failures = {'cube': {'agrees_with_its_second_way': 'too rough', 'opens': 'as a test'}}"
    verdicts = {
        each.check: (each.outcome, each.reason, each.outcome.right)
        for each in Conformance.of("acme", loaded(site, again="x * x", more=said)).results(["cube"])
    }
    assert verdicts["agrees_with_its_second_way"] == (CheckOutcome.EXPECTED, "too rough", True)
    assert verdicts["opens"] == (CheckOutcome.UNEXPECTED, "as a test", False)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("{'cube': {'is_round': 'no'}, 'ball': {'opens': 'no'}}",
         "kernbench_expected_failures of plug-in 'acme' must name checks of its entries, not 'is_round' of 'cube'.\n"
         "kernbench_expected_failures of plug-in 'acme' must name checks of its entries, not 'opens' of 'ball'."),
        ("['cube']", "kernbench_expected_failures of plug-in 'acme' must map names of entries to mappings from checks "
         "to reasons, not ['cube']."),
    ],
)  # fmt: skip
def test_what_is_said_of_nothing_is_refused(site: Site, said: str, told: str) -> None:
    """It would stand there for ever."""
    with pytest.raises(PluginError) as caught:
        Conformance.of("acme", loaded(site, more=f"kernbench_expected_failures = {said}"))
    assert str(caught.value) == told


def test_a_kit_of_a_plugin_is_used(site: Site) -> None:
    """For a sort that core has no kit for."""
    kit = """
from kernbench_core import ExporterEntry
from kernbench_core.testing import CheckFailed, kit_of
def has_a_suffix(entry):
    if len(entry.suffixes) > 1:
        raise CheckFailed(f"it must have one suffix, not {len(entry.suffixes)}")
EXPORTERS = kit_of(lambda plugins, name: plugins.registries["exporters"][name], has_a_suffix)
def kernbench_kits():
    return [KitEntry("exporters", f"{__name__}:EXPORTERS", "Formats of traces.")]
def kernbench_exporters():
    return [ExporterEntry("a", "m:f", (".a",), "A."), ExporterEntry("b", "m:f", (".b", ".c"), "B.")]
"""
    verdicts = list(Conformance.of("acme", loaded(site, more=kit)).results(["has_a_suffix"]))
    assert [str(each) for each in verdicts] == [
        "a has_a_suffix passed", "b has_a_suffix failed: it must have one suffix, not 2",
    ]  # fmt: skip


KITS = """
from kernbench_core.testing import kit_of
def drive(testbench): pass
def drive_more(testbench, other): pass
def drive_one_by_one(testbench): yield
LINES = kit_of(lambda plugins, name: name)
def kernbench_kits():
    return [KitEntry({!r}, {!r}, 'X.')]
"""


@pytest.mark.parametrize(
    ("name", "target", "told"),
    [
        ("exporters", "LINES", ""),
        ("components.pe_sfu", "drive", ""),
        ("exporters", "json:loads", "must be a Kit for a sort of entries, not <function loads at 0x"),
        ("exporters", "no_such.module:KIT", "must be importable from 'no_such.module:KIT', but that raised "
         "ModuleNotFoundError: No module named 'no_such'"),
        ("engines", "LINES", "must be named after a sort of entries, or begin with 'components.'"),
        ("networks.line", "drive", "must be named after a sort of entries, or begin with 'components.'"),
        ("components.pe_sfu", "LINE", "must be a function that drives a testbench, not "),
        ("components.pe_sfu", "drive_more",
         "must take a testbench, and nothing else, which (testbench, other) does not"),
        ("components.pe_sfu", "drive_one_by_one",
         "must be a plain function, with neither yield nor async: it would never run"),
    ],
)  # fmt: skip
def test_the_kits_of_a_plugin_are_opened(site: Site, name: str, target: str, told: str) -> None:
    """Whether anything needs them or not, and each alone: the other entries are checked."""
    target = target if ":" in target else f"acme_conforming:{target}"
    plugins = loaded(site, more=KITS.format(name, target))
    found = {each.sort: each for each in Conformance.of("acme", plugins).results(["opens"])}
    assert found["networks"].outcome is CheckOutcome.PASSED
    assert found["kits"].outcome is (CheckOutcome.FAILED if told else CheckOutcome.PASSED)
    assert found["kits"].reason.startswith(
        told and f"it raised PluginError: kit of checks {name!r} of acme_conforming (source tree) {told}"
    )


OF_TWO = """
from kernbench_core import ExporterEntry, KitEntry
from kernbench_core.testing import CheckFailed, kit_of
kernbench_api = 1
def NAME_says_so(entry): raise CheckFailed("NAME looked")
KIT = kit_of(lambda plugins, name: name, NAME_says_so)
def kernbench_kits(): return [KitEntry("exporters", f"{__name__}:KIT", "Formats of traces.")]
def kernbench_exporters(): return [ExporterEntry("NAME_dump", "json:dump", (".NAME",), "A dump.")]
"""
OF_ONE = """
from kernbench_core import ExporterEntry
kernbench_api = 1
def kernbench_exporters(): return [ExporterEntry("dump", "json:dump", (".dump",), "A dump.")]
"""


def test_one_of_two_kits_is_that_of_the_plugin_or_the_one_that_is_named(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where neither is, using one is an error that names both; what needs none of them is checked all the same."""
    for name in ("one", "two"):
        site.module(f"{name}_kits", OF_TWO.replace("NAME", name))
    site.module("plain_dump", OF_ONE)
    plugins = load_plugins([*CHECKS, "one = one_kits", "two = two_kits", "plain = plain_dump"], installed=False)

    def ran(plugin: str, kits: tuple[str, ...] = ()) -> list[str]:
        return [str(each) for each in Conformance.of(plugin, plugins, kits).results() if each.reason]

    assert ran("one") == ["one_dump one_says_so failed: one looked"]
    assert ran("one", ("two:exporters",)) == ["one_dump two_says_so failed: two looked"]
    assert ran("plain", ("one_kits (source tree):exporters",)) == ["dump one_says_so failed: one looked"]
    told = (
        "kit of checks 'exporters' is left out: it must be registered once, not by one_kits (source tree) and by "
        "two_kits (source tree); uninstall all but one, or write 'one:exporters' or 'two:exporters'."
    )
    with pytest.raises(PluginError) as caught:
        Conformance.of("plain", plugins)
    assert str(caught.value) == told
    assert main(["plugins", "check", "plain"], plugins) == 6
    assert told in capsys.readouterr().err
    assert main(["plugins", "check", "plain", "--kit", "two:exporters"], plugins) == 1
    assert "two looked" in capsys.readouterr().out
    assert main(["plugins", "check", "plain", "--kit", "three:exporters"], plugins) == 2
    assert capsys.readouterr().err.endswith(
        "error: kit must be a registered one, not 'three:exporters'; one of several is written VENDOR:NAME.\n"
    )


@pytest.mark.parametrize(
    ("plugin", "names", "told"),
    [
        ("acne", (), "plug-in must be one that is loaded, not 'acne'. Did you mean 'acme'?"),
        ("acme", ("cub",),
         "what is checked must be an entry of plug-in 'acme' or a check, not 'cub'. Did you mean 'cube'?"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(site: Site, plugin: str, names: tuple[str, ...], told: str) -> None:
    """With the nearest that is."""
    plugins = loaded(site)
    with pytest.raises(UsageError) as caught:
        list(Conformance.of(plugin, plugins).results(names))
    assert str(caught.value) == told


def test_the_command_tells_the_verdict(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 when any check did not end as it must."""
    plugins = loaded(site, again="x * x")
    assert main(["plugins", "check", "acme"], plugins) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["entry", "sort", "checks"],
        ["acme.line", "networks", "8", "passed,", "1", "not", "applicable"],
        ["cube", "ops", "8", "passed,", "1", "not", "applicable,", "1", "failed"],
    ]
    assert lines[-1] == "1 of 19 checks did not end as they must."
    assert main(["plugins", "check", "acme", "acme.line", "--json"], plugins) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["plugin"]) == ("kernbench.conformance/1", "acme")
    assert {(each["entry"], each["outcome"]) for each in found["results"]} == {
        ("acme.line", "passed"), ("acme.line", "not applicable"),
    }  # fmt: skip
    assert main(["plugins", "check", "acme", "gives_the_promised_shape"], plugins) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "all 1 checks ended as they must."


def test_a_plugin_without_any_says_so(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """It did not pass anything."""
    site.module("bare_plugin", "")
    assert main(["plugins", "check", "bare"], load_plugins([*CHECKS, "bare = bare_plugin"], installed=False)) == 0
    assert capsys.readouterr().out == "plug-in bare registers nothing that there is a kit for.\n"
