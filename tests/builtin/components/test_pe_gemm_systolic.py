"""The systolic array: its cycles by the closed forms, and by an array that is clocked cell by cell."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.components.pe_gemm_systolic import PeGemmSystolic
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Rig, assert_ready_at

DATAFLOWS = ("output_stationary", "weight_stationary", "input_stationary")
WIRE_NS = 1.0
sizes = st.tuples(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000))
arrays = st.tuples(st.integers(1, 256), st.integers(1, 256))


class Product(MsgBase):
    """A product of (m, k) by (k, n)."""

    def __init__(self, m: int, k: int, n: int) -> None:
        super().__init__()
        self.m, self.k, self.n = m, k, n


def cycles(dataflow: str, array: tuple[int, int], size: tuple[int, int, int], overlap: bool = False) -> int:
    """What the model says."""
    params = {"rows": array[0], "columns": array[1], "dataflow": dataflow, "overlap": overlap}
    found: Any = Rig(PeGemmSystolic, params).under_test
    return int(found.cycles(SimpleNamespace(m=size[0], k=size[1], n=size[2])))


@settings(max_examples=150)
@given(arrays, sizes)
def test_cycles_are_those_of_the_closed_forms(array: tuple[int, int], size: tuple[int, int, int]) -> None:
    """No overlap between folds."""
    (R, C), (M, K, N) = array, size  # noqa: N806
    assert cycles("output_stationary", array, size) == math.ceil(M / R) * math.ceil(N / C) * (K + R + C - 2) - 1
    assert cycles("weight_stationary", array, size) == math.ceil(K / R) * math.ceil(N / C) * (M + 2 * R + C - 2) - 1
    assert cycles("input_stationary", array, size) == math.ceil(K / R) * math.ceil(M / C) * (N + 2 * R + C - 2) - 1


def padded(matrix: np.ndarray[Any, Any], rows: int, columns: int) -> np.ndarray[Any, Any]:
    """Fill up with zeros to whole blocks."""
    return np.pad(matrix, ((0, -matrix.shape[0] % rows), (0, -matrix.shape[1] % columns)))


def entry(stream: np.ndarray[Any, Any], at: int) -> float:
    """What enters at a cycle: an element, or nothing before and after."""
    return float(stream[at]) if 0 <= at < len(stream) else 0.0


def clock_output_stationary(R: int, C: int, a: Any, b: Any) -> tuple[Any, int]:  # noqa: N803
    """Clock R x C cells; A enters from the left and B from above, skewed; return the product and the cycles."""
    a, b = padded(a, R, 1), padded(b, 1, C)
    out, clock, k = np.zeros((a.shape[0], b.shape[1])), 0, a.shape[1]
    for row in range(0, a.shape[0], R):
        for col in range(0, b.shape[1], C):
            across, down, done = np.zeros((R, C)), np.zeros((R, C)), np.zeros((R, C), int)
            sums = np.zeros((R, C))
            t = 0
            while done.min() < k:
                across[:, 1:], down[1:, :] = across[:, :-1].copy(), down[:-1, :].copy()
                across[:, 0] = [entry(a[row + i], t - i) for i in range(R)]
                down[0, :] = [entry(b[:, col + j], t - j) for j in range(C)]
                sums += across * down
                done += [[i + j <= t < i + j + k for j in range(C)] for i in range(R)]
                t += 1
            out[row : row + R, col : col + C] = sums
            clock += t
    return out, clock


def clock_stationary(R: int, C: int, held: Any, moving: Any) -> tuple[Any, int]:  # noqa: N803
    """Clock R x C cells that hold blocks of `held` (K x X); rows of `moving` (T x K) enter from the left, skewed.

    Weights are shifted in from above, a row a cycle; partial sums move down and leave below. T x X comes out.
    """
    held, moving = padded(held, R, C), padded(moving, 1, R)
    total, clock = np.zeros((moving.shape[0], held.shape[1])), 0
    for row in range(0, held.shape[0], R):
        for col in range(0, held.shape[1], C):
            cells = np.zeros((R, C))
            for step in range(R):
                cells = np.vstack([held[row + R - 1 - step, col : col + C][None], cells[:-1]])
                clock += 1
            across, sums = np.zeros((R, C)), np.zeros((R, C))
            left = t = 0
            while left < moving.shape[0] * C:
                across[:, 1:] = across[:, :-1].copy()
                across[:, 0] = [entry(moving[:, row + i], t - i) for i in range(R)]
                sums = np.vstack([np.zeros((1, C)), sums[:-1]]) + across * cells
                for j in range(C):
                    if 0 <= (index := t - (R - 1) - j) < moving.shape[0]:
                        total[index, col + j] += sums[-1, j]
                        left += 1
                t += 1
            clock += t
    return total, clock


@settings(max_examples=25)
@given(
    st.sampled_from(DATAFLOWS),
    st.tuples(st.integers(1, 5), st.integers(1, 4)),
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
)
def test_cycles_are_those_of_an_array_that_is_clocked(
    dataflow: str, array: tuple[int, int], size: tuple[int, int, int]
) -> None:
    """The clocked cells give numpy's product, and the number of their last cycle, from 0, is the model's."""
    m, k, n = size
    random = np.random.default_rng(m * 100 + k * 10 + n)
    a, b = random.integers(-4, 5, (m, k)).astype(float), random.integers(-4, 5, (k, n)).astype(float)
    if dataflow == "output_stationary":
        out, clocked = clock_output_stationary(*array, a, b)
    elif dataflow == "weight_stationary":
        out, clocked = clock_stationary(*array, b, a)
    else:
        out, clocked = clock_stationary(*array, a.T, b.T)
        out = out.T
    np.testing.assert_array_equal(out[:m, :n], a @ b)
    assert cycles(dataflow, array, size) == clocked - 1


@given(st.sampled_from(DATAFLOWS), arrays, sizes)
def test_overlapping_folds_hide_filling_and_loading(
    dataflow: str, array: tuple[int, int], size: tuple[int, int, int]
) -> None:
    """A fold streams once its load is done and the one before has entered; the last one drains."""
    (R, C), (M, K, N) = array, size  # noqa: N806
    down, across, stream = {
        "output_stationary": (M, N, K), "weight_stationary": (K, N, M), "input_stationary": (K, M, N)
    }[dataflow]  # fmt: skip
    load = 0 if dataflow == "output_stationary" else R
    loaded, entered = load, 0
    for _ in range(min(50, math.ceil(down / R) * math.ceil(across / C))):
        begins = max(loaded, entered)
        entered, loaded = begins + stream, begins + load
    folds = math.ceil(down / R) * math.ceil(across / C)
    rest = (folds - min(50, folds)) * max(stream, load)
    assert cycles(dataflow, array, size, overlap=True) == entered + rest + R + C - 2 - 1
    assert cycles(dataflow, array, size, overlap=True) <= cycles(dataflow, array, size)


@pytest.mark.parametrize(
    ("params", "service_ns"),
    [
        ({"rows": 8, "columns": 8}, 2 * 3 * (5 + 8 + 8 - 2) - 1),
        ({"rows": 8, "columns": 8, "clock": "2 GHz", "overhead": "7 ns"}, 7 + (2 * 3 * (5 + 8 + 8 - 2) - 1) / 2),
        ({"rows": 8, "columns": 8, "dataflow": "weight_stationary"}, 3 * (10 + 16 + 8 - 2) - 1),
        ({"rows": 8, "columns": 8, "dataflow": "input_stationary"}, 2 * (20 + 16 + 8 - 2) - 1),
    ],
)
def test_a_product_takes_its_cycles_over_the_clock(params: dict[str, object], service_ns: float) -> None:
    """Overhead (0 by default) + cycles / clock, and no grid step less: 10 x 5 by 5 x 20."""
    assert_ready_at(Rig(PeGemmSystolic, params).ask(0, msg=Product(10, 5, 20)), WIRE_NS + service_ns + WIRE_NS)


def test_the_peak_is_what_all_cells_do() -> None:
    """Two operations a cell and cycle, of all arrays; nothing is faster than that."""
    params = {"rows": 8, "columns": 4, "clock": "2 GHz", "servers": 3}
    assert Rig(PeGemmSystolic, params).under_test.peak_flops(Product(1, 1, 1)) == 2 * 8 * 4 * 2 * 3


def test_an_unknown_dataflow_is_refused(plugins) -> None:
    param = next(each for each in plugins.components.declared("builtin.pe_gemm_systolic") if each.name == "dataflow")
    with pytest.raises(ValueError) as raised:
        param.convert("row_stationary")
    assert str(raised.value) == (
        "must be one of 'output_stationary', 'weight_stationary', 'input_stationary', not 'row_stationary'."
    )
