"""tools/verify_adr_lang_pairs.py finds what is wrong with decision records in two languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import loaded_tool

REPO = Path(__file__).parents[1]
NAME = "ADR-0007-dev-wires.md"
STATUS = "Accepted.\n"
ENGLISH = (
    "# ADR-0007: Wires\n\n## Status\n\nAccepted.\n\n## Decision\n\nA wire.\n\n### D1. Rule\n\n```python\nx = 1\n```\n"
)
KOREAN = (
    "# ADR-0007: 배선\n\n## Status\n\nAccepted.\n\n## Decision\n\n배선이다.\n\n### D1. 규칙\n\n```python\nx = 1\n```\n"
)


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """Return the tool as a module."""
    with loaded_tool("verify_adr_lang_pairs") as module:
        yield module


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a folder with one right pair."""
    write(tmp_path / "adr" / NAME, ENGLISH)
    write(tmp_path / "adr-ko" / NAME, KOREAN)
    return tmp_path


def write(file: Path, text: str) -> None:
    """Write a file with exactly these line ends."""
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode())


def edit(file: Path, old: str, new: str) -> None:
    """Replace text that stands once in a file."""
    text = file.read_bytes().decode()
    assert text.count(old) == 1
    write(file, text.replace(old, new))


def both(docs: Path, name: str, old: str, new: str) -> None:
    """Add a pair like the right one, with a change in both languages."""
    for folder, text in (("adr", ENGLISH), ("adr-ko", KOREAN)):
        assert old in text
        write(docs / folder / name, text.replace(old, new))


def test_the_records_of_this_tree_are_right(tool: ModuleType) -> None:
    assert tool.verify(REPO / "docs") == []


def test_a_right_pair_is_counted(tool: ModuleType, docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both(docs, "ADR-0008-ver-two_ways-more.md", "ADR-0007", "ADR-0008")
    assert tool.main([str(docs)]) == 0
    assert capsys.readouterr().out == "2 records, each in both languages\n"


def test_all_problems_are_told_in_a_sentence_each(
    tool: ModuleType, docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(docs / "adr" / NAME, "# ADR-0007: Wires", "# Wires")
    edit(docs / "adr-ko" / NAME, STATUS, "Proposed.\n")
    write(docs / "adr" / "notes.md", "# ADR-0009: Notes\n\n## Status\n\nAccepted.\n")
    assert tool.main([str(docs)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "adr/notes.md must be named ADR-NNNN-<cat>-title.md, with four digits; rename it.",
        "adr/notes.md must have a Korean twin, adr-ko/notes.md, and there is none; write it.",
        f"adr/{NAME} must begin with '# ADR-NNNN: Title', not '# Wires'; correct its first line.",
        f"adr-ko/{NAME} must have the Status of adr/{NAME}, byte for byte; copy it.",
    ]


@pytest.mark.parametrize(
    ("lone", "problem"),
    [
        ("adr", f"adr/{NAME} must have a Korean twin, adr-ko/{NAME}, and there is none; write it."),
        ("adr-ko", f"adr-ko/{NAME} must have an English record, adr/{NAME}, and there is none; write it."),
    ],
)
def test_a_missing_twin_is_found_on_either_side(tool: ModuleType, docs: Path, lone: str, problem: str) -> None:
    (docs / ({"adr", "adr-ko"} - {lone}).pop() / NAME).unlink()
    assert tool.verify(docs) == [problem]


def test_a_twin_by_another_name_is_one_problem(tool: ModuleType, docs: Path) -> None:
    (docs / "adr-ko" / NAME).rename(docs / "adr-ko" / "ADR-0007-dev-baeseon.md")
    assert tool.verify(docs) == [
        f"adr-ko/ADR-0007-dev-baeseon.md must be named {NAME}, as its English record is; rename one of them."
    ]


@pytest.mark.parametrize("folder", ["adr", "adr-ko"])
def test_a_title_has_the_number_of_its_file(tool: ModuleType, docs: Path, folder: str) -> None:
    edit(docs / folder / NAME, "ADR-0007", "ADR-0070")
    assert tool.verify(docs) == [f"{folder}/{NAME} must have ADR-0007 in its title, not ADR-0070; correct one of them."]


@pytest.mark.parametrize("separator", [":", " —", " -"])
def test_three_separators_of_a_title_are_taken(tool: ModuleType, docs: Path, separator: str) -> None:
    edit(docs / "adr" / NAME, "ADR-0007:", f"ADR-0007{separator}")
    assert tool.verify(docs) == []


@pytest.mark.parametrize("title", ["# ADR-0007 Wires", "## ADR-0007: Wires", "# ADR-00071: Wires", "# ADR-0007: ", ""])
def test_other_titles_are_refused(tool: ModuleType, docs: Path, title: str) -> None:
    edit(docs / "adr" / NAME, "# ADR-0007: Wires", title)
    assert tool.verify(docs)[0] == (
        f"adr/{NAME} must begin with '# ADR-NNNN: Title', not {title!r}; correct its first line."
    )


@pytest.mark.parametrize(
    "name", ["ADR-007-dev-wires.md", "ADR-00071-dev-wires.md", "adr-0007-dev-wires.md", "ADR-0007-dev.md", "A.MD"]
)
def test_names_obey_the_pattern(tool: ModuleType, docs: Path, name: str) -> None:
    for folder in ("adr", "adr-ko"):
        (docs / folder / NAME).rename(docs / folder / name)
    assert tool.verify(docs) == [
        f"{folder}/{name} must be named ADR-NNNN-<cat>-title.md, with four digits; rename it."
        for folder in ("adr", "adr-ko")
    ]


def test_a_category_is_one_of_eight(tool: ModuleType, docs: Path) -> None:
    for number, category in enumerate(("mem", "lat", "prog", "algo", "par", "api", "ver", "hw"), 10):
        both(docs, f"ADR-00{number}-{category}-wires.md", "ADR-0007", f"ADR-00{number}")
    assert tool.verify(docs) == [
        f"{folder}/ADR-0017-hw-wires.md must be of a category among dev, mem, lat, prog, algo, par, api, ver, "
        "not 'hw'; rename it."
        for folder in ("adr", "adr-ko")
    ]


def test_a_number_is_given_once(tool: ModuleType, docs: Path) -> None:
    both(docs, "ADR-0007-lat-wires.md", "", "")
    assert tool.verify(docs) == [
        f"{folder}/ADR-0007-lat-wires.md must have a number of its own, not that of {NAME}; take the next free one."
        for folder in ("adr", "adr-ko")
    ]


def test_five_digits_are_no_number(tool: ModuleType, docs: Path) -> None:
    """They share none with a record whose four are the same."""
    both(docs, "ADR-00071-dev-more.md", "ADR-0007", "ADR-0007")
    assert [problem.split(" ", 1)[1] for problem in tool.verify(docs)] == [
        "must be named ADR-NNNN-<cat>-title.md, with four digits; rename it."
    ] * 2


def test_a_file_that_is_not_utf_8_is_named(tool: ModuleType, docs: Path) -> None:
    (docs / "adr-ko" / NAME).write_bytes("# ADR-0007: 배선".encode("euc-kr"))
    assert tool.verify(docs) == [f"adr-ko/{NAME} must be UTF-8, and byte 12 is not; save it as UTF-8."]


@pytest.mark.parametrize(
    ("status", "times"),
    [("## State\n\nAccepted.\n", 0), ("# Status\n\nAccepted.\n", 0), ("## Status\n\nA.\n\n## Status\n\nB.\n", 2)],
)
def test_status_stands_once(tool: ModuleType, docs: Path, status: str, times: int) -> None:
    both(docs, NAME, f"## Status\n\n{STATUS}", status)
    assert tool.verify(docs) == [
        f"{folder}/{NAME} must have '## Status' once, not {times} times; correct its headings."
        for folder in ("adr", "adr-ko")
    ]


def test_a_status_says_something(tool: ModuleType, docs: Path) -> None:
    both(docs, NAME, STATUS, "  ")
    assert tool.verify(docs) == [
        f"{folder}/{NAME} must say something below '## Status'; write its state there." for folder in ("adr", "adr-ko")
    ]


@pytest.mark.parametrize("status", ["Accepted\n", "Accepted. \n", "\nAccepted.\n", "Accepted.\nRefined by ADR-0008.\n"])
def test_a_status_is_equal_byte_for_byte(tool: ModuleType, docs: Path, status: str) -> None:
    edit(docs / "adr-ko" / NAME, STATUS, status)
    assert tool.verify(docs) == [f"adr-ko/{NAME} must have the Status of adr/{NAME}, byte for byte; copy it."]


def test_line_ends_and_a_mark_of_byte_order_change_nothing(tool: ModuleType, docs: Path) -> None:
    text = (docs / "adr-ko" / NAME).read_bytes()
    (docs / "adr-ko" / NAME).write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    assert tool.verify(docs) == []


def test_a_status_ends_at_the_next_heading_of_any_level_and_not_in_code(tool: ModuleType, docs: Path) -> None:
    both(docs, NAME, STATUS, f"{STATUS}\n```sh\n## a comment\n```\n\n### Notes\n")
    edit(docs / "adr-ko" / NAME, "### Notes\n", "### 참고\n\n한국어.\n")
    assert tool.verify(docs) == []
    edit(docs / "adr-ko" / NAME, "## a comment", "## 주석")
    assert tool.verify(docs) == [
        f"adr-ko/{NAME} must have the Status of adr/{NAME}, byte for byte; copy it.",
        f"adr-ko/{NAME} must have block of code 1 of adr/{NAME}, character for character; copy it.",
    ]


@pytest.mark.parametrize(
    ("old", "new", "index", "expected", "found"),
    [
        ("### D1. 규칙", "#### D1. 규칙", 4, "### D1", "#### D1"),
        ("### D1. 규칙", "### D2. 규칙", 4, "### D1", "### D2"),
        ("### D1. 규칙\n", "", 4, "### D1", "none"),
        ("배선이다.\n", "배선이다.\n\n## Consequences\n", 4, "### D1", "##"),
    ],
)
def test_headings_agree(
    tool: ModuleType, docs: Path, old: str, new: str, index: int, expected: str, found: str
) -> None:
    edit(docs / "adr-ko" / NAME, old, new)
    assert tool.verify(docs) == [
        f"adr-ko/{NAME} must have as heading {index} what adr/{NAME} has, {expected}, not {found}; make them alike."
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = 1", "x = 2"),
        ("```python\nx", "```yaml\nx"),
        ("```python\nx = 1\n```\n", ""),
        ("1\n```", "1\n```\n\n~~~\n~~~"),
    ],
)
def test_blocks_of_code_are_equal(tool: ModuleType, docs: Path, old: str, new: str) -> None:
    edit(docs / "adr-ko" / NAME, old, new)
    index = 2 if "~" in new else 1
    assert tool.verify(docs) == [
        f"adr-ko/{NAME} must have block of code {index} of adr/{NAME}, character for character; copy it."
    ]


def test_a_fence_is_closed_by_one_as_long_of_its_kind(tool: ModuleType, docs: Path) -> None:
    """What stands between is code, headings and shorter fences among it."""
    block = "````text\n```\n# no heading\n~~~~\n````\n"
    both(docs, NAME, "```python\nx = 1\n```\n", f"{block}\n## Consequences\n")
    edit(docs / "adr-ko" / NAME, "## Consequences", "# 결과")
    assert tool.verify(docs) == [
        f"adr-ko/{NAME} must have as heading 5 what adr/{NAME} has, ##, not #; make them alike."
    ]


def test_other_folders_and_files_are_left_alone(tool: ModuleType, docs: Path) -> None:
    for name in ("adr-proposed/idee.md", "adr-history/ADR-0007-dev-wires.md", "adr-ko/README.md", "adr/a.svg"):
        write(docs / name, "Draht\n")
    assert tool.verify(docs) == []


def test_the_index_is_one_line_a_record(tool: ModuleType, docs: Path) -> None:
    """It is written anew below its heading, and what stands before stays."""
    both(docs, "ADR-0003-mem-slots.md", "ADR-0007", "ADR-0003")
    readme = docs / "adr" / "README.md"
    write(readme, "# Records\n\n## Index\n\nold\n")
    assert tool.main([str(docs), "--index"]) == 0
    assert readme.read_text() == (
        "# Records\n\n## Index\n\n| number | category | decision | |\n|---|---|---|---|\n"
        "| [0003](ADR-0003-mem-slots.md) | mem | Wires | [한국어](../adr-ko/ADR-0003-mem-slots.md) |\n"
        f"| [0007]({NAME}) | dev | Wires | [한국어](../adr-ko/{NAME}) |\n"
    )


def test_an_index_that_is_behind_is_wrong(tool: ModuleType, docs: Path) -> None:
    readme = docs / "adr" / "README.md"
    write(readme, "# Records\n\n## Index\n")
    assert tool.verify(docs) == ["adr/README.md must list all records below '## Index'; run this with --index."]
    write(readme, "# Records\n")
    assert tool.verify(docs) == ["adr/README.md must list all records below '## Index'; run this with --index."]
    assert tool.main([str(docs), "--index"]) == 0
    assert tool.verify(docs) == []


def test_an_index_is_not_written_over_other_problems(tool: ModuleType, docs: Path) -> None:
    """Nor is it one of them, where titles cannot be read."""
    readme = docs / "adr" / "README.md"
    write(readme, "# Records\n\n## Index\n")
    (docs / "adr" / NAME).rename(docs / "adr" / "notes.md")
    assert not any("## Index" in problem for problem in tool.verify(docs))
    assert tool.main([str(docs), "--index"]) == 1
    assert readme.read_text() == "# Records\n\n## Index\n"


def test_a_folder_that_is_missing_is_named(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "adr").mkdir()
    assert tool.verify(tmp_path) == [f"{tmp_path / 'adr-ko'} must be a folder of records, and there is none; make it."]


def test_gaps_are_told_and_are_no_problems(tool: ModuleType, docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record that leads to a newer one, and a model that none names."""
    told = "A wire of pe_dma, as ADR-0003 and ADR-0009 say of ADR-0007."
    write(docs / "adr" / NAME, ENGLISH.replace("A wire.", told))
    assert [*tool.gaps(docs, ["pe_dma", "pe_dm", "pe_gemm"])] == [
        f"adr/{NAME} leads to newer records: 0009",
        "no record names the model pe_dm",
        "no record names the model pe_gemm",
    ]
    assert tool.main([str(docs), "--gaps"]) == 0
    assert "no record names the model sram" in capsys.readouterr().out


def test_every_model_has_a_record(tool: ModuleType) -> None:
    """Of those that ship."""
    assert [gap for gap in tool.gaps(REPO / "docs", tool._models()) if gap.startswith("no record")] == []
