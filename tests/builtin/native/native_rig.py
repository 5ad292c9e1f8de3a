"""Runs that are recorded, and machines that are changed at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import Any

import attrs

from kernbench_builtin.native.compared import differences
from kernbench_builtin.native.recorder import StreamRecorder
from kernbench_builtin.native.recording import Recording
from kernbench_builtin.native.timing import hardware_of, refusals, time_recording
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.design import Machine, machine_of
from kernbench_core.units import grid_ceil

#: Sizes of benches whose runs take a fraction of a second, and that hold for other times.
SMALL: dict[str, dict[str, Any]] = {
    "vector-add": {"n": 4096},
    "gemm-naive": {"M": 64, "N": 64, "K": 64},
    "softmax": {"rows": 32, "cols": 128},
    "gemm": {"M": 128, "N": 128, "K": 128},
    "gemm-composite": {"M": 64, "N": 64, "K": 64},
}
_COUNTS = {"servers": (1, 2, 8), "walkers": (1, 4), "tiles_in_flight": (1, 2, 4), "channels": (1, 2, 4)}
_FACTORS = (0.37, 0.5, 1.0, 1.3, 3.1)


@cache
def plugins() -> Plugins:
    return load_plugins(own_plugins(), installed=False)


@cache
def machine(topology: str = "tiny", *sets: str) -> Machine:
    return machine_of(compile_topology(configure(plugins(), topology, sets=sets), plugins()))


Program = str | Callable[..., Any]


def run_on(graph: Machine, bench: Program, params: dict[str, Any] | None = None, **given: Any) -> GraphEngine:
    """Run a bench on a machine."""
    engine = GraphEngine(graph, plugins().components, plugins=plugins(), **given)
    program = plugins().benches.load(bench) if isinstance(bench, str) else bench
    engine.run(program, SMALL.get(bench, {}) if params is None and isinstance(bench, str) else params)
    return engine


def recorded(bench: Program, graph: Machine | None = None, **given: Any) -> tuple[GraphEngine, Recording]:
    """Run a bench on a machine, `tiny` by default, and record it."""
    recorder = StreamRecorder()
    engine = run_on(graph or machine(), bench, observers=(recorder,), **given)
    return engine, recorder.recording(engine)


def unlike(recording: Recording, engine: GraphEngine) -> list[str]:
    """Time a recording on the machine of a run, and say where the two differ."""
    hardware = hardware_of(engine.machine, plugins())
    assert [cause for cause in refusals(recording, engine.machine, hardware) if "looked at" not in cause] == []
    return differences(engine, recording, time_recording(recording, hardware))


def changed(graph: Machine, seed: int) -> Machine:
    """Return a machine of other times, rates and places, alike for all units of a kind."""
    made = random.Random(seed)
    chosen: dict[tuple[str, str], Any] = {}

    def value(kind: str, param: Any, old: Any) -> Any:
        key = kind, param.name
        if param.name in _COUNTS:
            return chosen.setdefault(key, made.choice(_COUNTS[param.name]))
        if param.dimension in ("time", "bandwidth", "frequency"):
            return old * chosen.setdefault(key, made.choice(_FACTORS))
        return old

    nodes, edges = {}, {}
    for name, node in graph.nodes.items():
        declared = {param.name: param for param in plugins().components.load(node.impl).PARAMS}
        params = dict(node.params)
        params |= {key: value(node.kind, declared[key], old) for key, old in params.items() if key in declared}
        nodes[name] = attrs.evolve(node, params=MappingProxyType(params))
    for ends, edge in graph.edges.items():
        rate = chosen.setdefault((edge.kind.name, "rate"), made.choice(_FACTORS))
        slower = chosen.setdefault((edge.kind.name, "latency"), made.choice(_FACTORS))
        edges[ends] = attrs.evolve(edge, bandwidth=edge.bandwidth * rate, latency=grid_ceil(edge.latency * slower))
    return attrs.evolve(graph, nodes=MappingProxyType(nodes), edges=MappingProxyType(edges))
