"""Where regions are filed so that those near a place are found: pages, on one of a few levels by a region's span.

A strided tile and a tensor of gigabytes are thus both filed in a handful of pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

from kernbench_core.values.region import Region

_T = TypeVar("_T")

# (page shift, largest span in bytes that is filed on the level)
_LEVELS: Final = ((10, 1 << 13), (16, 1 << 20), (24, 1 << 62))


class RegionPages(Generic[_T]):
    """Things that are filed under the pages that a region of theirs touches, in the order in which they were filed."""

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        self._pages: tuple[dict[int, list[_T]], ...] = tuple({} for _ in _LEVELS)

    def file(self, region: Region, thing: _T) -> None:
        """Put a thing on the pages that an ascending region touches."""
        level = _level_of(region)
        pages = self._pages[level]
        for page in _pages_of(region, _LEVELS[level][0], None):
            held = pages.get(page)
            if held is None:
                pages[page] = [thing]
            else:
                held.append(thing)

    def drop(self, region: Region, thing: _T) -> None:
        """Take a thing off the pages that it was put on with that region."""
        level = _level_of(region)
        pages = self._pages[level]
        for page in _pages_of(region, _LEVELS[level][0], None):
            held = pages[page]
            held.remove(thing)
            if not held:
                del pages[page]

    def near(self, region: Region) -> dict[_T, None]:
        """Return the things that are on a page that an ascending region touches: all that overlap it, and others."""
        found: dict[_T, None] = {}
        for level, (shift, _) in enumerate(_LEVELS):
            pages = self._pages[level]
            if pages:
                for page in _pages_of(region, shift, pages):
                    found.update(dict.fromkeys(pages.get(page, ())))
        return found

    def fork(self) -> RegionPages[_T]:
        """Return a copy that shares the things but no container."""
        copy: RegionPages[_T] = RegionPages()
        copy._pages = tuple({page: list(held) for page, held in pages.items()} for pages in self._pages)
        return copy


def _level_of(region: Region) -> int:
    span = region.end - region.base
    return next(level for level, (_, limit) in enumerate(_LEVELS) if span <= limit)


def _pages_of(region: Region, shift: int, among: dict[int, Any] | None) -> Iterator[int] | range | list[int]:
    """Return the pages that an ascending region touches, or of many only those that are `among` the given."""
    if region.rows > 1 and region.pitch >> shift:
        return _row_pages(region, shift)
    first, last = region.base >> shift, (region.end - 1) >> shift
    if among is not None and last - first > len(among):
        return [page for page in among if first <= page <= last]
    return range(first, last + 1)


def _row_pages(region: Region, shift: int) -> Iterator[int]:
    done = region.base >> shift
    yield done
    for start in range(region.base, region.end, region.pitch):
        for page in range(start >> shift, ((start + region.row_bytes - 1) >> shift) + 1):
            if page > done:
                done = page
                yield page
