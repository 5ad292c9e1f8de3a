"""What a program did that its key could not foresee: files that it read, variables, modules, unseeded random numbers.

While a program is watched, Python's `open` and the environment are others that take note of what the user's own code
asks for; what kernbench and libraries ask for by themselves is theirs.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import random
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from kernbench_core.cache import NotCacheable
from kernbench_core.cache.code_facts import code_facts
from kernbench_core.cache.origins import library_version
from kernbench_core.cache.trees import is_library_path
from kernbench_core.package import GROUP
from kernbench_core.registration.entry_points import distribution_of
from kernbench_core.runs.cached.reads import digest_of, place_of_variable

if TYPE_CHECKING:
    from kernbench_core.cache.origins import Origins
    from kernbench_core.host.bench import Bench

_CORE: Final = __name__.partition(".")[0]
_OF_THE_SYSTEM: Final = ("/proc/", "/dev/", "/sys/")
#: Own modules that runs of a program were the first to load in this process, by what tells the program.
_LOADED: dict[str, set[str]] = {}


class Surprises:
    """Takes note of what a program does while it is watched; `reads` are digests of what it read, by place."""

    def __init__(self) -> None:
        _machinery()  # before anything is watched: it opens files
        self.reads: dict[str, str] = {}
        self._written: set[str] = set()
        self._modules = frozenset(sys.modules)
        self._random = _random()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take note of what the user's own code reads, in this thread, while the block runs."""
        _begin(self)
        try:
            yield
        finally:
            _end(self)

    def asked(self, variable: str) -> None:
        """Take note that a variable of the environment was asked for."""
        place = place_of_variable(variable)
        if place not in self.reads:
            self.reads[place] = digest_of(place)

    def opened(self, file: Any, mode: Any) -> None:
        """Take note that a file is opened, before it is."""
        if not isinstance(file, str | bytes | os.PathLike) or not isinstance(mode, str):
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


@functools.cache
def _machinery() -> frozenset[str]:
    """Return the first names of the packages that kernbench itself is made of."""
    points = entry_points(group=GROUP)
    own = (point.value.partition(".")[0] for point in points if distribution_of(point)[0] == _CORE.split("_")[0])
    return frozenset({_CORE, *own})


def _is_own(frame: FrameType | None) -> bool:
    """Whether code that is neither kernbench's nor a library's asks for something, itself or by way of a library."""
    while frame is not None:
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top in _machinery():
            return False
        if top and library_version(top) is None:  # code that says no module is of whoever executes it
            return True
        frame = frame.f_back
    return False


#: Who watches, by thread, the innermost last; Python's own functions, which are others while anybody does.
_WATCHING: dict[int, list[Surprises]] = {}
_LOCK: Final = threading.Lock()
_OPEN: Final = io.open
_GET: Final = os._Environ.__getitem__


def _open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    """Open a file as Python does; whoever watches this thread takes note of it."""
    watching = _WATCHING.get(threading.get_ident())
    if watching and _is_own(sys._getframe(1)):
        for each in watching:
            each.opened(file, mode)
    return _OPEN(file, mode, *args, **kwargs)


def _get(environment: Any, key: Any) -> Any:
    """Return a variable of the environment; whoever watches this thread takes note of it."""
    watching = _WATCHING.get(threading.get_ident())
    if watching and isinstance(key, str) and _is_own(sys._getframe(1)):
        for each in watching:
            each.asked(key)
    return _GET(environment, key)


def _begin(watcher: Surprises) -> None:
    with _LOCK:
        if not _WATCHING:
            _put(_open, _get)
        _WATCHING.setdefault(threading.get_ident(), []).append(watcher)


def _end(watcher: Surprises) -> None:
    with _LOCK:
        thread = threading.get_ident()
        watching = _WATCHING.get(thread, [])
        if watcher in watching:
            watching.remove(watcher)
        if not watching:
            _WATCHING.pop(thread, None)
        if not _WATCHING:
            _put(_OPEN, _GET)


def _put(opens: Any, gets: Any) -> None:
    """Have `open` and the environment be these, unless somebody else has put something in their place."""
    if builtins.open in (_OPEN, _open):
        builtins.open = opens
    if io.open in (_OPEN, _open):
        io.open = opens
    kind: Any = os._Environ
    kind.__getitem__ = gets


def _random() -> int:
    """Return what tells the state of Python's and numpy's common random numbers."""
    from numpy.random import get_state

    parts: Any = get_state(legacy=True)
    return hash((random.getstate(), *(each.tobytes() if hasattr(each, "tobytes") else each for each in parts)))
