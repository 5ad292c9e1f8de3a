"""What must hold of every probe: a machine that breaks one of these rules gives no result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kernbench_builtin.machines import naming
from kernbench_builtin.probe.transfers import MeasuredTransfer, Prober
from kernbench_core.errors import SanityError
from kernbench_core.units import format_bytes, format_time

_WIDER = 2.0


def check_probes(prober: Prober, measured: Sequence[MeasuredTransfer]) -> None:
    """Raise SanityError with one sentence for each rule that lone transfers break."""
    problems = [
        *(problem for one in measured for problem in _against_bound(one)),
        *_farther_not_faster(measured),
        *_wider_not_slower(prober, measured),
    ]
    if problems:
        raise SanityError("do not use this result: " + " ".join(problems))


def _against_bound(one: MeasuredTransfer) -> Iterator[str]:
    took = one.fabric_ns if one.chunks == 1 else one.total_ns
    if took < one.bound_ns:
        yield f"{_named(one)} took {format_time(took)}, below its lower bound of {format_time(one.bound_ns)}."
    elif one.chunks == 1 and one.exact and not _stored_by_pe(one) and took != one.bound_ns:
        yield (
            f"{_named(one)} took {format_time(took)}, but a lone chunk must take just its lower bound of "
            f"{format_time(one.bound_ns)}."
        )


def _stored_by_pe(one: MeasuredTransfer) -> bool:
    """Whether the data comes out of a scratchpad, which the bound does not have and may be slower than every wire."""
    return one.case.op == "write" and one.case.source != naming.HOST


def _lone_chunks(measured: Sequence[MeasuredTransfer]) -> Iterator[MeasuredTransfer]:
    """Yield those whose time has nothing of the hour (a refresh in between) and of turns on channels in it."""
    return (one for one in measured if one.exact and one.chunks == 1)


def _farther_not_faster(measured: Sequence[MeasuredTransfer]) -> Iterator[str]:
    """Compare lone chunks that differ in nothing but the way: same size, direction, source and kind of memory.

    Farther is what has the longer wires, no node of any kind less on its way and no lower bound: a cube that is near by
    its wires may be behind more routers, and the same bytes may begin elsewhere in the interleave of another slice.
    Several chunks may fall better into place on the channels when they come later.
    """
    groups: dict[tuple[object, ...], list[MeasuredTransfer]] = {}
    for one in _lone_chunks(measured):
        memory = one.case.memory.rpartition(".")[2].rstrip("0123456789")
        groups.setdefault((one.nbytes, one.case.op, one.case.source, memory), []).append(one)
    for group in groups.values():
        for near, far in pairwise(sorted(group, key=lambda one: one.distance_ns)):
            fair = near.bound_ns <= far.bound_ns and _nodes(near) <= _nodes(far)
            farther = far.distance_ns > near.distance_ns
            if fair and farther and far.total_ns < near.total_ns:
                yield (
                    f"{_named(far)} took {format_time(far.total_ns)}, less than {_named(near)} with "
                    f"{format_time(near.total_ns)}, though it is farther."
                )


def _wider_not_slower(prober: Prober, measured: Sequence[MeasuredTransfer]) -> Iterator[str]:
    for one in _lone_chunks(measured):
        wide = prober.measure(one.case, one.nbytes, wider=_WIDER)
        if wide.total_ns > one.total_ns:
            yield (
                f"{_named(one)} took {format_time(one.total_ns)}, but {format_time(wide.total_ns)} over wires "
                f"{_WIDER:g} times as wide; more bandwidth must never be slower."
            )


def _nodes(one: MeasuredTransfer) -> Counter[str]:
    """Count the nodes on a way by kind, which is their name without numbers."""
    return Counter(re.sub(r"\d+", "", node.rpartition(".")[2]) for node in one.path)


def _named(one: MeasuredTransfer) -> str:
    return f"{one.case.name!r} of {format_bytes(one.nbytes)}"
