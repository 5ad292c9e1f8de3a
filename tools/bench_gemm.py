"""Measure the main job on the real machine: simulating `gemm`, and computing the data of `gemm-composite`.

    python tools/bench_gemm.py [--json] [--quick]

Ratios compare two things measured side by side in this run, on the op log of the real bench. The exit code is 1 when
one is above its limit. `--quick` measures smaller products: its ratios say little.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_engine import Result, command

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.oplog.log import OpLog
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.result import RunResult
from kernbench_core.values.memory_store import MemoryStore

Array = npt.NDArray[Any]
PLUGINS = load_plugins(own_plugins("builtin"), installed=False)
#: Limits of phase 2 against plain numpy, in times.
MOST_TIME, MOST_MEMORY = 1.5, 1.25


def cube(size: int) -> dict[str, int]:
    """Return the parameters of a product of two square matrices."""
    return {"M": size, "N": size, "K": size}


def simulation(quick: bool) -> Iterable[Result]:
    """Simulate gemm on 64 PEs, shapes only."""
    result = run("gemm-naive", "default", cube(256 if quick else 1024), data=False, plugins=PLUGINS)
    yield Result("events of gemm", result.events, "events")
    yield Result("events per hop", result.events / result.timing.hops, "events")
    yield Result("events per second", result.events / result.timing.wall_s / 1e3, "k/s")
    yield Result("op records", result.timing.ops, "records")


def phase_2(quick: bool) -> Iterable[Result]:
    """Compute the data of gemm-composite f16 from its log, and the same with plain numpy, in turn."""
    ratios, replay_s = [], []
    simulated = composite(quick)
    a, b = operands(simulated)
    plain(a, b)
    for _ in range(3 if quick else 5):
        before = seconds(lambda: plain(a, b))
        replay_s.append(seconds(lambda s=simulated: replay(s.op_log, s.store)))
        ratios.append(2 * replay_s[-1] / (before + seconds(lambda: plain(a, b))))
        simulated = composite(quick)
    yield Result("phase 2 of gemm-composite", statistics.median(replay_s) * 1e3, "ms")
    yield Result("phase 2, in plain computations", statistics.median(ratios), "times", None if quick else MOST_TIME)
    plain_peak = peak_bytes(lambda: plain(a, b))
    replay_peak = peak_bytes(lambda: replay(simulated.op_log, simulated.store))
    yield Result("peak extra memory of plain numpy", plain_peak / 2**20, "MiB")
    yield Result("peak extra memory of phase 2", replay_peak / 2**20, "MiB")
    ratio = replay_peak / plain_peak
    yield Result("phase 2's memory, in plain computations", ratio, "times", None if quick else MOST_MEMORY)


def composite(quick: bool) -> RunResult:
    """Simulate gemm-composite afresh: values keep what phase 2 made of them.

    Chunks of 64 KiB spare events; the op log has the same records with any.
    """
    coarse = ("system.chunk_bytes=64 KiB",)
    return run("gemm-composite", "default", cube(512 if quick else 2048), set=coarse, plugins=PLUGINS)


def operands(simulated: RunResult) -> tuple[Array, Array]:
    """Return copies of what the bench multiplied: the same random numbers, drawn again."""
    size = simulated.params["M"]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), np.float32).astype(np.float16) for _ in range(2))
    return a, b


def plain(a: Array, b: Array) -> Array:
    """Compute the product as a user of numpy would."""
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


def replay(log: OpLog, store: MemoryStore) -> DataExecutor:
    """Compute every op of a log."""
    executor = DataExecutor(log, store)
    executor.run()
    return executor


def seconds(function: Callable[[], object]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def peak_bytes(function: Callable[[], object]) -> int:
    """Return the peak of traced memory above the start."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    function()
    found = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return found


#: Every measurement: a function of `quick` that yields results.
MEASUREMENTS: tuple[Callable[[bool], Iterable[Result]], ...] = (simulation, phase_2)


if __name__ == "__main__":
    sys.exit(command(MEASUREMENTS, __doc__))
