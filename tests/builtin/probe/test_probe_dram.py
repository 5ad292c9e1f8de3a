"""`kernbench probe --dram`: rates agree with the closed forms, the table tells what was measured, bad input is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernbench_builtin.probe.dram_driver import DramCase, DramProbe
from kernbench_builtin.probe.dram_workload import workload
from kernbench_core.cli import main
from kernbench_core.component import ComponentBase
from kernbench_core.errors import UsageError
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins
from tests.builtin.probe.dram_expected import expected_share
from tests.conftest import count_calls, loaded_tool

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
        (DramCase("random", 32, 1500), 256, {**ONE, "tREFI": "0 ns", "tRRD_S": "5 ns", "tRRD_L": "5 ns"}, 1.25 / 5),
        (DramCase("stride", 32, 1500, stride=1024), 256, {"tREFI": "0 ns", "channel_hash": "off"}, 1.25 / 2.5 / 4),
    ],
)
def test_rates_agree_with_the_closed_forms_within_5_percent(
    probe: MakeProbe, case: DramCase, outstanding: int, params: dict[str, object], expected: float
) -> None:
    driven = probe(**params)
    measured = driven.closed_loop(case, outstanding).share
    assert measured == pytest.approx(expected, rel=0.05)
    assert expected_share(driven, case, outstanding) == pytest.approx(expected, rel=0.05)
    bound = driven.closed_form(case).at_most
    assert bound is not None and measured <= bound < 1.06 * expected


def test_an_idle_burst_has_the_latency_of_the_closed_form(probe: MakeProbe) -> None:
    """One request at a time, a new row of one bank each: controller, tRP, tRCD, tCL, tBL; the clock may add a part."""
    point = probe(tREFI="0 ns").closed_loop(DramCase("onebank", 32, 50), 1)
    expected = 10 + 16.25 + 19.375 + 12.5 + 1.25
    assert expected <= point.p50_ns <= expected + 0.625


@pytest.mark.parametrize(
    ("case", "outstanding", "calls"),
    [
        (DramCase("sequential", 4096, 100), 16, 10),
        (DramCase("random", 4096, 60), 16, 19),
        (DramCase("random", 32, 500), 512, 115),
        (DramCase("random", 32, 500, 0.5), 512, 125),
        (DramCase("onebank", 32, 300), 64, 130),
    ],
)
def test_a_burst_takes_few_python_calls(probe: MakeProbe, case: DramCase, outstanding: int, calls: int) -> None:
    """All of it counts, requests and answers too; a scheduler that looks through everything takes a third more."""
    driven = probe()
    driven.closed_loop(DramCase(case.pattern, case.chunk, 8), outstanding)  # what is done once only
    assert count_calls(lambda: driven.closed_loop(case, outstanding)) < calls * case.requests * case.chunk / 32


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
    driven = probe("builtin.hbm_ctrl", channel_hash="off")
    form = driven.closed_form(case)
    assert (form.share, form.rule) == (pytest.approx(share), rule)
    assert driven.closed_loop(case, 256).share == pytest.approx(share, rel=0.03)


@pytest.mark.parametrize(
    ("figure", "rule"), [("tRTP=26 ns", "tRCD + tRTP + tRP"), ("tRC=90 ns", "tRC")]
)
def test_one_bank_takes_the_longest_of_its_cycles(probe: MakeProbe, figure: str, rule: str) -> None:
    name, _, value = figure.partition("=")
    driven = probe(**{name: value, "tREFI": "0 ns"})
    case = DramCase("onebank", 32, 400)
    form = driven.closed_form(case)
    assert form.rule == f"one bank, {rule}"
    assert driven.closed_loop(case, 8).share == pytest.approx(form.at_most, rel=0.02)


#: ns of each standard: tRCDRD, tRP, tRTP, tRFC.
SETS = {"hbm2_2000": (14, 14, 5, 160), "hbm3_6400": (19.375, 16.25, 5.625, 260), "hbm4_8000": (19.5, 16.5, 6, 450)}


@pytest.mark.parametrize("standard", SETS)
def test_refresh_of_all_banks_costs_a_stream_what_the_form_says_and_that_of_one_bank_less(
    probe: MakeProbe, standard: str
) -> None:
    rcd, rp, rtp, rfc = SETS[standard]
    case = DramCase("sequential", 4096, 500)
    left = 1 - (rtp + rp + rfc + rcd) / 3900
    at_once = probe(standard=standard, channels=2).closed_loop(case, 16).share
    assert at_once == pytest.approx(left, rel=0.02)
    each = probe(standard=standard, channels=2, refresh="per_bank").closed_loop(case, 16).share
    assert left < each <= 1.0
    assert each == pytest.approx(1.0, rel=0.08)


def test_turns_are_reads_and_then_writes_and_drain_a_whole_turn(probe: MakeProbe) -> None:
    driven = probe(channels=2, refresh="none")
    case = DramCase("sequential", 4096, 800, turns=(8, 8))
    ops = [op for op, _ in workload(case, driven.geometry)]
    assert ops[:24] == ["read"] * 8 + ["write"] * 8 + ["read"] * 8
    total = 2 * 8 * 64  # bursts of a turn of each kind on a pseudo-channel
    expected = total * 1.25 / ((total - 2) * 1.25 + 12.5 + 1.25 + 1.25 - 6.25 + 6.25 + 1.25 + 6.25)
    assert expected_share(driven, case, 32) == pytest.approx(expected, rel=0.03)
    assert driven.closed_loop(case, 32).share == pytest.approx(expected, rel=0.05)


def test_rows_lie_in_one_row_each_and_anywhere(probe: MakeProbe) -> None:
    driven = probe()
    locate = driven.geometry.locate
    assert locate is not None
    rows = []
    for _, regions in workload(DramCase("rows", 256, 300), driven.geometry):
        places = [locate(region.base) for region in regions]
        assert len({(place.channel, place.bank, place.row) for place in places}) == 1
        columns = [place.column for place in places]
        assert columns == list(range(columns[0], columns[0] + 8))
        rows.append(places[0])
    assert {place.channel for place in rows} == set(range(4)) and {place.bank for place in rows} == set(range(16))
    assert len({place.row for place in rows}) > 250


def test_a_chain_beside_a_load_waits_longer_the_more_load_there_is(probe: MakeProbe) -> None:
    """Idle, a burst of another row takes its closed form within 2 %; the load itself is not in the latencies."""
    driven = probe(channels=2, refresh="none")
    idle = driven.open_loop(DramCase("sequential", 64, 400, chain=True), 0.01)
    assert idle.p50_ns == pytest.approx(10 + 16.25 + 19.375 + 12.5 + 1.25, rel=0.02)
    means = [
        driven.open_loop(DramCase("sequential", 4096, 300, chain=True), load).mean_ns for load in (0.2, 0.5, 0.8, 0.95)
    ]
    assert means == sorted(means)
    assert idle.mean_ns < means[0] and means[-1] > 3 * idle.mean_ns
    assert driven.open_loop(DramCase("sequential", 4096, 600, chain=True), 0.95).share == pytest.approx(0.95, rel=0.03)


def test_the_channel_hash_spreads_what_a_power_of_two_pitch_heaps_up(probe: MakeProbe) -> None:
    column = DramCase("stride", 32, 800, stride=1024)
    for impl in (BANK, "builtin.hbm_ctrl"):
        plain, hashed = (probe(impl, channel_hash=on).closed_loop(column, 256).share for on in ("off", "auto"))
        assert hashed > 3 * plain, impl


def test_latencies_of_a_mix_are_those_of_its_reads(probe: MakeProbe) -> None:
    """Alone, a write is acknowledged after the overhead; a read of a closed row takes its closed form."""
    driven = probe(tREFI="0 ns", banks=256)
    mixed = driven.closed_loop(DramCase("random", 32, 60, 0.5), 1)
    assert mixed.p50_ns == pytest.approx(10 + 19.375 + 12.5 + 1.25, abs=0.63)
    assert driven.closed_loop(DramCase("random", 32, 60, 0.0), 1).p50_ns == pytest.approx(10, abs=0.63)


# The fast model -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def derive() -> ModuleType:
    with loaded_tool("derive_hbm") as module:
        yield module


def test_the_default_efficiency_is_what_the_bank_model_sustains(derive: ModuleType, plugins: Plugins) -> None:
    default = {p.name: p.default_value for p in plugins.components.declared("builtin.hbm_ctrl")}["efficiency"]
    assert default == pytest.approx(derive.efficiency(plugins, requests=512, **ONE), rel=0.01)


@pytest.mark.parametrize("read_ratio", [1.0, 0.0])
def test_both_models_sustain_the_same_for_sequential_access(probe: MakeProbe, read_ratio: float) -> None:
    case = DramCase("sequential", 4096, 512, read_ratio)
    fast, bank = (probe(impl, **ONE).closed_loop(case, 16).achieved for impl in ("builtin.hbm_ctrl", BANK))
    assert fast == pytest.approx(bank, rel=0.01)


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
    form = found["closed_form"]
    if impl == BANK:
        best = max(point["share"] for point in found["points"])
        assert (form["share"], form["deviation"]) == (None, None) and best <= form["at_most"] < 1.05 * best
    else:
        assert form["share"] == pytest.approx(0.923, abs=0.001) and abs(form["deviation"]) < 0.05
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
    assert lines[-1] == "at most 2.6% of peak (one bank, tRC, refresh 6.7%); simulated 2.6%"


@pytest.mark.parametrize(("how", "compared"), [("--outstanding", "; simulated {}, {:+.1%}"), ("--load", "")])
def test_a_model_without_rows_is_compared_with_its_promise(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], how: str, compared: str
) -> None:
    """A model without rows has a closed form and no bound; how far it is from it is told of a closed loop alone."""
    code, out, err = run(plugins, capsys, "--requests", "64", how, "1")
    lines = out.splitlines()
    share = lines[3].split()[2]
    off = float(share.rstrip("%")) / 92.3 - 1
    assert (code, err) == (0, "")
    assert lines[-1] == f"closed form: 92.3% of peak (efficiency x peak){compared.format(share, off)}"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--pattern", "zigzag"], "--pattern must be one of sequential, stride, random, rows, onebank, not 'zigzag'."),
        (["--read-ratio", "1.5"], "--read-ratio must be a number from 0 to 1, not '1.5'."),
        (["--read-ratio", "half"], "--read-ratio must be a number, not 'half'."),
        (["--chunk", "64"], "--chunk must be a positive size, not '64'. Did you mean '64 B'?"),
        (["--chunk", "1 GiB"], "--chunk must be at most 16 MiB, not 1 GiB."),
        (["--chunk", "0"], "--chunk must be a positive size, not '0'."),
        (
            ["--pattern", "stride", "--stride", "1 GiB"],
            "--stride must be at most 128 MiB, half of the addresses that the probe uses, not 1 GiB.",
        ),
        (["--requests", "0"], "--requests must be an integer from 1 to 1000000, not '0'."),
        (["--outstanding", "4,x"], "--outstanding must be an integer from 1 to 65536, not 'x'."),
        (["--load", "0"], "--load must be parts of the peak above 0 and at most 10, such as 0.2,0.5,0.8, not '0'."),
        (["--turns", "8"], "--turns must be two whole numbers from 1 on, as 16,16, not '8'."),
        (["--turns", "8,0"], "--turns must be two whole numbers from 1 on, as 16,16, not '8,0'."),
        (
            ["--turns", "8,8", "--read-ratio", "0.5"],
            "--turns must not go with --read-ratio: both say how many are reads; give one of them.",
        ),
        (
            ["--trace", "some.trace", "--load", "0.5"],
            "--load must not go with --trace: the file says what is sent when; give one of them.",
        ),
        (["--trace", "/none.trace"], "--trace must be a file that can be read, not '/none.trace': No such file or "
         "directory."),
        (
            ["--pattern", "rows"],
            "pattern rows must have a controller with banks, but builtin.hbm_ctrl has none; choose a model with banks "
            "for hbm_ctrl, or another pattern.",
        ),
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


def test_figures_that_nobody_has_verified_are_named_and_a_trace_has_a_row(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a long path would have the line wrapped
    swap = ("--set", f"components.hbm_ctrl.impl={BANK}", "--set", "components.hbm_ctrl.params.standard=hbm2_2000")
    code, out, _ = run(plugins, capsys, *swap, "--requests", "64", "--outstanding", "4", "--chain")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].endswith(": 64 sequential reads of 4 KiB, beside a chain of reads; peak 64 GB/s")
    assert "unverified figures of hbm2_2000: tFAW" in lines
    assert lines[-1].startswith("latencies are of the chain; at most 95.6% of peak (data bus")
    file = Path("one.trace")
    file.write_text("0 R 0 64\n")
    code, out, _ = run(plugins, capsys, *swap, "--trace", str(file))
    assert (code, out.splitlines()[0].split(": ", 1)[1]) == (0, f"1 request of {file}; peak 64 GB/s")
    assert [line.split()[:4] for line in out.splitlines()[3:4]] == [["all", "at", "once", "1.4"]]
    code, out, _ = run(plugins, capsys, *swap, "--trace", str(file), "--json")
    found = json.loads(out)
    assert (found["trace"], found["requests"], len(found["points"])) == (str(file), 1, 1)
    assert found["points"][0]["offered"] is None
