"""A public name has one owner: no class and no alias of a type is defined in two files of the three packages."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

REPO = Path(__file__).parents[1]
PACKAGES = ("kernbench_core", "kernbench_builtin", "kernbench_ccl")
ONE_A_FILE = {"algorithms", "templates"}
"""Folders of files that are read alone, each with the names that its contract asks for."""


def defined(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Give the public classes and capitalised aliases of a module; what is written in capitals is a constant."""
    for statement in body:
        match statement:
            case ast.ClassDef(name=name):
                named = [name]
            case ast.Assign(targets=targets):
                named = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                named = [name]
            case ast.If(body=then, orelse=other):
                yield from defined([*then, *other])
                continue
            case _:
                continue
        capitals = isinstance(statement, ast.ClassDef)
        yield from (name for name in named if name[0].isupper() and (capitals or len(name) == 1 or not name.isupper()))


def owners(root: Path, packages: Iterable[str]) -> dict[str, list[str]]:
    """Return the files that define each name that more than one defines."""
    files: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            if not ONE_A_FILE.intersection(file.relative_to(root).parts):
                for name in sorted(set(defined(ast.parse(file.read_text()).body))):
                    files[name].append(file.relative_to(root).as_posix())
    return {name: where for name, where in files.items() if len(where) > 1}


def test_a_public_name_has_one_owner() -> None:
    """Else import it, begin it with an underscore, or call the lesser thing by the field's term."""
    assert owners(REPO, PACKAGES) == {}


def test_what_counts_as_a_name(tmp_path: Path) -> None:
    """Classes and aliases do, also where they are for types only; private names, constants and imports do not."""
    (tmp_path / "one/room").mkdir(parents=True)
    (tmp_path / "one/algorithms").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one/room/a.py").write_text(
        "Key = int\nclass Port: ...\nclass _Own: ...\nclass IO: ...\nLIMIT = 3\nT = 4\n"
    )
    (tmp_path / "two/b.py").write_text(
        "from one.room.a import Port\nif TYPE_CHECKING:\n    Key: TypeAlias = int\nclass IO: ...\n"
        "class _Own: ...\nLIMIT = 4\nT = 5\nclass Cost: ...\n"
    )
    (tmp_path / "one/algorithms/c.py").write_text("class Port: ...\n")
    (tmp_path / "two/d.py").write_text("def make():\n    class Cost: ...\n    Key = 3\n")
    both = ["one/room/a.py", "two/b.py"]
    assert owners(tmp_path, ("one", "two")) == {"IO": both, "Key": both, "T": both}
    assert owners(tmp_path, ("two",)) == {}
