"""tools/plain.py: wording that pages may not have, and sentences that are too long."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.conftest import loaded_tool


@pytest.fixture(scope="module")
def plain() -> Iterator[ModuleType]:
    with loaded_tool("plain") as tool:
        yield tool


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A wrong one is told.", ["p.md:1: not 'is told'; write who says it: 'a warning names', 'the result says'."]),
        ("One line.\n\nTimes and data come of\none run.", ["p.md:3: not 'come of one'; write 'comes from'."]),
        ("A `come of it` and a [b](is/told.md) are no prose.", []),
        ("```text\nWhoever is told\n```\n\n| is told | anew |\n\n    is told\n\n<!-- is told -->\n", []),
        ("A retold story, of anewer kind.", []),
        ("A cycle. " + "word " * 60 + "end.", [f"p.md:1: a sentence of 61 words, at most 60: '{'word ' * 6}…'"]),
        ("word " * 30 + "end: " + "word " * 31 + "end.", []),
        ("- " + "word " * 31 + "\n- " + "word " * 31, []),
    ],
)
def test_what_is_refused(plain: ModuleType, text: str, found: list[str]) -> None:
    assert list(plain.faults("p.md", text)) == found


def test_every_page_is_plain(plain: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    code = plain.main([])
    assert (code, capsys.readouterr().out) == (0, "every page is plain\n")


def test_the_longest_sentences_are_shown(plain: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert plain.main(["--longest", "3"]) == 0
    counts = [int(line.split(": ")[1].split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert counts == sorted(counts, reverse=True) and len(counts) == 3 and counts[0] <= plain.MOST_WORDS
