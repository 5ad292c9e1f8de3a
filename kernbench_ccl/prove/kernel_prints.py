"""What kernels print while they are proved: each line once for each rank, with the rank before it."""

from __future__ import annotations

import io
from contextvars import ContextVar
from typing import TextIO

RANK: ContextVar[int | None] = ContextVar("rank", default=None)
"""The rank whose kernel runs; every kernel has a context of its own."""


class KernelPrints(io.TextIOBase):
    """Hand every line on to `out` once for each rank; what no kernel prints, once."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begun: dict[int | None, str] = {}
        self._seen: set[tuple[int | None, str]] = set()

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Take text; lines that are whole and new are handed on."""
        rank = RANK.get()
        *lines, self._begun[rank] = (self._begun.get(rank, "") + text).split("\n")
        for line in lines:
            if (rank, line) not in self._seen:
                self._seen.add((rank, line))
                self._out.write(f"{line}\n" if rank is None else f"rank {rank}: {line}\n")
        return len(text)

    def flush(self) -> None:
        """Hand on what was written; Python also flushes it when it goes, which may be after `out` was closed."""
        if not self._out.closed:
            self._out.flush()
