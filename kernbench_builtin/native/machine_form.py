"""Write a machine as the numbers that engine/engine.cpp reads: nodes, wires, ways, and what each model is set to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.components.forwarding import Forwarding
from kernbench_builtin.components.hbm_ctrl import HbmCtrl
from kernbench_builtin.components.host import Host
from kernbench_builtin.components.io_cpu import IoCpu
from kernbench_builtin.components.m_cpu import MCpu
from kernbench_builtin.components.pcie_ep import PcieEp
from kernbench_builtin.components.pe_cpu import PeCpu
from kernbench_builtin.components.pe_dma import PeDma
from kernbench_builtin.components.pe_fetch_store import PeFetchStore
from kernbench_builtin.components.pe_gemm import PeGemm
from kernbench_builtin.components.pe_ipcq import PeIpcq
from kernbench_builtin.components.pe_math import PeMath
from kernbench_builtin.components.pe_mmu import PeMmu
from kernbench_builtin.components.pe_scheduler import PeScheduler
from kernbench_builtin.components.pe_tcm import PeTcm
from kernbench_builtin.components.sram import Sram
from kernbench_core.topology.design import machine_of
from kernbench_core.topology.naming import pe_prefix, pe_unit
from kernbench_core.units import grid_ceil

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.wire import Wire

_ON_TAIL, _ON_HEAD, _AS_MEMORY, _AS_DMA = range(4)


def unsupported(hardware: Hardware) -> list[str]:
    """Say which models there are that the engine has not."""
    found = {c.node.impl: c.id for c in hardware.components.values() if type(c) not in _MODELS}
    return [f"{impl}, as {place} is one" for impl, place in found.items()]


@attrs.define(eq=False)
class Numbering:
    """What machines have in common that differ in times alone, and whose ways are the same: how all is numbered."""

    nodes: dict[str, int]
    asked: dict[tuple[str, str, str], int] = attrs.field(factory=dict)
    """The ways between two nodes that were asked for, and their numbers."""
    paths: dict[tuple[str, ...], int] = attrs.field(factory=dict)
    of_ways: list[float] = attrs.field(factory=list)
    """The ways as the engine reads them, once all were asked for."""
    of_wires: list[list[float]] = attrs.field(factory=list)
    """What a wire has besides its times: where it ends, whether inside of a node, and its rule."""


@attrs.define(eq=False)
class MachineForm:
    """Number the nodes, wires and ways of `hardware`; `numbers` is the machine as the engine reads it.

    Ways are numbered as they are asked for, so that all of them have to be asked for before; or they are those of the
    `layout` of another machine.
    """

    hardware: Hardware
    layout: Numbering | None = None

    def __attrs_post_init__(self) -> None:
        if self.layout is not None:
            return
        self.layout = Numbering({name: number for number, name in enumerate(self.hardware.components)})
        for source, to in self.hardware.graph.edges:
            prefix = pe_prefix(source)
            inside = prefix is not None and prefix == pe_prefix(to)
            if inside and (to, source) in self.hardware.graph.edges:
                self.path((source, to))

    @property
    def _known(self) -> Numbering:
        assert self.layout is not None, "made with the form"
        return self.layout

    @property
    def nodes(self) -> dict[str, int]:
        """The numbers of nodes."""
        return self._known.nodes

    @property
    def asked(self) -> dict[tuple[str, str, str], int]:
        """The ways that were asked for, and their numbers."""
        return self._known.asked

    def path(self, nodes: tuple[str, ...]) -> int:
        """Return the number of a way, and give its way back one."""
        paths = self._known.paths
        number = paths.get(nodes)
        if number is None:
            number = paths[nodes] = len(paths)
            self.path(nodes[::-1])
        return number

    def memory_path(self, source: str, memory: str) -> int:
        """Return the number of the way of memory traffic."""
        return self.way(("memory", source, memory))

    def command_path(self, source: str, destination: str) -> int:
        """Return the number of the way of orders."""
        return self.way(("command", source, destination))

    def way(self, ends: tuple[str, str, str]) -> int:
        """Return the number of a way: what goes it, and from where to where.

        "memory" and "command" go between nodes, "wire" over the one between two, "self" nowhere; a "slot" of a queue
        and a "credit" go between the PEs of two prefixes.
        """
        number = self.asked.get(ends)
        if number is None:
            number = self.asked[ends] = self.path(self._nodes_of(*ends))
        return number

    def _nodes_of(self, what: str, source: str, to: str) -> tuple[str, ...]:
        if what == "memory":
            return self.hardware.memory_path(source, to)
        if what == "command":
            return self.hardware.command_path(source, to)
        if what in ("slot", "credit"):
            between = self.hardware.memory_path(pe_unit(source, "pe_dma"), pe_unit(to, "pe_tcm"))[:-1]
            if what == "slot":
                return between
            return pe_unit(source, "pe_ipcq"), *between, pe_unit(to, "pe_ipcq")
        return (source, to) if what == "wire" else (source,)

    def numbers(self) -> list[float]:
        """Return the machine as the engine reads it."""
        components, layout = self.hardware.components, self._known
        wires = sorted(self.hardware.wires, key=lambda wire: wire.number)
        models = [_MODELS[type(each)] for each in components.values()]
        described: list[float] = []
        for (_, settings), each in zip(models, components.values(), strict=True):
            described += settings(self, each)
        out: list[float] = [len(components), *(number for number, _ in models), len(wires)]
        layout.of_wires = layout.of_wires or [self._end_of(wire) for wire in wires]
        for fixed, wire in zip(layout.of_wires, wires, strict=True):
            out += fixed
            out += (wire.bandwidth, wire.latency, wire.payload_bytes, wire.header_bytes)
        if layout.of_ways[:1] != [len(layout.paths)]:
            layout.of_ways = [*self._ways()]
        return out + layout.of_ways + described

    def _ways(self) -> Iterator[float]:
        nodes, paths, components = self.nodes, self._known.paths, self.hardware.components
        yield len(paths)
        for way in paths:
            yield len(way)
            for before, node in zip(("", *way), way, strict=False):
                wire = components[before].out_ports.get(node) if before else None
                yield nodes[node]
                yield -1 if wire is None else wire.number - 1
            yield paths[way[::-1]]

    def _end_of(self, wire: Wire) -> list[float]:
        internal = "#" in wire.name
        node = wire.name.partition("#")[0] if internal else wire.name.partition("->")[2]
        receiver = self.hardware.components[node]
        rule = _ON_TAIL
        if isinstance(receiver, Forwarding):
            rule = _ON_HEAD if receiver.head_rule() else _ON_TAIL
        elif isinstance(receiver, HbmCtrl | Sram | PeTcm):
            rule = _AS_MEMORY
        elif isinstance(receiver, PeDma):
            rule = _AS_DMA
        return [self.nodes[node], int(internal), rule]

    # What each model is set to, in the order of `read_node` ---------------------------------------------

    def _overhead(self, component: Any) -> list[float]:
        return [grid_ceil(component.params["overhead"])]

    def _memory(self, component: Any) -> list[float]:
        wires, units = component.channel_wires, component.atomic_units
        atomic = [0, 0.0] if units is None else [units.burst, units._step]
        return [grid_ceil(component._overhead), len(wires), *(wire.number - 1 for wire in wires), *atomic]

    def _cpu(self, component: PeCpu) -> list[float]:
        times = grid_ceil(component.dispatch_overhead_ns), grid_ceil(component.element_read_ns)
        return [0.0, *times, machine_of(self.hardware.graph).design.tcm_bytes]

    def _dma(self, component: PeDma) -> list[float]:
        prefix, nodes = pe_prefix(component.id) or "", self.nodes
        mmu, tcm = component._mmu, component._tcm
        to_tcm, from_tcm = component._to_tcm, component._from_tcm
        note = component.id, pe_unit(prefix, "pe_ipcq")
        return [
            component._overhead, component._descriptor_overhead,
            len(component._reads.free), len(component._writes.free),
            -1 if mmu is None else nodes[mmu.id],
            -1 if tcm is None else nodes[tcm.id],
            -1 if to_tcm is None else to_tcm.number - 1,
            -1 if from_tcm is None else from_tcm.number - 1,
            self.path(note) if note[1] in component.out_ports else -1,
        ]  # fmt: skip

    def _mmu(self, component: PeMmu) -> list[float]:
        params = component.params
        ways = params["tlb_ways"] or params["tlb_entries"]
        times = grid_ceil(params["tlb_overhead"]), grid_ceil(params["walk_time"])
        return [*times, params["tlb_entries"] // ways, ways, params["walkers"]]

    def _matrix(self, component: PeGemm) -> list[float]:
        return [component._start_up, len(component._arrays), int(component.overlaps)]

    def _vector(self, component: PeMath) -> list[float]:
        return [0.0, component.servers]

    def _scheduler(self, component: PeScheduler) -> list[float]:
        return [grid_ceil(component._overhead), component.servers, component._tiles_in_flight, component._staging]

    def _fetch_store(self, component: PeFetchStore) -> list[float]:
        way = self.path((component.id, component._tcm))
        return [grid_ceil(component._overhead), component.servers, component._registers.capacity, way]

    def _queues(self, component: PeIpcq) -> list[float]:
        way = self.path(component._to_dma)
        return [component._overhead, component._metadata_bytes, component._credit_bytes, way]


_MODELS: Final[dict[type, tuple[int, Callable[[MachineForm, Any], list[float]]]]] = {
    Forwarding: (0, MachineForm._overhead),
    PcieEp: (0, MachineForm._overhead),
    Host: (1, MachineForm._overhead),
    IoCpu: (2, MachineForm._overhead),
    MCpu: (3, MachineForm._overhead),
    HbmCtrl: (4, MachineForm._memory),
    Sram: (4, MachineForm._memory),
    PeTcm: (5, MachineForm._memory),
    PeCpu: (6, MachineForm._cpu),
    PeDma: (7, MachineForm._dma),
    PeMmu: (8, MachineForm._mmu),
    PeGemm: (9, MachineForm._matrix),
    PeMath: (10, MachineForm._vector),
    PeScheduler: (11, MachineForm._scheduler),
    PeFetchStore: (12, MachineForm._fetch_store),
    PeIpcq: (13, MachineForm._queues),
}
