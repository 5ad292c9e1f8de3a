"""The specification: typed, in kernbench's own units, every fault reported with its place."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kernbench_builtin.machines.specification import Spec, UnitSpec
from kernbench_core.errors import ConfigError
from kernbench_core.params import did_you_mean
from kernbench_core.topology import section_reader
from kernbench_core.topology.configuration import load_config
from kernbench_core.topology.section_reader import read_choices, read_whole
from kernbench_core.topology.sections import OverrideSpec
from tests.core.small_machine import TEXT
from tests.core.topology.text_config import parse_config


def problems(sets: list[str], text: str = TEXT) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        read_whole(parse_config(text, "m.yaml", sets=sets), Spec)
    return caught.value.problems


def test_values_are_in_kernbench_units_and_defaults_filled_in() -> None:
    spec = read_whole(parse_config(TEXT), Spec)
    assert (spec.sip.ucie.bandwidth, spec.sip.ucie.latency) == (100.0, 2.0)
    assert (spec.host.pcie.payload_bytes, spec.host.pcie.header_bytes) == (256, 24)
    assert spec.cube.noc.ns_per_mm == 0.1
    assert spec.cube.hbm.capacity == 4 * 2**20
    assert (spec.system.chunk_bytes, spec.system.page_bytes, spec.system.flit_bytes) == (4096, 4096, 32)
    assert (spec.cube.mesh.rows, spec.cube.mesh.hbm_zone.rows, spec.sip.io_chiplets) == (None, None, 1)
    assert spec.sip.ucie.payload_bytes is None
    assert spec.components["pe_gemm"].impl == "test.pe_gemm"
    assert spec.overrides == []


def test_the_value_with_the_wrong_unit_is_named_with_its_line() -> None:
    assert problems([], TEXT.replace("    bandwidth: 100 GB/s", "    bandwidth: 12 ns")) == (
        "m.yaml:10:5: sip.ucie.bandwidth must be a positive bandwidth, not '12 ns'. Did you mean '12 GB/s'?",
    )


def test_every_fault_of_every_section_is_reported() -> None:
    found = problems(
        [
            "system.sips=x",
            "sip.mesh=3",
            "cube.pes=0",
            "pe.lnks.x=1",
            "host=null",
            "overrides=3",
            "components.pe_math.impl=4",
            "system.network.latency=0 ns",
            "cube.mesh.rows=auto",
            "cube.mesh.columns=many",
        ]
    )
    assert set(found) == {
        "--set system.sips=x: system.sips must be a positive integer, not 'x'.",
        "--set sip.mesh=3: sip.mesh must be a mapping of keys to values, not 3.",
        "--set cube.pes=0: cube.pes must be a positive integer, not 0.",
        "--set pe.lnks.x=1: pe.lnks must be a known key. Did you mean 'links'?",
        "--set host=null: host must be a mapping of keys to values, not None.",
        "--set overrides=3: overrides must be a list, not 3.",
        "--set components.pe_math.impl=4: components.pe_math.impl must be text, not 4.",
        "--set system.network.latency=0 ns: system.network.latency must be a positive time, not '0 ns'.",
        "--set cube.mesh.columns=many: cube.mesh.columns must be an integer of at least 0 or auto, not 'many'.",
    }


def test_a_missing_key_is_reported_at_its_section() -> None:
    assert problems([], TEXT.replace("  tcm: {capacity: 128 KiB}", "  tcm: {}")) == (
        "m.yaml:19:3: pe.tcm must have the key 'capacity'; add it, or start from a preset with 'base:'.",
    )


@pytest.mark.parametrize(
    ("setting", "sentences"),
    [
        ("cube.noc.rows=3", ("cube.noc.rows must be a known key. Did you mean 'cube.mesh.rows'?",)),
        ("rows=3", ("rows must be a known key. Did you mean 'cube.mesh.rows'?",)),
        ("components.pe_gemm.lanes=3",
         ("components.pe_gemm.lanes must be a known key. Did you mean 'components.pe_gemm.params.lanes'?",)),
        # as near in five places: what is known here is more help
        ("cube.latency=1 ns",
         ("cube.latency must be a known key. Known: command, hbm, height, mesh, noc, pes, sram, width.",)),
        ("components.pe_gem.params.lanes=3",
         ("components.pe_gem must have the key 'impl'; add it, or start from a preset with 'base:'. Did you mean "
          "'pe_gemm'?",)),
        ("components.pe_gem.lanes=3",
         ("components.pe_gem must have the key 'impl'; add it, or start from a preset with 'base:'. Did you mean "
          "'pe_gemm'?",
          "components.pe_gem.lanes must be a known key. Did you mean 'components.pe_gemm.params.lanes'?")),
        ("components.frob.params.lanes=3",
         ("components.frob must have the key 'impl'; add it, or start from a preset with 'base:'.",)),
    ],
)  # fmt: skip
def test_what_was_meant_is_told_wherever_it_stands(setting: str, sentences: tuple[str, ...]) -> None:
    """A key by the same name in another section, and a kind of node by one that is spelt almost alike."""
    text = TEXT.replace("test.pe_gemm}", "test.pe_gemm, params: {lanes: 4}}").replace(
        "  pes: 4\n", "  pes: 4\n  mesh: {rows: auto}\n"
    )
    assert problems([setting], text) == tuple(f"--set {setting}: {sentence}" for sentence in sentences)


def test_slips_are_not_suggested_for_each_other() -> None:
    """Two keys of one name that are both unknown, and what is below an unknown one."""
    assert problems(["cube.noc.frob=3", "sip.noc.frob=3", "cube.x.frob=3"]) == (
        "--set sip.noc.frob=3: sip.noc.frob must be a known key. Known: bandwidth, header_bytes, latency, "
        "payload_bytes.",
        "--set cube.noc.frob=3: cube.noc.frob must be a known key. Known: bandwidth, header_bytes, latency, ns_per_mm, "
        "payload_bytes.",
        "--set cube.x.frob=3: cube.x must be a known key. Known: command, hbm, height, mesh, noc, pes, sram, width.",
    )


def test_overrides_and_units_are_typed() -> None:
    sets = [
        "overrides=[{match: 'sip0.*', impl: acme.x, params: {rows: 3}}]",
        "pe.units={pe_sfu: {impl: acme.sfu, attach: pe_dma}}",
    ]
    spec = read_whole(parse_config(TEXT, sets=sets), Spec)
    assert spec.overrides == [OverrideSpec("sip0.*", "acme.x", {"rows": 3})]
    assert (spec.pe.units["pe_sfu"].impl, spec.pe.units["pe_sfu"].attach) == ("acme.sfu", "pe_dma")


def test_sections_that_name_implementations_are_read_when_others_are_wrong() -> None:
    choices = read_choices(parse_config(TEXT, sets=["system=3", "overrides=3"]), (("pe", "units"), UnitSpec))
    assert choices.components["host"].impl == "test.host"
    assert (choices.overrides, choices.units) == ([], {})


@pytest.mark.parametrize("key", ["cube.meshh{}", "pe{}.lnks"])
def test_of_a_flood_of_slips_only_those_that_are_told_get_a_hint(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they stand in one section or in many; each is still a problem."""
    asked = []

    def hint(name: str, known: Iterable[str]) -> str:
        asked.append(name)
        return did_you_mean(name, known)

    monkeypatch.setattr(section_reader, "did_you_mean", hint)
    config = load_config(parse_config(TEXT).data, sets={key.format(at): 1 for at in range(300)})
    with pytest.raises(ConfigError) as caught:
        read_whole(config, Spec)
    assert len(caught.value.problems) == 300 and len(asked) == 21
    assert all("Did you mean" in problem or "Known" in problem for problem in str(caught.value).split("\n")[:-1])
