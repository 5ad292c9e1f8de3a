"""Measure what a timeline costs: a run with and without one side by side, and each format for about so many slices.

    python tools/bench_timeline.py [--slices 1000000] [--rounds 3]

Ratios are of the processor time of the best of several rounds in turn, so that what else the machine does meets both
alike. Sizes are of whole files. The peak memory is that of a process of its own for each, by the kernel's own count.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import kernbench as kb
from kernbench_builtin.pages.exporters import chrome_trace, perfetto
from kernbench_builtin.pages.timeline import Timeline, load, save

RUN: dict[str, Any] = {"bench": "gemm-naive", "topology": "default", "data": False}
LEVELS = (None, "host", "unit", "channel", "wire")


def timed(level: str | None, size: int) -> tuple[float, Any]:
    """Run once at a level, None for no timeline; return the seconds, and the result."""
    options = {} if level is None else {"timeline": True, "level": level}
    began = time.process_time()
    result = kb.run(**RUN, params=dict.fromkeys("MNK", size), **options)
    return time.process_time() - began, result


def cost(rounds: int) -> None:
    """Print what recording costs, by level, as a ratio of a run without."""
    best: dict[str | None, float] = {}
    spans: dict[str | None, int] = {}
    for _ in range(rounds):
        for level in LEVELS:
            took, result = timed(level, 512)
            best[level] = min(took, best.get(level, took))
            spans[level] = 0 if level is None else len(result.timeline.spans)
    print(f"{'level':10} {'run':>8} {'ratio':>6} {'spans':>9}")
    for level in LEVELS:
        print(f"{level or 'none':10} {best[level]:7.2f}s {best[level] / best[None]:6.2f} {spans[level]:9,}")


def sized(slices: int) -> Timeline:
    """Return the timeline of a real run, as much longer as it takes to have so many slices."""
    size = 512
    while True:
        timeline: Timeline = timed("wire", size)[1].timeline
        if len(timeline.spans) >= slices:
            return timeline
        size *= 2


def formats(path: Path) -> None:
    """Print the time, size and memory of each format, each in a process of its own."""
    print(f"{'format':10} {'time':>8} {'size':>9} {'a slice':>8} {'peak':>9}")
    for name in ("read", "npz", "pftrace", "json", "json.gz"):
        subprocess.run([sys.executable, __file__, "--one", name, str(path)], check=True)


def one(name: str, path: Path) -> None:
    """Write one format and print what that took; "read" only reads the timeline, which all of them do first."""
    timeline = load(path)
    began = time.process_time()
    with tempfile.NamedTemporaryFile() as file:
        out: Any = file
        if name == "npz":
            save(timeline, out)
        elif name == "pftrace":
            perfetto.export(timeline, out)
        elif name == "json":
            chrome_trace.export(timeline, out)
        elif name == "json.gz":
            import gzip

            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                chrome_trace.export(timeline, packed)
        out.seek(0, io.SEEK_END)
        took, size = time.process_time() - began, out.tell()
    status = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    peak = int(status.split()[0]) / 1024
    print(f"{name:10} {took:7.2f}s {size / 1e6:6.1f} MB {size / len(timeline.spans):6.1f} B {peak:6.0f} MB", flush=True)


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("FORMAT", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one[0], Path(given.one[1]))
        return
    cost(given.rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.npz"
        timeline = sized(given.slices)
        print(repr(timeline))
        save(timeline, path)
        del timeline
        formats(path)


if __name__ == "__main__":
    main()
