"""Which op a message works for, as its row of a timeline says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernbench_builtin.pages.timeline.notes import op_for
from kernbench_builtin.pages.timeline.timeline import op_number
from kernbench_core.messages import Command, MsgBase, Transaction


class Part(MsgBase):
    """A part of what a unit does for another message."""

    def __init__(self, whole: MsgBase | None) -> None:
        super().__init__()
        self.whole = whole

    @property
    def origin(self) -> MsgBase | None:
        return self.whole

    def landed(self, trip: Transaction) -> None:
        """Be what a round trip to a memory tells that it is over."""


class Copying:
    def landed(self, trip: Transaction) -> None:
        """Be no message: a node that copies for nobody's op."""


def trip(on_done: Callable[[Any], None]) -> Transaction:
    return Transaction("read", (), 64, ("sip0.cube0.pe0.pe_dma", "sip0.cube0.hbm_ctrl0"), on_done)


COMMAND = Command((3, 7))


@pytest.mark.parametrize(
    ("msg", "op"),
    [
        (COMMAND, (3, 7)),
        (Command((0, 0)), (0, 0)),
        (Part(Part(COMMAND)), (3, 7)),
        (trip(Part(COMMAND).landed), (3, 7)),
        (MsgBase(), None),
        (Part(None), None),
        (trip(Part(None).landed), None),
        (trip(Copying().landed), None),
        (trip(lambda trip: None), None),
    ],
)
def test_a_message_works_for_the_op_that_it_is_a_part_of_or_that_asked_for_it(
    msg: MsgBase, op: tuple[int, int] | None
) -> None:
    """Else for none, and so not for the first ops of the first PE either."""
    assert op_for(msg) == (-1 if op is None else op_number(*op))
