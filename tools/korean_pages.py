"""Hold the Korean pages of docs/ko to the English ones: names, headings, blocks of code, links, and names in backticks.

    python tools/korean_pages.py [--update]

Twins are the front page, the glossary, tutorials and onboarding; other pages are English. All that is wrong is listed,
and the exit code is 1 then. `--update` writes the English blocks of code into the Korean pages that have as many.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: Folders of docs/ all of whose pages have a twin, and single pages that have one.
FOLDERS = ("onboarding", "tutorials")
PAGES = ("glossary.md", "index.md")

_BLOCK = re.compile(r"^```\w*\n.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")
_HANGUL = re.compile("[가-힣]")


def twins(docs: Path) -> list[str]:
    """Return the English pages that have a twin, relative to docs/."""
    below = [page.relative_to(docs).as_posix() for folder in FOLDERS for page in (docs / folder).glob("*.md")]
    return sorted([*PAGES, *below])


def faults(docs: Path) -> Iterator[str]:
    """Yield a sentence for everything in which pages and their twins differ."""
    wanted = set(twins(docs))
    there = {page.relative_to(docs / "ko").as_posix() for page in (docs / "ko").rglob("*.md")}
    for page in sorted(wanted - there):
        yield f"docs/{page} must have a Korean twin, docs/ko/{page}; translate it."
    for page in sorted(there - wanted):
        yield f"docs/ko/{page} must be the twin of an English page, docs/{page}; give both one name."
    for page in sorted(wanted & there):
        texts = [(docs / place / page).read_text(encoding="utf-8") for place in ("", "ko")]
        yield from (f"docs/ko/{page} {problem}" for problem in differences(page, *texts))


def differences(page: str, english: str, korean: str) -> Iterator[str]:
    """Yield how a Korean page differs from the English one, as ends of sentences."""
    if _BLOCK.findall(english) != _BLOCK.findall(korean):
        yield "must have the English page's blocks of code; run python tools/korean_pages.py --update."
    english, korean = _BLOCK.sub("", english), _BLOCK.sub("", korean)
    levels = [re.findall(r"^(#+) ", text, re.MULTILINE) for text in (english, korean)]
    if levels[0] != levels[1]:
        yield f"must have headings of the levels {_shown(levels[0])}, not {_shown(levels[1])}."
    if page != "glossary.md":  # each of its terms stands in English, and its own test compares them
        yield from _counted("name in backticks", *(Counter(_CODE.findall(text)) for text in (english, korean)))
    yield from _counted("link", _targets(page, english), _targets(f"ko/{page}", korean))
    for paragraph in re.split(r"\n\s*\n", korean):
        words = re.sub(r"\W", "", _CODE.sub("", _LINK.sub("", paragraph)))
        if len(words) > 15 and not _HANGUL.search(paragraph) and not paragraph.startswith("<!--"):
            yield f"must say in Korean {paragraph.strip().splitlines()[0][:60]!r}."


def _shown(levels: Sequence[str]) -> str:
    return " ".join(str(len(level)) for level in levels) or "none"


def _counted(what: str, english: Counter[str], korean: Counter[str]) -> Iterator[str]:
    for thing in sorted((english - korean).keys()):
        yield f"must have the {what} {thing} as often as the English page; it lacks {(english - korean)[thing]}."
    for thing in sorted((korean - english).keys()):
        yield f"must have the {what} {thing} as often as the English page, not {(korean - english)[thing]} more."


def _targets(page: str, text: str) -> Counter[str]:
    """Return where the links of a page lead, but those to its twin; a Korean page and its twin are one place."""
    found: Counter[str] = Counter()
    for target in _LINK.findall(text):
        if ":" not in target:
            place = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            target = place.removeprefix("ko/")
        if target != page.removeprefix("ko/"):  # to the other language
            found[target] += 1
    return found


def update(docs: Path) -> None:
    """Write the English blocks into the Korean pages that have as many."""
    for page in twins(docs):
        twin = docs / "ko" / page
        blocks = _BLOCK.findall((docs / page).read_text(encoding="utf-8"))
        text = twin.read_text(encoding="utf-8") if twin.exists() else ""
        if text and len(_BLOCK.findall(text)) == len(blocks):
            fresh = iter(blocks)
            twin.write_text(_BLOCK.sub(lambda _, fresh=fresh: next(fresh), text), encoding="utf-8")  # type: ignore[misc]


def main(argv: Sequence[str] | None = None) -> int:
    """List what is wrong; return 1 if anything is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the English blocks of code into the Korean pages")
    if parser.parse_args(argv).update:
        update(DOCS)
    found = list(faults(DOCS))
    print("\n".join(found) or "every Korean page is the twin of its English one")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
