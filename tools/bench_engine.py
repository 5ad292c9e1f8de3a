"""Measure the engine, and compare with the limits that the project keeps to.

    python tools/bench_engine.py [--json] [--quick] [--large]
    python tools/bench_engine.py --gates [JOB ...] [--before TREE] [--update] [--quick]

Everything is a ratio of two things measured side by side in this run, so the numbers hold on any
machine. Each measurement is one function that returns `Result`s; `MEASUREMENTS` lists them. The exit
code is 1 when a gate fails. `--large` runs two large jobs instead, one after another, each in a process of its own,
and compares them with 120 s and 2 GiB: that takes minutes, and the times are those of this machine. `--gates` runs
commands in this tree, in Python and compiled, and in a checkout of the last commit that was pure Python, in turn: how
many times as fast they are stands in the table of docs/speed.md, which `--update` writes.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import simpy

from kernbench_core.compiled import is_compiled
from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.graph import Graph, Node
from kernbench_core.messages import Command, MsgBase
from kernbench_core.testing import line
from kernbench_core.wire import Wire

#: Hops of the chain, messages that are in it at a time.
STAGES, UNDER_WAY = 16, 32
#: In how many processes at most a ratio of times is measured until it keeps to its limit in more than half of them.
PROCESSES = 7


@attrs.frozen
class Result:
    """One measured number, its unit, and the limit that it must not pass (None: for information)."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the gate holds."""
        return self.limit is None or self.value <= self.limit


class Load(Command):
    """A logged message, as unit commands are (hooks have to look at it), that goes through the chain `rounds` times."""

    __slots__ = ("first", "rounds")

    serves = "stage"

    def __init__(self, number: int, path: tuple[str, ...], first: Wire, rounds: int) -> None:
        super().__init__((0, number), 64)
        self.path = path
        self.first = first
        self.rounds = rounds

    def at_end(self, component: ComponentBase, head: float, tail: float) -> None:
        """Go onto the first wire again, as a component would send it: no event is spent on getting it there."""
        self.rounds -= 1
        if self.rounds >= 0:
            self.hop = 1
            self.first.send(self, head, tail)


class Forward(ComponentBase):
    """Forward with a constant latency."""

    def overhead(self, msg: MsgBase) -> float:
        """Return 1 ns."""
        return 1.0


class Serve(ComponentBase):
    """Serve for a constant time, as a process."""

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        """Take 1 ns."""
        yield env.timeout(1.0)


class _Classes:
    def __init__(self, stage: type[ComponentBase]) -> None:
        self._stage = stage

    def load(self, name: str) -> Any:
        return self._stage


class Chain:
    """A chain of `STAGES` hops between alike components and `UNDER_WAY` messages that each cross it `rounds` times."""

    def __init__(self, stage: type[ComponentBase], rounds: int) -> None:
        path = tuple(f"stage{i:02d}" for i in range(STAGES + 1))
        nodes = [Node(name, "stage", "stage") for name in path]
        self.hardware = Hardware(Environment(), Graph.of(nodes, line(*path, bandwidth=64.0)))
        self.hardware.build(_Classes(stage))
        self.env = self.hardware.env
        # workers start; that is not part of a hop
        self.env.advance(10 * STAGES)
        self._before = self.env.events
        first = self.hardware.components[path[0]].out_ports[path[1]]
        for number in range(UNDER_WAY):
            Load(number, path, first, rounds).at_end(self.hardware.components[path[-1]], 0.0, 0.0)

    @property
    def hops(self) -> int:
        """Deliveries so far."""
        return sum(wire.deliveries for wire in self.hardware.wires)

    def seconds(self) -> float:
        """Run everything; return the processor time that it took."""
        began = time.process_time()
        while self.env.advance(1 << 20):
            pass
        return time.process_time() - began

    @property
    def events_per_hop(self) -> float:
        """SimPy events for each delivery, after `seconds`."""
        return (self.env.events - self._before) / self.hops


def bare_timeouts(number: int) -> float:
    """Return the seconds that a process takes to yield `number` timeouts on a plain SimPy environment."""

    def ticking(env: simpy.Environment) -> Any:
        for _ in range(number):
            yield env.timeout(1.0)

    env = simpy.Environment()
    env.process(ticking(env))
    began = time.process_time()
    env.run()
    return time.process_time() - began


def settled(measure: Callable[[bool], Iterable[Result]]) -> Callable[[bool], Iterable[Result]]:
    """Return a measurement that measures in fresh processes too where a limit is passed: the upper median counts.

    Beside others, and by where its memory happens to lie, one process in ten takes a fifth longer for one of the two
    things that a ratio compares, all the time that it runs: to repeat that in the same process finds it again.
    """

    def again(quick: bool) -> Iterable[Result]:
        found = [list(measure(quick))]
        while True:
            results = [
                attrs.evolve(each[0], value=statistics.median_high(result.value for result in each))
                for each in zip(*found, strict=True)
            ]
            if len(found) == PROCESSES or all(result.ok for result in results):
                return results
            asked = [sys.executable, __file__, "--once", measure.__name__, "quick" if quick else "long"]
            done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
            found.append([Result(**result) for result in json.loads(done.stdout)])

    return again


def once(name: str, quick: bool) -> str:
    """Return the results of one measurement in this process, as JSON."""
    measure = {"hop_costs": hop_costs, "hook_costs": hook_costs}[name]
    return json.dumps([attrs.asdict(result) for result in measure(quick)])


def hop_costs(quick: bool) -> Iterable[Result]:
    """Compare a hop of each style with a bare SimPy timeout, in interleaved rounds."""
    crossings, repeats = (20, 5) if quick else (100, 9)
    forwarding, serving = (0.3, 2.3) if is_compiled() else (1.6, 4.0)
    stages = (("forwarding", Forward, 1.05, forwarding), ("run()", Serve, 2.0, serving))
    for name, stage, most_events, most_timeouts in stages:
        ratios, per_hop, events = [], [], 0.0
        for _ in range(repeats):
            chain = Chain(stage, crossings)
            timeout = bare_timeouts(crossings * UNDER_WAY * STAGES) / (crossings * UNDER_WAY * STAGES)
            took = chain.seconds() / chain.hops
            per_hop.append(took * 1e6)
            ratios.append(took / timeout)
            events = chain.events_per_hop
        yield Result(f"SimPy events per {name} hop", events, "events", most_events)
        yield Result(f"a {name} hop, in bare SimPy timeouts", statistics.median(ratios), "timeouts", most_timeouts)
        yield Result(f"a {name} hop", statistics.median(per_hop), "us")


def hook_costs(quick: bool) -> Iterable[Result]:
    """Compare components that have the op log's hooks, unused, with the same code without them, where it is Python."""
    if is_compiled():
        return
    crossings, pairs = (30, 11) if quick else (100, 11)
    for name, stage in (("forwarding", Forward), ("run()", Serve)):
        bare = without_hooks(stage)
        ratios = []
        for number in range(pairs):
            order = (stage, bare) if number % 2 else (bare, stage)
            took = {cls: Chain(cls, crossings).seconds() for cls in order}
            ratios.append(took[stage] / took[bare])
        yield Result(f"{name} hop with unused hooks, against none", statistics.median(ratios), "times", 1.05)


def without_hooks(stage: type[ComponentBase]) -> type[ComponentBase]:
    """Return `stage` on machinery from which every test of the op logger has been cut out."""
    methods: dict[str, Any] = {}
    for name in ("_arrive_overhead", "begin_service", "end_service"):
        tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(ComponentBase, name))))
        stripped = _Stripper()
        stripped.visit(tree)
        if not stripped.cut:
            raise RuntimeError(f"ComponentBase.{name} must test self._op_logger; adapt {Path(__file__).name}.")
        code = compile(ast.fix_missing_locations(tree), f"<{name} without hooks>", "exec")
        exec(code, vars(sys.modules[getattr(ComponentBase, name).__module__]), methods)
    return type(f"{stage.__name__}WithoutHooks", (stage,), methods)


class _Stripper(ast.NodeTransformer):
    cut = 0

    def visit_If(self, node: ast.If) -> Any:
        if "self._op_logger" in ast.unparse(node.test):
            self.cut += 1
            return None
        return self.generic_visit(node)


def other_tools(quick: bool) -> Iterable[Result]:
    """Run the tools that measure in processes of their own: memory of the op log, the main job, what an op costs."""
    for name in OTHER_TOOLS:
        tool = str(Path(__file__).with_name(name))
        options = ["--json", *(["--quick"] if quick else [])]
        done = subprocess.run([sys.executable, tool, *options], stdout=subprocess.PIPE, text=True, check=False)
        for found in json.loads(done.stdout)["results"]:
            yield Result(found["name"], found["value"], found["unit"], found["limit"])


def large_jobs(quick: bool) -> Iterable[Result]:
    """Run each of `LARGE_JOBS` alone: its events, processor time and peak memory; the data of attention is verified."""
    from bench_models import measure

    for name, bench, topology, params, options in LARGE_JOBS:
        found = measure(bench, topology, {**params, **(LARGE_BUT_QUICK[bench] if quick else {})}, **options)
        yield Result(f"{name}: events", found["events"] / 1e6, "million")
        yield Result(f"{name}: events per second", found["events"] / found["cpu_s"] / 1e3, "k/s")
        yield Result(f"{name}: processor time", found["cpu_s"], "s", MOST_SECONDS)
        yield Result(f"{name}: wall time", found["wall_s"], "s")
        yield Result(f"{name}: peak memory", found["peak_mib"], "MiB", MOST_MIB)


#: Large jobs: name, bench, topology, parameters and options. All else is default: tiles of 128, chunks of 4 KiB.
LARGE_JOBS: tuple[tuple[str, str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("attention of 2048 tokens", "attention", "default", {"model": "llama3-8b", "tokens": 2048}, {"verify_data": True}),
    (
        "gemm-composite 4096",
        "gemm-composite",
        "full",
        {"M": 4096, "N": 4096, "K": 4096, "tile_k": 256},
        {"data": False, "set": ["system.chunk_bytes=8 KiB"]},
    ),
)
#: What `--quick` makes of them.
LARGE_BUT_QUICK: dict[str, dict[str, Any]] = {"attention": {"tokens": 128}, "gemm-composite": dict.fromkeys("MNK", 256)}
#: Limits of a large job.
MOST_SECONDS, MOST_MIB = 120.0, 2048.0
#: Tools beside this one whose results belong here.
OTHER_TOOLS = ("bench_oplog.py", "bench_gemm.py", "bench_ops.py")
#: Every measurement: a function of `quick` that yields results.
MEASUREMENTS: tuple[Callable[[bool], Iterable[Result]], ...] = (
    settled(hop_costs), settled(hook_costs), other_tools,
)  # fmt: skip


def table(results: Sequence[Result]) -> str:
    """Write the results for a person."""
    width = max(len(result.name) for result in results)
    rows = []
    for result in results:
        limit = "" if result.limit is None else f"at most {result.limit:g}"
        verdict = "" if result.limit is None else "ok" if result.ok else "TOO MUCH"
        rows.append(f"{result.name:{width}}  {result.value:8.3f} {result.unit:9} {limit:14} {verdict}".rstrip())
    return "\n".join(rows)


def command(
    measurements: Sequence[Callable[[bool], Iterable[Result]]],
    doc: str | None,
    argv: Sequence[str] | None = None,
    large: Sequence[Callable[[bool], Iterable[Result]]] = (),
    epilog: str | None = None,
) -> int:
    """Be the command line of a tool: measure, print, and return 1 when a gate fails; with --large measure `large`.

    `epilog` stands below its help.
    """
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0], epilog=epilog)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="measure less, for tests")
    if large:
        parser.add_argument("--large", action="store_true", help="run the large jobs instead")
    options = parser.parse_args(argv)
    if large and options.large:
        measurements = large
    results = [result for measurement in measurements for result in measurement(options.quick)]
    ok = all(result.ok for result in results)
    if options.json:
        print(json.dumps({"ok": ok, "results": [{**attrs.asdict(r), "ok": r.ok} for r in results]}, indent=2))
    else:
        print(table(results))
    return 0 if ok else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        print(once(sys.argv[2], sys.argv[3] == "quick"))
        sys.exit()
    if "--gates" in sys.argv:
        from gates.command import run_gates
        from gates.jobs import ENGINE

        sys.exit(run_gates(ENGINE, sys.argv[1:]))
    from gates.arguments import GATES

    sys.exit(command(MEASUREMENTS, __doc__, large=(large_jobs,), epilog=GATES))
