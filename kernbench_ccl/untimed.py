"""Run the kernels of a collective without time: the real kernel language and memory, no engine, no components.

Every command takes effect when it is issued; queues have the slots that they have on the machine, so that a sender
waits for a free slot and a receiver for a message. Kernels that receive from named PEs only form a Kahn process network
over bounded channels: what each of them computes, and whether all of them end, does not depend on who runs first. With
`tl.recv_any` it may; `order` chooses who runs first, and from whom is received.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, field, frozen

from kernbench_core.address import AddressMap
from kernbench_core.bridge import Bridge, Finished
from kernbench_core.callsite import CallSite, describe_site, site_of_traceback
from kernbench_core.commands import KernelCommand
from kernbench_core.dispatch import PeState
from kernbench_core.errors import KernelError
from kernbench_core.graph import Design, PeSite
from kernbench_core.language import TLContext
from kernbench_core.memory import DeviceMemory
from kernbench_core.messages import Launch
from kernbench_core.naming import pe as pe_name
from kernbench_core.naming import pe_unit
from kernbench_core.oplog import Access
from kernbench_core.queue_commands import RecvCmd, SendCmd
from kernbench_core.queues import SlotBlock
from kernbench_core.regions import Region
from kernbench_core.store import MemoryStore
from kernbench_core.tcm import Birth

__tracebackhide__ = True  # errors name the kernel's line, not one of these

HBM_BYTES = 1 << 34
TCM_BYTES = 1 << 30
"""Memory of the machine that runs without time: whether tiles fit is a question to the real one."""

PAGE_BYTES = 4096
MOST_COMMANDS = 5_000_000
"""Commands after which a run is taken for one that never ends."""

Arguments = Mapping[int, Sequence[object]]
"""The arguments of the kernel, before `tl`, by PE."""


def bare_design(world: int, n_pe: int) -> Design:
    """Return a machine of `world` SIPs of one cube of `n_pe` PEs, which has memory and nothing else."""
    sites: list[PeSite] = []
    for sip in range(world):
        for pe in range(n_pe):
            prefix = pe_name(sip, 0, pe)
            sites.append(PeSite(len(sites), sip, 0, pe, prefix, pe_unit(prefix, "pe_cpu"), "", "", ""))
    addresses = AddressMap(world, 1, n_pe, HBM_BYTES, PAGE_BYTES, TCM_BYTES)
    return Design(world, 1, n_pe, PAGE_BYTES, PAGE_BYTES, tuple(sites), addresses)


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


@frozen
class Raised:
    """What a kernel raised, and on which PE."""

    pe: int
    error: BaseException
    line: str


@frozen
class Outcome:
    """How a run ended: what the PEs wait for that have not ended, what was sent and never received, what was raised.

    `chose` says whether a `tl.recv_any` had more than one message to take.
    """

    blocked: Mapping[int, tuple[Wait, ...]]
    unreceived: tuple[SendCmd, ...]
    raised: Raised | None
    chose: bool
    used_any: bool


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
    slots: int
    slot_bytes: int
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

    @property
    def waiting(self) -> _Message | None:
        """The first message that is not in slots as a whole."""
        return next((message for message in self.messages if message.put < message.slots), None)


@define(eq=False)
class _Pe:
    """One PE's kernel, and the commands that it waits for."""

    index: int
    state: PeState
    bridge: Bridge
    tl: TLContext
    waits: tuple[KernelCommand, ...] = ()
    ended: bool = False
    returned: bool = False


class Untimed:
    """Run one launch of a collective's kernel on a bare machine.

    `launch` says which kernel and which peers; `arguments` has what comes before `tl`, by PE. Queues have `slots` slots
    of `slot_bytes`. `told(command)` is called when a command is complete, and for a send when it is issued.
    `order` is 0 for PEs in turn, 1 for the last that can go on first; any other number is the seed of a random order.
    """

    def __init__(
        self,
        launch: Launch,
        arguments: Arguments,
        memory: DeviceMemory,
        store: MemoryStore,
        design: Design,
        *,
        slots: int,
        slot_bytes: int,
        told: Callable[[KernelCommand], None],
        order: int = 0,
    ) -> None:
        self._told = told
        self._slots = slots
        self._slot_bytes = slot_bytes
        self._store = store
        self._memory = memory
        self._design = design
        self._random = None if order in (0, 1) else random.Random(order)
        self._last_first = order == 1
        self._queues: dict[tuple[int, int, str], _Queue] = {}
        self._ready: deque[_Pe] = deque()
        self._chose = self._used_any = False
        self._pumps: deque[_Queue] = deque()
        self.commands = 0
        self._pes = {pe: self._started(launch, pe, given) for pe, given in arguments.items()}

    def _started(self, launch: Launch, pe: int, given: Sequence[object]) -> _Pe:
        state = PeState(self._design.pes[pe], self._memory, self._store, True)
        holder: list[TLContext] = []

        def body() -> None:
            launch.kernel(*given, holder[0])

        bridge = Bridge(body, kernel=True)
        holder.append(TLContext(state, bridge, launch.programs[pe][0], launch))
        return _Pe(pe, state, bridge, holder[0])

    # The loop ---------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Run until every kernel has ended, or none can go on, or one has raised."""
        self._ready.extend(self._pes.values())
        raised = None
        try:
            while self._ready and raised is None:
                pe = self._next()
                if pe.ended or any(not command.complete for command in pe.waits):
                    continue
                try:
                    self._advance(pe)
                except (Exception, SystemExit) as error:
                    raised = Raised(pe.index, error, describe_site(site_of_traceback(error.__traceback__)))
                self._pump_all()
            blocked = {pe.index: self._waits(pe) for pe in self._pes.values() if not pe.ended}
        finally:
            for pe in self._pes.values():
                pe.bridge.close()
        left = tuple(message.send for queue in self._queues.values() for message in queue.messages)
        return Outcome({} if raised else blocked, left, raised, self._chose, self._used_any)

    def _next(self) -> _Pe:
        if self._random is not None:
            self._ready.rotate(-self._random.randrange(len(self._ready)))
        return self._ready.pop() if self._last_first else self._ready.popleft()

    def _advance(self, pe: _Pe) -> None:
        """Run a kernel until it has to wait or has ended; what a landed command failed with is raised in it."""
        resume: Callable[[], Any] = pe.bridge.resume
        while not pe.returned:
            failed = next((c.error for c in pe.waits if c.error is not None), None)
            if isinstance(failed, KernelError):
                resume = partial(pe.bridge.throw, failed)
            elif failed is not None:
                raise failed
            pe.waits = ()
            request = resume()
            resume = pe.bridge.resume
            if type(request) is Finished:
                pe.returned = True
                pe.waits = pe.tl.in_flight
            elif type(request) is tuple:
                pe.waits = request
            else:
                self._issue(request)
                pe.waits = (request,) if request.blocking else ()
            self._pump_all()
            if any(not command.complete for command in pe.waits):
                return
        for command in pe.waits:
            if command.error is not None:
                raise command.error
        pe.ended = True

    def _issue(self, command: KernelCommand) -> None:
        self.commands += 1
        if self.commands > MOST_COMMANDS:
            raise KernelError(
                f"{command.call} at {describe_site(command.site)} must not be reached without end, and this is command "
                f"number {MOST_COMMANDS + 1} of the run; correct the loop."
            )
        command.at_issue(self._store, 0.0)
        if isinstance(command, SendCmd):
            self._send(command)
        elif isinstance(command, RecvCmd):
            self._receive(command)
        else:
            self._complete(command)

    def _complete(self, command: KernelCommand) -> None:
        """Land a command; its kernel, if it waited for nothing else, can go on."""
        command.answered()
        if command.error is None and not isinstance(command, SendCmd):
            self._told(command)
        pe = self._pes[command.op_id[0]]
        if command in pe.waits and all(each.complete for each in pe.waits):
            self._ready.append(pe)

    # Queues -----------------------------------------------------------------------------------------

    def _queue(self, source: int, destination: int, channel: str) -> _Queue:
        key = (source, destination, channel)
        found = self._queues.get(key)
        if found is None:
            found = _Queue(source, destination, self._slots, self._slot_bytes, self._slots)
            self._queues[key] = found
        return found

    def _send(self, command: SendCmd) -> None:
        self._told(command)
        queue = self._queue(command.pe, command.to, command.channel.name)
        queue.sent += 1
        queue.messages.append(_Message(command, max(1, -(-command.total // queue.slot_bytes))))
        self._pumps.append(queue)

    def _receive(self, command: RecvCmd) -> None:
        queues = [self._queue(source, command.pe, command.channel.name) for source in command.sources]
        self._used_any = self._used_any or len(queues) > 1
        ready = [queue for queue in queues if queue.at_hand and not queue.receives]
        if len(queues) > 1 and ready:
            self._chose = self._chose or len(ready) > 1
            queues = [ready[-1] if self._last_first else ready[self._random.randrange(len(ready))]
                      if self._random is not None else ready[0]]  # fmt: skip
        for queue in queues:
            queue.receives.append(command)
            self._pumps.append(queue)

    def _pump_all(self) -> None:
        while self._pumps:
            self._pump(self._pumps.popleft())

    def _pump(self, queue: _Queue) -> None:
        """Put messages into free slots, and take them out for the receives that wait, as far as that goes."""
        moved = True
        while moved:
            moved = False
            message = queue.waiting
            if message is not None and queue.free:
                put = min(queue.free, message.slots - message.put)
                message.put += put
                queue.free -= put
                moved = True
                if message.put == message.slots:
                    self._complete(message.send)
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
            self._complete(command)

    def _matched(self, queue: _Queue, command: RecvCmd, message: _Message) -> None:
        """Give a receive its message; it no longer waits for other sources."""
        send = message.send
        for source in command.sources:
            other = self._queue(source, command.pe, command.channel.name)
            if other is not queue and command in other.receives:
                other.receives.remove(command)
                self._pumps.append(other)
        region = Region(self._slot_address(queue), send.total)
        command.receive(send, Access("tcm", (region,), send.value))
        command.error = command.fits(send)
        if command.local is None and command.error is None:
            if message.slots > 1:
                command.error = KernelError(
                    f"{command.call} at {describe_site(command.site)} must be given a message of one slot of "
                    f"{queue.slot_bytes} B when it does not copy, not of {send.total} B; receive a copy."
                )
                return
            birth = Birth(command.call, command.value.shape, command.value.dtype, command.site)
            held = [False]
            base, _ = self._memory.tcm_range(self._design.pes[command.pe])
            command.slot = SlotBlock(region, region.base - base, birth, partial(self._given_back, queue, held))
            message.taken = message.put
            queue.lent.append(held)

    def _given_back(self, queue: _Queue, held: list[bool]) -> None:
        """Take note that a kernel has given a slot back; what that lets go on does so when the kernel next stops."""
        held[0] = True
        self._return_slots(queue)
        self._pumps.append(queue)

    def _return_slots(self, queue: _Queue) -> None:
        while queue.lent and queue.lent[0][0]:
            queue.lent.popleft()
            queue.free += 1

    def _slot_address(self, queue: _Queue) -> int:
        """Return an address of the receiver's scratchpad for the slots of a queue."""
        if queue.slot_base < 0:
            tcm = self._pes[queue.destination].state.tcm
            block = tcm.allocate("slots", (queue.slot_bytes,), "int8", queue.slot_bytes, _HERE)
            self._kept.append(block)
            queue.slot_base = block.address
        return queue.slot_base

    @property
    def _kept(self) -> list[Any]:
        kept: list[Any] = self._memory.kept.setdefault(-1, [])
        return kept

    # What is left -----------------------------------------------------------------------------------

    def _waits(self, pe: _Pe) -> tuple[Wait, ...]:
        """Say what a PE waits for."""
        found = []
        for command in pe.waits:
            if command.complete:
                continue
            if isinstance(command, SendCmd):
                queue = self._queue(command.pe, command.to, command.channel.name)
                place = next(i for i, message in enumerate(queue.messages) if message.send is command)
                found.append(Wait(command, (command.to,), queue.sent - len(queue.messages) + place + 1))
            elif isinstance(command, RecvCmd):
                queues = [self._queue(source, pe.index, command.channel.name) for source in command.sources]
                place = [*queues[0].receives].index(command)
                found.append(Wait(command, command.sources, queues[0].received + place + 1))
        return tuple(found)


def wait_cycle(blocked: Mapping[int, Sequence[Wait]]) -> list[tuple[int, Wait]]:
    """Return the shortest cycle of PEs that wait for each other, each with what it waits for; [] when there is none."""
    best: list[tuple[int, Wait]] = []
    for start in blocked:
        came: dict[int, tuple[int, Wait]] = {}
        ahead = deque([start])
        while ahead and start not in came:
            pe = ahead.popleft()
            for wait in blocked[pe]:
                for peer in wait.peers:
                    if peer in blocked and peer not in came:
                        came[peer] = (pe, wait)
                        ahead.append(peer)
        if start in came:
            cycle = [came[start]]
            while cycle[-1][0] != start:
                cycle.append(came[cycle[-1][0]])
            if not best or len(cycle) < len(best):
                best = cycle[::-1]
    return best


_HERE: CallSite = (Untimed.run.__code__, 0)
