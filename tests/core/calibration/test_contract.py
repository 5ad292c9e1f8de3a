"""The contract of formats of measurements: settings of parameters, and sizes beyond what is simulated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.calibration import MachineChoice, SimulatedRow, Unknown


def test_a_parameter_says_how_a_machine_gets_it() -> None:
    """In the unit of its key, times its scale."""
    rate = Unknown("eff", "components.x.params.rate", "float", 0.1, 1.0, "", "", inverse=True, scale=2.0)
    assert rate.setting(0.25) == "components.x.params.rate=0.5"
    latency = Unknown("lat", "system.network.latency", "time", 1.0, 1e4, "", "")
    assert latency.setting(1234.5) == "system.network.latency=1234.5 ns"
    assert MachineChoice("tiny", ("a=1",)).having(["b=2"]) == MachineChoice("tiny", ("a=1", "b=2"))


@given(st.floats(0, 1e6), st.floats(1e-3, 1e3), st.integers(2, 1 << 30), st.integers(1, 1 << 40))
def test_what_is_linear_in_its_size_is_continued_exactly(start: float, slope: float, limit: int, size: int) -> None:
    """Whatever the limit; up to it the size itself is simulated."""
    asked: list[int] = []

    def time_ns(nbytes: int) -> float:
        asked.append(nbytes)
        return start + slope * nbytes

    found = SimulatedRow.along(size, limit, time_ns)
    assert found.ns == pytest.approx(start + slope * size, rel=1e-5)  # what is left of a difference of like numbers
    assert found.extended == (size > limit)
    assert asked == ([size] if size <= limit else [limit // 2, limit])
