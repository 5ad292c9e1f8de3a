"""The program that calls of the kernel language are of: it issues commands, waits for them and reads their data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kernbench_core.callsite import CallSite, call_site, describe_site
from kernbench_core.errors import ExecutionError, KernelError, NoDataError, PendingDataError
from kernbench_core.kernel.commands import AnyOf, KernelCommand, PlainCommand, Results, refuse_other_commands
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.messages import Command
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import is_float
from kernbench_core.values.value import ArrayValue, Value

if TYPE_CHECKING:
    from kernbench_core.compute.on_demand import OnDemand
    from kernbench_core.kernel.bridge import Bridge
    from kernbench_core.kernel.pe_state import PeState
    from kernbench_core.messages import Launch

_PRUNE_AT: Final = 64
"""How many commands may be in flight before complete ones are looked for."""


class Issuer:
    """Issue commands for one program and keep those that nobody has waited for: what a handle of the kernel asks.

    The language stands on it, a family of calls a class.
    """

    __slots__ = (
        "_bridge", "_first_told", "_immediates", "_in_flight", "_launch", "_prune_at", "_queued", "_state",
    )  # fmt: skip

    def __init__(self, state: PeState, bridge: Bridge, launch: Launch) -> None:
        self._state = state
        self._bridge = bridge
        self._launch = launch
        #: What nobody waited for yet; from where to where it uses the device's memory, if it does without a queue.
        self._in_flight: dict[KernelCommand, tuple[int, int] | None] = {}
        self._prune_at = _PRUNE_AT
        #: Stores that may wait in a queue for what they store.
        self._queued: list[KernelCommand] = []
        #: Who is told of each command before it is issued, if anybody is.
        self._first_told: Callable[[KernelCommand], None] | None = None
        self._immediates: dict[tuple[type, str, str], ArrayValue] = {}

    # Issue and wait ---------------------------------------------------------------------------------

    def op_id(self) -> tuple[int, int]:
        """Give the identity of the next command: (PE index, issue number)."""
        state = self._state
        number = state.issued
        state.issued = number + 1
        return state.pe, number

    def issue(self, command: Command, wait: bool = True) -> None:
        """Send a command to the unit that serves it; with `wait`, come back when it is complete.

        Plug-ins call this with commands of their own, which are given their number and the kernel's line here. What
        went wrong when the command landed is raised here, or where an un-waited command is waited on.
        """
        if not isinstance(command, KernelCommand):
            site = call_site()
            refuse_other_commands(command, site)
            command = PlainCommand(command, self.op_id(), site)
        self._issue(command, wait)

    def _issue(self, command: KernelCommand, wait: bool) -> None:
        """Do what `issue` does with a command of the language's own."""
        if self._first_told is not None:
            self._first_told(command)
        command.blocking = wait
        if self._in_flight and command.memory_uses:
            self._wait_for_others(command)
        if self._queued or command.queued:
            self._keep_order(command)
        if wait:
            self._bridge.suspend(command)
            return
        if len(self._in_flight) >= self._prune_at:
            self._prune()
        self._in_flight[command] = command.span() if command.memory_uses and not command.queued else None
        self._bridge.suspend(command)

    def _wait_for_others(self, command: KernelCommand) -> None:
        """Come back when loads and composites are complete that nobody waited for and a command must come after.

        Those that are complete already are waited for too: what comes after what is no matter of time.
        """
        low, high = command.span()
        near = [each for each, at in self._in_flight.items() if at is not None and at[0] < high and low < at[1]]
        earlier = [each for each in near if command.comes_after(each)]
        if earlier:
            self.wait_for(earlier)

    def _keep_order(self, command: KernelCommand) -> None:
        """Come back when the stores in queues are complete that a command must come after.

        Those are all where others may learn by it of what was stored, and those whose bytes it uses where it is no
        store, as stores leave in order.
        """
        self._queued = [store for store in self._queued if not store.complete]
        if command.queued:
            self._queued.append(command)
        elif command.publishes:
            self.wait_for(self._queued)
        elif self._queued and command.dma_op != "write":
            self.wait_for([store for store in self._queued if command.comes_after(store)])

    def _reserve(self, op: str, shape: tuple[int, ...], dtype: str, nbytes: int, site: CallSite) -> TcmBlock:
        """Reserve scratchpad space for a tensor; where there is none, wait for the stores in queues, which hold some.

        TcmOverflowError where that does not help.
        """
        tcm = self._state.tcm
        if self._queued:
            waiting = [store for store in self._queued if not store.complete]
            block = tcm.find(op, shape, dtype, nbytes, site)
            while block is None and waiting:
                self.wait_for((waiting.pop(0),))
                block = tcm.find(op, shape, dtype, nbytes, site)
            if block is not None:
                return block
        return tcm.allocate(op, shape, dtype, nbytes, site)

    def wait_for(self, commands: Sequence[KernelCommand]) -> None:
        """Come back, in simulated time, when all of `commands` are complete."""
        for command in commands:
            self._in_flight.pop(command, None)
        self._bridge.suspend(tuple(commands))

    def wait_for_any(self, commands: Sequence[KernelCommand]) -> None:
        """Come back, in simulated time, when one of `commands` is complete; at once where one is.

        A kernel then waits for those that are `complete`, which takes no more time, and deals with them.
        """
        timed, asked = self._state.kernels.timed, "which of several commands is complete"
        if asked not in timed:
            timed[asked] = call_site()
        if not any(command.complete for command in commands):
            self._bridge.suspend((AnyOf(commands),))

    def _prune(self) -> None:
        """Forget commands that nobody waited for and that are complete, but not what a wait would raise or order.

        None where the run is recorded: at other times others are complete.
        """
        if self._state.kernels.recorded is not None:
            return
        self._in_flight = {
            c: at
            for c, at in self._in_flight.items()
            if not c.complete or c.error is not None or c.after is not None
        }
        self._prune_at = max(_PRUNE_AT, 2 * len(self._in_flight))

    @property
    def in_flight(self) -> tuple[KernelCommand, ...]:
        """The commands that were issued without waiting and have not been waited for since, nor dropped as complete."""
        return tuple(self._in_flight)

    # Data -------------------------------------------------------------------------------------------

    def known(self, value: Value) -> bool:
        """Tell whether the data of a value that has landed may be read: where it is determined, or all may be."""
        return self._state.kernels.materializes or self.determined(value)

    def determined(self, value: Value) -> bool:
        """Tell whether the data of a value that has landed is determined: loaded, or made by an op that is over.

        Over are the ops of launches that the host had waited for when it submitted this one, and those of earlier
        launches on this PE. Whether somebody has computed a result yet does not matter.
        """
        return all(result.on_demand or self._is_over(*result.op_id) for result in value.results())

    def made_before(self, value: Value) -> bool:
        """Tell whether all of a value was made by launches before this one, known to be over or not."""
        states, launch = self._state.kernels.states, self._state.launch
        made = [(states.get(result.op_id[0]), result.op_id[1]) for result in value.results()]
        return all(state is not None and (state.launch is not launch or issue < state.began) for state, issue in made)

    def _determines(self, value: Value) -> bool:
        """Tell whether integers that are computed from a value are known at once."""
        return not is_float(value.dtype) and self.determined(value)

    def _is_over(self, pe: int, issue: int) -> bool:
        state = self._state
        if pe == state.pe:
            return issue < state.began
        return state.launch is not None and issue < state.launch.known.get(pe, 0)

    def data_of(self, value: Value, why: str) -> Array:
        """Give the data of a known value, computing what it needs; `why` names the call that reads."""
        on_demand = self._state.on_demand
        if on_demand is None or not value.results():
            return value.array()
        self._await_results(value, on_demand)
        try:
            return on_demand.array(value, why, branch=not self.determined(value))
        except ExecutionError as error:
            here = f"{why} at {describe_site(call_site())}"
            raise KernelError(f"{here} must have data that can be computed: {error}") from error

    def shown(self, value: Value) -> Array | str:
        """Give the data of a value to a print or a debugger, which neither waits nor leaves a trace in the run.

        Where there is none, say why.
        """
        on_demand = self._state.on_demand
        try:
            return value.array() if on_demand is None else on_demand.shown(value)
        except NoDataError:
            return "no data in this run"
        except (ExecutionError, PendingDataError):
            return "not known yet"

    def note_read(self, elements: int) -> None:
        """Take note that the kernel's Python read elements of a tile; what a debugger shows is free."""
        if elements and not _in_debugger():
            self._state.note_read(elements, call_site())

    def _await_results(self, value: Value, on_demand: OnDemand) -> None:
        """Come back, in simulated time, when all the ops are over that make a value."""
        flying = self._state.kernels.flying
        while flying and value.pending:
            needed = Results(flying[op] for op in on_demand.makers(value) if op in flying)
            if not needed:
                return
            self._bridge.suspend(needed)


def _in_debugger() -> bool:
    """Tell whether it is a debugger that asks, at a breakpoint of the kernel."""
    if sys.gettrace() is None:
        return False
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "bdb" and frame.f_code.co_name.startswith("dispatch_"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
