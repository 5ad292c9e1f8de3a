"""Which line of one kernel is which of another: lines are paired by what they say, whatever number they have."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from kernbench_builtin.compare.figures import FigureTable

#: What both are called together, and the name in each, None where it has no such thing.
NamePair: TypeAlias = tuple[str, str | None, str | None]
#: Lines of a diff around what changed, and of a whole diff.
_AROUND: Final = 2
_MOST: Final = 60
#: Lines in a row that may be rewritten ones, and the share of its words that such a line keeps.
_REWRITTEN: Final = 100
_LEAST: Final = 0.5
_WORD: Final = re.compile(r"\w+|[^\w\s]")


def paired_names(before: FigureTable, after: FigureTable) -> Iterator[NamePair]:
    """Pair the things of two tables by name."""
    for name in before.rows:
        yield name, name, name if name in after.rows else None
    for name in after.rows:
        if name not in before.rows:
            yield name, None, name


def paired_lines(before: FigureTable, after: FigureTable) -> Iterator[NamePair]:
    """Pair kernel lines, `file:number`: file by file, in order, by what they say; one that was rewritten by its words.

    A file that only one of the two has is the new name of the only one that the other has, where most of the shorter
    one's lines are in both; else neither's lines are told.
    """
    old, new = _by_file(before), _by_file(after)
    files = [(name, name) for name in old if name in new]
    gone, come = [name for name in old if name not in new], [name for name in new if name not in old]
    if len(gone) == len(come) == 1:
        pair = gone.pop(), come.pop()
        files += [pair] if _alike_files(before, after, old[pair[0]], new[pair[1]]) else []
    for first, second in files:
        yield from _of_file(before, after, old[first], new[second])
    yield from ((name, name, None) for file in gone for name in old[file])
    yield from ((name, None, name) for file in come for name in new[file])


def unlike_files(before: FigureTable, after: FigureTable) -> tuple[str, str] | None:
    """Return the two files with kernel lines that only one of the two has each, and that are no forms of one."""
    old, new = _by_file(before), _by_file(after)
    gone, come = [name for name in old if name not in new], [name for name in new if name not in old]
    if len(gone) != 1 or len(come) != 1 or _alike_files(before, after, old[gone[0]], new[come[0]]):
        return None
    return gone[0], come[0]


def _alike_files(before: FigureTable, after: FigureTable, old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether most lines of the shorter one of two files are in both."""
    said = Counter(before.about.get(name, "") for name in old), Counter(after.about.get(name, "") for name in new)
    return 2 * (said[0] & said[1]).total() >= min(len(old), len(new))


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
    pairs = _pairs(*said)
    for first, second in pairs:
        yield _both(old[first], new[second]), old[first], new[second]
    taken = {first for first, _ in pairs}, {second for _, second in pairs}
    yield from ((name, name, None) for at, name in enumerate(old) if at not in taken[0])
    yield from ((name, None, name) for at, name in enumerate(new) if at not in taken[1])


def _pairs(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Return which texts of two lists belong together, in order; the same ones when the lists are exchanged."""
    if new < old:
        return [(first, second) for second, first in _pairs(new, old)]
    found: list[tuple[int, int]] = []
    for kind, first, end, begin, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += zip(range(first, end), range(begin, stop), strict=True)
        elif kind == "replace":
            alike = _alike(old[first:end][:_REWRITTEN], new[begin:stop][:_REWRITTEN])
            found += [(first + one, begin + other) for one, other in alike]
    return found


def _alike(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return which rewritten lines are which, in order, so that together they have the most words in common."""
    words = [[Counter(_WORD.findall(text)) for text in texts] for texts in (old, new)]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    share = [[_shared(one, other) for other in words[1]] for one in words[0]]
    for i, j in itertools.product(reversed(range(len(old))), reversed(range(len(new)))):
        best[i][j] = max(best[i + 1][j], best[i][j + 1], share[i][j] + best[i + 1][j + 1])
    found, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if share[i][j] and best[i][j] == share[i][j] + best[i + 1][j + 1]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _shared(one: Counter[str], other: Counter[str]) -> float:
    """Return which share of their words two lines have in common; 0 where that is too few for one line rewritten."""
    share = 2 * (one & other).total() / max(1, one.total() + other.total())
    return share if share >= _LEAST else 0.0


def _both(one: str, other: str) -> str:
    """Return what a line is called that has another number, or file, now: "gemm.py:22→23"."""
    if one == other:
        return one
    same_file = one.rpartition(":")[0] == other.rpartition(":")[0]
    return f"{one}→{other.rpartition(':')[2] if same_file else other}"
