"""How much sooner launches would be over that do not wait for each other: a schedule of them, as soon as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernbench_builtin.explain.accesses import NO_SPANS, ByteRanges, common, joined
from kernbench_core.messages import KernelLaunchMsg

if TYPE_CHECKING:
    from kernbench_core.host.host_program import LaunchHandle
    from kernbench_core.host.session import GraphEngine


def apart(session: GraphEngine, bytes_of: tuple[list[ByteRanges], list[ByteRanges]]) -> float:
    """Return how much sooner, in ns, launches would be over if the host waited for none of them.

    Each begins when those before it on its PEs are over, and not before the host could have asked for it: what it did
    in between it does as before, after all before. Nothing where a launch needs another one to be over, as without
    waiting each PE alone keeps an order; nor with several host programs, which may wait for each other.
    """
    over = [handle for handle in session.shared.launches if handle.has_ended()]
    if len({id(handle.program) for handle in over}) != 1 or _need_order(bytes_of):
        return 0.0
    others = [each.born for each in session.shared.requests if not isinstance(each, KernelLaunchMsg)]
    ends, answered, free, meet = [0.0], [0.0], dict[int, float](), False
    asked = over[0].request.born
    for number, handle in enumerate(over):
        born, before = handle.request.born, over[:number]
        began, ended = min(handle.launch.started_ns.values()), max(handle.launch.ended_ns.values())
        if before:
            waited = (_answered(each) for each in before if _answered(each) <= born)
            asked += born - max(before[-1].request.born, *waited, 0.0)
            asked = max(asked, *answered) if any(before[-1].request.born < each < born for each in others) else asked
        start = max(asked + began - born, *(free.get(pe, 0.0) for pe in handle.launch.programs))
        meet |= start < max(ends)
        ends.append(start + ended - began)
        answered.append(ends[-1] + _answered(handle) - ended)
        free.update(dict.fromkeys(handle.launch.programs, ends[-1]))
    return max(max(handle.launch.ended_ns.values()) for handle in over) - max(ends) if meet else 0.0


def _answered(handle: LaunchHandle) -> float:
    assert handle.request.response is not None
    return handle.request.response.completed_ns


def _need_order(bytes_of: tuple[Sequence[ByteRanges], Sequence[ByteRanges]]) -> bool:
    """Whether a launch uses bytes that another one writes."""
    read, written = NO_SPANS, NO_SPANS
    for reads, writes in zip(*bytes_of, strict=True):
        if common(reads, written) or common(writes, joined(read, written)):
            return True
        read, written = joined(read, reads), joined(written, writes)
    return False
