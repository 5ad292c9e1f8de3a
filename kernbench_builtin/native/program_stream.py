"""Look on at one program of a PE, and have what it asks for recorded in order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from kernbench_builtin.native.blocks import BlockLog
from kernbench_builtin.native.recording import BORN, END, ISSUE, ISSUE_BLOCKING, WAIT
from kernbench_core.kernel.bridge import Bridge, Finished
from kernbench_core.kernel.commands import AnyOf, KernelCommand
from kernbench_core.kernel.queue_commands import RecvCmd

if TYPE_CHECKING:
    from kernbench_core.callsite import CallSite
    from kernbench_core.kernel.pe_state import PeState


#: Types of values of which equal ones are the same.
_PLAIN: Final = (int, float, str, bool)


class Commands(Protocol):
    """What keeps the commands of all programs of a run."""

    def add(self, command: KernelCommand, holds: list[int]) -> int:
        """Record a command that is about to be issued, and that holds blocks; return its number."""

    def number_of(self, command: KernelCommand) -> int:
        """Return the number of a command that was recorded."""

    def refuse(self, cause: str, site: CallSite | None) -> None:
        """Take note of what cannot be timed otherwise."""


class Outside:
    """The variables around a kernel that it names, as they are when it is launched: another time may find others."""

    def __init__(self, kernel: Any) -> None:
        function = inspect.unwrap(kernel) if callable(kernel) else kernel
        self._function: Any = function if inspect.isfunction(function) else None
        self._before = self._now()

    def _now(self) -> dict[str, Any]:
        if self._function is None:
            return {}
        found = {name: self._function.__globals__.get(name) for name in self._function.__code__.co_names}
        for name, cell in zip(self._function.__code__.co_freevars, self._function.__closure__ or (), strict=True):
            with suppress(ValueError):  # it has no value yet
                found[name] = cell.cell_contents
        return found

    def look(self, recorder: Commands) -> None:
        """Refuse a recording where the host program has given one of them another value since."""
        now = self._now()
        for name, before in self._before.items():
            if now.get(name) is not before and not (type(before) in _PLAIN and now.get(name) == before):
                recorder.refuse(f"the variable {name!r} of a kernel, which was changed after the launch", None)


class ProgramStream:
    """Record what one program asks for, in order."""

    def __init__(
        self, recorder: Commands, state: PeState, fields: list[int], blocks: BlockLog, outside: Outside
    ) -> None:
        self._recorder, self._state, self._fields, self._blocks = recorder, state, fields, blocks
        self._outside = outside
        self._read = state.elements_read
        #: What nobody waited for yet.
        self._in_flight: dict[KernelCommand, None] = {}
        self._stores: list[KernelCommand] = []
        self._receipt: RecvCmd | None = None
        #: The store alone that the last request waited for.
        self._store: KernelCommand | None = None
        self._after = 0

    def goes_on(self) -> None:
        """Take note that the program is about to go on: a slot that it has asked for is its own now."""
        receipt, self._receipt = self._receipt, None
        if receipt is not None and receipt.slot is not None:
            self._blocks.lend(receipt.slot, self._recorder.number_of(receipt))

    def fails(self) -> None:
        """Take note that an error is raised in the program, which it may deal with."""
        self._recorder.refuse("an error that reached a program", None)

    def asks(self, request: Any) -> None:
        """Take note of a request."""
        if self._store is not None and BORN in self._fields[self._after :: 4]:
            self._recorder.refuse("a scratchpad that was full until a store was over", self._store.site)
        self._store = None
        if self._blocks.slots or isinstance(request, Finished):  # else a new block looks in time
            self._blocks.look()
        if isinstance(request, Finished):
            self._outside.look(self._recorder)
            self._add(END, list(self._in_flight))
        elif isinstance(request, KernelCommand):
            self._issue(request)
        elif type(request) is tuple and not any(isinstance(each, AnyOf) for each in request):
            if len(request) == 1 and request[0].queued:
                self._store = request[0]
            self._wait(request)
            self._after = len(self._fields)
        else:
            command = next(iter(self._in_flight), None)
            site = getattr(command, "site", None)
            self._recorder.refuse(f"a program that waits for {type(request).__name__}", site)

    def _issue(self, command: KernelCommand) -> None:
        if command.publishes:
            self._wait(self._stores)
        elif self._stores and command.dma_op != "write":
            self._wait([store for store in self._stores if command.comes_after(store)])
        if command.queued:
            self._stores.append(command)
        self._recorder.add(command, self._blocks.uses(command))
        self._add(ISSUE_BLOCKING if command.blocking else ISSUE, [command])
        if not command.blocking:
            self._in_flight[command] = None
        elif isinstance(command, RecvCmd) and command.local is None:
            self._receipt = command

    def _wait(self, commands: Iterable[KernelCommand]) -> None:
        waited = list(commands)
        if not waited:
            return
        for command in waited:
            self._in_flight.pop(command, None)
        self._stores = [store for store in self._stores if store not in waited]
        self._add(WAIT, waited)

    def _add(self, what: int, commands: list[KernelCommand]) -> None:
        read = 0
        if what != WAIT:
            read, self._read = self._state.elements_read - self._read, self._state.elements_read
        self._fields += [what, read, len(commands), *(self._recorder.number_of(command) for command in commands)]


class RecordingBridge(Bridge):
    """Run a program in another bridge, which others may look on by, and record what it asks for."""

    __slots__ = ("_inner", "_stream")

    def __init__(self, stream: ProgramStream, make: Callable[..., Bridge], *args: Any, **kwargs: Any) -> None:
        self._stream, self._inner = stream, make(*args, **kwargs)
        self._greenlet = self._inner._greenlet

    def suspend(self, request: Any) -> Any:
        """Stop the program, as the other bridge does."""
        return self._inner.suspend(request)

    def resume(self, value: Any = None) -> Any:
        """Continue the program, and record its next request."""
        self._stream.goes_on()
        request = self._inner.resume(value)
        self._stream.asks(request)
        return request

    def throw(self, error: BaseException) -> Any:
        """Continue the program with an error; one that goes on is not recorded further."""
        self._stream.fails()
        return self._inner.throw(error)

    def close(self) -> None:
        """Unwind the program, as the other bridge does."""
        self._inner.close()
