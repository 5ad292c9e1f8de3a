"""Fronts, against their definition over all pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.sweeps.pareto import best_first, front_ranks, pareto_front

CELL = st.integers(0, 4).map(float) | st.just(math.nan)


@st.composite
def tables(draw: Any) -> tuple[list[list[float]], list[bool]]:
    """Draw points of a few values, so that many are equal, and which way each objective goes."""
    columns = draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(CELL, min_size=columns, max_size=columns), max_size=14))
    return rows, draw(st.lists(st.booleans(), min_size=columns, max_size=columns))


def dominates(a: list[float], b: list[float], maximise: list[bool]) -> bool:
    """Whether a is nowhere worse and somewhere better."""
    better = [x > y if up else x < y for x, y, up in zip(a, b, maximise, strict=True)]
    return any(better) and all(x == y or good for x, y, good in zip(a, b, better, strict=True))


@given(tables())
def test_fronts_are_those_of_the_definition(drawn: tuple[list[list[float]], list[bool]]) -> None:
    """Peeled one by one: who is dominated by none that is left is on the next."""
    rows, maximise = drawn
    left = {at for at, row in enumerate(rows) if not any(map(math.isnan, row))}
    wanted, rank = [0] * len(rows), 0
    while left:
        rank += 1
        on = {at for at in left if not any(dominates(rows[other], rows[at], maximise) for other in left)}
        for at in on:
            wanted[at] = rank
        left -= on
    values = np.array(rows, float).reshape(len(rows), len(maximise))
    assert front_ranks(values, maximise).tolist() == wanted
    assert pareto_front(values, maximise).tolist() == [rank == 1 for rank in wanted]
    order = best_first(values, maximise).tolist()
    assert sorted(order) == [at for at, rank in enumerate(wanted) if rank]
    assert [wanted[at] for at in order] == sorted(wanted[at] for at in order)


def test_the_best_of_one_objective_come_in_its_order() -> None:
    """Ties as given; from the largest where it is to be large."""
    assert best_first([3.0, 1.0, math.nan, 2.0, 1.0]).tolist() == [1, 4, 3, 0]
    assert best_first([[3.0], [1.0], [2.0]], [True]).tolist() == [0, 2, 1]


def test_the_first_of_a_front_span_it() -> None:
    """Its ends, then the one with the most room around it, whatever the scale of an objective."""
    front = [[0.0, 1000.0], [1.0, 900.0], [2.0, 800.0], [6.0, 300.0], [10.0, 0.0], [11.0, 1.0]]
    assert best_first(front).tolist() == [0, 4, 3, 2, 1, 5]
    assert best_first([]).tolist() == front_ranks(np.zeros((0, 2))).tolist() == []
