"""Lone transfers: against networkx, closed forms, and the rules that every probe checks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise

import attrs
import numpy as np
import pytest

from kernbench_builtin.probe import transfers_command
from kernbench_builtin.probe.checks import check_probes
from kernbench_builtin.probe.load import loaded_latency
from kernbench_builtin.probe.transfers import Case, MeasuredTransfer, Prober, Resource
from kernbench_core.cli import main
from kernbench_core.errors import SanityError, UsageError
from kernbench_core.graph import Graph
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.units import format_time
from tests.builtin.conftest import Oracle

Probers = Callable[..., Prober]


@pytest.fixture(scope="module")
def prober(plugins: Plugins) -> Probers:
    known: dict[tuple[str, ...], Prober] = {}

    def build(preset: str, *sets: str) -> Prober:
        if (preset, *sets) not in known:
            graph = compile_topology(configure(plugins, preset, sets=sets), plugins)
            known[preset, *sets] = Prober(graph, plugins.components)
        return known[preset, *sets]

    return build


def test_cases_are_those_that_the_machine_has(prober: Probers) -> None:
    host = ["host to HBM", "HBM to host"]
    near = ["own HBM", "nearest PE's HBM", "farthest PE's HBM", "SRAM"]
    assert [case.name for case in prober("tiny").cases()] == [
        *host, *(f"{verb} {name}" for verb in ("load", "store") for name in near)
    ]  # fmt: skip
    far = [*near, "nearest cube", "farthest cube", "nearest SIP", "farthest SIP"]
    assert [case.name for case in prober("full").cases()] == [
        *host, *(f"{verb} {name}" for verb in ("load", "store") for name in far)
    ]  # fmt: skip


@pytest.mark.parametrize("topology", ["switch", "fully_connected"])
def test_packages_that_are_all_as_far_are_one_case_and_swept(prober: Probers, topology: str) -> None:
    names = [case.name for case in prober("tiny", "system.sips=3", f"system.network.topology={topology}").cases()]
    assert [name for name in names if "SIP" in name] == ["load other SIP", "store other SIP"]
    assert transfers_command._IN_SWEEP.fullmatch("load other SIP")


def test_near_and_far_are_so_by_networkx(prober: Probers) -> None:
    probing = prober("full")
    oracle, dma = Oracle(probing.graph), "sip0.cube0.pe0.pe_dma"

    def distance(memory: str) -> float:
        return sum(probing.graph.edges[pair].latency for pair in pairwise(oracle.path(dma, memory)))

    found = {case.name: case.memory for case in probing.cases()}
    others = {f"sip0.cube0.hbm_ctrl{i}": distance(f"sip0.cube0.hbm_ctrl{i}") for i in range(1, 8)}
    assert distance(found["load nearest PE's HBM"]) == min(others.values())
    assert distance(found["load farthest PE's HBM"]) == max(others.values())
    cubes = [min(distance(f"sip0.cube{c}.hbm_ctrl{i}") for i in range(8)) for c in range(1, 16)]
    assert distance(found["load nearest cube"]) == min(cubes)
    assert distance(found["load farthest cube"]) == max(cubes)


@pytest.mark.parametrize("preset", ["tiny", "default"])
@pytest.mark.parametrize("nbytes", [64, 1024, 4096])
def test_a_lone_chunk_takes_its_closed_form(prober: Probers, preset: str, nbytes: int) -> None:
    """Latencies and overheads of the way there and back, and the narrowest wire or channel, from the graph alone."""
    probing = prober(preset)
    oracle = Oracle(probing.graph)
    for case in probing.cases():
        one = probing.measure(case, nbytes)
        # 64 B lie on one channel, more on as many as they cover; the SRAM has 16 banks that take turns every 16 B
        share = nbytes // min(4, math.ceil(nbytes / 256)) if "hbm" in case.memory else math.ceil(nbytes / 256) * 16
        expected = oracle.round_trip(case.source, case.memory, case.op, nbytes, share)
        assert one.fabric_ns == one.bound_ns == expected, case
        assert one.chunks == 1


def test_checks_hold_for_every_case_and_size(prober: Probers) -> None:
    probing = prober("default")
    for nbytes in (64, 300, 4096, 1 << 17):
        check_probes(probing, [probing.measure(case, nbytes) for case in probing.cases()])


def test_a_long_transfer_runs_at_the_narrowest_rate(prober: Probers) -> None:
    """Of 16 MiB: 0.923 x 4 x 25.6 GB/s of the channels; PCIe's 63 GB/s of which 256 in 280 bytes are payload."""
    probing = prober("tiny")
    host, back, own = (probing.measure(case, 1 << 24) for case in probing.cases()[:3])
    assert own.bandwidth == pytest.approx(102.4 * 0.923, rel=2e-3)
    assert own.binding.name == "sip0.cube0.hbm_ctrl0#"
    for one in (host, back):
        assert one.bandwidth == pytest.approx(63.0 * 256 / 280, rel=5e-3)
    assert host.binding.name == "host->sip0.io0.pcie_ep"
    assert back.binding.name == "sip0.io0.pcie_ep->host"


def test_outstanding_chunks_bound_a_long_way(prober: Probers) -> None:
    """Little's law: 8 chunks of 4 KiB per round trip and set-up across the scale-up link."""
    probing = prober("default")
    case = next(case for case in probing.cases() if case.name == "load other SIP")
    chunk, many = probing.measure(case, 4096), probing.measure(case, 1 << 22)
    assert many.bandwidth == pytest.approx(8 * 4096 / (chunk.total_ns + 8 * 0), rel=0.02)


def test_a_named_pair_is_read_or_written(prober: Probers) -> None:
    probing = prober("tiny")
    pe, memory = "sip0.cube0.pe1", "sip0.cube0.hbm_ctrl2"
    dma = f"{pe}.pe_dma"
    assert probing.case(pe, memory) == [Case(f"{pe} to {memory}", "write", dma, memory)]
    assert probing.case(memory, pe) == [Case(f"{memory} to {pe}", "read", dma, memory)]
    assert probing.case("host", "sip0.cube0.sram")[0].op == "write"


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        (
            "host",
            "sip0.cube0.pe1",
            "options --from and --to must name the host or a PE on one side and a memory on the other, not 'host' and "
            "'sip0.cube0.pe1'; a write goes from the first to the second, a read the other way round.",
        ),
        (
            "host",
            "sip0.cube0.hbm_ctrl9",
            "option --to must name the host, a PE or a memory (hbm_ctrl, sram, pe_tcm), not 'sip0.cube0.hbm_ctrl9'. "
            "Did you mean 'sip0.cube0.hbm_ctrl3'?",
        ),
        (
            "sip0.cube0.srm",
            "host",
            "option --from must name the host, a PE or a memory (hbm_ctrl, sram, pe_tcm), not 'sip0.cube0.srm'. "
            "Did you mean 'sip0.cube0.sram'?",
        ),
    ],
)
def test_wrong_ends_are_refused(prober: Probers, source: str, target: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        prober("tiny").case(source, target)
    assert str(error.value) == told


class TestRules:
    """Each rule is tripped by a measurement that breaks just it."""

    @pytest.fixture
    def good(self, prober: Probers) -> tuple[Prober, list[MeasuredTransfer]]:
        probing = prober("tiny")
        return probing, [probing.measure(case, 4096) for case in probing.cases()]

    def told(self, probing: Prober, measured: list[MeasuredTransfer]) -> str:
        with pytest.raises(SanityError) as error:
            check_probes(probing, measured)
        return str(error.value)

    def test_good_ones_pass(self, good: tuple[Prober, list[MeasuredTransfer]]) -> None:
        check_probes(*good)

    def test_below_the_bound(self, good: tuple[Prober, list[MeasuredTransfer]]) -> None:
        probing, (first, *_) = good
        low = attrs.evolve(first, fabric_ns=first.bound_ns / 2)
        assert self.told(probing, [low]) == (
            f"do not use this result: 'host to HBM' of 4 KiB took {format_time(low.fabric_ns)}, below its lower bound "
            f"of {format_time(low.bound_ns)}."
        )

    def test_a_lone_chunk_above_the_bound(self, good: tuple[Prober, list[MeasuredTransfer]]) -> None:
        probing, (first, *_) = good
        high = attrs.evolve(first, fabric_ns=first.bound_ns + 1)
        assert self.told(probing, [high]) == (
            f"do not use this result: 'host to HBM' of 4 KiB took {format_time(high.fabric_ns)}, but a lone chunk must "
            f"take just its lower bound of {format_time(high.bound_ns)}."
        )
        check_probes(probing, [attrs.evolve(high, exact=False)])

    def test_a_store_above_the_bound_has_a_slow_source(self, good: tuple[Prober, list[MeasuredTransfer]]) -> None:
        probing, measured = good
        store = next(one for one in measured if one.case.name == "store own HBM")
        check_probes(probing, [attrs.evolve(store, fabric_ns=store.bound_ns + 1)])
        assert "below its lower bound" in self.told(probing, [attrs.evolve(store, fabric_ns=store.bound_ns - 1)])

    def test_farther_is_not_faster(self, good: tuple[Prober, list[MeasuredTransfer]]) -> None:
        probing, measured = good
        own, _, far = measured[2:5]
        quick = attrs.evolve(far, total_ns=500.0)
        slow = attrs.evolve(own, total_ns=600.0)
        assert self.told(probing, [slow, quick]) == (
            "do not use this result: \"load farthest PE's HBM\" of 4 KiB took 500 ns, less than 'load own HBM' of 4 "
            "KiB with 600 ns, though it is farther."
        )

    def test_wider_is_not_slower(self, good: tuple[Prober, list[MeasuredTransfer]]) -> None:
        probing, measured = good
        own = attrs.evolve(measured[2], total_ns=100.0)
        assert self.told(probing, [own]) == (
            "do not use this result: 'load own HBM' of 4 KiB took 100 ns, but "
            f"{probing.measure(own.case, 4096, wider=2).total_ns:.4g} ns over wires 2 times as wide; more bandwidth "
            "must never be slower."
        )


def test_a_model_that_is_faster_when_far_is_caught() -> None:
    """The rule is about distance, not about the order of the list."""
    case = Case("load x", "read", "pe", "a.hbm_ctrl0")
    near = MeasuredTransfer(case, 64, ("pe", "a"), 5.0, 20.0, 20.0, 20.0, 1, Resource("w", 1.0), True)
    far = attrs.evolve(near, case=attrs.evolve(case, name="load y"), distance_ns=9.0, total_ns=10.0)

    class Same(Prober):
        def __init__(self) -> None:
            """Measure nothing."""

        def measure(self, case: Case, nbytes: int, *, wider: float = 1.0) -> MeasuredTransfer:
            return near if case is near.case else far

    with pytest.raises(SanityError, match="though it is farther"):
        check_probes(Same(), [far, near])


@pytest.mark.parametrize("overhead", ["6ns", "40ns"])
def test_slow_routers_are_no_fault(prober: Probers, overhead: str) -> None:
    """The nearest cube is near by its wires, and behind more routers than the farthest PE of the own one."""
    probing = prober("default", f"components.router.params.overhead={overhead}")
    check_probes(probing, [probing.measure(case, 4096) for case in probing.cases()])


def test_slices_that_begin_elsewhere_in_their_interleave_are_no_fault(prober: Probers) -> None:
    """The slice of the next PE begins within 2560 B: 4 KiB lie on its channels more evenly; so may many chunks."""
    probing = prober("tiny", "components.hbm_ctrl.params.interleave_bytes=2560 B")
    for nbytes in (4096, 100_000):
        check_probes(probing, [probing.measure(case, nbytes) for case in probing.cases()])


STORES = "components.router.params.store_and_forward=true"
#: Chunks that are alike in size take unlike times on the channels, and the host adds none that would hide it.
UNEVEN = (
    "system.chunk_bytes=1 KiB",
    "components.hbm_ctrl.params.interleave_bytes=1280 B",
    "components.host.params.overhead=0 ns",
    "cube.noc.bandwidth=10 GB/s",
)


@pytest.mark.parametrize(
    "sets",
    [
        (STORES,),
        (STORES, "components.hbm_ctrl.params.channel_bandwidth=3 GB/s"),
        (STORES, *UNEVEN),
        ("components.pe_tcm.params.read_bandwidth=20 GB/s",),
        ("pe.links.data.bandwidth=60 GB/s",),
        ("components.router.impl=builtin.router_vc", "components.hbm_ctrl.params.channel_bandwidth=3 GB/s"),
    ],
)
def test_nodes_that_store_and_slow_ends_are_no_fault(prober: Probers, sets: tuple[str, ...]) -> None:
    """Chunks are stored one by one; a scratchpad may be slower than the wires; a write may come late in flits."""
    probing = prober("tiny", *sets)
    for nbytes in (64, 4096, 5000, 1 << 16):
        check_probes(probing, [probing.measure(case, nbytes) for case in probing.cases()])


def test_chunks_that_are_stored_take_their_bound(prober: Probers) -> None:
    """Beside the host's 50 ns: alike ones go through the stages of a way as through those of a pipeline."""
    probing = prober("tiny", STORES)
    for case in probing.cases()[:2]:
        for nbytes in (4096, 1 << 16, 1 << 20):
            one = probing.measure(case, nbytes)
            assert one.total_ns - 50 == pytest.approx(one.bound_ns, rel=1e-4)
        # a small one behind a large one comes as late as the large one, which is all that is sure
        assert probing.measure(case, 4100).bound_ns == probing.measure(case, 4096).bound_ns


def test_what_takes_no_set_up_is_not_below_its_bound_by_rounding(prober: Probers) -> None:
    probing = prober("tiny", "components.host.params.overhead=0 ns")
    check_probes(probing, [probing.measure(case, (1 << 16) + 64) for case in probing.cases()[:2]])


def test_what_is_not_exact_is_not_measured_a_second_time() -> None:
    """Wider wires tell nothing where a refresh may come in between."""
    case = Case("load x", "read", "pe", "a.hbm_ctrl0")

    class Never(Prober):
        def __init__(self) -> None:
            """Measure nothing."""

        def measure(self, case: Case, nbytes: int, *, wider: float = 1.0) -> MeasuredTransfer:
            raise AssertionError

    check_probes(Never(), [MeasuredTransfer(case, 64, ("pe", "a"), 5.0, 1.0, 20.0, 20.0, 1, Resource("w", 1.0), False)])


class TestLoad:
    """Open-loop load on one path against queueing theory."""

    def test_waits_are_those_of_one_server_with_constant_service(self, prober: Probers) -> None:
        """M/D/1: mean wait = share x service / (2 (1 - share)); the channels serve 4 KiB in 43.3 ns."""
        probing = prober("tiny")
        case = probing.cases()[2]
        alone = probing.measure(case, 4096).fabric_ns
        for point in loaded_latency(probing, case, 4096, (0.3, 0.7), count=20_000):
            wait = point.share * 40.0 / 0.923 / (2 * (1 - point.share))
            assert point.mean_ns - alone == pytest.approx(wait, rel=0.08)
            assert point.queueing_ns == pytest.approx(point.mean_ns - alone, abs=1e-6)
            assert point.achieved == pytest.approx(point.offered, rel=0.01)

    def test_latency_grows_with_the_load(self, prober: Probers) -> None:
        probing = prober("default")
        for case in (probing.cases()[0], probing.cases()[-1]):
            points = loaded_latency(probing, case, 4096, count=250)
            assert np.all(np.diff([point.mean_ns for point in points]) > 0)
            assert all(point.p99_ns >= point.mean_ns >= probing.measure(case, 4096).bound_ns for point in points)

    def test_same_seed_same_points(self, prober: Probers) -> None:
        probing = prober("tiny")
        case = probing.cases()[2]
        first, again = (loaded_latency(probing, case, 4096, (0.5,), count=200, seed=3) for _ in range(2))
        assert first == again
        assert loaded_latency(probing, case, 4096, (0.5,), count=200, seed=4) != first


class TestCommand:
    """`kernbench probe` as typed."""

    @pytest.fixture(autouse=True)
    def _few_chunks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Load with less: what the numbers are is tested above."""
        monkeypatch.setattr("kernbench_builtin.probe.load.CHUNKS", 100)

    def test_tables(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "112")
        monkeypatch.setattr(transfers_command, "SWEEP", (64, 4096, 65536))
        assert main(["probe", "--topology", "tiny"]) == 0
        told = capsys.readouterr().out
        assert told.startswith("tiny: lone transfers of 4 KiB\n")
        assert "load own HBM" in told and "GB/s by size" in told and "ns by load, mean / p99" in told
        assert told.splitlines()[2].split() == ["transfer", "hops", "bound", "set-up", "simulated", "GB/s", "binding"]

    def test_names_stay_whole_in_80_columns(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is before them wraps at blanks."""
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(transfers_command, "SWEEP", (64, 4096))
        assert main(["probe", "--topology", "tiny"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
        assert {"sip0.cube0.hbm_ctrl0#", "sip0.cube0.pe0.pe_dma"} <= {word for line in lines for word in line.split()}

    def test_many_chunks_have_no_set_up_and_all_rates_one_unit(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transfers_command, "SWEEP", (64, 4096))
        pair = ["--from", "sip7.cube0.hbm_ctrl0", "--to", "sip0.cube0.pe0"]
        slow = ["--set", "system.sips=9", "--set", "system.network.topology=mesh_2d"]
        assert main(["probe", "--topology", "tiny", *pair, *slow, "--size", "8 KiB"]) == 0
        title, row = capsys.readouterr().out.splitlines()[2:4]
        assert title.split() == ["transfer", "hops", "bound", "simulated", "GB/s", "binding"]
        assert 0.1 < float(row.split()[-4 if "->" in row else -2]) < 10

    def test_json(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        assert tuple(64 * 4**i for i in range(10)) == transfers_command.SWEEP
        monkeypatch.setattr(transfers_command, "SWEEP", (64, 4096, 65536))
        pair = ["--from", "sip0.cube0.hbm_ctrl1", "--to", "sip0.cube0.pe0", "--size", "64 KiB"]
        assert main(["probe", "--topology", "tiny", *pair, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["schema"] == "kernbench.probe-paths/1"
        (one,) = found["transfers"]
        assert (one["op"], one["bytes"], one["chunks"]) == ("read", 65536, 16)
        assert one["path"][0] == "sip0.cube0.pe0.pe_dma" and one["path"][-1] == "sip0.cube0.hbm_ctrl1"
        assert one["bound_ns"] <= one["simulated_ns"]
        assert [point["bytes"] for point in found["sweep"]] == [64, 4096, 65536]
        assert len(found["loaded"]) == 7

    def test_banks_are_probed_with_less_and_the_table_says_so(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transfers_command, "_SLOW_CHUNKS", 20)
        monkeypatch.setenv("COLUMNS", "200")
        pair = ["--from", "sip0.cube0.hbm_ctrl1", "--to", "sip0.cube0.pe0"]
        banks = ["--set", "components.hbm_ctrl.impl=builtin.hbm_ctrl_bank"]
        assert main(["probe", "--topology", "tiny", *pair, *banks]) == 0
        told = capsys.readouterr().out
        assert "\n1 MiB " in told and "\n4 MiB " not in told
        assert (
            "A model on the way is simulated burst by burst: sizes end at 1 MiB (--size measures any), and a load is "
            "of 20 chunks, so that its p99 is rough.\n"
        ) in told

    def test_wider_machine_by_set(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transfers_command, "SWEEP", (64, 4096))
        def host_rate(*sets: str) -> float:
            pair = ["--from", "host", "--to", "sip0.cube0.hbm_ctrl0", "--size", "1 MiB", "--json"]
            assert main(["probe", "--topology", "tiny", *pair, *(x for s in sets for x in ("--set", s))]) == 0
            return float(json.loads(capsys.readouterr().out)["transfers"][0]["bandwidth"])

        assert host_rate("components.pcie_ep.params.overhead=500 ns") < host_rate()

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (
                ["--from", "host"],
                "error: options --from and --to must be given together; give both, or neither for the usual cases.\n",
            ),
            (
                ["--size", "12"],
                "error: option --size must be a positive size, not '12'. Did you mean '12 B'?\n",
            ),
            (
                ["--size", "1 GiB"],
                "error: option --size must be at most 4 MiB, the smallest memory, not '1 GiB'.\n",
            ),
            (
                ["--dram", "--from", "host"],
                "error: option --from must not go with --dram; see 'kernbench probe --help'.\n",
            ),
            (
                ["--dram", "--traffic", "uniform"],
                "error: option --dram must not go with --traffic; see 'kernbench probe --help'.\n",
            ),
        ],
    )
    def test_wrong_options(self, capsys: pytest.CaptureFixture[str], options: list[str], told: str) -> None:
        assert main(["probe", "--topology", "tiny", *options]) == 2
        assert capsys.readouterr().err == told


def test_only_the_nodes_of_the_way_are_built(prober: Probers) -> None:
    probing = prober("full")
    graph: Graph = probing.engine(probing.cases()[0]).graph
    assert set(graph.nodes) == set(probing.path("host", "sip0.cube0.hbm_ctrl0"))
