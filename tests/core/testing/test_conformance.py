"""What a plug-in registers is checked with the kits that there are, by a test of its own or from the command line."""

from __future__ import annotations

import json

import pytest

from kernbench_core.cli import main
from kernbench_core.errors import PluginError, UsageError
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.testing import CheckOutcome, Conformance, conform
from tests.core.plugin_site import Site

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
KIT = "kit of checks '{}' of acme_conforming (source tree) must be a Kit for a sort of entries, not "


def loaded(site: Site, *, again: str = "x * x * x", ops: int = 1, more: str = "") -> Plugins:
    """Load a plug-in with an op and a network."""
    site.module("acme_conforming", PLUGIN.format(again=again, ops=ops, more=more))
    return load_plugins(["acme = acme_conforming"], installed=False)


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
EXPORTERS = kit_of(lambda plugins, name: plugins.exporters[name], has_a_suffix)
def kernbench_kits():
    return [KitEntry("exporters", f"{__name__}:EXPORTERS", "Formats of traces.")]
def kernbench_exporters():
    return [ExporterEntry("a", "m:f", (".a",), "A."), ExporterEntry("b", "m:f", (".b", ".c"), "B.")]
"""
    verdicts = list(Conformance.of("acme", loaded(site, more=kit)).results(["has_a_suffix"]))
    assert [str(each) for each in verdicts] == [
        "a has_a_suffix passed", "b has_a_suffix failed: it must have one suffix, not 2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kit", "told"),
    [
        ("KitEntry('exporters', 'json:loads', 'X.')", KIT.format("exporters")),
        ("KitEntry('engines', f'{__name__}:CUBE', 'X.')", KIT.format("engines")),
    ],
)  # fmt: skip
def test_what_is_no_kit_is_refused(site: Site, kit: str, told: str) -> None:
    """Naming its distribution."""
    with pytest.raises(PluginError) as caught:
        Conformance.of("acme", loaded(site, more=f"def kernbench_kits():\n    return [{kit}]\n"))
    assert str(caught.value).startswith(told)


def test_the_name_of_a_driver_begins_as_it_must(site: Site) -> None:
    """What drives nothing would be there for nothing."""
    kits = "def kernbench_kits():\n    return [KitEntry('networks.line', f'{__name__}:LINE', 'X.')]\n"
    with pytest.raises(PluginError) as caught:
        Conformance.of("acme", loaded(site, more=kits))
    assert str(caught.value).startswith(
        "kit of checks 'networks.line' of acme_conforming (source tree) must be named after a sort of entries, or "
        "begin with 'components.';"
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
    assert main(["plugins", "check", "bare"], load_plugins(["bare = bare_plugin"], installed=False)) == 0
    assert capsys.readouterr().out == "plug-in bare registers nothing that there is a kit for.\n"
