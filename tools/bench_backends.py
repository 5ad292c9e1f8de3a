"""Compare what computes the data of phase 2: numpy, PyTorch on the CPU, and PyTorch on a GPU, where they are.

    python tools/bench_backends.py [--json] [--quick]

Each backend computes the same log of the same run, afresh, in turn: the least wall time of four counts. The exit code
is 1 where the data of a small run, or an op of it computed a second way, are wrong. A backend that this machine lacks
is left out, with a sentence on stderr.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_engine import Result, command

from kernbench_core.compute.backends import Backend
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import UsageError
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.backends import open_backend
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.result import RunResult

PLUGINS = load_plugins(own_plugins("builtin"), installed=False)
BACKENDS = ("numpy", "torch:cpu", "torch:cuda")
COARSE = ("system.chunk_bytes=64 KiB",)
#: What is computed: the name, the bench, its parameters, and those of a quick run.
JOBS: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    (
        "attention, llama3-8b, 1024 tokens", "attention", {"model": "llama3-8b", "tokens": 1024},
        {"model": "llama3-8b", "tokens": 64},
    ),
    ("gemm-composite 2048", "gemm-composite", dict.fromkeys("MNK", 2048), dict.fromkeys("MNK", 128)),
    ("gemm-composite 4096", "gemm-composite", dict.fromkeys("MNK", 4096), dict.fromkeys("MNK", 128)),
)  # fmt: skip


def found_here() -> list[Backend]:
    """Return the backends of this machine; say why others are left out."""
    found = []
    for name in BACKENDS:
        try:
            found.append(open_backend(PLUGINS, name))
        except UsageError as error:
            print(error, file=sys.stderr)
    return found


def computed(simulated: RunResult, backend: Backend) -> tuple[float, str]:
    """Return the wall seconds that the data of a run take, and what computed them in words."""
    executor = DataExecutor(simulated.op_log, simulated.store, inputs={}, backend=backend)
    began = time.perf_counter()
    executor.run()
    took = time.perf_counter() - began
    assert executor.computed_by is not None
    return took, executor.computed_by.words


def is_wrong(bench: str, params: dict[str, Any], backend: Backend) -> bool:
    """Whether data of a small run, or any op of it alone, is not what it must be."""
    found = run(bench, "default", params, verify_data=True, verify_ops=True, backend=backend.name, plugins=PLUGINS)
    return not (found.verified and found.ops_verified)


def backends(quick: bool) -> Iterable[Result]:
    """Compute each job's data by each backend in turn, having verified a small one of its sort."""
    here = found_here()
    for name, bench, params, little in JOBS:
        simulated = run(bench, "default", little if quick else params, set=COARSE, plugins=PLUGINS)
        took: dict[str, list[float]] = {backend.name: [] for backend in here}
        words = {}
        for _ in range(1 if quick else 4):
            for backend in here:
                seconds, words[backend.name] = computed(simulated, backend)
                took[backend.name].append(seconds)
        for backend in here:
            least = min(took[backend.name])
            yield Result(f"{name}: {words[backend.name]}", least * 1e3, "ms")
            yield Result(f"{name}: {backend.name}, in numpy's time", least / min(took["numpy"]), "times")
            yield Result(f"{name}: {backend.name}, wrong", float(is_wrong(bench, little, backend)), "runs", 0.0)


#: Every measurement: a function of `quick` that yields results.
MEASUREMENTS = (backends,)

if __name__ == "__main__":
    sys.exit(command(MEASUREMENTS, __doc__))
