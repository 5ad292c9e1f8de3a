"""Rates of PCIe and UCIe links: the published figures, both forms in a configuration, refusals."""

from __future__ import annotations

import pytest

from kernbench_builtin.machines.link_rates import pcie_bandwidth, ucie_bandwidth
from kernbench_builtin.machines.specification import Spec
from kernbench_core.errors import ConfigError
from kernbench_core.topology.section_reader import read_whole
from tests.core.offered import LAYERING
from tests.core.small_machine import TEXT
from tests.core.topology.text_config import parse_config

UCIE = "    bandwidth: 100 GB/s\n    latency: 2 ns\n"
LANES = "    lanes: 64\n    rate: 32 GT/s\n    adapter_latency: 2 ns\n"


def spec(*sets: str, text: str = TEXT) -> Spec:
    return read_whole(parse_config(text, "m.yaml", sets=sets, layering=LAYERING), Spec)


def problems(*sets: str, text: str = TEXT) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        spec(*sets, text=text)
    return caught.value.problems


@pytest.mark.parametrize(
    ("generation", "lanes", "rate"),
    [(1, 1, 0.25), (1, 16, 4.0), (2, 16, 8.0), (3, 16, 15.754), (4, 8, 15.754), (5, 16, 63.015), (6, 16, 118.0)],
)
def test_a_pcie_link_has_its_published_rate(generation: int, lanes: int, rate: float) -> None:
    assert pcie_bandwidth(generation, lanes) == pytest.approx(rate, abs=5e-4)


@pytest.mark.parametrize(
    ("lanes", "rate", "bandwidth"),
    [(16, 16, 32), (16, 32, 64), (16, 64, 128), (64, 16, 128), (64, 32, 256), (64, 64, 512)],
)
def test_a_ucie_module_has_its_published_rate(lanes: int, rate: float, bandwidth: float) -> None:
    assert ucie_bandwidth(lanes, rate) == bandwidth


def test_a_link_is_given_by_generation_and_lanes_or_by_lanes_and_rate() -> None:
    found = spec("host.pcie.generation=6", "host.pcie.lanes=8", text=TEXT.replace(UCIE, LANES))
    assert found.host.pcie.bandwidth == 59.0
    assert (found.host.pcie.latency, found.host.pcie.payload_bytes) == (50.0, 256)
    assert (found.sip.ucie.bandwidth, found.sip.ucie.latency) == (256.0, 2.0)


def test_one_form_replaces_the_other_one_of_the_layer_below() -> None:
    text = TEXT.replace(UCIE, LANES)
    assert spec("sip.ucie.bandwidth=7 GB/s", text=text).sip.ucie.bandwidth == 7.0
    assert spec("sip.ucie.bandwidth=7 GB/s", text=text).sip.ucie.latency == 2.0
    assert spec("sip.ucie.latency=9 ns", text=text).sip.ucie.latency == 9.0
    assert spec("sip.ucie.lanes=16", text=text).sip.ucie.bandwidth == 64.0
    assert spec("sip.ucie={lanes: 16, rate: 4000 MT/s}").sip.ucie.bandwidth == 8.0


def test_both_forms_at_once_are_refused() -> None:
    assert problems("host.pcie={bandwidth: 10 GB/s, generation: 5, lanes: 16}") == (
        "--set host.pcie={bandwidth: 10 GB/s, generation: 5, lanes: 16}: host.pcie.generation must not be given with "
        "bandwidth: give bandwidth, or generation and lanes, not both.",
    )
    assert problems(text=TEXT.replace(UCIE, UCIE + "    lanes: 64\n")) == (
        "m.yaml:12:5: sip.ucie.lanes must not be given with bandwidth: give bandwidth, or lanes and rate, not both.",
    )
    assert problems(text=TEXT.replace(UCIE, UCIE + "    adapter_latency: 1 ns\n")) == (
        "m.yaml:12:5: sip.ucie.adapter_latency must not be given with latency: give latency, or adapter_latency, not "
        "both.",
    )


def test_half_a_form_is_refused() -> None:
    sentence = "must have bandwidth, or lanes and rate; add what is missing, or start from a preset."
    assert problems(text=TEXT.replace(UCIE, "    lanes: 64\n    latency: 2 ns\n")) == (
        f"m.yaml:9:3: sip.ucie {sentence}",
    )
    assert problems("sip.ucie.rate=32 GT/s") == (f"m.yaml:9:3: sip.ucie {sentence}",)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("host.pcie={generation: 7, lanes: 16}", "generation must be one of 1, 2, 3, 4, 5, 6, not 7."),
        ("host.pcie={generation: 5, lanes: 3}", "lanes must be one of 1, 2, 4, 8, 12, 16, 32, not 3."),
        ("host.pcie={generation: 5, lanes: 0}", "lanes must be a positive integer, not 0."),
    ],
)
def test_a_wrong_pcie_link_is_refused(setting: str, sentence: str) -> None:
    assert problems(setting) == (f"--set {setting}: host.pcie.{sentence}",)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("0 GT/s", "must be a positive transfer rate, not '0 GT/s'."),
        ("32", "must be a positive transfer rate, not 32. Did you mean '32 GT/s'?"),
        ("32 GHz", "must be a positive transfer rate, not '32 GHz'. Did you mean '32 GT/s'?"),
    ],
)
def test_a_wrong_transfer_rate_is_refused(value: str, sentence: str) -> None:
    text = TEXT.replace(UCIE, LANES)
    assert problems(f"sip.ucie.rate={value}", text=text) == (f"--set sip.ucie.rate={value}: sip.ucie.rate {sentence}",)
