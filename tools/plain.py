"""Refuse wording in the English pages that readers stumble over, and sentences that are too long.

    python tools/plain.py [--longest N] [PAGE ...]

Pages are README.md, CONTRIBUTING.md and those below docs/, except decision records, Korean and generated ones. Code,
names in backticks and tables are not looked at. Each finding is a line with file, line, what is there, and what to
write; the exit code is 1 then. `--longest N` prints the N longest sentences.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
APART = ("adr", "adr-history", "adr-ko", "adr-proposed", "ko", "reference")
#: The most words of a sentence, those in backticks and links counted as one each.
MOST_WORDS = 60
#: What is refused, as a regular expression, and what to write instead.
REFUSED = {
    r"\b(?:is|are|be|was) told\b": "who says it: 'a warning names', 'the result says'",
    r"\btells? (?:of|whether|that)\b": "'says'",
    r"\b(?:comes?|came) of (?:it|them|that|this|these|the|a|one|imports)\b": "'comes from'",
    r"\bcircles? of\b": "'cycle of'",
    r"\bthere is to say\b": "what it prints",
    r"\banew\b": "'again'",
    r"\bthe begin\b": "'the beginning'",
    r"\b[Ww]hoever\b": "whom you mean",
    r"\b[Ww]ho (?:lacks|asks|wants)\b": "whom you mean: 'without Cython, …'",
    r"\bbut for\b": "'except'",
    r"\bof somebody(?: else)?(?:'s)?\b": "whose it is",
    r"\ba stranger(?:'s)?\b": "'a plug-in', 'another author'",
    r"\bledgers?\b": "'totals', 'figures'",
    r"\bsooner\b": "'earlier' or 'faster'",
    r"\bstands? (?:beside|behind|there|above|below|in \[|in `)": "'is'",
    r"\bstood\b": "'was'",
}  # fmt: skip
_NOT_PROSE = re.compile(r"^```.*?^```$|^    .*?$|^\|.*?$|<!--.*?-->|^#.*?$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`|\]\([^)\s]+\)|!\[[^\]]*\]")
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=\S)|\n\s*\n|\n(?=[-*] |\d+\. )")


def prose(text: str) -> str:
    """Return a page with everything that is no prose replaced by blanks, line for line."""
    blank = _NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", "", found.group()), text)
    return _CODE.sub("`", blank)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence of a page with its line; a part before a colon or semicolon counts as one."""
    at = 0
    shown = prose(text)
    for end in [found.start() for found in _SENTENCE.finditer(shown)] + [len(shown)]:
        sentence = shown[at:end]
        if sentence.strip():
            yield shown.count("\n", 0, at + len(sentence) - len(sentence.lstrip())) + 1, " ".join(sentence.split())
        at = end


def faults(name: str, text: str) -> Iterator[str]:
    """Yield a line for everything in a page that is refused."""
    shown = prose(text)
    for pattern, instead in REFUSED.items():
        for found in re.finditer(pattern.replace(" ", r"\s+"), shown):
            words = " ".join(found.group().split())
            yield f"{name}:{shown.count(chr(10), 0, found.start()) + 1}: not '{words}'; write {instead}."
    for line, sentence in sentences(text):
        if len(sentence.split()) > MOST_WORDS:
            words = " ".join(sentence.split()[:6])
            yield f"{name}:{line}: a sentence of {len(sentence.split())} words, at most {MOST_WORDS}: '{words} …'"


def pages() -> list[Path]:
    """Return the pages that are held to this."""
    below = [page for page in (REPO / "docs").rglob("*.md") if page.relative_to(REPO / "docs").parts[0] not in APART]
    return [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted(below)]


def main(argv: Sequence[str] | None = None) -> int:
    """Check pages; return 1 when something is refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    parser.add_argument("--longest", type=int, default=0, metavar="N", help="print the N longest sentences")
    options = parser.parse_args(argv)
    texts = {page.resolve(): page.read_text(encoding="utf-8") for page in options.pages or pages()}
    if options.longest:
        every = [(page, line, said) for page, text in texts.items() for line, said in sentences(text)]
        for page, line, said in sorted(every, key=lambda row: -len(row[2].split()))[: options.longest]:
            print(f"{page}:{line}: {len(said.split())} words: {said}")
        return 0
    found = [fault for page, text in texts.items() for fault in faults(page.relative_to(REPO).as_posix(), text)]
    print("\n".join(found) or "every page is plain")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
