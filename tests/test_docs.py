"""The pages are executed, complete, and point to things that exist."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from kernbench_ccl.plugin import ALGORITHMS
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import forget_executed, loaded_tool

REPO = Path(__file__).parents[1]
#: Records have tests of their own; pages in Korean have the blocks of the English ones.
APART = ("adr", "adr-history", "adr-ko", "adr-proposed", "ko")
BELOW = sorted(page.relative_to(REPO).as_posix() for page in (REPO / "docs").rglob("*.md"))
#: The pages of the reference, which the site alone has: it makes them, and is strict on anchors in them.
OF_SITE = [REPO / "docs" / page for page in re.findall(r"- (reference/.*)", (REPO / "mkdocs.yml").read_text("utf-8"))]
PAGES = ["README.md", *(page for page in BELOW if page.split("/")[1] not in APART)]


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    """Return tools/check_docs.py, which runs the examples."""
    with loaded_tool("check_docs") as module:
        yield module


@pytest.fixture(scope="module")
def all_plugins(docs: ModuleType) -> Plugins:
    """Return the plug-ins of this tree, the example among them."""
    return load_plugins(docs.ENTRY_POINTS, installed=False)


def test_every_page_is_executed(docs: ModuleType) -> None:
    assert sorted(docs.PAGES) == sorted(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_examples_do_what_the_page_shows(docs: ModuleType, page: str) -> None:
    """To write what is printed now into the pages: python tools/check_docs.py --update."""
    forget_executed()
    assert docs.check(page, docs.plugins_of(page)) == []


def test_the_example_is_there_only_for_pages_that_mention_it(docs: ModuleType) -> None:
    """A reader who has not installed it sees what the other pages show."""
    assert "example.star_all_reduce" in docs.plugins_of("docs/plugins.md").of(ALGORITHMS)
    assert "example.star_all_reduce" not in docs.plugins_of("docs/collectives.md").of(ALGORITHMS)


@pytest.mark.parametrize("page", PAGES)
def test_no_command_hides_from_being_executed(page: str) -> None:
    """What is typed stands in a `console` block, unless it is no command of kernbench."""
    text = (REPO / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    others = [block for language, block in blocks if language != "console"]
    hidden = [line for block in others for line in block.splitlines() if re.match(r"(\$ ?)?kernbench ", line)]
    assert hidden == []


@pytest.mark.parametrize("page", [*PAGES, *(page for page in BELOW if page.startswith("docs/ko/"))])
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (REPO / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = {target: (REPO / page).parent / target for target in re.findall(r"\]\(([^)#:]+)\)", text)}
    assert [target for target, file in targets.items() if not file.exists() and file not in OF_SITE] == []


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", *(page for page in BELOW if page.startswith("docs/ko/"))])
def test_what_is_not_run_says_why(page: str) -> None:
    """Blocks of a shell are for the reader's machine; a comment before each says why no test runs it as it stands."""
    text = (REPO / page).read_text(encoding="utf-8")
    before = re.findall(r"^(.*)\n```(?:sh|bash|shell|zsh|fish)\n", text, re.MULTILINE)
    assert [line for line in before if not re.fullmatch(r"<!-- not run: \S.* -->", line)] == []


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```console\n$ kernbench run nothing\n```\n", "`kernbench run nothing` must succeed, and exits with 2"),
        ("```console\n$ kernbench --version\nkernbench 9.9.9\n```\n", "`kernbench --version` must print what the page"),
        ("```console\n$ kernbench --version\nerror: no\n```\n", "`kernbench --version` must fail, and exits with 0"),
        ("```console\n$ kernbench --version\nx\nDATA IS WRONG: 1\n```\n", "`kernbench --version` must fail, and"),
        ("```console\n$ kernbench --version\n```\n", None),
        ("```console\n$ kernbench --version\nx.yaml:1:2: no\n```\n", "`kernbench --version` must fail, and exits"),
        ("```console\n$ kernbench --version\n--set a.b=1 ns: no\n```\n", "`kernbench --version` must fail, and exits"),
        ("```console\n$ kernbench --version\nsip0.pe1: no\n```\n", "`kernbench --version` must fail, and exits"),
        ("```console\n$ kernbench --version\nx\nwrong: 2 ranks\n```\n", "`kernbench --version` must fail, and exits"),
        ("```python\nprint(6 * 7)\n```\n\n```output\n43\n```\n", "a python block must print what the page shows"),
        ("```python\nprint(6 * 7)\n```\n\n```output\n42\n```\n", None),
    ],
)
def test_a_page_that_is_wrong_is_found_out(
    docs: ModuleType,
    all_plugins: Plugins,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    page: str,
    fault: str | None,
) -> None:
    (tmp_path / "page.md").write_text(page)
    monkeypatch.setattr(docs, "REPO", tmp_path)
    found = docs.check("page.md", all_plugins)
    assert len(found) == (fault is not None)
    assert fault is None or f"page.md: {fault}" in found[0]


def test_python_that_raises_is_an_error(docs: ModuleType, all_plugins: Plugins, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    monkeypatch.setattr(docs, "REPO", tmp_path)
    with pytest.raises(AssertionError):
        docs.check("page.md", all_plugins)


def test_update_writes_down_what_is_printed(
    docs: ModuleType, all_plugins: Plugins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    shown = ("$ kernbench run nothing", "error: something", "$ kernbench topology validate tiny", "bad")
    page.write_text("\n".join(["```console", *shown, "```", ""]))
    monkeypatch.setattr(docs, "REPO", tmp_path)
    assert docs.check("page.md", all_plugins, update=True) == []
    assert "error: something" not in page.read_text() and "\nbad\n" not in page.read_text()
    assert docs.check("page.md", all_plugins) == []


def test_update_exchanges_outputs_that_stood_at_each_others_place(
    docs: ModuleType, all_plugins: Plugins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    text = "```python\nprint(%d)\n```\n\n```output\n%d\n```\n"
    page.write_text(text % (1, 2) + text % (2, 1))
    monkeypatch.setattr(docs, "REPO", tmp_path)
    docs.check("page.md", all_plugins, update=True)
    assert page.read_text() == text % (1, 1) + text % (2, 2)


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        ("a\nb\n", "a 1\nb 2\n\nc 3\nd 4\n"),
        ("a 1\n…\nd 4\n", "a 1\n…\nd 4\n"),
        ("a 0\n…\nd 0\n", "a 1\n…\nd 4\n"),
        ("…\nb 0\n…\n", "…\nb 2\n…\n"),
        ("…\nc 0\nd 0\n", "…\nc 3\nd 4\n"),
        ("…\nx 0\n…\nd 4\n", "…\n…\n"),
        ("a 1\nb 2\n\nc 3\n…\nb 2\n\nc 3\nd 4\n", "a 1\nb 2\n\nc 3\n…\nd 4\n"),
    ],
)
def test_a_page_may_leave_out_lines_of_an_output(docs: ModuleType, shown: str, kept: str) -> None:
    assert docs.abridged("a 1\nb 2\n\nc 3\nd 4\n", shown) == kept


def test_lines_about_wrong_data_may_break_elsewhere(docs: ModuleType) -> None:
    """They are as long as paths are; the words count, and so do the lines around."""
    shown = "a\n\nDATA IS WRONG: 1 of 1\n  tensor at\n  x.py:4\n254 ops, b\n"
    assert docs.comparable(shown) == docs.comparable(shown.replace("at\n ", "at"))
    assert docs.comparable(shown) != docs.comparable(shown.replace("tensor", "x"))
    assert docs.comparable(shown) != docs.comparable(shown.replace("a\n\n", "a\n"))


def test_the_rounding_of_this_cpu_is_not_compared(docs: ModuleType) -> None:
    """How far right data are off depends on the BLAS; that they are right, and how many, does not."""
    for begin in ("data verified: 2 tensors", "gemm on tiny: 8.071 us, data verified: 1 tensor"):
        for error in ("0", "0.0312", "7.39e-06"):
            assert docs.comparable(f"{begin}, largest error {error}\n") == f"{begin}, largest error …\n"
            assert docs.comparable(f"{begin}, largest error {error}, 2 hazards\n").endswith("error …, 2 hazards\n")
    for kept in ("DATA IS WRONG: 3 of 3 tensors, largest error 3\n", "data verified: 1 tensor, largest error nan\n"):
        assert docs.comparable(kept) == kept


def test_the_time_of_a_proof_is_not_compared(docs: ModuleType) -> None:
    row = "  ring            -                2 cases         6 messages   4 steps"
    assert docs.comparable(f"{row}   19 ms\n") == docs.comparable(f"{row}   1.3 s\n") == f"{row}\n"


def test_a_plug_in_of_a_page_is_there_for_its_command_alone(
    docs: ModuleType, all_plugins: Plugins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = "# odd.py\nfrom kernbench_core import BenchEntry\n\nkernbench_api = 1\n\n\n"
    module += 'def kernbench_benches():\n    return [BenchEntry("odd-one", f"{__name__}:bench")]\n\n\n'
    module += 'def bench(rt):\n    """Do nothing."""\n'
    (tmp_path / "page.md").write_text(
        f"```python\n{module}```\n\n```console\n$ kernbench list odd-one --plugin odd.py\n$ kernbench list odd-one\n"
        "error: no\n```\n"
    )
    monkeypatch.setattr(docs, "REPO", tmp_path)
    (fault,) = docs.check("page.md", all_plugins)
    assert "`kernbench list odd-one` must print what the page shows, and prints\nerror: bench must be" in fault


def test_pictures_are_those_of_the_runs_and_machines() -> None:
    """To draw them anew: python tools/pictures.py."""
    with loaded_tool("pictures") as pictures:
        kept = {path.stem: path.read_text(encoding="utf-8") for path in pictures.PICTURES.glob("*.svg")}
        drawn = pictures.draw()
    assert drawn.keys() == kept.keys()
    assert [name for name in drawn if drawn[name] != kept[name]] == []


def test_real_times_are_not_compared(docs: ModuleType) -> None:
    for wall in ("in 0.10 s (3 k events/s), 0.2 s in all", "in 12.25 s (1.5 M events/s), 13.00 s in all"):
        assert docs.comparable(f"9 ops, 12 events {wall}\n\n") == "9 ops, 12 events in … s\n"
