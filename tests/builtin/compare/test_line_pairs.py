"""Lines of kernels are paired by what they say, in order; those that were rewritten by their words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.compare.figures import FigureTable
from kernbench_builtin.compare.line_pairs import paired_lines, unified, unlike_files


def lines(*texts: str, file: str = "k.py", first: int = 1) -> FigureTable:
    """Return a table with a line for each text, numbered from `first`; "" leaves a number out."""
    said = {f"{file}:{number}": text for number, text in enumerate(texts, first) if text}
    return FigureTable(dict.fromkeys(said, (1, 1.0)), said)


def names(before: FigureTable, after: FigureTable) -> set[str]:
    """Return what pairs are called, with where they are if that is in one table only."""
    pairs = paired_lines(before, after)
    return {name + ("" if old and new else " gone" if old else " come") for name, old, new in pairs}


LOAD, DOT, STORE = "a = tl.load(a_ptr + at)", "c = tl.dot(a, b)", "tl.store(c_ptr + at, c)"


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ((LOAD, DOT, STORE), (LOAD, DOT, STORE), {"k.py:1", "k.py:2", "k.py:3"}),
        ((LOAD, DOT, STORE), ("", "", LOAD, DOT, STORE), {"k.py:1→3", "k.py:2→4", "k.py:3→5"}),
        ((LOAD, DOT, STORE), (LOAD, STORE), {"k.py:1", "k.py:2 gone", "k.py:3→2"}),
        ((LOAD, STORE), (LOAD, DOT, STORE), {"k.py:1", "k.py:2 come", "k.py:2→3"}),
        ((LOAD, LOAD, DOT), (LOAD, DOT), {"k.py:1 gone", "k.py:2→1", "k.py:3→2"}),
        ((LOAD, "tl.store(at, x * 2.0)"), (LOAD, "x = x + 1.0", "tl.store(at, x * 3.0)"),
         {"k.py:1", "k.py:2 come", "k.py:2→3"}),
        ((DOT, LOAD), ("c = tl.dot(a, b, c)", "wait()", LOAD), {"k.py:1", "k.py:2 come", "k.py:2→3"}),
        ((LOAD,), (STORE.upper(),), {"k.py:1 gone", "k.py:1 come"}),
        ((), (LOAD,), {"k.py:1 come"}),
    ],
)  # fmt: skip
def test_pairs(before: tuple[str, ...], after: tuple[str, ...], pairs: set[str]) -> None:
    """What moved has both numbers, what was rewritten is the line with most of its words, others are gone or new."""
    assert names(lines(*before), lines(*after)) == pairs


def test_files_are_paired_by_name_or_as_the_only_others() -> None:
    """A kernel in a file of another name is the same kernel; of several nobody knows."""
    assert names(lines(LOAD, file="old.py"), lines(LOAD, file="new.py", first=4)) == {"old.py:1→new.py:4"}
    both = FigureTable({"a.py:1": (1, 1.0), "b.py:1": (1, 1.0)}, {"a.py:1": LOAD, "b.py:1": LOAD})
    assert names(both, lines(LOAD, file="a.py")) == {"a.py:1", "b.py:1 gone"}
    assert names(both, lines(LOAD, file="c.py")) == {"a.py:1 gone", "b.py:1 gone", "c.py:1 come"}


WORDS = st.lists(st.sampled_from(["a = b + c", "a = b + d", "load(x)", "store(x, y)", "z"]), max_size=7)


@given(WORDS, WORDS)
def test_each_line_is_paired_once_in_order(before: list[str], after: list[str]) -> None:
    """Pairs never cross; equal lines beside each other are found; exchanged runs give the same pairs."""
    old, new = lines(*before), lines(*after)
    found = [pair[1:] for pair in paired_lines(old, new)]
    assert sorted(one for one, _ in found if one) == sorted(old.rows)
    assert sorted(two for _, two in found if two) == sorted(new.rows)
    numbers = sorted((int(one[5:]), int(two[5:])) for one, two in found if one and two)
    assert [two for _, two in numbers] == sorted(two for _, two in numbers)
    assert {(pair[2], pair[1]) for pair in paired_lines(new, old)} == set(found)
    if before == after:
        assert all(one == two for one, two in found)


def test_a_long_diff_is_cut() -> None:
    """With how many lines are not shown."""
    found = [*unified("\n".join("a" * 9), "\n".join(map(str, range(99))), "k", "k")]
    assert len(found) == 61 and found[:2] == ["--- k", "+++ k"]
    assert found[-1] == "… 51 more lines differ"


def test_files_that_are_no_forms_of_one_are_not_compared() -> None:
    """One that has another name and most lines is; one that shares few is said to be another one."""
    one, renamed = lines(LOAD, DOT, STORE), lines(LOAD, DOT, "x = 1", file="new.py")
    other = lines("i = tl.arange(0, 8)", "x = tl.load(x_ptr + i)", STORE, file="add.py")
    assert unlike_files(one, renamed) is None and names(one, renamed)
    assert unlike_files(one, other) == ("k.py", "add.py") and names(one, other) == set()
    assert unlike_files(one, one) is None
