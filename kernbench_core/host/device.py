"""What a machine holds and keeps for kernels and host programs over one run: memory, values, hazards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from kernbench_core.compute.on_demand import OnDemand
from kernbench_core.compute.ops.plugin_ops import OpsOfPlugins
from kernbench_core.graph import Node, PeSite
from kernbench_core.kernel.pe_state import Kernels, MeasuresLaunches, RecordsScratchpads
from kernbench_core.memory.device_memory import DeviceMemory
from kernbench_core.memory.hazards import Hazards
from kernbench_core.memory.outside import OutsideAccesses
from kernbench_core.oplog.log import OpLog
from kernbench_core.peers import nearest_in
from kernbench_core.topology.design import Design, Machine
from kernbench_core.values.chunking import Chunk
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region

if TYPE_CHECKING:
    from kernbench_core.plugins import LanguageEntry, Registry


@frozen(kw_only=True)
class DeviceOptions:
    """How a device is simulated.

    `data=False` keeps shapes only. `scratchpads(now)` makes what notes what they hold, `Device.recorder`. The
    others are as `kb.run` says.
    """

    data: bool = True
    race_by: str = "pe"
    materialize: str = "determined"
    oob: str = "error"
    pipeline_loops: bool = True
    placement: str = "near"
    scratchpads: Callable[[Callable[[], float]], RecordsScratchpads] | None = None


@frozen(repr=False)
class Device:
    """The part of a session that needs a whole machine; components are given what they need of it (`parts`).

    `recorder` notes what scratchpads hold, where that was asked for.
    """

    design: Design
    memory: DeviceMemory
    store: MemoryStore
    hazards: Hazards
    on_demand: OnDemand
    kernels: Kernels
    recorder: Any = None
    array_placement: str = "near"
    parts: Mapping[type, object] = field(init=False)

    def __repr__(self) -> str:
        return f"<Device: {self.design!r}, {self.store!r}>"

    @parts.default
    def _by_class(self) -> Mapping[type, object]:
        return {type(part): part for part in (self.memory, self.hazards, self.kernels)}

    @classmethod
    def of(
        cls,
        machine: Machine,
        now: Callable[[], float],
        log: OpLog,
        functions: Mapping[str, str],
        ops: OpsOfPlugins | None = None,
        options: DeviceOptions | None = None,
        *,
        calls: Callable[[], Registry[LanguageEntry]],
        launch_on: Callable[[int], str] = lambda pe: "",
        meter: MeasuresLaunches | None = None,
        cut: Callable[[tuple[Region, ...]], tuple[Chunk, ...]] | None = None,
    ) -> Device:
        """Make an empty device of a machine. `now` tells the simulated time in ns.

        `calls` gives what plug-ins add to the language. `launch_on(pe)` says, for errors, which launch runs on a PE;
        `meter` measures launches, `cut` gives the chunks of a transfer.
        """
        options = options or DeviceOptions()
        sites, nodes = machine.design.pes, machine.nodes
        memory, store = DeviceMemory(machine.design), MemoryStore(data=options.data)
        hazards = Hazards([site.prefix for site in sites], now, options.race_by)
        on_demand = OnDemand(log, store, functions)
        recorder = None if options.scratchpads is None else options.scratchpads(now)
        kernels = Kernels(
            memory,
            store,
            hazards=hazards,
            on_demand=on_demand,
            nearest=_neighbours(sites, nodes),
            recorder=recorder,
            ops=ops,
            calls=calls,
            meter=meter,
            materializes=options.materialize == "on_demand",
            outside=OutsideAccesses() if options.oob == "poison" else None,
            pipelines=options.pipeline_loops,
            cut=cut,
            launch_on=launch_on,
        )
        return cls(machine.design, memory, store, hazards, on_demand, kernels, recorder, options.placement)


def _neighbours(sites: Sequence[PeSite], nodes: Mapping[str, Node]) -> Callable[[int, str], int | None]:
    """Return what finds the nearest PE of a PE's SIP in a direction, by the positions of their nodes; None for none."""

    @cache
    def nearest(pe: int, direction: str) -> int | None:
        sip = sites[pe].sip
        places = {site.index: nodes[site.pe_cpu].position for site in sites if site.sip == sip}
        return nearest_in(places, pe, direction)

    return nearest
