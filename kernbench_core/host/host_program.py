"""A host program: a plain function with a stack of its own beside the simulation, and what those of one run share.

The bench is one; it may have others run side by side, each with a part of the device (`Runtime.side_by_side`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from kernbench_core.callsite import CallSite, site_of_frame
from kernbench_core.environment import Event, Signal
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.host.residents import Residents
from kernbench_core.kernel.bridge import Bridge, in_kernel
from kernbench_core.messages import HostRequest, KernelLaunchMsg, Launch
from kernbench_core.process.notebook import Pictured
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.environment import Environment
    from kernbench_core.fabric import Routes
    from kernbench_core.graph import Graph, Node, PeSite
    from kernbench_core.host.device import Device
    from kernbench_core.host.device_tensor import DeviceTensor
    from kernbench_core.host.expectation import Expectation
    from kernbench_core.host.inputs import Inputs
    from kernbench_core.host.rows import Scalar
    from kernbench_core.memory.device_memory import TensorAllocation
    from kernbench_core.oplog.log import OpLog
    from kernbench_core.plugins import Plugins
    from kernbench_core.topology.design import Design

#: The host program that runs on the present stack. Each stack has a context of its own, so none sees another's.
CURRENT: ContextVar[HostProgram | None] = ContextVar("kernbench_host_program", default=None)

#: How long a host program that asks whether a launch is over waits for it, in ns. [chosen] A host asks by reading a
#: flag in its own memory, which takes about 100 ns where the device has just written it.
POLL_NS: Final = 100.0
#: Polls in a row by one program, with nothing but polls left to happen, after which it waits instead: 1 ms.
_MOST_IDLE_POLLS: Final = 10_000


@attrs.define(eq=False, repr=False)
class LaunchHandle(Pictured):
    """Refer to a launch that may still be running.

    `program` submitted it, at the line `site`; `label` is what reports call it.
    """

    request: KernelLaunchMsg
    tensors: tuple[DeviceTensor, ...]
    program: HostProgram
    site: CallSite | None = None
    label: str = ""

    @property
    def launch(self) -> Launch:
        """The launch, with each PE's start and end in ns."""
        self.program.note_timed(FIGURES)
        return self.request.launch

    @property
    def done(self) -> bool:
        """Whether the host has been told that it is over; where it is not, asking waits for it, but only POLL_NS.

        So `while not handle.done: pass` takes the time of a wait. After the run, and in a kernel, asking takes none.
        """
        caller = CURRENT.get()
        if caller is None or caller.shared is not self.program.shared or not caller.bridge.inside:
            self.program.note_timed("the state of a launch")
            return self.request.response is not None
        return caller.poll(self)

    @property
    def over(self) -> bool:
        """Whether every PE has ended its programs, and the host has been told; asking takes no time."""
        self.program.note_timed("the state of a launch")
        return self.has_ended()

    def has_ended(self) -> bool:
        """Say what `over` says, for a result: what a program does does not depend on it."""
        launch = self.request.launch
        return bool(self.request.response and launch.started_ns) and len(launch.ended_ns) == len(launch.programs)

    @property
    def figures(self) -> Any:
        """How the launch went, as who measures it says: its times, what was busiest, what it achieved.

        UsageError while it is not over, and where no plug-in measures launches.
        """
        self._require_over()
        found = self.program.figures_of(self)
        if found is None:
            raise UsageError(f"the figures of {self.name} need a plug-in that measures launches; there is none.")
        return found

    @property
    def time_ns(self) -> float:
        """How long the kernel ran, in ns: from its first program's start to its last one's end."""
        self._require_over()
        self.program.note_timed(FIGURES)
        launch = self.request.launch
        return max(launch.ended_ns.values()) - min(launch.started_ns.values())

    @property
    def busiest(self) -> tuple[Any, ...]:
        """The busiest resource of each kind while the kernel ran, highest first."""
        found: tuple[Any, ...] = self.figures.busiest
        return found

    def _require_over(self) -> None:
        if not self.has_ended():
            raise UsageError(f"the figures of {self.name} must be read after it has ended; call rt.wait first.")

    @property
    def name(self) -> str:
        """Its label, or where it has none, what kernel it launches."""
        kernel = self.request.launch.kernel
        return self.label or f"the launch of {getattr(kernel, '__name__', repr(kernel))!r}"

    def __repr__(self) -> str:
        shown = repr(self.program.figures_of(self) or format_time(self.time_ns)) if self.has_ended() else "not over"
        return f"<LaunchHandle of {self.name}, {shown}>"


@attrs.define(eq=False)
class Shared:
    """What all host programs of one run share."""

    programs: list[HostProgram] = attrs.field(factory=list)
    requests: list[HostRequest] = attrs.field(factory=list)
    launches: list[LaunchHandle] = attrs.field(factory=list)
    #: Launches that no program has waited for yet.
    running: list[LaunchHandle] = attrs.field(factory=list)
    expectations: list[Expectation] = attrs.field(factory=list)
    rows: list[dict[str, Scalar]] = attrs.field(factory=list)
    #: The reference of a check that is being computed, and the stamp of the memory when it was asked for.
    reference: tuple[str, int] | None = None
    #: What programs were told that a reader of the result is to know, a sentence each.
    notes: dict[str, None] = attrs.field(factory=dict)
    #: Whether one asked where arrays of kernels in Triton are to lie.
    places_arrays: bool = False
    #: Whether one launched a kernel in Triton.
    runs_triton: bool = False
    #: The tensors that were made and not freed, with the names that they were given.
    tensors: dict[TensorAllocation, str | None] = attrs.field(factory=dict)
    #: Programs that sleep between two polls.
    polling: int = 0
    #: What each package keeps for the run, under a name of its own.
    kept: dict[str, Any] = attrs.field(factory=dict)
    #: The plug-ins of the run, None where the installed ones are meant.
    plugins: Plugins | None = None
    #: What programs and kernels asked of time, or of what takes time: other timings may answer in another way.
    timed: dict[str, CallSite | None] = attrs.field(factory=dict)
    #: The parameters of units that programs read, by node and name.
    params_read: dict[tuple[str, str], Any] = attrs.field(factory=dict)
    #: The tensors that are on the device before the run.
    residents: Residents = attrs.field(factory=Residents)
    #: Where files are kept that programs read, None where nobody wants them.
    inputs: Inputs | None = None
    #: Called with True when a program goes on, and with False when it waits again; not for polls. None: nobody.
    on_host: Callable[[bool], None] | None = None

    def loaded_plugins(self) -> Plugins:
        """Return the plug-ins of the run; the installed ones are loaded when they are first asked for."""
        if self.plugins is None:
            from kernbench_core.plugins import load_plugins

            self.plugins = load_plugins()
        return self.plugins

    def tell_host(self, runs: bool) -> None:
        """Tell who wants to know that a program goes on, or waits."""
        if self.on_host is not None and not self.polling:
            self.on_host(runs)


FIGURES: Final = "the figures of a launch"
"""What `Shared.timed` calls them."""


class ParamsRead(Mapping[str, Any]):
    """The parameters of a node, of which is noted what is read."""

    def __init__(self, node: Node, read: dict[tuple[str, str], Any]) -> None:
        self._node, self._read = node, read

    def __getitem__(self, name: str) -> Any:
        found = self._read[self._node.id, name] = self._node.params[name]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.params)

    def __len__(self) -> int:
        return len(self._node.params)


class Session(Protocol):
    """What host programs ask of the run that they are part of."""

    env: Environment
    hardware: Hardware
    device: Device
    op_log: OpLog
    seed: int

    def figures_of(self, handle: LaunchHandle) -> Any:
        """Return the figures of a launch, None for one that is not over, or where nobody measures."""

    def submit(self, request: HostRequest, program: HostProgram | None = None) -> Signal:
        """Send a request of a program to the device; return what fires with its answer."""

    def start(
        self,
        program: HostProgram,
        fn: Callable[..., Any],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        ended: Callable[[], None],
    ) -> None:
        """Run `fn(*args, **kwargs)` as a host program; `ended()` is called when it and its launches are over."""


class HostProgram:
    """One host program: its stack, its PEs, and what it waits for. `name` is what messages call it."""

    bridge: Bridge

    def __init__(
        self, session: Session, shared: Shared, pes: tuple[PeSite, ...], name: str, seed: int | Sequence[int]
    ) -> None:
        import numpy as np

        self._session = session
        self.shared = shared
        #: Place among the host programs of the run, in the order in which they were started.
        self.number = len(shared.programs)
        self.name = name
        self.pes = pes
        self.rng = np.random.default_rng(seed)
        self.requests: list[HostRequest] = []
        #: The launches that it waited for, each with how many requests it had submitted before.
        self.joined: list[tuple[int, HostRequest]] = []
        self.value: Any = None
        #: By PE how many of its ops are over, as far as the program knows: those of launches that it has waited for.
        self.known: Mapping[int, int] = {}
        #: What the program is suspended for, None while it is not; a text is what reports say.
        self.waits_for: HostRequest | LaunchHandle | str | None = None
        self.waits_since_ns = 0.0
        #: Why what it waits for never comes, where that is known.
        self.waits_because = ""
        self._idle_polls = 0
        self._idle_since_ns = 0.0
        shared.programs.append(self)

    def note_timed(self, call: str) -> None:
        """Take note that a program, or a kernel, asks for what depends on time, or on the machine's parameters."""
        if call not in self.shared.timed and (self.bridge.inside or in_kernel()):
            self.shared.timed[call] = site_of_frame(sys._getframe())  # none where a plug-in of ours asks

    @property
    def now(self) -> float:
        """Simulated time in ns."""
        self.note_timed("rt.now")
        return self._session.env.now

    @property
    def design(self) -> Design:
        """The machine that the run is on."""
        return self._session.device.design

    @property
    def pipelines_loops(self) -> bool:
        """Whether loops of kernels written in Triton load ahead (`pipeline_loops` of the run), for one that is here."""
        self.shared.runs_triton = True
        return self._session.device.kernels.pipelines

    def use_placement(self) -> str:
        """Return where arrays of kernels written in Triton lie (`placement` of the run), to place some."""
        self.shared.places_arrays = True
        return self._session.device.array_placement

    @property
    def graph(self) -> Graph:
        """The nodes and wires of that machine."""
        self.note_timed("rt.graph")
        return self._session.hardware.graph

    @property
    def components(self) -> Mapping[str, ComponentBase]:
        """The models that stand at its nodes, by node id."""
        self.note_timed("rt.components")
        return self._session.hardware.components

    @property
    def routes(self) -> Routes:
        """Who finds the ways through that machine."""
        self.note_timed("rt.routes")
        return self._session.hardware.routes

    def close_channel(self, name: str) -> None:
        """Give up the queues of channels of this name, each when nothing uses it any more; no simulated time."""
        for part in self._session.hardware.shared:
            part.close(name)

    @property
    def plugins(self) -> Plugins:
        """The plug-ins of the run."""
        return self.shared.loaded_plugins()

    def figures_of(self, handle: LaunchHandle, *, for_program: bool = True) -> Any:
        """Return the figures of a launch, None for one that is not over, or where nobody measures.

        Not `for_program` they are for a result: what the program does does not depend on them.
        """
        if for_program:
            self.note_timed(FIGURES)
        return self._session.figures_of(handle)

    @property
    def site(self) -> CallSite | None:
        """The line at which the program is suspended; None when it is not."""
        return site_of_frame(self.bridge.frame)

    def require_host(self, call: str) -> None:
        """Raise a sentence when `call` is made by anything but this program, while it runs."""
        if self.bridge.inside:
            return
        if in_kernel():
            raise KernelError(f"{call} must be called by the host program, not in a kernel; call it around the launch.")
        other = CURRENT.get()
        if other is not None and other.shared is self.shared:
            raise UsageError(
                f"{call} must be called through the rt of {other.name}, not of {self.name}; use the rt that the "
                "program was given."
            )
        raise UsageError(f"{call} must be called by the host program while it runs; call it in the bench.")

    def request(self, request: HostRequest) -> None:
        """Submit a request and wait, in simulated time, for its answer."""
        self.bridge.suspend(request)

    def pause(self, event: object, sentence: str) -> object:
        """Wait, in simulated time, for an event or a signal; `sentence` says in a report what for. Gives its value."""
        self.note_timed(sentence)
        self.waits_for, self.waits_since_ns = sentence, self._session.env.now
        value = self.bridge.suspend(event)
        self.waits_for = None
        return value

    def stall(self, what: str, why: str) -> None:
        """Wait for ever for `what`, so that the run ends with a report, which says `why`, once nothing else happens."""
        self.waits_because = why
        self.pause(Signal(), what)

    def join(self, handle: LaunchHandle) -> None:
        """Wait, in simulated time, for a launch, whichever program submitted it."""
        self.joined.append((len(self.requests), handle.request))
        if not handle.request.done.fired:
            self._session.device.hazards.waiting(handle.request.launch, self.number)
            self.waits_for, self.waits_since_ns = handle, self._session.env.now
            self.bridge.suspend(handle.request.done)
            self.waits_for = None
        if handle in self.shared.running:
            self.shared.running.remove(handle)
        self._session.device.hazards.joined(handle.request.launch, self.number)
        self.learn(handle.request.launch)

    def learn(self, launch: Launch) -> None:
        """Note that the program has waited for a launch: what that did and knew, launches to come may read."""
        self.known = latest(self.known, launch.known, launch.issued)

    def poll(self, handle: LaunchHandle) -> bool:
        """Return whether a launch is over; where it is not, wait for it first, in simulated time, but only POLL_NS.

        Where nothing but polls has been left to happen for very long, wait for ever: as with `join`, the run ends with
        a report if the launch never ends.
        """
        self.note_timed("the state of a launch")
        done = handle.request.done
        if not done.fired:
            env = self._session.env
            if not self._idle_polls:
                self._idle_since_ns = env.now
            self._idle_polls = 0 if env.scheduled > self.shared.polling else self._idle_polls + 1
            patient = self._idle_polls > _MOST_IDLE_POLLS
            self.waits_for, self.waits_since_ns = handle, self._idle_since_ns if patient else env.now
            if patient:
                self.bridge.suspend(done)
            else:
                self.shared.polling += 1
                self.bridge.suspend(_first(done, env.timeout(POLL_NS)))
                self.shared.polling -= 1
            self.waits_for = None
        if not done.fired:
            return False
        self.join(handle)
        return True

    def settle(self, tensor: DeviceTensor) -> None:
        """Wait for every running launch that was given `tensor`, in the program that calls; elsewhere for none."""
        caller = CURRENT.get()
        if caller is not None and caller.shared is self.shared and caller.bridge.inside:
            for handle in [handle for handle in self.shared.running if tensor in handle.tensors]:
                caller.join(handle)


def latest(*known: Mapping[int, int]) -> dict[int, int]:
    """Return by PE the greatest number that any of these has."""
    found = dict(known[0])
    for other in known[1:]:
        for pe, number in other.items():
            if found.get(pe, 0) < number:
                found[pe] = number
    return found


def current_program() -> HostProgram | None:
    """Return the host program that calls, or None outside one, also in a kernel."""
    return CURRENT.get()


def _first(signal: Signal, timer: Event) -> Signal:
    """Return a signal that is fired with the first of these, and leaves nothing behind at the other."""
    either = Signal()
    waiting = signal.callbacks
    assert waiting is not None and timer.callbacks is not None

    def over(_: object) -> None:
        if not either.fired:
            if not signal.fired:
                waiting.remove(over)
            either.fire()

    waiting.append(over)
    timer.callbacks.append(over)
    return either
