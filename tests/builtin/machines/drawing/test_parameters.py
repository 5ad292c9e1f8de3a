"""Where a parameter was written is told by the place of the text that holds, else as a default of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kernbench_builtin.machines.drawing import parameter_sources
from kernbench_builtin.machines.drawing.parameters import with_unit
from kernbench_core.graph import Node
from kernbench_core.topology.compilation import compile_topology
from tests.core.offered import offered
from tests.core.small_machine import TEXT, Catalogue
from tests.core.topology.text_config import parse_config

WRITTEN = TEXT.replace("router: {impl: test.router}", "router: {impl: test.router, params: {overhead: 7 ns}}").replace(
    "pe:\n", "pe:\n  units:\n    pe_sfu: {impl: test.sfu, attach: pe_tcm, params: {lanes: 8}}\n"
) + """\
overrides:
  - {match: "sip0.cube0.r*", params: {servers: 2}}
  - match: "*.r0c0"
    params:
      overhead: 9 ns
  - {match: "*.pe1.pe_sfu", impl: test.sfu, params: {lanes: 2}}
"""
Told = Callable[[str], Mapping[str, str]]


def place_of(text: str) -> str:
    """Return file, line and column of a text that stands there once."""
    before, _ = WRITTEN.split(text)
    return f"m.yaml:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"


@pytest.fixture(scope="module")
def told() -> Told:
    """Give what says of a node, by its id, where its parameters were written."""
    config = parse_config(WRITTEN, "m.yaml", sets=["components.pe_dma.params.servers=4"])
    nodes: Mapping[str, Node] = compile_topology(config, offered(Catalogue())).nodes
    sources = parameter_sources(config)
    return lambda name: sources(nodes[name])


def test_what_nobody_wrote_is_a_default_of_the_model(told: Told) -> None:
    assert told("host") == {"overhead": "default of test.host", "servers": "default of test.host"}


def test_what_a_kind_has_is_told_by_its_place(told: Told) -> None:
    """Line and column of the name, as it stands in the file."""
    assert told("sip0.cube1.r0c1") == {"overhead": place_of("overhead: 7 ns"), "servers": "default of test.router"}


def test_the_last_override_that_holds_is_told(told: Told) -> None:
    """Each parameter by itself: those of one node may come from several places."""
    assert told("sip0.cube0.r0c0") == {"overhead": place_of("overhead: 9 ns"), "servers": place_of("servers: 2")}
    assert told("sip0.cube0.r0c1") == {"overhead": place_of("overhead: 7 ns"), "servers": place_of("servers: 2")}


def test_a_unit_that_yaml_adds_is_told_of_where_it_is_added(told: Told) -> None:
    """Or where one of them is changed after that."""
    assert told("sip0.cube2.pe0.pe_sfu") == {"lanes": place_of("lanes: 8")}
    assert told("sip0.cube2.pe1.pe_sfu") == {"lanes": place_of("lanes: 2")}


def test_a_setting_is_told_as_it_was_given(told: Told) -> None:
    found = told("sip0.cube3.pe1.pe_dma")
    assert found == {"overhead": "default of test.pe_dma", "servers": "--set components.pe_dma.params.servers=4"}


def test_a_file_may_have_neither_overrides_nor_units() -> None:
    """Nor a section of PEs at all, as a machine of another kind."""
    node = Node("n", "router", "test.router", {"overhead": 1.0, "servers": 1})
    config = parse_config("components:\n  router: {params: {overhead: 1 ns}}", "n.yaml")
    assert parameter_sources(config)(node) == {"overhead": "n.yaml:2:21", "servers": "default of test.router"}


@pytest.mark.parametrize(
    ("value", "dimension", "told"),
    [
        (2.0, "time", "2 ns"),
        (0.833251953125, "time", "0.8332519531 ns"),
        (128.0, "bandwidth", "128 GB/s"),
        (1 << 24, "size", "16 MiB"),
        (1536, "size", "1536 B"),
        (3072, "size", "3 KiB"),
        (0, "size", "0 B"),
        (1.5, "frequency", "1.5 GHz"),
        (4, "int", 4),
        (True, "time", True),
        ("fifo", "str", "fifo"),
        (None, "time", None),
        (7.0, None, 7.0),
    ],
)
def test_quantities_have_units(value: object, dimension: str | None, told: object) -> None:
    """Sizes that of which they are whole numbers; what is no quantity stays what it is."""
    assert with_unit(value, dimension) == told
