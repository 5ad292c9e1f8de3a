"""Arrays that launches are given, of every make: what the host has after a launch, or the sentence that refuses it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.triton.host_arrays import DeviceCopies
from kernbench_builtin.triton.placement import LaunchShape
from kernbench_builtin.triton.storage import StorageView
from tests.builtin.triton.kernels import scaling


def refused(do: Callable[[], object]) -> str:
    """Return the sentence with which kernbench refuses something."""
    with pytest.raises(kb.KernbenchError) as error:
        do()
    return str(error.value)


class Interface:
    """An array that says where it lies, as other libraries' do."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Capsule:
    """An array that is handed over by DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **named: Any) -> Any:
        """Hand it over."""
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self) -> Any:
        """Say where it lies."""
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [Interface, Capsule])
def test_arrays_of_other_libraries(wrap: Callable[[Any], Any]) -> None:
    """They are read and written in their own memory."""
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    with kb.triton("tiny"):
        scaling()[(1,)](wrap(x), wrap(y), 8, BLOCK=8)
    assert y.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_a_read_only_array_is_read_and_not_written() -> None:
    """Where a kernel writes one, no array has changed, the other that it wrote among them."""
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    x.flags.writeable = False
    with kb.triton("tiny"):
        kernel = scaling()
        kernel[(1,)](x, y, 8, BLOCK=8)
        assert y.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
        assert refused(lambda: kernel[(1,)](y, x, 8, BLOCK=8)) == (
            "argument 'y_ptr' of kernel 'scale_kernel' must be an array that can be written, as the kernel writes it, "
            "not a read-only one; give a copy. All arrays are as they were."
        )
        assert x.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
        kernel[(1,)](x, y, 8, BLOCK=8)


def test_storages_that_share_memory() -> None:
    """One inside the other is the same memory on the device, in either order; those that cross are refused."""
    memory = bytearray(64)
    whole = np.frombuffer(memory, np.float32)
    part = np.frombuffer(memory, np.float32, count=8, offset=16)
    whole[:] = np.arange(16)
    with kb.triton("tiny") as sim:
        kernel = scaling()
        kernel[(1,)](part, part, 8, BLOCK=8)
        expected = [0, 1, 2, 3, *(2 * value for value in range(4, 12)), 12, 13, 14, 15]
        assert whole.tolist() == expected
        kernel[(1,)](part, whole, 8, BLOCK=8)
        expected[:8] = [2 * value for value in expected[4:12]]
        assert whole.tolist() == expected
        first, last = np.frombuffer(memory, np.float32, count=8), np.frombuffer(memory, np.float32, count=8, offset=16)
        assert refused(lambda: kernel[(1,)](first, last, 8, BLOCK=8)) == (
            "arguments 'x_ptr' and 'y_ptr' of kernel 'scale_kernel' must be apart in memory, or one inside the other, "
            "not overlap; give a copy of 'y_ptr'."
        )
        odd = np.frombuffer(memory, np.float32, count=8, offset=2)
        assert refused(lambda: kernel[(1,)](whole, odd, 8, BLOCK=8)) == (
            "argument 'y_ptr' of kernel 'scale_kernel' must begin at a whole element of its storage, not 2 bytes "
            "behind one; give a copy."
        )
        kernel[(1,)](whole, whole, 0, BLOCK=8)
    assert len(sim.launches) == 3, "a launch that is refused ends nothing"
    assert whole.tolist() == expected


def test_bytes_are_given_as_another_dtype() -> None:
    """`triton.reinterpret` has a kernel read and write bit patterns; what else it is asked, the array answers."""
    x, y = np.arange(4, dtype=np.float16), np.zeros(9, np.uint16)
    with kb.triton("tiny"):
        import triton  # type: ignore[import-not-found]
        import triton.language as tl  # type: ignore[import-not-found]

        given = triton.reinterpret(y[1:], tl.float16)
        assert (given.shape, given.dtype) == ((8,), tl.float16)
        scaling()[(1,)](triton.reinterpret(x.view(np.int16), tl.float16), given, 4, BLOCK=4)
    assert y.view(np.float16).tolist() == [0, 0, 2, 4, 6, 0, 0, 0, 0]


class Holder:
    """What points into an array that it holds, as libraries make views that have negative strides."""

    def __init__(self, array: Any, first: int) -> None:
        self.array, self.first, self.dtype = array, first, "float32"

    def data_ptr(self) -> int:
        """Say where its first element is."""
        return int(self.array.ctypes.data) + 4 * self.first


def test_what_points_into_an_array_that_it_holds() -> None:
    """Its first element is where `data_ptr()` says, within that array; outside of it, it is refused."""
    x, y = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    with kb.triton("tiny"):
        scaling()[(1,)](Holder(x, 5), y, 3, BLOCK=4)
        assert y.tolist() == [10, 12, 14, 0]
        with_nothing = Holder(x, 8)
        assert refused(lambda: scaling()[(1,)](with_nothing, y, 3, BLOCK=4)).startswith(
            "argument 'x_ptr' of kernel 'scale_kernel' must be an array, or hold the one that its data_ptr() points "
            "into, as <"
        )


def test_an_empty_array_is_given_and_not_reached() -> None:
    """A kernel whose lanes are all masked runs; one that reads an element is refused."""
    empty, y = np.zeros(0, np.float32), np.zeros(8, np.float32)
    with kb.triton("tiny"):
        scaling()[(1,)](empty, y, 0, BLOCK=8)
        assert y.tolist() == [0] * 8
        assert "must stay inside tensor 'x_ptr'" in refused(lambda: scaling()[(1,)](empty, y, 1, BLOCK=8))


def test_memory_of_arrays_that_are_gone_is_used_again() -> None:
    """Many arrays, one after the other, take no more of the device than one; each is computed from its own content."""
    with kb.triton("tiny", set=["cube.hbm.capacity=64 KiB"]) as sim:
        kernel, y = scaling(), np.zeros(1 << 12, np.float32)
        for number in range(sim.machine.hbm_bytes // y.nbytes + 2):
            x = np.full(1 << 12, number, np.float32)
            kernel[(1,)](x, y, 4, BLOCK=4)
            assert y[:5].tolist() == [2 * number] * 4 + [0]
            del x
            gc.collect()
    assert len(sim.launches) > 4


@pytest.mark.parametrize("gap", [0, 4096])
def test_where_arrays_lay_that_are_gone_is_no_matter(gap: int) -> None:
    """An array that begins where another did, or elsewhere, leaves the tensor of that to the next one like it."""
    memory = np.zeros(1 << 13, np.uint8)
    lies = []

    def program(rt: Any) -> None:
        rt.tensor(np.zeros(1, np.float32))
        copies, launch = DeviceCopies(rt), LaunchShape(1, 1, len(rt.pes), len(rt.pes))
        for at, nbytes in ((0, 256), (gap, 512), (0, 256)):
            owner = np.zeros(1)
            found = copies.hold({"x": StorageView(memory[at : at + nbytes], "f32", 0, owner)}, {}, launch, "kernel")
            lies.append(found["x"].held.tensor.allocation.va)
            del owner, found

    kb.run(program, "tiny")
    assert lies[0] == lies[2] != lies[1]


def test_an_array_that_one_store_fills() -> None:
    """Of a number in every element, which nothing needs to hold more than once; and where it is one of more stores."""
    x, y = np.zeros(8, np.float32), np.zeros(8, np.int16)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def fill_kernel(x_ptr: Any, value: tl.constexpr, BLOCK: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            tl.store(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), value)

        fill_kernel[(1,)](x, 3.5, BLOCK=8)
        fill_kernel[(1,)](y, 7, BLOCK=8)
        assert (x.tolist(), y.tolist()) == ([3.5] * 8, [7] * 8)
        fill_kernel[(2,)](x, 2.0, BLOCK=4)
    assert x.tolist() == [2.0] * 8


def test_the_same_bytes_as_a_wider_dtype() -> None:
    """A launch reads what one before it wrote as half as many elements, whose halves lay in several memories there."""
    halves = np.zeros(12, np.int16)
    words = halves.view(np.int32)
    with kb.triton("tiny"):
        kernel = scaling()
        for factor in (2, 4):
            kernel[(1,)](np.arange(12, dtype=np.int16) * np.int16(factor // 2), halves, 12, BLOCK=16)
            assert halves.tolist() == [factor * each for each in range(12)]
            kernel[(1,)](words, words, 6, BLOCK=8)
            assert words.tolist() == [2 * factor * (low + (low + 1 << 16)) for low in range(0, 12, 2)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros(4, np.complex64), "must be an array of dtype "),
        (np.zeros(4, ">f4"), "must be an array of dtype "),
        (np.array(["a"]), "must be an array of dtype "),
    ],
)
def test_what_has_no_dtype_of_kernels_is_refused(value: Any, words: str) -> None:
    """The sentence names the argument and what to do."""
    with kb.triton("tiny"):
        sentence = refused(lambda: scaling()[(1,)](value, value, 4, BLOCK=4))
    assert sentence.startswith(f"argument 'x_ptr' of kernel 'scale_kernel' {words}")
    assert sentence.endswith("cast it, as in x.astype(np.float32).")


def test_what_has_a_mask_is_refused() -> None:
    """An array, a number, and what is in a tuple; also where nothing is masked."""
    x = np.ones(4, np.float32)
    whole = np.ma.array(x)
    for name, arguments in {"x_ptr": (whole, x, 4), "n": (x, x, np.ma.masked), "x_ptr[1]": ((x, whole), x, 4)}.items():
        with kb.triton("tiny"):
            sentence = refused(lambda arguments=arguments: scaling()[(1,)](*arguments, BLOCK=4))  # type: ignore[misc]
        assert sentence == (
            f"argument {name!r} of kernel 'scale_kernel' must be an array without a mask, not one of numpy.ma; give "
            "its .filled(value), and the mask as an array of its own."
        )


@pytest.mark.parametrize(
    ("grid", "shown"),
    [((0,), "(0,)"), ("ab", "('ab',)"), ((1.5,), "(1.5,)"), ((1, 1, 1, 1), "(1, 1, 1, 1)"), ((), "()")],
)
def test_what_is_no_grid_is_refused(grid: Any, shown: str) -> None:
    """Also where a function gives it; whatever counts as an integer is one."""
    x = np.ones(4, np.float32)
    with kb.triton("tiny") as sim:
        for each in (grid, lambda meta: grid):
            assert refused(lambda each=each: scaling()[each](x, x, 4, BLOCK=4)) == (  # type: ignore[misc]
                "kernel 'scale_kernel': grid must be a tuple of one to three positive integers, not "
                f"{shown}; write grid=(x, y)."
            )
        scaling()[lambda meta: [np.int64(meta["BLOCK"] // 4)]](x, x, 4, BLOCK=4)
    assert x.tolist() == [2.0] * 4
    assert len(sim.launches) == 1


def test_programs_are_not_without_number() -> None:
    """A launch of 10^9 programs is refused before it begins."""
    x = np.ones(4, np.float32)
    with kb.triton("tiny") as sim:
        assert refused(lambda: scaling()[(10**9,)](x, x, 4, BLOCK=4)) == (
            "kernel 'scale_kernel': grid must have at most 16,777,216 programs, not (1000000000,); let each program do "
            "more."
        )
    assert sim.launches == []
