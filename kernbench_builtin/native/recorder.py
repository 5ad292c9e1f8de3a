"""Look on at a run, and record what its programs and the host ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kernbench_builtin.components.compute_unit import streamed_bytes
from kernbench_builtin.components.pe_scheduler import plan_of
from kernbench_builtin.components.queues.rings import Queues
from kernbench_builtin.composites.command import CompositeCmd
from kernbench_builtin.native.blocks import BlockLog
from kernbench_builtin.native.program_stream import Outside, ProgramStream, RecordingBridge
from kernbench_builtin.native.recording import (
    ATOMIC,
    END,
    LENT,
    READ,
    UNITS,
    WRITE,
    Recording,
    structure_of,
)
from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import PageFaultError
from kernbench_core.host.host_program import FIGURES, HostProgram, current_program
from kernbench_core.kernel.bridge import Bridge
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.kernel.compute_commands import GemmCmd, MathCmd
from kernbench_core.kernel.dma_commands import DmaReadCmd, DmaWriteCmd
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.queue_commands import RecvCmd, SendCmd
from kernbench_core.memory import AtomicTransaction
from kernbench_core.messages import HostRequest, KernelLaunchMsg, MemoryMsg, MmuMapMsg
from kernbench_core.values.dtypes import is_float
from kernbench_core.values.region import Region

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.environment import Environment
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.kernel.pe_state import Kernels
    from kernbench_core.messages import Launch

_FACTORS = 2
_NO_BLOCK: Final = (0, 0, -1)


class Interned(dict[Any, int]):
    """Number things, equal ones alike, in the order in which they come."""

    def number(self, thing: Any) -> int:
        """Return the number of a thing."""
        return self.setdefault(thing, len(self))


def is_whole(session: GraphEngine) -> bool:
    """Whether programs ran, and every request of the host was answered: there is something to record."""
    return bool(session.shared.programs) and all(request.response is not None for request in session.shared.requests)


class StreamRecorder:
    """Look on at one run (a `RunObserver` of the engine); `recording` gives what its programs asked for.

    Nothing of the run changes. What cannot be timed otherwise is noted with its line, once for each cause.
    """

    env: Environment | None = None

    def __init__(self) -> None:
        self._ranges, self._lists, self._works = Interned(), Interned(), Interned()
        self._plans: list[list[tuple[Any, ...]]] = []
        self._queues = Interned()
        self._commands: list[tuple[Any, ...]] = []
        self._numbers: dict[tuple[int, int], int] = {}
        self._streams: dict[tuple[int, int], list[int]] = {}
        self._requests: list[dict[str, Any]] = []
        self._submitted: list[HostRequest] = []
        self._launches = 0
        self._causes: dict[str, str] = {}
        self._holds: list[list[int]] = []
        self._blocks: dict[int, BlockLog] = {}
        self._fields: dict[int, list[int]] = {}
        #: The kinds of atomic ops on each tensor, and what their order may change that a program looks at.
        self._atomics: dict[int, set[str]] = {}
        self._by_order: dict[str, CallSite] = {}
        self._outside: dict[Launch, Outside] = {}

    def begin(self, hardware: Hardware) -> None:
        """Take note of the machine."""
        self._hardware = hardware

    def attach(self, hardware: Hardware) -> None:
        """Do nothing: programs are looked at, and not the machine."""

    def submitted(self, request: HostRequest) -> None:
        """Record a request of the host; look on at the programs of a launch."""
        self._look_outside(current_program())
        self._submitted.append(request)
        if isinstance(request, KernelLaunchMsg):
            launch, number = request.launch, self._launches
            self._launches += 1
            self._requests.append({"launch": True, "nbytes": launch.nbytes, "targets": sorted(launch.programs)})
            for pe in launch.programs:
                self._streams[number, pe] = []
            self._note_whole(launch)
            outside = self._outside[launch] = Outside(launch.kernel)
            launch.watch = partial(self._watch, number, launch.watch, outside)
        elif isinstance(request, MmuMapMsg):
            update = request.update
            ends = sorted([(region.base, region.end) for region in update.regions])
            self._requests.append(
                {"launch": False, "nbytes": update.nbytes, "targets": list(request.targets), "unmap": update.unmap,
                 "ranges": ends}
            )  # fmt: skip
        elif isinstance(request, MemoryMsg) and not request.through_m_cpu:
            self._requests.append({"op": request.op, "regions": self._list(request.regions)})
        else:
            self._requests.append({"op": request.op})
            self._refuse(f"the request {type(request).__name__} of the host, through the DMA of an m_cpu")

    def _look_outside(self, program: HostProgram | None) -> None:
        """Look whether variables that kernels read are as they were, of launches that nobody has waited for."""
        for handle in () if program is None else program.shared.running:
            if handle.request.launch in self._outside:
                self._outside[handle.request.launch].look(self)

    def _note_whole(self, launch: Launch) -> None:
        """Have programs know which tensors are written already: of these it is no matter of time."""
        pe = min(launch.programs)
        kernels = self._cpu(pe).kernels
        kernels.recorded = kernels.recorded or set()
        for value in launch.arguments.values():
            tensor = value.tensor if isinstance(value, Pointer) else None
            if tensor is not None and tensor.nbytes and tensor.va not in kernels.recorded:
                with suppress(PageFaultError):  # this PE has no page of it
                    where = self._memory.translate((Region(tensor.va, tensor.nbytes),), pe)
                    kernels.recorded |= {tensor.va} if kernels.store.has("hbm", where) else set()

    def _cpu(self, pe: int) -> Any:
        return self._hardware.components[self._hardware.layout.pes[pe].pe_cpu]

    def _watch(
        self, launch: int, other: Callable[..., Any] | None, outside: Outside, pe: int, program: tuple[int, int, int]
    ) -> Callable[..., Any]:
        state = self._cpu(pe).kernels.states[pe]
        fields = self._fields[pe] = self._streams[launch, pe]
        if pe not in self._blocks:
            self._blocks[pe] = BlockLog(state.tcm, partial(self._block, pe))
        outside.look(self)
        stream = ProgramStream(self, state, fields, self._blocks[pe], outside)
        return partial(RecordingBridge, stream, Bridge if other is None else other(pe, program))

    def _block(self, pe: int, what: int, argument: int, number: int) -> None:
        program = current_program()
        if program is not None and program.bridge.inside:
            self._refuse("a tile of a launch that was kept until after it")
        self._fields[pe] += [what, argument, 1, number]

    def _refuse(self, cause: str, site: CallSite | None = None) -> None:
        self._causes.setdefault(cause, _at(site))

    # Commands ---------------------------------------------------------------------------------------

    def number_of(self, command: KernelCommand) -> int:
        """Return the number of a command that was recorded; one that was not is refused."""
        found = self._numbers.get(command.op_id)
        if found is None:
            self._refuse(f"{command.call}, which waits for a command of another kind", command.site)
            return 0
        return found

    def add(self, command: KernelCommand, holds: list[int]) -> int:
        """Record a command that is about to be issued, and that holds blocks; return its number."""
        self._holds.append(holds)
        number = self._numbers[command.op_id] = len(self._commands)
        kind = type(command)
        record = _KINDS.get(getattr(kind, "timed_as", kind))
        if record is None:
            self._refuse(f"{command.call}, which the engine has no model of ({kind.__name__})", command.site)
            fields: tuple[Any, ...] = (0, 0, 0)
        else:
            fields = record(self, command)
        needs = -1 if command.needs is None else self.number_of(command.needs)
        unit = UNITS.index(command.serves) if command.serves in UNITS else 0
        self._commands.append((*command.op_id, command.nbytes, unit, needs, *fields))
        return number

    def refuse(self, cause: str, site: CallSite | None) -> None:
        """Take note of what cannot be timed otherwise."""
        self._refuse(cause, site)

    def _list(self, regions: Iterable[Region]) -> int:
        block_at, ranges, block, found = self._memory.block_at, self._ranges, _NO_BLOCK, []
        for region in regions:
            base = region.base
            if not block[0] <= base < block[1]:
                block = block_at(base) or _NO_BLOCK
            found.append(ranges.number((base, region.row_bytes, region.rows, region.pitch, *block)))
        return self._lists.number(tuple(found))

    @property
    def _memory(self) -> Any:
        from kernbench_core.memory import DeviceMemory

        return self._hardware.find(DeviceMemory)

    def _dma(self, command: Any) -> tuple[Any, ...]:
        return WRITE if command.dma_op == "write" else READ, self._list(command.regions)

    def _atomic(self, command: Any) -> tuple[Any, ...]:
        """Record what changes elements; what finds out, or leaves, who was first is a matter of time."""
        if command.answer is not None:
            self._refuse(f"{command.call}, whose result is used, as times decide who is first", command.site)
        elif command.op.removeprefix("atomic_") not in _IN_ANY_ORDER:
            self._refuse(f"{command.call}, as times decide who is last", command.site)
        kinds = self._atomics.setdefault(command.tensor.va, set())
        kinds.add(command.op)
        if len(kinds) > 1:
            self._by_order.setdefault("what atomic ops of several kinds leave, by their order", command.site)
        if is_float(command.value.dtype) and command.op == "atomic_add":
            self._by_order.setdefault("a sum of floats, by the order of atomic ops", command.site)
        sent = command.transaction((), _nothing)
        work = {"addresses": tuple(sent.addresses.tolist()), "turns": tuple(sent.turns.tolist()), "sent": command.sent}
        return ATOMIC, self._list(command.regions), self._work(work)

    def _gemm(self, command: GemmCmd) -> tuple[Any, ...]:
        shape = {"m": command.m, "k": command.k, "n": command.n, "dtype_in": command.dtype_in}
        numbers = [self._work({**shape, "streamed": streamed_bytes(command, count)}) for count in (None, _FACTORS)]
        before = command.sum_before
        return (*numbers, 0 if before is None else (before[0] << 40) + before[1] + 1)

    def _math(self, command: MathCmd) -> tuple[Any, ...]:
        reads = [(read.value.shape, read.value.dtype, read.region is not None) for read in command.reads]
        axis = command.extra.get("axis")
        return (
            self._work({
                "op": command.op, "elements": command.elements, "dtype": command.dtype, "reduce": command.reduce,
                "axis": axis, "reads": tuple(reads), "streamed": streamed_bytes(command),
            }),
        )  # fmt: skip

    def _work(self, work: Mapping[str, Any]) -> int:
        return self._works.number(tuple(work.items()))

    def _composite(self, command: CompositeCmd) -> tuple[Any, ...]:
        prefix = self._hardware.layout.pes[command.op_id[0]].prefix
        tiles = []
        for tile in plan_of(command, prefix).tiles:
            stages = [self._stage(command, stage) for stage in tile.stages]
            rooms = tile.staged_bytes, tile.operand_bytes, tile.sum_bytes, tile.last_use
            tiles.append((tile.m_tile, tile.n_tile, tile.k_tile, *rooms, stages))
        self._plans.append(tiles)
        return (len(self._plans) - 1,)

    def _stage(self, command: CompositeCmd, stage: Any) -> tuple[Any, ...]:
        params, kind = stage.params, stage.stage_type.name
        unit = stage.component.rpartition(".")[2]
        if stage.stage_type.dma_op:
            block = params["row0"], params["rows"], params["col0"], params["cols"]
            return kind, unit, self._list(command.tile_regions(params["operand"], *block))
        beside = int(params.get("beside_bytes", 0))
        if kind == "GEMM":
            shape = {name: params[name] for name in ("m", "k", "n", "dtype_in")}
            return kind, unit, self._work({**shape, "streamed": beside})
        if kind == "MATH":
            return kind, unit, self._work(
                {"op": params["op_kind"], "elements": params["elements"], "dtype": params["dtype"], "reduce": False,
                 "axis": None, "reads": (), "streamed": beside}
            )  # fmt: skip
        return kind, unit, params["nbytes"]

    def _queue(self, source: int, destination: int, command: Any) -> int:
        channel, nodes = command.channel, self._hardware.graph.nodes
        keeper = nodes[f"{self._hardware.layout.pes[destination].prefix}.pe_ipcq"].params
        slots = keeper["slots"] if channel.slots is None else channel.slots
        slot_bytes = keeper["slot_bytes"] if channel.slot_bytes is None else channel.slot_bytes
        tier = keeper["tier"] if channel.tier is None else channel.tier
        if tier != "tcm":
            self._refuse(f"{command.call} through slots in {tier}", command.site)
        return self._queues.number((source, destination, channel, slots, slot_bytes))

    def _send(self, command: SendCmd) -> tuple[Any, ...]:
        return 1, self._queue(command.pe, command.to, command), command.total

    def _recv(self, command: RecvCmd) -> tuple[Any, ...]:
        if len(command.sources) != 1:
            self._refuse(f"{command.call}, which takes what comes first from several PEs", command.site)
        return 0, self._queue(command.sources[0], command.pe, command), command.total, int(command.local is None)

    # The whole ----------------------------------------------------------------------------------------

    def recording(self, session: GraphEngine) -> Recording:
        """Return what a run that has ended asked for."""
        shared, kernels = session.shared, session.device.kernels
        for program in shared.programs:
            self._look_outside(program)
        if len(shared.programs) != 1:
            self._refuse(f"{len(shared.programs)} host programs side by side")
        timed = {**shared.timed, **kernels.timed}
        looked_at = {**{call: site for call, site in timed.items() if call in _JUST_READ}, **self._by_order}
        for call, site in timed.items():
            if call not in looked_at:
                self._refuse(f"a program that asks for {call}", site)
        slots = {(pe, at) for (_, pe), fields in self._streams.items() for what, at in _asks(fields) if what == LENT}
        for (_, pe), fields in self._streams.items():
            if any((pe, number) in slots for number in _dropped_at_end(fields)):
                self._refuse("a slot of a queue that a program kept until after its end")
        self._look_at_data(session, kernels)
        if any(not fields for fields in self._streams.values()):
            self._refuse("programs that another part of the run took over")
        queues = session.hardware.find(Queues)
        if len(list(queues or ())) != len(self._queues):
            self._refuse("queues whose channel was closed")
        return Recording(
            structure=structure_of(session.machine),
            params_read=[(node, name, value) for (node, name), value in shared.params_read.items()],
            causes=tuple(f"{cause}{line}" for cause, line in self._causes.items()),
            looked_at=tuple(f"{call}{_at(site)}" for call, site in looked_at.items()),
            ranges=list(self._ranges),
            lists=list(self._lists),
            works=[dict(work) for work in self._works],
            plans=self._plans,
            queues=[(source, to, slots, size) for source, to, _, slots, size in self._queues],
            commands=self._commands,
            holds=self._holds,
            streams=[(launch, pe, fields) for (launch, pe), fields in self._streams.items()],
            requests=self._requests,
            program=self._program(shared.programs[0].requests, shared.programs[0].joined),
        )

    def _look_at_data(self, session: GraphEngine, kernels: Kernels) -> None:
        """Refuse where what programs read may depend on time."""
        found = session.device.hazards.found()
        if found:
            self._refuse("uses of memory whose order nothing decides, which the run lists as hazards")
        if session.device.on_demand.branch_values.read:
            self._refuse("values that were computed while kernels ran, on demand")

    def _program(self, requests: list[HostRequest], joined: list[tuple[int, HostRequest]]) -> list[int]:
        numbers = {id(request): number for number, request in enumerate(self._submitted)}
        steps: list[int] = []
        waits = iter([*joined, (math.inf, None)])
        after, awaited = next(waits)
        for at, request in enumerate(requests):
            while after <= at and awaited is not None:
                steps.append(-1 - numbers[id(awaited)])
                after, awaited = next(waits)
            steps.append(numbers[id(request)])
            if not isinstance(request, KernelLaunchMsg):
                steps.append(-1 - numbers[id(request)])
        while awaited is not None:
            steps.append(-1 - numbers[id(awaited)])
            after, awaited = next(waits)
        return [*steps, *(-1 - numbers[id(request)] for request in requests)]


_KINDS: dict[type, Callable[[StreamRecorder, Any], tuple[Any, ...]]] = {
    DmaReadCmd: StreamRecorder._dma,
    DmaWriteCmd: StreamRecorder._dma,
    GemmCmd: StreamRecorder._gemm,
    MathCmd: StreamRecorder._math,
    CompositeCmd: StreamRecorder._composite,
    SendCmd: StreamRecorder._send,
    RecvCmd: StreamRecorder._recv,
    AtomicTransaction: StreamRecorder._atomic,
}
#: What a program may ask for without any time passing: it goes on as it would.
_JUST_READ: Final = frozenset({FIGURES, "rt.now", "the PE in a direction"})
#: Atomic ops of which several leave the same whatever their order.
_IN_ANY_ORDER: Final = frozenset({"add", "and", "max", "min", "or", "xor"})


def _asks(fields: list[int]) -> Iterator[tuple[int, int]]:
    """Yield what a PE asked for in a launch, each with its last number, as that of a block."""
    at = 0
    while at < len(fields):
        what, at = fields[at], at + 3 + fields[at + 2]
        yield what, fields[at - 1]


def _dropped_at_end(fields: list[int]) -> list[int]:
    """Return the blocks that a PE gave back after its last program of a launch, as what was in flight then ended."""
    found: list[int] = []
    for what, number in _asks(fields):
        found = [] if what == END else [*found, number]
    return found


def _at(site: CallSite | None) -> str:
    return "" if site is None else f" at {describe_site(site)}"


def _nothing(_: object) -> None:
    """Ignore an answer that never comes."""
