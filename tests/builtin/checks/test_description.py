"""`kernbench plugins show` of toys: what they take, are wired to and count, in JSON and in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from tests.core.offered import MACHINES
from tests.core.plugin_site import Site
from tests.core.small_machine import KINDS, TEXT

CHECKS = own_plugins("builtin.checks", "builtin.pages", "builtin.calibrate")
MORE = """
from kernbench_core.component import ComponentBase
from kernbench_core.params import Param
from kernbench_core.plugins import BenchEntry, ComponentEntry, OpEntry, TopologyEntry
from kernbench_core.reporting import Stat
class Counting(ComponentBase):
    PARAMS = (Param("depth", "int", 4, "How many at once.", minimum=1), Param("delay", "time", "2 ns", "How long."))
    STATS = (Stat("hits", "B", "sum", "What was there."), Stat("deepest", "ns", "max", "What waited."))
def bench(rt, n: int = 1):
    '''Do one thing.'''
def kernbench_components():
    return [
        ComponentEntry("more.counting", "more:Counting", "hbm_ctrl, pe_odd", "Counts."),
        ComponentEntry("more.any", "more:Counting", "", "Counts anywhere."),
        ComponentEntry("more.lost", "more:Nothing", "sram", "Is not there."),
    ]
def kernbench_benches():
    return [BenchEntry("once", "more:bench"), BenchEntry("twice", "more:nothing")]
def kernbench_topologies():
    return [TopologyEntry("small", "more_yaml:small.yaml", "One."), TopologyEntry("bad", "more_yaml:bad.yaml", "No.")]
"""


@pytest.fixture
def toys(site: Site) -> Plugins:
    """Give the toys, and a plug-in with presets, benches and models of its own, some of which are not there."""
    site.module("more", MORE)
    parts = site.folder / "more_yaml"
    parts.mkdir()
    (parts / "__init__.py").touch()
    (parts / "small.yaml").write_text(TEXT)
    (parts / "bad.yaml").write_text("system: {sips: none}\n")
    return load_plugins([*CHECKS, MACHINES, "test = tests.core.working_machine", "more = more"], installed=False)


def shown(toys: Plugins, capsys: pytest.CaptureFixture[str], name: str) -> tuple[dict[str, Any], str]:
    """Return what is told of a plug-in as JSON, and what is warned of."""
    assert main(["plugins", "show", name, "--json"], toys) == 0
    out, err = capsys.readouterr()
    return json.loads(out)["plugin"], err


def test_ports_are_the_kinds_at_the_other_ends(toys: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """As the small machine is wired: a memory to a router, the host by PCIe; each model is of one kind."""
    found, err = shown(toys, capsys, "test")
    assert err == ""
    models = {model["name"]: model for model in found["entries"]["components"]}
    assert sorted(models) == sorted(f"test.{kind}" for kind in KINDS)
    assert models["test.host"]["ports"] == [
        {"kind": "host", "preset": "small", "sources": ["pcie_ep"], "sinks": ["pcie_ep"]}
    ]
    assert models["test.hbm_ctrl"]["ports"][0]["sinks"] == ["router"]
    assert models["test.m_cpu"]["ports"][0]["sources"] == models["test.m_cpu"]["ports"][0]["sinks"]
    assert "m_cpu" in models["test.pe_cpu"]["ports"][0]["sources"]
    assert models["test.switch"]["ports"] == []  # a ring has none


def test_what_a_model_takes_and_counts_is_what_its_class_declares(
    toys: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a kind that no preset has there are no ports; what cannot be opened is warned of, and said less of."""
    found, err = shown(toys, capsys, "more")
    assert (found["state"], found["api"], found["module"]) == ("loaded", 1, "more")
    anywhere, counting, lost = found["entries"]["components"]
    assert [model["name"] for model in (anywhere, counting, lost)] == ["more.any", "more.counting", "more.lost"]
    assert counting["kinds"] == ["hbm_ctrl", "pe_odd"]
    assert [each["kind"] for each in counting["ports"]] == ["hbm_ctrl"]
    assert [param["name"] for param in counting["params"]] == ["depth", "delay"]
    assert counting["statistics"] == [
        {"name": "hits", "unit": "B", "combine": "sum", "sentence": "What was there."},
        {"name": "deepest", "unit": "ns", "combine": "max", "sentence": "What waited."},
    ]
    assert (anywhere["kinds"], anywhere["ports"]) == ([], [])
    assert lost == {"name": "more.lost", "sentence": "Is not there.", "target": "more:Nothing"}
    assert "more.lost" in err and err.startswith("warning: ")
    once, twice = found["entries"]["benches"]
    assert (once["sentence"], twice["sentence"][0], twice["sentence"][-1]) == ("Do one thing.", "(", ")")


def test_the_page_says_the_same_in_words(toys: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Who brings it, each sort with its number, a table for each model."""
    assert main(["plugins", "show", "more"], toys) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["more", "  from more (source tree), module more, for hooks of version 1; loaded"]
    for line in ("3 components", "2 benches", "2 topology presets"):
        assert line in lines
    assert "  ports of hbm_ctrl: in from router; out to router (as in preset 'small')" in lines
    assert "  ports of pe_odd: those that configuration gives it" in lines
    assert "  for nodes of any kind" in lines and "  It cannot be opened." in lines
    assert [line.split() for line in lines if line.startswith("  hits")] == [
        ["hits", "B", "sum", "What", "was", "there."]
    ] * 2
