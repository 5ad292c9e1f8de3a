"""Messages: position, turning around, answers, sizes."""

from __future__ import annotations

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.messages import (
    Command,
    HostRequest,
    KernelLaunchMsg,
    Launch,
    LaunchMsg,
    MemoryReadMsg,
    MemoryWriteMsg,
    MsgBase,
    Transaction,
)
from kernbench_core.testing import Harness, Probe, Rig, line
from kernbench_core.values.region import Region


def nothing(_: object) -> None:
    """Ignore an answer."""


def test_turn_around_reverses_the_path_from_its_first_node() -> None:
    """A reply goes back the way it came, without payload."""
    msg = MsgBase(64, ("a", "b", "c"))
    msg.hop = 2
    msg.turn_around()
    assert (msg.path, msg.hop, msg.reply, msg.nbytes) == (("c", "b", "a"), 0, True, 0)


@pytest.mark.parametrize(("op", "there", "back"), [("read", 0, 96), ("write", 96, 0)])
def test_transaction_carries_its_bytes_one_way(op: str, there: int, back: int) -> None:
    """A read goes out empty and comes back with data, a write the other way round."""
    done: list[Transaction] = []
    sent = Transaction(op, (Region(0, 96),), 96, ("a", "b"), done.append)
    assert sent.nbytes == there
    sent.turn_around()
    assert sent.nbytes == back
    sent.answered()
    assert done == [sent]


def test_only_commands_are_data_ops() -> None:
    """Fabric messages are not logged; unit commands are."""
    assert not MsgBase.data_op
    assert not Transaction.data_op
    assert Command.data_op


def test_command_resumes_its_waiter_when_the_answer_is_back() -> None:
    """`done` fires where the path began, when the unit has answered."""

    class Unit(ComponentBase):
        def overhead(self, msg: MsgBase) -> float:
            return 4.0

    rig = Rig(Unit, bandwidth=100.0, latency=1.0)
    command = Command((0, 1))
    rig.ask(0.0, msg=command).run()
    assert command.done.fired
    assert [(a.node, a.time) for a in rig.arrivals] == [("in0", 6.0)]


def test_base_request_is_answered_at_the_end_of_its_path() -> None:
    """A message that ends at a component turns around by itself."""
    machine = Harness({"a": Probe, "m": ComponentBase, "b": ComponentBase}, line("a", "m", "b", latency=2.0))
    msg = machine.send(("a", "m", "b"), 1.0, 0)
    machine.run()
    assert (msg.reply, machine.arrivals[0].time) == (True, 1.0 + 4 * 2.0)


def test_host_copies_have_the_size_of_their_regions() -> None:
    """A copy carries the bytes of its regions, gaps not counted."""
    regions = (Region(0, 10), Region(100, 4, 3, 16))
    assert MemoryWriteMsg(regions).nbytes == MemoryReadMsg(regions).nbytes == 22


def test_request_is_complete_with_a_response() -> None:
    """Completion keeps which request it was, when it was sent and when answered."""
    request = HostRequest()
    request.born = 3.0
    request.complete(9.5)
    assert request.done.fired
    response = request.response
    assert response is not None
    assert (response.request, response.sent_ns, response.completed_ns) == ("HostRequest", 3.0, 9.5)


def test_launch_descriptor_is_a_header_and_eight_bytes_an_argument() -> None:
    """Launch messages on every level carry the descriptor; an answer tells who sent it."""
    launch = Launch(nothing, {"a": 1, "b": 2}, (1, 1, 1), {0: ((0, 0, 0),)})
    assert launch.nbytes == 80
    assert KernelLaunchMsg(launch).launch is launch
    seen: list[LaunchMsg] = []
    step = LaunchMsg(launch, (0,), ("a", "b"), seen.append)
    assert step.nbytes == 80
    step.answered()
    assert seen == [step]


def test_repr_says_where_and_when() -> None:
    """A message shows its type, size, place and times."""
    msg = MsgBase(64, ("a", "b"))
    msg.hop, msg.head, msg.tail = 1, 1.5, 2.5
    assert repr(msg) == "<MsgBase 64 B at b, head 1.500 ns, tail 2.500 ns>"
    assert repr(MsgBase()) == "<MsgBase 0 B at nowhere, head 0.000 ns, tail 0.000 ns>"


def test_a_launch_carries_8_bytes_for_each_argument_and_item() -> None:
    """Containers count by what is in them."""
    arguments = {"a": 1, "more": (1, [2, 3]), "named": {"x": 1, "y": ()}}
    assert Launch(print, arguments, (1, 1, 1), {}).nbytes == 64 + 8 * 5
