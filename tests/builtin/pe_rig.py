"""One PE made by hand, without fabric: real units, a DMA that just takes time, and a probe as its CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from kernbench_builtin.components.pe_fetch_store import PeFetchStore
from kernbench_builtin.components.pe_gemm import PeGemm
from kernbench_builtin.components.pe_math import PeMath
from kernbench_builtin.components.pe_scheduler import PeScheduler
from kernbench_builtin.components.pe_tcm import PeTcm
from kernbench_core.component import ComponentBase
from kernbench_core.messages import Command
from kernbench_core.oplog.description import OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.oplog.logger import OpLogger
from kernbench_core.params import Param
from kernbench_core.testing import Harness, Placed, Probe, edge, place
from kernbench_core.values.region import Region

PREFIX = "sip0.cube0.pe0"
CPU, SCHEDULER, DMA, FETCH_STORE, GEMM, MATH, TCM = (
    f"{PREFIX}.{kind}"
    for kind in ("pe_cpu", "pe_scheduler", "pe_dma", "pe_fetch_store", "pe_gemm", "pe_math", "pe_tcm")
)
HOP = 1.0
"""Latency of every wire, in ns; tokens and commands have no bytes, so a hop takes just this."""
WIRE = 100.0
"""Bandwidth of every wire in bytes/ns."""


class Composite(Command):
    """A composite command as the scheduler needs it; every operand is row-major from address 0, 2 B an element."""

    serves: ClassVar[str] = "pe_scheduler"

    def __init__(self, issue: int = 0, **fields: Any) -> None:
        super().__init__((0, issue))
        self.op = "gemm"
        self.m = self.k = self.n = self.tile_m = self.tile_k = self.tile_n = 16
        self.a_pinned = self.b_pinned = False
        self.layouts = {operand: SimpleNamespace(dtype="f16") for operand in ("a", "b", "out")}
        self.epilogue: Sequence[object] = ()
        self.math_op = "exp"
        self.__dict__.update(fields)
        if self.op == "math":
            del self.layouts["b"]

    def tile_regions(self, operand: str, row0: int, rows: int, col0: int, cols: int) -> tuple[Region, ...]:
        width = {"a": self.k if self.op == "gemm" else self.n, "b": self.n, "out": self.n}.get(operand, self.n)
        return (Region((row0 * width + col0) * 2, cols * 2, rows, width * 2),)

    def describe(self) -> OpDescription:
        return OpDescription("gemm", f"composite_{self.op}", {}, op_id=self.op_id)


class PlainDma(ComponentBase):
    """Serve each DMA stage in a fixed time; tiles in `slow` (their indices) take ten times as long."""

    PARAMS = (
        Param("time", "time", "8 ns", "Time of a transfer."),
        Param("servers", "int", 1, "Transfers at once."),
    )
    slow: ClassVar[frozenset[int]] = frozenset()

    def run(self, env: Any, msg: Any) -> Any:
        yield env.timeout(self.params["time"] * (10 if msg.index in self.slow else 1))


def spec(kind: str, scope: str) -> SimpleNamespace:
    """An epilogue spec."""
    return SimpleNamespace(kind=kind, scope=scope)


def in_hbm(kind: str, scope: str, shape: tuple[int, int], per_tile: bool = False) -> SimpleNamespace:
    """An epilogue spec whose operand, of f32, stays in HBM."""
    layout = SimpleNamespace(rows=shape[0], cols=shape[1], dtype="f32")
    return SimpleNamespace(kind=kind, scope=scope, per_tile=per_tile, source=f"of {kind}", layout=layout)


class Pe(Harness):
    """A PE whose units take the given parameters; `records` is its op log after `run`."""

    def __init__(
        self, params: Mapping[str, Mapping[str, object]] | None = None, dma: type[ComponentBase] = PlainDma
    ) -> None:
        given = params or {}
        models = {
            SCHEDULER: PeScheduler, DMA: dma, FETCH_STORE: PeFetchStore, GEMM: PeGemm, MATH: PeMath, TCM: PeTcm
        }
        nodes: dict[str, Placed] = {
            node: place(model, **given.get(node.rpartition(".")[2], {})) for node, model in models.items()
        }
        nodes[CPU] = place(Probe)
        ids = sorted(nodes)
        edges = [edge(a, b, bandwidth=WIRE, latency=HOP) for a in ids for b in ids if a != b]
        super().__init__(nodes, edges)
        self.op_log = OpLog()
        for component in self.hardware.components.values():
            if component.id != CPU:
                component._op_logger = OpLogger(self.op_log)

    def issue(self, command: Command, at_ns: float = 0.0) -> Command:
        """Send a command from the CPU to the scheduler, onto the wire at `at_ns`."""
        self.send((CPU, SCHEDULER), at_ns, msg=command)
        return command

    @property
    def stages(self) -> list[tuple[str, float, float]]:
        """(stage, start, end) of every stage record, in the order of the log."""
        return [(r.op_name.partition("/")[2], r.t_start, r.t_end) for r in self.op_log if r.stage_of is not None]
