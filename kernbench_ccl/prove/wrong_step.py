"""At which step, and at which kernel line, data first went wrong: found in what the ops of a collective read and wrote.

No way is followed: of all that was made, it is the first by step that no right result is a sum of. What is right by
itself and lacks something is left to `lost_contributions`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from attrs import define, field, frozen

from kernbench_ccl.prove.lost_contributions import Loss
from kernbench_ccl.prove.payloads import Payload, Stretch, length, shifted
from kernbench_ccl.prove.postconditions import Admissible, Difference, differences, spell_fault, spell_held, spell_right
from kernbench_ccl.prove.symbols import Op, Symbols
from kernbench_ccl.prove.trail import LOAD, MAKE, RECEIVE, SEND, STORE, Move, Trail, reads_of
from kernbench_core.values import OpId, Region, Value

__tracebackhide__ = True  # errors name the kernel's line, not one of these

_KINDS: Final = {
    "dma_read": LOAD, "dma_write": STORE, "masked_store": STORE, "ipcq_send": SEND, "ipcq_recv": RECEIVE,
}  # fmt: skip

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
    """What the ops of one collective did, in their order; `made` are those that made or stored what holds payload."""

    symbols: Symbols
    trail: Trail = field(factory=Trail)
    made: list[Move] = field(factory=list)
    _by_op: dict[OpId, Move] = field(factory=dict)
    _sent: dict[tuple[int, int, str], deque[OpId]] = field(factory=dict)

    def tell(self, op: LoggedOp, where: str) -> int:
        """Take note of an op, and return its step; PayloadError, as `Symbols.tell`."""
        op_id, reads = op.op_id, reads_of(op.reads)
        if op_id is None:
            return 0
        kind, to = _KINDS.get(op.op_name, MAKE), -1
        after: tuple[OpId, ...] = ()
        if kind in (SEND, RECEIVE):
            peer, channel = int(op.params["peer"]), str(op.params["channel"])
            if kind == SEND:
                to = peer
                self._sent.setdefault((op_id[0], to, channel), deque()).append(op_id)
            elif waiting := self._sent.get((peer, op_id[0], channel)):
                after = (waiting.popleft(),)
        value, regions = (None, ()) if op.writes is None else (op.writes.value, op.writes.regions)
        tile = reads[0] if kind == SEND and value is None and reads else value
        call = "tl.store" if kind == STORE else f"tl.{op.op_name}"
        step = self.trail.note(op_id, kind, tile, reads, after=after, to=to, regions=regions, call=call)
        if value is not None and (self.symbols.tell(op, where) is not None or op.op_name == "dma_write"):
            self._note(self.trail.moves[-1])
        return step

    def stored(self, op_id: OpId, value: Value, stored: Value, regions: tuple[Region, ...]) -> int:
        """Take note of a store of `value`, of which `stored` is what memory holds, and return its step."""
        step = self.trail.note(op_id, STORE, stored, (value,), regions=regions)
        self._note(self.trail.moves[-1])
        return step

    def _note(self, move: Move) -> None:
        self._by_op[move.op_id] = move
        self.made.append(move)

    def maker(self, op_id: OpId | None) -> Move | None:
        """Return what an op did, None where it did nothing to payload."""
        return None if op_id is None else self._by_op.get(op_id)

    def first(self, wrong: Difference, admissible: Admissible) -> tuple[Move, Stretch] | None:
        """Return the first op, by step, that made what is wrong of these elements, and the wrong part of its result.

        None when all that was made was right, and only something is missing.
        """
        best: tuple[Move, Stretch] | None = None
        for event in self.made:
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
    stored = history.maker(writer) if writer is not None else _writer(history, wrong, rank, place_of)
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


def _writer(history: History, wrong: Difference, rank: int, place_of: PlaceOf) -> Move | None:
    """Return the last store of the rank that stored just what was found wrong."""
    for event in reversed(history.made):
        if event.call == "tl.store" and place_of(event.op_id[0])[0] == rank:
            for segment in history.symbols.of(event.value):
                if segment.terms and _part_of(segment, wrong.found) and len(segment.terms) == len(wrong.found.terms):
                    return event
    return None


def _doer(event: Move, place_of: PlaceOf, single: bool) -> str:
    rank, pe = place_of(event.op_id[0])
    return f"rank {rank}" if single else f"PE {pe} of rank {rank}"


def chunk_of(payload: Payload) -> str:
    """Say in a few words what a message carries."""
    if not payload:
        return "no elements"
    parts = [spell_held(segment) for segment in payload[:2]]
    more = f" and {len(payload) - 2} more stretches" if len(payload) > 2 else ""
    return " and ".join(parts) + more

