"""Calibrate by a CSV of copies: from and to the host over PCIe, and inside the memory of one package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from attrs import frozen

from kernbench_builtin.calibrate.csv_rows import CsvRows
from kernbench_builtin.calibrate.launching import LAUNCH_OVERHEAD, LAUNCH_STEPS, compiled, launched_ns
from kernbench_core.calibration import (
    CsvForm,
    LogRow,
    MachineChoice,
    SimulatedRow,
    Unknown,
)
from kernbench_core.errors import UsageError
from kernbench_core.graph import Graph
from kernbench_core.host import GraphEngine, Runtime
from kernbench_core.messages import MemoryReadMsg, MemoryWriteMsg
from kernbench_core.topology import design_of
from kernbench_core.units import format_bytes
from kernbench_core.values import Region

KINDS = ("h2d", "d2h", "d2d")
_CSV = CsvForm({"kind": CsvForm.one_of(*KINDS), "bytes": CsvForm.size})
_TILE = 64 << 10
"""Bytes that a PE copies at once inside its package."""
_AHEAD = 4
"""Tiles that are loaded before the first of them is stored."""

DMA_OVERHEAD = Unknown(
    "dma-overhead",
    "components.host.params.overhead",
    "time",
    0.0,
    13e3,
    "ten times the 1.3 us of a DMA from start to data, AWS Neuron DMA guide [chosen]",
    "copies h2d or d2h of at most some KiB, where the start of a copy decides",
)
PCIE_BANDWIDTH = Unknown(
    "pcie-bandwidth",
    "host.pcie.bandwidth",
    "bandwidth",
    0.25,
    118.2,
    "one lane of PCIe 1.0 to 16 of 6.0, transfer rates and encodings of the standards",
    "copies h2d or d2h of many MiB, where bandwidth decides",
    inverse=True,
)
HBM_EFFICIENCY = Unknown(
    "hbm-efficiency",
    "components.hbm_ctrl.params.efficiency",
    "float",
    0.026,
    1.0,
    "one bank with a new row each time, tBL / tRC of HBM3-6400 in Ramulator 2, to all of the peak",
    "copies d2d of many MiB, where the memory's bandwidth decides",
    inverse=True,
)


@frozen
class Copy:
    """A copy of so many bytes; `kind` is h2d (host to device), d2h, or d2d (inside the memory of one package)."""

    kind: str
    nbytes: int


class CopyLog(CsvRows):
    """Read copies; fit what the host takes to start one, PCIe's bandwidth, launches and the efficiency of HBM."""

    COLUMNS = _CSV
    FORM: ClassVar[str] = "a CSV of copies with the columns bytes, time and kind (h2d, d2h, d2d)"

    def case_of(self, values: Mapping[str, Any]) -> tuple[str, Copy]:
        """Return a copy, its kind and its bytes."""
        copy = Copy(values["kind"], values["bytes"])
        return f"{copy.kind} {format_bytes(copy.nbytes)}", copy

    def unknowns(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[Unknown]:
        """Return those of the host's link for copies over it, and those of launches and HBM for others."""
        kinds = {_case(row).kind for row in rows}
        found = [DMA_OVERHEAD, PCIE_BANDWIDTH] if kinds & {"h2d", "d2h"} else []
        return found + ([LAUNCH_OVERHEAD, HBM_EFFICIENCY] if "d2d" in kinds else [])

    def slopes(
        self, rows: Sequence[LogRow], machine: MachineChoice, values: Mapping[str, float]
    ) -> list[dict[str, float]]:
        """Return what each row takes of each parameter: one start, its bytes, two steps of a launch, both its uses."""
        graph = compiled(self._plugins, machine)
        pcie = next(edge for (source, _), edge in graph.edges.items() if source == "host")
        found = []
        for row in rows:
            copy = _case(row)
            if copy.kind == "d2d":
                moved = 2 * copy.nbytes / _hbm_peak(graph)
                found.append({LAUNCH_OVERHEAD.name: LAUNCH_STEPS, HBM_EFFICIENCY.name: moved})
            else:
                headers = -(-copy.nbytes // (pcie.payload_bytes or copy.nbytes)) * pcie.header_bytes
                found.append({DMA_OVERHEAD.name: 1.0, PCIE_BANDWIDTH.name: float(copy.nbytes + headers)})
        return found

    def simulate(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[SimulatedRow]:
        """Simulate each copy alone; larger ones than are simulated are continued."""
        graph = compiled(self._plugins, machine)

        @cache
        def time_ns(kind: str, nbytes: int) -> float:
            if kind == "d2d":
                return self._inside(graph, nbytes)
            return self._over_pcie(graph, kind, nbytes)

        def of(copy: Copy) -> SimulatedRow:
            return self._along(copy.nbytes, lambda nbytes: time_ns(copy.kind, nbytes))

        return [of(_case(row)) for row in rows]

    def _over_pcie(self, graph: Graph, kind: str, nbytes: int) -> float:
        engine = GraphEngine(graph, self._plugins.components, data=False, log=False)
        regions = _spread(graph, nbytes)
        request = MemoryWriteMsg(regions) if kind == "h2d" else MemoryReadMsg(regions)
        engine.submit(request)
        engine.advance()
        assert request.response is not None
        return float(request.response.completed_ns - request.born)

    def _inside(self, graph: Graph, nbytes: int) -> float:
        pes = [site for site in design_of(graph).pes if site.sip == 0]

        def bench(rt: Runtime) -> None:
            source, target = (rt.empty((nbytes,), "uint8", name=one, device=0) for one in ("source", "target"))
            rt.launch(_copy_kernel, source, target, nbytes, len(pes), device=0)

        return launched_ns(graph, self._plugins, bench)


def _copy_kernel(source: Any, target: Any, nbytes: int, pes: int, tl: Any) -> None:
    """Copy a PE's part; while a tile is stored, the next ones are on their way."""
    share = -(-nbytes // pes)
    start = tl.program_id(0) * share
    end = min(nbytes, start + share)
    firsts = range(start, end, _TILE)
    tiles: list[Any] = []
    for index in range(len(firsts) + _AHEAD):
        if index < len(firsts):
            first = firsts[index]
            tiles.append(tl.load(source + first, shape=(min(_TILE, end - first),), wait=False))
        if 0 <= index - _AHEAD < len(firsts):
            tl.store(target + firsts[index - _AHEAD], tiles.pop(0))


def _case(row: LogRow) -> Copy:
    assert isinstance(row.case, Copy)
    return row.case


def _hbm_peak(graph: Graph) -> float:
    """Return what the channels of the first package's HBM carry at the base's figures with efficiency 1, in B/ns.

    Raises:
        UsageError: its model has no efficiency.
    """
    nodes = [node for node in graph.nodes.values() if node.kind == "hbm_ctrl" and node.sip == 0]
    wanted = {"channels", "channel_bandwidth", "efficiency"}
    other = next((node.impl for node in nodes if not wanted <= node.params.keys()), None)
    if other is not None:
        raise UsageError(
            f"a fit of copies d2d must have a model of hbm_ctrl with a parameter efficiency, not {other}; choose "
            "builtin.hbm_ctrl, or leave such rows out."
        )
    return float(sum(node.params["channels"] * node.params["channel_bandwidth"] for node in nodes))


def _spread(graph: Graph, nbytes: int) -> tuple[Region, ...]:
    """Return regions of together `nbytes`, in whole chunks over the HBM slices of the first package."""
    design = design_of(graph)
    slices = [site for site in design.pes if site.sip == 0]
    chunks = -(-nbytes // design.chunk_bytes)
    each = -(-chunks // len(slices)) * design.chunk_bytes
    found = []
    for site in slices:
        n = min(each, nbytes)
        if n <= 0:
            break
        unit = site.hbm_ctrl.rpartition("hbm_ctrl")[2]
        found.append(Region(design.address_map.encode(site.sip, site.cube, f"hbm{unit}"), n))
        nbytes -= n
    return tuple(found)
