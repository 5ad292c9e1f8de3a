"""The figures of launches on a real machine, beside sums over the op log and over what wires were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.plugins import Plugins
from tests.builtin.machine.noted_bookings import noted_bookings

SIZE = {"M": 128, "N": 96, "K": 160}


def test_a_product_has_2mnk_operations_and_the_bytes_of_its_dma(plugins: Plugins) -> None:
    """FLOP of the matrix units, bytes of every load and store of the op log, and the rates of both."""
    result = kb.run("gemm", "tiny", SIZE, plugins=plugins)
    (launch,) = result.launches
    assert launch.roofline is not None
    by_kind = {each.kind: each for each in launch.roofline.resources}
    assert by_kind["pe_gemm"].achieved * launch.time_ns == pytest.approx(2 * 128 * 96 * 160, rel=1e-12)
    moved = sum(op.params["nbytes"] for op in result.op_log if op.op_name in ("dma_read", "dma_write"))
    assert launch.hbm_bytes == moved
    assert by_kind["hbm_ctrl"].achieved == moved / launch.time_ns
    assert launch.time_ns == result.phases["kernel"]
    assert launch.kernel == "gemm_kernel" and "gemm.py:" in launch.line


def masked(x: Any, tl: Any) -> None:
    """Double a block of 512 elements, as far as there are 1000."""
    at = tl.program_id(0) * 512 + tl.arange(0, 512)
    tl.store(x + at, tl.load(x + at, mask=at < 1000) * 2, mask=at < 1000)


def test_flop_are_of_all_lanes_and_bytes_of_those_that_a_mask_leaves_in(plugins: Plugins) -> None:
    """Of 1000 elements in blocks of 512: each program computes a whole block, and moves what there is."""

    def bench(rt: Any) -> None:
        rt.launch(masked, rt.zeros((1000,)), grid=(2,))

    (launch,) = kb.run(bench, "tiny", plugins=plugins).launches
    assert launch.flops == 512 * np.prod(launch.grid) > 1000
    assert launch.hbm_bytes == 2 * 4 * 1000


def test_the_explanation_has_the_same_points(plugins: Plugins) -> None:
    """There is one count of what was done."""
    result = kb.run("mlp", "tiny", {"model": "gpt2", "tokens": 16}, data=False, explain=True, plugins=plugins)
    assert result.explain is not None and len(result.launches) > 1
    assert [each.roofline for each in result.launches] == [each.roofline for each in result.explain.launches]


def test_what_was_busy_is_what_wires_were_given_meanwhile(plugins: Plugins) -> None:
    """A second count: every booking of every wire is noted, and summed up from the start to the end of each launch."""
    def kernel(x_ptr: Any, n: int, tl: Any) -> None:
        at = x_ptr + tl.program_id(0) * n + tl.arange(0, n)
        tl.store(at, tl.load(at) * 2.0)

    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(rt.n_pes * 512, np.float32))
        for n in (512, 64):
            rt.launch(kernel, x, n)

    with noted_bookings() as booked:
        result = kb.run(bench, "tiny", plugins=plugins)
    assert len(result.launches) == 2
    for launch in result.launches:
        sums: dict[str, float] = {}
        for name, at, took in booked:
            if launch.started_ns <= at < launch.ended_ns:
                sums[name] = sums.get(name, 0.0) + took
        for use in launch.busiest:
            if use.kind.endswith("wire"):
                assert use.busy_ns == sums[use.name]
                assert use.utilisation == use.busy_ns / launch.time_ns
        wires = {use.name: use.busy_ns for use in launch.busiest if "->" in use.name}
        assert max(wires.values()) == max(total for name, total in sums.items() if "->" in name)


def test_launches_are_in_json(plugins: Plugins) -> None:
    """With plain types, in the order in which they were submitted."""
    found = kb.run("mlp", "tiny", {"model": "gpt2", "tokens": 16}, data=False, plugins=plugins)
    listed: Any = found.to_json()["launches"]
    assert [each["kernel"] for each in listed] == [each.kernel for each in found.launches]
    assert all(each["time_ns"] == each["ended_ns"] - each["started_ns"] for each in listed)
    assert [each["injected_ns"] for each in listed] == sorted(each["injected_ns"] for each in listed)


# All kernels together ---------------------------------------------------------------------------------


def test_kernels_together_are_the_sum_of_launches_in_a_row(plugins: Plugins) -> None:
    """Time, operations and bytes add up; what is busy is a share of all that time."""
    result = kb.run("mlp", "tiny", {"model": "gpt2", "tokens": 16}, data=False, plugins=plugins)
    kernels = result.kernels
    assert kernels is not None and kernels.roofline is not None
    assert kernels.time_ns == sum(each.time_ns for each in result.launches) == result.phases["kernel"]
    assert kernels.roofline.flops == sum(each.flops for each in result.launches)
    assert kernels.roofline.hbm_bytes == sum(each.hbm_bytes for each in result.launches)
    of_run = {use.kind: use for use in result.busiest}
    for use in kernels.busiest:
        assert use.utilisation <= 1.0 and use.run_utilisation <= of_run[use.kind].utilisation
        alone = [busy.busy_ns for each in result.launches for busy in each.busiest if busy.name == use.name]
        assert use.busy_ns >= sum(alone) * (1 - 1e-12)
    (gemm,) = (use for use in kernels.busiest if use.kind == "pe_gemm")
    assert gemm.run_utilisation == pytest.approx(gemm.busy_ns / result.total_ns)  # it works in kernels alone


def test_an_instant_in_which_two_launches_run_counts_once(plugins: Plugins) -> None:
    """Launches on different PEs, side by side: the time that any ran, and nothing above 100 %."""

    def kernel(x_ptr: Any, n: int, tl: Any) -> None:
        at = x_ptr + tl.arange(0, n)
        tl.store(at, tl.load(at) * 2.0)

    def bench(rt: Any) -> None:
        tensors = [rt.tensor(np.ones(512, np.float32)) for _ in range(4)]
        handles = [rt.launch(kernel, x, 512 >> at, pes=[at], wait=False) for at, x in enumerate(tensors)]
        for handle in handles:
            rt.wait(handle)

    result = kb.run(bench, "tiny", plugins=plugins)
    first = min(each.started_ns for each in result.launches)
    last = max(each.ended_ns for each in result.launches)
    assert result.kernels is not None
    assert result.kernels.time_ns == last - first == result.phases["kernel"] < sum(e.time_ns for e in result.launches)
    assert all(0 < use.utilisation <= 1 for use in result.kernels.busiest)
    assert result.kernels.roofline is not None
    assert result.kernels.roofline.hbm_bytes == sum(2 * 4 * (512 >> at) for at in range(4))


@pytest.mark.filterwarnings("ignore::kernbench_core.errors.KernbenchWarning")
@pytest.mark.parametrize("unit", ["builtin.pe_gemm", "builtin.pe_gemm_systolic"])
@pytest.mark.parametrize(
    ("bench", "params"), [("gemm", SIZE), ("gemm", {"M": 64, "N": 64, "K": 32}), ("gemm-stream", {})]
)
def test_time_at_work_is_filling_empty_cells_and_what_full_arrays_take(
    plugins: Plugins, unit: str, bench: str, params: dict[str, int]
) -> None:
    """What is lost neither to filling nor to empty cells is 2MNK at the peak rate, or waits for the port."""
    options: dict[str, Any] = {"set": (f"components.pe_gemm.impl={unit}",), "data": False, "plugins": plugins}
    result = kb.run(bench, "tiny", params, **options)
    assert result.kernels is not None and result.kernels.roofline is not None
    (fill,) = result.kernels.fills
    (gemm,) = (each for each in result.kernels.roofline.resources if each.kind == "pe_gemm")
    ideal = gemm.achieved * result.kernels.time_ns / (gemm.peak / gemm.resources)
    useful = fill.busy_ns - fill.filling_ns - fill.unfilled_ns
    assert useful >= ideal * (1 - 1e-9)
    if bench == "gemm-stream":
        assert useful == pytest.approx(ideal, rel=1e-3)
    assert fill.lost == (fill.filling_ns + fill.unfilled_ns) / fill.busy_ns


def load_in_turn(x: Any, tl: Any) -> None:
    """Load one tile four times."""
    for _ in range(4):
        tl.load(x + tl.arange(0, 1024))


@pytest.mark.filterwarnings("ignore:a UCIe port should reach")
@pytest.mark.parametrize("launches", [1, 2])
def test_what_is_booked_ahead_does_not_count_before_it_happens(plugins: Plugins, launches: int) -> None:
    """A copy on a slow mesh is booked far ahead; the timeline has each message, and says what was busy by then."""

    def bench(rt: Any) -> None:
        z = rt.tensor((1024,), "f32", name="z")
        for _ in range(launches):
            rt.launch(load_in_turn, z, grid=(1,), wait=False)
            rt.tensor((1 << 14,), "f32", name="y")
        rt.wait_all()

    result = kb.run(bench, "tiny", set={"cube.noc.bandwidth": "16 GB/s"}, timeline=True, plugins=plugins)
    assert result.timeline is not None
    activity = result.timeline.activity
    gb_per_s = dict(zip(result.links["name"], result.links["gb_per_s"], strict=True))
    counted = dict.fromkeys(gb_per_s, 0.0)
    for launch in result.launches:
        before = activity.edges_ns[:-1] < launch.ended_ns
        for link in launch.links:
            counted[link["name"]] += link["busy_ns"]
            busy = activity.busy_ns[activity.places.index(link["name"])][before].sum()
            assert link["busy_ns"] >= 0.0 and 0 <= link["bytes"] <= link["busy_ns"] * gb_per_s[link["name"]]
            assert counted[link["name"]] <= busy + 0.01
    first = {link["name"]: link for link in result.launches[0].links}["host->sip0.io0.pcie_ep"]
    assert first["bytes"] == pytest.approx(first["busy_ns"] * 4096 / 71.09375, abs=1)
