"""Which tests a change touches: those that mirror a file, those of its room, and those that import it.

`make quick`, the heavy tests of a landing and tools/mutants.py all ask here.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

REPO = Path(__file__).parents[2]
#: Where the tests of each package are; those of the user's doors have rooms of their own below `tests`.
ROOTS = {
    "kernbench_core": "tests/core",
    "kernbench_builtin": "tests/builtin",
    "kernbench_ccl": "tests/ccl",
    "plugins_example": "plugins_example/tests",
}


class TestMap:
    """The test files of a tree, and what each imports and names."""

    __test__ = False  # for pytest: nothing to collect

    def __init__(self, repo: Path = REPO) -> None:
        self._repo = repo
        found = [*(repo / "tests").rglob("*.py"), *(repo / "plugins_example" / "tests").rglob("*.py")]
        self._files = sorted(str(path.relative_to(repo)) for path in found if "__pycache__" not in path.parts)
        self._texts = {file: (repo / file).read_text(encoding="utf-8") for file in self._files}
        self._imports = {file: _imported(text) for file, text in self._texts.items()}
        self.tests = [file for file in self._files if PurePosixPath(file).name.startswith("test_")]

    def touched(self, changed: Iterable[str]) -> list[str]:
        """Return the test files for changed files, the nearest first: mirrors, then rooms, then importers."""
        nearest: dict[str, int] = {}
        for path in changed:
            for distance, files in enumerate(self._for(path)):
                for file in files:
                    nearest[file] = min(distance, nearest.get(file, distance))
        return sorted(nearest, key=lambda file: (nearest[file], file))

    def _for(self, path: str) -> tuple[list[str], ...]:
        """Return mirrors, the tests of the room, and those that import the file; each nearer than the next."""
        where = PurePosixPath(path)
        if path in self._files:
            return self._for_test(path)
        if where.suffix in (".py", ".pxd", ".pyx") and where.parts[0] in ROOTS:
            return self._for_source(where)
        return (self._naming(path),)

    def _for_test(self, path: str) -> tuple[list[str], ...]:
        name = PurePosixPath(path).name
        if name.startswith("test_"):
            return ([path],)
        if name == "conftest.py":
            folder = f"{PurePosixPath(path).parent}/"
            return ([file for file in self.tests if file.startswith(folder)],)
        return (self._importing({_module(path)}),)

    def _for_source(self, where: PurePosixPath) -> tuple[list[str], ...]:
        stem = where.parent.name if where.stem == "__init__" else where.stem
        rooms = where.parts[1:-1]
        room = self._room(where.parts[0], rooms)
        names = re.compile(rf"test_{re.escape(stem.lstrip('_'))}(_\w+)?\.py")
        here = [file for file in self.tests if str(PurePosixPath(file).parent) == room]
        mirrors = [file for file in here if names.fullmatch(PurePosixPath(file).name)]
        importing = self._importing({_module(str(where))})
        return mirrors, here if rooms else [], importing

    def _room(self, package: str, rooms: Sequence[str]) -> str:
        """Return the folder of tests that mirrors a folder of sources: the same path, or its longest part there."""
        folders = {str(PurePosixPath(file).parent) for file in self.tests}
        for end in range(len(rooms), 0, -1):
            for root in (ROOTS[package], "tests"):
                folder = "/".join((root, *rooms[:end]))
                if folder in folders:
                    return folder
        return ROOTS[package]

    def _importing(self, modules: set[str]) -> list[str]:
        """Return the test files that import one of the modules, themselves or by a helper."""
        helpers = {
            _module(file) for file in self._files if file not in self.tests and self._imports[file] & modules
        }
        wanted = modules | (helpers - modules)
        return [file for file in self.tests if self._imports[file] & wanted]

    def _naming(self, path: str) -> list[str]:
        """Return the tests that name a page, a tool or a file of data."""
        where = PurePosixPath(path)
        if where.parts[0] == "docs" and where.suffix == ".md":
            return ["tests/test_docs.py"]
        if where.parts[0] == "tools" and where.suffix == ".py":
            word = re.compile(rf"\b{re.escape(where.stem)}\b")
        else:
            word = re.compile(re.escape(where.name))
        return [file for file in self.tests if word.search(self._texts[file])]


def _module(path: str) -> str:
    """Return the name by which a file is imported."""
    return path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")


#: A line that imports, those of a program in a string, too: parsing all tests takes three seconds, this a tenth.
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?import[ \t]+(\([^)]*\)|[^\n(]+)", re.MULTILINE)
_NAME = re.compile(r"([\w.]+)(?:[ \t]+as[ \t]+\w+)?")


def _imported(text: str) -> frozenset[str]:
    """Return the modules that a file imports; a name out of a package counts as a module of it, too."""
    found = set()
    for module, names in _IMPORT.findall(text):
        found.update(f"{module}.{name}" if module else name for name in _NAME.findall(re.sub("#.*", "", names)))
        found.update([module] if module else ())
    return frozenset(found)


def git(*words: str) -> str | None:
    """Return what git prints; None where it fails, or where this is no checkout."""
    try:
        done = subprocess.run(["git", *words], cwd=REPO, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def commit() -> str:
    """Return the commit of the tree, which decides whose turn it is; nothing where this is no checkout."""
    return git("rev-parse", "HEAD") or ""


def base(landed: str | None = None) -> str | None:
    """Return the commit that a change is compared with: main, or on main itself what landed last.

    On main without a remote, and without a landing that is known, it is the commit before; None where there is none.
    """
    head = commit()
    for name in (landed, "origin/main", "main", "HEAD~1"):
        found = git("merge-base", name, "HEAD") if name else None
        if found and found != head:
            return found
    return None


def changed_files(since: str | None) -> list[str]:
    """Return what is different from a commit in the working tree, new files among it, what was removed not."""
    found = (git("diff", "--name-only", "--diff-filter=d", since or "HEAD") or "").splitlines()
    found += (git("ls-files", "--others", "--exclude-standard") or "").splitlines()
    return sorted(set(found))
