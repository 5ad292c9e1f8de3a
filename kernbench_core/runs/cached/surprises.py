"""What a program did that its key could not foresee: files that it read, variables, modules, unseeded random numbers.

While a program is watched, Python's `open` and the environment are others that take note of what the user's own code
asks for; what kernbench and libraries ask for by themselves is theirs.
"""

from __future__ import annotations

import builtins
import io
import os
import random
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from kernbench_core.cache import NotCacheable
from kernbench_core.cache.code_facts import code_facts
from kernbench_core.cache.origins import library_version
from kernbench_core.cache.trees import is_library_path
from kernbench_core.runs.cached.reads import digest_of, place_of_variable

if TYPE_CHECKING:
    from kernbench_core.cache.origins import Origins
    from kernbench_core.host.bench import Bench

_MACHINERY: Final = ("kernbench_core", "kernbench_builtin", "kernbench_ccl")
_OF_THE_SYSTEM: Final = ("/proc/", "/dev/", "/sys/")
#: Own modules that runs of a program were the first to load in this process, by what tells the program.
_LOADED: dict[str, set[str]] = {}


class Surprises:
    """Takes note of what a program does while it is watched; `reads` are digests of what it read, by place."""

    def __init__(self) -> None:
        self.reads: dict[str, str] = {}
        self._written: set[str] = set()
        self._modules = frozenset(sys.modules)
        self._random = _random()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take note of what the user's own code reads while the block runs."""
        real_open, real_io, real_get = builtins.open, io.open, os._Environ.__getitem__

        def noticing_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            self._opened(file, mode, sys._getframe(1))
            return real_open(file, mode, *args, **kwargs)

        def noticing_get(environment: Any, key: Any) -> Any:
            if isinstance(key, str) and _is_own(sys._getframe(1)):
                place = place_of_variable(key)
                self.reads.setdefault(place, _without(real_get, lambda: digest_of(place)))
            return real_get(environment, key)

        builtins.open = io.open = noticing_open
        _set_get(noticing_get)
        try:
            yield
        finally:
            if builtins.open is noticing_open:
                builtins.open = real_open
            if io.open is noticing_open:
                io.open = real_io
            _set_get(real_get)

    def _opened(self, file: Any, mode: str, frame: FrameType) -> None:
        if not isinstance(file, str | bytes | os.PathLike) or not isinstance(mode, str) or not _is_own(frame):
            return
        place = os.path.abspath(os.fsdecode(file))  # noqa: PTH100
        if place.startswith(_OF_THE_SYSTEM) or is_library_path(place):
            return
        if "r" not in mode:
            self._written.add(place)
        elif place not in self._written:
            self.reads.setdefault(place, digest_of(place))

    def check(self, texts: Iterable[bytes], names: Collection[str] = ()) -> None:
        """Raise NotCacheable where the program drew random numbers of all, and neither texts nor names name a seed."""
        if self._random != _random() and "seed" not in names and not any(b"seed" in text for text in texts):
            raise NotCacheable("the program drew random numbers that it did not seed; the run is not kept.")

    def check_bench(self, bench: Bench) -> None:
        """Raise NotCacheable where a bench drew random numbers of all that nothing in it seeds."""
        code = getattr(bench.function, "__code__", None)
        texts = () if bench.sources is None else bench.sources.files.values()
        self.check(texts, () if code is None else code_facts(code).names)

    def modules(self, program: str, origins: Origins, but: Collection[str] = ()) -> dict[str, str]:
        """Return the files, with their SHA-256, of the user's own modules that runs of a program were first to load."""
        loaded = _LOADED.setdefault(program, set())
        loaded |= sys.modules.keys() - self._modules - set(but)
        found = {}
        for name in sorted(loaded & sys.modules.keys()):
            file = getattr(sys.modules[name], "__file__", None)
            if isinstance(file, str) and not origins.is_ours(name) and not origins.library(name):
                found[file] = digest_of(file)
        return found


def program_of(bench: Bench) -> str:
    """Return what tells a bench from others: the place of its file, or of its function."""
    if bench.sources is not None:
        return str(bench.sources.folder / bench.sources.given.name)
    return f"{getattr(bench.function, '__module__', '')}:{bench.name}"


def _is_own(frame: FrameType | None) -> bool:
    """Whether code that is neither kernbench's nor a library's asks for something, itself or by way of a library."""
    while frame is not None:
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top in _MACHINERY:
            return False
        if top and library_version(top) is None:  # code that says no module is of whoever executes it
            return True
        frame = frame.f_back
    return False


def _set_get(get: Callable[[Any, Any], Any]) -> None:
    kind: Any = os._Environ
    kind.__getitem__ = get


def _without(real: Callable[[Any, Any], Any], ask: Callable[[], str]) -> str:
    """Call something with the environment as it is by itself."""
    kind: Any = os._Environ
    kept = kind.__getitem__
    _set_get(real)
    try:
        return ask()
    finally:
        _set_get(kept)


def _random() -> int:
    """Return what tells the state of Python's and numpy's common random numbers."""
    from numpy.random import get_state

    parts: Any = get_state(legacy=True)
    return hash((random.getstate(), *(each.tobytes() if hasattr(each, "tobytes") else each for each in parts)))
