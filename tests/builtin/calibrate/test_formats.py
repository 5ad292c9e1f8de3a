"""Copies, products and memory accesses: parameters of known machines are found again from their own times."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernbench_builtin.calibrate import Calibrated, calibrate, open_logs
from kernbench_builtin.calibrate.plugin import CALIBRATORS
from kernbench_builtin.probe.transfers import Prober
from kernbench_core.calibration import LogOptions, LogRow, MachineChoice
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compile_topology

OPTIONS = LogOptions(simulate_to=1 << 20)


def measured(plugins: Plugins, form: str, header: str, cases: list[str], machine: MachineChoice) -> str:
    """Return the CSV of `cases` with what the machine takes for each."""
    calibrator = plugins.of(CALIBRATORS).load(form)(plugins, OPTIONS)
    rows: list[LogRow] = list(calibrator.read("x", "\n".join([f"{header},time_ns", *(f"{one},1" for one in cases)])))
    times = calibrator.simulate(rows, machine)
    return "\n".join([f"{header},time_ns", *(f"{one},{t.ns!r}" for one, t in zip(cases, times, strict=True))])


def fitted(plugins: Plugins, log: Path, text: str, topology: str = "tiny", *chosen: str) -> Calibrated:
    log.write_text(text)
    return calibrate(open_logs([log], plugins, OPTIONS), MachineChoice(topology), chosen)


def values(found: Calibrated) -> dict[str, float]:
    return {one.unknown.name: one.value for one in found.values}


@settings(max_examples=5, phases=[Phase.generate])
@given(st.floats(100, 9000), st.floats(2, 100), st.floats(100, 9000), st.floats(0.2, 1))
def test_copies_give_both_overheads_pcie_and_hbm(
    plugins: Plugins, tmp_path_factory: pytest.TempPathFactory, dma: float, pcie: float, launch: float, hbm: float
) -> None:
    """All four at once, each from the copies that tell of it."""
    machine = MachineChoice("tiny", (
        f"components.host.params.overhead={dma} ns", f"host.pcie.bandwidth={pcie} GB/s",
        f"components.io_cpu.params.overhead={launch} ns", f"components.hbm_ctrl.params.efficiency={hbm}",
    ))  # fmt: skip
    cases = [f"{kind},{nbytes}" for kind in ("h2d", "d2h", "d2d") for nbytes in (64, 65536, 1 << 20, 1 << 22)]
    text = measured(plugins, "copies", "kind,bytes", cases, machine)
    found = fitted(plugins, tmp_path_factory.mktemp("log") / "copies.csv", text)
    assert values(found) == {
        "dma-overhead": pytest.approx(dma, rel=5e-3, abs=2), "pcie-bandwidth": pytest.approx(pcie, rel=5e-3),
        "launch-overhead": pytest.approx(launch, rel=5e-3, abs=5), "hbm-efficiency": pytest.approx(hbm, rel=5e-3),
    }  # fmt: skip
    assert found.mean_error < 1e-3


ROWS = ["h2d,64,2.0", "h2d,1048576,40", "h2d,4194304,150", "d2h,1048576,37"]


def test_a_row_that_is_there_ten_times_tells_no_more_than_once(plugins: Plugins, tmp_path: Path) -> None:
    """Values and their errors are the same to the last bit; each of the rows is in the report."""
    once = fitted(plugins, tmp_path / "a.csv", "\n".join(["kind,bytes,time_us", *ROWS]))
    often = fitted(plugins, tmp_path / "a.csv", "\n".join(["kind,bytes,time_us", *ROWS, *[ROWS[1]] * 9, *ROWS]))
    assert often.values == once.values and len(often.rows) == 17 and often.rounds == once.rounds
    assert all(one.error is not None and one.error > 0.01 for one in once.values)
    assert [row.simulated for row in often.rows[4:13]] == [once.rows[1].simulated] * 9


def test_rows_of_one_thing_count_as_their_mean(plugins: Plugins, tmp_path: Path) -> None:
    """Whichever stands first, and each is as far off as it is; two of one size are one for what a fit needs."""
    parts = [ROWS[0], "h2d,1048576,36", *ROWS[2:], "h2d,1 MiB,44"]
    mean = fitted(plugins, tmp_path / "a.csv", "\n".join(["kind,bytes,time_us", *ROWS]))
    for rows in (parts, parts[::-1]):
        found = fitted(plugins, tmp_path / "a.csv", "\n".join(["kind,bytes,time_us", *rows]))
        assert values(found) == pytest.approx(values(mean), rel=1e-6)
        simulated = mean.rows[1].simulated.ns
        measured = sorted(row.row.ns for row in found.rows if row.row.label == "h2d 1 MiB")
        assert measured == [36e3, 44e3]
        off = sorted(row.error for row in found.rows if row.row.label == "h2d 1 MiB")
        assert off == pytest.approx([simulated / 44e3 - 1, simulated / 36e3 - 1], rel=1e-6)
    with pytest.raises(UsageError, match=r"must have at least as many different measurements, not 1; "):
        fitted(plugins, tmp_path / "a.csv", "kind,bytes,time_us\nh2d,1048576,36\nh2d,1 MiB,44\n")


@pytest.mark.parametrize(("text", "told"), [
    ("kind,bytes,time_us\nh2d,64,471\nh2d,64 KiB,31\nd2h,1 MiB,4.1\nh2d,16 MiB,2.4\n",
     "h2d 64 B took 471 us ({log}:2), and h2d 16 MiB 2.4 us ({log}:5)"),
    ("M,N,K,dtype,time\n128,128,128,f16,9 us\n256,256,256,f16,7 us\n",
     "f16 128 x 128 x 128 took 9 us ({log}:2), and f16 256 x 256 x 256 7 us ({log}:3)"),
    ("collective,ranks,bytes,time_us\nall_reduce,4,1 KiB,80\nall_reduce,4,64 KiB,20\nall_reduce,4,4 MiB,50\n",
     "all_reduce of 4 ranks, 1 KiB took 80 us ({log}:2), and all_reduce of 4 ranks, 64 KiB 20 us ({log}:3)"),
])  # fmt: skip
def test_times_that_fall_with_size_are_told_as_such(plugins: Plugins, tmp_path: Path, text: str, told: str) -> None:
    """With the two that fall the most; not as values that no row tells of."""
    log = tmp_path / "a.csv"
    with pytest.raises(UsageError) as caught:
        fitted(plugins, log, text)
    assert str(caught.value) == (
        f"times must rise with size, and most of these fall: {told.format(log=log)}; correct the log: columns may "
        "be swapped, or be rates."
    )


def test_a_copy_of_one_chunk_takes_what_the_probe_measures(plugins: Plugins) -> None:
    """Which sends it by itself: over PCIe, either way."""
    graph = compile_topology(configure(plugins, "tiny"), plugins)
    prober = Prober(graph, plugins.components)
    calibrator = plugins.of(CALIBRATORS).load("copies")(plugins, OPTIONS)
    rows = calibrator.read("x", "kind,bytes,time_ns\nh2d,4096,1\nd2h,4096,1\n")
    took = [one.ns for one in calibrator.simulate(rows, MachineChoice("tiny"))]
    assert took == [prober.measure(case, 4096).total_ns for case in prober.cases()[:2]]


def test_large_copies_inside_get_the_bandwidth_of_the_memory(plugins: Plugins) -> None:
    """Each byte is read and written once, by four slices; writes hold their channels a little longer."""
    calibrator = plugins.of(CALIBRATORS).load("copies")(plugins, LogOptions(simulate_to=4 << 20))
    (row,) = calibrator.simulate(calibrator.read("x", "kind,bytes,time_ns\nd2d,1 GiB,1\n"), MachineChoice("tiny"))
    least = 2 * (1 << 30) / (4 * 4 * 25.6 * 0.923)
    assert row.extended and least <= row.ns < 1.08 * least


@settings(max_examples=5, phases=[Phase.generate])
@given(st.floats(200, 9000), st.floats(0.1, 0.6), st.floats(0.1, 0.9))
def test_products_give_the_launch_and_the_arrays_efficiency_by_dtype(
    plugins: Plugins, tmp_path_factory: pytest.TempPathFactory, launch: float, half: float, single: float
) -> None:
    """As a part of the rate that the machine has, 1 and a quarter; contention moves times by a per cent."""
    machine = MachineChoice("tiny", (
        f"components.io_cpu.params.overhead={launch} ns", f"components.pe_gemm.params.rates.f16={half}",
        f"components.pe_gemm.params.rates.f32={single / 4}",
    ))  # fmt: skip
    cases = ["64,64,64,f16", "256,256,512,f16", "512,512,512,f16", "128,128,128,f32", "256,256,512,f32"]
    text = measured(plugins, "gemm", "M,N,K,dtype", cases, machine)
    found = fitted(plugins, tmp_path_factory.mktemp("log") / "gemm.csv", text)
    assert values(found) == {
        "launch-overhead": pytest.approx(launch, rel=0.02, abs=20),
        "gemm-efficiency-f16": pytest.approx(half, rel=0.03), "gemm-efficiency-f32": pytest.approx(single, rel=0.03),
    }  # fmt: skip
    assert found.mean_error < 0.01


def test_a_large_product_is_continued_along_k(plugins: Plugins) -> None:
    """An eighth of it is simulated, and it comes within two per cent of all of it."""
    found = []
    for simulate_to in (128 << 10, 1 << 20):
        calibrator = plugins.of(CALIBRATORS).load("gemm")(plugins, LogOptions(simulate_to=simulate_to))
        rows = calibrator.read("x", "M,N,K,dtype,time_ns\n128,128,32768,f32,1\n")
        found += calibrator.simulate(rows, MachineChoice("tiny"))
    short, whole = found
    assert (short.extended, whole.extended) == (True, False)
    assert short.ns == pytest.approx(whole.ns, rel=0.02)


@settings(max_examples=10, phases=[Phase.generate])
@given(st.floats(5, 500))
def test_bursts_alone_give_the_controllers_overhead(
    plugins: Plugins, tmp_path_factory: pytest.TempPathFactory, overhead: float
) -> None:
    """Of a memory with banks and rows; a stream hardly depends on it, and a part of a clock is lost in the clock."""
    machine = MachineChoice("u280_hbm", (f"components.hbm_ctrl.params.overhead={overhead} ns",))
    cases = ["row_hit,32", "row_closed,32", "row_conflict,32", "stream,262144"]
    text = measured(plugins, "memory", "pattern,bytes", cases, machine)
    found = fitted(plugins, tmp_path_factory.mktemp("log") / "memory.csv", text, "u280_hbm")
    assert values(found) == {"memory-overhead": pytest.approx(overhead, abs=0.5)}


def test_bursts_alone_take_the_times_of_the_standard(plugins: Plugins) -> None:
    """tCL + tBL for an open row, and tRCD and tRP more for a closed and another one: 13, 2, 13 and 13 whole clocks."""
    calibrator = plugins.of(CALIBRATORS).load("memory")(plugins, OPTIONS)
    rows = calibrator.read("x", "pattern,bytes,time_ns\nrow_hit,32,1\nrow_closed,32,1\nrow_conflict,32,1\n")
    machine = MachineChoice("u280_hbm", ("components.hbm_ctrl.params.overhead=10 ns",))
    clock = 16 / 14.4
    hit = 10 + clock / 2 + 15 * clock  # half a clock to its edge, on average
    assert [one.ns for one in calibrator.simulate(rows, machine)] == [
        pytest.approx(hit + more * clock, abs=0.1) for more in (0, 13, 26)
    ]


def test_what_a_model_has_not_is_refused(plugins: Plugins, tmp_path: Path) -> None:
    """A memory without rows, and an array without rates of the dtype."""
    with pytest.raises(UsageError) as caught:
        fitted(plugins, tmp_path / "a.csv", "pattern,bytes,time\nrow_hit,32,100 ns\n")
    assert str(caught.value) == (
        "a fit of row_hit must have a controller with rows, as builtin.hbm_ctrl_bank, which this machine's hbm_ctrl is "
        "not; set components.hbm_ctrl.impl, or leave such rows out."
    )
    log = tmp_path / "b.csv"
    log.write_text("M,N,K,dtype,time\n64,64,64,f16,1 us\n")
    logs = open_logs([log], plugins, OPTIONS)
    with pytest.raises(UsageError) as caught:
        calibrate(logs, MachineChoice("tiny", ("components.pe_gemm.impl=builtin.pe_gemm_systolic",)))
    assert str(caught.value) == (
        "a fit of products must have a model of pe_gemm with a parameter rates that has f16, not "
        "builtin.pe_gemm_systolic; choose builtin.pe_gemm, or leave the log out."
    )
    log.write_text("kind,bytes,time\nd2d,64,5 us\nd2d,1 MiB,9 us\n")
    logs = open_logs([log], plugins, OPTIONS)
    with pytest.raises(UsageError) as caught:
        calibrate(logs, MachineChoice("tiny", ("components.hbm_ctrl.impl=builtin.hbm_ctrl_bank",)))
    assert str(caught.value) == (
        "a fit of copies d2d must have a model of hbm_ctrl with a parameter efficiency, not builtin.hbm_ctrl_bank; "
        "choose builtin.hbm_ctrl, or leave such rows out."
    )


def test_a_product_that_no_memory_holds_is_told_with_its_row(plugins: Plugins, tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    with pytest.raises(UsageError) as caught:
        fitted(plugins, log, "M,N,K,dtype,time\n8,8,8,f16,9 us\n1e9,1e9,1e9,f16,9 s\n")
    assert str(caught.value).startswith(f"{log}:3: a product must be one that this machine can run; the HBM slice of ")


@pytest.mark.parametrize("text", ["kind,bytes,time\nh2d,64,5 us\n", "M,N,K,dtype,time\n8,8,8,f16,9 us\n"])
def test_routers_alone_have_nothing_to_measure(plugins: Plugins, tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fitted(plugins, tmp_path / "a.csv", text, "mesh")
    assert str(caught.value).endswith(
        " is a mesh on its own, which has no PEs to run measurements on; drive it with 'kernbench probe --traffic', or "
        "choose another --topology."
    )


_WORDS = st.sampled_from([
    "kind", "bytes", "time", "time_us", "pattern", "M", "N", "K", "dtype", "h2d", "64", "1e400", "nan", "-1", "1 KiB",
    "2 us", "size", "count", "type", "float", "#", "Rank", "all_reduce_perf", "collective", "ranks", '"', "\x00", "é",
])  # fmt: skip


@given(st.lists(st.lists(_WORDS, max_size=9), max_size=6), st.sampled_from([",", " ", ", "]), st.data())
def test_whatever_stands_in_a_log_is_read_or_refused_at_its_line(
    plugins: Plugins, tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]], between: str,
    data: st.DataObject,
) -> None:  # fmt: skip
    """By each format that there is, and never by another error."""
    log = tmp_path_factory.getbasetemp() / "any.log"
    log.write_text("\n".join(between.join(line) for line in lines), encoding="utf-8")
    form = data.draw(st.sampled_from([None, *plugins.of(CALIBRATORS)]))
    try:
        rows = open_logs([log], plugins, OPTIONS, form).rows
    except ConfigError as error:
        assert error.problems and all(problem.startswith(f"{log}:") for problem in error.problems)
    else:
        assert rows and all(0 < row.ns < float("inf") for row in rows)
