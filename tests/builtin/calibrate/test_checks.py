"""Rows that check a fit: others stand in for them, and they are no burden to simulate."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.calibrate.checks import SPARE, kept_out


@given(st.integers(3, 20), st.floats(100, 10_000), st.floats(1, 500))
def test_what_is_kept_out_is_in_the_middle_and_long_and_is_not_needed(
    count: int, latency: float, bandwidth: float
) -> None:
    """Of sizes by powers of two: both terms are told as well without the two."""
    sizes = 1024.0 * 2 ** np.arange(count)
    ns = 10 * latency + sizes / bandwidth
    parts = np.column_stack([10 * latency / ns, sizes / bandwidth / ns])
    found = kept_out(parts, ns)
    if count < 2 + SPARE:
        assert found == []
    if found:
        middle, long = found
        assert 0 < middle < long and ns[long] <= 16 * ns[0]
        rest = np.delete(parts, found, axis=0)
        assert np.all(0.01 * np.sqrt(np.diag(np.linalg.inv(rest.T @ rest))) <= 0.5)


def test_a_row_that_alone_tells_of_a_parameter_stays() -> None:
    ns = np.arange(1.0, 13)
    parts = np.column_stack([np.ones(12), np.eye(12)[6]])
    assert 6 not in kept_out(parts, ns) and len(kept_out(parts, ns)) == 2
