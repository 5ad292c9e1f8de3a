"""Standard output and error as a command can rely on them: open, and never a reason to end with another verdict.

A reader that goes away (`kernbench run … | head -1`) changes nothing: the rest is dropped. Standard output that
cannot be written, as on a full disk, is kept in mind, and told of when the command has ended.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

import attrs

_STDIN, _STDOUT, _STDERR = range(3)
_NAMES = {_STDOUT: ("standard output", ">/dev/null"), _STDERR: ("standard error", "2>/dev/null")}


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


class _Lasting(io.TextIOWrapper):
    """A stream that a program which closes it does not take away from the command."""

    def close(self) -> None:
        """Write what is left to write."""
        self.flush()


@attrs.define
class Streams:
    """What became of the streams of a command."""

    out: _Sink | None = None

    def flush(self) -> None:
        """Write what is left to write."""
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()

    @property
    def fault(self) -> str | None:
        """Say why standard output is not whole; None where it is, or where its reader has gone."""
        self.flush()
        if self.out is None or self.out.fault is None or isinstance(self.out.fault, BrokenPipeError):
            return None
        return (
            f"standard output must take everything that is written, but failed with {self.out.fault.strerror!r}; make "
            "room or write elsewhere."
        )


def closed_streams() -> list[str]:
    """Open what is closed of the three standard streams on nothing; return a sentence for each that is needed.

    A file that is opened later would otherwise get the number of such a stream, and be written into.
    """
    problems = []
    python_has = {_STDOUT: sys.stdout, _STDERR: sys.stderr}
    for descriptor in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor == _STDIN else os.O_WRONLY)
        if python_has.get(descriptor, sys) is None:
            name, nothing = _NAMES[descriptor]
            problems.append(f"{name} must be open; write {nothing} to have nothing of it.")
    if sys.stdout is None:
        sys.stdout = _nothing()
    if sys.stderr is None:
        sys.stderr = _nothing()
    return problems


def _nothing() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - it stays for as long as Python runs


@contextmanager
def lasting_streams() -> Iterator[Streams]:
    """Have standard output and error outlive their readers while the block runs."""
    streams = Streams()
    out, err = sys.stdout, sys.stderr
    sys.stdout, streams.out = _lasting(out)
    sys.stderr, _ = _lasting(err)
    try:
        yield streams
    finally:
        streams.flush()
        sys.stdout, sys.stderr = out, err


@contextmanager
def own_streams() -> Iterator[None]:
    """Have standard output and error after the block as before it, whatever a program in it puts in their place."""
    out, err = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Have what is printed in the block go to standard error: by Python, a library in C, a program that is started."""
    with suppress(AttributeError, ValueError):  # there may be none, or it is closed
        sys.stdout.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _lasting(stream: TextIO) -> tuple[TextIO, _Sink | None]:
    """Return a stream that writes where `stream` does; one that somebody put there in place of Python's own stays."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # without a buffer where PYTHONUNBUFFERED is set
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(raw, io.FileIO) or raw.closed:
        return stream, None
    stream.flush()
    sink = _Sink(raw.fileno())
    made = _Lasting(
        sink if raw is buffer else io.BufferedWriter(sink),  # type: ignore[type-var]  # a raw stream will do
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    return made, sink
