"""Measure what a point costs that is timed again from a recording, as a share of its run.

    python tools/bench_retime.py [--points N] [BENCH[,NAME=VALUE …] …]

A point has other hardware than the recorded run: an overhead of HBM, a bandwidth of the mesh and an overhead of the
DMAs, drawn at random. Runs and points take turns in one process, and each is measured in processor time: a point from
its configuration to its times (the machine compiled and built, timed by the native engine, and given back). Every tenth
point is held against its run, whose times must be equal.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_builtin.door import run
from kernbench_builtin.native.timing import NativeTimes, Retimer
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compile_topology
from kernbench_core.topology.design import machine_of

CASES = "gemm,M=1024,N=1024,K=1024", "softmax,rows=1823,cols=781", "attention,tokens=512"
#: Points that come before those that are measured: what depends on no times is worked out with the first.
_FIRST = 4
_CHECK_EVERY = 10


def drawn(draw: random.Random) -> list[str]:
    """Return the settings of a point."""
    return [
        f"components.hbm_ctrl.params.overhead={draw.uniform(5, 60):.3f} ns",
        f"cube.noc.bandwidth={draw.uniform(64, 512):.1f} GB/s",
        f"components.pe_dma.params.overhead={draw.uniform(1, 20):.2f} ns",
    ]


def took(what: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long something takes, in s of processor time, and what it returns."""
    began = time.process_time()
    found = what()
    return time.process_time() - began, found


def retimed(retimer: Retimer, plugins: Plugins, topology: str, settings: list[str]) -> NativeTimes:
    """Time a recording on the machine of some settings."""
    config = configure(plugins, topology, None, settings)
    return retimer.times(machine_of(compile_topology(config, plugins)))


def measured(case: str, topology: str, points: int) -> tuple[float, float, int]:
    """Return how long a run and a point take, in s, and how many points were held against their runs."""
    bench, *given = case.split(",")
    params = dict(each.split("=", 1) for each in given)
    plugins, draw = load_plugins(), random.Random(1)
    retimer = Retimer(run(bench, topology, params, record=True, plugins=plugins).native.recording, plugins)
    runs, again, checked = [], [], 0
    for number in range(_FIRST + points):
        settings = drawn(draw)
        full = number % _CHECK_EVERY == 0
        if full:
            s, result = took(lambda: run(bench, topology, params, set=settings, plugins=plugins))  # noqa: B023
            runs.append(s)
        s, times = took(lambda: retimed(retimer, plugins, topology, settings))  # noqa: B023
        if number >= _FIRST:
            again.append(s)
        if full:
            if times.total_ns != result.total_ns:
                raise SystemExit(f"{case} with {settings} must take {result.total_ns} ns, not {times.total_ns}.")
            checked += 1
    return statistics.median(runs), statistics.median(again), checked


def main(argv: list[str] | None = None) -> int:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="BENCH[,NAME=VALUE …]")
    parser.add_argument("--points", type=int, default=40, help="How many points are measured.")
    parser.add_argument("--topology", default="default")
    options = parser.parse_args(argv)
    for case in options.cases:
        full, again, checked = measured(case, options.topology, options.points)
        print(f"{case}: run {full * 1e3:.0f} ms, point {again * 1e3:.0f} ms, {again / full:.1%}; {checked} equal")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
