"""The schema of a whole configuration: what names choose, what lies over a base, and whose section stands alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kernbench_builtin.machines.schema.document import configuration_schema, section_schema
from kernbench_core.errors import UsageError
from kernbench_core.plugins import MachineEntry, MachineRegistry, NetworkEntry, NetworkRegistry, Provider
from tests.core import offered
from tests.core.offered import LAYERING
from tests.core.small_machine import DECLARED, TEXT, Catalogue
from tests.core.topology import odd_machines, odd_shapes
from tests.core.topology.text_config import parse_config

CHORDAL = NetworkEntry("acme.chordal", f"{odd_shapes.__name__}:CHORDAL", "Each with the next and one far.")
ACME = Provider("acme", "acme-beds", "1.2")

NETWORKS = NetworkRegistry(entries=[*offered.NETWORKS, (CHORDAL, ACME)])


class Listed(Catalogue):
    """The catalogue of the small machine, which also has the names."""

    def __iter__(self) -> Iterator[str]:
        return iter(DECLARED)


def machines(*targets: str) -> MachineRegistry:
    """Return core's kinds of machine, and odd ones under their own names in lower case."""
    found = [(MachineEntry(each.lower(), f"{odd_machines.__name__}:{each}", "Odd."), ACME) for each in targets]
    return MachineRegistry(entries=[*offered.KINDS, *found])


@cache
def schema(merged: bool = False) -> dict[str, Any]:
    return configuration_schema(Listed(), NETWORKS, machines("CABLE"), merged=merged)


def faults(text: str, merged: bool = False, *sets: str) -> list[tuple[str, str]]:
    """Return the path and the keyword of every fault that a validator finds."""
    data = dict(parse_config(text, "m.yaml", sets=sets, layering=LAYERING).data)
    found = Draft202012Validator(schema(merged)).iter_errors(data)
    return sorted((error.json_path, str(error.validator)) for error in found)


def test_a_machine_and_a_part_of_one_fit() -> None:
    Draft202012Validator.check_schema(schema(True))
    assert faults(TEXT) == faults(TEXT, True) == []
    assert faults("system: {sips: 3}") == []
    assert faults("system: {sips: 3}", True) == [("$", "required")] * 5 + [("$.system", "required")]


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("cube.pse=4", ("$.cube", "additionalProperties")),
        ("cubes.pes=4", ("$", "additionalProperties")),
        ("cube.pes=0", ("$.cube.pes", "exclusiveMinimum")),
        ("cube.pes=4 PEs", ("$.cube.pes", "type")),
        ("sip.noc.bandwidth=100", ("$.sip.noc.bandwidth", "type")),
        ("sip.noc.bandwidth=100 ns", ("$.sip.noc.bandwidth", "pattern")),
        ("sip.noc.payload_bytes=1", ("$.sip.noc.payload_bytes", "anyOf")),
        ("host.pcie={generation: 7, lanes: 4}", ("$.host.pcie.generation", "enum")),
        ("components.pe_gemm.impl=test.pe_math", ("$.components.pe_gemm.impl", "enum")),
        ("components.pe_gemm.impl=null", ("$.components.pe_gemm.impl", "enum")),
        ("cube.mesh.rows=-1", ("$.cube.mesh.rows", "anyOf")),
        ("system.network={topology: acme.chordal, params: {chord: 1}}", ("$.system.network.params.chord", "minimum")),
        ("components.pe_gemm.params.rosw=4", ("$.components.pe_gemm.params", "additionalProperties")),
        ("components.pe_gemm={impl: test.array, params: {rows: 0}}", ("$.components.pe_gemm.params.rows", "minimum")),
        ("pe.units.pe_sfu={impl: test.sfu, params: {lanes: x}}", ("$.pe.units.pe_sfu.params.lanes", "type")),
        ("overrides=[{match: '*', impl: test.sfu, params: {rows: 1}}]",
         ("$.overrides[0].params", "additionalProperties")),
        ("overrides=[{impl: test.sfu}]", ("$.overrides[0]", "required")),
        ("system.network.topology=rign", ("$.system.network.topology", "enum")),
        ("system.network.links=[{bandwidth: 1 GB/s}]", ("$.system.network.links[0]", "required")),
        ("system.network.params.arms=3", ("$.system.network.params", "additionalProperties")),
    ],
)  # fmt: skip
def test_each_fault_is_found_where_it_is(setting: str, fault: tuple[str, str]) -> None:
    """In a file that lies over another one as in a whole machine."""
    assert faults(TEXT, True, setting) == [fault]
    assert faults("title: x", False, setting) == [fault]


def test_a_parameter_that_must_be_given_may_come_from_below_a_file() -> None:
    bare = "components.pe_gemm.impl=test.array"
    assert faults(TEXT, False, bare) == []
    assert faults(TEXT, True, bare) == [("$.components.pe_gemm", "required")]
    assert faults(TEXT, True, bare, "components.pe_gemm.params.columns=2") == [
        ("$.components.pe_gemm.params", "required")
    ]
    assert faults(TEXT, True, bare, "components.pe_gemm.params.rows=2") == []


def test_without_its_name_a_network_is_a_ring_in_a_whole_machine_and_any_in_a_part() -> None:
    bare = TEXT.replace("topology: ring, ", "")
    assert faults(bare, True) == []
    assert faults(bare, True, "system.network.params.chord=3") == [("$.system.network.params", "additionalProperties")]
    assert faults("system: {network: {params: {chord: 3}}}") == []


def test_auto_may_be_written_or_left_empty() -> None:
    assert faults(TEXT, True, "cube.mesh={rows: auto, columns: null}", "system.network.width=auto") == []


def test_an_override_leaves_to_its_nodes_what_it_does_not_give() -> None:
    assert faults(TEXT, True, "overrides=[{match: '*.pe_gemm', impl: test.array, params: {columns: 3}}]") == []


def test_without_its_name_a_component_may_have_what_any_of_its_kind_has() -> None:
    assert faults("components: {pe_gemm: {params: {rows: 2, servers: 1}}}") == []
    assert faults("components: {pe_gemm: {params: {rows: 2, bogus: 1}}}") == [
        ("$.components.pe_gemm.params", "additionalProperties")
    ]
    assert faults("overrides: [{match: '*', impl: null, params: {lanes: 2}}]") == []


def test_a_figure_has_one_form() -> None:
    """Beside another layer's a form may be given in part, and in a whole machine it must be there."""
    assert faults("host: {pcie: {lanes: 4}}") == []
    assert faults("host: {pcie: {lanes: 4, bandwidth: 1 GB/s}}") == [("$.host.pcie", "not")]
    part = TEXT.replace("pcie: {bandwidth: 10 GB/s", "pcie: {lanes: 4")
    assert faults(part, True) == [("$.host.pcie", "anyOf")]
    assert faults(part.replace("lanes: 4", "lanes: 4, generation: 5"), True) == []


def test_each_kind_of_machine_has_its_own_sections_and_kinds_of_node() -> None:
    cable = "cable: {bandwidth: 8 GB/s, latency: 3 ns}\ncomponents: {port: {impl: test.sfu}}\n"
    assert faults(cable) == faults(cable, True) == []
    assert faults(cable, True, "cable.lenght=1") == [("$.cable", "additionalProperties")]
    assert faults(cable, True, "system.sips=1") == [("$", "None"), ("$.system", "required")]
    assert faults(cable, True, "components.router.impl=test.sfu") == [("$.components", "enum")]
    assert faults(TEXT, True, "components.port.impl=test.sfu") == [("$.components", "enum")]
    assert faults("components: {prot: {impl: test.sfu}}") == [("$.components", "additionalProperties")]
    assert faults("components: {port: {impl: test.sfu}, router: {impl: test.sfu}}") == [], "the base says which it is"


def test_a_base_is_for_files_alone() -> None:
    text = {"base": "tiny"}
    assert Draft202012Validator(schema()).is_valid(text)
    (fault,) = (each for each in Draft202012Validator(schema(True)).iter_errors(text | {"base": 3}) if not each.path and
                each.validator == "additionalProperties")  # fmt: skip
    assert fault.message.startswith("'base' does not match any of the regexes: ")


def test_a_section_stands_for_itself() -> None:
    cube, components = section_schema(schema(), "cube"), section_schema(schema(), "components")
    assert "$defs" not in cube and Draft202012Validator(cube).is_valid({"pes": 4})
    assert not Draft202012Validator(cube).is_valid({"pes": "4"})
    given = {"pe_gemm": {"impl": "test.array", "params": {"rows": 4}}}
    assert Draft202012Validator(components).is_valid(given)
    given["pe_gemm"]["params"] = {"rows": 0}
    assert not Draft202012Validator(components).is_valid(given)
    assert list(section_schema(schema(), "system")["$defs"]) == [
        f"network.{name}" for name in ("acme.chordal", "fully_connected", "mesh_2d", "ring", "switch", "torus_2d")
    ]
    with pytest.raises(UsageError) as caught:
        section_schema(schema(), "sips")
    assert str(caught.value) == "section must be one at the top of a configuration, not 'sips'. Did you mean 'sip'?"


def test_keys_say_what_they_are_and_what_they_are_without_being_given() -> None:
    told = schema()["properties"]
    assert told["system"]["properties"]["chunk_bytes"]["description"] == "Largest fabric transaction of a DMA."
    assert told["system"]["properties"]["chunk_bytes"]["default"] == "4 KiB"
    assert told["cube"]["properties"]["mesh"]["properties"]["rows"]["default"] == "auto"
    assert told["system"]["properties"]["network"]["properties"]["topology"]["default"] == "ring"
    assert "default" not in told["host"]["properties"]["pcie"]["properties"]["bandwidth"]
    assert told["cable"]["description"] == "The section `cable`."
    assert schema()["$defs"]["component.test.sfu"]["properties"]["lanes"]["description"] == "Lanes."


def test_what_cannot_be_used_is_told_and_left_out() -> None:
    told: list[str] = []
    shape = NetworkEntry("acme.star", "nowhere_to_be_found:SHAPE", "A star.")
    found = configuration_schema(
        Listed(), NetworkRegistry(entries=[*offered.NETWORKS, (shape, ACME)]), machines("TEXT_INSTEAD", "POD"),
        warn=told.append,
    )
    assert told == [
        "network 'acme.star' of acme-beds 1.2 must be importable from 'nowhere_to_be_found:SHAPE', but that raised "
        "ModuleNotFoundError: No module named 'nowhere_to_be_found'; repair or reinstall acme-beds.",
        "machine 'text_instead' of acme-beds 1.2 must be a MachineKind of kernbench_core.topology, not 'a text'; "
        "repair or reinstall acme-beds.",
    ]
    assert "text_instead" not in found["properties"]
    assert (
        "acme.star"
        not in found["properties"]["system"]["properties"]["network"]["properties"]["topology"]["else"]["enum"]
    )
    assert found["properties"]["pod"] == {"description": "a pod"}, "it does not say which keys it has"
