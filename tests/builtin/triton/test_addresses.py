"""Pointers made of integers: addresses of the host's arrays, which a kernel reads from memory."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.triton.storage import AskedAddresses


def doubling() -> Any:
    """Make a kernel that doubles groups of arrays that it is given the addresses of."""
    import triton
    import triton.language as tl

    @triton.jit
    def grouped(from_ptrs: Any, to_ptrs: Any, sizes: Any, groups: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
        for group in range(groups):
            x = tl.load(from_ptrs + group).to(tl.pointer_type(tl.float32))
            y = tl.load(to_ptrs + group).to(tl.pointer_type(tl.float32))
            n = tl.load(sizes + group)
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

    return grouped


SIZES = np.array([5, 9, 30], np.int32)


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_arrays_of_addresses(kind: Any) -> None:
    """Each is read and written where it lies, views too; what changed since is seen by the next launch."""
    rng = np.random.default_rng(6)
    whole = rng.standard_normal(40).astype(np.float32)
    xs = [rng.standard_normal(5).astype(np.float32), whole[3:12], rng.standard_normal(30).astype(np.float32)]
    ys = [np.zeros(n, np.float32) for n in SIZES]
    with kb.triton("tiny") as sim:
        kernel = doubling()
        given, taken = (np.array([sim.data_ptr(each) for each in those], kind) for those in (xs, ys))
        assert given.tolist() == [each.ctypes.data for each in xs]
        kernel[(2,)](given, taken, SIZES, 3, BLOCK=16)
        assert all(np.array_equal(y, 2 * x) for x, y in zip(xs, ys, strict=True))
        whole[:] = 1
        kernel[(2,)](given, taken, SIZES, 3, BLOCK=16)
        assert ys[1].tolist() == [2.0] * 9
        kernel[(2,)](given, given, SIZES, 3, BLOCK=16)
    assert whole.tolist() == [1.0] * 3 + [2.0] * 9 + [1.0] * 28


def test_addresses_that_lead_nowhere() -> None:
    """Of no array, of one that is gone, of floats, and over the ends of arrays."""
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    size = np.array([8], np.int32)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        kernel = doubling()
        line = kernel.fn.__code__.co_firstlineno + 3
        gone = np.ones(8, np.float32)
        addresses = {"nothing": 4096, "gone": sim.data_ptr(gone), "y": sim.data_ptr(y), "x": sim.data_ptr(x)}
        del gone
        gc.collect()
        for name in ("nothing", "gone"):
            with pytest.raises(kb.KernbenchError) as error:
                kernel[(1,)](np.array([addresses[name]]), np.array([addresses["y"]]), size, 1, BLOCK=8)
            assert str(error.value).splitlines()[0] == (
                f"a cast of integers to pointers at {__file__}:{line} must be of addresses of the host's arrays, not "
                f"of {addresses[name]:#x}; take them by data_ptr() of torch's tensors, or by data_ptr(array) of what "
                "kb.triton gives."
            )
        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](np.array([addresses["x"]]), np.array([addresses["y"]]), np.array([12], np.int32), 1, BLOCK=16)
        assert "must stay inside tensor 'from_ptrs[0]' of shape (8,), and reaches element [11]" in str(error.value)

        @triton.jit
        def several(ptrs: Any, of: Any, FLOAT: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            found = tl.load(ptrs + tl.arange(0, 2))
            (found * 1.0 if FLOAT else found).to(tl.pointer_type(tl.float32))

        line = several.fn.__code__.co_firstlineno + 3
        with pytest.raises(kb.KernbenchError) as error:
            several[(1,)](np.array([addresses["x"], addresses["y"]]), x, False)
        assert str(error.value).splitlines()[0] == (
            f"a cast of integers to pointers at {__file__}:{line} must be of whole elements of one array, not of "
            "several or of parts; cast one after the other."
        )
        with pytest.raises(kb.KernbenchError) as error:
            several[(1,)](np.array([1, 2]), x, True)
        assert str(error.value).splitlines()[0] == (
            f"a cast to pointers at {__file__}:{line} must be of integers, not f32; cast first."
        )
    assert not y.any()


def test_addresses_of_torchs_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """`data_ptr()` of a tensor is kept in mind inside; a tile of addresses in one array is a block of pointers."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "fake_torch"))
    monkeypatch.setitem(sys.modules, "torch", None)  # so that what is imported here is taken out again
    del sys.modules["torch"]
    with kb.triton("tiny"):
        import torch
        import triton
        import triton.language as tl

        @triton.jit
        def gather(ptrs: Any, out: Any) -> None:
            at = tl.arange(0, 4)
            tl.store(out + at, tl.load(tl.load(ptrs + at).to(tl.pointer_type(tl.float32))))

        whole = torch.full(16, 1.0, device="cuda")
        whole.numpy()[:] = np.arange(16)
        out = np.zeros(4, np.float32)
        gather[(1,)](whole.data_ptr() + 4 * np.array([3, 0, 15, 7]), out)
    assert out.tolist() == [3, 0, 15, 7]
    monkeypatch.setitem(sys.modules, "torch", None)  # so that what is imported here is taken out again
    del sys.modules["torch"]


def test_arrays_are_known_in_the_order_in_which_a_script_asked_for_their_addresses() -> None:
    """Whether one begins where another did that is gone is a matter of the host's memory."""
    memory = np.zeros(96, np.float32)
    for again in (0, 64):
        asked = AskedAddresses()
        gone, first, second = memory[:16], memory[32:48], memory[again : again + 16]
        for array in (gone, first, second):
            asked.of(array)
        del gone, array
        assert [each is known for each, known in zip(asked.arrays(), (first, second), strict=True)] == [True, True]
