"""`and`, `or`, `not` and chained comparisons in jit functions: of blocks numpy's, of single values Python's."""

from __future__ import annotations

import linecache
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.triton.logic import read_as_triton_does


def test_blocks_are_combined_element_by_element() -> None:
    """Of bools and of integers, on index arithmetic and on loaded data, in masks and in values."""
    rng = np.random.default_rng(2)
    x, u = rng.integers(-4, 12, 40).astype(np.int32), rng.integers(0, 3, 40).astype(np.int32)
    y = np.full((3, 48), -7, np.int32)
    bound = 5
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, u_ptr: Any, y_ptr: Any, n: Any) -> None:
            at = tl.arange(0, 48)
            x = tl.load(x_ptr + at, mask=0 <= at < n, other=0)
            u = tl.load(u_ptr + at, mask=at < n, other=0)
            tl.store(y_ptr + at, (x > 2 and x < 6) or not u, mask=at < n)
            tl.store(y_ptr + 48 + at, tl.where(-2 < x <= u < bound, x, 100), mask=at < n and not (at % 3 < 1))
            tl.store(y_ptr + 96 + at, (x and u) or n > 1000, mask=at < n)

        kernel[(1,)](x, u, y, 40)
    assert y[0, :40].tolist() == (((x > 2) & (x < 6)) | (u == 0)).astype(int).tolist()
    chosen = np.where((x > -2) & (x <= u) & (u < bound), x, 100)
    assert y[1, :40].tolist() == np.where(np.arange(40) % 3 == 0, -7, chosen).tolist()
    assert y[2, :40].tolist() == ((x != 0) & (u != 0)).astype(int).tolist()
    assert (y[:, 40:] == -7).all()


def test_single_values_decide_as_in_python() -> None:
    """What is behind is not evaluated where the first decides; what is given is the value itself; each once."""
    seen: list[Any] = []

    def told(value: Any) -> Any:
        seen.append(value)
        return value

    def plain(a: Any, b: Any, c: Any) -> Any:
        first = (told(a) and told(b)) or told(c)
        second = not a, a < told(b) < c, [each for each in (a, b) if each and c], (lambda v: v or c)(a)
        return first, second, a is not None and b

    made = read_as_triton_does(plain)
    assert made is not plain
    assert made.__code__.co_firstlineno == plain.__code__.co_firstlineno
    for given in ((0, 1, 2), (1, 0, 3), (1, 2, 3), (3, 1, 2), (0.5, 7, 9)):
        counts = []
        for function in (plain, made):
            seen.clear()
            counts.append((function(*given), list(seen)))
        assert counts[0] == counts[1]


def test_errors_have_the_line_of_the_source() -> None:
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            at = tl.arange(0, 8)
            if 0 <= at < 4:
                tl.store(x_ptr + at, 1)

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](np.zeros(8, np.float32))
    assert f"at {__file__}:{kernel.fn.__code__.co_firstlineno + 3}, in kernel 'kernel'" in str(error.value)


def test_a_function_without_its_source_stays() -> None:
    """It is none where the source is not there, or another than what was compiled; itself with nothing to change."""
    names: dict[str, Any] = {}
    exec("def unknown(a, b): return a and b", names)
    assert read_as_triton_does(names["unknown"]) is None
    name = "<changed>"
    exec(compile("def other(a, b):\n    return a and b\n", name, "exec"), names)
    linecache.cache[name] = (1, None, ["def other(a, b):\n", "    return b or a\n"], name)
    assert read_as_triton_does(names["other"]) is None
    assert read_as_triton_does(told_nothing) is told_nothing


def told_nothing(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_methods_of_tiles_combine_truths() -> None:
    """`x.logical_and(y)` and `x.logical_or(y)`, of integers, too."""
    x = np.array([0, 1, 2, 0], np.int32)
    both, either = np.zeros(4, np.int32), np.zeros(4, np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, both_ptr: Any, either_ptr: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
            at = tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at)
            tl.store(both_ptr + at, x.logical_and(x > 1).to(tl.int32))
            tl.store(either_ptr + at, x.logical_or(at == 3).to(tl.int32))

        kernel[(1,)](x, both, either, BLOCK=4)
    assert (both.tolist(), either.tolist()) == ([0, 0, 1, 0], [0, 1, 1, 1])


def test_loops_of_any_length_that_call_imported_modules(tmp_path: Path) -> None:
    """Calls of a file's own imports are other instructions, over which jumps are longer."""
    for count in range(1, 30):
        steps = "\n".join("        at = np.abs(at) + np.abs(n)" for _ in range(count))
        path = tmp_path / f"long{count}.py"
        head = "import numpy as np\ndef given(at, n):\n    for _ in range(1):\n"
        path.write_text(f"{head}{steps}\n    return at and n\n")
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        assert read_as_triton_does(names["given"]) is not names["given"], count


ASSERTING = """
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, least):
    at = tl.arange(0, 4)
    assert tl.program_id(0) == 0
    assert (at >= least) and at < 4, f"above {least - 1}"
    tl.store(x_ptr + at, at)
"""


def test_assert_asks_of_each_element_of_a_block(tmp_path: Path) -> None:
    """And of a single value as Python does; what it says is told with its line. pytest compiles its own of a test's."""
    file = tmp_path / "asserting.py"
    file.write_text(ASSERTING)
    with kb.triton("tiny"):
        kernel = runpy.run_path(str(file))["kernel"]
        x = np.zeros(4, np.int32)
        kernel[(1,)](x, 0)
        assert x.tolist() == [0, 1, 2, 3]
        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](x, 1)
    assert str(error.value).startswith(f"tl.device_assert at {file}:9 must hold, and does not. above 0\n")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_offsets_of_any_integers_are_of_64_bits(dtype: str) -> None:
    """Addresses beyond what the dtype of an index holds are reached."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any, KIND: tl.constexpr) -> None:  # noqa: N803
            at = (tl.arange(0, 8) * 15 + 1).to(KIND)
            tl.store(out_ptr + tl.arange(0, 8), tl.load(x_ptr + at))

        x, out = np.arange(128, dtype=np.int64), np.zeros(8, np.int64)
        kernel[(1,)](x, out, KIND=getattr(tl, dtype))
    assert out.tolist() == [1 + 15 * i for i in range(8)]
