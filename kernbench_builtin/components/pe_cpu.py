"""The processor of a PE: runs the kernel."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_builtin.components.channelled_memory import ChannelledMemory
from kernbench_core.callsite import describe_site
from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.kernel import KernelRunner, Kernels
from kernbench_core.messages import Command
from kernbench_core.params import Param
from kernbench_core.reporting import Waiting

__tracebackhide__ = True  # what a kernel raises is told with the kernel's own lines


class PeCpu(ComponentBase):
    """Start a launch's programs at the common start stamp, or on arrival when that is later, one after another.

    Models: one kernel at a time; a fixed dispatch time per language call that becomes a command; reads of elements.
    Ignores: The kernel's own scalar instructions take no time. Instruction fetch is not modelled.
    Timing: start = max(arrival, stamp); each command leaves dispatch_overhead after the call, and later by element_read
        for each element that the kernel read into Python since the command before; what is left, at its end.
    Source: estimates of tens of instructions at 1 GHz, and of a load of the scratchpad in each cycle; unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("dispatch_overhead", "time", "10 ns", "Time to issue one command."),
        Param("element_read", "time", "1 ns", "Time in which a kernel's Python gets one element of a tile."),
    )

    needs: ClassVar[tuple[type, ...]] = (Kernels,)

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self.kernels = self.part(Kernels)
        self.dispatch_overhead_ns: float = self.params["dispatch_overhead"]
        self.element_read_ns: float = self.params["element_read"]
        self.prefix = node.id.rpartition(".")[0]
        self._runner: KernelRunner | None = None
        #: By what commands name as their unit.
        self._paths: dict[str, tuple[str, str]] = {}

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Run the programs that the launch gives this PE."""
        launch = msg.launch
        if launch.target_start_ns is not None and launch.target_start_ns > env.now:
            yield env.timeout(launch.target_start_ns - env.now)
        self._runner = KernelRunner(self)
        yield from self._runner.run(env, launch)
        self._runner = None

    def send_command(self, cmd: Command) -> None:
        """Put `cmd` on the wire to the unit that serves it; raise ComponentError when this PE has none that can."""
        path = self._paths.get(cmd.serves)
        if path is None:
            path = self._paths[cmd.serves] = (self.id, self._unit_of(cmd))
        cmd.path = path
        cmd.hop = 0
        now = self._time.now
        cmd.born = cmd.head = cmd.tail = now
        self.emit(cmd, now, now)

    def _unit_of(self, cmd: Command) -> str:
        """Return the unit that serves a command and its like; ComponentError where none can."""
        unit = f"{self.prefix}.{cmd.serves}"
        if unit not in self.out_ports:
            raise ComponentError(
                f"{self.id}: a {type(cmd).__name__} must be served by a unit of kind {cmd.serves!r}, and this PE has "
                "none; add it under pe.units in the configuration."
            )
        if isinstance(self.fabric.components[unit], ChannelledMemory):
            raise self._no_unit(cmd, unit)
        return unit

    def _no_unit(self, cmd: Command, memory: str) -> ComponentError:
        """Return the error for a command that names a memory, which would take it for an access."""
        near = [unit for unit in self.out_ports if unit.startswith(f"{self.prefix}.")]
        units = [unit for unit in near if not isinstance(self.fabric.components[unit], ChannelledMemory)]
        kinds = " or ".join(unit.removeprefix(f"{self.prefix}.") for unit in units)
        sent = f"the {type(cmd).__name__} of {cmd.call} at {describe_site(cmd.site)}"
        return ComponentError(
            f"{memory}: {self.fabric.components[memory].node.impl} must be sent reads and writes, as units make them "
            f"of their commands, not {sent}; let its serves name a unit of this PE: {kinds}."
        )

    def waits_in_words(self) -> Waiting | None:
        """Say which line of the kernel waits for what."""
        return None if self._runner is None else self._runner.waits_in_words()
