"""Goldens that no test asks for any more; they are listed, and left where they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from kernbench_core.testing.budgets.golden_names import SUFFIX, case_of, folder_of, golden_name, owner_of


@attrs.define
class CollectedFile:
    """A file of tests beside which there are goldens: its tests, and those of them that ran and have no fixture.

    Where a part of it was asked for alone, as `test_a.py::test_b`, it is not `whole`.
    """

    file: str
    whole: bool = True
    cases: list[str] = attrs.field(factory=list)
    silent: list[str] = attrs.field(factory=list)


def collected_files(
    collected: Iterable[pytest.Item], ran: Iterable[pytest.Item], args: Iterable[str], fixture: str, whole: bool
) -> list[dict[str, Any]]:
    """Return the files of tests that have goldens, in plain values, which xdist carries.

    `collected` are all tests before some were deselected, `ran` those that were not; `args` say what was asked for.
    """
    parts = {Path(arg.partition("::")[0]).name for arg in args if "::" in arg}
    found: dict[Path, CollectedFile | None] = {}
    for item in collected:
        if item.path not in found:
            there = folder_of(item.path).parent.is_dir()
            entire = whole and item.path.name not in parts
            found[item.path] = CollectedFile(str(item.path), entire) if there else None
        if (entry := found[item.path]) is not None:
            entry.cases.append(case_of(item.nodeid))
    for item in ran:
        entry = found.get(item.path)
        if entry is not None and isinstance(item, pytest.Function) and fixture not in item.fixturenames:
            entry.silent.append(case_of(item.nodeid))
    return [attrs.asdict(each) for each in found.values() if each is not None]


def stale_goldens(
    files: Iterable[Mapping[str, Any]], ended: Mapping[Path, Iterable[str]], asked: Collection[Path]
) -> list[Path]:
    """Return goldens that are nobody's, in order.

    `files` are those of `collected_files`, `ended` the tests by file that had the fixture and passed; what tests asked
    for is `asked`. A golden is stale where its file, or its test in there, is gone, or the test did not ask for it.
    """
    found: set[Path] = set()
    folders: set[Path] = set()
    for entry in files:
        file = Path(entry["file"])
        there = set(map(_owner, entry["cases"]))
        quiet = set(map(_owner, (*entry["silent"], *ended.get(file, ()))))
        for golden in _goldens(folder_of(file)):
            owner = owner_of(golden.name)
            if owner in quiet or (entry["whole"] and owner not in there):
                found.add(golden)
        if entry["whole"]:
            folders.add(folder_of(file).parent)
    for folder in folders:
        found.update(golden for stem in _without_file(folder) for golden in _goldens(stem))
    return sorted(found.difference(asked))


def _owner(case: str) -> str:
    return owner_of(golden_name(case))


def _without_file(folder: Path) -> Iterator[Path]:
    """Yield the folders of goldens beside which there is no file of their name."""
    beside = {each.stem for each in folder.parent.iterdir() if each.is_file()}
    yield from (each for each in folder.iterdir() if each.is_dir() and each.name not in beside)


def _goldens(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [each for each in folder.iterdir() if each.suffix == SUFFIX and not each.name.startswith(".")]
