"""Standard output and error as a command can rely on them: never a reason to end with another verdict.

A reader that goes away (`kernbench run … | head -1`) changes nothing: the rest is dropped. Standard output that
cannot be written, as on a full disk, is kept in mind, and told of when the command has ended.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class Lasting:
    """A stream that writes where another does, and drops what comes after the first write that fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._fault: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, if anything can be written."""
        self._do(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Write what is kept until now, if anything can be written."""
        self._do(self._stream.flush)

    def told(self) -> str | None:
        """Say why what was written is not whole; None where it is, or where its reader has gone."""
        self.flush()
        if self._fault is None or isinstance(self._fault, BrokenPipeError):
            return None
        return (
            f"standard output must take everything that is written, but failed with {self._fault.strerror!r}; make "
            "room or write elsewhere."
        )

    def _do(self, write: Callable[..., object], *text: str) -> None:
        """Write; after a first fault, have what Python still keeps, and writes as it ends, go nowhere."""
        if self._fault is None:
            try:
                write(*text)
            except OSError as error:
                self._fault = error
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)


@contextmanager
def lasting_streams() -> Iterator[Lasting]:
    """Have standard output and error outlive their readers while the block runs; give standard output."""
    before = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed when Python began, as by `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    out, err = Lasting(sys.stdout), Lasting(sys.stderr)
    sys.stdout, sys.stderr = out, err  # in all else they are the streams below
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before
