"""The commands that move tiles from one PE's scratchpad to another's through queues, and slots that kernels borrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import KernelError
from kernbench_core.kernel.commands import COMMAND_BYTES, KernelCommand
from kernbench_core.kernel.compute_commands import NO_ADDRESS, address_of
from kernbench_core.kernel.steps import PathStep
from kernbench_core.memory.hazard import RECYCLED_SLOT, Hazard, HazardUse
from kernbench_core.memory.scratchpad import Birth, TcmBlock
from kernbench_core.oplog.description import Access, OpDescription, OpPattern, Patterns, handle_of
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, LoadedValue, OpId, Part, Value
from kernbench_core.values.views import AbstractValue

if TYPE_CHECKING:
    from kernbench_core.kernel.pe_state import PeState
    from kernbench_core.memory.hazards import Hazards
    from kernbench_core.peers import Channel, Peers

UNIT: Final = "pe_ipcq"
"""The kind of unit that keeps a PE's queues."""

_MESSAGES = Patterns()
_OPEN = ("src_addr", "dst_addr", "nbytes", "peer")


class QueueCommand(KernelCommand):
    """Move `total` bytes through a queue of `channel`; `local` is this PE's side in its scratchpad, if it has one."""

    __slots__ = ("channel", "local", "total", "value")

    serves: ClassVar[str] = UNIT

    def __init__(
        self, op_id: OpId, call: str, site: CallSite, channel: Channel, value: Value, block: TcmBlock | None
    ) -> None:
        super().__init__(op_id, call, site, () if block is None else (block,), COMMAND_BYTES)
        self.channel = channel
        self.value = value
        self.local: Region | None = None if block is None else block.region
        self.total = value.nbytes
        if self.local is not None:
            self.scratch_uses = (self.local,)

    @property
    def pe(self) -> int:
        """The machine's index of the PE that issued it."""
        return self.op_id[0]

    def _describe(self, name: str, source: Access, to: Access | None, peer: int, copied: bool) -> OpDescription:
        src, dst = address_of(source), NO_ADDRESS if to is None else address_of(to)
        value, space = self.value, "" if to is None else to.space
        looks = name, value.shape, value.dtype, source.space, space, self.channel.name, copied
        pattern = _MESSAGES.find(looks)
        if pattern is None:
            params: dict[str, object] = {
                "src_addr": src,
                "src_space": source.space,
                "dst_addr": dst,
                "dst_space": space,
                "nbytes": self.total,
                "shape": value.shape,
                "dtype": value.dtype,
                "peer": peer,
                "channel": self.channel.name,
                "copied": copied,
                "handle_id": handle_of(self.op_id),
            }
            pattern = _MESSAGES.add(looks, OpPattern("memory", name, params, _OPEN))
        return pattern.described((src, dst, self.total, peer), (source,), to, self.op_id)


class SendCmd(QueueCommand):
    """Send a tile to the PE `to`; complete when its last byte has left the scratchpad, which may then change."""

    __slots__ = ("to",)

    publishes: ClassVar[bool] = True

    def __init__(
        self, op_id: OpId, site: CallSite, channel: Channel, value: Value, block: TcmBlock, to: int
    ) -> None:
        super().__init__(op_id, "tl.send", site, channel, value, block)
        self.to = to

    @property
    def awaits(self) -> tuple[int, ...]:
        """The receiver, which must make room where the queue is full."""
        return (self.to,)

    def at_issue(self, state: PeState, now: float) -> None:
        """Let the message carry what the kernel has waited for so far."""
        KernelCommand.at_issue(self, state, now)
        if state.hazards is not None:
            state.hazards.publish(self.op_id)

    def describe(self) -> OpDescription:
        """Describe the message for the op log."""
        assert self.local is not None
        return self._describe("ipcq_send", Access("tcm", (self.local,), self.value), None, self.to, True)


class RecvCmd(QueueCommand):
    """Take the next message of the PE that it comes from: one of `sources`, which may be several.

    It goes to a tile of its own, or (`block` None) stays where it is, in the slot, which is `slot` from then on.
    `sent` is the message that it got. `peers` are those of a collective, by which errors name the sender.
    """

    __slots__ = ("peers", "sent", "slot", "source", "sources")

    def __init__(
        self,
        op_id: OpId,
        call: str,
        site: CallSite,
        channel: Channel,
        shape: tuple[int, ...],
        dtype: str,
        block: TcmBlock | None,
        sources: tuple[int, ...],
    ) -> None:
        super().__init__(op_id, call, site, channel, LoadedValue(shape, dtype, op_id=op_id), block)
        self.sources = sources
        self.peers: Peers | None = None
        self.sent: SendCmd | None = None
        self.slot: SlotBlock | None = None
        #: Where the message lay when it was taken, for the op log.
        self.source: Access | None = None

    @property
    def awaits(self) -> tuple[int, ...]:
        """Those that the message may come from."""
        return self.sources

    def receive(self, sent: SendCmd, source: Access) -> None:
        """Take the message `sent`, which lies at `source`; called once by pe_ipcq, when it has arrived."""
        self.sent = sent
        self.source = source

    def fits(self, sent: SendCmd) -> KernelError | None:
        """Say, as an error, what is wrong with getting `sent`; None when nothing is."""
        if sent.total == self.total:
            return None
        sender = self._name(sent.pe)
        return KernelError(
            f"{self.call} at {describe_site(self.site)} must receive the {_size(sent)} that {sender} sent at "
            f"{describe_site(sent.site)}, not {_size(self)}; give a shape and dtype of as many bytes: a queue delivers "
            "whole messages in order, bit for bit."
        )

    def _name(self, pe: int) -> str:
        """Spell a PE as its kernels know it: by its rank in a collective."""
        if self.peers is None:
            return f"PE {pe}"
        rank, place = self.peers.place_of(pe)
        return f"rank {rank}" if self.peers.single else f"PE {place} of rank {rank}"

    def land(self, now: float) -> None:
        """Bind the tile to what was sent, which comes before all that this kernel issues from now on."""
        sent = self.sent
        if sent is None or self.error is not None:
            return
        value = self.value
        assert isinstance(value, LoadedValue)
        value.bind(received(sent.value, value), (sent.op_id,))
        if not self.blocking:
            self.after = sent.op_id
        elif self.state.hazards is not None:
            self.state.hazards.order(sent.op_id, self.pe)

    def _step(self, state: PeState) -> PathStep:
        """Return the step that it was: as long as the message was on its way, or the kernel waited, which is less."""
        sent = self.sent
        if sent is None or sent.sent_ns <= self.sent_ns:
            return KernelCommand._step(self, state)
        return PathStep(sent.because, self.call, self.serves, self.site, sent.sent_ns, self.tail)

    def describe(self) -> OpDescription:
        """Describe the receipt for the op log."""
        assert self.source is not None and self.sent is not None
        to = None if self.local is None else Access("tcm", (self.local,), self.value)
        return self._describe("ipcq_recv", self.source, to, self.sent.pe, self.local is not None)


def received(sent: Value, tile: Value) -> Value:
    """Give the bytes of `sent` as a tensor of the shape and dtype of `tile`."""
    if sent.shape == tile.shape and sent.dtype == tile.dtype:
        return sent
    if isinstance(sent.content(), AbstractValue):
        return AbstractValue(tile.shape, tile.dtype)
    whole = Region(0, sent.nbytes)
    return AssemblyValue(tile.shape, tile.dtype, (Part(whole, sent, whole),))


def _size(command: QueueCommand) -> str:
    """Say how large a message is, and of what."""
    return f"{command.total} B of {command.value.dtype} {command.value.shape}"


class SlotBlock(TcmBlock):
    """A slot of a queue in the scratchpad, lent to a kernel; it goes back to the sender when nothing refers to it.

    `tl.free` gives it back at once; using it after that is a hazard, because the sender may write the next message.
    `name` is what the hazard calls it, `hazards` are told.
    """

    __slots__ = ("_back", "_hazards", "freed_ns", "name", "pe")

    def __init__(
        self,
        region: Region,
        offset: int,
        birth: Birth,
        back: Callable[[], None],
        name: str = "a slot",
        pe: int = 0,
        hazards: Hazards | None = None,
    ) -> None:
        self._table = None
        self.address = region.base
        self.offset = offset
        self.region = region
        self.birth = birth
        self.users = 0
        self.freed_at = None
        self.freed_ns = 0.0
        self.name = name
        self.pe = pe
        self._hazards = hazards
        self._back: Callable[[], None] | None = back

    def free(self, site: CallSite) -> None:
        """Give the slot back now; called by `tl.free` only."""
        if self.freed_at is not None:
            raise KernelError(
                f"tl.free at {describe_site(site)} must be given a slot once, and {self} was given back at "
                f"{describe_site(self.freed_at)}; free it once."
            )
        self.freed_at = site
        if self._hazards is not None:
            self.freed_ns = self._hazards.now
        self._release()

    def in_flight(self, command: KernelCommand, site: CallSite) -> None:
        """Note that `command` still uses the slot while `tl.free` at `site` gives it back."""
        if self._hazards is not None:
            now = self._hazards.now
            first = HazardUse(command.op_id, command.call, *self._place(command.site), command.born, None)
            self._hazard(first, HazardUse(None, "tl.free", *self._place(site), now, None))

    def refuse(self, use: str, site: CallSite) -> None:
        """Note a use after the slot was given back; nothing stops it, and nothing orders it before the next message."""
        if self._hazards is not None and self.freed_at is not None:
            first = HazardUse(None, "tl.free", *self._place(self.freed_at), self.freed_ns, None)
            self._hazard(first, HazardUse(None, use, *self._place(site), self._hazards.now, None))

    def _place(self, site: CallSite) -> tuple[str, str]:
        assert self._hazards is not None
        return self._hazards.name_of(self.pe), describe_site(site)

    def _hazard(self, first: HazardUse, second: HazardUse) -> None:
        assert self._hazards is not None
        self._hazards.add(Hazard(RECYCLED_SLOT, self.name, None, self.offset, self.region.nbytes, first, second, 1))

    def _release(self) -> None:
        back, self._back = self._back, None
        if back is not None:
            back()
