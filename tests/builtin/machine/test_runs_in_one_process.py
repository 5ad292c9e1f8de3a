"""Runs in one process share what cannot change, and never see each other: each is as it is in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb

#: Some share a machine with others, some a bench; one has a machine of its own.
RUNS: tuple[tuple[str, Mapping[str, object], Mapping[str, object]], ...] = (
    ("gemm", {"M": 32, "N": 32, "K": 32}, {}),
    ("gemm", {"M": 48, "N": 32, "K": 16}, {}),
    ("gemm", {"M": 32, "N": 32, "K": 32}, {"cube.pes": 2}),
    ("gemm", {"M": 32, "N": 32, "K": 32}, {"components.pe_dma.params.servers": 1}),
    ("softmax", {}, {"cube.hbm.capacity": "4 GiB"}),
)


def seen(result: kb.RunResult) -> tuple[Any, ...]:
    """Return what tells two runs apart."""
    return result.op_log_sha256, result.total_ns, result.events, result.timing.ops, str(result.links)


def carried_out(number: int) -> tuple[Any, ...]:
    bench, params, sets = RUNS[number]
    return seen(kb.run(bench, "tiny", params=dict(params), set=dict(sets)))


@cache
def alone(number: int) -> tuple[Any, ...]:
    """Return the same of a process that does nothing else."""
    program = (
        "import json\nfrom tests.builtin.machine.test_runs_in_one_process import carried_out\n"
        f"print(json.dumps(carried_out({number})))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout.splitlines()[-1]))


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(0, len(RUNS) - 1), min_size=3, max_size=4))
def test_runs_one_after_the_other_are_as_each_alone(numbers: list[int]) -> None:
    """In any order, each as often as may be."""
    for number in numbers:
        assert carried_out(number) == alone(number)


def test_a_run_inside_another_changes_neither() -> None:
    """Both on one machine, the one begun and ended while the other waits at its host program."""
    found = []

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x, tl.load(x) + 1.0)

    def bench(rt: Any, *, inside: bool) -> None:
        x = rt.zeros((64,), "f32")
        rt.launch(kernel, x)
        if inside:
            found.append(carried_out(0))
        rt.launch(kernel, x)

    plain, nested = (kb.run(bench, "tiny", params={"inside": inside}) for inside in (False, True))
    assert seen(nested) == seen(plain)
    assert found == [alone(0)]
    assert carried_out(0) == alone(0)
