"""Measure how simulating scales: events in flat memory, ranks, PEs, a layer of a large model; each alone in a process.

    python tools/bench_scale.py [--json] [--quick] [JOB ...]

The exit code is 1 when a limit is passed. Memory and events do not depend on the machine, and of times only a ratio
has a limit: the time of an event on `full` (512 PEs) over that on `tiny` (4 PEs), for the same work of each PE. All
take half an hour, and up to 2 GiB; nothing else should run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs
import bench_ccl
from bench_engine import Result, table
from bench_models import measure
from gates.arguments import add_jobs

#: Growth of the resident memory from a hundredth of the events to all of them, in MiB.
MOST_GROWTH = 1.0
#: Cost of an event with 512 PEs, in that of an event with 4: processor time of simulating alone.
MOST_COST = 1.4

HOPS = """
import resource, sys
sys.path[:0] = sys.argv[2:]
from bench_engine import STAGES, UNDER_WAY, Chain, Forward
peaks, events = [], 0
for part in (0.01, 1.0):
    chain = Chain(Forward, int(int(sys.argv[1]) * part) // (STAGES * UNDER_WAY))
    s = chain.seconds()
    events = chain.env.events
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(events, s, *peaks)
"""

RUNS = """
import json, sys, time
from kernbench_core.engine.watchdog import Watchdog
from kernbench_core.plugins import load_plugins, own_plugins
from kernbench_core.runs.bench_run import run
plugins = load_plugins(own_plugins("builtin"), installed=False)
took = []
simulate = Watchdog.run
def timed(self, *rest):
    began = time.process_time()
    simulate(self, *rest)
    took.append(time.process_time() - began)
Watchdog.run = timed
for topology, params in json.loads(sys.argv[1]):
    found = run("gemm-naive", topology, params, data=False, plugins=plugins)
    took[-1] /= found.events
print(json.dumps(took))
"""


def _printed(program: str, *given: str) -> str:
    """Return what a program prints in a process of its own."""
    asked = [sys.executable, "-c", program, *given]
    return subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout


def flat_memory(quick: bool) -> Iterable[Result]:
    """Simulate 10⁸ events of messages that go through a chain; memory must not grow with them."""
    number = 10**5 if quick else 10**8
    words = _printed(HOPS, str(number), *(str(Path(__file__).resolve().parents[up]) for up in (0, 1))).split()
    events, s, before, after = (float(word) for word in words)
    yield Result("events of a chain", events / 1e6, "million")
    yield Result("events of a chain, per second", events / s / 1e3, "k/s")
    yield Result("growth of memory over them", after - before, "MiB", MOST_GROWTH)


def cost_of_an_event(quick: bool) -> Iterable[Result]:
    """Run gemm with the same tiles for each PE on 4 and on 512 PEs."""
    # a PE of each has as many tiles: N and M grow with the PEs
    small = ("tiny", {"M": 256, "N": 256, "K": 256} if quick else {"M": 1024, "N": 512, "K": 512})
    large = small if quick else ("full", {"M": 8192, "N": 8192, "K": 512})
    ratios = []
    for _ in range(1 if quick else 5):
        _, few, many = json.loads(_printed(RUNS, json.dumps([small, small, large])))
        ratios.append(many / few)
    most = None if quick else MOST_COST
    yield Result("an event with 512 PEs, in events with 4", statistics.median(ratios), "times", most)


def ranks(quick: bool) -> Iterable[Result]:
    """All-reduce 1 MiB over 64 packages, its data checked."""
    job = bench_ccl.QUICK["sips-4K"] if quick else attrs.evolve(bench_ccl.JOBS["sips-1M"], what="64 SIPs", ranks=64)
    yield from _collective("all-reduce of 1 MiB over 64 packages", job)


def pes(quick: bool) -> Iterable[Result]:
    """All-reduce 16 MiB of each of 512 PEs, shapes only."""
    job = bench_ccl.QUICK["pes-4K"] if quick else bench_ccl.JOBS["pes-16M"]
    yield from _collective("all-reduce of 16 MiB over 512 PEs", job)


def _collective(name: str, job: bench_ccl.Job) -> Iterable[Result]:
    found = bench_ccl.measure(job)
    yield Result(f"{name}: wrong or faulty", float((found["wrong"] or 0) + len(found["faults"])), "elements", 0.0)
    yield from _results(name, found)


def layer(quick: bool) -> Iterable[Result]:
    """Run the parts of a decoder layer of llama3-70b on 1024 tokens, shapes only."""
    tokens, model = (16, "gpt2") if quick else (1024, "llama3-70b")
    parts = ("layernorm",) if quick else ("rmsnorm", "qkv-gemm", "attention", "mlp")
    found = [measure(part, "default", {"model": model, "tokens": tokens}, data=False) for part in parts]
    whole = {name: sum(each[name] for each in found) for name in ("events", "ops", "cpu_s")}
    yield from _results("a layer of llama3-70b", whole | {"peak_mib": max(each["peak_mib"] for each in found)})


def _results(name: str, found: dict[str, Any]) -> Iterable[Result]:
    yield Result(f"{name}: events", found["events"] / 1e6, "million")
    yield Result(f"{name}: processor time", found["cpu_s"], "s")
    yield Result(f"{name}: peak memory", found["peak_mib"], "MiB", 2048.0)


JOBS: dict[str, Callable[[bool], Iterable[Result]]] = {
    "events": flat_memory, "cost": cost_of_an_event, "ranks": ranks, "layer": layer, "pes": pes,
}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Be the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_jobs(parser, JOBS)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="measure less, for tests")
    options = parser.parse_args(argv)
    results: list[Result] = []
    for name in options.jobs or list(JOBS):
        found = list(JOBS[name](options.quick))
        if not options.json:
            print(table(found), flush=True)
        results += found
    if options.json:
        print(json.dumps([{**attrs.asdict(result), "ok": result.ok} for result in results], indent=2))
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
