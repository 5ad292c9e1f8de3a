"""What a rank may give to a collective: each rule is a function that raises a sentence."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence

from kernbench_ccl.distributed.world import Here, ProcessGroup
from kernbench_ccl.plan.backend import TensorSlice
from kernbench_ccl.reductions import REDOPS, refuse_redop
from kernbench_core.errors import UnsupportedError, UsageError
from kernbench_core.host import DeviceTensor, TensorPart
from kernbench_core.wording import brief

__tracebackhide__ = True


AnyTensor = DeviceTensor | TensorPart
"""What a rank may give: a tensor, or rows of one."""


def part_of(tensor: AnyTensor) -> TensorSlice:
    """Return where a tensor, or a part of one, lies."""
    return TensorSlice(tensor) if isinstance(tensor, DeviceTensor) else TensorSlice(tensor.tensor, tensor.start)


def own_tensor(own: Here, call: str, what: str, tensor: object) -> AnyTensor:
    """Return `tensor` where it is one of the calling rank, live and in one copy; else raise a sentence."""
    if not isinstance(tensor, DeviceTensor | TensorPart):
        raise UsageError(
            f"{call}: {what} must be a tensor that this rank's rt made, not {_shown(tensor)}; rt.tensor makes one."
        )
    whole = part_of(tensor).tensor
    own.rt.require_live(whole)
    sip = own.world.sips[own.rank]
    lies = sorted({own.rt.design.pes[segment.pe].sip for segment in whole.allocation.segments})
    if lies != [sip]:
        raise UsageError(
            f"{call}: {what} {tensor.name!r} must lie on SIP {sip}, which is rank {own.rank}, not on "
            f"{' and '.join(f'SIP {other}' for other in lies)}; make it with the rt of this rank."
        )
    if whole.replicas > 1:
        raise UsageError(
            f"{call}: {what} {tensor.name!r} must be there once, not in {whole.replicas} copies; place it with Shard, "
            "or without a placement."
        )
    return tensor


def _shown(value: object) -> str:
    """Write a value in short: an array by its shape."""
    shape = getattr(value, "shape", None)
    return reprlib.repr(value) if shape is None else f"a {type(value).__name__} of shape {tuple(shape)}"


def elements(tensor: AnyTensor) -> int:
    """Return the number of elements of a tensor."""
    return math.prod(tensor.shape)


def same_dtype(call: str, first: tuple[str, AnyTensor], second: tuple[str, AnyTensor]) -> None:
    """Raise a sentence when two tensors have not one dtype."""
    (what, tensor), (other, source) = first, second
    if tensor.dtype != source.dtype:
        raise UsageError(
            f"{call}: {what} {tensor.name!r} must have the dtype of {other} {source.name!r}, {source.dtype}, not "
            f"{tensor.dtype}; cast one in a kernel."
        )


def sized(call: str, what: str, tensor: AnyTensor, count: int, why: str) -> None:
    """Raise a sentence when a tensor has not `count` elements."""
    if elements(tensor) != count:
        raise UsageError(
            f"{call}: {what} {tensor.name!r} must have {count} elements, {why}, not {elements(tensor)}; correct its "
            "shape."
        )


def overlap(one: AnyTensor, other: AnyTensor) -> bool:
    """Tell whether two tensors, or parts of them, share memory."""
    first, second = part_of(one), part_of(other)
    return first.tensor is second.tensor and (
        first.start < second.start + elements(other) and second.start < first.start + elements(one)
    )


def apart(call: str, own: tuple[str, AnyTensor], whole: tuple[str, AnyTensor], start: int) -> None:
    """Raise a sentence when a rank's part shares memory with the tensor of all parts, but is not `start` behind it."""
    (what, part), (other, tensor) = own, whole
    if overlap(part, tensor) and part_of(part).start != part_of(tensor).start + start:
        raise UsageError(
            f"{call}: {what} {part.name!r} must not share memory with {other} {tensor.name!r}, or be this rank's own "
            f"part of it, the {elements(part)} elements from number {start} on; give that part, or another tensor."
        )


def reduction(call: str, op: object, dtype: str) -> str:
    """Return a reduction that goes with the dtype; UnsupportedError for another dtype, UsageError for what is none."""
    problem = refuse_redop(op if isinstance(op, str) else repr(op), dtype)
    if problem is not None:
        kind = UnsupportedError if op in REDOPS else UsageError
        raise kind(f"{call}: op: {problem}")
    return str(op)


def place_in_group(
    group: ProcessGroup, call: str, what: str, rank: object, group_rank: object, default: int | None = None
) -> int:
    """Return the place in the group that `what` (a rank of the world) or `group_what` names; a sentence otherwise."""
    if rank is not None and group_rank is not None:
        raise UsageError(f"{call}: {what} and group_{what} must not both be given; leave one out.")
    if group_rank is not None:
        if not is_index(group_rank) or not 0 <= int(group_rank) < group.size():  # type: ignore[call-overload]
            raise UsageError(
                f"{call}: group_{what} must be a place in the group {group.name()!r}, from 0 to {group.size() - 1}, "
                f"not {brief(group_rank)}."
            )
        return int(group_rank)  # type: ignore[call-overload, no-any-return]
    chosen = default if rank is None else rank
    if not is_index(chosen) or chosen not in group.ranks:
        raise UsageError(
            f"{call}: {what} must be a rank of the group {group.name()!r}, one of {list(group.ranks)}, not "
            f"{brief(chosen)}."
        )
    return group.ranks.index(chosen)


def is_index(value: object) -> bool:
    """Tell whether a value can count things: an integer of any kind, and no bool."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def split_sizes(
    call: str, what: str, tensor: AnyTensor, sizes: Sequence[int] | None, world: int
) -> tuple[int, ...]:
    """Return the rows of dimension 0 for each rank: as given, or equal; a sentence when they do not fit the tensor."""
    rows = tensor.shape[0] if tensor.shape else 1
    if sizes is None:
        if rows % world:
            raise UsageError(
                f"{call}: {what} {tensor.name!r} must have a dimension 0 that divides by {world} ranks, not {rows}; "
                f"give {what}_split_sizes."
            )
        return (rows // world,) * world
    listed = list(sizes)
    if len(listed) != world or any(not is_index(size) or size < 0 for size in listed):
        raise UsageError(
            f"{call}: {what}_split_sizes must be {world} numbers of rows, one for each rank, not {brief(listed)}."
        )
    if sum(listed) > rows:
        raise UsageError(
            f"{call}: {what}_split_sizes must sum to at most the {rows} rows of {what} {tensor.name!r}, not to "
            f"{sum(listed)}; correct them."
        )
    return tuple(int(size) for size in listed)
