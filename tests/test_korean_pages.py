"""Korean pages are the twins of English ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import loaded_tool

ENGLISH = """# Way

Take `tl.load` of [one](../b.md#x) to the [next](02.md).

```python
x = 1
```

![It](../p.svg)
"""
KOREAN = """# 길

[하나](../../b.md#x)의 `tl.load`를 [다음](02.md)으로 가져간다.

```python
x = 1
```

![그것](../../p.svg)
"""


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    with loaded_tool("korean_pages") as module:
        yield module


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a folder of pages that are right."""
    for page in ("glossary.md", "index.md"):
        for place, text in (("", "# A page\n"), ("ko", "# 어떤 페이지\n")):
            (tmp_path / place).mkdir(exist_ok=True)
            (tmp_path / place / page).write_text(text, encoding="utf-8")
    for place, text in (("tutorials", ENGLISH), ("ko/tutorials", KOREAN)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "01.md").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_pages_of_this_tree_are_twins(tool: ModuleType) -> None:
    assert list(tool.faults(tool.DOCS)) == []
    assert len(tool.twins(tool.DOCS)) >= 14


def test_what_is_right_has_no_faults(tool: ModuleType, docs: Path) -> None:
    assert list(tool.faults(docs)) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("x = 1", "x = 2", "must have the English page's blocks of code; run python tools/korean_pages.py --update."),
        ("# 길", "## 길", "must have headings of the levels 1, not 2."),
        ("# 길\n", "", "must have headings of the levels 1, not none."),
        ("`tl.load`를 ", "", "must have the name in backticks `tl.load` as often as the English page; it lacks 1."),
        (
            "가져간다",
            "`tl.load`한다",
            "must have the name in backticks `tl.load` as often as the English page, not 1 more.",
        ),
        ("(02.md)", "(03.md)", None),
        ("(../../b.md#x)", "(../../b.md)", None),
        ("(../../p.svg)", "(../../q.svg)", None),
        ("길\n", "길\n\nThis paragraph was forgotten.\n", "must say in Korean 'This paragraph was forgotten.'."),
    ],
)
def test_each_difference_is_told(tool: ModuleType, docs: Path, old: str, new: str, told: str | None) -> None:
    page = docs / "ko/tutorials/01.md"
    page.write_text(KOREAN.replace(old, new), encoding="utf-8")
    found = list(tool.faults(docs))
    assert KOREAN.count(old) == 1
    if told is None:  # one link that is lacking, and one that is too many
        assert [line.partition(" as often as the English page")[2][0] for line in found] == [";", ","]
    else:
        assert found == [f"docs/ko/tutorials/01.md {told}"]


def test_pages_without_a_twin_are_told(tool: ModuleType, docs: Path) -> None:
    (docs / "tutorials/01.md").rename(docs / "tutorials/02.md")
    assert list(tool.faults(docs)) == [
        "docs/tutorials/02.md must have a Korean twin, docs/ko/tutorials/02.md; translate it.",
        "docs/ko/tutorials/01.md must be the twin of an English page, docs/tutorials/01.md; give both one name.",
    ]


def test_update_copies_the_blocks_and_nothing_else(tool: ModuleType, docs: Path) -> None:
    (docs / "tutorials/01.md").write_text(ENGLISH.replace("x = 1", r"x = '\1'"), encoding="utf-8")
    tool.update(docs)
    assert (docs / "ko/tutorials/01.md").read_text(encoding="utf-8") == KOREAN.replace("x = 1", r"x = '\1'")


def test_update_leaves_a_page_alone_that_has_another_number_of_blocks(tool: ModuleType, docs: Path) -> None:
    """Which block belongs where is the translator's to say."""
    (docs / "tutorials/01.md").write_text(ENGLISH + "\n```python\ny = 2\n```\n", encoding="utf-8")
    tool.update(docs)
    assert (docs / "ko/tutorials/01.md").read_text(encoding="utf-8") == KOREAN
