"""Measure what a sweep costs beside its simulations, and what a point costs that the cache has.

    python tools/bench_sweep.py [--json] [--quick]

A bench that takes about 20 ms is run at 1,000 points by two processes, each point with another machine; then the same
again from the cache, and once more in a folder that has them all. Time on the clock is that of this machine with all
else that runs on it: where it is not idle, compare the time of processors, of which two idle ones take a half each. The
exit code is 1 when a number is above its limit. `--quick` measures 40 points.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_engine import Result, command

from kernbench_builtin.sweeps import SweepPlan, planned, points_of, run_planned
from kernbench_builtin.sweeps.axes import read_axis
from kernbench_builtin.sweeps.evaluate import evaluate, import_all, job_of
from kernbench_core.plugins import load_plugins

PLUGINS = load_plugins(own_plugins("builtin"), installed=False)
PROCESSES = 2
#: Limits: seconds of 1,000 points, and ms of a point that the cache has.
MOST_S, MOST_CACHED_MS = 60.0, 5.0
#: Shapes of gemm for which a run takes about 20 ms, machine and all.
PARAMS = {"M": 32, "N": 32, "K": 32, "tile_k": 16}
_ALONE = 30


@attrs.frozen
class Cost:
    """Seconds on the clock, and of processors, of this process and of those that it waited for."""

    wall_s: float
    cpu_s: float

    def per_point_ms(self, points: int) -> Cost:
        """Return both in ms for each of so many points."""
        return Cost(self.wall_s / points * 1e3, self.cpu_s / points * 1e3)


def plan(points: int) -> SweepPlan:
    """Return so many points, each on a machine of its own."""
    axis = read_axis("host.pcie.latency", "set", f"100..900ns:lin:{points}")
    return SweepPlan(bench="gemm-naive", topology="tiny", params=PARAMS, axes=(axis,), cached=True)


def alone_ms(asked: SweepPlan) -> float:
    """Return what the processor takes for a point in a process that is warm, in ms: the median of some."""
    uncached = attrs.evolve(asked, cached=False)
    jobs = [job_of(uncached, point) for point in points_of(uncached)][: _ALONE + 2]
    import_all(PLUGINS)
    times = []
    for job in jobs:
        began = time.process_time()
        record = evaluate(job, plugins=PLUGINS)
        times.append(time.process_time() - began)
        assert record["status"] == "ok", record["error"]
    return statistics.median(times[2:]) * 1e3


def cost(action: Callable[[], object]) -> Cost:
    """Call `action`, and return what it took."""
    began_s, before_s = time.perf_counter(), _cpu_s()
    action()
    return Cost(time.perf_counter() - began_s, _cpu_s() - before_s)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def sweeps(quick: bool) -> Iterable[Result]:
    """Run the sweep thrice: anew, from the cache, and with nothing left to do."""
    points = 40 if quick else 1000
    asked = plan(points)
    each_ms = alone_ms(asked)
    with tempfile.TemporaryDirectory(prefix="kernbench-sweeps-") as path:
        os.environ["KERNBENCH_CACHE"] = str(Path(path) / "cache")
        laid = planned(asked, PLUGINS)
        anew, cached, over = (
            cost(lambda folder=folder: run_planned(laid, PLUGINS, folder=Path(path) / folder, processes=PROCESSES))
            for folder in ("anew", "again", "again")
        )
    limits = (None, None) if quick else (MOST_S, MOST_CACHED_MS)
    yield Result("a point alone, of a processor", each_ms, "ms")
    yield Result("points", points, "points")
    yield Result("all points", anew.wall_s, "s", limits[0])
    yield Result("all points, of two processors", anew.cpu_s / PROCESSES, "s", limits[0])
    yield Result("a point, of a processor", anew.per_point_ms(points).cpu_s, "ms")
    yield Result("a point beside its run, of a processor", anew.per_point_ms(points).cpu_s - each_ms, "ms")
    yield Result("a point that the cache has", cached.per_point_ms(points).wall_s, "ms", limits[1])
    yield Result("a point that the cache has, of a processor", cached.per_point_ms(points).cpu_s, "ms")
    yield Result("a point that is recorded", over.per_point_ms(points).wall_s, "ms")


if __name__ == "__main__":
    sys.exit(command((sweeps,), __doc__))
