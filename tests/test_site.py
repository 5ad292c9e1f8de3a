"""The site: every page has its place in it, its links hold, and it is searched from the file system."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import loaded_tool

REPO = Path(__file__).parents[1]
#: The pages that are made from the code when the site is built.
MADE = (
    "commands", "components", "configuration", "errors", "figures", "hooks", "language", "messages", "not_modelled",
    "python",
)  # fmt: skip
#: Records are listed by their index, in both languages.
LISTED_APART = ("adr", "adr-history", "adr-ko", "adr-proposed")


def test_every_page_has_one_place_in_the_navigation() -> None:
    text = (REPO / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    placed = re.findall(r"([\w./-]+\.md)$", text, re.MULTILINE)
    pages = [page.relative_to(REPO / "docs").as_posix() for page in (REPO / "docs").rglob("*.md")]
    own = [page for page in pages if page.split("/")[0] not in LISTED_APART and page != "README.md"]
    assert sorted(placed) == sorted([*own, *(f"reference/{name}.md" for name in MADE), "adr/README.md"])


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a](hbm.md#x)", "[a](hbm.md#x)"),
        ("[a](adr)", "[a](adr/README.md)"),
        ("[a](../src/x.yaml) and [b](adr/)", "a and [b](adr/README.md)"),
        ("[a](https://example.org/x) [b](#here)", "[a](https://example.org/x) [b](#here)"),
        ("![a](x.svg)", "![a](x.svg)"),
        ("```python\n[a](../b)\n```\n[a](../b)", "```python\n[a](../b)\n```\na"),
    ],
)
def test_links_lead_to_pages_of_the_site_or_are_words(written: str, shown: str) -> None:
    with loaded_tool("site_hooks") as hooks:
        assert hooks.rewritten(written, "README.md", {"README.md", "hbm.md", "adr/README.md"}) == shown


def test_links_of_pages_in_folders_are_relative_to_them() -> None:
    with loaded_tool("site_hooks") as hooks:
        pages = {"tutorials/one.md", "hbm.md", "adr/README.md"}
        assert hooks.rewritten("[a](../hbm.md) [b](../adr)", "tutorials/one.md", pages) == (
            "[a](../hbm.md) [b](../adr/README.md)"
        )


def test_files_of_a_page_can_be_downloaded() -> None:
    """They are those that the tests of the page save and run; other blocks are none."""
    block = "```python\n# one.py: a file\nx = 1\n```"
    page = f"Words.\n\n{block}\n\n```python\ny = 2\n```\n"
    with loaded_tool("site_hooks") as hooks:
        assert hooks.files_of(page) == {"one.py": "# one.py: a file\nx = 1\n"}
        link = '<a href="one.py" download>one.py</a>'
        assert hooks.with_downloads(page) == page.replace(block, f"{block}\n\n{link}")


@pytest.mark.parametrize("tutorial", sorted(path.name for path in (REPO / "docs/tutorials").glob("*.md")))
def test_each_tutorial_is_a_file(tutorial: str) -> None:
    """Its files are those that its commands name, so that one download is enough to follow it."""
    text = (REPO / "docs/tutorials" / tutorial).read_text(encoding="utf-8")
    with loaded_tool("site_hooks") as hooks:
        files = set(hooks.files_of(text))
    made = set(re.findall(r'Path\("([\w.]+)"\)\.write_text', text))
    asked = set(re.findall(r"(?<![\w/])(\w+\.(?:py|yaml))\b", " ".join(re.findall(r"^\$ (.*)$", text, re.MULTILINE))))
    assert files
    assert asked <= files | made


@pytest.fixture(scope="session")  # its tests in the browser come last, with those of other files
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed; make docs installs it.")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(build, cwd=REPO, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


def test_the_reference_is_made_from_the_code_and_links_lead_into_it(site: Path) -> None:
    """Nothing of it is in the repository."""
    assert not (REPO / "docs/reference").exists()
    assert sorted(page.stem for page in (site / "reference").glob("*.html")) == list(MADE)
    assert 'id="kernbench-run"' in (site / "reference/commands.html").read_text("utf-8")
    assert 'href="reference/commands.html#kernbench-run"' in (site / "cli.html").read_text("utf-8")


def test_files_lie_beside_the_page_that_links_to_them(site: Path) -> None:
    for folder in (site / "tutorials", site / "ko/tutorials"):
        linked = [
            name
            for page in folder.glob("*.html")
            for name in re.findall('href="([^"]+)" download', page.read_text("utf-8"))
        ]
        assert "leaky.py" in linked and len(linked) >= 9
        assert [name for name in linked if not (folder / name).is_file()] == []


def test_the_site_fetches_nothing(site: Path) -> None:
    """No script, style, picture or font of its pages is elsewhere."""
    fetched = re.compile(r"<(?:script|link|img|iframe)[^>]*\s(?:src|href)=\"?(?:https?:)?//[^>]*>")
    assert [found for page in site.rglob("*.html") for found in fetched.findall(page.read_text("utf-8"))] == []


@pytest.mark.browser
@pytest.mark.parametrize(("words", "page"), [("scratchpad", "language.html"), ("용어집", "ko/glossary.html")])
def test_it_is_searched_from_the_file_system(browser: Any, site: Path, words: str, page: str) -> None:
    """Without a server, in English and Korean, and what is found leads to a page that is there."""
    asked: list[str] = []
    with browser.new_page() as opened:
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto((site / "tutorials/00_ten_minutes.html").as_uri())
        opened.locator(".md-search__input").fill(words)
        opened.locator(".md-search__input").press("End")  # it reads what is in it when a key comes up
        opened.wait_for_selector(".md-search-result__link")
        found = [str(link.get_attribute("href")) for link in opened.locator(".md-search-result__link").all()]
    assert any(page in link for link in found)
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
