"""The glossary: its terms in order, each with a page that explains it, alike in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
ENGLISH, KOREAN = DOCS / "glossary.md", DOCS / "ko" / "glossary.md"
_ROW = re.compile(r"\| ([^|]+) \| ([^|]+) \| \[[^]]+\]\(([^)]+)\) \|")
#: Words that any reader of the machine's pages meets.
NEEDED = {"SIP", "cube", "PE", "TCM", "SRAM", "HBM", "UCIe", "IPCQ", "m_cpu", "io_cpu", "op log", "phase 1, phase 2"}


def rows(page: Path) -> list[tuple[str, str, str]]:
    """Return term, meaning and link of every row below the heading of the table."""
    table = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")][2:]
    found = [_ROW.fullmatch(line) for line in table]
    assert None not in found
    return [(match[1], match[2], match[3]) for match in found if match]


def anchors(page: Path) -> set[str]:
    """Return what headings of a page are linked by, examples left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_terms_are_in_order_and_stand_once() -> None:
    terms = [term for term, _, _ in rows(ENGLISH)]
    assert terms == sorted(set(terms), key=str.casefold)
    assert not NEEDED.difference(terms)


def test_both_languages_have_the_same_terms_and_links() -> None:
    english, korean = rows(ENGLISH), rows(KOREAN)
    assert [(term, f"../{link}") for term, _, link in english] == [(term, link) for term, _, link in korean]
    assert [meaning for _, meaning, _ in english if re.search("[가-힣]", meaning)] == []
    assert [meaning for _, meaning, _ in korean if not re.search("[가-힣]", meaning)] == []


@pytest.mark.parametrize("page", [ENGLISH, KOREAN])
def test_links_lead_to_a_heading(page: Path) -> None:
    dead = []
    for term, _, link in rows(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve()
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            dead.append((term, link))
    assert dead == []
