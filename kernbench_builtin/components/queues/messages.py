"""What PEs' queues put on wires: pushes of payload, notes of arrival, fetches out of slots, and credits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kernbench_core.kernel import Queue, QueueCommand, RecvCmd, SendCmd
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.oplog import OF_READS, Access, OpDescription, OpPattern, Patterns
from kernbench_core.values import AbstractValue, AssemblyValue, Part, Region, Value

DESCRIPTOR_BYTES = 32
"""What an order to the DMA occupies on its wire: two addresses, a size, and where the completion goes."""

_COPIES = Patterns()
_OPEN = ("src_addr", "dst_addr", "nbytes", "peer", "slot", "offset")


class QueueMsg(MsgBase):
    """A message of the queues; the DMAs on its way pass it on."""

    __slots__ = ()


class DmaOrder(QueueMsg):
    """Ask the PE's DMA to move `total` bytes at the physical `regions`, for `command`; `queue` is that of the slot.

    `dma_op` is seen from the slot: "write" pushes the bytes of a tile towards it, "read" fetches them out of it.
    """

    __slots__ = ("command", "queue", "regions", "total")

    dma_op: ClassVar[str]

    def __init__(self, queue: Queue, region: Region, path: tuple[str, ...], command: QueueCommand) -> None:
        super().__init__(DESCRIPTOR_BYTES, path)
        self.queue = queue
        self.regions = (region,)
        self.total = region.nbytes
        self.command = command

    @property
    def origin(self) -> MsgBase:
        """The command that it is a part of."""
        return self.command

    @property
    def sort(self) -> str:
        """An order to the DMA, or its completion."""
        return "answer" if self.reply else "command"


class Push(DmaOrder):
    """Move one piece of a message, at most a slot, into slot `index` of a queue, as its `number`-th piece.

    `offset` is where the piece begins in the message; `sent` bytes of it are on the fabric, `landed` in the slot: the
    first came at `came` ns, the last was in at `ends`. `metadata_bytes` come with its last chunk; `progress` is that of
    the whole message.
    """

    __slots__ = (
        "came", "ends", "index", "landed", "metadata_bytes", "number", "offset", "progress", "route", "send", "sent",
    )  # fmt: skip

    dma_op: ClassVar[str] = "write"

    def __init__(
        self,
        send: SendCmd,
        queue: Queue,
        number: int,
        offset: int,
        nbytes: int,
        path: tuple[str, ...],
        route: tuple[str, ...],
        metadata_bytes: int,
        progress: TransferProgress,
    ) -> None:
        index = number % len(queue.slots)
        super().__init__(queue, Region(queue.slots[index].base, nbytes), path, send)
        self.send = send
        self.number = number
        self.index = index
        self.offset = offset
        self.route = route
        self.metadata_bytes = metadata_bytes
        self.progress = progress
        self.sent = self.landed = 0
        self.came = -1.0
        self.ends = 0.0

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


class Fetch(DmaOrder):
    """Copy one piece of a message, `push`, out of its slot into the tile of the receiver."""

    __slots__ = ("push", "receive")

    dma_op: ClassVar[str] = "read"

    def __init__(self, push: Push, slot: Region, path: tuple[str, ...], receive: RecvCmd) -> None:
        super().__init__(push.queue, slot, path, receive)
        self.push = push
        self.receive = receive


class TransferProgress:
    """Keep how far a message is: of `total` bytes `moved` are out of the scratchpad, or in the receiver's tile.

    `begun` bytes have been handed to the DMA.
    """

    __slots__ = ("begun", "moved", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.begun = self.moved = 0

    def done(self, nbytes: int) -> bool:
        """Note `nbytes` more, and say whether that was all."""
        self.moved += nbytes
        return self.moved == self.total


class PushChunk(QueueMsg):
    """Carry a part of a push, `regions` of its slot, over the fabric, one way: only the slot's credit comes back."""

    __slots__ = ("push", "regions", "total")

    def __init__(self, push: Push, regions: tuple[Region, ...], nbytes: int, extra: int) -> None:
        super().__init__(nbytes + extra, push.route)
        self.push = push
        self.regions = regions
        self.total = nbytes

    @property
    def sort(self) -> str:
        """Payload of a message."""
        return "payload"

    @property
    def origin(self) -> MsgBase:
        """The command that it works for."""
        return self.push.command


class Landing(Transaction):
    """Write a chunk of a push to the memory that holds its slot, there and back."""

    __slots__ = ("push",)

    def __init__(self, chunk: PushChunk, path: tuple[str, ...], on_done: Callable[[Any], None]) -> None:
        super().__init__("write", chunk.regions, chunk.total, path, on_done)
        self.push = chunk.push

    @property
    def origin(self) -> MsgBase:
        """The command that it works for."""
        return self.push.command


class Arrived(QueueMsg):
    """Tell a PE's queues that a piece is in its slot: the inbound half of the copy, logged as `ipcq_copy`."""

    __slots__ = ("push",)

    data_op: ClassVar[bool] = True

    def __init__(self, push: Push, path: tuple[str, ...]) -> None:
        super().__init__(0, path)
        self.push = push

    @property
    def origin(self) -> MsgBase:
        """The command that it works for."""
        return self.push.command

    @property
    def sort(self) -> str:
        """A note."""
        return "note"

    def describe(self) -> OpDescription:
        """Describe the inbound copy for the op log."""
        push, send, queue = self.push, self.push.send, self.push.queue
        value = push.value
        assert send.local is not None
        source = Region(send.local.base + push.offset, push.total)
        looks = queue.tier, queue.channel.name, value.shape, value.dtype
        pattern = _COPIES.find(looks)
        if pattern is None:
            params: dict[str, object] = {
                "src_addr": source.base,
                "src_space": "tcm",
                "dst_addr": push.regions[0].base,
                "dst_space": queue.tier,
                "nbytes": push.total,
                "shape": value.shape,
                "dtype": value.dtype,
                "snapshot": OF_READS,
                "peer": queue.source,
                "slot": push.index,
                "offset": push.offset,
                "channel": queue.channel.name,
            }
            pattern = _COPIES.add(looks, OpPattern("memory", "ipcq_copy", params, _OPEN))
        numbers = source.base, push.regions[0].base, push.total, queue.source, push.index, push.offset
        reads = (Access("tcm", (source,), value),)
        return pattern.described(numbers, reads, Access(queue.tier, push.regions, value), None)


class Credit(QueueMsg):
    """Give slots of a queue back to its sender: `given_back` is how many there have been in all."""

    __slots__ = ("given_back", "queue")

    def __init__(self, queue: Queue, nbytes: int, given_back: int, path: tuple[str, ...]) -> None:
        super().__init__(nbytes, path)
        self.queue = queue
        self.given_back = given_back

    @property
    def sort(self) -> str:
        """A credit."""
        return "credit"
