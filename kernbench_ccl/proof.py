"""Prove one case of a collective: run its kernel without time on symbolic payloads, then look at what ranks hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from attrs import define, evolve, frozen

from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.contract import Algorithm, Collective, KernelContext, Network
from kernbench_ccl.expected import BEFORE, Admissible, differences, right_payload
from kernbench_ccl.races import Races
from kernbench_ccl.symbolic import Origin, Payload, PayloadError, Symbols, contribution
from kernbench_ccl.untimed import Outcome, Raised, Untimed, Wait, bare_design, wait_cycle
from kernbench_ccl.wrong_step import History, WrongStep, blame, chunk_of
from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.commands import KernelCommand
from kernbench_core.dtypes import itemsize
from kernbench_core.errors import KernbenchError, PendingDataError
from kernbench_core.memory import DeviceMemory, TensorAllocation
from kernbench_core.messages import Launch
from kernbench_core.peers import Peers
from kernbench_core.pointers import Pointer
from kernbench_core.queue_commands import RecvCmd, SendCmd
from kernbench_core.regions import Region
from kernbench_core.store import MemoryStore
from kernbench_core.values import OpId, ResultValue, Value

__tracebackhide__ = True  # errors name the kernel's line, not one of these

WRONG, DEADLOCK, RAISED = "wrong", "deadlock", "raised"
"""Kinds of faults: a rank ends with wrong data, kernels wait for ever, a kernel did what it must not."""

_MOST_FAULTS = 8
"""Faults of one case that are told."""

Sides = tuple[int | None, int | None]


@frozen
class Case:
    """One call of a collective that is proved.

    `counts` are the splits of an uneven all_to_all, `tile` the elements of a message, `held` the tiles that may be in a
    scratchpad at once, `slots` those of each queue (each holds one tile), `order` who runs first (see `Untimed`).
    """

    network: Network
    n_pe: int
    count: int
    redop: str | None = None
    root: int = 0
    counts: tuple[tuple[int, ...], ...] | None = None
    in_place: bool = False
    pipeline: bool = True
    tile: int = 4
    held: int = 32
    slots: int = 1
    dtype: str = "f16"
    order: int = 0
    contributors: str = "sip"
    cubes: tuple[int, int] = (1, 1)

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return self.network.world

    def __str__(self) -> str:
        words = [
            f"{_number(self.world, 'rank')} on {self.network.name}",
            f"{_number(self.n_pe, 'PE')} each" if self.world > 1 else _number(self.n_pe, "PE"),
            _number(self.count, "element") if self.counts is None else "uneven splits",
            f"tiles of {self.tile}",
        ]
        words += [f"redop {self.redop}"] if self.redop else []
        words += ["a vector of each PE"] if self.contributors == "pe" else []
        words += [f"root {self.root}"] if self.root else []
        words += ["in place" if self.in_place else "out of place"]
        words += [] if self.pipeline else ["pipeline off"]
        words += [f"queues of {_number(self.slots, 'slot')}"]
        return ", ".join(words)


@frozen
class Fault:
    """What is wrong in a case: on which rank and PE, in which step, which elements, at which kernel lines.

    `sentence` says all of it. `pe` is the place in the rank; `start` and `end` are None where no elements are meant.
    """

    kind: str
    case: Case
    rank: int
    pe: int
    step: int
    start: int | None
    end: int | None
    lines: tuple[str, ...]
    sentence: str


@frozen
class Proof:
    """What came out of one case: no faults if it is proved; how many messages were sent, and in how many steps."""

    case: Case
    faults: tuple[Fault, ...]
    messages: int
    steps: int
    chose: bool = False
    """Whether a kernel received from whoever was first: then another order may have another outcome."""


def sides(name: str, case: Case, rank: int) -> Sides:
    """Return how many elements a rank's input and output have; None where it has none."""
    kind = COLLECTIVES[name]
    if name == "barrier":
        return None, None
    vectors = case.n_pe if case.contributors == "pe" else 1
    given = kind.in_count(case.count, case.world, rank, case.root, case.counts) * vectors
    made = kind.out_count(case.count, case.world, rank, case.root, case.counts) * vectors
    rooted = rank == case.root
    return (
        given if rooted or not kind.in_at_root else None,
        made if rooted or not kind.out_at_root else None,
    )


def prove(algorithm: Algorithm, collective: Collective, case: Case) -> Proof:
    """Run one case and look at its result."""
    return _Run(algorithm, collective, case).proof()


@lru_cache(4096)
def _line(site: CallSite) -> str:
    return describe_site(site)


@define(eq=False)
class _Buffer:
    """A tensor of one rank, and what it holds at the beginning."""

    allocation: TensorAllocation
    value: Value

    def at(self, start: int) -> Pointer:
        return Pointer(self.allocation, start, self.allocation.dtype)


class _Run:
    """One case: its memory, its kernels, and what is noted while they run."""

    def __init__(self, algorithm: Algorithm, collective: Collective, case: Case) -> None:
        self.case = case
        self.name = collective.name
        self._design = bare_design(case.world, case.n_pe)
        self._memory = DeviceMemory(self._design)
        self._store = MemoryStore()
        vectors = case.world * (case.n_pe if case.contributors == "pe" else 1)
        self._history = History(Symbols(case.redop, case.dtype, vectors))
        self._sites: dict[OpId, CallSite] = {}
        self._peers = Peers(tuple(tuple(r * case.n_pe + p for p in range(case.n_pe)) for r in range(case.world)))
        self._heard = {pe: 1 << self._peers.place_of(pe)[0] for row in self._peers.ranks for pe in row}
        self._reached = dict.fromkeys(self._heard, 0)
        self._carried: dict[OpId, int] = {}
        self._races = Races() if case.n_pe > 1 else None
        self._inputs: dict[int, _Buffer] = {}
        self._outputs: dict[int, _Buffer] = {}
        arguments = {}
        kind = algorithm.kind_of(case.network)
        for rank in range(case.world):
            pointers = self._tensors(algorithm, rank)
            for place in range(case.n_pe):
                context = KernelContext(*pointers, case.count, rank, case.world, place, case.n_pe, kind, collective)
                arguments[self._peers.ranks[rank][place]] = algorithm.arguments(context)
        pes = tuple(arguments)
        programs = {pe: ((number, 0, 0),) for number, pe in enumerate(pes)}
        launch = Launch(algorithm.kernel, {}, (len(pes), 1, 1), programs, self._peers, collective)
        self._machine = Untimed(
            launch,
            arguments,
            self._memory,
            self._store,
            self._design,
            slots=case.slots,
            slot_bytes=case.tile * itemsize(case.dtype),
            told=self._told,
            order=case.order,
        )

    # Memory -----------------------------------------------------------------------------------------

    def _tensors(self, algorithm: Algorithm, rank: int) -> tuple[Pointer | None, Pointer | None, Pointer | None]:
        """Allocate a rank's tensors, and return the pointers to its input, its output and its scratch memory."""
        case, symbols = self.case, self._history.symbols
        n_in, n_out = sides(self.name, case, rank)
        scratch = algorithm.scratch(case.count, case.world)
        spare = self._buffer(rank, "scratch", scratch).at(0) if scratch else None
        if not case.in_place or n_in is None or n_out is None:
            given = self._contributed(self._inputs, rank, "input", n_in, rank)
            made = self._contributed(self._outputs, rank, "output", n_out, BEFORE)
            return given, made, spare
        whole = self._outputs[rank] = self._buffer(rank, "buffer", max(n_in, n_out))
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
        self, kept: dict[int, _Buffer], rank: int, what: str, size: int | None, origin: Origin
    ) -> Pointer | None:
        if size is None:
            return None
        buffer = kept[rank] = self._buffer(rank, what, size)
        self._history.symbols.contribute(buffer.value, origin)
        self._fill(buffer)
        return buffer.at(0)

    def _buffer(self, rank: int, what: str, size: int) -> _Buffer:
        pes = [self._design.pes[pe] for pe in self._peers.ranks[rank]]
        name = f"{what} of rank {rank}"
        allocation = self._memory.allocate((size,), self.case.dtype, name, pes)
        return _Buffer(allocation, ResultValue((-1, rank), (size,), self.case.dtype))

    def _fill(self, buffer: _Buffer) -> None:
        if buffer.value.nbytes:
            self._store.write("hbm", buffer.allocation.regions, buffer.value)

    def _range(self, buffer: _Buffer, start: int, count: int) -> tuple[Region, ...]:
        size = itemsize(self.case.dtype)
        return (Region(buffer.allocation.va + start * size, count * size),)

    def _held(self, buffer: _Buffer, start: int, count: int) -> Payload:
        regions = self._memory.translate(self._range(buffer, start, count))
        return self._history.symbols.of(self._store.value("hbm", regions, (count,), self.case.dtype))

    # While kernels run ------------------------------------------------------------------------------

    def _told(self, command: KernelCommand) -> None:
        self._sites[command.op_id] = command.site
        pe = command.op_id[0]
        if isinstance(command, SendCmd):
            steps = self._history.steps
            steps.sent(command.op_id, command.to, command.channel.name, steps.of_value(command.value, command.op_id))
            self._carried[command.op_id] = self._heard[pe]
            if self._races is not None:
                self._races.sent(command)
            return
        op = command.describe()
        if op is not None:
            self._history.tell(op, _line(command.site))
            self._reached[pe] = max(self._reached[pe], self._history.steps.of(command.op_id))
        if isinstance(command, RecvCmd) and command.sent is not None:
            self._heard[pe] |= self._carried[command.sent.op_id]
            if self._races is not None:
                self._races.received(command)
        elif self._races is not None:
            self._races.used(command)

    def _where(self, op_id: OpId) -> str:
        site = self._sites.get(op_id)
        return "an unknown line" if site is None else _line(site)

    # The result -------------------------------------------------------------------------------------

    def proof(self) -> Proof:
        """Run, and say what is wrong."""
        outcome = self._machine.run()
        faults = [*self._raised(outcome.raised), *self._blocked(outcome)]
        if not faults:
            faults += [*self._races_found(), *self._unreceived(outcome), *self._wrong(), *self._not_heard()]
        steps = self._history.steps
        return Proof(self.case, tuple(faults[:_MOST_FAULTS]), steps.messages, steps.most, outcome.used_any)

    def _fault(self, kind: str, pe: int, step: int, lines: Iterable[str], told: str) -> Fault:
        rank, place = self._peers.place_of(pe)
        return Fault(kind, self.case, rank, place, step, None, None, tuple(dict.fromkeys(lines)), told)

    def _pe(self, pe: int) -> str:
        rank, place = self._peers.place_of(pe)
        return f"rank {rank}" if self.case.n_pe == 1 else f"PE {place} of rank {rank}"

    def _raised(self, raised: Raised | None) -> list[Fault]:
        if raised is None:
            return []
        step = self._step_of(raised.pe)
        told = str(raised.error)
        if not isinstance(raised.error, KernbenchError):
            told = f"{raised.line}: {type(raised.error).__name__}: {told}."
        elif isinstance(raised.error, PendingDataError):
            told += " A proof holds for all data: the kernel of a collective must not look at its payload."
        kind = WRONG if isinstance(raised.error, PayloadError) else RAISED
        line = getattr(raised.error, "line", "") or raised.line
        return [self._fault(kind, raised.pe, step, [line], f"{self._pe(raised.pe)} after step {step}: {told}")]

    def _blocked(self, outcome: Outcome) -> list[Fault]:
        if not outcome.blocked:
            return []
        cycle = wait_cycle(outcome.blocked)
        told = cycle or [(pe, wait) for pe, waits in outcome.blocked.items() for wait in waits][:3]
        number = len(outcome.blocked)
        begin = f"{'a PE waits' if number == 1 else f'{number} PEs wait'} for ever"
        begin += f", {len(cycle)} of them for each other in a cycle: " if cycle else ": "
        words = [self._waiting(pe, wait, outcome.blocked) for pe, wait in told]
        pe, wait = told[0]
        step = self._history.steps.of(wait.command.op_id) if wait.sends else self._step_of(pe)
        return [self._fault(DEADLOCK, pe, step, [w.line for _, w in told], begin + "; ".join(words) + ".")]

    def _step_of(self, pe: int) -> int:
        """Return the deepest step that a PE has reached."""
        return self._reached[pe]

    def _waiting(self, pe: int, wait: Wait, blocked: Mapping[int, Sequence[Wait]]) -> str:
        command = wait.command
        peers = " or ".join(self._pe(peer) for peer in wait.peers)
        ended = "" if wait.peers[0] in blocked else f", which {'have' if len(wait.peers) > 1 else 'has'} ended"
        if wait.sends:
            step = self._history.steps.of(command.op_id)
            held = chunk_of(self._history.symbols.of(command.value))
            return (
                f"{self._pe(pe)} at {wait.line} waits for a free slot at {peers}{ended}, to send its message "
                f"{wait.number} of step {step} ({held})"
            )
        size = command.value.nbytes // itemsize(command.value.dtype)
        return (
            f"{self._pe(pe)} at {wait.line}, after step {self._step_of(pe)}, waits for message {wait.number} "
            f"({_number(size, 'element')}) of {peers}{ended}"
        )

    def _wrong(self) -> list[Fault]:
        """Compare what every rank holds at the end with what it must hold."""
        case, faults = self.case, list[Fault]()
        told: dict[tuple[int, int, int, str], list[WrongStep]] = {}
        places = case.n_pe if case.contributors == "pe" else 1
        right = {
            rank: right_payload(
                self.name, rank, case.world, case.count,
                redop=case.redop, root=case.root, counts=case.counts, places=places,
            )
            for rank in range(case.world)
        }  # fmt: skip
        admissible = Admissible(right)
        for rank, buffer in self._outputs.items():
            must_be = right[rank]
            if not must_be:
                continue
            inside = case.in_place and self.name in ("reduce_scatter", "scatter") and rank not in self._inputs
            start = rank * case.count if inside and buffer.allocation.size > case.count else 0
            held = self._held(buffer, start, must_be[-1].end)
            for wrong in differences(held, must_be):
                writer = self._writer(buffer, start + wrong.start)
                step = blame(
                    self._history, wrong, rank, admissible, self._peers.place_of, self._where, case.redop, writer,
                    single=case.n_pe == 1,
                )  # fmt: skip
                told.setdefault((step.step, step.rank, step.pe, step.line), []).append(step)
        for (number, at_rank, at_pe, line), steps in told.items():
            first, others = steps[0], len(steps) - 1
            more = f" {_number(others, 'more stretch', 'es')} of outputs went wrong there." if others else ""
            sentence = first.sentence + more
            lines = (line,) if line else ()
            faults.append(Fault(WRONG, case, at_rank, at_pe, number, first.start, first.end, lines, sentence))
        return faults + self._inputs_changed()

    def _writer(self, buffer: _Buffer, element: int) -> OpId | None:
        regions = self._memory.translate(self._range(buffer, element, 1))
        writes = self._store.writes("hbm", regions)
        return writes[0].ticket.writer if writes else None

    def _inputs_changed(self) -> list[Fault]:
        """Look whether the input of a collective that is out of place is still what it was."""
        faults = []
        for rank, buffer in self._inputs.items():
            size = buffer.allocation.size
            if not size:
                continue
            for wrong in differences(self._held(buffer, 0, size), (contribution(rank, 0, 0, size),)):
                writer = self._writer(buffer, wrong.start)
                if writer is None:
                    continue
                elements = f"element {wrong.start}" if wrong.end == wrong.start + 1 else (
                    f"elements {wrong.start}-{wrong.end - 1}"
                )
                told = (
                    f"the input of rank {rank} must be left as it is out of place, and {self._pe(writer[0])} changed "
                    f"{elements} of it at {self._where(writer)}."
                )
                fault = self._fault(WRONG, writer[0], self._history.steps.of(writer), [self._where(writer)], told)
                faults.append(evolve(fault, start=wrong.start, end=wrong.end))
        return faults

    def _not_heard(self) -> list[Fault]:
        """Look whether a barrier holds every rank until all have come."""
        if self.name != "barrier":
            return []
        for rank, pes in enumerate(self._peers.ranks):
            heard = 0
            for pe in pes:
                heard |= self._heard[pe]
            for other in range(self.case.world):
                if not heard >> other & 1:
                    told = f"rank {rank} leaves the barrier without having heard of rank {other}."
                    return [self._fault(WRONG, pes[0], self._step_of(pes[0]), [], told)]
        return []

    def _unreceived(self, outcome: Outcome) -> list[Fault]:
        faults = []
        for send in outcome.unreceived:
            step = self._history.steps.of(send.op_id)
            held = chunk_of(self._history.symbols.of(send.value))
            told = (
                f"{self._pe(send.to)} never received what {self._pe(send.pe)} sent it in step {step} at "
                f"{_line(send.site)} ({held})."
            )
            faults.append(self._fault(WRONG, send.pe, step, [_line(send.site)], told))
        return faults

    def _races_found(self) -> list[Fault]:
        if self._races is None:
            return []
        faults = []
        for race in self._races.found:
            first, second = race.first, race.second
            told = (
                f"{self._pe(first.op_id[0])} {'writes' if first.writes else 'reads'} {race.tensor} at "
                f"{_line(first.site)} and {self._pe(second.op_id[0])} {'writes' if second.writes else 'reads'} the "
                f"same elements at {_line(second.site)}, and no message orders the two."
            )
            lines = [_line(first.site), _line(second.site)]
            faults.append(self._fault(WRONG, second.op_id[0], self._history.steps.of(second.op_id), lines, told))
        return faults


def _number(count: int, noun: str, plural: str = "s") -> str:
    return f"{count} {noun}{'' if count == 1 else plural}"
