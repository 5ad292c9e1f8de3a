"""The source of a bench and of the modules that it imports from its own folder, as they were before it ran.

What is kept is what is executed: Python's bytecode caches, and later changes of the files, play no part. Own modules
are found by the import statements of the bench, and of what these name, wherever in the text they stand; a name that
is Python's own, kernbench's or a plug-in's never means a file beside the bench.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import attrs

from kernbench_core.callsite import user_traceback
from kernbench_core.errors import KernelError, UsageError, blamed, in_words
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.process.whole_files import is_file
from kernbench_core.wording import with_full_stop

BENCH_FUNCTION: Final = "bench"
"""What the function of a bench file is called, where its path does not name another one."""

_FUNCTION_OF_FILE: Final = re.compile(r"(.+\.py)(?::([^\W\d]\w*))?", re.DOTALL)


def file_and_function(text: str) -> tuple[str, str] | None:
    """Take "FILE.py" or "FILE.py:FUNCTION" apart; None for what is neither.

    >>> from kernbench_core.host.sources import file_and_function
    >>> file_and_function("mine.py:layer"), file_and_function("mine.py"), file_and_function("gemm")
    (('mine.py', 'layer'), ('mine.py', 'bench'), None)
    """
    found = _FUNCTION_OF_FILE.fullmatch(text)
    return None if found is None else (found[1], found[2] or BENCH_FUNCTION)


@attrs.frozen
class _Own:
    """A module of the bench's folder: its file, relative to that; None for a folder without `__init__.py`."""

    file: str | None
    folder: str | None = None
    """The folder of its sub-modules, where it is a package."""


@attrs.frozen(eq=False)
class Sources:
    """A bench's file and its own modules: `given` is the path as it was given, `folder` the absolute one of its folder.

    `files` are bytes by path relative to `folder`, the bench's own first. `function` is what the bench is called there.
    """

    given: Path
    folder: Path
    files: Mapping[str, bytes]
    modules: Mapping[str, _Own] = attrs.field(factory=dict, repr=False)
    function: str = BENCH_FUNCTION
    imported: frozenset[str] = frozenset()
    """The first names of what these files import."""
    _loaded: dict[str, ModuleType] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def title(self) -> str:
        """What messages call the bench."""
        return self.given.stem if self.function == BENCH_FUNCTION else f"{self.given.stem}:{self.function}"

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each file, in hex."""
        return {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}

    def execute(self, kind: str = "bench") -> ModuleType:
        """Execute the file as a module of its own, and return that; `kind` is what messages call it.

        Raise KernelError when it cannot be executed.
        """
        try:
            return self._execute(kind)
        except SyntaxError as error:
            place = f"{error.filename}:{error.lineno}"
            raise KernelError(with_full_stop(f"{place}: {kind} file must be valid Python, but {error.msg}")) from None
        except INTERRUPTS:
            raise
        except BaseException as error:
            told = f"{kind} file {str(self.given)!r} must run to its end, but it raised {in_words(error)}"
            raise blamed(error, KernelError)(f"{with_full_stop(told)}\n{user_traceback(error)}") from error

    def _execute(self, kind: str) -> ModuleType:
        path = self.folder / self.given.name
        where = hashlib.sha256(str(path).encode()).hexdigest()[:12]
        name = f"kernbench_{kind}_{path.stem}_{where}"
        spec = self._spec(name, _Own(self.given.name))
        spec.loader_state = self  # so that a cache finds out what was executed
        module = importlib.util.module_from_spec(spec)
        # Dataclasses and pickles in the file look their own module up by name.
        sys.modules[name] = module
        assert spec.loader is not None
        with self.importable():
            spec.loader.exec_module(module)
        return module

    @contextmanager
    def importable(self) -> Iterator[None]:
        """Let the own modules be imported while the block runs, each once for this bench, whatever others loaded."""
        others = {name: sys.modules.pop(name) for name in self.modules if name in sys.modules}
        sys.modules.update(self._loaded)
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            for name in self.modules:
                if name in sys.modules:
                    self._loaded[name] = sys.modules.pop(name)
            sys.modules.update(others)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the kept module of that name, before anything else is asked; Python's import calls it."""
        own = self.modules.get(fullname)
        return None if own is None else self._spec(fullname, own)

    def _spec(self, name: str, own: _Own) -> ModuleSpec:
        inside = None if own.folder is None else [str(self.folder / own.folder)]
        if own.file is None:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = inside
            return spec
        path = str(self.folder / own.file)
        loader = _Kept(name, path, self.files[own.file])
        made = importlib.util.spec_from_file_location(name, path, loader=loader, submodule_search_locations=inside)
        assert made is not None
        return made


class _Kept(SourceFileLoader):
    """Loads a module from bytes that were read earlier."""

    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self._data = data

    def get_data(self, path: str) -> bytes:
        """Return the kept bytes for the module's own path."""
        return self._data if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Refuse, so that no bytecode is looked for and none is written."""
        raise OSError


def read_sources(path: Path, function: str = BENCH_FUNCTION) -> Sources:
    """Read a bench's file and its own modules; raise UsageError when there is no such file."""
    if not is_file(path):
        raise UsageError(f"bench file {str(path)!r} does not exist; give a registered bench or the path of a .py file.")
    folder = path.absolute().parent
    found = _Reader(folder)
    found.read(path.name, "")
    return Sources(path, folder, found.files, found.modules, function, frozenset(found.imported))


class _Reader:
    """Reads files of one folder and follows their import statements."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, bytes] = {}
        self.modules: dict[str, _Own] = {}
        self.imported: set[str] = set()
        self._folder = folder

    def read(self, file: str, package: str) -> None:
        """Keep a file, and what it imports; `package` is what its relative imports start from."""
        self.files[file] = (self._folder / file).read_bytes()
        try:
            tree = ast.parse(self.files[file])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return  # told when it is executed
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._follow(alias.name)
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(node.module or "", node.level, package)
                if base is not None:
                    self._follow(base)
                    for alias in node.names:
                        self._follow(f"{base}.{alias.name}")

    def _follow(self, module: str) -> None:
        """Keep a module and the packages above it, as far as they are in the folder."""
        parts = module.split(".")
        self.imported.add(parts[0])
        if not parts[0] or parts[0] in sys.stdlib_module_names or parts[0] in _foreign(tuple(sys.path)):
            return
        for count in range(1, len(parts) + 1):
            name, at = ".".join(parts[:count]), "/".join(parts[:count])
            if name in self.modules:
                continue
            own = self._find(at)
            if own is None:
                return
            self.modules[name] = own
            if own.file is not None:
                self.read(own.file, name if own.folder else name.rpartition(".")[0])

    def _find(self, at: str) -> _Own | None:
        here = self._folder / at
        if (here / "__init__.py").is_file():
            return _Own(f"{at}/__init__.py", at)
        if here.with_name(f"{here.name}.py").is_file():
            return _Own(f"{at}.py")
        # A folder without __init__.py is a package only where nothing else has its name.
        if here.is_dir() and ("/" in at or importlib.util.find_spec(at) is None):
            return _Own(None, at)
        return None


@functools.lru_cache(maxsize=8)
def _foreign(path: tuple[str, ...]) -> Collection[str]:
    """Return the first names of kernbench's modules and its plug-ins', as far as they are installed on a path."""
    entries = importlib.metadata.entry_points(group="kernbench")
    return {__name__.partition(".")[0], *(entry.module.partition(".")[0] for entry in entries)}


def _absolute(module: str, level: int, package: str) -> str | None:
    """Return the full name of what is imported; None where it lies outside of every package."""
    if level == 0:
        return module
    parts = package.split(".") if package else []
    if level > len(parts):
        return None
    return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])
