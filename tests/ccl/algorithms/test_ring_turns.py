"""A stream of a ring has a turn for each tile that it sends or receives, and none in which it does nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_ccl.algorithms import _ring
from kernbench_ccl.algorithms._tiles import STEP, cut
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.contract import Collective, Network


class Recorder:
    """A language in which everything is there at once; it notes what is sent and what is stored."""

    def __init__(self, held_bytes: int) -> None:
        kind, network = COLLECTIVES["all_gather"], Network("ring", 2, 2)
        self.collective = Collective(kind, "int64", network, (0, 1), tile=3, pipeline=False, held_bytes=held_bytes)
        self.done: list[str] = []

    def load(self, place: int, **_: Any) -> int:
        return place

    def recv(self, *_: Any, **__: Any) -> int:
        return 0

    def send(self, x: int, *_: Any, **__: Any) -> str:
        self.done.append(f"send {x}")
        return self.done[-1]

    def store(self, place: int, _: int) -> None:
        self.done.append(f"store {place}")

    def wait(self, sent: str) -> None:
        self.done.append(f"wait {sent}")


@pytest.mark.parametrize(("held_bytes", "ahead"), [(1 << 30, 4), (4 * 3 * 8, 2)])
def test_a_step_takes_as_many_turns_as_there_are_tiles(held_bytes: int, ahead: int) -> None:
    """However much may be held: sends are ahead of receipts by that, or by all there are."""
    tl = Recorder(held_bytes)
    ring = _ring.Ring(0, 2, 1, 1)
    turns = list(_ring.all_gather(_ring.RingWork(tl), ring, 0, 0, cut(0, 24, 2), placed=True))
    assert turns == [None] * (4 + ahead) + [STEP]
    first = next(number for number, what in enumerate(tl.done) if what.startswith("store"))
    assert tl.done[:first] == [f"send {place}" for place in (0, 3, 6, 9)[:ahead]] + (["send 6"] if ahead == 2 else [])
    assert [what for what in tl.done if what.startswith("store")] == [f"store {place}" for place in (12, 15, 18, 21)]
