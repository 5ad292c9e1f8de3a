"""tools/request_error.py: on its wires messages without payload pass those with it."""

from __future__ import annotations

import pytest

from kernbench_core.environment import Environment
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Graph
from kernbench_core.messages import MsgBase
from kernbench_core.wire import Wire
from tools.request_error import TwoChannelWire, main

#: Payload and arrival (ns) of messages on a wire of 10 B/ns and 2 ns, with headers of 10 B.
SENT = [(990, 0.0), (0, 50.0), (0, 50.0), (90, 60.0), (0, 200.0), (90, 200.0)]


@pytest.mark.parametrize(
    ("wires", "tails"),
    [(Wire, [102.0, 103.0, 104.0, 114.0, 203.0, 213.0]), (TwoChannelWire, [102.0, 53.0, 54.0, 114.0, 203.0, 213.0])],
)
def test_requests_wait_for_requests_alone(wires: type[Wire], tails: list[float]) -> None:
    """Payload comes as late as behind them: they take the same time of the wire."""
    fabric = type("Wired", (Fabric,), {"wire_type": wires})(Environment(), Graph.of([], []))
    wire = fabric.new_wire("a->b", 10.0, 2.0, arrive=lambda _: None, on_head=False, header_bytes=10)
    found = []
    for nbytes, at in SENT:
        msg = MsgBase()
        msg.nbytes = nbytes
        wire.send(msg, at, at)
        found.append(msg.tail)
    assert found == tails


def test_a_kernel_in_which_nothing_meets_takes_as_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "1", "vector-add"]) == 0
    assert capsys.readouterr().out.endswith(" beside it: +0.00%\n")
