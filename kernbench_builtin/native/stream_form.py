"""Write a recording as the numbers that engine/engine.cpp reads, for one machine.

What depends on sizes alone is worked out here, by the models of the machine themselves: how a transfer is cut, the
channels and pages that a chunk uses, how long a product or a math op takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from kernbench_builtin.components.launch_fan_out import LaunchFanOut
from kernbench_builtin.native.recording import ATOMIC, UNITS, Recording
from kernbench_core.messages import Launch, MapUpdate, MsgBase
from kernbench_core.topology.naming import pe_unit
from kernbench_core.values.dtypes import itemsize
from kernbench_core.values.region import Region

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernbench_builtin.native.machine_form import MachineForm
    from kernbench_core.values.chunking import Chunk

_STAGES = ("DMA_READ", "FETCH", "GEMM", "MATH", "STORE", "DMA_WRITE")
_DMA, _GEMM, _MATH, _SCHEDULER, _QUEUES = range(5)
_ADDRESS_BYTES = 8


class Asked(float):
    """A number that depends on the speed of the machine: of `unit`'s PE, or None, and which of `what` it is."""

    __slots__ = ("what",)
    what: tuple[Any, ...]

    def __new__(cls, value: float, *what: Any) -> Asked:
        """Make one; it is asked for again by `what`."""
        made = super().__new__(cls, value)
        made.what = what
        return made


class NotTimed(Exception):
    """Say what the engine cannot time, for a sentence."""


class _Sized:
    """A value as models ask for it."""

    def __init__(self, shape: Sequence[int], dtype: str) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.nbytes = math.prod(shape) * itemsize(dtype)


class _Read:
    def __init__(self, shape: Sequence[int], dtype: str, inside: bool) -> None:
        self.value, self.region = _Sized(shape, dtype), Region(0, 1) if inside else None


class _Work(MsgBase):
    """A product or a math op as models ask for it; what passes the port is known."""

    reads: Any = ()

    def __init__(self, work: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(work)
        self.beside_bytes = work["streamed"]
        self.extra = {"axis": work.get("axis")}
        self.reads = [_Read(*read) for read in work.get("reads", ())]


class _AtomicAccess:
    """An atomic op as atomic units ask for it."""

    def __init__(self, work: Mapping[str, Any]) -> None:
        self.addresses, self.turns = (np.array(work[name], np.int64) for name in ("addresses", "turns"))


class _Blocks:
    """The blocks of memory that one transfer lies in, as page tables ask for them."""

    def __init__(self) -> None:
        self.known: list[tuple[int, int, int]] = []

    def block_at(self, address: int) -> tuple[int, int, int] | None:
        """Return start, end and number of the block that holds an address."""
        return next((block for block in self.known if block[0] <= address < block[1]), None)


@attrs.define(eq=False)
class StreamForm:
    """Write `recording` for the machine of `form`, which is asked for all ways first."""

    recording: Recording
    form: MachineForm
    _pages: dict[tuple[int, int, int], int] = attrs.field(factory=dict)
    _transfers: dict[tuple[Any, ...], int] = attrs.field(factory=dict)
    _chunks: list[list[float]] = attrs.field(factory=list)
    _numbers: dict[tuple[int, int], int] = attrs.field(factory=dict)
    _regions: list[tuple[Region, ...]] = attrs.field(factory=list)
    _cut: dict[int, tuple[Chunk, ...]] = attrs.field(factory=dict)
    _blocks: _Blocks = attrs.field(factory=_Blocks)
    _bursts: dict[int, int] = attrs.field(factory=dict)
    _known: dict[Any, Any] = attrs.field(factory=dict)
    _likes: dict[tuple[int, str], int] = attrs.field(factory=dict)
    _models: dict[tuple[type, str], int] = attrs.field(factory=dict)
    _ranks: dict[int, int] = attrs.field(factory=dict)

    def numbers(self) -> list[float]:
        """Return the recording as the engine reads it."""
        ranges = self.recording.ranges
        regions = [Region(*row[:4]) for row in ranges]
        self._regions = [tuple([regions[number] for number in numbers]) for numbers in self.recording.lists]
        rows = zip(self.recording.commands, self.recording.holds, strict=True)
        commands = [number for command, held in rows for number in self._command(command, held)]
        queues = [number for at, queue in enumerate(self.recording.queues) for number in self._queue(at, queue)]
        # only their order counts, and doubles hold no addresses
        ranged = [end for request in self.recording.requests for pair in request.get("ranges", ()) for end in pair]
        ends = sorted({*ranged, *(end for base, size, _ in self._pages for end in (base, base + size))})
        self._ranks = {end: rank for rank, end in enumerate(ends)}
        host = self._host()
        out: list[float] = [len(self._pages)]
        for base, size, _ in self._pages:
            out += [self._ranks[base], self._ranks[base + size] - self._ranks[base]]
        out.append(len(self._chunks))
        for chunk in self._chunks:
            out += chunk
        out.append(len(self._numbers))
        for pe, number in self._numbers:
            out += [Asked(each, "product", pe, number, at) for at, each in enumerate(self._product_times(pe, number))]
        return [*out, len(self.recording.queues), *queues, len(self.recording.commands), *commands, *host]

    # Transfers ------------------------------------------------------------------------------------------

    def _transfer(self, pe: int, number: int) -> int:
        """Return the number of what a PE's DMA does for ranges that are moved together."""
        found = self._transfers.get((pe, number))
        if found is None:
            found = self._transfers[pe, number] = len(self._chunks)
            self._chunks.append(self._cut_for(pe, number))
        return found

    def _cut_for(self, pe: int, number: int) -> list[float]:
        hardware, prefix = self.form.hardware, self.form.hardware.layout.pes[pe].prefix
        chunks = hardware.cut(self._regions[number])
        mmu: Any = hardware.components.get(pe_unit(prefix, "pe_mmu"))
        if mmu is not None:
            mmu._memory = self._blocks
            blocks = {tuple(self.recording.ranges[at][4:]): None for at in self.recording.lists[number]}
            self._blocks.known = list(blocks)
        out: list[float] = [len(chunks)]
        for chunk in chunks:
            path = self.form.memory_path(pe_unit(prefix, "pe_dma"), chunk.node)
            out += [path, chunk.nbytes, len(chunk.regions), *self._shares(chunk)]
            out += self._page_uses(mmu, chunk)
        return out

    def _shares(self, chunk: Chunk) -> list[float]:
        shares = self._memory(chunk).interleaving.shares(chunk.regions)
        return [len(shares), *(field for share in shares for field in share)]

    def _memory(self, chunk: Chunk) -> Any:
        memory: Any = self.form.hardware.components[chunk.node]
        if memory.interleaving is None:
            raise NotTimed(f"a transfer to {chunk.node}")
        return memory

    def _page_uses(self, mmu: Any, chunk: Chunk) -> list[float]:
        if mmu is None:
            return [0]
        pages, params = mmu.pages(chunk.regions), mmu.params
        sets = params["tlb_entries"] // (params["tlb_ways"] or params["tlb_entries"])
        out: list[float] = [len(pages)]
        for page in pages:
            number = self._pages.setdefault(page, len(self._pages))
            out += [number, page[0] // page[1] % sets]
        return out

    def _slot(self, nbytes: int) -> int:
        """Return the number of what a DMA moves of a piece of a message."""
        found = self._transfers.get(("slot", nbytes))
        if found is None:
            found = self._transfers["slot", nbytes] = len(self._chunks)
            most = self.form.hardware.chunk_bytes
            sizes = [most] * (nbytes // most) + ([nbytes % most] if nbytes % most else [])
            self._chunks.append([len(sizes), *(field for size in sizes for field in (-1, size, 1, 0, 0))])
        return found

    # Commands -------------------------------------------------------------------------------------------

    def _command(self, command: Sequence[int], held: Sequence[int]) -> list[float]:
        pe, number, nbytes, unit, needs, *fields = command
        prefix = self.form.hardware.layout.pes[pe].prefix
        path = self.form.way(("wire", pe_unit(prefix, "pe_cpu"), pe_unit(prefix, UNITS[unit])))
        return [pe, number, nbytes, path, unit, needs, len(held), *held, *self._fields(pe, unit, fields)]

    def _fields(self, pe: int, unit: int, fields: Sequence[int]) -> list[float]:
        if unit == _DMA:
            kind, transfer = fields[0], self._transfer(pe, fields[1])
            if kind == ATOMIC:
                return [1, 1, transfer, *self._atomic(fields[1], self.recording.works[fields[2]])]
            return [1, 0, transfer] if kind else [0, transfer]
        if unit == _GEMM:
            return [self._product(pe, fields[0]), self._product(pe, fields[1]), fields[2]]
        if unit == _MATH:
            return [self._math(pe, fields[0])]
        if unit == _SCHEDULER:
            return self._plan(pe, self.recording.plans[fields[0]])
        return list(map(float, [*fields, 0][:4]))

    def _atomic(self, number: int, work: Mapping[str, Any]) -> list[float]:
        """Return the operands' bytes of an atomic op, and of each burst its channel, its steps, and its number."""
        regions = self._regions[number]
        (chunk,) = self.form.hardware.cut(regions)
        units = self._memory(chunk).atomic_units
        bursts = units._bursts(_AtomicAccess(work))
        more = _ADDRESS_BYTES * (len(regions) - len(chunk.regions))  # it sends its own regions, not those that are cut
        out: list[float] = [work["sent"], more, len(bursts)]
        for address, steps in bursts.items():
            out += [units._channel_of(address), steps, self._bursts.setdefault(address, len(self._bursts))]
        return out

    def _product(self, pe: int, number: int) -> int:
        return self._numbers.setdefault((pe, number), len(self._numbers))

    def _product_times(self, pe: int, number: int) -> tuple[float, ...]:
        """Return how long a product takes on a PE, in the order of engine/compute.hpp."""
        like = self._like(pe, "pe_gemm")
        found: tuple[float, ...] | None = self._known.get((like, number))
        if found is None:
            unit, work = self._unit(pe, "pe_gemm"), _Work(dict(self.recording.works[number]))
            port = unit.params.get("operand_bandwidth", math.inf)
            times = unit._made(unit.passage(work), work.beside_bytes / port)
            found = self._known[like, number] = (
                float(times.one_fold), times.load, times.last_fold, times.streams, times.own, times.unfilled,
                times.into, times.through, times.emptied, times.alone,
            )  # fmt: skip
        return found

    def _math(self, pe: int, number: int) -> Asked:
        return Asked(self._math_time(pe, number), "math", pe, number)

    def _math_time(self, pe: int, number: int) -> float:
        like = self._like(pe, "pe_math")
        found: float | None = self._known.get((like, number))
        if found is None:
            unit, work = self._unit(pe, "pe_math"), _MathWork.of(self.recording.works[number])
            found = self._known[like, number] = float(unit.min_service_ns(work))
        return found

    def _like(self, pe: int, kind: str) -> int:
        """Return a number for the units that are of one model with the same parameters: they are asked once."""
        found = self._likes.get((pe, kind))
        if found is None:
            unit = self._unit(pe, kind)
            found = self._likes[pe, kind] = self._models.setdefault((type(unit), repr(unit.params)), len(self._models))
        return found

    def again(self, what: tuple[Any, ...]) -> float:
        """Return a number that was asked for on another machine, as it is on this one."""
        kind, *rest = what
        if kind == "product":
            pe, number, at = rest
            found: float = self._product_times(pe, number)[at]
            return found
        if kind == "math":
            return self._math_time(*rest)
        node, order, targets = rest
        fan_out: Any = self.form.hardware.components[node]
        reach: float = fan_out._reach(order, targets)
        return reach

    def _unit(self, pe: int, kind: str) -> Any:
        return self.form.hardware.components[pe_unit(self.form.hardware.layout.pes[pe].prefix, kind)]

    def _plan(self, pe: int, tiles: Sequence[Any]) -> list[float]:
        out: list[float] = [len(tiles)]
        prefix = self.form.hardware.layout.pes[pe].prefix
        for *sizes, stages in tiles:
            out += [*sizes, len(stages)]
            for kind, unit, value in stages:
                took = 0.0
                if kind in ("DMA_READ", "DMA_WRITE"):
                    value = self._transfer(pe, value)
                elif kind == "GEMM":
                    value = self._product(pe, value)
                elif kind == "MATH":
                    took = self._math(pe, value)
                out += [_STAGES.index(kind), self.form.nodes[pe_unit(prefix, unit)], value, took]
        return out

    def _queue(self, number: int, queue: Sequence[int]) -> list[float]:
        source, destination, slots, slot_bytes = queue
        totals = [c[7] for c in self.recording.commands if c[3] == _QUEUES and c[5] and c[6] == number]
        pieces = sorted({size for total in totals for size in _pieces(total, slot_bytes)})
        pes = self.form.hardware.layout.pes
        here, there = (pes[pe].prefix for pe in (source, destination))
        transfers = [field for size in pieces for field in (size, self._slot(size))]
        keepers = self.form.nodes[pes[destination].pe_cpu], self.form.nodes[pe_unit(there, "pe_ipcq")]
        ways = self.form.way(("slot", here, there)), self.form.way(("credit", there, here))
        return [slots, slot_bytes, *keepers, *ways, len(pieces), *transfers]

    # The host -------------------------------------------------------------------------------------------

    def _host(self) -> list[float]:
        launches = sum(1 for request in self.recording.requests if request.get("launch"))
        out: list[float] = [launches, len(self.recording.streams)]
        for launch, pe, fields in self.recording.streams:
            cpu = self.form.hardware.layout.pes[pe].pe_cpu
            out += [launch, self.form.nodes[cpu], len(fields), *fields]
        out.append(len(self.recording.requests))
        for request in self.recording.requests:
            out.append(self.form.way(("self", "host", "")))
            out += self._order(request) if "launch" in request else self._copy(request)
        return [*out, len(self.recording.program), *self.recording.program]

    def _copy(self, request: Any) -> list[float]:
        chunks = self.form.hardware.cut(self._regions[request["regions"]])
        out: list[float] = [1, int(request["op"] == "write"), len(chunks)]
        for chunk in chunks:
            path = self.form.memory_path("host", chunk.node)
            out += [path, chunk.nbytes, len(chunk.regions), *self._shares(chunk)]
        return out

    def _order(self, request: Any) -> list[float]:
        ranges = request.get("ranges", [])
        order: Launch | MapUpdate
        if request["launch"]:
            arguments = dict.fromkeys(range((request["nbytes"] - 64) // 8))
            order = Launch(len, {str(name): 0 for name in arguments}, (1, 1, 1), dict.fromkeys(request["targets"], ()))
        else:
            order = MapUpdate(tuple(Region(start, end - start) for start, end in ranges), bool(request.get("unmap")))
        tree = self._tree("host", tuple(request["targets"]), order)
        flat = [self._ranks[end] for pair in ranges for end in pair]
        head = [0, int(request["launch"]), int(bool(request.get("unmap"))), request["nbytes"]]
        return [*head, len(ranges), *flat, *tree]

    def _tree(self, node: str, targets: tuple[int, ...], order: Launch | MapUpdate) -> list[float]:
        """Return the steps of a fan-out below a node, as it takes them."""
        here = self.form.hardware.components[node]
        if not isinstance(here, LaunchFanOut):
            return [0.0, 0]
        groups = here.groups(targets, order)
        stamps = isinstance(order, Launch) and (node != "host" or len(groups) > 1)
        reach = Asked(here._reach(order, targets), "reach", node, order, targets) if stamps else 0.0  # type: ignore[arg-type]
        out: list[float] = [reach, len(groups)]
        for destination, below in groups.items():
            out += [self.form.command_path(node, destination), *self._tree(destination, below, order)]
        return out


class _MathWork(_Work):
    """A math op; a stage of a tile reads nothing that lies in the scratchpad but what is beside it."""

    @classmethod
    def of(cls, work: Any) -> _MathWork:
        """Return it as a model asks for it: with the value that it gives, of the bytes that pass the port."""
        made = cls(dict(work))
        made.value = _Bytes(work["streamed"])
        return made

    value: Any
    alike = None
    math_op = None


class _Bytes:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def _pieces(total: int, slot_bytes: int) -> set[int]:
    """Return the sizes of the pieces of a message."""
    if total <= slot_bytes:
        return {total}
    return {slot_bytes, total % slot_bytes} - {0}
