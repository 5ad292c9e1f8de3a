"""A golden's name follows from its test's node id, is fit for any file system, and is nobody else's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import UsageError
from kernbench_core.testing.budgets.golden_names import case_of, folder_of, golden_name, owner_of

FUNCTIONS = st.sampled_from(["test_a", "test_ab", "TestA::test_a", "TestA::TestB::test_a", "pkg.mod.function"])
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.text("a.-[]", max_size=3)
CASES = st.one_of(FUNCTIONS, st.builds("{}[{}]".format, FUNCTIONS, IDS))


@pytest.mark.parametrize(
    ("case", "name", "file"),
    [
        ("test_rows", None, "test_rows.json"),
        ("TestRows::test_rows", None, "TestRows.test_rows.json"),
        ("test_rows[64-f16]", None, "test_rows-64-f16.json"),
        ("test_rows[64-f16]", "second", "test_rows-64-f16@second.json"),
        ("test_rows[F16]", None, "test_rows-F16~1f120261ca5a.json"),
        ("test_rows[64-]", None, "test_rows-64~9630061c42c6.json"),
        ("test_rows[]", None, "test_rows~158037fd55df.json"),
        ("test_rows[../../etc/passwd]", None, "test_rows-..-..-etc-passwd~031307722270.json"),
        (f"test_rows[{'x' * 300}]", None, f"test_rows-{'x' * 97}~15ce7c9618e4.json"),
    ],
)
def test_what_goldens_are_called(case: str, name: str | None, file: str) -> None:
    """As the test, where that makes a file name; else as it begins, and a digest of all of it."""
    assert golden_name(case, name) == file


@given(CASES, CASES, st.sampled_from([None, "a", "b"]), st.sampled_from([None, "a", "b"]))
def test_no_two_tests_share_a_file(one: str, other: str, first: str | None, second: str | None) -> None:
    """Not even where capitals are small letters; all are of safe letters and fit into a folder."""
    names = golden_name(one, first), golden_name(other, second)
    assert (names[0].lower() == names[1].lower()) is ((one, first) == (other, second))
    for file in names:
        assert re.fullmatch(r"[\w.@~-]{1,200}\.json", file, re.ASCII) and file[0] not in ".-"
    assert (owner_of(names[0]) == owner_of(names[1])) is (one == other)


@pytest.mark.parametrize("name", ["", "A", "a b", "../a", "a@b", "x" * 61, 3])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        golden_name("test_rows", name)
    assert str(caught.value) == (
        "the name of a golden must be small letters, digits, '_', '.' and '-', 60 at most, "
        f"not {name!r}."
    )


def test_where_they_lie() -> None:
    """In a folder for each file of tests; a node id may have any folders and colons."""
    assert folder_of(Path("/a/tests/test_b.py")) == Path("/a/tests/goldens/test_b")
    assert case_of("tests/test_b.py::TestC::test_d[::]") == "TestC::test_d[::]"
    assert case_of("docs/page.txt") == "page.txt"
