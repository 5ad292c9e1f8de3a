"""Standard output and error as a command can rely on them: never a reason to end with another verdict.

A reader that goes away (`kernbench run … | head -1`) changes nothing: the rest is dropped. Standard output that
cannot be written, as on a full disk, is kept in mind, and told of when the command has ended.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

_STDOUT, _STDERR = 1, 2


class _Sink(io.FileIO):
    """A file descriptor that takes everything: after the first write that fails, it drops what comes."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.fault: OSError | None = None

    def write(self, data: bytes) -> int:  # type: ignore[override]  # any buffer
        if self.fault is None:
            try:
                return super().write(data)
            except OSError as error:
                self.fault = error
        return memoryview(data).nbytes


class Lasting:
    """A stream that writes where another does, and outlives its reader; one that is not Python's own stays as it is."""

    def __init__(self, stream: TextIO | None) -> None:
        self._sink: _Sink | None = None
        if stream is None:  # closed when Python began, as by `>&-`
            self.stream: TextIO = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
            return
        self.stream = stream
        buffer = getattr(stream, "buffer", None)
        raw = getattr(buffer, "raw", buffer)  # without a buffer where PYTHONUNBUFFERED is set
        if not isinstance(stream, io.TextIOWrapper) or not isinstance(raw, io.FileIO) or raw.closed:
            return
        stream.flush()
        self._sink = _Sink(raw.fileno())
        self.stream = io.TextIOWrapper(
            self._sink if raw is buffer else io.BufferedWriter(self._sink),  # type: ignore[type-var]  # raw will do
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )

    def told(self) -> str | None:
        """Say why what was written is not whole; None where it is, or where its reader has gone."""
        self.stream.flush()
        fault = None if self._sink is None else self._sink.fault
        if fault is None or isinstance(fault, BrokenPipeError):
            return None
        return (
            f"standard output must take everything that is written, but failed with {fault.strerror!r}; make room or "
            "write elsewhere."
        )


@contextmanager
def lasting_streams() -> Iterator[Lasting]:
    """Have standard output and error outlive their readers while the block runs; give standard output."""
    before = sys.stdout, sys.stderr
    out, err = Lasting(sys.stdout), Lasting(sys.stderr)
    sys.stdout, sys.stderr = out.stream, err.stream
    try:
        yield out
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Have what is printed in the block go to standard error: by Python, a library in C, a program that is started."""
    sys.stdout.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)
