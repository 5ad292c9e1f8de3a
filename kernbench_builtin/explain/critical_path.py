"""The critical path of a request: what filled the time from its injection to its completion, without a gap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from kernbench_builtin.explain.ledger import PARTS
from kernbench_core.callsite import describe_site

if TYPE_CHECKING:
    from kernbench_builtin.explain.causes import Cause, Owner

#: What a segment can be, with what a reader is told.
SORTS = {
    "request": "the host takes a request in",
    "launch": "a launch on its way to the PEs",
    "start": "wait for the common start",
    "issue": "the PE's processor issues a command",
    "command": "a command on its way to its unit",
    "service": "a unit at work",
    "read": "a read of memory, there and back",
    "write": "a write to memory, there and back",
    "atomic": "a read-modify-write at a memory, there and back",
    "tile": "a tile on its way between units",
    "payload": "a message between PEs on its way",
    "note": "a note that a message has arrived",
    "credit": "a free slot's credit on its way back",
    "answer": "a completion on its way back",
    "response": "answers to a launch on their way back",
    "order": "a page-table update on its way to the PEs",
    "acknowledgement": "answers to a page-table update on their way back",
    "timer": "a wait of a model",
}

#: How a segment that is for no op is told alone, by its sort.
WITHOUT_OP = {
    **SORTS,
    "request": "taking the request in",
    "launch": "launch on its way",
    "response": "answers on their way",
    "timer": "waits of models",
}

Parts = tuple[float, float, float, float, float]
"""Propagation, serialisation, overhead, queueing and service, in ns."""


@attrs.frozen
class Segment:
    """One piece of a critical path: what it was (a key of `SORTS`), where, for which op, and from when to when (ns).

    `place` is a component, or `a->b` for what happened on the way. `op_id` is (PE index, issue number), `call` and
    `line` say which call of the kernel that is; they are None for what happens for no op. `parts` sum to the length
    exactly; `waited_at` is the wire or node at which most of the queueing happened.
    """

    sort: str
    place: str
    kind: str
    op_id: tuple[int, int] | None
    call: str | None
    line: str | None
    from_ns: float
    to_ns: float
    parts: Parts
    waited_at: str | None

    @property
    def ns(self) -> float:
        """How long it lasts."""
        return self.to_ns - self.from_ns

    def to_json(self) -> dict[str, object]:
        """Return plain JSON types, without what does not apply."""
        op = {} if self.op_id is None else {"op_id": list(self.op_id), "call": self.call, "line": self.line}
        waited = {} if self.waited_at is None else {"waited_at": self.waited_at}
        parts = {name: ns for name, ns in zip(PARTS, self.parts, strict=True) if ns}
        times = {"from_ns": self.from_ns, "to_ns": self.to_ns}
        return {"sort": self.sort, "place": self.place, "kind": self.kind, **op, **times, "parts": parts, **waited}


@attrs.frozen
class Fold:
    """Sum up the segments of one path that belong to one kernel line, or that are alike and belong to no op.

    `ops` is how many ops on the path came from that line; `parts` sum to `ns`. `waited_at` is where most of the
    queueing happened, None when there was none.
    """

    what: str
    line: str | None
    ops: int
    segments: int
    ns: float
    share: float
    parts: Parts
    waited_at: str | None


def critical_path(end: Cause, since: float, kind_of: Callable[[str], str]) -> tuple[Segment, ...]:
    """Follow causes back from `end` to `since` ns; return the segments in time order, without gap or overlap.

    `kind_of` gives the kind of a node. Where a unit was busy with an earlier op, the path leads through that op. A wait
    for a wire is part of the segment of the message that waited.
    """
    found: list[Segment] = []
    cause: Cause | None = end
    later: Cause | None = None
    while cause is not None and cause.time > since:
        begin = since if cause.parent is None else max(since, cause.parent.time)
        if cause.time > begin:
            owner = cause.owner
            if owner is None and cause.sort == "issue" and later is not None:
                owner = later.owner
            found.append(_segment(cause, begin, owner, kind_of))
        later, cause = cause, cause.parent
    return tuple(reversed(found))


def _segment(cause: Cause, begin: float, owner: Owner | None, kind_of: Callable[[str], str]) -> Segment:
    op_id, call, site = (None, None, None) if owner is None else owner
    stays = cause.source == cause.place
    kind = kind_of(cause.place) if stays else f"{kind_of(cause.source)} to {kind_of(cause.place)}"
    parts = _parts(cause, cause.time - begin)
    return Segment(
        cause.sort,
        cause.place if stays else f"{cause.source}->{cause.place}",
        kind,
        op_id,
        call,
        None if site is None else describe_site(site),
        begin,
        cause.time,
        parts,
        (cause.waited_at or None) if parts[3] else None,
    )


def _parts(cause: Cause, length: float) -> Parts:
    """Split a segment by the ledger of its message; what a timer or a service takes is its own.

    A message that is acted on at its first byte has a ledger that reaches further than its segment: bytes that were
    still to come are cut off.
    """
    if cause.sort == "start":
        return (0.0, 0.0, 0.0, length, 0.0)
    if cause.sort == "request":
        return (0.0, 0.0, length, 0.0, 0.0)
    if cause.sort in ("issue", "service", "timer"):
        return (0.0, 0.0, 0.0, 0.0, length)
    rest = length
    propagation = min(cause.propagation, rest)
    rest -= propagation
    overhead = min(cause.overhead, rest)
    rest -= overhead
    service = min(cause.service, rest)
    rest -= service
    serialisation = min(cause.serialisation, rest)
    return (propagation, serialisation, overhead, rest - serialisation, service)


def fold(segments: Iterable[Segment]) -> tuple[Fold, ...]:
    """Sum up segments by kernel line and call, and those of no op by what they are; the longest first."""
    groups: dict[tuple[str, str | None], list[Segment]] = {}
    for segment in segments:
        key = (segment.call or segment.sort, segment.line)
        groups.setdefault(key, []).append(segment)
    total = sum(segment.ns for group in groups.values() for segment in group)
    folds = (_fold(what, line, group, total) for (what, line), group in groups.items())
    return tuple(sorted(folds, key=lambda each: (-each.ns, each.what, each.line or "")))


def _fold(what: str, line: str | None, group: list[Segment], total: float) -> Fold:
    ns = sum(segment.ns for segment in group)
    ops = len({segment.op_id for segment in group if segment.op_id is not None})
    return Fold(what, line, ops, len(group), ns, ns / total if total else 0.0, sum_of(group), waited_most_at(group))


def waited_most_at(segments: Iterable[Segment]) -> str | None:
    """Return the wire or node at which segments queued most, None when they did not."""
    waits: dict[str, float] = {}
    for segment in segments:
        if segment.waited_at is not None:
            waits[segment.waited_at] = waits.get(segment.waited_at, 0.0) + segment.parts[3]
    return min(waits, key=lambda place: (-waits[place], place)) if waits else None


def sum_of(segments: Iterable[Segment]) -> Parts:
    """Add up the parts of segments."""
    sums = [0.0] * len(PARTS)
    for segment in segments:
        for index, ns in enumerate(segment.parts):
            sums[index] += ns
    return (sums[0], sums[1], sums[2], sums[3], sums[4])


def cut(segment: Segment, boundaries: Iterable[float]) -> Iterator[Segment]:
    """Yield `segment` cut at the ascending `boundaries` (ns) that lie inside it; parts go to the pieces in order."""
    begin, left = segment.from_ns, list(segment.parts)
    for end in (*(b for b in boundaries if segment.from_ns < b < segment.to_ns), segment.to_ns):
        room = end - begin
        taken = []
        for index, ns in enumerate(left):
            take = min(ns, room)
            taken.append(take)
            left[index] -= take
            room -= take
        parts = (taken[0], taken[1], taken[2], taken[3], taken[4])
        yield attrs.evolve(segment, from_ns=begin, to_ns=end, parts=parts)
        begin = end
