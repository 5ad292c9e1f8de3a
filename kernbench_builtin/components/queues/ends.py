"""What a pe_ipcq keeps of each queue: the sender's side and the receiver's."""

from __future__ import annotations

from collections import deque

from kernbench_builtin.components.queues.messages import Push, TransferProgress
from kernbench_core.kernel import Queue, RecvCmd, SendCmd
from kernbench_core.units import format_bytes


class Outgoing:
    """The sender's side of a queue: the slots it has used (`tail`) and those it knows to be given back."""

    __slots__ = ("given_back", "queue", "tail", "waiting")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.tail = 0
        self.given_back = 0
        self.waiting: deque[tuple[SendCmd, TransferProgress]] = deque()

    def told(self, peer: str, progress: TransferProgress) -> str:
        """Say what a message waits for here."""
        slots, part = len(self.queue.slots), ""
        if progress.begun:
            part = f", {format_bytes(progress.begun)} of {format_bytes(progress.total)} sent before"
        return f"waits for a free slot of the queue to {peer}, {self.tail - self.given_back} of {slots} full{part}"


class Incoming:
    """The receiver's side of a queue: pieces that have arrived, receives that wait, slots `free` out of order.

    `early` are pieces that overtook others, `copies` those on their way out of their slots, by number.
    """

    __slots__ = ("arrived", "copies", "early", "free", "given_back", "next", "queue", "recvs")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.arrived: deque[Push] = deque()
        self.early: dict[int, Push] = {}
        self.copies: dict[int, TransferProgress] = {}
        self.next = 0
        self.recvs: deque[tuple[RecvCmd, TransferProgress]] = deque()
        self.free: set[int] = set()
        self.given_back = 0

    @property
    def ready(self) -> bool:
        """Whether a message, or the beginning of one, is there for a new receive."""
        return bool(self.arrived) and not self.recvs

    def take_in(self, push: Push) -> None:
        """Put a piece, and those that waited for it, into the order in which they were sent."""
        self.early[push.number] = push
        while self.next in self.early:
            self.arrived.append(self.early.pop(self.next))
            self.next += 1

    def told(self, peer: str, progress: TransferProgress) -> str:
        """Say what a receipt waits for here."""
        if progress.begun:
            return (
                f"waits for the rest of a message from {peer}, {format_bytes(progress.begun)} of "
                f"{format_bytes(progress.total)} there"
            )
        held = self.next - len(self.arrived) - len(self.copies) - len(self.free) - self.given_back
        lent = f", {held} of {len(self.queue.slots)} slots held by the kernel: free one with tl.free" if held else ""
        return f"waits for a message from {peer}, {self.queue.received} received before{lent}"
