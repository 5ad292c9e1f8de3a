"""Chunks of queues' pieces: kept with the queue, and what cutting the same bytes anew would give."""

from __future__ import annotations

import random
import tracemalloc
from types import SimpleNamespace
from typing import Any

from kernbench_builtin.components.queues.ends import Incoming, Outgoing
from kernbench_builtin.components.queues.messages import Fetch, Push, TransferProgress
from kernbench_builtin.components.queues.rings import Queue
from kernbench_core.callsite import call_site
from kernbench_core.environment import Environment
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Graph
from kernbench_core.kernel.queue_commands import SendCmd
from kernbench_core.peers import Channel
from kernbench_core.values import AbstractValue, Chunk, Region, chunks

SLOT, CHUNK, BASE = 4096, 1024, 1 << 20


class _Owners:
    """Say that all memory is of one node, and count how often that is asked."""

    asked = 0

    def resolve(self, address: int) -> str:
        self.asked += 1
        return "pe0.pe_tcm"

    def find_m_cpu(self, sip: int, cube: int) -> str:
        raise NotImplementedError


def _pushed(queue: Queue, number: int, nbytes: int) -> Push:
    nowhere: Any = None  # it is never sent
    command = SendCmd((0, number), call_site(), queue.channel, AbstractValue((nbytes,), "int8"), nowhere, 1)
    return Push(TransferProgress(command), queue, number, nbytes, ("a", "b"), ("b", "c"), 16)


def test_chunks_of_a_slot_are_those_of_its_bytes_whatever_was_in_it_before() -> None:
    """Pieces of all sizes go round the slots; pushed or fetched, each is cut as if it were the first."""
    layout: Any = SimpleNamespace(chunk_bytes=CHUNK, page_bytes=4096, pes=())
    owners = _Owners()
    fabric = Fabric(Environment(), Graph({}, {}), addresses=owners, layout=layout)
    slots = tuple(Region(BASE + i * SLOT, SLOT) for i in range(3))
    queue = Queue(0, 1, Channel("x"), "tcm", slots, SLOT)
    draw = random.Random(5)
    for number in range(200):
        push = _pushed(queue, number, draw.choice([SLOT, SLOT, SLOT, 64, CHUNK, 3000, SLOT - 64]))
        fetch = Fetch(push, None, ("a", "b"), push.progress)
        alone: list[Chunk] = chunks([Region(slots[number % 3].base, push.total)], CHUNK, lambda _: "pe0.pe_tcm")
        assert list(push.cut(fabric)) == list(fetch.cut(fabric)) == alone
    asked = owners.asked
    for number in range(198, 240):  # one size: what each slot holds is known from its first round on
        _pushed(queue, number, SLOT).cut(fabric)
    assert owners.asked <= asked + 3


def test_a_queue_takes_little_memory() -> None:
    """With both of its ends, of which the ranks of a direct all-reduce have as many as there are pairs of PEs."""
    slots = tuple(Region(index * 4096, 4096) for index in range(4))

    def made() -> tuple[Queue, Outgoing, Incoming]:
        queue = Queue(0, 1, Channel("ring"), "tcm", slots, 4096)
        return queue, Outgoing(queue), Incoming(queue)

    made()
    tracemalloc.start()
    try:
        kept = [made() for _ in range(100)]
        nbytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert nbytes / len(kept) < 2048
