"""Where regions are filed so that those near a place are found: pages, on one of a few levels by a region's span.

A strided tile and a tensor of gigabytes are thus both filed in a handful of pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kernbench_core.values.region import Region, overlaps

#: Of each level the page shift, and of all but the last the largest span in bytes that is filed there.
_SHIFTS: Final = (10, 16, 24)
_SMALL, _MIDDLE = 1 << 13, 1 << 20


class Filed:
    """What is filed under a region, which ascends."""

    __slots__ = ("region",)

    def __init__(self, region: Region) -> None:
        self.region = region


class RegionPages:
    """Things that are filed under the pages that their regions touch, in the order in which they were filed."""

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        self._pages: tuple[dict[int, list[Filed]], ...] = ({}, {}, {})

    def file(self, thing: Filed) -> None:
        """Put a thing on the pages that its region touches."""
        level = _level_of(thing.region)
        pages = self._pages[level]
        for page in _pages_of(thing.region, _SHIFTS[level]):
            held = pages.get(page)
            if held is None:
                pages[page] = [thing]
            else:
                held.append(thing)

    def drop(self, thing: Filed) -> None:
        """Take a thing off the pages that it was put on."""
        level = _level_of(thing.region)
        pages = self._pages[level]
        for page in _pages_of(thing.region, _SHIFTS[level]):
            held = pages[page]
            held.remove(thing)
            if not held:
                del pages[page]

    def near(self, region: Region) -> list[Any]:
        """Return the things that are on a page that an ascending region touches: all that overlap it, and others."""
        found: list[Any] = []
        base, last = region.base, region.base + (region.rows - 1) * region.pitch + region.row_bytes - 1
        for level in range(3):
            pages = self._pages[level]
            if pages:
                shift = _SHIFTS[level]
                first, end = base >> shift, last >> shift
                if first == end:
                    found += pages.get(first, ())
                else:
                    several: dict[Filed, None] = {}
                    for page in _known_pages(region, shift, pages, first, end):
                        several.update(dict.fromkeys(pages.get(page, ())))
                    found += several
        return found

    def touching(self, region: Region) -> list[Any]:
        """Return the things whose regions share a byte with an ascending region."""
        found: list[Any] = []
        for thing in self.near(region):
            if overlaps(thing.region, region):
                found.append(thing)
        return found

    def fork(self) -> RegionPages:
        """Return a copy that shares the things but no container."""
        copy = RegionPages()
        copy._pages = tuple([{page: list(held) for page, held in pages.items()} for pages in self._pages])
        return copy


def _level_of(region: Region) -> int:
    span = (region.rows - 1) * region.pitch + region.row_bytes
    return 0 if span <= _SMALL else 1 if span <= _MIDDLE else 2


def _known_pages(region: Region, shift: int, among: dict[int, list[Filed]], first: int, last: int) -> Sequence[int]:
    """Return the pages that an ascending region touches, `first` to `last`, or of many only those `among` the given."""
    if last - first > len(among) and not (region.rows > 1 and region.pitch >> shift):
        return [page for page in among if first <= page <= last]
    return _pages_of(region, shift)


def _pages_of(region: Region, shift: int) -> Sequence[int]:
    """Return the pages that an ascending region touches."""
    base, width, pitch = region.base, region.row_bytes, region.pitch
    end = base + (region.rows - 1) * pitch + width
    if region.rows == 1 or not pitch >> shift:
        return range(base >> shift, ((end - 1) >> shift) + 1)
    done = base >> shift
    found = [done]
    for start in range(base, end, pitch):
        for page in range(start >> shift, ((start + width - 1) >> shift) + 1):
            if page > done:
                done = page
                found.append(page)
    return found
