"""Calibrate by a CSV of memory accesses: bursts alone, that find their row open, closed or another one, and streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from attrs import frozen

from kernbench_builtin.calibrate.csv_rows import CsvRows
from kernbench_builtin.calibrate.launching import compiled
from kernbench_builtin.components.dram import DramPlace
from kernbench_builtin.probe.dram_driver import DramCase, DramProbe
from kernbench_builtin.probe.dram_workload import Timed
from kernbench_core.calibration import (
    CsvForm,
    LogRow,
    MachineChoice,
    SimulatedRow,
    Unknown,
)
from kernbench_core.errors import UsageError
from kernbench_core.units import format_bytes, grid_ceil
from kernbench_core.values import Region

PATTERNS = ("row_hit", "row_closed", "row_conflict", "stream")
_CSV = CsvForm({"pattern": CsvForm.one_of(*PATTERNS), "bytes": CsvForm.size})
_BURSTS = 64
"""Bursts alone, of whose latencies those in the middle count: refresh meets few of them."""
_APART = 211.37
"""ns from one to the next: they come at any part of a clock, and each finds the memory idle."""
_STREAM_CHUNK = 4096
_STREAM_OUTSTANDING = 64

MEMORY_OVERHEAD = Unknown(
    "memory-overhead",
    "components.hbm_ctrl.params.overhead",
    "time",
    0.0,
    1e3,
    "from none to three times the 340 ns after which an H100's core sees its HBM3, caches included [chosen]",
    "bursts alone (row_hit, row_closed, row_conflict), whose latency is the controller's and the array's",
)


@frozen
class MemoryAccess:
    """A burst alone whose row is open (row_hit), closed, or not the open one; or a stream of so many bytes of reads."""

    pattern: str
    nbytes: int


class MemoryLog(CsvRows):
    """Read what one memory does with accesses; fit the overhead of its controller."""

    COLUMNS = _CSV
    FORM: ClassVar[str] = f"a CSV of memory accesses with the columns pattern ({', '.join(PATTERNS)}), bytes and time"

    def case_of(self, values: Mapping[str, Any]) -> tuple[str, MemoryAccess]:
        """Return an access, its pattern and its bytes."""
        access = MemoryAccess(values["pattern"], values["bytes"])
        return f"{access.pattern} {format_bytes(access.nbytes)}", access

    def unknowns(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[Unknown]:
        """Return the controller's overhead; what the array takes is its standard's."""
        return [MEMORY_OVERHEAD]

    def slopes(
        self, rows: Sequence[LogRow], machine: MachineChoice, values: Mapping[str, float]
    ) -> list[dict[str, float]]:
        """Return that each access takes the overhead once: a stream hides it behind the others."""
        return [{MEMORY_OVERHEAD.name: 1.0} for _ in rows]

    def simulate(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[SimulatedRow]:
        """Drive the first controller of the machine alone."""
        graph = compiled(self._plugins, machine)
        node = next(node for node in graph.nodes.values() if node.kind == "hbm_ctrl")
        probe = _OneBank(node, self._plugins.components)

        @cache
        def time_ns(pattern: str, nbytes: int) -> float:
            if pattern != "stream":
                return probe.alone_ns(pattern)
            requests = -(-nbytes // _STREAM_CHUNK)
            point = probe.closed_loop(DramCase("sequential", _STREAM_CHUNK, requests), _STREAM_OUTSTANDING)
            return nbytes / point.achieved

        def of(access: MemoryAccess) -> SimulatedRow:
            if access.pattern != "stream":
                return SimulatedRow(time_ns(access.pattern, access.nbytes))
            return self._along(access.nbytes, lambda nbytes: time_ns("stream", nbytes))

        return [of(_case(row)) for row in rows]


class _OneBank(DramProbe):
    """Drive one bank with bursts one after another, of one row or of two in turn."""

    def alone_ns(self, pattern: str) -> float:
        """Return what a lone burst takes that finds its row as the pattern says, in ns: at any part of a clock."""
        geometry = self.geometry
        if geometry.address is None:
            raise UsageError(
                f"a fit of {pattern} must have a controller with rows, as builtin.hbm_ctrl_bank, which this "
                "machine's hbm_ctrl is not; set components.hbm_ctrl.impl, or leave such rows out."
            )
        columns = geometry.row_bytes // geometry.burst_bytes
        requests: list[Timed] = []
        for index in range(_BURSTS):
            row = index % 2 if pattern == "row_conflict" else 0
            region = Region(geometry.address(DramPlace(0, 0, row, index % columns)), geometry.burst_bytes)
            requests.append((grid_ceil(index * _APART), "read", (region,)))
        if pattern == "row_closed":
            took = [self.latencies([request])[0] for request in requests]
        else:
            took = self.latencies(requests)
        middle = sorted(took)[_BURSTS // 4 : -_BURSTS // 4]  # a refresh is in the way of few, and they do not count
        return sum(middle) / len(middle)


def _case(row: LogRow) -> MemoryAccess:
    assert isinstance(row.case, MemoryAccess)
    return row.case
