"""The queues of a run without time: messages in bounded slots, which are lent, given back and waited for."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial

from attrs import define, field, frozen

from kernbench_core.callsite import describe_site
from kernbench_core.errors import KernelError
from kernbench_core.kernel import KernelCommand, RecvCmd, SendCmd, SlotBlock
from kernbench_core.memory import Birth, Hazards
from kernbench_core.oplog import Access
from kernbench_core.values import Region

__tracebackhide__ = True  # errors name the kernel's line, not one of these


@frozen
class Wait:
    """What a blocked PE waits for: a message (`tl.recv`) or a slot (`tl.send`) of one of `peers`, as its `number`th."""

    command: SendCmd | RecvCmd
    peers: tuple[int, ...]
    number: int

    @property
    def sends(self) -> bool:
        """Whether it is a send that waits for a slot."""
        return isinstance(self.command, SendCmd)

    @property
    def line(self) -> str:
        """The kernel line."""
        return describe_site(self.command.site)


@define(eq=False)
class _Message:
    """A message in a queue: the slots that it needs, has been given, and has given back."""

    send: SendCmd
    slots: int
    put: int = 0
    taken: int = 0


@define(eq=False)
class _Queue:
    """Messages from one PE to another in `slots` slots; slots are given back in the order in which they were filled."""

    source: int
    destination: int
    free: int
    messages: deque[_Message] = field(factory=deque)
    receives: deque[RecvCmd] = field(factory=deque)
    lent: deque[list[bool]] = field(factory=deque)
    sent: int = 0
    received: int = 0
    slot_base: int = -1

    @property
    def at_hand(self) -> bool:
        """Whether the first message, or its beginning, is there."""
        return bool(self.messages) and self.messages[0].put > self.messages[0].taken

    def waiting(self) -> _Message | None:
        """Return the first message that is not in slots as a whole."""
        for message in self.messages:
            if message.put < message.slots:
                return message
        return None


@define(eq=False)
class UntimedQueues:
    """All queues of a run, each of `slots` slots of `slot_bytes`.

    `completed(command)` is told what is done. `room_of(pe, nbytes)` gives the address of room in a scratchpad,
    which begins at `start_of(pe)`. Of several sources that have a message, `tl.recv_any` takes the first, with
    `last_first` the last, with `random` any.
    """

    slots: int
    slot_bytes: int
    completed: Callable[[KernelCommand], None]
    room_of: Callable[[int, int], int]
    start_of: Callable[[int], int]
    last_first: bool = False
    random: random.Random | None = None
    hazards: Hazards | None = None
    """Who is told of slots that a kernel uses after it gave them back."""
    chose: bool = False
    """Whether a `tl.recv_any` had more than one message to take."""
    used_any: bool = False
    _all: dict[tuple[int, int, str], _Queue] = field(factory=dict)
    moving: deque[_Queue] = field(factory=deque)
    """The queues in which something may move: what `pump` has to look at."""

    @property
    def left(self) -> tuple[SendCmd, ...]:
        """What was sent and never received."""
        return tuple(message.send for queue in self._all.values() for message in queue.messages)

    def _between(self, source: int, destination: int, channel: str) -> _Queue:
        key = (source, destination, channel)
        found = self._all.get(key)
        if found is None:
            found = self._all[key] = _Queue(source, destination, self.slots)
        return found

    def send(self, command: SendCmd) -> None:
        """Take a message; it goes into slots with the next `pump`."""
        queue = self._between(command.pe, command.to, command.channel.name)
        queue.sent += 1
        queue.messages.append(_Message(command, max(1, -(-command.total // self.slot_bytes))))
        self.moving.append(queue)

    def receive(self, command: RecvCmd) -> None:
        """Let a receive wait for its message, which comes with the next `pump` where it is there already."""
        pe, channel = command.pe, command.channel.name
        queues = [self._between(source, pe, channel) for source in command.sources]
        if len(queues) > 1:
            self.used_any = True
            ready = [queue for queue in queues if queue.at_hand and not queue.receives]
            self.chose = self.chose or len(ready) > 1
            queues = [self._chosen(ready)] if ready else queues
        for queue in queues:
            queue.receives.append(command)
            self.moving.append(queue)

    def _chosen(self, ready: list[_Queue]) -> _Queue:
        if self.last_first:
            return ready[-1]
        return ready[0 if self.random is None else self.random.randrange(len(ready))]

    def pump(self) -> None:
        """Move what can be moved."""
        while self.moving:
            self._pump(self.moving.popleft())

    def _pump(self, queue: _Queue) -> None:
        """Put messages into free slots, and take them out for the receives that wait, as far as that goes."""
        moved = True
        while moved:
            moved = False
            message = queue.waiting() if queue.free else None
            if message is not None:
                put = min(queue.free, message.slots - message.put)
                message.put += put
                queue.free -= put
                moved = True
                if message.put == message.slots:
                    self.completed(message.send)
            if queue.receives and queue.at_hand:
                self._take(queue, queue.receives[0], queue.messages[0])
                moved = True

    def _take(self, queue: _Queue, command: RecvCmd, message: _Message) -> None:
        """Take what is there of a message out of its slots."""
        if command.sent is None:
            self._matched(queue, command, message)
        lend = command.local is None and command.error is None
        for _ in range(message.put - message.taken):
            queue.lent.append([not lend])
        self._return_slots(queue)
        message.taken = message.put
        if message.taken == message.slots:
            queue.messages.popleft()
            queue.receives.popleft()
            queue.received += 1
            self.completed(command)

    def _matched(self, queue: _Queue, command: RecvCmd, message: _Message) -> None:
        """Give a receive its message; it no longer waits for other sources."""
        send = message.send
        if len(command.sources) > 1:
            for source in command.sources:
                other = self._between(source, command.pe, command.channel.name)
                if other is not queue and command in other.receives:
                    other.receives.remove(command)
                    self.moving.append(other)
        if queue.slot_base < 0:
            queue.slot_base = self.room_of(queue.destination, self.slot_bytes)
        region = Region(queue.slot_base, send.total)
        command.receive(send, Access("tcm", (region,), send.value))
        command.error = command.fits(send)
        if command.local is None and command.error is None:
            self._lend(queue, command, message, region)

    def _lend(self, queue: _Queue, command: RecvCmd, message: _Message, region: Region) -> None:
        """Give a receive the slot itself."""
        if message.slots > 1:
            command.error = KernelError(
                f"{command.call} at {describe_site(command.site)} must be given a message of one slot of "
                f"{self.slot_bytes} B when it does not copy, not of {message.send.total} B; receive a copy."
            )
            return
        birth = Birth(command.call, command.value.shape, command.value.dtype, command.site)
        held = [False]
        start = self.start_of(queue.destination)
        command.slot = SlotBlock(
            region, region.base - start, birth, partial(self._given_back, queue, held), "a slot of a queue",
            queue.destination, self.hazards,
        )  # fmt: skip
        message.taken = message.put
        queue.lent.append(held)

    def _given_back(self, queue: _Queue, held: list[bool]) -> None:
        """Take note that a kernel has given a slot back; what that lets go on does so when the kernel next stops."""
        held[0] = True
        self._return_slots(queue)
        self.moving.append(queue)

    def _return_slots(self, queue: _Queue) -> None:
        while queue.lent and queue.lent[0][0]:
            queue.lent.popleft()
            queue.free += 1

    def waits(self, command: KernelCommand) -> Wait | None:
        """Say what a command that is not complete waits for."""
        if isinstance(command, SendCmd):
            queue = self._between(command.pe, command.to, command.channel.name)
            place = next(i for i, message in enumerate(queue.messages) if message.send is command)
            return Wait(command, (command.to,), queue.sent - len(queue.messages) + place + 1)
        if isinstance(command, RecvCmd):
            queue = self._between(command.sources[0], command.pe, command.channel.name)
            return Wait(command, command.sources, queue.received + [*queue.receives].index(command) + 1)
        return None
