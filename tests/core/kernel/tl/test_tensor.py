"""Ready data may be read and branched on; pending data is refused by name, line and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import KernelError, NoDataError, PendingDataError, ShapeError, UnsupportedError
from tests.core.kernel_rig import Rig

F32 = np.arange(32, dtype=np.float32).reshape(4, 8) - 10
I32 = np.arange(32, dtype=np.int32).reshape(4, 8) - 10


def collect(body: Callable[[Any, Any, Any], Any], data: bool = True) -> Any:
    """Run `body(float tile, int tile, tl)` in a kernel and give what it returns."""
    found: list[Any] = []

    def kernel(f: Any, i: Any, tl: Any) -> None:
        found.append(body(tl.load(f, shape=(4, 8)), tl.load(i, shape=(4, 8)), tl))

    rig = Rig(data=data)
    rig.run(kernel, rig.tensor(F32, "f"), rig.tensor(I32, "i"))
    return found[0]


def refused(body: Callable[[Any, Any, Any], Any], kind: type[Exception], data: bool = True) -> str:
    """Give what a kernel's error says before the place where it ran."""
    with pytest.raises(kind) as caught:
        collect(body, data)
    text, _, place = str(caught.value).partition("\n  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at ")
    assert place
    return text


def line(body: Callable[..., Any]) -> str:
    return f"{__file__}:{body.__code__.co_firstlineno}"


def test_loaded_data_is_read_and_branched_on() -> None:
    """Elements are Python numbers; scalars convert; arrays equal what was stored and cannot be written."""

    def kernel(f: Any, i: Any, tl: Any) -> None:
        x, one = tl.load(f, shape=(4, 8)), tl.load(f + 3)
        found.extend((x[1, 2], type(x[1, 2]), tl.load(i, shape=(4, 8))[3, 7], x[tl.arange(1, 2), 3], len(x)))
        found.extend((float(one), int(one), bool(one), one.item(), one.data.item()))
        found.append(x.numpy())

    found: list[Any] = []
    rig = Rig()
    rig.run(kernel, rig.tensor(F32), rig.tensor(I32))
    assert found[:5] == [0.0, float, 21, 1.0, 4]
    assert found[5:10] == [-7.0, -7, True, -7.0, -7.0]
    np.testing.assert_array_equal(found[10], F32)
    assert not found[10].flags.writeable


def test_integer_arithmetic_on_loaded_data_is_ready() -> None:
    """Results index and branch; each is a timed, logged math command all the same."""

    def kernel(i: Any, tl: Any) -> None:
        x = tl.load(i, shape=(4, 8))
        y = (x * 3 + 1) // 2 - tl.arange(0, 8)[None, :]
        found.extend((y.numpy(), tl.sum(y, axis=1).numpy(), (y > 4).numpy(), tl.max(y).item()))
        if tl.sum(x) > 0:
            found.append("positive")

    found: list[Any] = []
    rig = Rig()
    rig.run(kernel, rig.tensor(I32))
    want = np.trunc((I32 * 3 + 1) / 2).astype(np.int32) - np.arange(8)
    np.testing.assert_array_equal(found[0], want)
    np.testing.assert_array_equal(found[1], want.sum(1))
    np.testing.assert_array_equal(found[2], want > 4)
    assert found[3:] == [want.max(), "positive"]
    assert rig.ops() == ["dma_read", "mul", "add", "floordiv", "sub", "sum", "gt", "max", "sum", "gt"]


READS = {
    "numpy()": lambda x: x.numpy(),
    "data": lambda x: x.data,
    "a condition": bool,
    "float()": float,
    "int()": int,
    "item()": lambda x: x.item(),
    "an element": lambda x: x.reshape(1)[0],
}


@pytest.mark.parametrize("why", READS)
def test_pending_results_are_refused(why: str) -> None:
    """Every way of reading a pending scalar gives the op, its line and what to do, waited for or not."""

    def body(f: Any, i: Any, tl: Any) -> Any:
        total = tl.sum(f)
        tl.wait()
        return READS[why](total)

    first = body.__code__.co_firstlineno
    reader = line(READS[why]) if hasattr(READS[why], "__code__") else f"{__file__}:{first + 3}"
    assert refused(body, PendingDataError) == (
        f"{why} at {reader} must have data that is known while the kernel runs, and the result of tl.sum made at "
        f"{__file__}:{first + 1} exists only after it; branch on loaded data or on integers computed from it, or store "
        "the result and read it in the next launch."
    )


def test_float_comparisons_are_pending() -> None:
    """A comparison of loaded floats is an op of a unit; comparing an element is not."""
    assert collect(lambda f, i, tl: f[2, 0] > 0.5)
    assert collect(lambda f, i, tl: f > 0.5).value.pending
    assert not collect(lambda f, i, tl: i > 5).value.pending


def test_a_pending_address_is_an_error() -> None:
    """Integers that were loaded from a place whose content is pending are pending themselves."""

    def kernel(f: Any, i: Any, out: Any, tl: Any) -> None:
        tl.store(out, tl.load(f, shape=(4, 8)).to(tl.int32))
        indices = tl.load(out, shape=(4, 8))
        tl.load(f + indices)

    rig = Rig()
    with pytest.raises(PendingDataError) as caught:
        rig.run(kernel, rig.tensor(F32), rig.tensor(I32), rig.empty((4, 8), "int32"))
    first = kernel.__code__.co_firstlineno
    assert str(caught.value).partition("\n")[0] == (
        f"an address at {__file__}:{first + 3} must have data that is known while the kernel runs, and the result of "
        f"tl.load made at {__file__}:{first + 2} exists only after it; branch on loaded data or on integers computed "
        "from it, or store the result and read it in the next launch."
    )


def test_reading_needs_data_and_one_element() -> None:
    """Runs without data refuse to read, tiles of many elements to be scalars, cuts to be tiles."""
    body = lambda f, i, tl: f[0, 0]  # noqa: E731
    assert refused(body, NoDataError, data=False) == (
        f"an element at {line(body)} must have data, and this run keeps shapes only; leave out --no-data to run "
        "kernels that read or branch on data."
    )
    whole = lambda f, i, tl: float(f)  # noqa: E731
    assert refused(whole, ShapeError) == (
        f"float() at {line(whole)} must have a tensor of one element, not of shape (4, 8); index the element."
    )
    cut = lambda f, i, tl: f[0]  # noqa: E731
    assert refused(cut, UnsupportedError) == (
        f"an index at {line(cut)} must name one element of shape (4, 8) or insert dimensions with None, not cut a "
        "tile; load the part that you need."
    )
    with pytest.raises(KernelError, match="TypeError: an index must be an integer"):
        collect(lambda f, i, tl: [1, 2][f])


def test_views_are_free_and_share_the_data() -> None:
    """Inserting dimensions and reshaping issue no command."""

    def kernel(f: Any, tl: Any) -> None:
        x = tl.load(f, shape=(4, 8))
        found.extend((x[:, None].shape, x[None].shape, x.reshape(2, 16).numpy(), tl.expand_dims(x, 2).shape))
        tl.store(f, x.reshape(8, 4).T)

    found: list[Any] = []
    rig = Rig()
    tensor = rig.tensor(F32)
    rig.run(kernel, tensor)
    assert (found[0], found[1], found[3]) == ((4, 1, 8), (1, 4, 8), (4, 8, 1))
    np.testing.assert_array_equal(found[2], F32.reshape(2, 16))
    assert rig.ops() == ["dma_read", "trans", "dma_write"]
    np.testing.assert_array_equal(rig.numpy(tensor).ravel(), F32.reshape(8, 4).T.ravel())


def test_the_repr_shows_the_state() -> None:
    """In flight, or its values, with what made it and where."""

    def kernel(f: Any, tl: Any) -> None:
        x = tl.load(f, shape=(4,), wait=False)
        found.append(repr(x))
        x.settle()
        found.extend((repr(x), repr(x + 1)))

    found: list[str] = []
    rig = Rig()
    rig.run(kernel, rig.tensor(F32))
    first = kernel.__code__.co_firstlineno
    assert found == [
        f"Tensor(f32[4], in flight, not known yet, of tl.load at {__file__}:{first + 1})",
        f"Tensor([-10.,  -9.,  -8.,  -7.], f32[4], of tl.load at {__file__}:{first + 1})",
        f"Tensor([-9., -8., -7., -6.], f32[4], of tl.add at {__file__}:{first + 4})",
    ]


def test_what_numpy_would_compute_is_refused() -> None:
    """In a sentence with the kernel's line and what to write; arithmetic with numpy's numbers goes on."""
    for body, told in (
        (lambda f, i, tl: np.max(f), "numpy.max at {} does not compute tensors of a kernel; write tl.max."),
        (lambda f, i, tl: np.where(i, i, i), "numpy.where at {} does not compute tensors of a kernel; write tl.where."),
        (lambda f, i, tl: f @ f, "@ at {} is no operator of tensors; write tl.dot(a, b)."),
        (lambda f, i, tl: np.ones((8, 8)) @ f, "@ at {} is no operator of tensors; write tl.dot(a, b)."),
    ):
        assert refused(body, UnsupportedError) == told.format(line(body))
    body = lambda f, i, tl: np.exp(f)  # noqa: E731
    told = refused(body, KernelError)
    assert told.startswith(f"{line(body)}: TypeError: ")
    assert "; numpy does not compute tensors of a kernel: write tl's function, such as tl.exp for np.exp" in told
    assert collect(lambda f, i, tl: np.array_equal((np.int32(2) * i).numpy(), 2 * I32))
    assert collect(lambda f, i, tl: (np.shape(f), np.ndim(f), np.mean(i))) == ((4, 8), 2, I32.mean())
