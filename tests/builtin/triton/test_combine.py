"""Reductions and scans by functions of the author, and sorting, held against numpy and Python's own loops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench as kb

# mypy: disable-error-code="import-not-found"

X = np.random.default_rng(5).integers(-40, 40, (4, 8)).astype(np.float32)


def found(body: Callable[..., Any], *arrays: Any, shape: Any, dtype: Any = np.float32) -> tuple[Any, kb.TritonRun]:
    """Give what `body(triton, tl, tile, …)` makes of whole arrays, and the run; every op is checked a second way."""
    out = np.zeros(shape, dtype)
    with kb.triton("tiny", verify_ops=True) as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, y_ptr: Any, out_ptr: Any) -> None:
            tiles = [tl.load(p, shape=a.shape) for p, a in zip((x_ptr, y_ptr), arrays, strict=False)]
            tl.store(out_ptr, body(triton, tl, *tiles))

        kernel[(1,)](arrays[0], arrays[-1], out)
    return out, sim


def ops(sim: kb.TritonRun) -> list[str]:
    """Name the math ops of a run."""
    assert sim.result is not None
    assert sim.result.op_log is not None
    return [record.op_name for record in sim.result.op_log if record.op_kind == "math"]


def functions(triton: Any, tl: Any) -> dict[str, Any]:
    """Give functions that combine."""

    def add(a: Any, b: Any) -> Any:
        return a + b

    def turned(a: Any, b: Any) -> Any:
        return b * a

    def greatest(a: Any, b: Any) -> Any:
        return tl.maximum(a, b)

    def chosen(a: Any, b: Any) -> Any:
        return tl.where(a > b, a, b)

    def last(a: Any, b: Any) -> Any:
        return b + 0 * a

    return {each.__name__: triton.jit(each) for each in (add, turned, greatest, chosen, last)}


@pytest.mark.parametrize(
    ("name", "axis", "expected", "op"),
    [
        ("add", 1, X.sum(1), "sum"),
        ("turned", 0, X.prod(0), "prod"),
        ("greatest", None, X.max(), "max"),
        ("chosen", 1, X.max(1), "where"),
        ("chosen", None, X.max(), "where"),
        ("last", 0, X[-1], "mul"),
        ("last", 1, X[:, -1], "mul"),
    ],
)
def test_reductions_by_functions(name: str, axis: int | None, expected: Any, op: str) -> None:
    """One op is that reduction and nothing more; any other keeps the order of the elements, which `last` tells."""
    out, sim = found(lambda triton, tl, x: tl.reduce(x, axis, functions(triton, tl)[name]), X, shape=np.shape(expected))
    np.testing.assert_array_equal(out, expected)
    assert op in ops(sim)
    if op in ("sum", "prod", "max"):
        assert ops(sim) == [op]


def test_a_tuple_is_reduced_at_once() -> None:
    """The least with its index, and the mean with a count; kept dimensions have extent 1."""

    def body(triton: Any, tl: Any, x: Any) -> Any:
        @triton.jit
        def least(a: Any, i: Any, b: Any, j: Any) -> Any:
            first = (a < b) | ((a == b) & (i < j))
            return tl.where(first, a, b), tl.where(first, i, j)

        values, places = tl.reduce((x, tl.arange(0, 8)[None, :].broadcast_to((4, 8))), 1, least, keep_dims=True)
        assert values.shape == places.shape == (4, 1)
        return values * 100 + places.to(tl.float32)

    out, _ = found(body, X, shape=(4, 1))
    np.testing.assert_array_equal(out, (X.min(1) * 100 + X.argmin(1))[:, None])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("name", "axis"), [("chosen", 0), ("add", 1), ("turned", 0), ("greatest", 1), ("last", 1)])
def test_scans_by_functions(name: str, axis: int, reverse: bool) -> None:
    """Along either axis, from either end."""
    of_two = {
        "add": lambda a, b: a + b, "turned": lambda a, b: a * b, "greatest": np.maximum, "chosen": np.maximum,
        "last": lambda a, b: b,
    }[name]  # fmt: skip
    lines = np.moveaxis(X, axis, 0)
    lines = lines[::-1] if reverse else lines
    expected = np.stack(list(accumulate(lines, of_two)))
    expected = np.moveaxis(expected[::-1] if reverse else expected, 0, axis)
    out, _ = found(
        lambda triton, tl, x: tl.associative_scan(x, axis, functions(triton, tl)[name], reverse=reverse), X,
        shape=X.shape,
    )  # fmt: skip
    np.testing.assert_array_equal(out, expected)


def test_a_recurrence_is_a_scan_of_pairs() -> None:
    """h[t] = a[t] h[t - 1] + b[t], as gated models have it; the function does not commute."""
    a, b = np.array([2, 3, -1, 0.5, 1, 2, 1, -2], np.float32), np.arange(8, dtype=np.float32)

    def body(triton: Any, tl: Any, x: Any, y: Any) -> Any:
        @triton.jit
        def step(a1: Any, b1: Any, a2: Any, b2: Any) -> Any:
            return a1 * a2, a2 * b1 + b2

        return tl.associative_scan((x, y), 0, step)[1]

    out, _ = found(body, a, b, shape=(8,))
    state, expected = 0.0, []
    for factor, more in zip(a.tolist(), b.tolist(), strict=True):
        state = factor * state + more
        expected.append(state)
    assert out.tolist() == expected


@settings(max_examples=6)
@given(st.integers(0, 5), st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_tiles_are_sorted(power: int, count: int, descending: bool, seed: int) -> None:
    """With equal elements, both ways, and the greatest first."""
    x = np.random.default_rng(seed).integers(-9, 9, (count, 2**power)).astype(np.int32)
    out, _ = found(lambda triton, tl, x: tl.sort(x, descending=descending), x, shape=x.shape, dtype=np.int32)
    np.testing.assert_array_equal(out, -np.sort(-x) if descending else np.sort(x))
    k = 2**power // 2 or 1
    out, _ = found(lambda triton, tl, x: tl.topk(x, k), x, shape=(count, k), dtype=np.int32)
    np.testing.assert_array_equal(out, -np.sort(-x)[:, :k])


def test_tensors_have_these_functions_as_methods() -> None:
    """A reduction, a scan and an order; and a tensor knows how many elements it has."""

    def body(triton: Any, tl: Any, x: Any) -> Any:
        add = functions(triton, tl)["add"]
        assert x.numel == 32
        return x.sort().reduce(0, add) + x.associative_scan(1, add).reduce(0, add)

    out, _ = found(body, X, shape=(8,))
    np.testing.assert_array_equal(out, np.sort(X).sum(0) + X.cumsum(1).sum(0))


@pytest.mark.parametrize(
    ("do", "told"),
    [
        (
            lambda triton, tl, x: tl.reduce(x.reshape(2, 16), 3, functions(triton, tl)["chosen"]),
            "tl.reduce at HERE must have an axis of shape (2, 16), not the invalid axis 3; use one from -2 to 1.",
        ),
        (
            lambda triton, tl, x: tl.associative_scan(tl.zeros((3,), tl.float32), 0, functions(triton, tl)["last"]),
            "tl.associative_scan at HERE must be given a power of two as the extent of its axis, not 3, to combine by "
            "a function of two; pad the tile.",
        ),
        (
            lambda triton, tl, x: tl.reduce((x, tl.arange(0, 8)), 0, functions(triton, tl)["last"]),
            "tl.reduce at HERE must be given tensors of one shape, not [(4, 8), (8,)]; broadcast them.",
        ),
        (
            lambda triton, tl, x: tl.sort(x, 0),
            "tl.sort at HERE must be along the last axis, not 0 of 2; use tl.trans first.",
        ),
        (
            lambda triton, tl, x: tl.topk(x, 9),
            "tl.topk at HERE must be asked for 1 to 8 elements, not 9; correct it.",
        ),
        (
            lambda triton, tl, x: tl.sort(tl.zeros((6,), tl.float32)),
            "tl.sort at HERE must be given an extent that is a power of two, not 6; pad the tile.",
        ),
    ],
)
def test_what_does_not_fit_is_a_sentence(do: Any, told: str) -> None:
    """With the line in the kernel."""
    with pytest.raises(kb.KernbenchError) as error:
        found(do, X, shape=(1,))
    assert str(error.value).startswith(told.replace("HERE", f"{__file__}:{do.__code__.co_firstlineno}")), error.value
