"""What a run did that its key could not foresee: modules that it loaded by name, random numbers that nobody seeded."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.cache import NotCacheable
from kernbench_core.cache.code_facts import code_facts

if TYPE_CHECKING:
    from kernbench_core.cache.origins import Origins
    from kernbench_core.host.bench import Bench


@attrs.frozen
class Surprises:
    """What there was before a run: the modules that were loaded, and the state of the random numbers of all."""

    modules: frozenset[str]
    random: int

    @classmethod
    def before(cls) -> Surprises:
        """Take note of what there is now."""
        return cls(frozenset(sys.modules), _random())

    def check(self, bench: Bench) -> None:
        """Raise NotCacheable where the run drew random numbers of all, and nothing in the bench seeds them."""
        if self.random != _random() and not _seeds(bench):
            raise NotCacheable("the bench drew random numbers that it did not seed; the run is not kept.")

    def files(self, bench: Bench, origins: Origins) -> dict[str, str]:
        """Return the files of the user's own modules that the run was the first to load, with their SHA-256."""
        own = {} if bench.sources is None else bench.sources.modules
        found = {}
        for name in sorted(sys.modules.keys() - self.modules - own.keys()):
            file = getattr(sys.modules[name], "__file__", None)
            if isinstance(file, str) and not origins.is_ours(name) and not origins.library(name):
                found[file] = digest_of(file)
        return found


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


def _seeds(bench: Bench) -> bool:
    """Whether a bench names a seed of random numbers."""
    files: Mapping[str, bytes] = {} if bench.sources is None else bench.sources.files
    code = getattr(bench.function, "__code__", None)
    return any(b"seed" in text for text in files.values()) or (code is not None and "seed" in code_facts(code).names)
