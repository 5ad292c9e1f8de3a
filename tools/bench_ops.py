"""Measure what an op costs, in microseconds of processor time: to simulate it (phase 1), to compute it (phase 2).

    python tools/bench_ops.py [--json] [--quick]

Each is the difference of a long run and a short one of the same bench, so that building the machine does not count; of
several, the least. An op of a collective takes hops of its tile with it, one of attention those of a load: beside them
tools/bench_engine.py tells what a hop costs.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_engine import Result, command

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.result import RunResult

PLUGINS = load_plugins(own_plugins(), installed=False)
LLAMA = {"model": "llama3-8b"}
#: What is simulated: the name, the bench, settings, and the parameters of a short run, a long one, and a quick one.
JOBS: tuple[tuple[str, str, str, list[str], dict[str, Any], dict[str, Any], dict[str, Any]], ...] = (
    (
        "attention", "attention", "default", [], {**LLAMA, "tokens": 128}, {**LLAMA, "tokens": 1024},
        {**LLAMA, "tokens": 256},
    ),
    (
        "an all-reduce over 8 packages", "collective", "default", ["system.sips=8"], {"size": "64 KiB"},
        {"size": "1 MiB"}, {"size": "256 KiB"},
    ),
)  # fmt: skip


def simulated(
    bench: str, topology: str, sets: list[str], params: dict[str, Any], data: bool
) -> tuple[float, RunResult]:
    """Return the processor seconds of a run without phase 2, and what came of it."""
    gc.collect()
    began = time.process_time()
    result = run(bench, topology, params, set=sets, data=data, plugins=PLUGINS)
    return time.process_time() - began, result


def phase_1(quick: bool) -> Iterable[Result]:
    """Simulate shapes of attention, and an all-reduce."""
    for name, bench, topology, sets, short, long, little in JOBS:
        costs = []
        simulated(bench, topology, sets, short, False)  # imports, and what a process keeps
        for _ in range(1 if quick else 3):
            base, least = simulated(bench, topology, sets, short, False)
            took, most = simulated(bench, topology, sets, little if quick else long, False)
            ops, events = most.timing.ops - least.timing.ops, most.events - least.events
            costs.append((took - base) / ops * 1e6)
        yield Result(f"an op of {name}, phase 1", min(costs), "us")
        yield Result(f"events of an op of {name}", events / ops, "events")


def phase_2(quick: bool) -> Iterable[Result]:
    """Compute the data of attention from its log."""
    costs = []
    for tokens in (64, *[128 if quick else 512] * (1 if quick else 3)):  # the first warms up
        result = simulated("attention", "default", [], {**LLAMA, "tokens": tokens}, True)[1]
        executor = DataExecutor(result.op_log, result.store)
        began = time.process_time()
        executor.run()
        costs.append((time.process_time() - began) / result.timing.ops * 1e6)
    yield Result("an op of attention, phase 2", min(costs[1:]), "us")


#: Every measurement: a function of `quick` that yields results.
MEASUREMENTS = (phase_1, phase_2)

if __name__ == "__main__":
    sys.exit(command(MEASUREMENTS, __doc__))
