"""`and`, `or`, `not` and chained comparisons of tiles, held against numpy; of all else they are Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.frontend.conditions import of_tiles

# mypy: disable-error-code="import-not-found, untyped-decorator"

SIZE = 16


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x > 2 and at < n", lambda x, at: (x > 2) & (at < 11)),
        ("x and y", lambda x, at: (x != 0) & (at % 3 != 0)),
        ("at < 3 or x > 6 or y", lambda x, at: (at < 3) | (x > 6) | (at % 3 != 0)),
        ("not x", lambda x, at: x == 0),
        ("not (x > 2 and not at < n)", lambda x, at: ~((x > 2) & ~(at < 11))),
        ("1 < x <= 5", lambda x, at: (x > 1) & (x <= 5)),
        ("2 <= at < n != 3", lambda x, at: (at >= 2) & (at < 11)),
        ("n > 3 and x > 2", lambda x, at: x > 2),
        ("n < 3 or 0 < n <= 11 and x > 2", lambda x, at: x > 2),
        ("x > 2 and n > 3", lambda x, at: x > 2),
        ("x > 2 and n", lambda x, at: x > 2),
    ],
)
def test_conditions_of_tiles(condition: str, expected: Any, tmp_path: Any) -> None:
    """What a kernel stores where a condition holds; as a mask, and as a value."""
    text = f"""
import triton, triton.language as tl
@triton.jit
def kernel(x_ptr, y_ptr, mask_ptr, n, BLOCK: tl.constexpr = {SIZE}):
    at = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at), at % 3
    tl.store(y_ptr + at, x, mask={condition})
    tl.store(mask_ptr + at, tl.where({condition}, 1, 0))
"""
    path = tmp_path / "kernel.py"
    path.write_text(text)
    at = np.arange(SIZE, dtype=np.int32)
    x = at * 5 % 8
    y, mask = np.full(SIZE, -1, np.int32), np.zeros(SIZE, np.int32)
    with kb.triton("tiny"):
        names: dict[str, Any] = {"__name__": "kernel"}
        exec(compile(text, str(path), "exec"), names)
        names["kernel"][(1,)](x, y, mask, 11)
    assert mask.tolist() == expected(x, at).astype(int).tolist()
    assert y.tolist() == np.where(mask, x, -1).tolist()


def test_what_are_no_tiles_is_pythons() -> None:
    """Operands are left out as Python leaves them out, values are those of operands, and each is computed once."""
    seen: list[Any] = []

    def note(value: Any) -> Any:
        seen.append(value)
        return value

    base = 7

    def given(x: Any, y: Any = 3, *rest: Any, more: Any = "m", **named: Any) -> Any:
        """Say it."""
        return [
            note(x) and note(y), note(x) or note(y), not x, 0 < note(x) < note(y) < 5, x is None and y, rest or named,
            [base and each for each in rest], more if x and more else None, x == y != x,
        ]  # fmt: skip

    made = of_tiles(given)
    assert made is not given
    for args, named in (((0,), {}), ((2,), {}), ((1, 0, 5, 6), {"more": "", "k": 1}), ((4, 9), {}), ((3,), {})):
        seen.clear()
        expected, order = given(*args, **named), seen.copy()
        seen.clear()
        assert (made(*args, **named), seen) == (expected, order)
    assert (made.__doc__, made.__name__, made.__qualname__) == (given.__doc__, given.__name__, given.__qualname__)
    base = 0
    assert made(2, 3, 8)[6] == [0], "variables around it are shared"

    def plain(x: Any) -> Any:
        return x + 1

    assert of_tiles(plain) is plain
    assert of_tiles(len) is len


def test_a_line_of_a_condition_is_that_of_the_file() -> None:
    """What an error names is the kernel's own line."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
            at = tl.arange(0, BLOCK)
            tl.store(x_ptr + at, 1, mask=at < 3 and tl.load(x_ptr + 2 * at) > 0)

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](np.ones(4, np.float32), BLOCK=4)
    line = test_a_line_of_a_condition_is_that_of_the_file.__code__.co_firstlineno + 9
    assert f"tl.load at {__file__}:{line} must stay inside tensor 'x_ptr'" in str(error.value)
