"""What a block showed while it ran, so that it can be shown again: its standard output, and kernbench's warnings."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final, TextIO

import attrs

from kernbench_core.cache import NotCacheable
from kernbench_core.errors import KernbenchWarning

#: Held by the thread that is recorded.
_ONE: Final = threading.RLock()
#: Of what prints more letters than this, nothing is kept.
_MOST_PRINTED: Final = 1 << 20


@attrs.frozen
class Shown:
    """What was printed to standard output, and the sentences of warnings."""

    printed: str = ""
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Shown:
        """Return what was said in JSON."""
        return cls(str(said["printed"]), tuple(map(str, said["warnings"])))

    def show(self) -> None:
        """Show it again."""
        if self.printed:
            sys.stdout.write(self.printed)
        for sentence in self.warnings:
            warnings.warn(sentence, KernbenchWarning, stacklevel=6)


class _Tee:
    """Standard output that writes on what is written to it, and keeps it, up to a limit."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.kept: list[str] = []
        self.letters = 0

    def write(self, text: str) -> int:
        """Write on, and keep."""
        written = self._stream.write(text)
        self.letters += len(text)
        if self.letters <= _MOST_PRINTED:
            self.kept.append(text)
        return written

    def writelines(self, texts: Iterable[str]) -> None:
        """Write one text after the other."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _with_others() -> Shown:
    raise NotCacheable("another thread ran something at the same time; the run is not kept.")


@contextmanager
def recorded() -> Iterator[Callable[[], Shown]]:
    """Give what tells what the block showed; the warnings in it come when it has ended.

    What is given raises NotCacheable where the block printed more than is kept, and where another thread runs
    something at the same time, whose output could not be told apart.
    """
    if not _ONE.acquire(blocking=False):
        yield _with_others
        return
    tee: Any = _Tee(sys.stdout)
    caught: list[warnings.WarningMessage] = []

    def shown() -> Shown:
        if tee.letters > _MOST_PRINTED:
            raise NotCacheable(f"the run printed more than {_MOST_PRINTED:,} letters; it is not kept.")
        told = (str(each.message) for each in caught if issubclass(each.category, KernbenchWarning))
        return Shown("".join(tee.kept), tuple(told))

    try:
        with warnings.catch_warnings(record=True) as heard, redirect_stdout(tee):
            caught = heard
            warnings.filterwarnings("always", category=KernbenchWarning)
            yield shown
    finally:
        _ONE.release()
        for each in caught:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno, source=each.source)
