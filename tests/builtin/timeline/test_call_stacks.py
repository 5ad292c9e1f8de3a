"""Stacks of kernel lines: who is on them, and which calls they were made of, against a walk step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_builtin.pages.timeline.call_stacks import CallStack, call_stack, calls_of
from kernbench_core.callsite import line_number
from tests.builtin.working_machine import on_machine

STACKS = ((0,), (0, 1), (0, 1, 2), (0, 2), (3, 1), (3,))
#: program, stack (-1: none), and how long after the step before on the program.
STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, len(STACKS) - 1), st.sampled_from([0, 5])), max_size=14)


def outer() -> tuple[CallStack, int]:
    """Call what notes the stack from the line after this one."""
    found = inner()
    return found, outer.__code__.co_firstlineno + 2


def inner() -> CallStack:
    """Note the stack."""
    return call_stack()


def test_the_one_that_called_stands_first() -> None:
    """Down to the line that asks; both are the user's."""
    found, line = outer()
    assert [site[0].co_name for site in found[-3:]] == [
        "test_the_one_that_called_stands_first", "outer", "inner",
    ]  # fmt: skip
    assert line_number(found[-2]) == line


def walked(steps: Sequence[tuple[int, int, float, float]]) -> list[tuple[int, int, int, float, float]]:
    """Return calls as (depth, program, line, from, to), by opening and closing them step by step."""
    found = []
    for program in {each[0] for each in steps}:
        opened: list[tuple[int, float]] = []
        until = -1.0
        for _, stack, start, end in [each for each in steps if each[0] == program]:
            callers = STACKS[stack][:-1] if stack >= 0 else ()
            common = 0
            while start == until and common < min(len(opened), len(callers)) and opened[common][0] == callers[common]:
                common += 1
            found += [(depth, program, *opened[depth], until) for depth in range(common, len(opened))]
            opened = opened[:common] + [(line, start) for line in callers[common:]]
            until = end
        found += [(depth, program, *each, until) for depth, each in enumerate(opened)]
    return sorted(found)


@given(STEPS)
def test_calls_are_those_of_a_walk(drawn: list[tuple[int, int, int]]) -> None:
    """At each depth; a step lies in a call that its stack begins with."""
    now = [0.0, 0.0, 0.0]
    steps = []
    for program, stack, gap in drawn:
        start = now[program] + gap
        now[program] = start + 1.0
        steps.append((program, stack, start, now[program]))
    columns: list[Any] = [np.array(column) for column in zip(*steps, strict=True)] if steps else [np.zeros(0, int)] * 4
    program, stack, start, end = columns
    found = []
    for depth, calls in enumerate(calls_of(STACKS, stack, program, start, end)):
        rows = zip(calls.program, calls.line, calls.start_ns, calls.end_ns, strict=True)
        found += [(depth, *(each.item() for each in row)) for row in rows]
        for step, row in enumerate(calls.inside.tolist()):
            around = STACKS[stack[step]] if stack[step] >= 0 else ()
            assert (row >= 0) == (len(around) > depth + 1)
            if row >= 0:
                assert calls.line[row] == around[depth] and calls.program[row] == program[step]
                assert calls.start_ns[row] <= start[step] and end[step] <= calls.end_ns[row]
    assert sorted(found) == walked(steps)


def read(x: Any, tl: Any) -> Any:
    """Load twice, for a kernel."""
    return tl.load(x) + tl.load(x)


def kernel(x: Any, tl: Any) -> None:
    """Wait in a helper, and then itself."""
    tl.store(x, read(x, tl))


def test_a_timeline_has_the_lines_that_called() -> None:
    """On the kernel's track, each around what it called, and without time of its own where it waited for that alone."""

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.zeros((4,)), grid=(1,))

    timeline = kb.run(bench, **on_machine(timeline=True)).timeline
    assert timeline is not None
    spans = timeline.spans
    store, load = (f"{__file__}:{each.__code__.co_firstlineno + 2}" for each in (kernel, read))
    rows = [i for i, line in enumerate(spans.line.tolist())
            if line >= 0 and timeline.tracks[spans.track[i]].kind == "kernel"]  # fmt: skip
    line = {i: timeline.lines[spans.line[i]] for i in rows}
    (called,) = [i for i in rows if any(spans.parent[other] == i for other in rows)]
    within = [i for i in rows if spans.parent[i] == called]
    assert line[called] == store and spans.op[called] == -1
    assert {line[i] for i in within} == {load} and len(within) > 1
    assert (spans.start_ns[within].min(), spans.end_ns[within].max()) == (spans.start_ns[called], spans.end_ns[called])
    alone = [i for i in rows if i not in (called, *within)]
    assert {line[i] for i in alone} == {store}
