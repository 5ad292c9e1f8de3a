"""`print(x)` in a kernel and `p x` at a breakpoint: values of whatever is known, and no trace in the run."""

from __future__ import annotations

import io
import pdb
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kernbench as kb
from kernbench_core.errors import PendingDataError

A = np.arange(64, dtype=np.float32).reshape(8, 8) / 8
B = np.flip(A, 0).copy() - 3


def every_sort(a: Any, b: Any, out: Any, tl: Any) -> dict[str, Any]:
    """Make a tile of each sort, by name."""
    x, y = tl.load(a, shape=(8, 8)), tl.load(b, shape=(8, 8))
    made = {
        "loaded": x, "computed": x * y + 1.0, "a view": tl.reshape(x - y, (4, 16)), "a sum": tl.sum(x + y),
        "along rows": tl.max(x * y, axis=1), "a product": tl.dot(x, y), "cast": (x * 4).to("int32") * 2,
        "compared": x > y, "masked": tl.load(a + tl.arange(0, 8), mask=tl.arange(0, 8) < 3, other=-1.0),
    }  # fmt: skip
    made["composite"] = tl.composite("gemm", tl.ref(a, (8, 8)), tl.ref(b, (8, 8)), out=tl.ref(out, (8, 8)))
    tl.wait(made["composite"])
    made["loaded again"] = tl.load(out, shape=(8, 8)) * 1.0
    return made


X = A[0]
WANTED = {
    "loaded": A, "computed": A * B + 1, "a view": (A - B).reshape(4, 16), "a sum": (A + B).sum(),
    "along rows": (A * B).max(1), "a product": A @ B, "cast": (A * 4).astype(np.int32) * 2, "compared": A > B,
    "masked": np.where(np.arange(8) < 3, X, -1), "composite": A @ B, "loaded again": A @ B,
}  # fmt: skip


def numbers(text: str) -> NDArray[Any]:
    """Return the numbers that a text shows, before the type."""
    body = re.split(r", (?:f32|int32|bool)\[", text.split("(", 1)[1])[0].replace("True", "1").replace("False", "0")
    return np.array([float(each) for each in re.findall(r"-?\d[\d.]*(?:e[+-]\d+)?", body)])


def ends(array: NDArray[Any]) -> NDArray[Any]:
    """Return the elements that are first or last three along each dimension, of many."""
    if array.size > 16:
        for axis, extent in enumerate(array.shape):
            if extent > 6:
                array = np.take(array, [0, 1, 2, -3, -2, -1], axis)
    return np.asarray(array, np.float64).ravel()


def run(kernel: Any, **options: Any) -> Any:
    """Run a kernel on one PE; it is given A, B and room for a product."""
    return kb.launch(kernel, A, B, np.zeros((8, 8), np.float32), topology="tiny", grid=(1,), **options)


@pytest.mark.parametrize("materialize", ["determined", "on_demand"])
def test_values_are_shown_and_nothing_of_the_run_changes(materialize: str) -> None:
    """Of tiles of every sort: the first and last elements, as numpy computes them, then type, shape and line."""
    shown: dict[str, str] = {}

    def silent(a: Any, b: Any, out: Any, tl: Any) -> None:
        every_sort(a, b, out, tl)

    def printing(a: Any, b: Any, out: Any, tl: Any) -> None:
        shown.update({name: f"{tile}" for name, tile in every_sort(a, b, out, tl).items()})

    without, found = run(silent, materialize=materialize), run(printing, materialize=materialize)
    for name, wanted in WANTED.items():
        np.testing.assert_allclose(numbers(shown[name]), ends(np.asarray(wanted)), atol=1e-4, err_msg=name)
        assert re.search(r"(f32|int32|bool)\[.*\], of tl\.\w+ at .*test_values_shown.py:\d+\)$", shown[name])
    assert found.op_log_sha256 == without.op_log_sha256
    assert found.total_ns == without.total_ns
    assert not found.python_reads
    assert found.branch_values == without.branch_values


def test_what_was_shown_is_still_not_known_to_the_kernel() -> None:
    """A branch on it is refused as ever."""

    def kernel(a: Any, b: Any, out: Any, tl: Any) -> None:
        total = tl.sum(tl.load(a, shape=(8, 8)))
        assert "252." in repr(total)
        if total > 3:
            tl.store(out, 1.0)

    with pytest.raises(PendingDataError, match="a condition at"):
        run(kernel)


def test_what_is_on_its_way_is_shown_when_it_is_there() -> None:
    """Loads, views of them and products, asked before and after; what it is says so till then."""
    shown: list[str] = []

    def kernel(a: Any, b: Any, out: Any, tl: Any) -> None:
        x = tl.load(a, shape=(8, 8), wait=False)
        tiles = [x, x.view(4, 16), tl.dot(tl.load(a, shape=(8, 8)), tl.load(b, shape=(8, 8)), wait=False)]
        tiles.append(tl.composite("gemm", tl.ref(a, (8, 8)), tl.ref(b, (8, 8)), out=tl.ref(out, (8, 8))))
        shown.extend(map(repr, tiles[2:]))
        shown.append(repr(tl.load(b, shape=(8, 8), wait=False)))
        tl.wait()
        for tile in tiles:
            tl.wait(tile)
        shown.extend(map(repr, tiles))

    run(kernel)
    assert all(", in flight, not known yet, of tl." in each for each in shown[:3])
    for text, wanted in zip(shown[3:], (A, A.reshape(4, 16), A @ B, A @ B), strict=True):
        np.testing.assert_allclose(numbers(text), ends(wanted), rtol=1e-4)


def test_a_load_that_was_shown_on_its_way_is_shown_anew() -> None:
    """Its first look leaves nothing behind."""
    shown: list[str] = []

    def kernel(a: Any, b: Any, out: Any, tl: Any) -> None:
        tl.wait(tl.composite("gemm", tl.ref(a, (8, 8)), tl.ref(b, (8, 8)), out=tl.ref(out, (8, 8))))
        x = tl.load(out, shape=(8, 8), wait=False)
        view = x.view(64)
        shown.extend((repr(x), repr(view)))
        y = x + 1.0
        shown.extend((repr(x), repr(view), repr(y)))

    run(kernel)
    assert all("in flight, not known yet" in each for each in shown[:2])
    for text, wanted in zip(shown[2:], (A @ B, (A @ B).ravel(), A @ B + 1), strict=True):
        np.testing.assert_allclose(numbers(text), ends(wanted), rtol=1e-4)


def test_a_run_without_data_says_so() -> None:
    """It knows shapes only."""
    shown: list[str] = []

    def kernel(a: Any, b: Any, out: Any, tl: Any) -> None:
        x = tl.load(a, shape=(8, 8))
        shown.extend((repr(x), repr(x + 1.0)))

    run(kernel, data=False)
    assert all(each.startswith("Tensor(f32[8, 8], no data in this run, of tl.") for each in shown)


def test_one_element_is_formatted_as_a_number_free() -> None:
    """Of a tile of many, and of none that is there, there is no such number."""
    shown: list[str] = []

    def kernel(a: Any, b: Any, out: Any, tl: Any) -> None:
        x = tl.load(a, shape=(8, 8))
        shown.extend((f"{tl.sum(x):.2f}", f"{tl.sum(x):>9}"))
        with pytest.raises(TypeError):
            f"{x:.2f}"

    assert not run(kernel).python_reads
    assert shown == ["252.00", "    252.0"]


def test_a_breakpoint_shows_values() -> None:
    """By `p x`, of a tile that only phase 2 knows; the run does not change by it."""
    told = io.StringIO()

    def kernel(a: Any, b: Any, out: Any, tl: Any, stop: bool) -> None:
        total = tl.sum(tl.load(a, shape=(8, 8)) * tl.load(b, shape=(8, 8)))
        if stop:
            debugger = pdb.Pdb(stdin=io.StringIO("p total\np a\nc\n"), stdout=told, nosigint=True)
            debugger.use_rawinput = False
            debugger.set_trace()
        tl.store(out, total)

    def found(stop: bool) -> str:
        given = A, B, np.zeros(1, np.float32), stop
        return str(kb.launch(kernel, *given, topology="tiny", grid=(1,)).op_log_sha256)

    assert found(True) == found(False)
    assert re.search(rf"Tensor\({(A * B).sum():g}\.?, f32\[\], of tl\.sum at ", told.getvalue())
    assert re.search(r"Pointer\(a f32\[8, 8\] \+ 0, at 0x[0-9a-f]+\)", told.getvalue())


def test_a_debugger_that_is_left_ends_the_run_in_a_sentence() -> None:
    """Not in the traceback of the debugger's own code."""

    def kernel(x: Any, tl: Any) -> None:
        debugger = pdb.Pdb(stdin=io.StringIO("q\n"), stdout=io.StringIO(), nosigint=True)
        debugger.use_rawinput = False
        debugger.set_trace()
        tl.store(x, 1.0)

    told = r"the debugger was left, which ends the run; 'c' goes on\.\n  in kernel 'kernel', program .*[mnu]s\Z"
    with pytest.raises(kb.KernelError, match=told):
        kb.launch(kernel, np.zeros(1, np.float32), topology="tiny", grid=(1,))


def test_kernels_in_triton_print_what_loops_load_ahead_and_multiply(capsys: pytest.CaptureFixture[str]) -> None:
    """The loads of later turns are on their way then, and stay so."""

    def found(prints: bool) -> Any:
        with kb.triton("tiny") as sim:
            import triton  # type: ignore[import-not-found]
            import triton.language as tl  # type: ignore[import-not-found]

            @triton.jit
            def multiply(a: Any, b: Any, out: Any, shows: tl.constexpr) -> None:
                r, q = tl.arange(0, 8), tl.arange(0, 2)
                total = tl.zeros((8, 8), tl.float32)
                for k in tl.range(0, 8, 2, num_stages=3):
                    x = tl.load(a + r[:, None] * 8 + (k + q)[None, :])
                    total = tl.dot(x, tl.load(b + (k + q)[:, None] * 8 + r[None, :]), total)
                    if shows:
                        print(x)
                        print(total)
                tl.store(out + r[:, None] * 8 + r[None, :], total)

            multiply[(1,)](A, B, np.zeros((8, 8), np.float32), prints)
        return sim.result

    capsys.readouterr()
    result = found(True)
    texts = [each for each in capsys.readouterr().out.split("Tensor") if each]
    for turn in range(4):
        part = slice(2 * turn, 2 * turn + 2)
        np.testing.assert_allclose(numbers(texts[2 * turn]), ends(A[:, part]), rtol=1e-4)
        np.testing.assert_allclose(numbers(texts[2 * turn + 1]), ends(A[:, : part.stop] @ B[: part.stop]), rtol=1e-4)
    assert result.op_log_sha256 == found(False).op_log_sha256
