"""Parts of sentences: how one ends."""

from __future__ import annotations

import pytest

from kernbench_core.wording import with_full_stop


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
