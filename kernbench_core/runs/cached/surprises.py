"""What a run did that its key could not foresee: modules that it loaded by name, random numbers that nobody seeded."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.cache import NotCacheable
from kernbench_core.cache.code_facts import code_facts

if TYPE_CHECKING:
    from kernbench_core.cache.origins import Origins
    from kernbench_core.host.bench import Bench


#: Own modules that runs of a bench were the first to load in this process, by what tells the bench.
_LOADED: dict[str, set[str]] = {}


@attrs.frozen
class Surprises:
    """What there was before a run: the modules that were loaded, and the state of the random numbers of all."""

    modules: frozenset[str]
    random: int

    @classmethod
    def before(cls, modules: frozenset[str] | None = None) -> Surprises:
        """Take note of what there is now; `modules` are those of before, where the bench has loaded some already."""
        return cls(frozenset(sys.modules) if modules is None else modules, _random())

    def check(self, texts: Iterable[bytes], names: Collection[str] = ()) -> None:
        """Raise NotCacheable where the run drew random numbers of all, and neither texts nor names speak of a seed."""
        if self.random != _random() and "seed" not in names and not any(b"seed" in text for text in texts):
            raise NotCacheable("the program drew random numbers that it did not seed; the run is not kept.")

    def check_bench(self, bench: Bench) -> None:
        """Raise NotCacheable where a bench drew random numbers of all that nothing in it seeds."""
        code = getattr(bench.function, "__code__", None)
        texts = () if bench.sources is None else bench.sources.files.values()
        self.check(texts, () if code is None else code_facts(code).names)

    def files(self, bench: Bench, origins: Origins) -> dict[str, str]:
        """Return the files, with their SHA-256, of the user's own modules that runs of the bench were first to load."""
        own = {} if bench.sources is None else bench.sources.modules
        loaded = _LOADED.setdefault(_told(bench), set())
        loaded |= sys.modules.keys() - self.modules - own.keys()
        found = {}
        for name in sorted(loaded & sys.modules.keys()):
            file = getattr(sys.modules[name], "__file__", None)
            if isinstance(file, str) and not origins.is_ours(name) and not origins.library(name):
                found[file] = digest_of(file)
        return found


def _told(bench: Bench) -> str:
    """Return what tells a bench from others: the place of its file, or of its function."""
    if bench.sources is not None:
        return str(bench.sources.folder / bench.sources.given.name)
    return f"{getattr(bench.function, '__module__', '')}:{bench.name}"


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file, in hex; "" where it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _random() -> int:
    """Return what tells the state of Python's and numpy's common random numbers."""
    from numpy.random import get_state

    parts: Any = get_state(legacy=True)
    return hash((random.getstate(), *(each.tobytes() if hasattr(each, "tobytes") else each for each in parts)))
