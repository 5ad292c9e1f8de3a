"""The answer of a run in one line: bench, total time, and in words whether the data is right.

In a file or a pipe it is written as it is: drawing for terminals, which takes longer to import than a small run takes,
is for them.
"""

from __future__ import annotations

from typing import IO

from kernbench_core.process.terminal import plain_width
from kernbench_core.runs.result import RunResult
from kernbench_core.units import format_time


def print_summary(result: RunResult, stream: IO[str]) -> None:
    """Print one line: bench, total time, verdict, and what parts that were asked for answered in short."""
    short = (getattr(result.parts.get(name), "in_short", "") for name in sorted(result.asked))
    pieces = [
        (result.bench, "bold"), (f" on {result.topology}: ", ""), (format_time(result.total_ns), "bold"), (", ", ""),
        *result.words(), *((f", {text}", "") for text in short if text),
    ]  # fmt: skip
    line = "".join(text for text, _ in pieces)
    if not stream.isatty() and line.isascii() and line.isprintable() and len(line) <= plain_width():
        stream.write(f"{line}\n")
        return
    from kernbench_core.runs.text_report import show_line

    show_line(pieces, stream)
