"""At which step, and at which kernel line, data first went wrong: found in what the ops of a collective read and wrote.

The step of a message is its data depth: 1 for one that carries the sender's own input, else 1 more than the deepest
message that its tile was computed from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from attrs import define, field, frozen

from kernbench_ccl.prove.lost_contributions import Loss
from kernbench_ccl.prove.payloads import Payload, Stretch, length, shifted
from kernbench_ccl.prove.postconditions import Admissible, Difference, differences, spell_fault, spell_held, spell_right
from kernbench_ccl.prove.symbols import Op, Symbols
from kernbench_core.values import LoadedValue, OpId, Value

__tracebackhide__ = True  # errors name the kernel's line, not one of these

Site = Callable[[OpId], str]
"""Says at which kernel line an op was issued."""

PlaceOf = Callable[[int], tuple[int, int]]
"""Gives rank and place there of a PE, by its index in the machine."""


FindLoss = Callable[[Difference, int, OpId | None], Loss | None]
"""Says where was lost what a rank's output lacks, given the op that wrote what is there instead."""


class LoggedOp(Op, Protocol):
    """What is needed of an op of a log: an OpDescription or an OpRecord, with its identity."""

    @property
    def op_id(self) -> OpId | None: ...


class Steps:
    """Count the data depth of ops, which must be told in an order in which none comes before what it depends on."""

    def __init__(self) -> None:
        self._of: dict[OpId, int] = {}
        self._sent: dict[tuple[int, int, str], deque[int]] = {}
        self.most = 0
        self.messages = 0

    def of(self, op_id: OpId | None) -> int:
        """Return the step of an op: how many messages what it reads has come through; 0 for own input."""
        return 0 if op_id is None else self._of.get(op_id, 0)

    def of_value(self, value: Value, op_id: OpId | None = None) -> int:
        """Return the step of a value; `op_id` is the op that reads it, whose own load counts by what it found."""
        if isinstance(value, LoadedValue) and value.op_id == op_id:
            return self._deepest(value.sources)
        return self._deepest(value.makers())

    def made(self, op_id: OpId, sources: Iterable[OpId]) -> int:
        """Take note of an op that reads what `sources` made, and return its step."""
        step = self._of[op_id] = self._deepest(sources)
        return step

    def reads(self, op_id: OpId, value: Value) -> int:
        """Take note of an op that reads a value, and return its step."""
        step = self._of[op_id] = self.of_value(value, op_id)
        return step

    def _deepest(self, op_ids: Iterable[OpId]) -> int:
        deepest, known = 0, self._of
        for op_id in op_ids:
            step = known.get(op_id, 0)
            if step > deepest:
                deepest = step
        return deepest

    def tell(self, op: LoggedOp) -> int:
        """Take note of an op and return its step."""
        op_id = op.op_id
        if op_id is None:
            return 0
        step = 0
        for access in op.reads:
            if access.value is not None:
                step = max(step, self.of_value(access.value, op_id))
        if op.op_name == "ipcq_send":
            return self.sent(op_id, int(op.params["peer"]), str(op.params["channel"]), step)
        if op.op_name == "ipcq_recv":
            waiting = self._sent.get((int(op.params["peer"]), op_id[0], str(op.params["channel"])))
            step = waiting.popleft() if waiting else step
        self._of[op_id] = step
        return step

    def sent(self, op_id: OpId, to: int, channel: str, depth: int) -> int:
        """Take note of a message of a tile of `depth`, and return its step."""
        step = depth + 1
        self._of[op_id] = step
        self._sent.setdefault((op_id[0], to, channel), deque()).append(step)
        self.most = max(self.most, step)
        self.messages += 1
        return step


@frozen
class StepEvent:
    """One op of a collective that made or stored a value, in which step."""

    op_id: OpId
    call: str
    step: int
    value: Value


@frozen
class WrongStep:
    """The op whose output was wrong first: on which rank and PE, in which step, which elements, at which line.

    `start` and `end` are the elements of the rank's output that are wrong because of it; `sentence` says all of it.
    """

    rank: int
    pe: int
    step: int
    start: int
    end: int
    line: str
    sentence: str


@define
class History:
    """What the ops of one collective did, in their order."""

    symbols: Symbols
    steps: Steps = field(factory=Steps)
    events: list[StepEvent] = field(factory=list)
    _by_op: dict[OpId, StepEvent] = field(factory=dict)

    def tell(self, op: LoggedOp, where: str) -> StepEvent | None:
        """Take note of an op; PayloadError, as `Symbols.tell`."""
        step = self.steps.tell(op)
        made = self.symbols.tell(op, where)
        value = None if op.writes is None else op.writes.value
        if op.op_id is None or value is None or (made is None and op.op_name != "dma_write"):
            return None
        call = "tl.store" if op.op_name in ("dma_write", "masked_store") else f"tl.{op.op_name}"
        return self._note(StepEvent(op.op_id, call, step, value))

    def _note(self, event: StepEvent) -> StepEvent:
        self._by_op[event.op_id] = event
        self.events.append(event)
        return event

    def stored(self, op_id: OpId, value: Value, stored: Value) -> int:
        """Take note of a store of `value`, of which `stored` is what memory holds, and return its step."""
        step = self.steps.reads(op_id, value)
        self._note(StepEvent(op_id, "tl.store", step, stored))
        return step

    def event(self, op_id: OpId | None) -> StepEvent | None:
        """Return what an op did, None where it did nothing to payload."""
        return None if op_id is None else self._by_op.get(op_id)

    def first(self, wrong: Difference, admissible: Admissible) -> tuple[StepEvent, Stretch] | None:
        """Return the first op, by step, that made what is wrong of these elements, and the wrong part of its result.

        None when all that was made was right, and only something is missing.
        """
        best: tuple[StepEvent, Stretch] | None = None
        for event in self.events:
            if best is not None and event.step >= best[0].step:
                continue
            for segment in self.symbols.of(event.value):
                if not admissible.holds(segment) and _part_of(segment, wrong.found):
                    best = event, segment
                    break
        return best


def _part_of(segment: Stretch, found: Stretch) -> bool:
    """Whether what a segment holds is within what was found wrong, for some of the elements."""
    for origin, first in segment.terms:
        for (other, at), _ in found.terms.items():
            if other == origin and at - (found.end - found.start) < first < at + found.end - found.start:
                terms = shifted(found.terms, first - at)
                if all(terms.get(term, 0) >= count for term, count in segment.terms.items()):
                    return True
        return False
    return False


def first_wrong_step(
    ops: Iterable[Any],
    symbols: Symbols,
    outputs: Mapping[int, Value],
    right: Mapping[int, Payload | None],
    place_of: PlaceOf,
    where: Site,
    redop: str | None = None,
) -> WrongStep | None:
    """Return where the output of a finished collective first went wrong; None when it holds what is right.

    `ops` are the records of an op log (or descriptions, in their order). `symbols` knows what each rank contributed,
    `outputs` is what each rank's output holds at the end, `right` what it must hold (`expected.right_payload`).
    """
    history = History(symbols)
    for op in sorted(ops, key=lambda op: getattr(op, "t_end", 0.0)):  # a receive may begin before its send does
        if getattr(op, "stage_of", None) is None and op.op_id is not None:
            history.tell(op, where(op.op_id))
    admissible = Admissible(right)
    found: list[WrongStep] = []
    for rank, value in outputs.items():
        must_be = right.get(rank)
        if must_be is not None and length(must_be):
            for wrong in differences(symbols.of(value), must_be):
                found.append(blame(history, wrong, rank, admissible, place_of, where, redop))
    return min(found, key=lambda each: each.step) if found else None


def blame(
    history: History,
    wrong: Difference,
    rank: int,
    admissible: Admissible,
    place_of: PlaceOf,
    where: Site,
    redop: str | None,
    writer: OpId | None = None,
    single: bool = False,
    lost: FindLoss | None = None,
) -> WrongStep:
    """Say which op made elements of a rank's output wrong.

    `writer` is the op that wrote them, if that is known; with `single` every rank has one PE, which is not named.
    `lost` says where something was lost, which is asked where nothing that was made is wrong in itself.
    """
    first, last = wrong.start, wrong.end
    elements = f"elements {first}-{last - 1}" if last > first + 1 else f"element {first}"
    told = f"{elements} of rank {rank}'s output must be {spell_right(wrong, redop)}, and {spell_fault(wrong)}"
    stored = history.event(writer) if writer is not None else _writer(history, wrong, rank, place_of)
    if stored is not None:
        them = "them" if last > first + 1 else "it"
        told += f"; {_doer(stored, place_of, single)} stored {them} in step {stored.step} at {where(stored.op_id)}"
    culprit = history.first(wrong, admissible)
    if culprit is not None and culprit[0] is not stored:
        event, part = culprit
        told += f"; first wrong in step {event.step}, where {_doer(event, place_of, single)} made {spell_held(part)} "
        told += f"({event.call} at {where(event.op_id)})"
        stored = event
    elif lost is not None and (loss := lost(wrong, rank, None if stored is None else stored.op_id)) is not None:
        if stored is None:
            told += f"; nobody stored {'them' if last > first + 1 else 'it'}"
        told += f"; {loss.told}"
        if loss.line or stored is None or place_of(stored.op_id[0])[0] != loss.rank:
            return WrongStep(loss.rank, loss.pe, loss.step, first, last, loss.line, f"{told}.")
    if stored is None:
        return WrongStep(rank, 0, 0, first, last, "", f"{told}; nobody stored {'them' if last > first + 1 else 'it'}.")
    at_rank, at_pe = place_of(stored.op_id[0])
    return WrongStep(at_rank, at_pe, stored.step, first, last, where(stored.op_id), f"{told}.")


def _writer(history: History, wrong: Difference, rank: int, place_of: PlaceOf) -> StepEvent | None:
    """Return the last store of the rank that stored just what was found wrong."""
    for event in reversed(history.events):
        if event.call == "tl.store" and place_of(event.op_id[0])[0] == rank:
            for segment in history.symbols.of(event.value):
                if segment.terms and _part_of(segment, wrong.found) and len(segment.terms) == len(wrong.found.terms):
                    return event
    return None


def _doer(event: StepEvent, place_of: PlaceOf, single: bool) -> str:
    rank, pe = place_of(event.op_id[0])
    return f"rank {rank}" if single else f"PE {pe} of rank {rank}"


def chunk_of(payload: Payload) -> str:
    """Say in a few words what a message carries."""
    if not payload:
        return "no elements"
    parts = [spell_held(segment) for segment in payload[:2]]
    more = f" and {len(payload) - 2} more stretches" if len(payload) > 2 else ""
    return " and ".join(parts) + more

