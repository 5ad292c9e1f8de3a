"""Roofs against closed forms, networkx and sets of bytes."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench as kb
from kernbench_builtin.explain.accesses import common, joined, length
from kernbench_builtin.explain.roof import Peaks, Roof, RoofWork, narrowest_cut, roof, roof_of
from kernbench_builtin.explain.verdict import RunVerdict
from kernbench_builtin.machines.figures.launch import FiguresMeter
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from tests.tool_runs import run_tool

#: What a slice of the presets sustains, in bytes per ns: 0.923 of the peak of four pseudo-channels.
HBM = 4 * 25.6 * 0.923
PEAKS = Peaks({"pe_gemm": 4, "pe_math": 2}, hbm=10.0, noc_in=5.0, noc_out=2.0)


@pytest.mark.parametrize(
    ("units", "bytes_in", "bytes_out", "ns", "limit"),
    [
        ({"pe_gemm": 400.0}, 100, 10, 100.0, "compute"),
        ({"pe_gemm": 400.0, "pe_math": 300.0}, 100, 10, 150.0, "compute"),
        ({"pe_gemm": 4.0}, 100, 150, 75.0, "noc"),
        ({}, 500, 100, 100.0, "noc"),
        ({}, 0, 0, 0.0, "compute"),
    ],
)
def test_the_largest_of_three(units: dict[str, float], bytes_in: int, bytes_out: int, ns: float, limit: str) -> None:
    found = roof(PEAKS, RoofWork(units, bytes_in, bytes_out))
    assert (found.ns, found.limit) == (ns, limit)


def test_hbm_takes_both_ways_together_and_the_noc_at_once() -> None:
    found = roof(Peaks({}, hbm=10.0, noc_in=10.0, noc_out=10.0), RoofWork({}, 100, 50))
    assert (found.hbm_ns, found.noc_ns, found.limit) == (15.0, 10.0, "hbm")


edges = st.dictionaries(
    st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]), st.integers(1, 9),
    max_size=30,
)  # fmt: skip


@given(edges, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_cut_is_that_of_networkx(rates: dict[tuple[int, int], int], framed: bool) -> None:
    """From two nodes to two others; with headers as large as the payload, half of it."""
    names = [f"n{number}" for number in range(8)]
    header = 64 if framed else 0
    wires = [Edge(names[a], names[b], EdgeKind.NOC, float(rate), 1.0, 64, header) for (a, b), rate in rates.items()]
    graph = Graph.of([Node(name, "router") for name in names], wires)
    oracle = networkx.DiGraph()
    oracle.add_nodes_from([*names, "from", "to"])
    for (a, b), rate in rates.items():
        oracle.add_edge(names[a], names[b], capacity=rate)
    for name in names[:2]:
        oracle.add_edge("from", name)
    for name in names[-2:]:
        oracle.add_edge(name, "to")
    wanted = networkx.maximum_flow_value(oracle, "from", "to")
    assert narrowest_cut(graph, names[:2], names[-2:]) == pytest.approx(wanted / 2 if framed else wanted)


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), max_size=12)


@given(spans, spans)
@settings(max_examples=60, deadline=None)
def test_ranges_are_sets_of_bytes(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    def made(pairs: list[tuple[int, int]]) -> tuple[Any, set[int]]:
        rows = np.array([(start, start + size) for start, size in pairs], np.int64).reshape(-1, 2)
        return joined(rows), {byte for start, size in pairs for byte in range(start, start + size)}

    (left, left_set), (right, right_set) = made(one), made(other)
    assert length(left) == len(left_set)
    assert common(left, right) == len(left_set & right_set)
    assert length(joined(left, right)) == len(left_set | right_set)


def roof_over(plugins: Plugins, bench: Any, topology: str, params: dict[str, object], *sets: str) -> Roof:
    graph = compile_topology(configure(plugins, topology, None, sets), plugins)
    engine = GraphEngine(graph, plugins.components, meter=FiguresMeter())
    engine.run(plugins.benches.load(bench) if isinstance(bench, str) else bench, params)
    found = roof_of(engine)
    assert found is not None
    return found


def test_units_have_what_a_run_has_for_them(plugins: Plugins) -> None:
    """A product on four arrays of 4096 operations per ns, of one package."""
    found = roof_over(plugins, "gemm-naive", "tiny", {"M": 32, "N": 32, "K": 32})
    assert found.units["pe_gemm"] == pytest.approx(2 * 32**3 / (4 * 4096))


def test_a_product_reads_each_operand_once(plugins: Plugins) -> None:
    """B, with a copy in each package, too; 64 arrays of 4096 operations and 64 slices of 94.5 B per ns."""
    found = roof_over(plugins, "gemm-composite", "default", {"M": 64, "N": 100, "K": 96})
    assert found.units["pe_gemm"] == pytest.approx(2 * 64 * 100 * 96 / (64 * 4096))
    assert found.hbm_ns == pytest.approx(2 * (64 * 96 + 96 * 100 + 64 * 100) / (64 * HBM))
    # attached to its router by one wire of 128 B per ns, 32 B of which go with each 4 KiB
    assert found.noc_ns == pytest.approx(2 * (64 * 96 + 96 * 100) / (64 * 128 * 4096 / 4128))
    assert found.limit == "hbm"


def twice(x: Any, y: Any, n: int, tl: Any) -> None:
    """Write y = 2 x, a part for each PE."""
    at = tl.program_id(0) * n
    tl.store(y + at, tl.load(x + at, shape=(n,)) * 2)


@pytest.mark.parametrize(("in_place", "moved"), [(False, 2 * 1024), (True, 1024)])
def test_what_stays_between_launches_does_not_count(plugins: Plugins, in_place: bool, moved: int) -> None:
    """x comes in and z goes out, y between them may stay; what is changed in place counts once."""

    def bench(rt: Any) -> None:
        x, y, z = (rt.zeros((1024,), "f32", name=name) for name in "xyz")
        rt.launch(twice, x, x if in_place else y, 1024 // rt.n_pes)
        rt.launch(twice, x if in_place else y, x if in_place else z, 1024 // rt.n_pes)

    found = roof_over(plugins, bench, "tiny", {})
    assert found.hbm_ns == pytest.approx(4 * moved / (4 * HBM))
    # each of two launches: 256 elements on 128 lanes of 0.96 GHz, on all four units at once
    assert found.units["pe_math"] == pytest.approx(2 * 2 / 0.96, rel=1e-4)


def gathered(x: Any, y: Any, n: int, tl: Any) -> None:
    """Read every third element, rows apart from each other and a block; write scattered elements and a block."""
    at = tl.program_id(0) * n
    some = tl.load(x + at + tl.arange(0, 64) * 3 + tl.arange(0, 64) // 7)
    rows = tl.load(x + at, shape=(4, 16), strides=(48, 1))
    tl.store(y + at + tl.arange(0, 64) * 5 % 64, some + tl.reshape(rows, (64,)))
    tl.store(y + at + n // 2, tl.load(x + at + n // 2, shape=(32,)))


def test_bytes_are_those_of_the_records_one_by_one(plugins: Plugins) -> None:
    """Of gathers, strided and plain accesses."""
    touched: list[set[int]] = [set(), set()]

    def bench(rt: Any) -> None:
        x, y = rt.zeros((1024,), "f32", name="x"), rt.zeros((1024,), "f32", name="y")
        rt.launch(gathered, x, y, 1024 // rt.n_pes)
        for record in rt.op_log:
            for side, access in (*((0, each) for each in record.reads), (1, record.writes)):
                for region in access.regions if access is not None and access.space == "hbm" else ():
                    for row in range(region.rows):
                        begin = region.base + row * region.pitch
                        touched[side].update(range(begin, begin + region.row_bytes))

    found = roof_over(plugins, bench, "tiny", {})
    assert all(touched)
    assert found.hbm_ns == pytest.approx(sum(map(len, touched)) / (4 * HBM))


def test_the_cut_is_that_of_the_wires_between(plugins: Plugins) -> None:
    """Narrow wires to the PEs make the NoC the limit of a copy."""
    found = roof_over(plugins, "vector-add", "tiny", {"n": 4096}, "pe.links.dma.bandwidth=8 GB/s")
    assert found.noc_ns == pytest.approx(2 * 4 * 4096 / (4 * 8 * 4096 / 4128))
    assert found.limit == "noc"


def products(x: Any, dealt: bool, tl: Any) -> None:
    """Multiply, 64 times on all PEs together: 16 times each, or on the third one more."""
    tiles = tl.zeros((128, 128), "f16"), tl.zeros((128, 128), "f16")
    before = tl.dot(*tiles, wait=False)
    for _ in range(((9, 9, 37, 9) if dealt else (16,) * 4)[tl.program_id(0)] - 1):
        each = tl.dot(*tiles, wait=False)
        tl.wait(before)
        before = each
    tl.wait(before)


FAST: dict[str, Any] = {
    "base": "tiny", "title": "one fast PE",
    "overrides": [{"match": "*.pe2.pe_gemm", "params": {"clock": "4 GHz"}}],
}  # fmt: skip


@pytest.mark.parametrize("dealt", [True, False])
def test_the_roof_of_unequal_units_is_that_of_all_together(dealt: bool) -> None:
    """Whoever does the work: three arrays of 4096 operations per ns and one of 16,384."""
    run = kb.run(lambda rt: rt.launch(products, rt.empty((16,), "f32"), dealt), FAST, data=False)
    found = run.part(RunVerdict)
    assert found is not None and found.roof_ns == pytest.approx(64 * 2 * 128**3 / (3 * 4096 + 16384))
    assert found.roof_ns < run.phases["kernel"]


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_no_schedule_goes_below_the_roof_of_units_with_several_servers(servers: int) -> None:
    """Tiles of a composite, which all of them work on: the roof is so many times lower."""

    def gelu(x: Any, y: Any, tl: Any) -> None:
        at = tl.program_id(0) * 256 * 256
        tl.wait(
            tl.composite("math", tl.ref(x + at, (256, 256)), None, y + at, math_op="gelu_erf", tile_m=64, tile_n=64)
        )

    def bench(rt: Any) -> None:
        rt.launch(gelu, *(rt.empty((1024, 256), "f32", name=name) for name in "xy"))

    def kernel(count: int) -> tuple[float, float]:
        run = kb.run(bench, "tiny", set=[f"components.pe_math.params.servers={count}"], data=False)
        found = run.part(RunVerdict)
        assert found is not None and found.roof_ns is not None
        return found.roof_ns, run.phases["kernel"]

    (alone, _), (roof_ns, took) = kernel(1), kernel(servers)
    assert roof_ns < took
    assert roof_ns == pytest.approx(alone / servers) or servers == 4  # where memory sets it


def test_the_tool_has_a_row_for_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool("roof", "--data", "gemm-composite@tiny,M=64,N=64,K=64,cube.pes=2") == 0
    row = capsys.readouterr().out.splitlines()[-1].split(" | ")
    assert row[0] == "| `gemm-composite@tiny,M=64,N=64,K=64,cube.pes=2`"
    assert row[2:4] == ["130 ns", "hbm"]  # 3 * 64 * 64 * 2 B, two slices of 94.5 B per ns
    assert float(row[4].rstrip(" |")) > 1


def test_nothing_is_known_of_memories_without_a_peak() -> None:
    assert roof(Peaks({}, hbm=0.0, noc_in=10.0, noc_out=10.0), RoofWork({}, 100, 50)).hbm_ns == 0


def test_a_time_below_the_roof_is_no_share_of_it() -> None:
    """It says of a model that it is wrong."""
    assert RunVerdict("data verified", True, 100.0, 38.0, 4160.0, "hbm").lines[0] == (
        "kernel 38 ns, where the machine's roof allows 4.16 us (by HBM): a model does less than it is asked for, or "
        "declares too low a peak; data verified."
    )
