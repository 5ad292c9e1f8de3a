"""What PEs' queues put on wires: pushes of payload, notes of arrival, fetches out of slots, and credits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kernbench_builtin.components.queues.rings import Queue
from kernbench_core.fabric import Fabric
from kernbench_core.kernel.queue_commands import QueueCommand, SendCmd
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.oplog import OF_READS, Access, OpDescription, OpPattern, Patterns
from kernbench_core.values import AbstractValue, AssemblyValue, Chunk, Part, Region, Value

DESCRIPTOR_BYTES = 32
"""What an order to the DMA occupies on its wire: two addresses, a size, and where the completion goes."""

_COPIES = Patterns()
_OPEN = ("src_addr", "dst_addr", "nbytes", "peer", "slot", "offset")


class QueueMsg(MsgBase):
    """A message of the queues; the DMAs on its way pass it on."""

    __slots__ = ()

    def _begin(self, nbytes: int, path: tuple[str, ...]) -> None:
        # instead of MsgBase's own beginning, which compiled code must look up by its name: every message makes six
        self.nbytes = nbytes
        self.path = path
        self.hop = 0
        self.reply = False
        self.head = self.tail = self.born = 0.0
        self.propagation = self.serialisation = self.overhead = self.queueing = self.service = 0.0
        self.callbacks = None


class TransferProgress:
    """Keep how far the message of `command` is, of which `total` bytes are to move.

    `begun` bytes have been handed to the DMA, `moved` are out of the scratchpad, or in the receiver's tile. Service of
    the command began at `began` ns.
    """

    __slots__ = ("began", "begun", "command", "moved", "total")

    def __init__(self, command: Any) -> None:
        self.command = command
        self.total: int = command.total
        self.begun = self.moved = 0
        self.began = 0.0

    def done(self, nbytes: int) -> bool:
        """Note `nbytes` more, and say whether that was all."""
        self.moved += nbytes
        return self.moved == self.total


class DmaOrder(QueueMsg):
    """Ask the PE's DMA to move `total` bytes at the physical `regions`: slot `index` of `queue`, for a command.

    `progress` is that of the command's message. `dma_op` is seen from the slot: "write" pushes the bytes of a tile
    towards it, "read" fetches them out of it.
    """

    __slots__ = ("index", "progress", "queue", "regions", "total")

    dma_op: ClassVar[str] = ""
    index: int
    progress: TransferProgress
    queue: Queue
    regions: tuple[Region, ...]
    total: int

    def cut(self, fabric: Fabric) -> tuple[Chunk, ...]:
        """Return the chunks of its bytes; the queue keeps them, as its slots are used again and again."""
        known = self.queue.cuts[self.index]
        if known is None or known[0] != self.total:
            known = self.queue.cuts[self.index] = self.total, fabric.cut(self.regions)
        return known[1]

    @property
    def command(self) -> QueueCommand:
        """The command that it works for."""
        asked: QueueCommand = self.progress.command
        return asked

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
    first came at `came` ns, the last was in at `ends`. `metadata_bytes` come with its last chunk.
    """

    __slots__ = (
        "came", "ends", "landed", "metadata_bytes", "number", "offset", "route", "send", "sent",
    )  # fmt: skip

    dma_op: ClassVar[str] = "write"

    def __init__(
        self,
        progress: TransferProgress,
        queue: Queue,
        number: int,
        nbytes: int,
        path: tuple[str, ...],
        route: tuple[str, ...],
        metadata_bytes: int,
    ) -> None:
        self._begin(DESCRIPTOR_BYTES, path)
        slots = queue.slots
        index = number % len(slots)
        slot = slots[index]
        self.queue = queue
        self.regions = (slot if nbytes == slot.row_bytes else Region(slot.base, nbytes),)
        self.total = nbytes
        self.progress = progress
        self.send: SendCmd = progress.command
        self.number = number
        self.index = index
        self.offset = progress.begun
        self.route = route
        self.metadata_bytes = metadata_bytes
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
        if self.total == self.send.total:
            return value
        count = self.total
        if isinstance(value.content(), AbstractValue):
            return AbstractValue((count,), "int8")
        return AssemblyValue((count,), "int8", (Part(Region(0, count), value, Region(self.offset, count)),))


class Fetch(DmaOrder):
    """Copy one piece of a message, `push`, out of its slot into the tile of the receiver, whose end is `incoming`."""

    __slots__ = ("incoming", "push")

    dma_op: ClassVar[str] = "read"

    def __init__(self, push: Push, incoming: Any, path: tuple[str, ...], progress: TransferProgress) -> None:
        self._begin(DESCRIPTOR_BYTES, path)
        self.queue = push.queue
        self.index = push.index
        self.regions = push.regions
        self.total = push.total
        self.progress = progress
        self.push = push
        self.incoming = incoming


class PushChunk(QueueMsg):
    """Carry a part of a push, `regions` of its slot, over the fabric, one way: only the slot's credit comes back."""

    __slots__ = ("push", "regions", "total")

    def __init__(self, push: Push, regions: tuple[Region, ...], nbytes: int, extra: int) -> None:
        self._begin(nbytes + extra, push.route)
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
        return self.push.send


class Landing(Transaction):
    """Write a chunk of a push to the memory that holds its slot, there and back."""

    __slots__ = ("push",)

    def __init__(self, chunk: PushChunk, path: tuple[str, ...], on_done: Callable[[Any], None]) -> None:
        super().__init__("write", chunk.regions, chunk.total, path, on_done)
        self.push = chunk.push

    @property
    def origin(self) -> MsgBase:
        """The command that it works for."""
        return self.push.send


class Arrived(QueueMsg):
    """Tell a PE's queues that a piece is in its slot: the inbound half of the copy, logged as `ipcq_copy`."""

    __slots__ = ("push",)

    data_op: ClassVar[bool] = True

    def __init__(self, push: Push, path: tuple[str, ...]) -> None:
        self._begin(0, path)
        self.push = push

    @property
    def origin(self) -> MsgBase:
        """The command that it works for."""
        return self.push.send

    @property
    def sort(self) -> str:
        """A note."""
        return "note"

    def describe(self) -> OpDescription:
        """Describe the inbound copy for the op log."""
        push, send, queue = self.push, self.push.send, self.push.queue
        value = push.value
        assert send.local is not None
        source = send.local
        if push.total != send.total:
            source = Region(source.base + push.offset, push.total)
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
        self._begin(nbytes, path)
        self.queue = queue
        self.given_back = given_back

    @property
    def sort(self) -> str:
        """A credit."""
        return "credit"
