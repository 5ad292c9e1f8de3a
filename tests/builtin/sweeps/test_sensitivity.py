"""Sensitivities and rank correlations, against their definitions in plain Python."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.sweeps.sensitivity import average_ranks, sensitivities, spearman

NUMBERS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=12)


def rank(numbers: Sequence[float], one: float) -> float:
    """Return how many are smaller, and half of the others that are equal, from 1."""
    return 1 + sum(each < one for each in numbers) + (sum(each == one for each in numbers) - 1) / 2


@given(NUMBERS)
def test_spearman_is_pearson_of_the_ranks(pairs: list[tuple[int, int]]) -> None:
    """With ties; NaN where a list has one value only; what has no number is left out."""
    a, b = ([rank(side, each) for each in side] for side in map(list, zip(*pairs, strict=True)))
    assert average_ranks([pair[0] for pair in pairs]).tolist() == a
    left = [*(float(pair[0]) for pair in pairs), math.nan, 5.0]
    right = [*(float(pair[1]) for pair in pairs), 5.0, math.nan]
    found = spearman(left, right)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(statistics.correlation(a, b))


@given(st.permutations(range(9)))
def test_spearman_of_different_numbers_has_a_closed_form(order: list[int]) -> None:
    """1 - 6 Σd² / (n (n² - 1))."""
    n = len(order)
    wanted = 1 - 6 * sum((at - each) ** 2 for at, each in enumerate(order)) / (n * (n * n - 1))
    assert spearman(np.exp(range(n)), [float(each) for each in order]) == pytest.approx(wanted)


def test_too_few_pairs_have_no_correlation() -> None:
    """One, or none."""
    assert all(math.isnan(spearman(*pair)) for pair in (([], []), ([1.0], [2.0]), ([1.0, math.nan], [1.0, 2.0])))


def test_the_shares_of_a_sum_are_those_of_its_terms() -> None:
    """Over a full grid an additive objective has no interactions: each term's own variance is its share."""
    terms = {
        "rows": {16: 0.0, 32: 4.0, 64: 6.0},
        "link": {"100 GB/s": 9.0, "1 TB/s": 1.0},
        "dtype": {"f16": 0.0, "f32": 1.0},
    }
    points = [dict(zip(terms, cells, strict=True)) for cells in itertools.product(*terms.values())]
    time = [sum(terms[name][cell] for name, cell in point.items()) for point in points]  # type: ignore[index]
    variance = {name: statistics.pvariance(term.values()) for name, term in terms.items()}
    found = {each.parameter: each for each in sensitivities(points, {"time": time})}
    assert list(found) == sorted(terms, key=lambda name: -variance[name])
    for name, each in found.items():
        assert each.share == pytest.approx(variance[name] / sum(variance.values()))
        assert (each.points, each.groups, each.objective) == (12, len(terms[name]), "time")
    rows, link = found["rows"], found["link"]
    assert (rows.lowest_at, rows.highest_at, link.lowest_at, link.highest_at) == (16, 64, "1 TB/s", "100 GB/s")
    assert (rows.highest - rows.lowest, link.highest - link.lowest) == (6.0, 8.0)
    assert rows.correlation > 0 > link.correlation
    assert math.isnan(found["dtype"].correlation)


def test_an_interaction_is_nobodys_share() -> None:
    """The product of two centred axes: neither alone tells anything."""
    points = [{"a": a, "b": b} for a in (-1, 1) for b in (-2, 0, 2)]
    assert [each.share for each in sensitivities(points, {"y": [each["a"] * each["b"] for each in points]})] == [
        0.0,
        0.0,
    ]


def test_what_cannot_be_told_is_nan() -> None:
    """A constant parameter, a constant objective, a group for each point, points without a value."""
    points = [{"a": 1, "b": at % 2, "c": at} for at in range(6)]
    found = {
        (each.parameter, each.objective): each
        for each in sensitivities(points, {"y": [0.1] * 6, "z": [1.0, 2.0, 1.0, 2.0, math.nan, math.nan]})
    }
    assert [math.isnan(found[key].share) for key in (("a", "z"), ("b", "y"), ("c", "z"))] == [True] * 3
    assert found["b", "z"].share == 1.0
    assert found["b", "z"].points == 4
    assert (found["a", "z"].groups, found["a", "z"].lowest_at) == (1, None)
    assert sensitivities([], {"y": []}) == ()


def test_many_values_are_put_into_groups() -> None:
    """Eight neighbours' groups of equal size: the share of a straight line is what is between them."""
    points = [{"x": float(at)} for at in range(80)]
    (found,) = sensitivities(points, {"y": [2.0 * at for at in range(80)]})
    assert found.groups == 8
    assert found.share == pytest.approx(1 - (10**2 - 1) / (80**2 - 1))
    assert (found.correlation, found.lowest_at, found.highest_at) == (1.0, 5.0, 75.0)
    assert (found.lowest, found.highest) == (9.0, 149.0)
