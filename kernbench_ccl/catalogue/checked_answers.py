"""What the record of a collective must be: its fields, and what its functions answer.

Each answer is checked where it is used: at every call, rank and root.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral, Real
from typing import Any, Final

from attrs import define, evolve, field

from kernbench_ccl.collectives import CallShape, CollectiveKind, Piece
from kernbench_ccl.collectives.traffic import Traffic
from kernbench_core.callsite import user_traceback
from kernbench_core.errors import PluginError, in_words
from kernbench_core.process import INTERRUPTS

__tracebackhide__ = True

ARGUMENTS: Final = {
    "brings": "the call and a rank",
    "ends": "the call and a rank",
    "factor": "the number of ranks",
    "traffic": "the call and a size in bytes",
}
"""What the functions of a record are functions of."""

_BYTES = "bytes, finite and at least 0,"
_COUNT = 6
"""nccl's count of the calls that a record is tried on."""
_SPELLING = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def checked(kind: CollectiveKind, fault: Callable[[str], PluginError]) -> CollectiveKind:
    """Return a record whose functions raise PluginError for every answer that cannot be.

    `fault` makes the error of what the record must be and is, in words that follow its name.
    """
    answers = _Answers(kind, fault)
    traffic = None if kind.traffic is None else answers.traffic
    return evolve(kind, brings=answers.brings, ends=answers.ends, factor=answers.factor, traffic=traffic)


@define(eq=False)
class _Answers:
    """The checked functions of a record; what it said of the call that it was asked for last is not asked again."""

    _kind: CollectiveKind
    _fault: Callable[[str], PluginError]
    _call: CallShape | None = None
    _brought: dict[int, int | None] = field(factory=dict)
    _ended: dict[int, tuple[Piece, ...] | None] = field(factory=dict)

    def brings(self, call: CallShape, rank: int) -> int | None:
        """Return the elements of a rank's input, None where it has none."""
        self._begin(call)
        if rank not in self._brought:
            place = self._place(call, rank)
            count = self._call_checked("brings", place, lambda: self._kind.brings(call, rank))
            if count is not None and not _is_count(count):
                raise self._fault(f"must give as brings a number of elements from 0, or None, not {count!r}, {place}")
            self._brought[rank] = None if count is None else int(count)
        return self._brought[rank]

    def ends(self, call: CallShape, rank: int) -> tuple[Piece, ...] | None:
        """Return the pieces of a rank's output, None where it has none."""
        self._begin(call)
        if rank not in self._ended:
            self._ended[rank] = self._pieces(call, rank)
        return self._ended[rank]

    def factor(self, world: int) -> float:
        """Return the bus bandwidth over the algorithm's."""
        place = f"for {world} ranks"
        found = self._call_checked("factor", place, lambda: self._kind.factor(world))
        if not _is_amount(found):
            raise self._fault(f"must give as factor a finite number of at least 0, not {found!r}, {place}")
        return float(found)

    def traffic(self, call: CallShape, size: float) -> Traffic:
        """Return what must be moved, whose functions are checked as well."""
        ask, place = self._kind.traffic, self._place(call, None)
        found: object = self._call_checked("traffic", place, lambda: ask(call, size) if ask else None)
        if not isinstance(found, Traffic):
            raise self._fault(f"must give as traffic a Traffic of kernbench_ccl.collectives, not {found!r}, {place}")
        amount = self._amount
        return Traffic(
            self._pairs(found.pairs, call, place),
            lambda rank: amount("send", self._place(call, rank), lambda: found.send(rank)),
            lambda rank: amount("receive", self._place(call, rank), lambda: found.receive(rank)),
            lambda inside: amount("cross", place, lambda: found.cross(inside)),
            lambda hops: amount("work", place, lambda: found.work(hops)),
            amount("everywhere", place, lambda: found.everywhere),
        )

    def _begin(self, call: CallShape) -> None:
        if call is self._call:
            return
        if call != self._call:
            self._brought.clear()
            self._ended.clear()
        self._call = call

    def _pieces(self, call: CallShape, rank: int) -> tuple[Piece, ...] | None:
        """Return what the record says of a rank's output, checked."""
        place = self._place(call, rank)

        def ask() -> Any:
            found: object = self._kind.ends(call, rank)
            return tuple(found) if isinstance(found, Iterable) else found

        found = self._call_checked("ends", place, ask)
        if found is not None and not isinstance(found, tuple):
            raise self._fault(
                f"must give as ends a list of what moved and combined return, or None, not {found!r}, {place}"
            )
        fault = next(filter(None, (self._piece_fault(call, piece) for piece in found or ())), None)
        fault = fault or self._size_fault(call, rank, sum(piece.count for piece in found or ()))
        if fault is not None:
            raise self._fault(f"{fault}, {place}")
        return found

    def _piece_fault(self, call: CallShape, piece: object) -> str | None:
        """Return what a piece must be, and is not."""
        if not isinstance(piece, Piece) or not isinstance(piece.ranks, tuple):
            return f"must give as ends what moved and combined return, not {piece!r}"
        if not _is_count(piece.count) or not _is_count(piece.first):
            return f"must give as ends elements in whole numbers from 0, not {piece!r}"
        if not all(_is_count(rank) and rank < call.world for rank in piece.ranks):
            return f"must give as ends pieces of ranks from 0 to {call.world - 1}, not {piece!r}"
        several = len(set(piece.ranks))
        if several < max(1, len(piece.ranks)) or (several > 1 and not piece.reduced):
            return f"must give as ends pieces of one rank, or reductions of different ones, not {piece!r}"
        if piece.reduced and not self._kind.reduces:
            return f"must say reduces=True to give as ends a reduction, {piece!r}"
        for rank in piece.ranks:
            brought = self.brings(call, rank) or 0
            if piece.first + piece.count > brought:
                return f"must give as ends elements that ranks bring, and rank {rank} brings {brought}, not {piece!r}"
        return None

    def _size_fault(self, call: CallShape, rank: int, n_out: int) -> str | None:
        """Return what the sizes of a rank's input and output must be, and are not."""
        n_in = self.brings(call, rank) or 0
        less, more = sorted((n_in, n_out))
        if self._kind.barrier and more:
            return f"must either move data or be a barrier, not both, as with {n_in} elements in and {n_out} out"
        if self._kind.in_place and less and less != more and more < call.world * less:
            return (
                "must not be in place, as neither input nor output is the other, or a rank's own part of it, but of "
                f"{n_in} and {n_out} elements"
            )
        return None

    def _pairs(self, pairs: object, call: CallShape, place: str) -> tuple[tuple[int, int], ...]:
        """Return pairs of ranks that are in the call."""
        found = tuple(pairs) if isinstance(pairs, Iterable) else (pairs,)
        for pair in found:
            both = isinstance(pair, tuple) and len(pair) == 2
            if not both or not all(_is_count(rank) and rank < call.world for rank in pair):
                raise self._fault(
                    f"must give as pairs of its traffic tuples of two ranks from 0 to {call.world - 1}, not {pair!r}, "
                    f"{place}"
                )
        return found

    def _amount(self, name: str, place: str, ask: Callable[[], object]) -> float:
        """Return bytes of a traffic."""
        found: Any = self._call_checked(f"{name} of its traffic", place, ask)
        if not _is_amount(found):
            raise self._fault(f"must give as {name} of its traffic {_BYTES} not {found!r}, {place}")
        return float(found)

    def _call_checked(self, name: str, place: str, ask: Callable[[], Any]) -> Any:
        """Return an answer of the record; PluginError, with the lines of the record, for whatever it raises."""
        try:
            return ask()
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            own = error.__traceback__ and error.__traceback__.tb_next and error.__traceback__.tb_next.tb_next
            if own is None and isinstance(error, TypeError) and name in ARGUMENTS:
                what = f"must have as {name} a function of {ARGUMENTS[name]}, but that raised {in_words(error)}"
                raise self._fault(what) from error
            told = self._fault(f"must give an answer as {name}, but that raised {in_words(error)}, {place}")
            raise PluginError(f"{told}\n{user_traceback(error)}".rstrip()) from error

    def _place(self, call: CallShape, rank: int | None) -> str:
        """Name a call as sentences end with it."""
        named = [f"count {call.count}"]
        if self._kind.rooted:
            named.append(f"root {call.root}")
        if call.redop is not None:
            named.append(call.redop)
        ranks = f"{call.world} ranks" if rank is None else f"rank {rank} of {call.world}"
        return f"for {ranks} ({', '.join(named)})"


def _is_count(given: object) -> bool:
    return isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= 0


def _is_amount(given: object) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool) and 0 <= float(given) < math.inf


def field_faults(kind: CollectiveKind) -> Iterator[str]:
    """Yield which fields of a record are not what they must be, in words that follow its name."""
    for name, of in ARGUMENTS.items():
        function: object = getattr(kind, name)
        if not callable(function) and not (name == "traffic" and function is None):
            yield f"must have as {name} a function of {of}, not {function!r}"
    for name in ("reduces", "rooted", "takes_counts", "in_place", "per_pe", "barrier"):
        if not isinstance(getattr(kind, name), bool):
            yield f"must have True or False as {name}, not {getattr(kind, name)!r}"
    spelling: object = kind.spelling
    if spelling != "" and not (isinstance(spelling, str) and _SPELLING.fullmatch(spelling)):
        yield f"must have letters, digits, '_' and '-' as spelling, or \"\" for none, not {spelling!r}"
    named: object = kind.function
    if named != "" and not (isinstance(named, str) and named.isidentifier() and named[0] != "_"):
        yield f"must have the name of a function as function, or \"\" for none, not {named!r}"
    template: object = kind.template
    if not isinstance(template, str):
        yield f"must have text as template, or \"\" for none, not {template!r}"


def call_faults(kind: CollectiveKind) -> Iterator[str]:
    """Yield what a record must be of its calls as a whole, tried on two and three ranks.

    The record is a `checked` one: every answer of it on the way is checked as at any other call.
    """
    redop = "sum" if kind.reduces else None
    for world in (2, 3):
        call = CallShape(world, _COUNT, redop, world - 1 if kind.rooted else 0)
        sizes = [(kind.in_count(call, rank), kind.out_count(call, rank)) for rank in range(world)]
        double = evolve(call, count=2 * call.count)
        for rank, (n_in, n_out) in enumerate(sizes):
            if (kind.in_count(double, rank), kind.out_count(double, rank)) != (2 * n_in, 2 * n_out):
                yield f"must have inputs and outputs in proportion to the count, rank {rank} of {world}"
        if not kind.barrier and not any(map(any, sizes)):
            yield "must either move data or be a barrier"
        kind.factor(world)
        if kind.traffic is not None:
            _ask_all(kind.traffic(call, float(_COUNT)), world)


def _ask_all(traffic: Traffic, world: int) -> None:
    for rank in range(world):
        traffic.send(rank)
        traffic.receive(rank)
        traffic.cross(frozenset({rank}))
    traffic.work(lambda a, b: int(a != b))
