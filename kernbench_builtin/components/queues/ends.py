"""What a pe_ipcq keeps of each queue: the sender's side and the receiver's."""

from __future__ import annotations

from typing import Final

from kernbench_builtin.components.queues.messages import Push, TransferProgress
from kernbench_builtin.components.queues.rings import Queue
from kernbench_core.units import format_bytes

_NONE: Final[frozenset[int]] = frozenset()


class Outgoing:
    """The sender's side of a queue: the slots it has used (`tail`) and those it knows to be given back.

    Messages that wait for slots, the first of which may be under way in part, are `waiting`; `route` is the way that
    their bytes take, () before the first. `channel` is that of the last message: an equal one for each launch.

    There may be many queues with a message or two: what waits is in lists, as an empty deque takes 0.6 KiB.
    """

    __slots__ = ("channel", "given_back", "queue", "route", "slots", "tail", "waiting")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.channel = queue.channel
        self.slots = len(queue.slots)
        self.tail = 0
        self.given_back = 0
        self.route: tuple[str, ...] = ()
        self.waiting: list[TransferProgress] = []

    def told(self, peer: str, progress: TransferProgress) -> str:
        """Say what a message waits for here."""
        part = ""
        if progress.begun:
            part = f", {format_bytes(progress.begun)} of {format_bytes(progress.total)} sent before"
        return f"waits for a free slot of the queue to {peer}, {self.tail - self.given_back} of {self.slots} full{part}"


class Incoming:
    """The receiver's side of a queue: pieces that have arrived, receives that wait, slots `free` out of order.

    `early` are pieces that overtook others, `copies` counts those on their way out of their slots; credits go the way
    `back`, () before the first. `channel` is that of the last receipt.
    """

    __slots__ = (
        "arrived", "back", "channel", "copies", "early", "free", "given_back", "next", "queue", "recvs", "slots",
    )  # fmt: skip

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.channel = queue.channel
        self.slots = len(queue.slots)
        self.arrived: list[Push] = []
        self.early: dict[int, Push] = {}
        self.copies = 0
        self.next = 0
        self.recvs: list[TransferProgress] = []
        self.free: frozenset[int] = _NONE
        self.given_back = 0
        self.back: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether a message, or the beginning of one, is there for a new receive."""
        return bool(self.arrived) and not self.recvs

    def take_in(self, push: Push) -> None:
        """Put a piece, and those that waited for it, into the order in which they were sent."""
        if push.number != self.next:
            self.early[push.number] = push
            return
        self.arrived.append(push)
        self.next += 1
        while self.next in self.early:
            self.arrived.append(self.early.pop(self.next))
            self.next += 1

    def take_back(self, index: int) -> bool:
        """Note that a slot is free again, and say whether some go back to the sender: they do so in order."""
        slots = self.slots
        turn = self.given_back % slots
        if index != turn:
            self.free |= {index}
            return False
        self.given_back += 1
        while self.given_back % slots in self.free:
            self.free -= {self.given_back % slots}
            self.given_back += 1
        return True

    def told(self, peer: str, progress: TransferProgress) -> str:
        """Say what a receipt waits for here."""
        if progress.begun:
            return (
                f"waits for the rest of a message from {peer}, {format_bytes(progress.begun)} of "
                f"{format_bytes(progress.total)} there"
            )
        held = self.next - len(self.arrived) - self.copies - len(self.free) - self.given_back
        lent = f", {held} of {self.slots} slots held by the kernel: free one with tl.free" if held else ""
        return f"waits for a message from {peer}, {self.queue.received} received before{lent}"
