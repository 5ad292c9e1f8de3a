"""One run of a proof: a collective's kernels without time, on symbolic payloads, and what is noted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from attrs import define

from kernbench_ccl.catalogue import Algorithm
from kernbench_ccl.contract import Collective, KernelContext
from kernbench_ccl.prove.lost_contributions import Scene, Search
from kernbench_ccl.prove.network_use import NetworkUse, ignores_kind
from kernbench_ccl.prove.payloads import Contributor, Payload
from kernbench_ccl.prove.postconditions import BEFORE
from kernbench_ccl.prove.proof_case import ProofCase, sides
from kernbench_ccl.prove.symbols import Symbols
from kernbench_ccl.prove.trail import LOAD, RECEIVE, SEND
from kernbench_ccl.prove.untimed_run import Outcome, Untimed, bare_design
from kernbench_ccl.prove.wrong_step import History
from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.kernel import DmaReadCmd, DmaWriteCmd, KernelCommand, Kernels, Pointer, RecvCmd, SendCmd
from kernbench_core.memory import DeviceMemory, Hazard, Hazards, TensorAllocation
from kernbench_core.messages import Launch
from kernbench_core.peers import Channel, Peers
from kernbench_core.topology import Extent, network_directions
from kernbench_core.values import MemoryStore, OpId, Region, ResultValue, Value
from kernbench_core.values.dtypes import itemsize

__tracebackhide__ = True  # errors name the kernel's line, not one of these


_FEWEST, _EACH = 50_000, 32
"""Commands after which a kernel is taken for one that has no end, and how many more for each element of the vectors."""


def line_at(site: CallSite) -> str:
    """Return where a command was issued."""
    return _spelt(site, site[0].co_filename)


@lru_cache(4096)
def _spelt(site: CallSite, _: str) -> str:
    """Spell a site; the file is given because code of two files may be equal."""
    return describe_site(site)


def peers_of(case: ProofCase, use: NetworkUse) -> Peers:
    """Return the peers of a case, and their neighbours in the network, as a timed launch has them."""
    ranks = tuple(tuple(rank * case.n_pe + place for place in range(case.n_pe)) for rank in range(case.world))
    network, world = case.network, case.world
    extent = Extent(world, *(network.grid(world) if network.shape.flat else (world, 1)))
    return Peers(ranks, Channel(), use.directions(network_directions(network.shape, extent, ranks)))


@define(eq=False)
class Buffer:
    """A tensor of one rank, and what it holds at the beginning."""

    allocation: TensorAllocation
    value: Value

    def at(self, start: int) -> Pointer:
        return Pointer(self.allocation, start, self.allocation.dtype)


class Run:
    """One case: its memory, its kernels, and what is noted while they run."""

    def __init__(self, algorithm: Algorithm, collective: Collective, case: ProofCase) -> None:
        self.case = case
        self.kind = collective.kind
        self._design = bare_design(case.world, case.n_pe)
        self._memory = DeviceMemory(self._design)
        self._store = MemoryStore()
        vectors = case.world * (case.n_pe if case.contributors == "pe" else 1)
        self.history = History(Symbols(case.redop, case.dtype, vectors))
        self.trail = self.history.trail
        self.sites: dict[OpId, CallSite] = {}
        self.use = NetworkUse(asked=not ignores_kind(algorithm))
        self.peers = peers_of(case, self.use)
        self.heard = {pe: 1 << self.peers.place_of(pe)[0] for row in self.peers.ranks for pe in row}
        self.reached = dict.fromkeys(self.heard, 0)
        self._carried: dict[OpId, int] = {}
        self._hazards = Hazards([site.prefix for site in self._design.pes], lambda: 0.0)
        self.inputs: dict[int, Buffer] = {}
        self.outputs: dict[int, Buffer] = {}
        arguments = {}
        kind, watched = algorithm.kind_of(case.network), self.use.watched(collective)
        for rank in range(case.world):
            pointers = self._tensors(algorithm, rank)
            for place in range(case.n_pe):
                context = KernelContext(*pointers, case.count, rank, case.world, place, case.n_pe, kind, watched)
                arguments[self.peers.ranks[rank][place]] = algorithm.arguments(context)
        pes = tuple(arguments)
        programs = {pe: ((number, 0, 0),) for number, pe in enumerate(pes)}
        launch = Launch(algorithm.kernel, {}, (len(pes), 1, 1), programs, self.peers, watched)
        self._machine = Untimed(
            launch,
            arguments,
            Kernels(self._memory, self._store, hazards=self._hazards if case.n_pe > 1 else None),  # who share tensors
            self._design,
            slots=case.slots,
            slot_bytes=case.tile * itemsize(case.dtype),
            told=self._told,
            waited=self._waited,
            slot_hazards=self._hazards,
            most=_FEWEST + _EACH * case.count * vectors,
            order=case.order,
        )

    def run(self) -> Outcome:
        """Let the kernels run, once, and return how that ended."""
        return self._machine.run()

    # Memory -----------------------------------------------------------------------------------------

    def _tensors(self, algorithm: Algorithm, rank: int) -> tuple[Pointer | None, Pointer | None, Pointer | None]:
        """Allocate a rank's tensors, and return the pointers to its input, its output and its scratch memory."""
        case, symbols = self.case, self.history.symbols
        n_in, n_out = sides(self.kind, case, rank)
        scratch = algorithm.scratch(case.count, case.world)
        spare = self._buffer(rank, "scratch", scratch).at(0) if scratch else None
        if not case.in_place or n_in is None or n_out is None:
            given = self._contributed(self.inputs, rank, "input", n_in, rank)
            made = self._contributed(self.outputs, rank, "output", n_out, BEFORE)
            return given, made, spare
        whole = self.outputs[rank] = self._buffer(rank, "buffer", max(n_in, n_out))
        symbols.contribute(whole.value, BEFORE if n_out > n_in else rank)
        self._fill(whole)
        if n_out > n_in:
            own = ResultValue((-1, rank), (n_in,), case.dtype)
            symbols.contribute(own, rank)
            if n_in:
                self._store.write("hbm", self._memory.translate(self._range(whole, rank * n_in, n_in)), own)
            return whole.at(rank * n_in), whole.at(0), spare
        return whole.at(0), whole.at(rank * n_out if n_in > n_out else 0), spare

    def _contributed(
        self, kept: dict[int, Buffer], rank: int, what: str, size: int | None, origin: Contributor
    ) -> Pointer | None:
        if size is None:
            return None
        buffer = kept[rank] = self._buffer(rank, what, size)
        self.history.symbols.contribute(buffer.value, origin)
        self._fill(buffer)
        return buffer.at(0)

    def _buffer(self, rank: int, what: str, size: int) -> Buffer:
        pes = [self._design.pes[pe] for pe in self.peers.ranks[rank]]
        name = f"{what} of rank {rank}"
        allocation = self._memory.allocate((size,), self.case.dtype, name, pes)
        return Buffer(allocation, ResultValue((-1, rank), (size,), self.case.dtype))

    def _fill(self, buffer: Buffer) -> None:
        if buffer.value.nbytes:
            self._store.write("hbm", buffer.allocation.regions, buffer.value)

    def _range(self, buffer: Buffer, start: int, count: int) -> tuple[Region, ...]:
        size = itemsize(self.case.dtype)
        return (Region(buffer.allocation.va + start * size, count * size),)

    def held(self, buffer: Buffer, start: int, count: int) -> Payload:
        regions = self._memory.translate(self._range(buffer, start, count))
        return self.history.symbols.of(self._store.value("hbm", regions, (count,), self.case.dtype))

    def first_of_output(self, rank: int, size: int) -> int:
        """Return where the `size` elements of a rank's output begin in its tensor: in place, where the input is larger.
        """
        given, _ = sides(self.kind, self.case, rank)
        inside = self.case.in_place and rank not in self.inputs and given is not None and given > size
        return rank * size if inside else 0

    def writer(self, buffer: Buffer, element: int) -> OpId | None:
        """Return the op that wrote an element of a tensor last."""
        writes = self._store.writes("hbm", self._memory.translate(self._range(buffer, element, 1)))
        return writes[0].writer if writes else None

    # While kernels run ------------------------------------------------------------------------------

    def _told(self, command: KernelCommand) -> None:
        self.sites[command.op_id] = command.site
        if isinstance(command, SendCmd):
            self._sent(command)
        elif isinstance(command, RecvCmd):
            self._received(command)
        else:
            self._reach(command.op_id[0], self._step_of(command))

    def _step_of(self, command: KernelCommand) -> int:
        """Take note of a command that is no message, and return its step."""
        history = self.history
        if type(command) is DmaReadCmd:
            return self.trail.note(command.op_id, LOAD, command.value, (command.value,))
        if type(command) is DmaWriteCmd:
            return history.stored(command.op_id, command.value, command.stored, command.regions)
        op = command.describe()
        return 0 if op is None else history.tell(op, line_at(command.site))

    def _sent(self, command: SendCmd) -> None:
        self.trail.note(command.op_id, SEND, command.value, (command.value,), to=command.to)
        self._carried[command.op_id] = self.heard[command.pe]

    def _received(self, command: RecvCmd) -> None:
        if command.sent is None:
            return
        sender = command.sent.op_id
        self._reach(command.pe, self.trail.note(command.op_id, RECEIVE, command.value, after=(sender,)))

    def _waited(self, command: KernelCommand) -> None:
        """Take note of what a PE has heard of: a message that has come tells nothing before it is waited for."""
        if isinstance(command, RecvCmd) and command.sent is not None:
            self.heard[command.pe] |= self._carried[command.sent.op_id]

    def _reach(self, pe: int, step: int) -> None:
        if step > self.reached[pe]:
            self.reached[pe] = step

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The uses of memory that no message orders: a proof for one order would say nothing about another."""
        return self._hazards.found()

    def pe_named(self, prefix: str) -> int:
        """Return the PE that hazards call so."""
        return next(number for number, site in enumerate(self._design.pes) if site.prefix == prefix)

    def where(self, op_id: OpId) -> str:
        """Return the kernel line at which an op was issued."""
        site = self.sites.get(op_id)
        return "an unknown line" if site is None else line_at(site)

    def search(self, named: Callable[[int], str]) -> Search:
        """Return a search for what the outputs lack; `named(pe)` spells a PE."""

        def writer_at(address: int, nbytes: int) -> OpId | None:
            writes = self._store.writes("hbm", (Region(address, nbytes),))
            return writes[0].writer if writes else None

        outputs = [
            (self.held(buffer, 0, buffer.allocation.size), partial(self.writer, buffer))
            for buffer in self.outputs.values()
            if buffer.allocation.size
        ]
        scene = Scene(self.history.symbols.of, self.where, self.peers.place_of, named, outputs, writer_at)
        return Search(self.trail, scene)
