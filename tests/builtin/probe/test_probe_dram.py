"""`kernbench probe --dram`: rates agree with the closed forms, the table tells what was measured, bad input is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from kernbench_builtin.probe.dram_driver import DramCase, DramProbe
from kernbench_core.cli import main
from kernbench_core.component import ComponentBase
from kernbench_core.errors import UsageError
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins
from tests.conftest import loaded_tool

BANK = "builtin.hbm_ctrl_bank"
PEAK = 4 * 25.6
#: PARAMETERS: (tRTP + tRP + tRFC + tRCD) / tREFI, with the figures of HBM3-6400.
REFRESH = (5.6 + 16.25 + 260 + 19.4) / 3900
#: A channel alone does in a time what each of several does, and is simulated with as many times fewer bursts.
ONE = {"channels": 1}
MakeProbe = Callable[..., DramProbe]


@pytest.fixture
def probe(plugins: Plugins) -> MakeProbe:
    def make(impl: str = BANK, **params: object) -> DramProbe:
        values, problems = resolve_params(plugins.components.declared(impl), params, str)
        assert problems == []
        return DramProbe(Node("hbm_ctrl0", "hbm_ctrl", impl, values), plugins.components)

    return make


@pytest.mark.parametrize(
    ("case", "outstanding", "params", "expected"),
    [
        (DramCase("sequential", 4096, 128), 16, {"tREFI": "0 ns"}, 1.0),
        (DramCase("sequential", 4096, 200), 16, ONE, 1 - REFRESH),
        (DramCase("sequential", 4096, 200, 0.0), 16, ONE, 1 - REFRESH),
        (DramCase("onebank", 32, 2000), 8, {"tREFI": "0 ns"}, 1.25 / 45),
        (DramCase("onebank", 32, 2000), 8, {}, 1.25 / 45 * (1 - REFRESH)),
        (DramCase("random", 32, 2000), 256, {**ONE, "tREFI": "0 ns"}, 1.25 / (15 / 4)),
        (DramCase("random", 32, 2000), 256, ONE, 1.25 / (15 / 4) * (1 - REFRESH)),
        (DramCase("random", 32, 1500), 256, {**ONE, "tREFI": "0 ns", "tRRD_S": "6 ns", "tRRD_L": "6 ns"}, 1.25 / 6),
        (DramCase("stride", 32, 1500, stride=1024), 256, {"tREFI": "0 ns"}, 1.25 / 2.5 / 4),
    ],
)
@pytest.mark.sample(2)
def test_rates_agree_with_the_closed_forms_within_5_percent(
    probe: MakeProbe, case: DramCase, outstanding: int, params: dict[str, object], expected: float
) -> None:
    driven = probe(**params)
    assert driven.closed_loop(case, outstanding).share == pytest.approx(expected, rel=0.05)
    form = driven.closed_form(case)
    assert form is not None
    assert form.share == pytest.approx(expected, rel=0.01)


def test_an_idle_burst_has_the_latency_of_the_closed_form(probe: MakeProbe) -> None:
    """One request at a time, a new row of one bank each: controller, tRP, tRCD, tCL, tBL; only tRC can hold it."""
    point = probe(tREFI="0 ns").closed_loop(DramCase("onebank", 32, 50), 1)
    assert point.p50_ns == pytest.approx(10 + 16.25 + 19.375 + 12.5 + 1.25, abs=0.01)


@pytest.mark.slow
def test_latency_rises_with_load_and_throughput_follows_what_is_offered(probe: MakeProbe) -> None:
    driven, case = probe(tREFI="0 ns"), DramCase("random", 32, 2000)
    points = [driven.open_loop(case, load) for load in (0.05, 0.12, 0.2)]
    means = [point.mean_ns for point in points]
    assert means == sorted(means)
    assert [point.share for point in points] == pytest.approx([0.05, 0.12, 0.2], rel=0.05)
    closed = [driven.closed_loop(case, outstanding) for outstanding in (1, 8, 64)]
    for point in closed:
        # Little's law: what is under way = rate x latency
        assert point.achieved / 32 * point.mean_ns == pytest.approx(point.outstanding, rel=0.05)


@pytest.mark.parametrize(
    ("case", "share", "rule"),
    [
        (DramCase("stride", 32, 2000, stride=1024), 0.923 / 4, "efficiency x peak, 1 of 4 channels"),
        (DramCase("stride", 256, 2000, stride=512), 0.923 / 2, "efficiency x peak, 2 of 4 channels"),
        (DramCase("stride", 48, 3000, stride=256), 0.923 * 0.75, "efficiency x peak, 75% of the bursts' bytes"),
        (DramCase("sequential", 4096, 200), 0.923, "efficiency x peak"),
    ],
)
def test_the_fast_model_promises_only_the_channels_and_bursts_that_are_used(
    probe: MakeProbe, case: DramCase, share: float, rule: str
) -> None:
    driven = probe("builtin.hbm_ctrl")
    form = driven.closed_form(case)
    assert form is not None
    assert (form.share, form.rule) == (pytest.approx(share), rule)
    assert driven.closed_loop(case, 256).share == pytest.approx(share, rel=0.03)


@pytest.mark.parametrize(
    ("figure", "rule"), [("tRAS=60 ns", "tRAS + tRP"), ("tRCDRD=40 ns", "tRCD + tRTP + tRP"), ("tRC=90 ns", "tRC")]
)
def test_one_bank_takes_the_longest_of_its_cycles(probe: MakeProbe, figure: str, rule: str) -> None:
    name, _, value = figure.partition("=")
    driven = probe(**{name: value, "tREFI": "0 ns"})
    case = DramCase("onebank", 32, 400)
    form = driven.closed_form(case)
    assert form is not None and form.rule == f"one bank, {rule}"
    assert driven.closed_loop(case, 8).share == pytest.approx(form.share, rel=0.02)


def test_turning_the_bus_around_costs_what_no_closed_form_tells(probe: MakeProbe) -> None:
    driven = probe(**ONE)
    mixed, reads = DramCase("sequential", 4096, 128, 0.5), DramCase("sequential", 4096, 128)
    assert driven.closed_form(mixed) is None
    assert driven.closed_loop(mixed, 16).share < 0.97 * driven.closed_loop(reads, 16).share


def test_the_channel_hash_spreads_what_a_power_of_two_pitch_heaps_up(probe: MakeProbe) -> None:
    column = DramCase("stride", 32, 800, stride=1024)
    for impl in (BANK, "builtin.hbm_ctrl"):
        plain, hashed = (probe(impl, channel_hash=on).closed_loop(column, 256).share for on in (False, True))
        assert hashed > 3 * plain, impl


def test_latencies_of_a_mix_are_those_of_its_reads(probe: MakeProbe) -> None:
    """Alone, a write is acknowledged after the overhead; a read of a closed row takes its closed form."""
    driven = probe(tREFI="0 ns", banks=256)
    mixed = driven.closed_loop(DramCase("random", 32, 60, 0.5), 1)
    assert mixed.p50_ns == pytest.approx(10 + 19.375 + 12.5 + 1.25, abs=0.01)
    assert driven.closed_loop(DramCase("random", 32, 60, 0.0), 1).p50_ns == pytest.approx(10, abs=0.01)


# The fast model -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def derive() -> ModuleType:
    with loaded_tool("derive_hbm") as module:
        yield module


def test_the_default_efficiency_is_what_the_bank_model_sustains(derive: ModuleType, plugins: Plugins) -> None:
    default = {p.name: p.default_value for p in plugins.components.declared("builtin.hbm_ctrl")}["efficiency"]
    assert default == pytest.approx(derive.efficiency(plugins, requests=512, **ONE), rel=0.01)


@pytest.mark.parametrize("read_ratio", [1.0, pytest.param(0.0, marks=pytest.mark.slow)])
def test_both_models_sustain_the_same_for_sequential_access(probe: MakeProbe, read_ratio: float) -> None:
    case = DramCase("sequential", 4096, 512, read_ratio)
    fast, bank = (probe(impl, **ONE).closed_loop(case, 16).achieved for impl in ("builtin.hbm_ctrl", BANK))
    assert fast == pytest.approx(bank, rel=0.01)


@pytest.mark.slow
def test_what_the_fast_model_ignores_is_as_large_as_it_says(derive: ModuleType, plugins: Plugins) -> None:
    from kernbench_builtin.components.hbm_ctrl import HbmCtrl

    factors = {row.name: row.factor for row in derive.rows(plugins)}
    said = str(HbmCtrl.__doc__)
    for name, words in (
        ("random reads, 32 B", "{:.1f} times too fast, random chunks"),
        ("one bank, a row each, 32 B", "in one bank {:.0f} times"),
        ("random reads, 4 KiB", "random chunks of 4 KiB {:.2f} times"),
        ("sequential, half reads, 4 KiB", "in equal parts run {:.2f} times"),
    ):
        assert words.format(factors[name]) in said, name


# The command ----------------------------------------------------------------------------------------


def run(plugins: Plugins, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    code = main(["probe", "--dram", "--topology", "tiny", *options], plugins)
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.parametrize("impl", ["builtin.hbm_ctrl", BANK])
def test_the_json_object_has_every_point_and_the_closed_form(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], impl: str
) -> None:
    swap = ("--set", f"components.hbm_ctrl.impl={impl}")
    code, out, _ = run(plugins, capsys, *swap, "--requests", "160", "--outstanding", "1,16", "--json")
    found: dict[str, Any] = json.loads(out)
    assert (code, found["schema"], found["impl"]) == (0, "kernbench.probe-dram/1", impl)
    assert (found["pattern"], found["chunk"], found["peak"]) == ("sequential", 4096, PEAK)
    assert [point["outstanding"] for point in found["points"]] == [1, 16]
    assert found["closed_form"]["share"] == pytest.approx(0.923, abs=0.001)
    assert abs(found["closed_form"]["deviation"]) < 0.05
    assert (found["points"][0]["hit_rate"] is None) is (impl != BANK)


def test_the_table_shows_rates_latencies_hits_and_the_rule(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    swap = ("--set", f"components.hbm_ctrl.impl={BANK}")
    few = ("--requests", "400", "--outstanding", "8")
    code, out, _ = run(plugins, capsys, *swap, *few, "--pattern", "onebank")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == f"{BANK} at sip0.cube0.hbm_ctrl0 of tiny: 400 onebank reads of 32 B; peak 25.6 GB/s"
    assert lines[2].split("  ")[0] == "outstanding"
    assert lines[3].split()[:3] == ["8", "0.7", "2.6%"]
    assert lines[-1].startswith("closed form: 2.6% of peak (one bank, tRC, less refresh 7.7%); simulated 2.6%, ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--pattern", "zigzag"], "--pattern must be one of sequential, stride, random, onebank, not 'zigzag'."),
        (["--read-ratio", "1.5"], "--read-ratio must be a number from 0 to 1, not '1.5'."),
        (["--read-ratio", "half"], "--read-ratio must be a number, not 'half'."),
        (["--chunk", "64"], "--chunk must be a positive size, not '64'. Did you mean '64 B'?"),
        (["--chunk", "1 GiB"], "--chunk must be at most 16 MiB, not 1 GiB."),
        (["--chunk", "0"], "--chunk must be a positive size, not '0'."),
        (
            ["--pattern", "stride", "--stride", "1 GiB"],
            "--stride must be at most 128 MiB, half of what the controller is driven over, not 1 GiB.",
        ),
        (["--requests", "0"], "--requests must be an integer from 1 to 1000000, not '0'."),
        (["--outstanding", "4,x"], "--outstanding must be an integer from 1 to 65536, not 'x'."),
        (["--load", "0"], "--load must be parts of the peak above 0 and at most 10, such as 0.2,0.5,0.8, not '0'."),
        (
            ["--load", "0.5", "--outstanding", "4"],
            "--outstanding must not go with --load: a loop is closed or open; give one of them.",
        ),
        (
            ["--pattern", "onebank"],
            "pattern onebank must have a controller with banks, but builtin.hbm_ctrl has none; choose a model with "
            "banks for hbm_ctrl, or another pattern.",
        ),
    ],
)
def test_bad_input_is_a_sentence(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert run(plugins, capsys, *options) == (2, "", f"error: {sentence}\n")


def test_a_model_without_geometry_is_refused() -> None:
    class Bare(ComponentBase):
        pass

    class Classes:
        def load(self, name: str) -> Any:
            return Bare

    with pytest.raises(UsageError) as caught:
        DramProbe(Node("hbm_ctrl0", "hbm_ctrl", "acme.bare"), Classes())
    assert str(caught.value) == (
        "acme.bare must have a method geometry() that returns a DramGeometry, to be driven alone, but it has none; "
        "choose another model for hbm_ctrl, or add the method."
    )
