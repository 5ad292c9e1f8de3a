"""The collectives of torch.distributed that take lists of tensors: those that take one, and copies on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernbench_ccl.distributed.calls import Call, ReduceOp, Work
from kernbench_ccl.distributed.checks import (
    AnyTensor,
    elements,
    own_tensor,
    part_of,
    place_in_group,
    reduction,
    same_dtype,
    sized,
)
from kernbench_ccl.distributed.transfers import join_parts, part_whole
from kernbench_ccl.distributed.world import Here, ProcessGroup, here
from kernbench_core.errors import UsageError
from kernbench_core.host import DeviceTensor
from kernbench_core.kernel import Pointer
from kernbench_core.values.dtypes import itemsize

__tracebackhide__ = True


def all_gather(
    tensor_list: Sequence[AnyTensor], tensor: AnyTensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give every rank the tensors of all, one in each of its `tensor_list`.

    They are gathered in scratch memory and copied; `all_gather_into_tensor` needs no copy.
    """
    call = "dist.all_gather"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "tensor", tensor)
    parts = _listed(own, found, call, "tensor_list", tensor_list, tensor)
    count = elements(tensor)
    whole = own.take(count * found.size(), tensor.dtype)
    return Call(
        own, found, call, "all_gather", count, tensor.dtype, tensor, whole,
        scratch=[whole], after=lambda: _part(own, found, whole, parts), results=parts,
    ).run(async_op)  # fmt: skip


def gather(
    tensor: AnyTensor,
    gather_list: Sequence[AnyTensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Give rank `dst` (by default the first) the tensors of all ranks, one in each of its `gather_list`."""
    call = "dist.gather"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "tensor", tensor)
    root = place_in_group(found, call, "dst", dst, group_dst, found.ranks[0])
    parts = _of_root(own, found, call, "gather_list", gather_list, tensor, found.ranks[root])
    count = elements(tensor)
    whole = None if parts is None else own.take(count * found.size(), tensor.dtype)
    return Call(
        own, found, call, "gather", count, tensor.dtype, tensor, whole, root=root,
        details={"root": f"dst {found.ranks[root]}"}, scratch=[] if whole is None else [whole],
        after=None if parts is None or whole is None else lambda: _part(own, found, whole, parts), results=parts or (),
    ).run(async_op)  # fmt: skip


def scatter(
    tensor: AnyTensor,
    scatter_list: Sequence[AnyTensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each rank's tensor the content of its place in the `scatter_list` of rank `src` (by default the first)."""
    call = "dist.scatter"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "tensor", tensor)
    root = place_in_group(found, call, "src", src, group_src, found.ranks[0])
    parts = _of_root(own, found, call, "scatter_list", scatter_list, tensor, found.ranks[root])
    count = elements(tensor)
    whole = None if parts is None else own.take(count * found.size(), tensor.dtype)
    if parts is not None and whole is not None:
        _join(own, found, parts, whole)
    return Call(
        own, found, call, "scatter", count, tensor.dtype, whole, tensor, root=root,
        details={"root": f"src {found.ranks[root]}"}, scratch=[] if whole is None else [whole],
    ).run(async_op)  # fmt: skip


def reduce_scatter(
    output: AnyTensor,
    input_list: Sequence[AnyTensor],
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce tensor r of every rank's `input_list` into the output of rank r.

    They are joined in scratch memory first; `reduce_scatter_tensor` needs no copy.
    """
    call = "dist.reduce_scatter"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "output", output)
    parts = _listed(own, found, call, "input_list", input_list, output)
    redop = reduction(call, op, output.dtype)
    count = elements(output)
    whole = own.take(count * found.size(), output.dtype)
    _join(own, found, parts, whole)
    return Call(
        own, found, call, "reduce_scatter", count, output.dtype, whole, output, redop,
        details={"op": redop}, scratch=[whole],
    ).run(async_op)  # fmt: skip


def all_to_all(
    output_tensor_list: Sequence[AnyTensor],
    input_tensor_list: Sequence[AnyTensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send tensor j of the inputs to rank j, and put what rank i sent in tensor i of the outputs; all of one size.

    They are copied to scratch memory and from it; `all_to_all_single` needs no copy, and takes parts of any sizes.
    """
    call = "dist.all_to_all"
    own = here(call)
    found = own.group(group, call)
    first = input_tensor_list[0] if isinstance(input_tensor_list, list | tuple) and input_tensor_list else None
    one = own_tensor(own, call, "input_tensor_list[0]", first)
    parts = _listed(own, found, call, "input_tensor_list", input_tensor_list, one)
    results = _listed(own, found, call, "output_tensor_list", output_tensor_list, one)
    count = elements(one)
    source, target = (own.take(count * found.size(), one.dtype) for _ in range(2))
    _join(own, found, parts, source)
    return Call(
        own, found, call, "all_to_all", count, one.dtype, source, target,
        scratch=[source, target], after=lambda: _part(own, found, target, results), results=results,
    ).run(async_op)  # fmt: skip


def _listed(
    own: Here, group: ProcessGroup, call: str, what: str, tensors: object, like: AnyTensor
) -> list[AnyTensor]:
    """Return a list of one tensor for each rank, all like `like`; a sentence when it is not that."""
    if not isinstance(tensors, list | tuple) or len(tensors) != group.size():
        shown = f"{len(tensors)}" if isinstance(tensors, list | tuple) else repr(tensors)
        raise UsageError(f"{call}: {what} must be a list of {group.size()} tensors, one for each rank, not {shown}.")
    found = []
    for number, given in enumerate(tensors):
        name = f"{what}[{number}]"
        tensor = own_tensor(own, call, name, given)
        same_dtype(call, (name, tensor), ("tensor", like))
        sized(call, name, tensor, elements(like), f"as {like.name!r}")
        found.append(tensor)
    return found


def _of_root(
    own: Here, group: ProcessGroup, call: str, what: str, tensors: object, like: AnyTensor, root: int
) -> list[AnyTensor] | None:
    """Return the list that only the root has to give; a sentence when another rank gives one, or the root none."""
    if own.rank == root:
        return _listed(own, group, call, what, tensors, like)
    if tensors:
        raise UsageError(
            f"{call}: {what} must be given by rank {root} alone, not by rank {own.rank}; leave it out here."
        )
    return None


def _join(own: Here, group: ProcessGroup, parts: list[AnyTensor], whole: DeviceTensor) -> None:
    """Copy tensors, one behind the other, into a scratch tensor, on the PEs of the group, and wait."""
    given = (_pointers(own, parts), whole, elements(parts[0]), _tile(own, whole))
    own.rt.launch(join_parts, *given, pes=_places(own, group))


def _part(own: Here, group: ProcessGroup, whole: DeviceTensor, parts: list[AnyTensor]) -> None:
    """Copy a scratch tensor out into tensors, on the PEs of the group, and wait."""
    given = (whole, _pointers(own, parts), elements(parts[0]), _tile(own, whole))
    own.rt.launch(part_whole, *given, pes=_places(own, group))


def _places(own: Here, group: ProcessGroup) -> list[int]:
    """Return the positions, among the PEs of this rank, of those that move data for a group."""
    moving = group.group.pes[group.ranks.index(own.rank)]
    return [place for place, site in enumerate(own.rt.pes) if site.index in moving]


def _pointers(own: Here, parts: list[AnyTensor]) -> list[Pointer]:
    """Wait for the launches in flight that use tensors, and return what a kernel gets for each, also for a part."""
    places = [part_of(part) for part in parts]
    for place in places:
        own.rt.settle(place.tensor)
    return [place.pointer for place in places]


def _tile(own: Here, tensor: DeviceTensor) -> int:
    return own.world.config.defaults.tile(itemsize(tensor.dtype))
