"""`triton.testing` and `triton.runtime.driver`: benchmarks in simulated time, and what scripts ask of the device."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from tests.builtin.triton.kernels import scaling

# mypy: disable-error-code="import-not-found"


def test_do_bench_gives_the_simulated_time_of_the_second_call() -> None:
    """Of all kernels that it launches; of none, NaN and a note."""
    x = np.ones(64, np.float32)
    with kb.triton("tiny") as sim:
        import triton

        kernel = scaling()

        def work() -> None:
            kernel[(2,)](x, x, 64, BLOCK=32)
            kernel[(1,)](x, x, 64, BLOCK=64)

        ms = triton.testing.do_bench(work, warmup=1, rep=1)
        assert ms == pytest.approx(sum(figures.time_ns for figures in sim.launches[2:]) * 1e-6)
        assert len(sim.launches) == 4
        assert triton.testing.do_bench(work, quantiles=[0.5, 0.2, 0.8]) == pytest.approx([ms] * 3)
        assert triton.testing.do_bench(work, return_mode="all") == pytest.approx([ms])
        assert triton.runtime.driver.active.get_benchmarker()(work, quantiles=(0.5,)) == pytest.approx(ms)
        assert math.isnan(triton.testing.do_bench(lambda: None))
        assert sim.notes == [
            "do_bench gives NaN for a function that launches no kernel: what the host computes takes no simulated time."
        ]
        with pytest.raises(kb.KernbenchError) as error:
            triton.testing.do_bench(work, return_mode="best")
    assert str(error.value) == "return_mode of do_bench must be one of min, max, mean, median, all, not 'best'."


def test_a_report_is_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With a column for each line, in the file too; plots are left out, which is said."""
    with kb.triton("tiny") as sim:
        import triton

        @triton.testing.perf_report(
            triton.testing.Benchmark(["n"], [8, 1000], "way", ["a", "b"], ["A", "B"], "sums", {"more": 1}, ylabel="ms")
        )
        def bench(n: int, way: str, more: int) -> Any:
            return (n + more, 0.0, 1.0) if way == "a" else n / 3

        rows = bench.run(print_data=True, show_plots=True, save_path=str(tmp_path / "out"), return_df=True)
        assert sim.notes == ["perf_report draws no plots: the numbers are in its table."]
    assert rows == [{"n": 8, "A": 9, "B": 8 / 3}, {"n": 1000, "A": 1001, "B": 1000 / 3}]
    assert capsys.readouterr().out == "sums:\n   n     A        B  (ms)\n   8     9  2.66667\n1000  1001  333.333\n"
    assert (tmp_path / "out" / "sums.csv").read_text() == f"n,A,B\n8,9,{8 / 3}\n1000,1001,{1000 / 3}\n"


def test_a_report_is_of_the_first_points_where_the_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The others are not run, which is said; 0 is none of them, and a bad count is refused."""
    ran = []
    with kb.triton("tiny", points=2) as sim:
        import triton

        bench = triton.testing.Benchmark
        benches = [bench(["n"], range(most), "way", ["a"], ["A"], f"to{most}", {}) for most in (3, 2)]
        rows = triton.testing.perf_report(benches)(lambda n, way: ran.append(n) or n).run(return_df=True)
    assert rows == [[{"n": 0, "A": 0}, {"n": 1, "A": 1}]] * 2
    assert ran == [0, 1, 0, 1]
    assert sim.notes == ["perf_report ran the first 2 of 3 points of 'to3'."]
    with kb.triton("tiny", points=0):
        assert triton.testing.perf_report(benches[0])(ran.append).run(return_df=True) == []
    with pytest.raises(kb.KernbenchError) as error:
        kb.triton("tiny", points=-1)
    assert str(error.value) == "points must be a count of points of a benchmark, 0 or more, not -1."


def test_arrays_are_compared() -> None:
    """To 1e-2 unless something else is asked for; NaN is like NaN, and dtypes of few bits are compared as floats."""
    with kb.triton("tiny"):
        import triton

        close = triton.testing.assert_close
        close(np.array([1.0, np.nan], np.float16), np.array([1.009, np.nan]))
        for y, given in ((1.02, {}), (1.009, {"atol": 1e-3}), (np.nan, {})):
            with pytest.raises(AssertionError, match="which one"):
                close(np.array([1.0]), np.array([y]), err_msg="which one", **given)
        close(np.array([100.0]), np.array([101.0]), rtol=0.01, atol=0)


def test_the_device_is_the_machine() -> None:
    """One program a PE, as scripts compute it; sizes are rounded alike inside kernels and outside of them."""
    out = np.zeros(3, np.int32)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl
        from triton.backends.compiler import GPUTarget
        from triton.runtime import driver

        @triton.jit
        def divide(out_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            tl.store(out_ptr, triton.cdiv(n, BLOCK))
            tl.store(out_ptr + 1, triton.cdiv(n + 3, BLOCK))
            tl.store(out_ptr + 2, triton.next_power_of_2(BLOCK - 1))

        divide[(1,)](out, 9, BLOCK=4)
        assert out.tolist() == [3, 3, 4] == [triton.cdiv(9, 4), triton.cdiv(12, 4), triton.next_power_of_2(3)]
        device = driver.active.get_active_torch_device()
        found = driver.active.utils.get_device_properties(device.index)
        assert found["multiprocessor_count"] == 4
        compiled = scaling().warmup(out, out, 1, BLOCK=1, num_warps=8, grid=(1,))
        compiled._init_handles()
        by_registers = found["max_num_regs"] // (compiled.n_regs * found["warpSize"] * 8)
        assert min(by_registers, found["max_shared_mem"] // compiled.metadata.shared) == 1
        assert driver.active.get_current_target() == GPUTarget("cuda", 80, 32)
        assert driver.active.get_current_device() == 0
        from triton.runtime.driver import driver as imported

        assert imported is driver is triton.runtime.driver
    assert len(sim.launches) == 1
