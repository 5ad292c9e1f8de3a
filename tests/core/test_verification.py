"""The comparison of results with what was expected, where arithmetic on the error says nothing: infinities and NaN."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.executor import DataExecutor
from kernbench_core.oplog import Access, OpLog
from kernbench_core.regions import Region
from kernbench_core.store import MemoryStore
from kernbench_core.verification import Verification

INF, NAN = float("inf"), float("nan")


def compared(got: float, want: float) -> Verification:
    """Compare one f32 in memory with what was expected."""
    store = MemoryStore()
    store.write("hbm", 0, np.array([got], np.float32))
    return DataExecutor(OpLog(), store).verify({"x": (Access("hbm", (Region(0, 4),)), np.array([want], np.float32))})


@pytest.mark.parametrize(("got", "want"), [(INF, INF), (-INF, -INF), (NAN, NAN), (1.000001, 1.0)])
def test_equal_infinities_and_nan_are_right(got: float, want: float) -> None:
    """What is the same, or near a finite number, passes."""
    verdict = compared(got, want)
    assert (verdict.ok, verdict.failures) == (True, ())


@pytest.mark.parametrize(
    ("got", "want"), [(3.0, INF), (-INF, INF), (INF, -INF), (INF, 3.0), (NAN, INF), (INF, NAN), (3.0, NAN), (NAN, 3.0)]
)
def test_an_infinity_is_near_nothing_else(got: float, want: float) -> None:
    """A relative tolerance of an infinite value would let everything pass."""
    verdict = compared(got, want)
    assert verdict.failures == (
        "x must equal what is expected within rtol=1e-05, atol=1e-05, but 1 of 1 elements differ; the worst is [0]: "
        f"got {got}, expected {want}. No op made it: it was written by the host.",
    )
