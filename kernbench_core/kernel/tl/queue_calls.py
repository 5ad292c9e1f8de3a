"""`tl.send` and `tl.recv`: tiles that go from PE to PE through queues, without a detour through HBM."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from kernbench_core.callsite import CallSite, call_site, describe_site
from kernbench_core.errors import KernelError, ShapeError
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.placeholders import Placeholder, describe_given
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.queue_commands import RecvCmd, SendCmd
from kernbench_core.kernel.tl.dispatch import Dispatcher
from kernbench_core.kernel.tl.tensor import Handle, Tensor, Tile
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.messages import Launch
from kernbench_core.peers import Peer
from kernbench_core.values.dtypes import dtype_of, itemsize
from kernbench_core.wording import brief


class SendHandle(Placeholder, Handle):
    """A message on its way out; wait for it with tl.wait before its tile's space is written by anything else."""

    __slots__ = ()

    @property
    def words(self) -> str:
        """What it is, as a sentence calls it."""
        return f"the handle of {self.op} made at {describe_site(self.site)}, which is for tl.wait alone"

    @property
    def advice(self) -> str:
        """What to do for the data."""
        return "use the tile that was sent"


class QueueLanguage(Dispatcher):
    """Add sending and receiving to the language."""

    @property
    def collective(self) -> Any:
        """What the kernel of a collective knows of the call, frozen; KernelError in any other kernel."""
        found = self._launch.collective
        if found is None:
            raise KernelError(
                f"tl.collective at {describe_site(call_site())} must be read in the kernel of a collective, and this "
                "launch is none; pass what the kernel needs as arguments."
            )
        return found

    def send(self, value: Any, to: Peer, *, wait: bool = True) -> SendHandle:
        """Send a tile to another PE, which receives it with `tl.recv`; messages of one queue arrive in order.

        In a collective `to` is a rank, and the PE of the same place there is meant, or (rank, place). Elsewhere it is
        the position of the PE among those of the launch. A text is a direction ("n", "e", "s", "w"). The call comes
        back when the tile's last byte has left the scratchpad, with `wait=False` at once. While the queue is full it
        waits for the receiver.
        """
        site = call_site()
        if isinstance(value, IndexTensor):
            value = self.math("copy", (value,), value.shape, value.dtype)
        if not isinstance(value, Tensor):
            hint = "load it first" if isinstance(value, Pointer) else "make a tile of it with tl.full"
            raise KernelError(
                f"tl.send at {describe_site(site)} must be given a tile, not {describe_given(value)}; "
                f"{value.advice if isinstance(value, Placeholder) else hint}."
            )
        return _sent(self, value, self._launch, to, site, wait)

    def recv(
        self, shape: Sequence[int] | int, dtype: Any, source: Peer, *, copy: bool = True, wait: bool = True
    ) -> Tensor:
        """Receive the next tile that `source` sent here: its bytes, as a tensor of `shape` and `dtype`.

        `source` is spelled as for `tl.send`. The tile is copied out of the queue; with `copy=False` it is the slot
        itself, which goes back to the sender with `tl.free` or with the last name of it: that takes a message of one
        slot in the scratchpad. The call comes back when the tile is there, with `wait=False` at once, and the tile is
        waited for when it is used.
        """
        site = call_site()
        peer = _peer(self, self._launch, source, "tl.recv", site)
        return _received(self, self._launch, "tl.recv", site, shape, dtype, (peer,), copy, wait)[0]

    def recv_any(
        self, shape: Sequence[int] | int, dtype: Any, sources: Sequence[Peer] | None = None, *, copy: bool = True
    ) -> tuple[Tensor, Any]:
        """Receive the next tile of any of `sources` and give it with its source, spelled as it was in `sources`.

        Sources that have one waiting take turns: none is served twice before another that has one is served. Without
        `sources` they are all PEs of the launch but this one, or in a collective those of the same place.
        """
        site = call_site()
        asked = self._everybody() if sources is None else sources
        if isinstance(asked, int | str):
            raise KernelError(
                f"tl.recv_any at {describe_site(site)} must be given a list of sources, not {brief(asked)}; receive "
                "from one with tl.recv."
            )
        named: dict[int, Any] = {_peer(self, self._launch, source, "tl.recv_any", site): source for source in asked}
        if not named:
            raise KernelError(f"tl.recv_any at {describe_site(site)} must be given at least one source, not none.")
        tensor, sender = _received(self, self._launch, "tl.recv_any", site, shape, dtype, tuple(named), copy, True)
        return tensor, named[sender]

    def _everybody(self) -> Sequence[Peer]:
        """Name the other PEs of the launch, those of the same place where ranks have several."""
        peers = self._launch.peers
        rank, place = peers.place_of(self._state.pe)
        return [other for other, pes in enumerate(peers.ranks) if other != rank and place < len(pes)]


# Functions, and not methods, which have no types of C: each message is sent and received by one of them.


def _peer(tl: Dispatcher, launch: Launch, to: Peer, call: str, site: CallSite) -> int:
    """Give the machine's index of the PE that a program calls `to`."""
    state = tl._state
    own = state.pe
    if type(to) is str:
        state.kernels.timed.setdefault("the PE in a direction", site)
    try:
        peer = launch.peers.resolve(own, to, state.kernels.nearest)
    except KernelError as error:
        raise KernelError(f"{call} at {describe_site(site)}: {error}") from None
    if peer == own:
        raise KernelError(f"{call} at {describe_site(site)} must name another PE, not {brief(to)}, which is this one.")
    return peer


def _sent(tl: Dispatcher, tile: Tile, launch: Launch, to: Peer, site: CallSite, wait: bool) -> SendHandle:
    """Send a tile, once it is there."""
    tl._have(tile, "send")
    peer = _peer(tl, launch, to, "tl.send", site)
    command = SendCmd(tl.op_id(), site, launch.peers.channel, tile.value, tile.block, peer)
    handle = SendHandle(tl, tile.value, "tl.send", site, None if wait else command)
    tl._issue(command, wait)
    return handle


def _received(
    tl: Dispatcher, launch: Launch, call: str, site: CallSite, shape: Sequence[int] | int, dtype: Any,
    sources: tuple[int, ...], copy: bool, wait: bool,
) -> tuple[Tensor, int]:  # fmt: skip
    """Receive the next tile of one of `sources`, and give it with its source."""
    extents = _extents(shape, call, site)
    name = dtype_of(dtype)
    if not copy and not wait:
        raise KernelError(
            f"{call} at {describe_site(site)} must wait for its slot, which is not known before; leave out wait=False, "
            "or receive a copy."
        )
    block: TcmBlock | None = None
    if copy:
        nbytes = itemsize(name)
        for extent in extents:
            nbytes *= extent
        block = tl._reserve(call, extents, name, nbytes, site)
    command = RecvCmd(tl.op_id(), call, site, launch.peers.channel, extents, name, block, sources)
    if launch.collective is not None:
        command.peers = launch.peers
    if wait:
        tl._issue(command, True)
        space = command.slot if block is None else block
        command.slot = None  # the clock holds the command until its next event, and a slot must go back at once
        assert space is not None and command.sent is not None
        return Tensor(tl, command.value, space, call, site), command.sent.pe
    assert block is not None
    tensor = Tensor(tl, command.value, block, call, site, command)
    tl._issue(command, False)
    return tensor, sources[0]


def _extents(shape: Any, call: str, site: CallSite) -> tuple[int, ...]:
    """Give the extents of what is to be received; ShapeError for what is no shape. An extent may be 0."""
    if type(shape) is tuple and len(shape) == 1 and type(shape[0]) is int and shape[0] >= 0:
        return shape  # what nearly every message is
    try:
        found = tuple(map(index, (shape,) if hasattr(shape, "__index__") else shape))
    except TypeError:
        found = (-1,)
    if min(found, default=0) < 0:
        raise ShapeError(
            f"{call} at {describe_site(site)} must be given a shape of whole numbers from 0 on, not {brief(shape)}; "
            "give that of the tile that is sent."
        )
    return found
