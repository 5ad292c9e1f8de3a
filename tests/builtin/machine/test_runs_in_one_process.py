"""Runs in one process share what cannot change, and never see each other: each is as it is in a process of its own."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.environment import Environment
from kernbench_core.errors import DeadlockError, KernelError, LimitError

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


EACH_IN_A_FORK = """
import importlib, json, os, sys
here = importlib.import_module(sys.argv[1])
for number in range(len(here.RUNS)):
    if not os.fork():
        print(json.dumps(here.carried_out(number)), flush=True)
        os._exit(0)
    os.wait()
"""


@cache
def all_alone() -> list[tuple[Any, ...]]:
    """Return the same of processes that do nothing else, nor did before they were forked."""
    program = [sys.executable, "-c", EACH_IN_A_FORK, __name__]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def alone(number: int) -> tuple[Any, ...]:
    return all_alone()[number]


@settings(max_examples=10)
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


def raises(tl: Any) -> None:
    """Raise on one PE while the others compute."""
    tile = tl.zeros((16, 16), "f32")
    if tl.program_id(0) == 0:
        raise ValueError("no")
    tl.dot(tile, tile)


def waits(tl: Any) -> None:
    """Wait for what nobody sends."""
    tl.recv((8,), "f32", (tl.program_id(0) + 1) % tl.num_programs(0))


def computes(tl: Any) -> None:
    """Compute for longer than it may."""
    tile = tl.zeros((16, 16), "f32")
    for _ in range(100):
        tile = tl.dot(tile, tile)


def machines() -> int:
    """Return how many machines are in memory."""
    gc.collect()
    return sum(isinstance(each, Environment) for each in gc.get_objects())


@pytest.mark.parametrize(
    ("kernel", "options", "error"),
    [
        (raises, {}, KernelError),
        (waits, {}, DeadlockError),
        (computes, {"max_events": 300}, LimitError),
    ],
)
def test_a_run_that_fails_leaves_nothing(kernel: Any, options: dict[str, Any], error: type[Exception]) -> None:
    """Its kernels are suspended, and with one of them all that it knows would stay."""
    before = machines()
    for _ in range(2):
        with pytest.raises(error):
            kb.run(lambda rt: rt.launch(kernel), "tiny", **options)
    assert machines() <= before


def test_what_a_finally_block_raises_hides_no_error() -> None:
    """Kernels that are suspended when another raises end, too; what they raise then is nobody's."""

    def kernel(tl: Any) -> None:
        try:
            raises(tl)
        finally:
            if tl.program_id(0):
                raise KeyError("from the end of another")

    with pytest.raises(KernelError, match="ValueError: no"):
        kb.run(lambda rt: rt.launch(kernel), "tiny")
