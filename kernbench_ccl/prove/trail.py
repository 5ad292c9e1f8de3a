"""What the ops of one collective did, in their order: the record in which wrong steps and lost contributions are found.

The step of a message is its data depth: 1 for one that carries the sender's own input, else 1 more than the deepest
message that its tile was computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import define, field, frozen

from kernbench_core.oplog import Access
from kernbench_core.values import OpId, Region, Value, made_for

SEND, RECEIVE, LOAD, STORE, MAKE = "send", "receive", "load", "store", "make"
"""What an op does with a tile."""


@frozen(eq=False)
class Move:
    """One op: what it read (`reads`, or the ops `after` which it came), and the tile that it sent, stored or made.

    `step` is the number of messages that what it read has come through; of a send that of its own message.
    """

    op_id: OpId
    kind: str
    call: str
    value: Value
    step: int
    reads: tuple[Value, ...] = ()
    after: tuple[OpId, ...] = ()
    to: int = -1
    regions: tuple[Region, ...] = ()

    @property
    def pe(self) -> int:
        """The PE that did it."""
        return self.op_id[0]

    def sources(self) -> Iterator[OpId]:
        """Yield the ops whose tiles it used."""
        return sources(self.op_id, self.reads, self.after)


@define
class Trail:
    """The ops of a run, in an order in which none comes before what it depends on.

    `messages` is how many were sent, `most` the deepest step of them.
    """

    moves: list[Move] = field(factory=list)
    messages: int = 0
    most: int = 0
    _steps: dict[OpId, int] = field(factory=dict)

    def note(
        self, op_id: OpId, kind: str, value: Value | None, reads: tuple[Value, ...] = (), *,
        after: tuple[OpId, ...] = (), to: int = -1, regions: tuple[Region, ...] = (), call: str = "",
    ) -> int:  # fmt: skip
        """Take note of an op and return its step; one without a tile (`value`) is no move."""
        step = 0
        for source in sources(op_id, reads, after):
            step = max(step, self._steps.get(source, 0))
        if kind == SEND:
            step += 1
            self.most = max(self.most, step)
            self.messages += 1
        self._steps[op_id] = step
        if value is not None:
            self.moves.append(Move(op_id, kind, call or f"tl.{kind}", value, step, reads, after, to, regions))
        return step

    def step_of(self, op_id: OpId | None) -> int:
        """Return the step of an op; 0 for one that reads own input, or that is not known."""
        return 0 if op_id is None else self._steps.get(op_id, 0)


def sources(op_id: OpId, reads: Iterable[Value], after: Iterable[OpId] = ()) -> Iterator[OpId]:
    """Yield the ops that made what an op reads, and those `after` which it comes."""
    yield from after
    for value in reads:
        yield from made_for(value, op_id)


def reads_of(accesses: Iterable[Access]) -> tuple[Value, ...]:
    """Return the values that an op reads."""
    return tuple(access.value for access in accesses if access.value is not None)
