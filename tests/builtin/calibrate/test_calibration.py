"""What a fit does with rows besides fitting: checks, rows that tell nothing, another way that they may have run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from kernbench_builtin.calibrate import calibrate
from kernbench_builtin.calibrate.calibration import Logs
from kernbench_builtin.calibrate.report import summary
from kernbench_core.calibration import LogRow, MachineChoice, SimulatedRow, Unknown

LATENCY = Unknown("latency", "latency", "time", 10.0, 1e5, "", "small ones")
BANDWIDTH = Unknown("bandwidth", "bandwidth", "bandwidth", 1.0, 1000.0, "", "large ones", inverse=True)
SIZES = [1024 << at for at in range(15)]
BASE = MachineChoice("tiny")


class Ring:
    """A ring of eight ranks, pipelined or not; sizes above `even` are continued, and tell nothing."""

    FORM = "none"

    def __init__(self, pipelined: bool = True, even: int = 1 << 40, said: bool = False, full: bool = False) -> None:
        self.pipelined, self.even, self.said, self.full = pipelined, even, said, full
        self.simulated: list[int] = []

    def time_ns(self, size: int, latency: float, bandwidth: float) -> float:
        wire = size / 8 / bandwidth
        return max(14 * latency + wire, latency + 14 * wire) if self.pipelined else 14 * (latency + wire)

    def settings(self, rows: Sequence[LogRow]) -> tuple[str, ...]:
        return ()

    def unknowns(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[Unknown]:
        return [LATENCY, BANDWIDTH]

    def slopes(
        self, rows: Sequence[LogRow], machine: MachineChoice, values: Mapping[str, float]
    ) -> list[dict[str, float]]:
        return [{"latency": 14.0, "bandwidth": 14 * row.case / 8} for row in rows]  # type: ignore[operator]

    def simulate(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[SimulatedRow]:
        values = dict(one.split("=") for one in machine.sets)
        latency, bandwidth = (float(values[one].split()[0]) for one in ("latency", "bandwidth"))
        sizes = [row.case for row in rows if isinstance(row.case, int)]
        self.simulated += sizes
        return [SimulatedRow(self.time_ns(size, latency, bandwidth) * (3 if size > self.even and not self.full else 1),
                             size > self.even, size <= self.even or self.full) for size in sizes]  # fmt: skip

    def otherwise(self, rows: Sequence[LogRow]) -> tuple[str, Ring] | None:
        return None if self.said else ("step by step", Ring(False, self.even, True, self.full))


def logs(ring: Ring, truth: Ring, noise: float = 0.01) -> Logs:
    rng = np.random.default_rng(5)
    rows = tuple(LogRow(f"a:{size}", str(size), truth.time_ns(size, 3700, 61) * (1 + noise * rng.normal()), size)
                 for size in SIZES)  # fmt: skip
    return Logs(("a",), ((ring, rows),), (Ring(ring.pipelined, full=True, said=ring.said),))  # type: ignore[arg-type]


def test_two_rows_are_kept_out_and_simulated_in_full() -> None:
    ring = Ring()
    found = calibrate(logs(ring, Ring()), BASE)
    out = [row.row.case for row in found.checks]
    assert len(out) == 2 and not {*out} & {*ring.simulated} and {*ring.simulated} | {*out} == {*SIZES}
    assert found.check_error is not None and 0 < found.check_error < 0.05
    assert [one.value for one in found.values] == [pytest.approx(3700, rel=0.02), pytest.approx(61, rel=0.02)]
    assert "^ not fitted, a check (2 rows): " in "\n".join(summary(found)) and found.logs.way is None


def test_rows_that_tell_nothing_are_left_out_and_said() -> None:
    """Here they would have a third of the bandwidth; the largest is a check, and simulated in full."""
    found = calibrate(logs(Ring(even=4 << 20), Ring()), BASE)
    assert [row.row.case for row in found.rows if not row.simulated.settled] == [8 << 20]
    assert found.values[1].value == pytest.approx(61, rel=0.03)
    assert found.values[1].error is not None and abs(found.values[1].value / 61 - 1) <= found.values[1].error
    assert "x left out (1 row, from 8388608): as far as --simulate-to, times do not" in "\n".join(summary(found))


@pytest.mark.parametrize("said", [False, True])
def test_ranks_that_waited_at_each_step_are_found_out_unless_it_is_said_how_they_ran(said: bool) -> None:
    """Else rows near the kink are off by more than noise, and the error stated covers what that does to bandwidth."""
    ring = Ring(said=said)
    found = calibrate(logs(ring, Ring(pipelined=False)), BASE)
    bandwidth = found.values[1]
    assert bandwidth.error is not None
    if said:
        assert found.logs.way is None and found.mean_error > 0.05 and bandwidth.error > 0.1
    else:
        assert found.logs.way == "step by step" and found.mean_error < 0.02
        assert len(ring.simulated) <= 3 * len(SIZES)  # which shows that they did not run so
        assert bandwidth.value == pytest.approx(61, rel=0.02)
        assert "All were simulated step by step: so they fit, and otherwise not." in summary(found)
