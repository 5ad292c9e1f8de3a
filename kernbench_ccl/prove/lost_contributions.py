"""Where a contribution was lost that an output lacks: who had it last, in which step, and what became of it there.

Every op of a run is noted with what it read. An element that an output lacks is then followed from op to op: to who
received it and used it for nothing, to who went on without it, or to the rank that never sent it. It goes forward from
who had it, as what is not there has no way back to follow; the ops and what they read are those of one `trail`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from kernbench_ccl.prove.payloads import Payload, PayloadError
from kernbench_ccl.prove.postconditions import Difference, spell_who
from kernbench_ccl.prove.trail import RECEIVE, SEND, STORE, Trail
from kernbench_core.values import OpId, Value, linear_at

_MOST_TOLD = 2
"""Losses of one stretch of elements that are told."""


@frozen
class Loss:
    """Where a contribution was lost: on which rank and PE, in which step, at which kernel line; `told` in words."""

    rank: int
    pe: int
    step: int
    line: str
    told: str


@frozen
class Scene:
    """What a search is told of a run that is over.

    `where` gives an op's kernel line, `place_of` a PE's rank and place, `named` spells a PE.
    `outputs` are what the outputs hold, each with a function that gives the writer of an element; `writer_at` is the op
    that wrote the bytes of an address last.
    """

    of: Callable[[Value], Payload]
    where: Callable[[OpId], str]
    place_of: Callable[[int], tuple[int, int]]
    named: Callable[[int], str]
    outputs: Sequence[tuple[Payload, Callable[[int], OpId | None]]]
    writer_at: Callable[[int, int], OpId | None]


@frozen(eq=False)
class _Held:
    """The moves whose tile holds one element of one contributor, by their numbers, and who used which of them."""

    numbers: frozenset[int]
    ordered: tuple[int, ...]
    users: Mapping[int, tuple[int, ...]]
    kept: frozenset[OpId]

    def beyond(self, number: int) -> list[int]:
        """Return the moves with the element that came of one, ascending."""
        found: dict[int, None] = {}
        ahead = [number]
        while ahead:
            for user in self.users.get(ahead.pop(), ()):
                if user not in found:
                    found[user] = None
                    ahead.append(user)
        return sorted(found)


class Search:
    """Follow contributions through a run that is over."""

    def __init__(self, trail: Trail, scene: Scene) -> None:
        self._moves = trail.moves
        self._scene = scene
        self._number = {move.op_id: number for number, move in enumerate(self._moves)}
        self._stretches: dict[int | str, list[tuple[int, int, int]]] = {}
        self._known: dict[tuple[int | str, int], _Held] = {}
        for number, move in enumerate(self._moves):
            for segment in self._payload(move.value):
                for origin, first in segment.terms:
                    stretch = (first, first + segment.end - segment.start, number)
                    self._stretches.setdefault(origin, []).append(stretch)

    def _payload(self, value: Value) -> Payload:
        try:
            return self._scene.of(value)
        except PayloadError:
            return ()

    def lost(self, wrong: Difference, rank: int, writer: OpId | None) -> Loss | None:
        """Say where what a rank's output lacks was lost; None where nothing is lacking or it cannot be said.

        `writer` is the op that stored what the output holds instead.
        """
        right, found = wrong.right.terms, wrong.found.terms
        before = self._ancestors(writer)
        groups: dict[tuple[int, int, int, str, str], list[int | str]] = {}
        for origin, element in right:
            if (origin, element) in found or isinstance(origin, str):
                continue
            loss = self._lost(origin, element, rank, before)
            if loss is not None:
                groups.setdefault((loss.rank, loss.pe, loss.step, loss.line, loss.told), []).append(origin)
        told = [
            f"what {spell_who(origins)} brought {words}" for (*_, words), origins in [*groups.items()][:_MOST_TOLD]
        ]
        return Loss(*next(iter(groups))[:4], "; ".join(told)) if groups else None

    def _ancestors(self, writer: OpId | None) -> list[int]:
        """Return the moves that an op depends on, itself among them, ascending."""
        begin = None if writer is None else self._number.get(writer)
        found = {} if begin is None else {begin: None}
        ahead = list(found)
        while ahead:
            for source in self._moves[ahead.pop()].sources():
                number = self._number.get(source)
                if number is not None and number not in found:
                    found[number] = None
                    ahead.append(number)
        return sorted(found)

    def _holding(self, origin: int, element: int) -> _Held:
        """Return the moves whose tile holds an element of a contributor."""
        known = self._known.get((origin, element))
        if known is not None:
            return known
        ordered = tuple(dict.fromkeys(n for low, high, n in self._stretches.get(origin, ()) if low <= element < high))
        users: dict[int, tuple[int, ...]] = {}
        for number in ordered:
            for source in dict.fromkeys(self._moves[number].sources()):
                used = self._number.get(source)
                if used is not None and used != number:
                    users[used] = (*users.get(used, ()), number)
        kept = [
            writer(at) for payload, writer in self._scene.outputs for at in _places(payload, origin, element)
        ]
        held = _Held(frozenset(ordered), ordered, users, frozenset(op for op in kept if op is not None))
        self._known[origin, element] = held
        return held

    # What became of it ------------------------------------------------------------------------------

    def _lost(self, origin: int, element: int, rank: int, before: Sequence[int]) -> Loss | None:
        """Say where one element of one contributor was lost on its way to a rank."""
        held, moves = self._holding(origin, element), self._moves
        received = [n for n in held.ordered if moves[n].kind == RECEIVE]
        ends = [n for n in received if self._is_end(held, n)]
        useful = [n for n in ends if self._rank(n) == rank or self._could_use(held, n, before)]
        if useful:
            return self._ended(held, self._last(useful), element, origin)
        passed = [n for n in received if n not in ends and self._then(held, n, before) is not None]
        if passed:
            return self._left_out(held, self._last(passed, rank), before)
        if ends:
            return self._ended(held, self._last(ends), element, origin)
        return self._elsewhere(held, received, rank) or self._unsent(held, origin, rank, before)

    def _rank(self, number: int) -> int:
        return self._scene.place_of(self._moves[number].pe)[0]

    def _last(self, numbers: Iterable[int], rank: int | None = None) -> int:
        """Return the move of the deepest step, of several the one on a rank, then the last."""
        return max(numbers, key=lambda n: (self._moves[n].step, self._rank(n) == rank, n))

    def _is_end(self, held: _Held, number: int) -> bool:
        """Whether what came of a receive reached no output, and no other receive."""
        return not any(
            self._moves[n].kind == RECEIVE or self._moves[n].op_id in held.kept for n in held.beyond(number)
        )

    def _then(self, held: _Held, number: int, before: Sequence[int]) -> int | None:
        """Return the first op without the element that the PE of a receive did after it for the output."""
        pe, kinds = self._moves[number].pe, (SEND, STORE)
        for after in before:
            move = self._moves[after]
            if after > number and move.pe == pe and move.kind in kinds and after not in held.numbers:
                return after
        return None

    def _could_use(self, held: _Held, number: int, before: Sequence[int]) -> bool:
        """Whether the PE of a receive did something for the output that it had asked for the receive before.

        A receive that nobody uses may come long after that.
        """
        receive = self._moves[number].op_id
        did = (n for n in before if self._moves[n].kind in (SEND, STORE) and n not in held.numbers)
        return any(self._moves[n].pe == receive[0] and self._moves[n].op_id > receive for n in did)

    def _at(self, number: int, told: str) -> Loss:
        """Return a loss at a move."""
        move = self._moves[number]
        rank, pe = self._scene.place_of(move.pe)
        return Loss(rank, pe, move.step, self._scene.where(move.op_id), told)

    def _spelt(self, number: int) -> str:
        """Say where a move was: `in step 2 at file.py:7`."""
        move = self._moves[number]
        return f"in step {move.step} at {self._scene.where(move.op_id)}"

    def _by(self, number: int) -> str:
        return self._scene.named(self._moves[number].pe)

    def _ended(self, held: _Held, number: int, element: int, origin: int) -> Loss:
        """Say what became of what was received and never reached an output."""
        told = f"was last received by {self._by(number)} {self._spelt(number)}"
        beyond = held.beyond(number)
        if not beyond:
            return self._at(number, f"{told} and went nowhere from there")
        last = self._moves[beyond[-1]]
        where = self._scene.where(last.op_id)
        if last.kind == SEND:
            return self._at(number, f"{told}, sent on at {where} to {self._scene.named(last.to)} and never received")
        if last.kind != STORE:
            return self._at(number, f"{told}, and what was made of it at {where} went nowhere")
        at = next(_places(self._payload(last.value), origin, element))
        size = last.value.nbytes // max(1, self._scene.of(last.value)[-1].end)
        over = self._scene.writer_at(linear_at(last.regions, at * size), size)
        if over is None or over == last.op_id:
            return self._at(number, f"{told}, stored at {where} and never read there")
        by = self._scene.named(over[0])
        return self._at(number, f"{told}, stored at {where} and overwritten by {by} at {self._scene.where(over)}")

    def _left_out(self, held: _Held, number: int, before: Sequence[int]) -> Loss:
        """Say who received it and then went on without it."""
        then = self._then(held, number, before)
        assert then is not None, "only such receives are asked for"
        did = "sent" if self._moves[then].kind == SEND else "stored"
        told = f"was received by {self._by(number)} {self._spelt(number)} and left out of what it {did}"
        return self._at(then, f"{told} {self._spelt(then)}")

    def _elsewhere(self, held: _Held, received: Sequence[int], rank: int) -> Loss | None:
        """Say where a rank stored what it received, which is in another place then."""
        here = [n for n in received if self._rank(n) == rank]
        for number in reversed(here):
            for n in held.beyond(number):
                if self._moves[n].op_id in held.kept and self._rank(n) == rank:
                    told = f"was received by {self._by(number)} {self._spelt(number)} and stored"
                    return self._at(n, f"{told} in another place {self._spelt(n)}")
        return None

    def _unsent(self, held: _Held, origin: int, rank: int, before: Sequence[int]) -> Loss | None:
        """Say that a rank never sent what it brought, or that nobody sent it to whom lacks it."""
        sent = [n for n in held.ordered if self._moves[n].kind == SEND]
        if sent and any(self._scene.place_of(self._moves[n].to)[0] == rank for n in sent):
            return None
        own = [n for n in before if self._rank(n) == origin and self._moves[n].kind in (SEND, STORE)]
        own = [n for n in own if n not in held.numbers]
        if own and not sent:
            did = "sent" if self._moves[own[0]].kind == SEND else "stored"
            return self._at(own[0], f"was left out of what {self._by(own[0])} {did} {self._spelt(own[0])}")
        if not sent:
            return Loss(origin, 0, 0, "", "was never sent to anybody")
        if origin != rank:
            return Loss(rank, 0, 0, "", f"was never sent to rank {rank}")
        return None


def _places(payload: Payload, origin: int, element: int) -> Iterator[int]:
    """Yield the elements of a payload that hold an element of a contributor."""
    for segment in payload:
        for other, first in segment.terms:
            if other == origin and first <= element < first + segment.end - segment.start:
                yield segment.start + element - first
