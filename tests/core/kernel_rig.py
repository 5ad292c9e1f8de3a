"""Run kernels without hardware models: a stand-in for pe_cpu whose units answer after a fixed time each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.on_demand import OnDemand
from kernbench_core.environment import Environment
from kernbench_core.graph import Node, PeSite
from kernbench_core.host.host_program import latest
from kernbench_core.kernel.pe_state import Kernels
from kernbench_core.kernel.runner import KernelRunner
from kernbench_core.memory.device_memory import DeviceMemory, TensorAllocation
from kernbench_core.memory.hazards import Hazards
from kernbench_core.messages import Command, Launch
from kernbench_core.oplog.log import OpLog
from kernbench_core.oplog.logger import OpLogger
from kernbench_core.topology.address import AddressMap
from kernbench_core.topology.design import Design
from kernbench_core.values.dtypes import dtype_name
from kernbench_core.values.memory_store import MemoryStore

UNIT_NS = {"pe_dma": 100.0, "pe_gemm": 50.0, "pe_math": 10.0, "pe_scheduler": 1000.0}


def design(pes: int = 2, hbm: int = 1 << 20, tcm: int = 1 << 16, page: int = 4096) -> Design:
    """Describe one cube with a few PEs."""
    sites = tuple(
        PeSite(i, 0, 0, i, f"sip0.cube0.pe{i}", f"sip0.cube0.pe{i}.pe_cpu", f"sip0.cube0.hbm_ctrl{i}", "m", "io")
        for i in range(pes)
    )
    return Design(1, 1, pes, 4096, page, sites, AddressMap(1, 1, pes, hbm, 4096, tcm))


class Cpu:
    """Answer every command after its unit's fixed time, logging it as that unit would."""

    def __init__(self, env: Environment, kernels: Kernels, pe: int, logger: OpLogger, overhead: float) -> None:
        self.env = env
        self.kernels = kernels
        self.node = Node(f"sip0.cube0.pe{pe}.pe_cpu", "pe_cpu")
        self.prefix = f"sip0.cube0.pe{pe}"
        self.dispatch_overhead_ns = overhead
        self.logger = logger
        self.sent: list[Command] = []

    def send_command(self, cmd: Command) -> None:
        """Serve `cmd` from now on."""
        env, unit = self.env, f"{self.prefix}.{cmd.serves}"
        self.sent.append(cmd)
        start = env.now
        end = env.timeout(UNIT_NS[cmd.serves])
        self.logger.record_start(start, unit, cmd)

        def finish(_: Any) -> None:
            cmd.head = cmd.tail = env.now
            self.logger.record_end(env.now, unit, cmd)
            cmd.answered()

        end.callbacks.append(finish)


class Rig:
    """A device whose kernels can be run and whose tensors can be read back after phase 2.

    `watch` is how many PEs are looked at for hazards: none, all, or more than there are.
    """

    def __init__(
        self,
        pes: int = 1,
        data: bool = True,
        overhead: float = 1.0,
        log: OpLog | None = None,
        watch: int = 0,
        scratchpads: Any = None,
        **capacities: int,
    ) -> None:
        self.design = design(pes, **capacities)
        env = self.env = Environment()
        self.store = MemoryStore(data)
        self.memory = DeviceMemory(self.design)
        self.log = OpLog() if log is None else log
        self.logger = OpLogger(self.log)
        self.recorder = None if scratchpads is None else scratchpads(lambda: env.now)
        names = [site.prefix for site in self.design.pes]
        self.hazards = Hazards([*names, *["PE"] * (watch - pes)], lambda: env.now) if watch else None
        self.kernels = Kernels(
            self.memory,
            self.store,
            hazards=self.hazards,
            on_demand=OnDemand(self.log, self.store, {}),
            recorder=self.recorder,
        )
        self.known: dict[int, int] = {}
        self.cpus = [Cpu(env, self.kernels, pe, self.logger, overhead) for pe in range(pes)]
        self.runners = [KernelRunner(cpu) for cpu in self.cpus]
        self.launch: Launch | None = None
        self._names = 0

    def empty(self, shape: tuple[int, ...], dtype: str = "f32", name: str = "") -> TensorAllocation:
        """Allocate a tensor that nobody has written."""
        self._names += 1
        return self.memory.allocate(shape, dtype, name or f"t{self._names}", self.design.pes)

    def tensor(self, array: Any, name: str = "") -> TensorAllocation:
        """Allocate a tensor that holds an array."""
        found = np.asarray(array)
        allocation = self.empty(found.shape, dtype_name(found.dtype), name)
        self.store.write("hbm", allocation.regions, found)
        return allocation

    def run(self, kernel: Callable[..., Any], *args: object, grid: int | None = None, **named: object) -> float:
        """Run a kernel on every PE, or `grid` programs dealt round-robin; give the time it took in ns."""
        names = [n for n in kernel.__code__.co_varnames[: kernel.__code__.co_argcount] if n != "tl"]
        arguments: Mapping[str, object] = {**dict(zip(names, args, strict=False)), **named}
        count = grid or len(self.cpus)
        programs: dict[int, tuple[tuple[int, int, int], ...]] = {}
        for program in range(count):
            pe = program % len(self.cpus)
            programs[pe] = (*programs.get(pe, ()), (program, 0, 0))
        launch = self.launch = Launch(kernel, arguments, (count, 1, 1), programs)
        launch.known = self.known
        env = self.env
        start = env.now
        for runner in self.runners:
            env.process(runner.run(env, launch))
        while env.advance(1000):
            pass
        self.known = latest(self.known, launch.known, launch.issued)
        return env.now - start

    def numpy(self, allocation: TensorAllocation) -> Any:
        """Compute what is pending and read a tensor."""
        value = self.store.value("hbm", allocation.regions, allocation.shape, allocation.dtype)
        return DataExecutor(self.log, self.store).materialize(value)

    def ops(self) -> list[str]:
        """Name the logged ops in order."""
        return [record.op_name for record in self.log]

    def used_tcm(self, pe: int = 0) -> int:
        """Give the bytes of the scratchpad that are reserved now."""
        return self.kernels.states[pe].tcm.fit.used
