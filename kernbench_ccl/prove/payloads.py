"""Payloads: which elements of which contributors each element of a value is made of.

A payload is a row of segments; all elements of a segment are made alike: element `i` of it holds, for every term
((origin, first), count), element `first + i` of the vector that `origin` contributed, `count` times. That is exact,
and its size does not depend on how long the vectors are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from kernbench_core.errors import KernelError
from kernbench_core.values import Region, runs

__tracebackhide__ = True  # errors name the kernel's line, not one of these

Contributor = int | str
"""Who contributed: the number of a contributor, or in words what is no contribution ("the number 5.0")."""

Terms = Mapping[tuple[Contributor, int], int]
"""(origin, its element that the segment's first element holds) -> how often."""

NOWHERE = -1
"""The element of what is no contribution."""


class PayloadError(KernelError):
    """A kernel does something to payload that no collective may do; `line` is the kernel line, where it is known."""

    line = ""


@frozen
class Stretch:
    """Elements `start` to `end` (not included) of a value, made alike; `scaled` is how often they were averaged."""

    start: int
    end: int
    terms: Terms
    scaled: int = 0

    def cut(self, start: int, end: int, to: int) -> Stretch:
        """Return the elements from `start` to `end` as the elements from `to` on of another value."""
        return Stretch(to, to + end - start, shifted(self.terms, start - self.start), self.scaled)

    def continues(self, before: Stretch) -> bool:
        """Whether this is more of `before`."""
        if self.start != before.end or self.scaled != before.scaled or len(self.terms) != len(before.terms):
            return False
        return self.terms == shifted(before.terms, before.end - before.start)


Payload = tuple[Stretch, ...]
"""Segments in order, without gaps, over all elements of a value in row-major order."""

SHIFT = 40
"""Bits of an element's place in the numbers that are moved to find out where elements go."""


def shifted(terms: Terms, by: int) -> Terms:
    """Return terms as they are `by` elements further on."""
    if not by:
        return terms
    return {(o, first if isinstance(o, str) else first + by): n for (o, first), n in terms.items()}


def contribution(origin: Contributor, first: int, start: int, end: int) -> Stretch:
    """Return elements of a vector as it was contributed."""
    return Stretch(start, end, {(origin, NOWHERE if isinstance(origin, str) else first): 1})


def between(payload: Payload, start: int, end: int, to: int = 0) -> Iterator[Stretch]:
    """Yield the elements from `start` to `end` of a payload as the elements from `to` on of another value."""
    for segment in payload:
        if segment.end <= start:
            continue
        if segment.start >= end:
            break
        low, high = max(start, segment.start), min(end, segment.end)
        yield segment.cut(low, high, to + low - start)


def joined(segments: Iterable[Stretch]) -> Payload:
    """Return ascending segments with those that continue each other in one."""
    out: list[Stretch] = []
    for segment in segments:
        if out and segment.continues(out[-1]):
            last = out[-1]
            out[-1] = Stretch(last.start, segment.end, last.terms, last.scaled)
        else:
            out.append(segment)
    return tuple(out)


def aligned(first: Payload, second: Payload) -> Iterator[tuple[Stretch, Stretch]]:
    """Yield two payloads of one length in stretches over which both are made alike."""
    i = j = start = 0
    while i < len(first) and j < len(second):
        a, b = first[i], second[j]
        end = min(a.end, b.end)
        if a.start == b.start and a.end == b.end:
            yield a, b
        else:
            yield a.cut(start, end, start), b.cut(start, end, start)
        i += a.end == end
        j += b.end == end
        start = end


def length(payload: Payload) -> int:
    """Return how many elements a payload has."""
    return payload[-1].end if payload else 0


def contributed(segment: Stretch) -> bool:
    """Whether a segment holds anything that somebody contributed."""
    return any(not isinstance(origin, str) for origin, _ in segment.terms)


def together(a: Stretch, b: Stretch) -> Stretch:
    """Join the terms of two segments of one place; what was averaged may meet only what was."""
    if a.scaled != b.scaled and a.terms and b.terms:
        raise PayloadError("an average must not be reduced with what was not averaged; average once, at the end.")
    terms = dict(a.terms)
    for term, count in b.terms.items():
        terms[term] = terms.get(term, 0) + count
    return Stretch(a.start, a.end, terms, a.scaled if a.terms else b.scaled)


def spread(payload: Payload, shape: tuple[int, ...], to: tuple[int, ...]) -> Payload:
    """Return the payload of an operand as it broadcasts to a shape."""
    if shape == to:
        return payload
    if length(payload) == 1 and not contributed(payload[0]):
        return (Stretch(0, prod(to), payload[0].terms, payload[0].scaled),)
    places = np.arange(length(payload)).reshape(shape)
    return gathered([payload], np.broadcast_to(places, to).reshape(-1))


def gathered(operands: Sequence[Payload], places: np.ndarray[Any, Any]) -> Payload:
    """Return what stands at `places`, each (number of the operand << SHIFT) + element, as one payload."""
    if not places.size:
        return ()
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    starts = [0, *breaks.tolist()]
    ends = [*breaks.tolist(), places.size]
    out: list[Stretch] = []
    for start, end in zip(starts, ends, strict=True):
        operand, place = divmod(int(places[start]), 1 << SHIFT)
        out.extend(between(operands[operand], place, place + end - start, start))
    return joined(out)


def painted(segments: list[Stretch]) -> Payload:
    """Return segments put one after the other, later ones over earlier ones."""
    ascending = sorted(segments, key=lambda each: each.start)
    if all(a.end <= b.start for a, b in pairwise(ascending)):
        return joined(ascending)
    ground: list[Stretch] = []
    for segment in segments:
        under = tuple(ground)
        ground[:] = [
            *between(under, 0, segment.start),
            segment,
            *between(under, segment.end, max(length(under), segment.end), segment.end),
        ]
    return joined(ground)


def linked_runs(dst: Region, src: Region) -> Iterator[tuple[int, int, int]]:
    """Yield (where to, where from, bytes) of the contiguous runs of two regions of equal size."""
    if dst.contiguous and src.contiguous:
        yield dst.base, src.base, dst.nbytes
        return
    left, right = runs(dst), runs(src)
    to, room = next(left)
    come, rest = next(right)
    while True:
        nbytes = min(room, rest)
        yield to, come, nbytes
        to, room, come, rest = to + nbytes, room - nbytes, come + nbytes, rest - nbytes
        try:
            if not room:
                to, room = next(left)
            if not rest:
                come, rest = next(right)
        except StopIteration:
            return
