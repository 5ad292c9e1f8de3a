"""gemm-stream: the rate of n products in a row goes to the peak as n T to n T and one fill."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.runs.bench_run import run as run_bench

PRODUCTS = (1, 2, 3, 5, 16, 100)
PEAK = 2 * 32 * 64 / 1e3
"""What 32 x 64 cells do at 1 GHz, in TFLOP/s."""


@pytest.mark.parametrize(
    ("size", "dtype", "ahead", "entering"),
    [
        ((128, 128, 128), "f16", 2, 4 * 2 * 128),
        ((100, 70, 60), "f16", 3, 4 * 2 * 60),
        ((64, 64, 64), "f32", 2, 2 * 64 * 4),
        ((64, 128, 96), "int8", 4, 2 * 2 * 48),
    ],
)
def test_the_rate_goes_to_the_peak_as_n_products_to_their_fill(
    plugins: Any, size: tuple[int, int, int], dtype: str, ahead: int, entering: int
) -> None:
    """Within 1 % (it is exact): 10 ns of start-up, 94 cycles until the last cell begins, 32 to shift out."""
    m, n, k = size
    params = {"products": ",".join(map(str, PRODUCTS)), "ahead": ahead, "m": m, "n": n, "k": k, "dtype": dtype}
    rows = run_bench("gemm-stream", "tiny", params, plugins=plugins, verify_data=True).rows
    assert [row["products"] for row in rows] == list(PRODUCTS)
    for row in rows:
        alike = row["products"] * entering
        assert row["gemm_ns"] == alike + 10 + 94 + 32
        of_peak = row["TFLOP/s"] / (2e-3 * m * n * k / entering)  # ragged blocks lose what they do not fill
        assert abs(of_peak / (alike / (alike + 136)) - 1) < 0.01
        assert row["TFLOP/s"] < PEAK * {"f32": 0.25, "int8": 2}.get(dtype, 1)


def test_a_kernel_that_waits_for_each_product_pays_for_each(plugins: Any) -> None:
    """Issue, two wires, start-up, fill and drain every time; one product in the queue is enough to hide them."""
    took = {}
    for ahead in (0, 1, 2):
        (row,) = run_bench("gemm-stream", "tiny", {"products": "20", "ahead": ahead}, plugins=plugins).rows
        took[ahead] = row["gemm_ns"]
    assert took[0] > 20 * (1024 + 136)
    assert took[1] == took[2] == 20 * 1024 + 136


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"products": "1,x"}, "parameter 'products' must list positive integers, not '1,x'; write 1,4,16."),
        ({"products": " , "}, "parameter 'products' must list positive integers, not ' , '; write 1,4,16."),
        ({"ahead": -1}, "parameter 'ahead' must be 0 or more, not -1; give 0 to wait for each product."),
        ({"k": 0}, "parameter 'k' must be a positive integer, not 0; give 1 or more."),
    ],
)
def test_wrong_parameters_are_refused(plugins: Any, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        run_bench("gemm-stream", "tiny", wrong, plugins=plugins)
    assert str(raised.value) == sentence
