"""Check that every decision record stands in both languages, and that the two say the same where that can be compared.

    python tools/verify_adr_lang_pairs.py [DOCS] [--index] [--gaps]

`DOCS/adr` holds the English records, which win a conflict, `DOCS/adr-ko` a Korean twin of each, under the same name.
`DOCS/adr-proposed` and `DOCS/adr-history` are left alone, and so are `README.md` and what is no `.md` file. Of a pair,

- the names are `ADR-NNNN-<cat>-title.md`, once a number, with a category of `CATEGORIES`;
- the first line of both is `# ADR-NNNN: Title` with the number of the name; an em dash or a hyphen may stand for `:`;
- the lines from `## Status` to the next heading are equal, byte for byte but for CRLF and LF;
- headings have the same levels and numbers, in the same order, and fenced blocks of code are equal.

Every problem is told, in a sentence each, and the exit code is 1 then. Where there is a `DOCS/adr/README.md`,
its list of records, below `## Index`, must be complete, too; `--index` writes it, once all else is right.

`--gaps` tells where a record leads to a newer one, which its readers had not, and which hardware models none names.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).resolve().parent.parent
CATEGORIES = ("dev", "mem", "lat", "prog", "algo", "par", "api", "ver")
ENGLISH, KOREAN = "adr", "adr-ko"
INDEX = "## Index"
BEHIND = f"{ENGLISH}/README.md must list all records below {INDEX!r}; run this with --index."

_NAME = re.compile(r"ADR-(\d{4})-([a-z]+)-[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*\.md", re.ASCII)
_NUMBER = re.compile(r"ADR-(\d{4})(?!\d)", re.ASCII)
_TITLE = re.compile(r"# ADR-(\d{4}) *[:—-] *(?=\S)", re.ASCII)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_LABEL = re.compile(r"[A-Z]?\d+(?:\.\d+)*(?!\w)", re.ASCII)


class Heading(NamedTuple):
    """One heading: its level, its text, and the index of its line."""

    level: int
    text: str
    line: int

    @property
    def shape(self) -> str:
        """Say what both languages share: the level, and the number that the text begins with."""
        label = _LABEL.match(self.text)
        return "#" * self.level + (f" {label.group()}" if label else "")


class Record(NamedTuple):
    """One file: its place below the documents, its lines without line ends, its headings and blocks of code."""

    place: str
    lines: list[str]
    headings: list[Heading]
    blocks: list[str]

    @property
    def statuses(self) -> list[str]:
        """Give what stands below each `## Status`."""
        ends = [heading.line for heading in self.headings[1:]] + [len(self.lines)]
        return [
            "\n".join(self.lines[heading.line + 1 : end])
            for heading, end in zip(self.headings, ends, strict=False)
            if (heading.level, heading.text) == (2, "Status")
        ]


def parsed(place: str, text: str) -> Record:
    """Take a record apart; what stands in a fenced block is no heading, and one that is never closed is a block."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    headings: list[Heading] = []
    blocks: list[str] = []
    fence = ""
    for index, line in enumerate(lines):
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and mark.group(1).startswith(fence) and not mark.group(2).strip():
                fence = ""
            else:
                blocks[-1] += f"{line}\n"
        elif mark and not (mark.group(1)[0] == "`" and "`" in mark.group(2)):
            fence = mark.group(1)
            blocks.append(f"{mark.group(2).strip()}\n")
        elif heading := _HEADING.fullmatch(line):
            headings.append(Heading(len(heading.group(1)), (heading.group(2) or "").strip(), index))
    return Record(place, lines, headings, blocks)


def verify(docs: Path) -> list[str]:
    """Return a sentence for each thing that is wrong with the records below `docs`; none means that all is right."""
    missing = [name for name in (ENGLISH, KOREAN) if not (docs / name).is_dir()]
    if missing:
        return [f"{docs / name} must be a folder of records, and there is none; make it." for name in missing]
    english, korean = names(docs / ENGLISH), names(docs / KOREAN)
    problems = [*_misnamed(ENGLISH, english), *_misnamed(KOREAN, korean), *_unpaired(english, korean)]
    for name in sorted({*english, *korean}):
        twins = []
        for folder, there in ((ENGLISH, english), (KOREAN, korean)):
            if name in there:
                try:
                    record = parsed(f"{folder}/{name}", (docs / folder / name).read_bytes().decode("utf-8"))
                except UnicodeDecodeError as error:
                    problems.append(f"{folder}/{name} must be UTF-8, and byte {error.start} is not; save it as UTF-8.")
                else:
                    problems += _faults(record, name)
                    twins.append(record)
        if len(twins) == 2:
            problems += _differences(*twins)
    readme = docs / ENGLISH / "README.md"
    if not problems and readme.exists() and readme.read_text(encoding="utf-8") != indexed(docs):
        problems.append(BEHIND)
    return problems


def indexed(docs: Path) -> str:
    """Return the README of the English records with a line for each below its heading."""
    readme = docs / ENGLISH / "README.md"
    kept = readme.read_text(encoding="utf-8").partition(f"{INDEX}\n")[0].rstrip()
    lines = [f"{kept}\n", f"{INDEX}\n", "| number | category | decision | |", "|---|---|---|---|"]
    for name in names(docs / ENGLISH):
        with (docs / ENGLISH / name).open(encoding="utf-8-sig") as record:
            title = _TITLE.sub("", record.readline()).strip()
        _, number, category, _ = name.split("-", 3)
        lines.append(f"| [{number}]({name}) | {category} | {title} | [한국어](../{KOREAN}/{name}) |")
    return "\n".join(lines) + "\n"


def gaps(docs: Path, models: Sequence[str]) -> Iterator[str]:
    """Yield where an English record leads to a newer one, and which of some models none of them names."""
    texts = {name: (docs / ENGLISH / name).read_text(encoding="utf-8") for name in names(docs / ENGLISH)}
    for name, text in texts.items():
        own, *_ = _NUMBER.findall(name)
        newer = sorted({number for number in _NUMBER.findall(text) if number > own})
        if newer:
            yield f"{ENGLISH}/{name} leads to newer records: {', '.join(newer)}"
    for model in models:
        if not any(re.search(rf"\b{re.escape(model)}\b", text) for text in texts.values()):
            yield f"no record names the model {model}"


def _models() -> list[str]:
    """Return the names of the hardware models of this tree, without who provides them."""
    from kernbench_core.plugins import load_plugins, own_plugins

    found = load_plugins(own_plugins(), installed=False).components
    return sorted({name.partition(".")[2] for name in found if name.startswith("builtin.")})


def names(folder: Path) -> list[str]:
    """Return the names of the records in a folder, sorted."""
    return sorted(file.name for file in folder.iterdir() if file.suffix.lower() == ".md" and file.name != "README.md")


def _misnamed(folder: str, there: Sequence[str]) -> Iterator[str]:
    owners: dict[str, str] = {}
    for name in there:
        obeys, number = _NAME.fullmatch(name), _NUMBER.match(name)
        if obeys is None:
            yield f"{folder}/{name} must be named ADR-NNNN-<cat>-title.md, with four digits; rename it."
        elif obeys.group(2) not in CATEGORIES:
            known = ", ".join(CATEGORIES)
            yield f"{folder}/{name} must be of a category among {known}, not {obeys.group(2)!r}; rename it."
        if number and owners.setdefault(number.group(), name) != name:
            other = owners[number.group()]
            yield f"{folder}/{name} must have a number of its own, not that of {other}; take the next free one."


def _unpaired(english: Sequence[str], korean: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each record that stands alone, but one for two of a number that have different names."""
    lone = {name: _NUMBER.match(name) for name in korean if name not in english}
    for name in english:
        if name not in korean:
            other = next((each for each, number in lone.items() if number and name.startswith(number.group())), None)
            if other:
                del lone[other]
                yield f"{KOREAN}/{other} must be named {name}, as its English record is; rename one of them."
            else:
                yield f"{ENGLISH}/{name} must have a Korean twin, {KOREAN}/{name}, and there is none; write it."
    for name in lone:
        yield f"{KOREAN}/{name} must have an English record, {ENGLISH}/{name}, and there is none; write it."


def _faults(record: Record, name: str) -> Iterator[str]:
    """Yield what is wrong with one file, whatever its twin says."""
    number, first = _NUMBER.match(name), record.lines[0]
    title = _TITLE.match(first)
    if title is None:
        yield f"{record.place} must begin with '# ADR-NNNN: Title', not {first!r}; correct its first line."
    elif number and title.group(1) != number.group(1):
        yield f"{record.place} must have {number.group()} in its title, not ADR-{title.group(1)}; correct one of them."
    statuses = record.statuses
    if len(statuses) != 1:
        yield f"{record.place} must have '## Status' once, not {len(statuses)} times; correct its headings."
    elif not statuses[0].strip():
        yield f"{record.place} must say something below '## Status'; write its state there."


def _differences(english: Record, korean: Record) -> Iterator[str]:
    """Yield where the two languages of a record differ."""
    pair = f"{korean.place} must"
    if len(english.statuses) == len(korean.statuses) == 1 and english.statuses != korean.statuses:
        yield f"{pair} have the Status of {english.place}, byte for byte; copy it."
    for index, (right, twin) in enumerate(zip_longest(english.headings, korean.headings), 1):
        expected, found = (each.shape if each else "none" for each in (right, twin))
        if expected != found:
            yield f"{pair} have as heading {index} what {english.place} has, {expected}, not {found}; make them alike."
            break
    for index, (right_block, twin_block) in enumerate(zip_longest(english.blocks, korean.blocks), 1):
        if right_block != twin_block:
            yield f"{pair} have block of code {index} of {english.place}, character for character; copy it."
            break


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is wrong with the records, or how many pairs there are; return 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("docs", nargs="?", type=Path, default=REPO / "docs", metavar="DOCS")
    parser.add_argument("--index", action="store_true", help="write the list of records anew")
    parser.add_argument("--gaps", action="store_true", help="tell of newer records, and of models without one")
    options = parser.parse_args(argv)
    docs: Path = options.docs
    problems = verify(docs)
    if options.index and problems == [BEHIND]:
        (docs / ENGLISH / "README.md").write_text(indexed(docs), encoding="utf-8")
    elif problems:
        print("\n".join(problems))
        return 1
    number = len(names(docs / ENGLISH))
    print(f"{number} record{'s' * (number != 1)}, each in both languages")
    if options.gaps:
        print("\n".join(gaps(docs, _models())) or "no gaps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
