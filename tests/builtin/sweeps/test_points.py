"""The points of a sweep against what they are by definition, computed another way."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.sweeps import Axis, SweepPlan, points_of
from kernbench_builtin.sweeps.axes import PARAM, SET, TOPOLOGY, read_axis
from kernbench_builtin.sweeps.plan import point_key
from kernbench_core.errors import ConfigError, UsageError


def axis(text: str, name: str = "a.b", target: str = SET) -> Axis:
    return read_axis(name, target, text)


def test_a_grid_is_the_product_of_its_axes_in_their_order() -> None:
    """The last axis changes fastest, as in nested loops."""
    axes = (axis("1,2,3"), axis("x,y", "p", PARAM), axis("tiny,default", "topology", TOPOLOGY))
    points = list(points_of(SweepPlan(bench="gemm", axes=axes, set={"c": 1})))
    expected = [{"a.b": a, "p": p, "topology": t} for a in (1, 2, 3) for p in "xy" for t in ("tiny", "default")]
    assert [point.values for point in points] == expected
    assert [point.index for point in points] == list(range(12))
    assert len({point.key for point in points}) == 12


def test_a_key_is_of_what_is_run_and_of_nothing_else() -> None:
    """What is fixed and what is varied make no difference, limits neither; every other part does."""
    varied = SweepPlan(bench="gemm", axes=(axis("1,2"),), options={"timeout_s": 1.0, "seed": 2})
    fixed = SweepPlan(bench="gemm", set={"a.b": 2}, options={"seed": 2}, objectives=("time",), sample="random:1")
    key = list(points_of(varied))[1].key
    assert key == next(points_of(fixed)).key == point_key(fixed.run_of({}))
    others = (
        {"bench": "mlp"}, {"topology": "tiny"}, {"components": "x.yaml"}, {"set": {"a.b": "2"}}, {"set": {"a.b": 3}},
        {"params": {"M": 1}}, {"options": {"seed": 3}}, {"arguments": ("x",)}, {"options": {"seed": 2, "data": False}},
    )  # fmt: skip
    base = {"bench": "gemm", "set": {"a.b": 2}, "options": {"seed": 2}}
    assert len({key, *(next(points_of(SweepPlan(**{**base, **other}))).key for other in others)}) == 1 + len(others)


@settings(max_examples=60)
@given(
    count=st.integers(1, 60), low=st.integers(1, 1000), wide=st.integers(1, 1000), seed=st.integers(0, 99),
    several=st.integers(1, 7),
)  # fmt: skip
def test_each_stratum_of_a_latin_hypercube_has_one_point(
    count: int, low: int, wide: int, seed: int, several: int
) -> None:
    """Of every axis: of a range by formula, of a list each value as often as any other, but for one."""
    axes = (
        axis(f"{low}.0..{low + wide}", "lin"),
        axis(f"{low}GB/s..{low + wide}GB/s:log", "log"),
        axis(",".join(map(str, range(several))), "list"),
    )
    points = list(points_of(SweepPlan(bench="gemm", axes=axes, sample=f"lhs:{count}", seed=seed)))
    assert len(points) == count
    lin = sorted((float(point.values["lin"]) - low) / wide * count for point in points)
    ratio = math.log((low + wide) / low)
    numbers = [float(str(point.values["log"]).removesuffix(" GB/s")) for point in points]
    log = sorted(math.log(number / low) / ratio * count for number in numbers)
    for strata in (lin, log):  # six digits are written, so that a bound may be rounded over
        slack = 1e-5 * count * (low + wide) / wide + 1e-9
        assert all(at - slack <= found <= at + 1 + slack for at, found in enumerate(strata))
    often = [sum(point.values["list"] == value for point in points) for value in range(several)]
    assert max(often) - min(often) <= 1


def test_samples_are_the_same_for_a_seed_and_others_for_another() -> None:
    """Points of a sample do not depend on the process, which a pinned one shows."""
    axes = (axis("0.0..1"), axis("1..8", "n"))
    drawn = {
        (how, seed): [tuple(point.values.values()) for point in points_of(
            SweepPlan(bench="gemm", axes=axes, sample=f"{how}:5", seed=seed))]
        for how, seed in itertools.product(("random", "lhs"), (0, 1))
    }  # fmt: skip
    assert len({str(points) for points in drawn.values()}) == 4
    assert drawn["random", 0][0] == (0.844422, 7)
    assert all(0 <= x <= 1 and n in range(1, 9) for points in drawn.values() for x, n in points)


def test_a_random_sample_of_few_combinations_has_each_once() -> None:
    """More cannot be drawn than there are."""
    points = list(points_of(SweepPlan(bench="gemm", axes=(axis("1,2"), axis("x,y", "q")), sample="random:50")))
    assert sorted(tuple(point.values.values()) for point in points) == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


def test_points_of_a_sample_that_are_one_are_one_point() -> None:
    """A Latin hypercube of lists has combinations again and again; each is had once, numbered without gaps."""
    points = list(points_of(SweepPlan(bench="gemm", axes=(axis("1,2"), axis("x,y", "q")), sample="lhs:40")))
    assert len({point.key for point in points}) == len(points) == 4
    assert [point.index for point in points] == [0, 1, 2, 3]


def test_a_grid_must_know_its_values() -> None:
    """All ranges that do not say theirs are told, with what to write."""
    plan = SweepPlan(bench="gemm", axes=(axis("1..9"), axis("1GB/s..2GB/s", "link"), axis("1,2", "n")))
    with pytest.raises(ConfigError) as caught:
        list(points_of(plan))
    assert caught.value.problems == (
        "axis a.b must say its values in a grid, as 1..9:lin:5 or :log:5; or give --sample random:N or lhs:N.",
        "axis link must say its values in a grid, as 1 GB/s..2 GB/s:lin:5 or :log:5; or give --sample random:N or "
        "lhs:N.",
    )
    with pytest.raises(ConfigError) as caught:
        list(points_of(SweepPlan(bench="gemm", axes=tuple(axis("1..1000:lin:1000", name) for name in "abc"))))
    assert str(caught.value) == (
        "a grid must have at most 1,000,000 points, not 1,000,000,000; give fewer values, or --sample lhs:N."
    )


@pytest.mark.parametrize(
    "told", [{"bench": "a\udcff.py"}, {"axes": (read_axis("n", PARAM, "1,a\udcff"),)}, {"where": ("n == '\udcff'",)}]
)
def test_a_plan_is_text_that_every_file_can_hold(told: dict[str, Any]) -> None:
    """What a shell made of bytes that are no UTF-8 is told before anything runs."""
    with pytest.raises(UsageError, match=r"^a sweep must use valid UTF-8 text, not .*; rename it\.$"):
        SweepPlan(**{"bench": "gemm", **told})
