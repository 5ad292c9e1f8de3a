"""send, recv, isend and irecv: one rank's program gives a tensor to another's.

A rank's PEs are parted in two halves, where there are two: the first sends and the second receives, so that a rank that
sends and receives at once does not block itself. Messages of one rank to another arrive in the order of their sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final

from attrs import field, frozen

from kernbench_ccl.distributed.calls import Work
from kernbench_ccl.distributed.checks import AnyTensor, elements, own_tensor, part_of, place_in_group
from kernbench_ccl.distributed.ledger import CallLedger
from kernbench_ccl.distributed.transfers import exchange_messages, recv_share, send_share
from kernbench_ccl.distributed.world import Here, here
from kernbench_ccl.plan import Group
from kernbench_ccl.plan.backend import TensorSlice
from kernbench_core.errors import UnsupportedError, UsageError
from kernbench_core.kernel import PerPe, Pointer
from kernbench_core.messages import Launch
from kernbench_core.peers import Peers
from kernbench_core.values.dtypes import itemsize
from kernbench_core.wording import brief

__tracebackhide__ = True

P2P: Final = ", messages"
"""What the channel of messages is called, behind the name of the group of all ranks."""

DEPTH: Final = 4
"""Tiles of each peer that a batch has under way, where the scratchpad has room: as many as a queue has slots."""


def isend(
    tensor: AnyTensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Send a tensor to rank `dst`, which must receive it; give the Work, which is over when the tensor has left."""
    return _message("dist.isend", tensor, dst, group_dst, group, tag)


def irecv(
    tensor: AnyTensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Receive into a tensor what rank `src` sends; give the Work, which is over when the tensor is written."""
    return _message("dist.irecv", tensor, src, group_src, group, tag)


def send(
    tensor: AnyTensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to rank `dst` and wait until it has left."""
    _message("dist.send", tensor, dst, group_dst, group, tag).wait()


def recv(
    tensor: AnyTensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive into a tensor what rank `src` sends, wait for it, and give the rank that sent it."""
    work = _message("dist.recv", tensor, src, group_src, group, tag)
    work.wait()
    own = here("dist.recv")
    found = own.group(group, "dist.recv")
    return found.ranks[place_in_group(found, "dist.recv", "src", src, group_src)]


def _refuse_other_ops(made: P2POp, attribute: object, op: object) -> None:
    if op not in (isend, irecv):
        shown = f"dist.{op.__name__}" if op in (send, recv) else repr(op)
        raise UsageError(f"dist.P2POp: op must be dist.isend or dist.irecv, not {shown}; these start and do not wait.")


@frozen
class P2POp:
    """One message of `batch_isend_irecv`: `op` is `dist.isend` or `dist.irecv`, `peer` the other rank."""

    op: Any = field(validator=_refuse_other_ops)
    tensor: AnyTensor
    peer: int | None = None
    group: Any = None
    tag: int = 0
    group_peer: int | None = None


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages at once; give a Work for each, in order. All of them are over together.

    They make progress side by side, whatever their order and size; messages to one rank keep their order.
    """
    call = "dist.batch_isend_irecv"
    own = here(call)
    if not isinstance(p2p_op_list, list | tuple) or not p2p_op_list:
        raise UsageError(f"{call}: p2p_op_list must be a list of at least one P2POp, not {brief(p2p_op_list)}.")
    for one in p2p_op_list:
        if not isinstance(one, P2POp):
            raise UsageError(f"{call}: each op must be a P2POp of dist.isend or dist.irecv, not {brief(one)}.")
    messages = [
        _check(f"dist.{one.op.__name__}", one.tensor, one.peer, one.group_peer, one.group, one.tag)
        for one in p2p_op_list
    ]
    _refuse_shared(call, messages)
    for message in messages:
        message.enter(own)
    for message in messages:
        own.rt.settle(message.part.tensor)
    sends = sum(message.sends for message in messages)
    label = f"batch of {_number(sends, 'send')} and {_number(len(messages) - sends, 'receive')}"
    tensors = list(dict.fromkeys(message.part.tensor for message in messages))
    handle = own.rt.submit(_batch_launch(own, messages), tensors, label)
    return [Work(own, handle) for _ in messages]


def _refuse_shared(call: str, messages: Sequence[_Message]) -> None:
    """Raise a sentence where two messages would be received into the same memory."""
    for one, other in combinations((message for message in messages if not message.sends), 2):
        (first, last), (start, end) = one.stretch, other.stretch
        if one.part.tensor is other.part.tensor and first < end and start < last:
            raise UsageError(
                f"{call}: each dist.irecv must have memory of its own, and two of them share elements of "
                f"{one.part.tensor.name!r}; give one of them another tensor or part."
            )


def _number(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


@frozen
class _Message:
    """One side of a message, checked: this rank sends `part` to `peer`, or receives it from there."""

    part: TensorSlice
    count: int
    peer: int
    sends: bool

    @property
    def stretch(self) -> tuple[int, int]:
        """Its elements in the tensor: the first one, and the one behind the last."""
        return self.part.start, self.part.start + self.count

    def enter(self, own: Here) -> int:
        """Write the message down and return its number among those of the two ranks."""
        pair = (own.rank, self.peer) if self.sends else (self.peer, own.rank)
        ledger = own.world.messages.get(pair)
        if ledger is None:
            words = f"the messages from rank {pair[0]} to rank {pair[1]}"
            ledger = own.world.messages[pair] = CallLedger(words, pair)
        return own.enter(ledger, "message", {"size": f"{self.count} x {self.part.tensor.dtype}"})

    def tile(self, own: Here) -> int:
        """How many elements go at a time."""
        return own.world.config.defaults.tile(itemsize(self.part.tensor.dtype))


def _message(
    call: str, tensor: AnyTensor, rank: int | None, group_rank: int | None, group: Any, tag: int
) -> Work:
    own = here(call)
    message = _check(call, tensor, rank, group_rank, group, tag)
    number = message.enter(own)
    own.rt.settle(message.part.tensor)
    handle = own.rt.submit(
        _launch(own, message), [message.part.tensor],
        f"{call.removeprefix('dist.')} #{number} {'to' if message.sends else 'from'} rank {message.peer}",
    )  # fmt: skip
    return Work(own, handle)


def _check(
    call: str, tensor: AnyTensor, rank: int | None, group_rank: int | None, group: Any, tag: int
) -> _Message:
    """Check what a message is called with."""
    sends = call.endswith("send")
    what = "dst" if sends else "src"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "tensor", tensor)
    if tag != 0:
        raise UnsupportedError(
            f"{call}: tag must be left out, not {brief(tag)}: messages arrive in the order of their sends."
        )
    if rank is None and group_rank is None:
        raise UsageError(f"{call}: {what} must be given: a message is to one rank, and from one; name it.")
    peer = found.ranks[place_in_group(found, call, what, rank, group_rank)]
    if peer == own.rank:
        raise UsageError(f"{call}: {what} must be another rank than {peer}, which is the caller; copy in a kernel.")
    return _Message(part_of(tensor), elements(tensor), peer, sends)


def _halves(own: Here) -> tuple[Group, int, int]:
    """Return the PEs of messages, how many send, and the place of the first that receives."""
    everyone = own.world.groups[0].with_channel(own.world.config.defaults, P2P)
    half = max(1, everyone.n_pe // 2)
    return everyone, half, half if everyone.n_pe > 1 else 0


def _launch(own: Here, message: _Message) -> Launch:
    """Make the launch of one side of a message: the sending or the receiving half of this rank's PEs."""
    everyone, half, receivers = _halves(own)
    first, other = (0, receivers) if message.sends else (receivers, 0)
    pes = everyone.pes[own.rank][first : first + half]
    arguments = {
        "x_ptr": message.part.pointer,
        "count": message.count,
        "place": PerPe({pe: place for place, pe in enumerate(pes)}),
        "places": half,
        "to" if message.sends else "source": PerPe(
            {pe: (message.peer, other + place) for place, pe in enumerate(pes)}
        ),
        "tile": message.tile(own),
    }
    programs = {pe: ((place, 0, 0),) for place, pe in enumerate(pes)}
    kernel = send_share if message.sends else recv_share
    return Launch(kernel, arguments, (half, 1, 1), programs, Peers(everyone.pes, everyone.channel))


def _batch_launch(own: Here, messages: Sequence[_Message]) -> Launch:
    """Make the launch of a batch: each PE gets its messages, in order, by peer; those that have none are left out."""
    everyone, half, receivers = _halves(own)
    sides: dict[bool, dict[int, list[tuple[Pointer, int, int]]]] = {True: {}, False: {}}
    for one in messages:
        sides[one.sends].setdefault(one.peer, []).append((one.part.pointer, one.count, one.tile(own)))
    leaving: dict[int, tuple[object, ...]] = {}
    coming: dict[int, tuple[object, ...]] = {}
    places: dict[int, int] = {}
    for found, by_peer, first, other in (
        (leaving, sides[True], 0, receivers), (coming, sides[False], receivers, 0)
    ):  # fmt: skip
        for place, pe in enumerate(everyone.pes[own.rank][first : first + half] if by_peer else ()):
            found[pe] = tuple(((peer, other + place), tuple(parts)) for peer, parts in by_peer.items())
            places[pe] = place
    pes = sorted(places)
    nbytes = max(one.tile(own) * itemsize(one.part.tensor.dtype) for one in messages)
    streams = max(len(leaving.get(pe, ())) + len(coming.get(pe, ())) for pe in pes)
    arguments = {
        "leaving": PerPe({pe: leaving.get(pe, ()) for pe in pes}),
        "coming": PerPe({pe: coming.get(pe, ()) for pe in pes}),
        "place": PerPe(places),
        "places": half,
        "depth": max(1, min(DEPTH, own.rt.design.tcm_bytes // 2 // (nbytes * streams) - 1)),
    }
    programs = {pe: ((number, 0, 0),) for number, pe in enumerate(pes)}
    peers = Peers(everyone.pes, everyone.channel)
    return Launch(exchange_messages, arguments, (len(pes), 1, 1), programs, peers)
