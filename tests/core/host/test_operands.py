"""`rt.operand`: a tensor of what an array parameter was given; and references that are computed when needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import KernelError, UsageError
from tests.core.working_machine import on_machine

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def run(bench: Callable[..., None], **options: Any) -> kb.RunResult:
    """Run a host program on the smallest machine."""
    return kb.run(bench, **on_machine(**options))


def test_none_is_random_numbers_and_an_array_is_placed_as_by_tensor() -> None:
    """The same numbers, place and time."""

    def bench_of(make: Callable[..., Any]) -> Callable[..., None]:
        def bench(rt: Any) -> None:
            for tensor in make(rt):
                seen.append((tensor.name, tensor.shape, tensor.dtype, tensor.placement, tensor.numpy().tolist()))

        return bench

    seen: list[Any] = []
    rows = {"pe": kb.Shard(0)}
    first = run(bench_of(lambda rt: (
        rt.operand(None, (4, 6), "f16", name="a", placement=rows), rt.operand(X, (4, 6), "f32", name="b"),
    )))  # fmt: skip
    second = run(bench_of(lambda rt: (
        rt.tensor((4, 6), "f16", name="a", placement=rows), rt.tensor(X, "f32", name="b"),
    )))  # fmt: skip
    assert seen[:2] == seen[2:]
    assert first.phases == second.phases and first.op_log_sha256 == second.op_log_sha256


def test_a_tensor_is_taken_as_it_is() -> None:
    """Where it lies, and without a copy."""

    def bench(rt: Any) -> None:
        x = rt.tensor(X, name="mine", placement={"pe": kb.Replicate()})
        before = rt.now
        assert rt.operand(x, (4, 6), "f32", name="x", placement={"pe": kb.Shard(1)}) is x
        assert rt.now == before

    run(bench)


def test_the_order_of_bytes_and_of_rows_does_not_matter() -> None:
    def bench(rt: Any) -> None:
        for array in (X.astype(">f4"), np.asfortranarray(X), X[:, ::-1][:, ::-1]):
            assert (rt.operand(array, (4, 6), "f32", name="x").numpy() == X).all()

    run(bench)


def test_bytes_of_a_file_are_of_the_dtype_that_is_asked_for() -> None:
    pairs = X.astype(ml_dtypes.bfloat16)

    def bench(rt: Any) -> None:
        assert (rt.operand(pairs.view("V2"), (4, 6), "bf16", name="x").numpy() == pairs).all()

    run(bench)


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda rt: X[1:], "operand 'x' must be an array of shape (4, 6), not (3, 6); give another array, "
         "or other sizes."),
        (lambda rt: X.astype(np.float16), "operand 'x' must be an array of dtype f32, not float16; cast it, or choose "
         "another dtype."),
        (lambda rt: X.astype(ml_dtypes.bfloat16).view("V2"), "operand 'x' must be an array of dtype f32, not |V2; cast "
         "it, or choose another dtype."),
        (lambda rt: rt.zeros((4, 5)), "operand 'x' must be an array of shape (4, 6), not (4, 5); give another array, "
         "or other sizes."),
        (lambda rt: rt.zeros((4, 6), "bf16"), "operand 'x' must be an array of dtype f32, not bf16; cast it, or choose "
         "another dtype."),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_sentence(give: Callable[..., Any], message: str) -> None:
    def bench(rt: Any) -> None:
        rt.operand(give(rt), (4, 6), "f32", name="x")

    with pytest.raises(UsageError) as caught:
        run(bench)
    assert str(caught.value).partition("\n")[0] == message


def test_a_freed_tensor_is_no_operand() -> None:
    def bench(rt: Any) -> None:
        x = rt.tensor(X)
        rt.free(x)
        rt.operand(x, (4, 6), "f32", name="x")

    with pytest.raises(KernelError, match="freed"):
        run(bench)


def double(x, y, n, tl):
    first = tl.program_id(0) * n
    tl.store(y + first, tl.load(x + first, shape=(n,)) * 2)


def test_a_snapshot_outlives_the_tensor_and_computes_nothing_before() -> None:
    """It is of what a kernel wrote, which nobody computed yet; the tensor is freed, and its place used again."""

    def bench(rt: Any) -> None:
        x, y = rt.tensor(X), rt.empty(X.shape)
        rt.launch(double, x, y, 6)
        held = y.snapshot()
        rt.free(y)
        z = rt.zeros(X.shape)
        rt.check(z, lambda: held() - 2 * X)

    assert run(bench, verify_data=True).max_abs_error == 0


@pytest.mark.parametrize("right", [True, False])
def test_the_tolerance_may_be_computed_when_it_is_needed(right: bool) -> None:
    """Not without a verification, and by that it decides."""
    asked: list[bool] = []

    def bench(rt: Any) -> None:
        def atol() -> float:
            asked.append(True)
            return 0.5 if right else 0.2

        rt.check(rt.tensor(X), X + 0.3, rtol=0, atol=atol)

    run(bench)
    assert asked == []
    result = run(bench, verify_data=True)
    assert (result.verified, asked) == (right, [True])
    if not right:
        assert "atol=0.2" in result.verification.failures[0]  # type: ignore[union-attr]


def test_a_tolerance_that_raises_is_named() -> None:
    def bench(rt: Any) -> None:
        rt.check(rt.tensor(X, name="x"), X, atol=lambda: 1 / 0)

    with pytest.raises(KernelError, match=r"^the reference of tensor 'x' raised ZeroDivisionError: division by zero"):
        run(bench, verify_data=True)
