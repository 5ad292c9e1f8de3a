"""Which line of one kernel is which of another: lines are paired by what they say, whatever number they have."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kernbench_core.comparison.figures import FigureTable

#: What both are called together, and the name in each, None where it has no such thing.
NamePair: TypeAlias = tuple[str, str | None, str | None]
#: Lines of a diff around what changed, and of a whole diff.
_AROUND, _MOST = 2, 60


def paired_names(before: FigureTable, after: FigureTable) -> Iterator[NamePair]:
    """Pair the things of two tables by name."""
    for name in before.rows:
        yield name, name, name if name in after.rows else None
    for name in after.rows:
        if name not in before.rows:
            yield name, None, name


def paired_lines(before: FigureTable, after: FigureTable) -> Iterator[NamePair]:
    """Pair kernel lines, `file:number`: file by file, in order, by what they say; one that was rewritten by its place.

    A file that only one of the two has is the new name of the only one that the other has.
    """
    old, new = _by_file(before), _by_file(after)
    files = [(name, name) for name in old if name in new]
    gone, come = [name for name in old if name not in new], [name for name in new if name not in old]
    if len(gone) == len(come) == 1:
        files.append((gone.pop(), come.pop()))
    for first, second in files:
        yield from _of_file(before, after, old[first], new[second])
    yield from ((name, name, None) for file in gone for name in old[file])
    yield from ((name, None, name) for file in come for name in new[file])


def unified(before: str, after: str, first: str, second: str) -> Iterator[str]:
    """Yield the lines of a unified diff of two sources, a short one."""
    found = [*difflib.unified_diff(before.splitlines(), after.splitlines(), first, second, lineterm="", n=_AROUND)]
    yield from found[:_MOST]
    if len(found) > _MOST:
        yield f"… {len(found) - _MOST:,} more lines differ"


def _by_file(table: FigureTable) -> dict[str, list[str]]:
    """Return the lines of each file, by number."""
    found: dict[str, list[str]] = {}
    for name in sorted(table.rows, key=lambda name: (name.rpartition(":")[0], _number(name))):
        found.setdefault(name.rpartition(":")[0], []).append(name)
    return found


def _number(name: str) -> int:
    number = name.rpartition(":")[2]
    return int(number) if number.isascii() and number.isdigit() else 0


def _of_file(before: FigureTable, after: FigureTable, old: Sequence[str], new: Sequence[str]) -> Iterator[NamePair]:
    said = [before.about.get(name, "") for name in old], [after.about.get(name, "") for name in new]
    for first, end, begin, stop in _stretches(*said):
        together = min(end - first, stop - begin)
        for one, other in zip(old[first:end], new[begin:stop], strict=False):
            yield _both(one, other), one, other
        yield from ((name, name, None) for name in old[first + together : end])
        yield from ((name, None, name) for name in new[begin + together : stop])


def _stretches(old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    """Return which stretches of two lists of texts belong together, the same ones when the lists are exchanged."""
    if new < old:
        return [(first, end, begin, stop) for begin, stop, first, end in _stretches(new, old)]
    return [codes[1:] for codes in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()]


def _both(one: str, other: str) -> str:
    """Return what a line is called that has another number, or file, now: "gemm.py:22→23"."""
    if one == other:
        return one
    same_file = one.rpartition(":")[0] == other.rpartition(":")[0]
    return f"{one}→{other.rpartition(':')[2] if same_file else other}"
