"""Explanations on the built-in machine: paths tile, parts sum, and what is on the path is what matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_builtin.explain.explanation import LaunchExplanation
from kernbench_builtin.explain.ledger import Ledger
from kernbench_core import Shard
from kernbench_core.messages import MsgBase
from kernbench_core.runs.result import RunResult
from tests.builtin.machine.explained_runs import BENCHES, explain, tiles, why

#: A machine of two PEs.
TWO_PES = "cube.pes=2"


def calls(launch: LaunchExplanation) -> set[str | None]:
    """Return the calls of the kernel whose ops are on the path."""
    return {segment.call for segment in launch.path if segment.op_id is not None}


@pytest.fixture(scope="module", params=sorted(BENCHES))
def explained(request: pytest.FixtureRequest) -> RunResult:
    """Run one bench."""
    return explain(request.param, params=BENCHES[request.param])


def test_critical_path_tiles_every_launch_of_every_bench(explained: RunResult) -> None:
    """Segments follow each other from the injection to the completion, bit for bit."""
    launches = why(explained).launches
    assert launches
    for launch in launches:
        tiles(launch)
        assert launch.path[0].place == "host"
        assert launch.path[-1].place.endswith("->host")
        assert sum(each.ns for each in launch.folds) == launch.ns


def test_every_phase_is_split_without_a_rest(explained: RunResult) -> None:
    """What is said of a phase sums to the phase, and all of it to the total."""
    explanation = why(explained)
    for phase, ns in explained.phases.items():
        assert sum(went.ns for went in explanation.went if went.phase == phase) == ns
    assert sum(went.ns for went in explanation.went) == explained.total_ns
    assert all(sum(went.parts) == went.ns for went in explanation.went)


def test_ops_on_a_path_are_named_with_their_kernel_lines(explained: RunResult) -> None:
    """Every op of a path names its call and its line, and has a record in the log."""
    logged = {record.op_id for record in explained.op_log}
    for launch in why(explained).launches:
        assert calls(launch)
        for segment in launch.path:
            if segment.op_id is not None:
                assert segment.call is not None
                assert segment.line is not None
                assert ".py:" in segment.line
                assert segment.op_id in logged


def test_explaining_changes_nothing(explained: RunResult) -> None:
    """The op log, the time and the number of events are the same with and without, bit for bit."""
    plain = kb.run(explained.bench, "tiny", BENCHES[explained.bench])
    assert plain.explain is None
    assert (plain.op_log_sha256, plain.total_ns, plain.events) == (
        explained.op_log_sha256, explained.total_ns, explained.events
    )  # fmt: skip


@pytest.mark.parametrize("name", ["gemm", "gemm-composite", "sparse-gemm"])
def test_parts_of_every_message_sum_to_its_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answered command, tile, transaction and launch has a ledger that sums exactly."""
    seen: list[str] = []
    add = Ledger.add

    def checked(self: Ledger, msg: MsgBase) -> None:
        parts = (msg.propagation, msg.serialisation, msg.overhead, msg.queueing, msg.service)
        assert sum(parts) == msg.tail - msg.born
        assert min(parts) >= 0
        seen.append(type(msg).__name__)
        add(self, msg)

    monkeypatch.setattr(Ledger, "add", checked)
    ledger = why(explain(name, params=BENCHES[name])).ledger
    assert {"Transaction", "LaunchMsg", "DmaReadCmd" if name != "gemm-composite" else "CompositeCmd"} <= set(seen)
    assert sum(row.messages for row in ledger) == len(seen)
    assert all(row.unaccounted_ns == 0 for row in ledger)


def test_ledger_counts_what_the_program_did() -> None:
    """Host copies, loads, stores and math of vector-add are rows of their own, in the phases that they belong to."""
    def add_one(x_ptr: Any, tl: Any) -> None:
        offset = tl.program_id(0) * 64 + tl.arange(0, 64)
        tl.store(x_ptr + offset, tl.load(x_ptr + offset) + 1.0)

    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(256, np.float32))
        rt.launch(add_one, x, grid=(4,))
        x.numpy()

    rows = {row.what: row for row in why(explain(bench)).ledger}
    assert {what: rows[what].messages for what in ("command load", "command store", "command math")} == {
        "command load": 4, "command store": 4, "command math": 4
    }  # fmt: skip
    assert rows["host writes hbm_ctrl"].phase == "host_to_device"
    assert rows["pe_dma reads hbm_ctrl"].phase == rows["command load"].phase == "kernel"
    assert rows["m_cpu launches on pe_cpu"].messages == 4


# Two PEs --------------------------------------------------------------------------------------------


def unequal(tl: Any) -> None:
    """Compute for twice as long on PE 0 as on PE 1; nothing leaves the scratchpad."""
    x = tl.full((64, 64), 1.0, tl.float32)
    for _ in range(16 if tl.program_id(0) == 0 else 8):
        x = tl.exp(x)


def unequal_bench(rt: Any) -> None:
    """Launch it on two PEs."""
    rt.launch(unequal, grid=(2,))


def faster_math(tmp_path: Path, pe: int) -> Path:
    """Write an overlay that halves the time of math on one PE."""
    overlay = tmp_path / f"pe{pe}.yaml"
    overlay.write_text(
        f"overrides:\n  - match: sip0.cube0.pe{pe}.pe_math\n    params: {{clock: 1.92 GHz, overhead: 5 ns}}\n"
    )
    return overlay


def test_only_what_is_on_the_path_matters(tmp_path: Path) -> None:
    """Halving the ops of the PE off the path leaves the total as it is, bit for bit; of the other one reduces it."""
    plain = explain(unequal_bench, TWO_PES)
    (launch,) = why(plain).launches
    tiles(launch)
    assert {segment.op_id[0] for segment in launch.path if segment.op_id} == {0}
    assert len({segment.op_id for segment in launch.path if segment.op_id}) == 17
    off = explain(unequal_bench, TWO_PES, components=faster_math(tmp_path, 1))
    on = explain(unequal_bench, TWO_PES, components=faster_math(tmp_path, 0))
    assert off.op_log_sha256 != plain.op_log_sha256
    assert off.total_ns == plain.total_ns
    assert on.total_ns < plain.total_ns


def test_a_reduction_on_the_path_shows_by_how_much(tmp_path: Path) -> None:
    """Halving ops on the path gains what half of their service is, until the other PE becomes critical."""
    plain, on = explain(unequal_bench, TWO_PES), explain(unequal_bench, TWO_PES, components=faster_math(tmp_path, 0))
    (before,), (after,) = why(plain).launches, why(on).launches
    service = sum(segment.ns for segment in before.path if segment.sort == "service")
    gained = plain.total_ns - on.total_ns
    assert 0 < gained <= service / 2 + 17 / 65536
    assert {segment.op_id[0] for segment in after.path if segment.op_id} <= {0, 1}
    tiles(after)


def overlapped(x_ptr: Any, tl: Any) -> None:
    """Load much while computing little, and wait for both."""
    tile = tl.load(x_ptr, shape=(128, 128), wait=False)
    small = tl.full((8, 8), 1.0, tl.float32)
    small = tl.exp(small)
    tl.wait(tile)


def overlapped_bench(rt: Any) -> None:
    """Launch it on one PE."""
    rt.launch(overlapped, rt.zeros((128, 128), "f32"), grid=(1,))


def test_work_that_a_load_hides_is_not_on_the_path(tmp_path: Path) -> None:
    """Of a load and math that overlap only the longer one is on the path; speeding up the other gains nothing."""
    plain = explain(overlapped_bench, TWO_PES)
    launch = why(plain).launches[-1]
    assert calls(launch) == {"tl.load"}
    assert explain(overlapped_bench, TWO_PES, components=faster_math(tmp_path, 0)).total_ns == plain.total_ns
    wider = explain(overlapped_bench, TWO_PES, "components.pe_dma.params.overhead=1 ns")
    assert wider.total_ns < plain.total_ns


def test_queue_behind_another_op_leads_through_that_op() -> None:
    """The second of two composites is served after the first; the path goes through both."""
    def kernel(a_ptr: Any, c_ptr: Any, tl: Any) -> None:
        a = tl.ref(a_ptr, (128, 128))
        for half in range(2):
            out = tl.ref(c_ptr + half * 128 * 128, (128, 128))
            tl.composite("gemm", a, a, out, tile_m=64, tile_n=64, tile_k=64)

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.zeros((128, 128), "f16"), rt.empty((256, 128), "f16"), grid=(1,))

    launch = why(explain(bench, TWO_PES)).launches[-1]
    tiles(launch)
    assert {segment.op_id for segment in launch.path if segment.call == "tl.composite"} == {(0, 0), (0, 1)}
    assert {"read", "service"} <= {segment.sort for segment in launch.path}


def test_each_launch_has_its_own_path() -> None:
    """Launches that follow each other, and ones that overlap, are explained one by one."""
    def bench(rt: Any) -> None:
        rt.launch(unequal, grid=(2,))
        rt.launch(unequal, grid=(1,))

    launches = why(explain(bench, TWO_PES)).launches
    assert [launch.kernel for launch in launches] == ["unequal", "unequal"]
    for launch in launches:
        tiles(launch)


STEP = st.tuples(st.sampled_from(["load", "ahead", "math", "dot", "store"]), st.sampled_from([16, 32]))


@settings(max_examples=25)
@given(first=st.lists(STEP, max_size=5), second=st.lists(STEP, max_size=5))
def test_paths_of_random_kernels_tile(first: list[tuple[str, int]], second: list[tuple[str, int]]) -> None:
    """Whatever two PEs do, the path has no gap and explaining changes nothing."""
    def kernel(x_ptr: Any, tl: Any) -> None:
        pe = tl.program_id(0)
        mine = x_ptr + pe * 64 * 64
        for what, size in (first, second)[pe]:
            shape = (size, size)
            if what == "load":
                tl.load(mine, shape=shape)
            elif what == "ahead":
                tl.load(x_ptr, shape=shape, wait=False)
            elif what == "math":
                tl.exp(tl.full(shape, 1.0, tl.float32))
            elif what == "dot":
                tile = tl.full(shape, 1.0, tl.float32)
                tl.dot(tile, tile)
            else:
                tl.store(mine, tl.full(shape, 2.0, tl.float32))

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.zeros((128, 64), "f32"), grid=(2,))

    result = explain(bench, TWO_PES)
    for launch in why(result).launches:
        tiles(launch)
    assert result.op_log_sha256 == kb.run(bench, "tiny", set=[TWO_PES]).op_log_sha256


def test_roofline_of_a_product_matches_its_shape() -> None:
    """FLOP and HBM bytes are those of the loop: 2 M N K and a cast of C; each PE reads what its tile needs."""
    result = explain("gemm", params=BENCHES["gemm"])
    point = why(result).launches[-1].roofline
    assert point is not None
    m, n, k, tile = 64, 64, 128, 32
    assert point.flops == 2 * m * n * k + m * n
    pes = 4  # each has one tile of C, and reads the rows of A and the columns of B that it is made of
    assert point.hbm_bytes == 2 * (pes * 2 * tile * k + m * n)
    assert point.intensity == point.flops / point.hbm_bytes
    gemm = next(each for each in point.resources if each.kind == "pe_gemm")
    assert gemm.peak == gemm.resources * 2 * 2048
    assert gemm.achieved == 2 * m * n * k / point.duration_ns
    assert 0 < point.share < 1


def test_the_slowest_pe_is_named_beside_the_mean() -> None:
    """Of four PEs of which one has ten times the work, that one is named; its time is that of its ops."""

    def uneven(x: Any, n: int, tl: Any) -> None:
        tile = tl.load(x, shape=(n,))
        for _ in range(10 if tl.program_id(0) == 2 else 1):
            tile = tl.exp(tile)
        tl.store(x, tile)

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros(rt.n_pes * 2048, np.float32), placement=Shard(0))
        rt.launch(uneven, x.to_local(), 2048)

    result = explain(bench)
    (launch,) = why(result).launches
    balance = launch.balance
    assert balance is not None
    assert (balance.pes, balance.longest) == (4, "sip0.cube0.pe2")
    spans = {
        pe: max(op.t_end for op in result.op_log if op.op_id[0] == pe)
        - min(op.t_start for op in result.op_log if op.op_id[0] == pe)
        for pe in range(4)
    }
    assert balance.longest_ns - balance.shortest_ns == pytest.approx(spans[2] - min(spans.values()), abs=5.0)
    assert 4 * balance.mean_ns > balance.longest_ns + 3 * balance.shortest_ns - 1e-6
    assert calls(launch) == {"tl.load", "tl.exp", "tl.store"}


def test_one_hot_slice_is_named() -> None:
    """All PEs read what lies in one slice: the path waits there, and its rate is the one near the peak."""

    def read(x: Any, n: int, tl: Any) -> None:
        for i in range(4):
            tl.load(x + i * n, shape=(n,))

    def bench(rt: Any) -> None:
        rt.launch(read, rt.tensor(np.zeros(rt.n_pes * 4 * 4096, np.float32), placement=Shard(0)), 4096)

    explanation = why(explain(bench))
    (launch,) = explanation.launches
    hot = "sip0.cube0.hbm_ctrl0"
    (reads,) = (each for each in explanation.went if (each.phase, each.sort) == ("kernel", "read"))
    assert (launch.folds[0].waited_at, reads.waited_at) == (hot, hot)
    assert launch.roofline is not None
    (memory,) = launch.roofline.resources
    assert (memory.resources, memory.busiest, memory.busiest_achieved) == (1, hot, memory.achieved)
    assert memory.share > 0.8


def test_other_memory_models_need_no_change() -> None:
    """With the bank model of the HBM controller, whose requests wait for each other inside it, paths tile too."""
    for setting in ("components.hbm_ctrl.impl=builtin.hbm_ctrl_bank",):
        result = explain("gemm", setting, params=BENCHES["gemm"])
        for launch in why(result).launches:
            tiles(launch)
        assert all(row.unaccounted_ns == 0 for row in why(result).ledger)
