"""Measure what looking for hazards costs: processor time of simulating with the search on, against off.

    python tools/bench_hazards.py [--json] [--quick]

Each job is simulated in pairs, on and off in turn, and which of the two comes first changes from pair to pair; only the
simulation counts, not compiling the machine. The number is the median of the pairs' ratios. The exit code is 1 when
one passes its limit. Nothing else should run on the machine.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_engine import Result, command

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Chooser, Question, Setup, Sweep, machine_of
from kernbench_ccl.measure.timed_run import TimedRun
from kernbench_ccl.plan import load_ccl
from kernbench_core.host.bench import open_bench
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology

PAIRS, MOST = 9, 1.10

Job = Callable[[], tuple[GraphEngine, Callable[[], None]]]
"""Makes an engine, and what runs it."""


def bench_job(plugins: Plugins, name: str, topology: str, **params: object) -> Job:
    """Return a job that runs a registered bench."""
    bench = open_bench(name, plugins.benches)
    graph = compile_topology(configure(plugins, topology), plugins)
    values = bench.values(params)

    def made() -> tuple[GraphEngine, Callable[[], None]]:
        engine = GraphEngine(graph, plugins.components, plugins=plugins)
        return engine, lambda: engine.run(bench.function, values, name=name)

    return made


def all_reduce_job(plugins: Plugins, topology: str, ranks: int, nbytes: int) -> Job:
    """Return a job that reduces vectors of so many bytes over the SIPs of a machine."""
    setup = Setup(topology, None, (f"system.sips={ranks}",))
    machine = machine_of(setup, plugins)
    question = Question(COLLECTIVES["all_reduce"], "f16", "sum", 0)
    choice = Chooser(question, machine, load_ccl(catalogue=Catalogue.of(plugins)), plugins).best(nbytes)
    case = Sweep(question, setup, machine, plugins).case(nbytes // 2, choice, False)

    def made() -> tuple[GraphEngine, Callable[[], None]]:
        engine = GraphEngine(machine.graph, plugins.components, plugins=plugins)
        ran = TimedRun(case, machine, Catalogue.of(plugins).open(case.algorithm, "all_reduce"))
        return engine, lambda: engine.run(ran.bench, name="all_reduce")

    return made


def simulated(job: Job, *, on: bool) -> float:
    """Return the seconds of processor time that a simulation takes, with the search or without it."""
    engine, run = job()
    if not on:
        engine.store.hazards = None
    gc.collect()
    began = time.process_time()
    run()
    return time.process_time() - began


def cost_of_the_search(quick: bool) -> Iterator[Result]:
    """Compare each job with itself."""
    plugins = load_plugins()
    topology, size = ("tiny", 256) if quick else ("default", 512)
    jobs = {
        "gemm": bench_job(plugins, "gemm-naive", topology, M=size, N=size, K=size),
        "attention": bench_job(plugins, "attention", topology, tokens=size // 4),
        "all_reduce": all_reduce_job(plugins, "tiny", 2 if quick else 8, 4096 if quick else 1 << 18),
    }
    for name, job in jobs.items():
        simulated(job, on=True)
        ratios = []
        for pair in range(1 if quick else PAIRS):
            first = simulated(job, on=pair % 2 == 0)
            second = simulated(job, on=pair % 2 == 1)
            ratios.append(first / second if pair % 2 == 0 else second / first)
        limit = None if quick else MOST
        yield Result(f"{name}: processor time with the search", statistics.median(ratios), "times", limit)


if __name__ == "__main__":
    sys.exit(command((cost_of_the_search,), __doc__))
