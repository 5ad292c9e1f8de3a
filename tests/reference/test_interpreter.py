"""The reference interpreter on its own: numbers worked out by hand, and the messages between programs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.reference import numerics as num
from tests.reference.posts import Runtime
from tests.reference.tiles import OutOfBoundsError, UndeterminedError

HERE = Path(__file__).parent


def run(kernel: Callable[..., None], *arrays: Any, out: tuple[Any, ...] = ((4,), "f32"), pes: int = 1) -> Any:
    """Run a kernel on arrays and one output; give the output."""
    runtime = Runtime(pes)
    tensors = [runtime.tensor(np.asarray(array), name=f"x{i}") for i, array in enumerate(arrays)]
    target = runtime.zeros(*out, name="y")
    runtime.launch(kernel, *tensors, target)
    return target


@pytest.mark.parametrize("file", ["numerics", "tiles", "messages", "interpreter", "posts"])
def test_the_interpreter_imports_nothing_of_kernbench(file: str) -> None:
    tree = ast.parse((HERE / f"{file}.py").read_text())
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outside = {name.split(".")[0] for name in named} - {"tests"}
    assert not {name for name in outside if name.startswith("kernbench")}


@pytest.mark.parametrize(
    ("a", "b", "division", "meets"),
    [
        ("bool", "bool", False, "bool"),
        ("bool", "int8", False, "int8"),
        ("int8", "uint8", False, "uint8"),
        ("int16", "uint8", False, "int16"),
        ("uint32", "int32", False, "uint32"),
        ("int64", "f16", False, "f16"),
        ("int32", "bf16", False, "f32"),
        ("f8e4m3", "f8e5m2", False, "f16"),
        ("f8e4m3", "bf16", False, "f32"),
        ("f8e4m3", "f16", False, "f16"),
        ("f16", "bf16", False, "f16"),
        ("bf16", "bf16", True, "f32"),
        ("f16", "f16", True, "f32"),
    ],
)
def test_operands_meet(a: str, b: str, division: bool, meets: str) -> None:
    for x, y in ((a, b), (b, a)):
        assert num.meet(num.dtype_of(x), num.dtype_of(y), division) == num.dtype_of(meets)


def test_integers_and_8_bit_floats_do_not_meet() -> None:
    with pytest.raises(TypeError):
        num.meet(num.I8, num.E4M3)


def test_integers_are_divided_towards_zero() -> None:
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    assert num.quotient(a, b).tolist() == [3, -3, -3, 3]
    assert num.remainder(a, b).tolist() == [1, -1, 1, -1]


@pytest.mark.parametrize(
    ("numbers", "dtype", "cast"),
    [
        ([1.9, -1.9, 300.0], "int8", [1, -1, 44]),
        ([500.0, -1e9], "f8e4m3", [448.0, -448.0]),
        ([0.0, 0.5], "bool", [0, 1]),
    ],
)
def test_casts(numbers: list[float], dtype: str, cast: list[float]) -> None:
    assert num.cast(np.array(numbers, np.float32), num.dtype_of(dtype)).astype(float).tolist() == cast


def test_a_masked_load_keeps_other_through_views() -> None:
    def kernel(x: Any, y: Any, tl: Any) -> None:
        row = tl.load(x + tl.arange(0, 2), mask=tl.arange(0, 2) < 1, other=7.0)
        tl.store(y, tl.reshape(tl.trans(row[None, :]) + row[None, :], (4,)))

    assert run(kernel, np.array([1.0, 2.0], np.float32)).numpy().tolist() == [2, 8, 8, 14]


def test_a_sum_of_halves_is_exact_and_rounded_once() -> None:
    def kernel(x: Any, y: Any, tl: Any) -> None:
        tl.store(y, tl.sum(tl.load(x, shape=(3,))))

    made = run(kernel, np.array([2048.0, 1.0, 1.0], np.float16), out=((1,), "f16"))
    assert (made.numpy().tolist(), made.slack.tolist()) == ([2050.0], [0.0])


def test_what_is_not_exact_says_by_how_much() -> None:
    def kernel(x: Any, y: Any, tl: Any) -> None:
        tl.store(y, tl.exp(tl.load(x, shape=(4,))) * 2.0)

    made = run(kernel, np.array([0.0, 1.0, 2.0, 3.0], np.float32))
    allowed = made.slack / made.data
    assert (allowed > 2**-21).all()
    assert (allowed < 2**-18).all()
    assert np.allclose(made.data, 2 * np.exp([0.0, 1.0, 2.0, 3.0]), rtol=1e-6)


def test_a_branch_on_what_is_not_exact_says_nothing() -> None:
    def computing(y: Any, tl: Any) -> None:
        tl.store(y, tl.exp(tl.full((4,), 1.0, "f32")))

    def branching(y: Any, tl: Any) -> None:
        if tl.load(y).item() > 1:
            tl.store(y, 1.0)

    runtime = Runtime(1)
    y = runtime.zeros((4,), name="y")
    runtime.launch(computing, y)
    with pytest.raises(UndeterminedError):
        runtime.launch(branching, y)


def test_a_product_that_left_f32_on_the_way_says_nothing() -> None:
    """It is NaN where infinity meets 0, and 0 where the 0 came first."""

    def kernel(x: Any, y: Any, tl: Any) -> None:
        tl.store(y, tl.cumprod(tl.load(x, shape=(4,)), 0))

    made = run(kernel, np.array([2.0, 1e30, 1e30, 0.0], np.float32))
    assert made.data[:3].tolist() == [2.0, float(np.float32(2e30)), np.inf]
    assert np.isfinite(made.slack[:3]).all()
    assert made.slack[3] == np.inf


def test_messages_go_round() -> None:
    def kernel(x: Any, y: Any, tl: Any) -> None:
        me, world = tl.program_id(0), tl.num_programs(0)
        mine = total = tl.load(x + me, shape=(1,))
        for _ in range(world - 1):
            tl.send(mine, (me + 1) % world)
            mine = tl.recv((1,), "f32", (me - 1) % world)
            total = total + mine
        tl.store(y + me, total)

    assert run(kernel, np.arange(4, dtype=np.float32), pes=4).numpy().tolist() == [6, 6, 6, 6]


def test_programs_that_all_wait_are_an_error() -> None:
    def kernel(y: Any, tl: Any) -> None:
        tl.recv((1,), "f32", 1 - tl.program_id(0))

    with pytest.raises(RuntimeError, match=r"^every program waits for a message$"):
        run(kernel, pes=2)


@pytest.mark.parametrize("place", [-1, 4])
def test_places_outside_a_tensor_are_an_error(place: int) -> None:
    def kernel(x: Any, y: Any, tl: Any) -> None:
        tl.store(y, tl.load(x + place))

    with pytest.raises(OutOfBoundsError):
        run(kernel, np.zeros(4, np.float32))
