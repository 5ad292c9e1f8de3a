"""How much sooner launches would be over that do not wait for each other: a schedule of them, as soon as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernbench_builtin.explain.accesses import NO_SPANS, ByteRanges, common, joined
from kernbench_core.messages import KernelLaunchMsg

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_core.host.session import GraphEngine


def apart(session: GraphEngine, launches: Sequence[LaunchFigures]) -> float:
    """Return how much sooner, in ns, launches that are over would be so if the host waited for none of them.

    Each begins when those before it on its PEs are over, and not before the host could have asked for it: what it did
    in between it does as before, after all before. Nothing with several host programs: one may wait for another.
    """
    over = [handle for handle in session.shared.launches if handle.has_ended()]
    if len({id(handle.program) for handle in over}) != 1:
        return 0.0
    others = [each.born for each in session.shared.requests if not isinstance(each, KernelLaunchMsg)]
    ends, answered, free, meet = [0.0], [0.0], dict[int, float](), False
    before, asked = 0.0, launches[0].injected_ns
    for number, (each, handle) in enumerate(zip(launches, over, strict=True)):
        if number:
            waited = (one.completed_ns for one in launches[:number] if one.completed_ns <= each.injected_ns)
            asked += each.injected_ns - max(before, *waited, 0.0)
            asked = max(asked, *answered) if any(before < born < each.injected_ns for born in others) else asked
        pes, before = handle.launch.programs, each.injected_ns
        start = max(asked + each.started_ns - before, *(free.get(pe, 0.0) for pe in pes))
        meet |= start < max(ends)
        ends.append(start + each.time_ns)
        answered.append(ends[-1] + each.completed_ns - each.ended_ns)
        free.update(dict.fromkeys(pes, ends[-1]))
    return max(each.ended_ns for each in launches) - max(ends) if meet else 0.0


def handed_on(bytes_of: tuple[Sequence[ByteRanges], Sequence[ByteRanges]]) -> tuple[bool, bool]:
    """Return whether a launch reads what one before it wrote, and whether any uses bytes that another one writes."""
    read, written, reads_on, meet = NO_SPANS, NO_SPANS, False, False
    for reads, writes in zip(*bytes_of, strict=True):
        reads_on = reads_on or common(reads, written) > 0
        meet = meet or reads_on or common(writes, joined(read, written)) > 0
        read, written = joined(read, reads), joined(written, writes)
    return reads_on, meet
