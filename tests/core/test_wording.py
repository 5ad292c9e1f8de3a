"""Parts of sentences: how one ends, and how many numbers are told in one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.wording import join_names, number_runs, spell_numbers, with_full_stop


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("it raised ValueError: 3", "it raised ValueError: 3."),
        ("it raised ValueError: must be 3.", "it raised ValueError: must be 3."),
        ("invalid syntax. Perhaps you forgot a comma?", "invalid syntax. Perhaps you forgot a comma?"),
        ("it raised Stop: no!", "it raised Stop: no!"),
        ("and so on…", "and so on…"),
        ("", "."),
    ],
)
def test_a_sentence_has_one_full_stop(told: str, sentence: str) -> None:
    """Or the mark that it brings."""
    assert with_full_stop(told) == sentence


@given(st.lists(st.integers(0, 40)))
def test_runs_are_the_numbers_in_as_few_pieces_as_can_be(numbers: list[int]) -> None:
    """What the runs hold is what was given, and two runs never touch."""
    runs = number_runs(numbers)
    assert [n for first, last in runs for n in range(first, last + 1)] == sorted(set(numbers))
    assert all(earlier[1] + 1 < later[0] for earlier, later in pairwise(runs))


def test_numbers_and_names_are_spelled() -> None:
    """In order, each once; a single name is itself."""
    assert spell_numbers([8, 2, 3, 4, 3]) == "2-4, 8"
    assert join_names(["rank 6", "rank 0", "rank 1"]) == "ranks 0-1, 6"
    assert join_names(["rank 6", "rank 6"]) == "rank 6"
