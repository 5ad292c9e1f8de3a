"""What a program did that its key could not foresee: files that it read, variables, modules, unseeded random numbers.

While a program is watched, Python's audit and an environment in the place of its own say what the user's own code
asks for, whichever function of Python it asks; what kernbench and libraries ask for by themselves is theirs.
"""

from __future__ import annotations

import functools
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
from kernbench_core.runs.cached.reads import digest_of, place_of_names, place_of_variable

if TYPE_CHECKING:
    from kernbench_core.cache.origins import Origins
    from kernbench_core.host.bench import Bench

_CORE: Final = __name__.partition(".")[0]
_HOW: Final = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
_IMPORTERS: Final = ("importlib._bootstrap", "_frozen_importlib", "zipimport")
_OF_THE_SYSTEM: Final = ("/proc/", "/dev/", "/sys/")
#: Own modules that runs of a program were the first to load in this process, by what tells the program.
_LOADED: dict[str, set[str]] = {}


class Surprises:
    """Takes note of what a program does while it is watched; `reads` are digests of what it read, by place."""

    def __init__(self) -> None:
        _machinery()  # before anything is watched: it opens files
        self.reads: dict[str, str] = {}
        self._before: dict[str, str | None] = {}  # of files that were written; None where nothing of it was left
        self._refused = ""
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

    def opened(self, file: Any, flags: int) -> None:
        """Take note that a file is opened, before it is; `flags` are those of the system."""
        place = _place(file)
        if place is None:
            return
        writes, reads = flags & _HOW != os.O_RDONLY, flags & _HOW != os.O_WRONLY
        if writes and flags & (os.O_TRUNC | os.O_EXCL):
            self._before.setdefault(place, None)
        elif writes and not reads:
            self._before.setdefault(place, digest_of(place))  # which is read only if it is opened again
        elif place not in self._before:
            self.reads.setdefault(place, digest_of(place))
        elif (before := self._before[place]) is not None:
            self.reads.setdefault(place, before)

    def listed(self, folder: Any) -> None:
        """Take note that the names in a folder are asked for."""
        place = _place("." if folder is None else folder)
        if place is not None:
            self.reads.setdefault(place_of_names(place), digest_of(place_of_names(place)))

    def refused(self, did: str) -> None:
        """Take note of something by which a program may learn anything."""
        self._refused = self._refused or did

    def check(self, texts: Iterable[bytes], names: Collection[str] = ()) -> None:
        """Raise NotCacheable where the program did what no key covers.

        Random numbers of all are no such thing where texts or names name a seed.
        """
        if self._refused:
            raise NotCacheable(f"the program {self._refused}; the run is not kept.")
        if self._random != _random() and "seed" not in names and not any(b"seed" in text for text in texts):
            raise NotCacheable("the program drew random numbers that it did not seed; the run is not kept.")

    def check_bench(self, bench: Bench) -> None:
        """Raise NotCacheable where a bench did what no key covers, as `check` says."""
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


def _place(file: Any) -> str | None:
    """Return the path of a file or folder; None for what is the system's or a library's, or is no path."""
    if not isinstance(file, str | bytes | os.PathLike):
        return None
    place = os.path.abspath(os.fsdecode(file))  # noqa: PTH100
    return None if place.startswith(_OF_THE_SYSTEM) or is_library_path(place) else place


def _imports(frame: FrameType) -> bool:
    """Whether it is the machinery of imports that asks: modules are looked at by themselves."""
    return str(frame.f_globals.get("__name__", "")).startswith(_IMPORTERS)


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


#: Who watches, by thread, the innermost last.
_WATCHING: dict[int, list[Surprises]] = {}
_LOCK: Final = threading.Lock()
_GET: Final = os._Environ.__getitem__
_START: Final = threading.Thread.start
#: Events of Python's audit by which a program learns what no key covers, with what it did then.
_REFUSED: Final = {
    "subprocess.Popen": "ran another program", "os.system": "ran another program",
    "os.posix_spawn": "ran another program", "os.exec": "ran another program", "builtins.input": "asked for input",
    "os.fork": "went on in another process",
}  # fmt: skip
_LISTS: Final = ("os.listdir", "os.scandir")
_NOTED: Final = frozenset({"open", *_LISTS, *_REFUSED})


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Have whoever watches this thread take note of what Python says that its code is about to do."""
    if event not in _NOTED or not _WATCHING:  # Python tells of much else, often
        return
    watching = _WATCHING.get(threading.get_ident())
    frame = sys._getframe(1)
    if not watching or _imports(frame) or not _is_own(frame):
        return
    for each in watching:
        if event == "open":
            each.opened(args[0], args[2])
        elif event in _LISTS:
            each.listed(args[0])
        else:
            each.refused(_REFUSED[event])


@functools.cache
def _audited() -> None:
    """Be told by Python from now on: what listens to it is never taken away, and does nothing while nobody watches."""
    sys.addaudithook(_audit)


def _get(environment: Any, key: Any) -> Any:
    """Return a variable of the environment; whoever watches this thread takes note of it."""
    watching = _WATCHING.get(threading.get_ident())
    if watching and isinstance(key, str | bytes) and _is_own(sys._getframe(1)):
        for each in watching:
            each.asked(os.fsdecode(key))
    return _GET(environment, key)


def _start(thread: threading.Thread) -> None:
    """Start a thread; whoever watches this one does not see what the other does."""
    watching = _WATCHING.get(threading.get_ident())
    if watching and _is_own(sys._getframe(1)):
        for each in watching:
            each.refused("went on in another thread")
    _START(thread)


def _begin(watcher: Surprises) -> None:
    _audited()
    with _LOCK:
        _WATCHING.setdefault(threading.get_ident(), []).append(watcher)
        _put(_get, _start)


def _end(watcher: Surprises) -> None:
    with _LOCK:
        thread = threading.get_ident()
        watching = _WATCHING.get(thread, [])
        if watcher in watching:
            watching.remove(watcher)
        if not watching:
            _WATCHING.pop(thread, None)
        if not _WATCHING:
            _put(_GET, _START)


def _put(gets: Any, starts: Any) -> None:
    environment: Any = os._Environ
    environment.__getitem__ = gets
    thread: Any = threading.Thread
    thread.start = starts


def _random() -> int:
    """Return what tells the state of Python's and numpy's common random numbers."""
    from numpy.random import get_state

    parts: Any = get_state(legacy=True)
    return hash((random.getstate(), *(each.tobytes() if hasattr(each, "tobytes") else each for each in parts)))
