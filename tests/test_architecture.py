"""The page on the architecture tells the rooms that there are, in the order in which imports go."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

REPO = Path(__file__).parents[1]


def layers() -> list[list[str]]:
    """Return the layers of core's contract, the top first."""
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = [each for each in contracts if each["name"] == "Core's rooms know those below only"]
    assert found["exhaustive"] and not found.get("ignore_imports")
    return [re.split(r" [|:] ", layer) for layer in found["layers"]]


def rooms() -> list[str]:
    """Return the rooms of the page's table, the top first."""
    page = (REPO / "docs/architecture.md").read_text()
    return re.findall(r"^\| `(\w+)` \| (?!a record)", page.partition("## Where to add what")[0], re.MULTILINE)


def test_the_page_has_the_rooms_in_their_order() -> None:
    """Those of the contract that are folders, but for the test kit, which stands apart."""
    core = REPO / "kernbench_core"
    folders = [name for layer in layers() for name in layer if (core / name).is_dir()]
    assert rooms() == [name for name in folders if name != "testing"]


def test_flat_files_are_few() -> None:
    """At most eighteen, together at most 3,700 lines; no folder holds more than 22 files, families of alike apart."""
    flat = list((REPO / "kernbench_core").glob("*.py"))
    assert len(flat) <= 18
    assert sum(len(file.read_text().splitlines()) for file in flat) <= 3700
    families = {"algorithms", "components", "benches", "templates", "collectives"}
    for package in ("kernbench_core", "kernbench_builtin", "kernbench_ccl"):
        for folder in (REPO / package).rglob("*/"):
            if folder.name not in families:
                assert len([file for file in folder.glob("*.py") if file.name != "plugin.py"]) <= 22, folder
        for file in (REPO / package).rglob("*.py"):
            assert len(file.read_text().splitlines()) <= 450, file


def test_nothing_is_imported_from_a_test_file() -> None:
    """What several test files share stands in a helper beside them: pytest would import a test file a second time."""
    statement = re.compile(r"^[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
    files = [file for folder in ("tests", "plugins_example/tests") for file in (REPO / folder).rglob("*.py")]
    found = {(str(file.relative_to(REPO)), words) for file in files for words in statement.findall(file.read_text())}
    assert len(found) > len(files)
    assert [each for each in sorted(found) if re.search(r"\btest_", each[1])] == []
