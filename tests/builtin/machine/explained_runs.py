"""Runs that are explained, and what holds of every explanation, for tests of what is told of them."""

from __future__ import annotations

from typing import Any

import kernbench_core as kb
from kernbench_builtin.explain.explanation import Explanation, LaunchExplanation
from kernbench_core.runs.result import RunResult

BENCHES: dict[str, dict[str, Any]] = {
    "vector-add": {"n": 10000},
    "softmax": {"rows": 20, "cols": 40},
    "gemm": {"M": 64, "N": 64, "K": 128, "tile_m": 32, "tile_n": 32, "tile_k": 32},
    "gemm-composite": {"M": 64, "N": 64, "K": 128, "tile_m": 32, "tile_n": 32, "tile_k": 32},
    "sparse-gemm": {"M": 64, "N": 64, "K": 128, "tile_n": 32, "tile_k": 16},
}


def explain(bench: Any, *sets: str, params: dict[str, Any] | None = None, **options: Any) -> RunResult:
    """Run on `tiny`, explained."""
    return kb.run(bench, "tiny", params, set=sets, explain=True, **options)


def why(result: RunResult) -> Explanation:
    """Return the explanation that was asked for."""
    assert result.explain is not None
    return result.explain


def tiles(launch: LaunchExplanation) -> None:
    """Assert that the path covers the launch without gap or overlap, and that each segment's parts fill it."""
    reached = launch.injected_ns
    for segment in launch.path:
        assert segment.from_ns == reached
        assert segment.to_ns > segment.from_ns
        assert sum(segment.parts) == segment.ns
        assert min(segment.parts) >= 0
        reached = segment.to_ns
    assert reached == launch.completed_ns
