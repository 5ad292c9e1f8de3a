"""What a block printed and warned of, so that it can be shown again."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final, TextIO

from kernbench_core.errors import KernbenchWarning

#: One block at a time: `sys.stdout`, and what hears warnings, are one for all threads.
_ONE: Final = threading.RLock()


class _Tee:
    """Standard output that writes on what is written to it, and keeps what this thread writes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._thread = threading.get_ident()
        self.kept: list[str] = []

    def write(self, text: str) -> int:
        written = self._stream.write(text)  # which refuses what is no text
        if threading.get_ident() == self._thread:
            self.kept.append(text)
        return written

    def writelines(self, texts: Any) -> None:
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def recorded() -> Iterator[dict[str, Any]]:
    """Give what has "printed" and "warnings", kernbench's own, of the block when that has ended well."""
    shown: dict[str, Any] = {}
    with _ONE:
        tee: Any = _Tee(sys.stdout)
        heard: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as heard, redirect_stdout(tee):
                warnings.filterwarnings("always", category=KernbenchWarning)
                yield shown
        finally:
            for each in heard:
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno, source=each.source)
        ours = [str(each.message) for each in heard if issubclass(each.category, KernbenchWarning)]
        shown.update(printed="".join(tee.kept), warnings=ours)


def show(shown: Mapping[str, Any]) -> None:
    """Print and warn again."""
    sys.stdout.write(shown["printed"])
    for sentence in shown["warnings"]:
        warnings.warn(sentence, KernbenchWarning, stacklevel=6)
