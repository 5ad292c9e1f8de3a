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

from attrs import define, frozen

from kernbench_ccl.prove.kernel_prints import RANK
from kernbench_ccl.prove.untimed_queues import UntimedQueues, Wait
from kernbench_core.callsite import CallSite, describe_site, site_of_traceback
from kernbench_core.errors import KernelError, LimitError
from kernbench_core.graph import PeSite
from kernbench_core.host import shortest_cycle
from kernbench_core.kernel import Bridge, KernelCommand, Kernels, PeState, RecvCmd, SendCmd, TLContext, escaped
from kernbench_core.memory import Hazards, TcmBlock
from kernbench_core.messages import Launch
from kernbench_core.process import WallTimeExceeded
from kernbench_core.topology import AddressMap, Design
from kernbench_core.topology.naming import pe as pe_name
from kernbench_core.topology.naming import pe_unit

__tracebackhide__ = True  # errors name the kernel's line, not one of these

HBM_BYTES = 1 << 34
TCM_BYTES = 1 << 30
"""Memory of the machine that runs without time: whether tiles fit is a question to the real one."""

PAGE_BYTES = 4096
MOST_COMMANDS = 5_000_000
"""Commands of one kernel after which it is taken for one that never ends."""

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
class _Pe:
    """One PE's kernel, the commands that it waits for, and how many it has issued, the last of them at `site`."""

    index: int
    state: PeState
    bridge: Bridge
    tl: TLContext
    waits: tuple[KernelCommand, ...] = ()
    ended: bool = False
    returned: bool = False
    commands: int = 0
    site: CallSite | None = None


class Untimed:
    """Run one launch of a collective's kernel on a bare machine.

    `launch` says which kernel and which peers; `arguments` has what comes before `tl`, by PE. Queues have `slots` slots
    of `slot_bytes`. `told(command)` is called when a command is complete, and for a send when it is issued, and
    `waited(command)` when its kernel has waited for it; `slot_hazards` are told of slots that are used after a kernel
    gave them back. No kernel may issue more than `most` commands. `order` is 0 for PEs in turn, 1 for the last that can
    go on first; any other number is the seed of a random order.
    """

    def __init__(
        self,
        launch: Launch,
        arguments: Arguments,
        kernels: Kernels,
        design: Design,
        *,
        slots: int,
        slot_bytes: int,
        told: Callable[[KernelCommand], None],
        waited: Callable[[KernelCommand], None] = lambda command: None,
        slot_hazards: Hazards | None = None,
        order: int = 0,
        most: int = MOST_COMMANDS,
    ) -> None:
        self._told, self._waited_for = told, waited
        self._most = most
        self._kernels = kernels
        self._slots: list[TcmBlock] = []
        self._design = design
        self._random = None if order in (0, 1) else random.Random(order)
        self._last_first = order == 1
        self._ready: deque[_Pe] = deque()
        self._queues = UntimedQueues(
            slots, slot_bytes, self._complete, self._room_of, self._start_of, self._last_first, self._random,
            slot_hazards,
        )  # fmt: skip
        self._pes = {pe: self._started(launch, pe, given) for pe, given in arguments.items()}

    def _started(self, launch: Launch, pe: int, given: Sequence[object]) -> _Pe:
        state = self._kernels.state(self._design.pes[pe])
        holder: list[TLContext] = []

        def body() -> None:
            RANK.set(None if launch.peers is None else launch.peers.place_of(pe)[0])
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
                except (Exception, WallTimeExceeded) as found:
                    error = escaped(found)
                    if isinstance(error, MemoryError):
                        raise
                    raised = Raised(pe.index, error, describe_site(site_of_traceback(error.__traceback__) or pe.site))
                self._queues.pump()
            blocked = {pe.index: self._waits(pe) for pe in self._pes.values() if not pe.ended}
        finally:
            for pe in self._pes.values():
                pe.bridge.close()
        queues = self._queues
        return Outcome({} if raised else blocked, queues.left, raised, queues.chose, queues.used_any)

    def _next(self) -> _Pe:
        if self._random is not None:
            self._ready.rotate(-self._random.randrange(len(self._ready)))
        return self._ready.pop() if self._last_first else self._ready.popleft()

    def _advance(self, pe: _Pe) -> None:
        """Run a kernel until it has to wait or has ended; what a landed command failed with is raised in it."""
        resume: Callable[[], Any] = pe.bridge.resume
        while not pe.returned:
            if pe.waits:
                failed = next((c.error for c in pe.waits if c.error is not None), None)
                if isinstance(failed, KernelError):
                    resume = partial(pe.bridge.throw, failed)
                elif failed is not None:
                    raise failed
                self._waited(pe)
                pe.waits = ()
            request = resume()
            resume = pe.bridge.resume
            if isinstance(request, KernelCommand):
                self._issue(pe, request)
                if request.blocking:
                    pe.waits = (request,)
            elif type(request) is tuple:
                pe.waits = request
            else:
                pe.returned = True
                pe.waits = pe.tl.in_flight
            if self._queues.moving:
                self._queues.pump()
            for command in pe.waits:
                if not command.complete:
                    return
        for command in pe.waits:
            if command.error is not None:
                raise command.error
        for command in pe.waits:
            self._waited_for(command)
        pe.ended = True  # nobody learns any more of what it waited for last

    def _waited(self, pe: _Pe) -> None:
        """Note that a kernel has what it waited for, which orders."""
        if self._kernels.hazards is not None:
            self._kernels.hazards.waited(pe.waits)
        for command in pe.waits:
            self._waited_for(command)

    def _issue(self, pe: _Pe, command: KernelCommand) -> None:
        pe.commands += 1
        pe.site = command.site
        if pe.commands > self._most:
            raise LimitError(
                f"{command.call} at {describe_site(command.site)} must not be reached without end, and this is command "
                f"number {self._most + 1:,} of its kernel; correct the loop."
            )
        command.at_issue(pe.state, 0.0)
        if isinstance(command, SendCmd):
            self._told(command)
            self._queues.send(command)
        elif isinstance(command, RecvCmd):
            self._queues.receive(command)
        else:
            self._complete(command)

    def _complete(self, command: KernelCommand) -> None:
        """Land a command; its kernel, if it waited for nothing else, can go on."""
        command.answered()
        if command.error is None and not isinstance(command, SendCmd):
            self._told(command)
        pe = self._pes[command.op_id[0]]
        if pe.waits and command in pe.waits and all(each.complete for each in pe.waits):
            self._ready.append(pe)

    # The scratchpad, and what is left ---------------------------------------------------------------

    def _room_of(self, pe: int, nbytes: int) -> int:
        """Return an address of a PE's scratchpad for the slots of a queue."""
        block = self._pes[pe].state.tcm.allocate("slots", (nbytes,), "int8", nbytes, _HERE)
        self._slots.append(block)
        return block.address

    def _start_of(self, pe: int) -> int:
        return self._kernels.memory.tcm_range(self._design.pes[pe])[0]

    def _waits(self, pe: _Pe) -> tuple[Wait, ...]:
        """Say what a PE waits for."""
        found = (self._queues.waits(command) for command in pe.waits if not command.complete)
        return tuple(wait for wait in found if wait is not None)


def wait_cycle(blocked: Mapping[int, Sequence[Wait]]) -> list[tuple[int, Wait]]:
    """Return the shortest cycle of PEs that wait for each other, each with what it waits for; [] when there is none."""
    awaits = {pe: [peer for wait in waits for peer in wait.peers] for pe, waits in blocked.items()}
    cycle = shortest_cycle(awaits)
    return [
        (pe, next(wait for wait in blocked[pe] if other in wait.peers))
        for pe, other in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True)
    ]


_HERE: CallSite = (Untimed.run.__code__, 0)
