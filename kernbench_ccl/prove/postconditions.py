"""Who must end with what: the right payloads of every collective, and how what is there differs, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from kernbench_ccl.collectives import CallShape, CollectiveKind
from kernbench_ccl.prove.payloads import Contributor, Payload, Stretch, Terms, aligned, joined, shifted
from kernbench_ccl.prove.proof_case import LOST, SURPLUS
from kernbench_core.wording import number_runs

BEFORE = "what the output held before"
"""The origin of elements that nobody has written."""

_REPEATED = ("", "once", "twice")
_VERBS = {"sum": "sum", "avg": "average", "product": "product", "max": "maximum", "min": "minimum"}


@frozen
class Difference:
    """Elements `start` to `end` (not included) of a rank's output that are wrong alike, and what they should be."""

    start: int
    end: int
    right: Stretch
    found: Stretch


def right_payload(kind: CollectiveKind, call: CallShape, rank: int, places: int = 1) -> Payload | None:
    """Return what the output of `rank` must hold at the end; None where it has none.

    With `places` above 1 each rank brings that many vectors, one behind the other, and all of them are reduced.
    """
    ends = kind.ends(call, rank)
    if ends is None:
        return None
    segments: list[Stretch] = []
    end = 0
    for piece in (piece for _ in range(places) for piece in ends):
        start, end = end, end + piece.count
        if piece.count:
            terms: Terms = {
                (r, place * kind.in_count(call, r) + piece.first): 1 for r in piece.ranks for place in range(places)
            }
            segments.append(Stretch(start, end, terms, int(piece.reduced and call.redop == "avg")))
    return tuple(segments)


def differences(found: Payload, right: Payload) -> list[Difference]:
    """Return where a payload is not the right one, neighbours that differ alike together."""
    out: list[Difference] = []
    for is_there, must_be in aligned(joined(found), joined(right)):
        if is_there.terms == must_be.terms and is_there.scaled == must_be.scaled:
            continue
        last = out[-1] if out else None
        if last is not None and is_there.continues(last.found) and must_be.continues(last.right):
            found_all = Stretch(last.start, is_there.end, last.found.terms, last.found.scaled)
            right_all = Stretch(last.start, must_be.end, last.right.terms, last.right.scaled)
            out[-1] = Difference(last.start, is_there.end, right_all, found_all)
        else:
            out.append(Difference(is_there.start, is_there.end, must_be, is_there))
    return out


def nature(difference: Difference) -> frozenset[str]:
    """Return whether something is `LOST` from elements, or they hold a `SURPLUS`, or both."""
    found, right = difference.found.terms, difference.right.terms
    lost = any(found.get(term, 0) < count for term, count in right.items())
    more = any(count > right.get(term, 0) for term, count in found.items() if term[0] != BEFORE)
    scaled = difference.found.scaled != difference.right.scaled
    return frozenset([LOST] * lost + [SURPLUS] * (more or scaled))


def spell_range(start: int, end: int) -> str:
    """Spell elements from `start` to `end`, not included: `element 4`, `elements 4-7`."""
    return f"element {start}" if end == start + 1 else f"elements {start}-{end - 1}"


def spell_right(difference: Difference, redop: str | None) -> str:
    """Say what elements should be: `the sum of elements 4-7 of ranks 0-3`, `elements 4-7 of rank 1`."""
    terms, size = difference.right.terms, difference.end - difference.start
    if redop is None or len(terms) == 1:
        ((origin, first),) = terms
        return f"{spell_range(first, first + size)} of {spell_who([origin])}"
    firsts = sorted({first for _, first in terms})
    ranks = sorted({origin for origin, _ in terms if isinstance(origin, int)})
    places = " and ".join(spell_range(first, first + size) for first in firsts)
    return f"the {_VERBS[redop]} of {places} of {spell_who(ranks)}"


def spell_fault(difference: Difference) -> str:
    """Say what is wrong: `hold rank 1 twice and lack rank 3`."""
    right, found = difference.right, difference.found
    size = difference.end - difference.start
    several = size > 1
    extra: list[str] = []
    groups: dict[tuple[int | str, int], list[Contributor]] = {}
    for (origin, first), count in found.terms.items():
        if (origin, first) not in right.terms:
            groups.setdefault((origin if isinstance(origin, str) else first, count), []).append(origin)
        elif count != right.terms[origin, first]:
            groups.setdefault(("", count), []).append(origin)
    for (at, count), origins in groups.items():
        what = spell_who(origins) if at == "" else at
        what = f"{spell_range(at, at + size)} of {spell_who(origins)}" if isinstance(at, int) else str(what)
        extra.append(what if count == 1 else f"{what} {_times(count)}")
    lacking: list[Contributor] = [origin for origin, first in right.terms if (origin, first) not in found.terms]
    told = []
    if extra:
        told.append(f"{'hold' if several else 'holds'} {_and(extra)}")
    if lacking and (len(right.terms) > 1 or not extra):
        told.append(f"{'lack' if several else 'lacks'} {spell_who(lacking)}")
    if found.scaled != right.scaled:
        verb = "are" if several else "is"
        told.append(f"{verb} averaged {_times(found.scaled)}" if found.scaled else f"{verb} not averaged")
    return _and(told)


def spell_held(segment: Stretch) -> str:
    """Say what a segment holds: `elements 4-7 of ranks 0-1`."""
    size = segment.end - segment.start
    groups: dict[tuple[Contributor, int], list[Contributor]] = {}
    for (origin, first), count in segment.terms.items():
        groups.setdefault((origin if isinstance(origin, str) else first, count), []).append(origin)
    parts = []
    for (at, count), origins in groups.items():
        what = f"{spell_range(at, at + size)} of {spell_who(origins)}" if isinstance(at, int) else at
        parts.append(what if count == 1 else f"{what} {_times(count)}")
    return _and(parts) if parts else "nothing"


def _times(count: int) -> str:
    return _REPEATED[count] if count < len(_REPEATED) else f"{count} times"


def spell_who(origins: Sequence[Contributor]) -> str:
    """Spell ranks: `rank 3`, `ranks 0-2 and 5`."""
    ranks = sorted({origin for origin in origins if isinstance(origin, int)})
    spelt = [str(a) if a == b else f"{a}-{b}" if b > a + 1 else f"{a} and {b}" for a, b in number_runs(ranks)]
    spelt = [part for run in spelt for part in run.split(" and ")]
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {_and(spelt)}"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


class Admissible:
    """Tell whether a payload can be a part of some right output, on its way there."""

    def __init__(self, right: Mapping[int, Payload | None]) -> None:
        self._homes: dict[Contributor, list[tuple[int, Stretch]]] = {}
        seen: set[tuple[tuple[tuple[Contributor, int], ...], int]] = set()
        for payload in right.values():
            for segment in payload or ():
                key = (tuple(segment.terms), segment.end - segment.start)
                if key not in seen:
                    seen.add(key)
                    for origin, first in segment.terms:
                        self._homes.setdefault(origin, []).append((first, segment))

    def holds(self, segment: Stretch) -> bool:
        """Whether every element of a segment has only what belongs together, none of it too often."""
        for origin, first in segment.terms:
            if isinstance(origin, str):
                return False
            size = segment.end - segment.start
            return any(
                low < first + size and first < low + home.end - home.start and _within(segment, home, first - low)
                for low, home in self._homes.get(origin, ())
            )
        return True


def _within(segment: Stretch, home: Stretch, offset: int) -> bool:
    terms = shifted(home.terms, offset)
    return all(count <= terms.get(term, 0) for term, count in segment.terms.items()) and segment.scaled <= home.scaled
