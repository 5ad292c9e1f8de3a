"""Queues as both ends see them; no hardware model takes part."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kernbench_builtin.components.queues.rings import Queue, Queues
from kernbench_core.environment import Environment
from kernbench_core.errors import KernelError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Graph, Node
from kernbench_core.kernel.pe_state import Kernels
from kernbench_core.memory.device_memory import DeviceMemory
from kernbench_core.peers import Channel
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from tests.core.kernel.left_messages import REMEDY
from tests.core.kernel_rig import design

HERE = (test_site := (lambda: None).__code__, 0)


class Machine:
    """Be a run whose PEs 0 and 1 keep queues, with the parameters given, and PE 2 does not."""

    def __init__(self, **params: object) -> None:
        self.design = design(3)
        given = {"slots": 4, "slot_bytes": 256, "tier": "tcm", **params}
        names = [f"sip0.cube0.pe{pe}.pe_ipcq" for pe in range(2)]
        nodes = {name: Node(name, "pe_ipcq", params=given) for name in names}
        self.memory = DeviceMemory(self.design)
        kernels = Kernels(self.memory, MemoryStore(True))
        fabric = Fabric(Environment(), Graph(nodes, {}), layout=self.design, parts={Kernels: kernels})
        self.queues = Queues(fabric)


def command(channel: Channel = Channel(), **fields: Any) -> Any:  # noqa: B008 - frozen
    """Stand for a command that uses a queue."""
    return SimpleNamespace(channel=channel, call="tl.send", site=HERE, total=64, **fields)


@pytest.mark.parametrize("tier", ["tcm", "sram", "hbm"])
def test_slots_lie_side_by_side_in_the_memory_of_the_tier(tier: str) -> None:
    """At the receiver: its scratchpad, its cube's SRAM or its HBM slice; a second queue gets others."""
    machine = Machine(tier=tier)
    first = machine.queues.between(0, 1, command())
    assert machine.queues.between(0, 1, command()) is first
    other = machine.queues.between(1, 0, command())
    units = {"tcm": "tcm1", "sram": "sram", "hbm": "hbm1"}
    base = machine.design.address_map.encode(0, 0, units[tier], 0)
    assert [slot.base - first.slots[0].base for slot in first.slots] == [0, 256, 512, 768]
    assert first.slots[0].base - base in range(1 << 16)
    assert not {slot.base for slot in first.slots} & {slot.base for slot in other.slots}
    assert (first.tier, first.slot_bytes, [*machine.queues]) == (tier, 256, [first, other])
    assert [first.slots_of(nbytes) for nbytes in (0, 1, 256, 257, 1024)] == [1, 1, 1, 2, 4]


def test_a_channel_has_its_own_queues_and_slots() -> None:
    """What a channel leaves open is what the receiver's unit says; any difference makes another queue."""
    machine = Machine()
    plain = machine.queues.between(0, 1, command())
    small = machine.queues.between(0, 1, command(Channel("", slots=2)))
    named = machine.queues.between(0, 1, command(Channel("b", slot_bytes=64, tier="sram")))
    assert len({id(queue) for queue in (plain, small, named)}) == 3
    assert (len(small.slots), small.slot_bytes, small.tier) == (2, 256, "tcm")
    assert (len(named.slots), named.slot_bytes, named.tier) == (4, 64, "sram")


def test_a_pe_that_keeps_no_queues_is_told() -> None:
    """By the line that names it."""
    with pytest.raises(KernelError) as caught:
        Machine().queues.between(0, 2, command())
    assert str(caught.value) == (
        f"tl.send at {__file__}:{test_site.co_firstlineno} must use a PE that keeps queues, and sip0.cube0.pe2 has no "
        "unit pe_ipcq; add one to the configuration."
    )


def test_messages_that_nobody_received_are_told() -> None:
    """The oldest with its line, how many more there are, and the last receipt."""
    machine = Machine()
    queue = machine.queues.between(0, 1, command())
    assert [*machine.queues.unreceived()] == []
    for _ in range(3):
        queue.enter(command())
    line = f"{__file__}:{test_site.co_firstlineno}"
    start = f"a message of 64 B, sent by sip0.cube0.pe0 at {line}, was never received by sip0.cube0.pe1"
    assert [*machine.queues.unreceived()] == [f"{start}, and 2 more after it; {REMEDY}"]
    queue.take(HERE)
    queue.take(HERE)
    assert queue.received == 2
    assert [*machine.queues.unreceived()] == [
        f"{start} (the last receipt there was at {line}); {REMEDY}"
    ]


class End:
    """Be a unit that keeps something of queues: it uses them while `busy`."""

    def __init__(self) -> None:
        self.busy = False
        self.forgotten: list[Queue] = []

    def uses(self, queue: Queue) -> bool:
        """Say whether it is busy."""
        return self.busy

    def forget(self, queue: Queue) -> None:
        """Note the queue."""
        self.forgotten.append(queue)


@pytest.mark.parametrize("tier", ["tcm", "sram", "hbm"])
def test_the_queues_of_a_closed_channel_give_their_slots_back(tier: str) -> None:
    """Those of its name, whatever their slots; the next that asks gets a new queue in the same place."""
    machine, end = Machine(tier=tier), End()
    first = machine.queues.between(0, 1, command(Channel("a")))
    second = machine.queues.between(0, 1, command(Channel("a", slots=2)))
    other = machine.queues.between(0, 1, command(Channel("b")))
    for queue in (first, second, other):
        queue.ends.append(end)
    machine.queues.close("a")
    assert [*machine.queues] == [other]
    assert end.forgotten == [first, second]
    again = machine.queues.between(0, 1, command(Channel("a")))
    assert again is not first
    assert again.slots == first.slots


def test_a_queue_that_is_in_use_goes_when_it_no_longer_is() -> None:
    """While a unit uses it, or a message in it has not been received, it stays, and so do its slots."""
    machine, end = Machine(), End()
    queue = machine.queues.between(0, 1, command())
    queue.ends.append(end)
    machine.queues.settle(queue)
    assert [*machine.queues] == [queue]  # nobody has closed it
    queue.enter(command())
    machine.queues.close("")
    assert [*machine.queues] == [queue]
    queue.take(HERE)
    end.busy = True
    machine.queues.settle(queue)
    assert [*machine.queues] == [queue]
    end.busy = False
    machine.queues.settle(queue)
    assert [*machine.queues] == []
    assert end.forgotten == [queue]


def test_a_queue_whose_units_do_not_say_whether_they_use_it_stays() -> None:
    """A unit that keeps no end of it would go on with slots that are somebody else's."""
    machine = Machine()
    queue = machine.queues.between(0, 1, command())
    machine.queues.close("")
    assert [*machine.queues] == [queue]


def test_a_queue_says_what_it_is() -> None:
    """Its ends and its channel are plain attributes."""
    queue = Queue(3, 5, Channel("x"), "tcm", (Region(0, 64),), 64)
    assert (queue.source, queue.destination, queue.channel.name) == (3, 5, "x")
