"""What PEs' queues put on wires: pushes of payload, notes of arrival, fetches out of slots, and credits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kernbench_core.messages import MsgBase
from kernbench_core.oplog import Access, OpDescription
from kernbench_core.queue_commands import SendCmd
from kernbench_core.queues import Queue
from kernbench_core.regions import Region
from kernbench_core.values import AbstractValue, AssemblyValue, Part, Value

DESCRIPTOR_BYTES = 32
"""What an order to the DMA occupies on its wire: two addresses, a size, and where the completion goes."""


class QueueMsg(MsgBase):
    """A message of the queues; the DMAs on its way pass it on."""

    __slots__ = ()


class DmaOrder(QueueMsg):
    """Ask the PE's DMA to move `total` bytes at the physical `regions`; `on_done(order)` is called with the answer.

    `dma_op` is seen from the slot: "write" pushes the bytes of a tile towards it, "read" fetches them out of it.
    """

    __slots__ = ("dma_op", "on_done", "regions", "total", "work_for")

    #: Slots are known by physical address.
    translated: ClassVar[bool] = True

    def __init__(
        self, dma_op: str, region: Region, path: tuple[str, ...], work_for: MsgBase, on_done: Callable[[Any], None]
    ) -> None:
        super().__init__(DESCRIPTOR_BYTES, path)
        self.dma_op = dma_op
        self.regions = (region,)
        self.total = region.nbytes
        self.work_for = work_for
        self.on_done = on_done

    @property
    def origin(self) -> MsgBase:
        """The command that it is a part of."""
        return self.work_for

    def answered(self) -> None:
        """Tell the queues that the DMA has done it."""
        self.on_done(self)


class Push(DmaOrder):
    """Move one piece of a message, at most a slot, into slot `index` of a queue.

    `offset` is where the piece begins in the message; `sent` bytes of it are on the fabric, `landed` in the slot: the
    first came at `came` ns, the last was in at `ends`. `metadata_bytes` come with its last chunk.
    """

    __slots__ = ("came", "ends", "index", "landed", "metadata_bytes", "offset", "queue", "route", "send", "sent")

    def __init__(
        self,
        send: SendCmd,
        queue: Queue,
        index: int,
        offset: int,
        nbytes: int,
        path: tuple[str, ...],
        route: tuple[str, ...],
        metadata_bytes: int,
        on_done: Callable[[Any], None],
    ) -> None:
        super().__init__("write", Region(queue.slots[index].base, nbytes), path, send, on_done)
        self.send = send
        self.queue = queue
        self.index = index
        self.offset = offset
        self.route = route
        self.metadata_bytes = metadata_bytes
        self.sent = self.landed = 0
        self.came = self.ends = 0.0

    @property
    def last(self) -> bool:
        """Whether the message ends with this piece."""
        return self.offset + self.total == self.send.total

    @property
    def value(self) -> Value:
        """The piece of the sent value."""
        value = self.send.value
        if self.total == value.nbytes:
            return value
        count = self.total
        if isinstance(value.content(), AbstractValue):
            return AbstractValue((count,), "int8")
        return AssemblyValue((count,), "int8", (Part(Region(0, count), value, Region(self.offset, count)),))


class PushChunk(QueueMsg):
    """Carry a part of a push over the fabric, one way: nothing comes back but the credit for the slot."""

    __slots__ = ("push", "total")

    def __init__(self, push: Push, nbytes: int, extra: int) -> None:
        super().__init__(nbytes + extra, push.route)
        self.push = push
        self.total = nbytes

    @property
    def origin(self) -> MsgBase:
        """The command that it works for."""
        return self.push.send


class Arrived(QueueMsg):
    """Tell a PE's queues that a piece is in its slot: the inbound half of the copy, logged as `ipcq_copy`."""

    __slots__ = ("push",)

    data_op: ClassVar[bool] = True

    def __init__(self, push: Push, path: tuple[str, ...]) -> None:
        super().__init__(0, path)
        self.push = push

    @property
    def origin(self) -> MsgBase:
        """The command that sent the piece."""
        return self.push.send

    def describe(self) -> OpDescription:
        """Describe the copy into the slot for the op log."""
        push, send = self.push, self.push.send
        value = push.value
        assert send.local is not None
        source = Region(send.local.base + push.offset, push.total)
        params: dict[str, object] = {
            "src_addr": source.base,
            "src_space": "tcm",
            "dst_addr": push.regions[0].base,
            "dst_space": push.queue.tier,
            "nbytes": push.total,
            "shape": value.shape,
            "dtype": value.dtype,
            "peer": push.queue.source,
            "slot": push.index,
            "channel": push.queue.channel.name,
        }
        reads = (Access("tcm", (source,), value),)
        return OpDescription("memory", "ipcq_copy", params, reads, Access(push.queue.tier, push.regions, value))


class Credit(QueueMsg):
    """Give slots of a queue back to its sender: `given_back` is how many there have been in all."""

    __slots__ = ("given_back", "queue")

    def __init__(self, queue: Queue, nbytes: int, given_back: int, path: tuple[str, ...]) -> None:
        super().__init__(nbytes, path)
        self.queue = queue
        self.given_back = given_back
