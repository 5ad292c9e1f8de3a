"""What a run says of wrong data: the values that the worst element was made of are those that the host put there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb

A = np.arange(64, dtype=np.float32).reshape(4, 16) + 100
B = np.arange(16, dtype=np.float32) + 1000
C = np.arange(4, dtype=np.float32) + 5000


def told(kernel: Callable[..., None], at: tuple[int, ...], launches: int = 1) -> tuple[str, list[str]]:
    """Run a kernel of one PE that stores into y what it makes of a, b and c; return the failure of one element of y."""

    def bench(rt: Any) -> None:
        a, b, c, y = (
            rt.tensor(array, "f32", name=name) for name, array in zip("abcy", (A, B, C, 0 * A), strict=True)
        )
        for _ in range(launches):
            rt.launch(kernel, a, b, c, y, pes=[1])
        wrong = y.numpy().copy()
        wrong[at] = -1e6
        rt.check(y, wrong)

    result = kb.run(bench, "tiny", verify_data=True)
    assert result.verification is not None
    (failure,) = result.verification.failures
    first, *lines = failure.splitlines()
    assert first.startswith(f"tensor 'y', checked at {__file__}:")
    assert f"but 1 of 64 elements differ; the worst is {list(at)}: got " in first
    return first.partition(" expected -1000000.0. ")[2], lines


def loads(a: Any, b: Any, c: Any, tl: Any) -> tuple[Any, Any, Any]:
    """Load all three, c as a column."""
    return tl.load(a, shape=(4, 16)), tl.load(b, shape=(1, 16)), tl.load(c, shape=(4, 1))


def values(lines: list[str]) -> list[float]:
    """Return the numbers that lines begin with."""
    return [float(words.partition(":")[0]) for words in lines]


@pytest.mark.parametrize("at", [(0, 0), (2, 5), (3, 15)])
def test_elementwise_ops_are_followed_through_broadcasts(at: tuple[int, int]) -> None:
    """Rows, columns and numbers: just the elements that this one depends on, each once."""

    def kernel(a: Any, b: Any, c: Any, y: Any, tl: Any) -> None:
        x, row, column = loads(a, b, c, tl)
        tl.store(y, tl.exp((x + row) * 2.0 - column) + x)

    first, lines = told(kernel, at)
    assert first.startswith("It was made by add (op ") and ", in the launch of 'kernel', called at " in first
    assert first.endswith(", of:")
    assert values(lines) == [A[at], B[at[1]], C[at[0]]]
    assert all(": written by the host -> load at test_wrong_data.py:" in words for words in lines)


def test_other_ops_end_the_search() -> None:
    """Of a sum over an axis it is only known that it was made."""

    def kernel(a: Any, b: Any, c: Any, y: Any, tl: Any) -> None:
        x, row, _ = loads(a, b, c, tl)
        tl.store(y, tl.sum(x, axis=1, keep_dims=True) + row)

    first, lines = told(kernel, (1, 3))
    assert values(lines) == [A[1].sum(), B[3]]
    assert lines[0].startswith(f"  {A[1].sum()}: sum (op ") and "in the launch" not in lines[0]
    assert ": written by the host -> load at " in lines[1]

    def only(a: Any, b: Any, c: Any, y: Any, tl: Any) -> None:
        x, _, _ = loads(a, b, c, tl)
        tl.store(y, tl.cumsum(x, 1))

    first, lines = told(only, (1, 3))
    assert first.startswith("It was made by cumsum (op ") and first.endswith(".") and not lines


def test_what_an_earlier_launch_made_is_told_with_that_launch() -> None:
    """The second launch adds to what the first has stored, at an offset of its own."""

    def kernel(a: Any, b: Any, c: Any, y: Any, tl: Any) -> None:
        x, _, _ = loads(a, b, c, tl)
        old = tl.load(y, shape=(4, 16))
        tl.store(y, old + x)

    _, lines = told(kernel, (2, 1), launches=2)
    assert values(lines) == [A[2, 1], A[2, 1]]
    assert lines[0].startswith("  133.0: add (op ") and ", in the launch of 'kernel', called at " in lines[0]
    assert " -> store at test_wrong_data.py:" in lines[0]
    assert lines[1].startswith("  133.0: written by the host -> load at test_wrong_data.py:")


def test_views_and_stores_of_parts_are_followed() -> None:
    """An element keeps its way through a transposition that moves no data, and a store of a part of a tensor."""

    def kernel(a: Any, b: Any, c: Any, y: Any, tl: Any) -> None:
        x = tl.load(a + 16, shape=(2, 16))
        tl.store(y + 32, tl.reshape(x, (32,)) + 1.0)

    _, lines = told(kernel, (3, 7))
    assert values(lines) == [A[2, 7]]
