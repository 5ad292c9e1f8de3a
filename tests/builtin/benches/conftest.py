"""What tests of the benches share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.result import RunResult

#: Machines that are no preset: "packages" has two packages, each of 2 x 2 cubes of two PEs.
MACHINES = {
    "packages": ("tiny", ("system.sips=2", "sip.mesh.width=2", "sip.mesh.height=2", "cube.pes=2")),
}


@pytest.fixture(name="run")
def _run(plugins: Plugins) -> Callable[..., RunResult]:
    """Return a function that runs a bench on a preset or "packages", its data verified unless it is told otherwise."""

    def run_bench(bench: Any, topology: str = "tiny", /, *, options: Any = None, **params: Any) -> RunResult:
        preset, sets = MACHINES.get(topology, (topology, ()))
        given = {"verify_data": True, **(options or {})}
        return run(bench, preset, params, plugins=plugins, **{**given, "set": (*sets, *given.get("set", ()))})

    return run_bench


@pytest.fixture(name="small")
def _small() -> dict[str, Any]:
    """Return parameters that make a matrix product quick."""
    return {"M": 64, "N": 64, "K": 64, "tile_m": 16, "tile_n": 32, "tile_k": 32}
