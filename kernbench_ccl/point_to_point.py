"""send, recv, isend and irecv: one rank's program gives a tensor to another's.

A rank's PEs are parted in two halves, where there are two: the first sends and the second receives, so that a rank that
sends and receives at once does not block itself. Messages of one rank to another arrive in the order of their sends.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from kernbench_ccl.calls import Work
from kernbench_ccl.checks import elements, own_tensor, place_in_group
from kernbench_ccl.ledger import Ledger
from kernbench_ccl.transfers import recv_share, send_share
from kernbench_ccl.world import Here, here
from kernbench_core.device_tensor import DeviceTensor
from kernbench_core.dtypes import itemsize
from kernbench_core.errors import UnsupportedError, UsageError
from kernbench_core.messages import Launch
from kernbench_core.peers import Peers
from kernbench_core.pointers import PerPe, Pointer

__tracebackhide__ = True

P2P: Final = ", messages"
"""What the channel of messages is called, behind the name of the group of all ranks."""


def isend(
    tensor: DeviceTensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Send a tensor to rank `dst`, which must receive it; give the Work, which is over when the tensor has left."""
    return _message("dist.isend", tensor, dst, group_dst, group, tag)


def irecv(
    tensor: DeviceTensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Receive into a tensor what rank `src` sends; give the Work, which is over when the tensor is written."""
    return _message("dist.irecv", tensor, src, group_src, group, tag)


def send(
    tensor: DeviceTensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to rank `dst` and wait until it has left."""
    _message("dist.send", tensor, dst, group_dst, group, tag).wait()


def recv(
    tensor: DeviceTensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive into a tensor what rank `src` sends, wait for it, and give the rank that sent it."""
    work = _message("dist.recv", tensor, src, group_src, group, tag)
    work.wait()
    own = here("dist.recv")
    found = own.group(group, "dist.recv")
    return found.ranks[place_in_group(found, "dist.recv", "src", src, group_src)]


@frozen
class P2POp:
    """One message of `batch_isend_irecv`: `op` is `dist.isend` or `dist.irecv`, `peer` the other rank."""

    op: Any
    tensor: DeviceTensor
    peer: int | None = None
    group: Any = None
    tag: int = 0
    group_peer: int | None = None


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages; give the Work of each, in order. They may be waited for in any order."""
    call = "dist.batch_isend_irecv"
    here(call)
    for one in p2p_op_list:
        if not isinstance(one, P2POp) or one.op not in (isend, irecv):
            raise UsageError(f"{call}: each op must be a P2POp of dist.isend or dist.irecv, not {one!r}.")
    return [one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer) for one in p2p_op_list]


def _message(
    call: str, tensor: DeviceTensor, rank: int | None, group_rank: int | None, group: Any, tag: int
) -> Work:
    sends = call.endswith("send")
    what = "dst" if sends else "src"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "tensor", tensor)
    if tag != 0:
        raise UnsupportedError(
            f"{call}: tag must be left out, not {tag!r}: messages arrive in the order of their sends."
        )
    if rank is None and group_rank is None:
        raise UsageError(f"{call}: {what} must be given: a message is to one rank, and from one; name it.")
    peer = found.ranks[place_in_group(found, call, what, rank, group_rank)]
    if peer == own.rank:
        raise UsageError(f"{call}: {what} must be another rank than {peer}, which is the caller; copy in a kernel.")
    source, to = (own.rank, peer) if sends else (peer, own.rank)
    ledger = own.world.messages.get((source, to))
    if ledger is None:
        ledger = own.world.messages[source, to] = Ledger(f"the messages from rank {source} to rank {to}", (source, to))
    count = elements(tensor)
    number = own.enter(ledger, "message", {"size": f"{count} x {tensor.dtype}"})
    own.rt.settle(tensor)
    handle = own.rt.submit(
        _launch(own, tensor, peer, sends), [tensor],
        f"{call.removeprefix('dist.')} #{number} {'to' if sends else 'from'} rank {peer}",
    )  # fmt: skip
    return Work(own, handle)


def _launch(own: Here, tensor: DeviceTensor, peer: int, sends: bool) -> Launch:
    """Make the launch of one side of a message: the sending or the receiving half of this rank's PEs."""
    world = own.world
    everyone = world.groups[0].with_channel(world.config.defaults, P2P)
    half = max(1, everyone.n_pe // 2)
    receivers = half if everyone.n_pe > 1 else 0
    first, other = (0, receivers) if sends else (receivers, 0)
    pes = everyone.pes[own.rank][first : first + half]
    tile = world.config.defaults.tile(itemsize(tensor.dtype))
    arguments = {
        "x_ptr": Pointer(tensor.allocation, 0, tensor.dtype),
        "count": elements(tensor),
        "place": PerPe({pe: place for place, pe in enumerate(pes)}),
        "places": half,
        "to" if sends else "source": PerPe({pe: (peer, other + place) for place, pe in enumerate(pes)}),
        "tile": tile,
    }
    programs = {pe: ((place, 0, 0),) for place, pe in enumerate(pes)}
    kernel = send_share if sends else recv_share
    return Launch(kernel, arguments, (half, 1, 1), programs, Peers(everyone.pes, everyone.channel))
