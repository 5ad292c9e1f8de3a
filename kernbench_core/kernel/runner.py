"""Run a launch's programs on one PE: the bridge between a kernel's calls and simulated time.

The runner dispatches commands to the PE's units and resumes the kernel when they are complete. It never
writes the op log; components do, through their hooks.
"""

from __future__ import annotations

import inspect
import math
import traceback
from bdb import BdbQuit
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Protocol

from kernbench_core.callsite import describe_site, site_of_frame, site_of_traceback
from kernbench_core.errors import ComponentError, KernbenchError, KernelError, blamed
from kernbench_core.kernel.arguments import PerPe, by_keyword, replace_nested
from kernbench_core.kernel.bridge import Bridge, escaped
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.kernel.pe_state import Kernels, PeState
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.serving import Serving
from kernbench_core.kernel.tl.language import TLContext
from kernbench_core.memory.device_memory import TensorAllocation
from kernbench_core.messages import Command, Launch
from kernbench_core.package import is_ours
from kernbench_core.reporting import Waiting
from kernbench_core.units import format_time, grid_ceil

if TYPE_CHECKING:
    from kernbench_core.environment import Environment
    from kernbench_core.graph import Node

_Steps = Generator[Any, Any, None]


class KernelHost(Protocol):
    """What the runner needs of the component that calls it, a pe_cpu.

    It may have an `element_read_ns`, too: what reading an element into Python takes, else no time.
    """

    kernels: Kernels
    node: Node
    dispatch_overhead_ns: float

    def send_command(self, cmd: Command) -> None:
        """Put `cmd` on the wire to the unit of this PE that serves it; called once per command, at its issue."""


class KernelRunner:
    """Run launches on the PE of `component`; what it keeps over a run (scratchpad, issue numbers) outlives it."""

    def __init__(self, component: KernelHost) -> None:
        self._component = component
        self._bridge: Bridge | None = None
        self._serving: Serving | None = None
        self._kernel = ""
        #: How many programs of the launch are over.
        self.turn = 0

    def run(self, env: Environment, launch: Launch) -> _Steps:
        """Run this PE's programs one after another; a SimPy generator, for `yield from` in the component's `run`.

        Notes the start and end in ns in `launch`. A kernel that raises ends the run with a KernelError.
        """
        state = self._state()
        self._kernel = getattr(launch.kernel, "__name__", repr(launch.kernel))
        if inspect.isgeneratorfunction(launch.kernel) or inspect.iscoroutinefunction(launch.kernel):
            place = describe_site((launch.kernel.__code__, 0))
            raise KernelError(
                f"{place}: kernel {self._kernel!r} must be a plain function, not one "
                "with yield or async, which would never run; call tl.load and the rest directly."
            )
        if launch.signature is None:
            launch.signature = by_keyword(inspect.signature(launch.kernel))
        launch.started_ns[state.pe] = env.now
        state.launch, state.began = launch, state.issued
        state.runner = self
        state.step, state.complete = None, {}
        hazards, meter = state.hazards, state.kernels.meter
        if meter is not None:
            meter.begun(launch, state.pe)
        if hazards is not None:
            hazards.begun(launch, state.pe)
        for turn, program in enumerate(launch.programs.get(state.pe, ())):
            self.turn = turn
            if hazards is not None:
                hazards.turned(state.pe, turn)
            yield from self._run_program(env, launch, state, program)
        if hazards is not None:
            hazards.ended(launch, state.pe)
        state.runner = None
        launch.ended_ns[state.pe] = env.now
        launch.steps[state.pe], state.step, state.complete = state.step, None, {}
        launch.issued[state.pe] = state.issued
        if meter is not None:
            meter.ended(launch, state.pe)

    def close(self) -> None:
        """End a program that will not be resumed: its `finally` blocks run, its references go."""
        if self._bridge is not None:
            self._bridge.close()

    def where(self) -> str | None:
        """Give `file.py:LINE` of the kernel line that is suspended, or None when no kernel is."""
        site = None if self._bridge is None else site_of_frame(self._bridge.frame)
        return None if site is None else describe_site(site)

    def part_done(self) -> float | None:
        """Return which part, from 0 to 1, of the program that runs is over; None where nobody knows.

        A program that has yet to begin has none behind it, one whose kernel has returned the tiles of its commands.
        """
        if self._bridge is None:
            return 0.0
        tiled: list[Any] = [command for command in self._waiting_for() if hasattr(command, "tiles")]
        if not self._bridge.finished or not tiled or not all(command.tiles for command in tiled):
            return None
        part: float = sum(command.tiles_done for command in tiled) / sum(command.tiles for command in tiled)
        return part

    def waits_in_words(self) -> Waiting | None:
        """Say what the kernel waits for, for the deadlock report; None when it does not wait."""
        open_commands = [command for command in self._waiting_for() if not command.done.fired]
        if not open_commands:
            return None
        units = ", ".join(sorted({command.serves for command in open_commands}))
        calls = ", ".join(dict.fromkeys(getattr(c, "call", type(c).__name__) for c in open_commands))
        line = self.where()
        if line is None:  # the kernel has returned: name the lines of what it left in flight
            sites = (getattr(command, "site", None) for command in open_commands)
            lines = dict.fromkeys(describe_site(site) for site in sites if site is not None)
            line = "its end" if not lines else f"its end, after {' and '.join([*lines][:2])},"
        told = f"kernel {self._kernel!r} at {line} waits for {calls} from its {units}"
        messages = (one.message if isinstance(one, KernelCommand) else one for one in open_commands)
        return Waiting(told, 0.0 if self._serving is None else self._serving.since, tuple(messages))

    def _waiting_for(self) -> tuple[KernelCommand, ...]:
        return () if self._serving is None else self._serving.waiting_for

    def _state(self) -> PeState:
        kernels, cpu = self._component.kernels, self._component.node.id
        site = kernels.memory.site_of(cpu)
        if site is None:
            raise ComponentError(f"{cpu}: a kernel must run on the pe_cpu of a PE, and the design has none of this id.")
        return kernels.state(site)

    def _run_program(
        self,
        env: Environment,
        launch: Launch,
        state: PeState,
        program: tuple[int, int, int],
    ) -> _Steps:
        arguments: dict[str, Any] = {
            name: _as_argument(value, state.pe) for name, value in launch.arguments.items()
        }

        def body() -> None:
            bound = inspect.BoundArguments(launch.signature, arguments)
            launch.kernel(*bound.args, **bound.kwargs)

        make = Bridge if launch.watch is None else launch.watch(state.pe, program)
        bridge: Bridge = make(body, kernel=True)
        self._bridge = bridge
        tl = arguments["tl"] = getattr(launch.kernel, "language", TLContext)(state, bridge, program, launch)
        bridge.speak(tl)
        try:
            cpu = self._component
            state.element_read, state.reads_free = _reading_of(cpu)
            self._serving = serving = Serving(
                cpu.node.id, env, state, bridge, cpu.send_command, cpu.dispatch_overhead_ns
            )
            yield serving.start()
            if serving.raised is not None:
                raise serving.raised
            if state.unpaid:
                yield env.timeout(state.pay())
            yield from self._await(serving, state, tl.in_flight)
        except Exception as raised:
            error = escaped(raised)
            if isinstance(error, KernbenchError) and not isinstance(error, KernelError):
                raise
            raise self._spell(error, state, env.now, program) from error
        finally:
            arguments.clear()
            self._bridge = self._serving = None
            bridge.close()

    def _await(self, serving: Serving, state: PeState, left: tuple[KernelCommand, ...]) -> _Steps:
        """Wait for what the program left in flight, and raise what went wrong with it."""
        serving.note_wait(left)
        for command in left:
            if not command.done.fired:
                yield command.done
                state.step = command.step
        if state.hazards is not None:
            state.hazards.waited(left)
            state.hazards.waited_for_all(state.pe)
        for command in left:
            if command.error is not None:
                raise command.error

    def _spell(self, error: BaseException, state: PeState, now: float, program: tuple[int, int, int]) -> KernbenchError:
        """Say what the kernel raised, where, on which PE and when, with the kernel's own part of the traceback."""
        line = describe_site(site_of_traceback(error.__traceback__))
        place = f"kernel {self._kernel!r}, program {program}, on {state.site.prefix} at {format_time(now)}"
        if isinstance(error, BdbQuit):
            return KernelError(f"the debugger was left, which ends the run; 'c' goes on.\n  in {place}")
        if isinstance(error, KernelError):
            at = "" if line in str(error) or ".py:" in str(error) else f"at {line}, "
            return type(error)(f"{error}\n  {at}in {place}")
        told = f"{type(error).__qualname__}: {error}"  # the error's own words: newer Pythons add names to some
        if not isinstance(error, AttributeError | NameError | ImportError):
            told = "".join(traceback.format_exception_only(error)).strip()
        if "__array_ufunc__=None" in told:  # numpy's words for np.exp(tensor)
            told += "; numpy does not compute tensors of a kernel: write tl's function, such as tl.exp for np.exp"
        frames = traceback.walk_tb(error.__traceback__)
        own = [here for here in frames if not is_ours(here[0].f_globals.get("__name__", ""))]
        stack = traceback.StackSummary.extract(iter(own))
        lines = "".join(stack.format()).rstrip()
        made = blamed(error, KernelError)
        return made(f"{line}: {told}\n  in {place}; the kernel's own traceback, innermost call last:\n{lines}")


def _as_argument(value: object, pe: int) -> object:
    """Give what one program gets: a pointer for a tensor, own copies of what holds pointers, anything else as it is."""
    if isinstance(value, TensorAllocation):
        return Pointer(value, 0, value.dtype)
    value = replace_nested(value, PerPe, lambda found: found.of(pe))
    return replace_nested(value, Pointer, lambda found: Pointer(found.tensor, found.offset, found.element))


def _reading_of(cpu: Any) -> tuple[float, str]:
    """Return how long a PE's CPU takes to read an element, in ns, and where that is no time, why."""
    found = getattr(cpu, "element_read_ns", None)
    if found is None:
        return 0.0, f"{cpu.node.impl} has no element_read"
    if not 0.0 <= found < math.inf:
        raise ValueError(f"element_read_ns must be a finite time in ns, at least 0, not {found!r}")
    return grid_ceil(found), "" if found else f"element_read of {cpu.node.impl} is 0"
