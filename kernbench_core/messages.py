"""What travels on wires: the message base, fabric transactions, unit commands, host requests.

A message is in one place at a time: it carries its position, clock (`head`, `tail`) and ledger, and is its own event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from kernbench_core.environment import Environment, Signal
from kernbench_core.errors import ComponentError
from kernbench_core.events.queue import Scheduled
from kernbench_core.peers import Peers, by_position

if TYPE_CHECKING:
    from kernbench_core.callsite import CallSite
    from kernbench_core.oplog.description import OpDescription
    from kernbench_core.values.region import Region


class Emitter(Protocol):
    """What a message asks of the component at the end of its path; `out_ports` are its wires by neighbour."""

    id: str
    env: Environment
    out_ports: dict[str, Any]
    arrive: Callable[[Any], None]

    def emit(self, msg: Any, head: float, tail: float) -> None:
        """Send it on, leaving at (`head`, `tail`) ns."""

    def note_wait(self, waited: float, until: float | None = None) -> None:
        """Count a message that queued here for `waited` ns, `until` a time (None: until now)."""


class MsgBase(Scheduled):
    """Carry one message along `path`, with the times at which its first and last byte are there.

    `nbytes` is the payload in bytes; the wires add headers. `head` and `tail` are ns. The five
    accumulators split `tail - born` exactly: propagation (wire latency), serialisation (bytes over
    bandwidth), overhead (node latency), queueing (waits for a wire, channel or server) and service
    (time in a `run`).

    >>> from kernbench_core.testing import Rig
    >>> msg = kb.MsgBase(nbytes=200)
    >>> rig = Rig(kb.ComponentBase, bandwidth=100.0, latency=1.0).feed(5, msg=msg).run()
    >>> msg.born, msg.propagation, msg.serialisation, msg.elapsed  # two wires, and nothing else that takes time
    (5.0, 2.0, 4.0, 6.0)
    """

    __slots__ = (
        "born", "cause", "head", "hop", "mark", "nbytes", "overhead", "path", "propagation", "queueing",
        "reply", "serialisation", "service", "tail",
    )  # fmt: skip

    #: Whether the op logger records it; a message that sets it describes itself.
    data_op: ClassVar[bool] = False
    #: Whether `describe` is called when service starts (its state moves on) instead of when it ends.
    captured_at_start: ClassVar[bool] = False

    #: What explanations know of the message's present way, and its number in a timeline; unset where nobody looks on.
    cause: object
    mark: int

    _ok: ClassVar[bool] = True
    _value: ClassVar[None] = None

    def __init__(self, nbytes: int = 0, path: tuple[str, ...] = ()) -> None:
        self.nbytes = nbytes
        self.path = path
        self.hop = 0
        self.reply = False
        self.head = self.tail = self.born = 0.0
        self.propagation = self.serialisation = self.overhead = self.queueing = self.service = 0.0
        self.callbacks: tuple[Callable[[Any], None], ...] | None = None

    @property
    def elapsed(self) -> float:
        """Time from birth to the last byte's arrival, in ns; the sum of the five accumulators."""
        return self.tail - self.born

    @property
    def origin(self) -> MsgBase | None:
        """The message that this one is a part of, as a chunk or a tile of a command; None for one of its own right.

        Explanations ask for it, to tell the op and the kernel line that it works for.
        """
        return None

    @property
    def sort(self) -> str:
        """What explanations call its way, a key of `critical_path.SORTS`; "" for what its class and origin tell."""
        return ""

    def describe(self) -> OpDescription | None:
        """Say what op this is; called by the op logger, once, for messages with `data_op`."""
        return None

    def turn_around(self, nbytes: int = 0) -> None:
        """Become the reply: the reverse path, from its first node, with `nbytes` of payload."""
        self.path = self.path[::-1]
        self.hop = 0
        self.reply = True
        self.nbytes = nbytes

    def at_end(self, component: Emitter, head: float, tail: float) -> None:
        """Act at the end of the path; called by the last component after its service.

        The base answers: it turns around, without payload, and leaves at (`head`, `tail`) ns.
        """
        self.turn_around()
        component.emit(self, head, tail)

    def answered(self) -> None:
        """Take note that the reply is back; called, inside its delivery, where the path began."""

    def __repr__(self) -> str:
        where = self.path[self.hop] if self.path else "nowhere"
        return f"<{type(self).__name__} {self.nbytes} B at {where}, head {self.head:.3f} ns, tail {self.tail:.3f} ns>"


ISSUED = "tl.issue"  # the call by which kernels send commands of plug-ins


class Command(MsgBase):
    """Ask a unit of the PE to do something: `tl.issue` has it sent, the unit of kind `serves` answers it.

    It is given `op_id` (PE index, issue number), `call` and `site` (the kernel's line) where it is issued.

    >>> class LoadTable(kb.Command):
    ...     serves = "pe_sfu"
    """

    __slots__ = ("call", "done", "op_id", "site")

    serves: ClassVar[str] = ""
    data_op: ClassVar[bool] = True

    @property
    def awaits(self) -> tuple[int, ...]:
        """The machine's indices of other PEs, one of which must act before it can be complete; none by default."""
        return ()

    def __init__(self, op_id: tuple[int, int] = (-1, -1), nbytes: int = 0) -> None:
        super().__init__(nbytes)
        self.op_id, self.call, self.done = op_id, "", Signal()
        self.site: CallSite | None = None

    def answered(self) -> None:
        """Resume whoever waits for the command; raise ComponentError when it was answered before."""
        if self.done.fired:
            _answered_before(self)
        self.done.fire()


_ADDRESS_BYTES = 8  # payload of a request for each range after its first
class Transaction(MsgBase):
    """Move bytes between the node that made it and a memory, there and back.

    `op` is "read" or "write"; `regions` are physical byte ranges, all of one memory, `total` bytes together. A read
    goes out empty and comes back with `total` bytes, a write the other way round. The request's header names its first
    range; each further one takes 8 bytes of payload. `on_done(transaction)` is called inside the delivery of the reply;
    `waiter` is the sender's to use. `moved_bytes` is the payload there and back. `shares` says how the memory spread
    the bytes over its channels, as (channel, bytes), if it has any.
    """

    __slots__ = ("moved_bytes", "on_done", "op", "regions", "shares", "total", "waiter")

    waiter: Signal

    def __init__(
        self, op: str, regions: tuple[Region, ...], total: int, path: tuple[str, ...], on_done: Callable[[Any], None]
    ) -> None:
        # inlined from MsgBase: every chunk makes one
        addresses = _ADDRESS_BYTES * (len(regions) - 1) if regions else 0
        self.nbytes = total + addresses if op == "write" else addresses
        self.path = path
        self.hop = 0
        self.reply = False
        self.head = self.tail = self.born = 0.0
        self.propagation = self.serialisation = self.overhead = self.queueing = self.service = 0.0
        self.callbacks = None
        self.moved_bytes = total + addresses
        self.op = op
        self.regions = regions
        self.total = total
        self.shares: tuple[tuple[int, int], ...] = ()
        self.on_done = on_done

    def turn_around(self, nbytes: int = 0) -> None:
        """Become the reply: a read's carries the data, a write's is an acknowledgement."""
        # inlined from MsgBase: every chunk becomes one
        self.path, self.hop, self.reply = self.path[::-1], 0, True
        self.nbytes = self.total if self.op == "read" else 0

    def answered(self) -> None:
        """Tell the sender that the round trip is over; raise ComponentError when it was told before."""
        on_done, self.on_done = self.on_done, _answered_before
        on_done(self)


def _answered_before(msg: MsgBase) -> None:
    """Refuse a second answer."""
    raise ComponentError(
        f"{msg.path[0]} must answer each {type(msg).__name__} once, not twice; call emit once for a message."
    )


class HostRequest(MsgBase):
    """Ask the device for something from the host: `op`. `done` fires when the answer is complete."""

    __slots__ = ("done", "response")

    op: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.done = Signal()
        self.response: ResponseMsg | None = None

    def complete(self, now: float) -> None:
        """Give the answer and resume the host program; called by the host's component: again is a ComponentError."""
        if self.response is not None:
            raise ComponentError(
                f"host must complete each {type(self).__name__} once, not twice; count the answers to it."
            )
        self.response = ResponseMsg(type(self).__name__, self.born, now)
        self.done.fire(self.response)


class MemoryMsg(HostRequest):
    """Copy between the host and device memory at `regions` (physical addresses); the host counts what is `copied`.

    `through_m_cpu` hands each chunk to the DMA of the m_cpu of the cube that holds it, instead of to the memory itself.
    """

    __slots__ = ("copied", "regions", "through_m_cpu")

    def __init__(self, regions: tuple[Region, ...], *, through_m_cpu: bool = False) -> None:
        super().__init__()
        self.regions, self.copied = regions, 0
        self.through_m_cpu = through_m_cpu
        self.nbytes = sum(region.nbytes for region in regions)


class MemoryWriteMsg(MemoryMsg):
    """Copy `nbytes` from the host into device memory."""

    __slots__ = ()

    op: ClassVar[str] = "write"


class MemoryReadMsg(MemoryMsg):
    """Copy `nbytes` of device memory to the host."""

    __slots__ = ()

    op: ClassVar[str] = "read"


class KernelLaunchMsg(HostRequest):
    """Run a kernel's programs on PEs; see `Launch`."""

    __slots__ = ("launch",)

    op: ClassVar[str] = "launch"

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        self.launch = launch


class MmuMapMsg(HostRequest):
    """Have the MMUs of the PEs `targets` map or unmap the ranges of a tensor; answered when the last one has."""

    __slots__ = ("targets", "update")

    op: ClassVar[str] = "map"

    def __init__(self, targets: tuple[int, ...], update: MapUpdate) -> None:
        super().__init__()
        self.targets, self.update = targets, update
        self.nbytes = update.nbytes


class ResponseMsg:
    """Say that a host request is complete: which, sent when and answered when, in ns."""

    __slots__ = ("completed_ns", "request", "sent_ns")

    def __init__(self, request: str, sent_ns: float, completed_ns: float) -> None:
        self.request, self.sent_ns, self.completed_ns = request, sent_ns, completed_ns


class Launch:
    """Hold what one kernel launch is: the function, its arguments, and which PE runs which programs.

    `programs` maps a PE index to the program ids (x, y, z) that it runs one after another; `grid` is the number of
    programs along x, y, z. `target_start_ns` is the common start stamp, in ns, or None until a component of the launch
    path stamps it. PEs note when they really started and ended. `peers` are the PEs that its programs may send to
    (default: each other, by position), `collective` is what `tl.collective` gives them. `known` says, by PE, how many
    of its ops were over when it was submitted, as far as the host knew; `issued` how many each had issued at its end,
    and `steps` the last command that it waited for.
    Where somebody looks on, `watch(pe, program)` gives the kind of bridge that a program runs in.
    """

    __slots__ = (
        "arguments", "collective", "ended_ns", "grid", "injected_ns", "issued", "kernel", "known", "peers", "programs",
        "signature", "started_ns", "steps", "target_start_ns", "watch",
    )  # fmt: skip

    serves: ClassVar[str] = "pe_cpu"

    def __init__(
        self,
        kernel: Callable[..., Any],
        arguments: Mapping[str, object],
        grid: tuple[int, int, int],
        programs: Mapping[int, tuple[tuple[int, int, int], ...]],
        peers: Peers | None = None,
        collective: object | None = None,
    ) -> None:
        self.kernel, self.arguments = kernel, arguments
        self.grid, self.programs = grid, programs
        self.peers = by_position(tuple(programs)) if peers is None else peers
        self.collective = collective
        self.injected_ns = 0.0
        self.target_start_ns: float | None = None
        self.signature: Any = None  # how the kernel is called, from the first PE on that calls it
        self.watch: Callable[[int, tuple[int, int, int]], Callable[..., Any]] | None = None
        self.started_ns: dict[int, float] = {}
        self.ended_ns: dict[int, float] = {}
        self.known: Mapping[int, int] = {}
        self.issued: dict[int, int] = {}
        self.steps: dict[int, Any] = {}

    @property
    def nbytes(self) -> int:
        """Size of the launch descriptor in bytes: a 64 B header and 8 B for each argument, or item of a container."""
        return 64 + 8 * _count(self.arguments)


def _count(argument: object) -> int:
    """Count what an argument brings: itself, or the items of a container, and of those inside it."""
    if isinstance(argument, Mapping):
        return sum(map(_count, argument.values()))
    return sum(map(_count, argument)) if isinstance(argument, list | tuple) else 1


class MapUpdate:
    """Hold what the pe_mmu of PEs are told: physical `regions`, each contiguous, to map or to `unmap`."""

    __slots__ = ("regions", "unmap")

    serves: ClassVar[str] = "pe_mmu"

    def __init__(self, regions: tuple[Region, ...], unmap: bool = False) -> None:
        self.regions, self.unmap = regions, unmap

    @property
    def nbytes(self) -> int:
        """Size in bytes: a 16 B header, and for each range 8 B each for its virtual address, physical one and size."""
        return 16 + 24 * len(self.regions)


class FanOutMsg(MsgBase):
    """Carry an order one step down its fan-out (host, io_cpu, m_cpu, a unit of each PE), and the answer back.

    The order is a `Launch` or a `MapUpdate`: it has `nbytes`, and `serves` names the kind of unit that it ends at.
    `targets` are the PE indices below this step.
    """

    __slots__ = ("on_done", "order", "targets")

    def __init__(
        self, order: Any, targets: tuple[int, ...], path: tuple[str, ...], on_done: Callable[[Any], None]
    ) -> None:
        super().__init__(order.nbytes, path)
        self.order, self.targets, self.on_done = order, targets, on_done

    def answered(self) -> None:
        """Tell the component that fanned it out; raise ComponentError when it was told before."""
        on_done, self.on_done = self.on_done, _answered_before
        on_done(self)


class LaunchMsg(FanOutMsg):
    """Carry a launch one step down its fan-out, and the answer back."""

    __slots__ = ()

    @property
    def launch(self) -> Launch:
        """The launch that it carries."""
        return cast("Launch", self.order)


class MapUpdateMsg(FanOutMsg):
    """Carry a page-table update one step down its fan-out, and the acknowledgement back."""

    __slots__ = ()
