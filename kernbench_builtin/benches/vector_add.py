"""Element-wise sum of two vectors, and a copy: what only memory limits.

The roof is the bytes over what HBM sustains: 3 * n elements of a sum, 2 * n of a copy. On `default` 2^24 f32 elements
take 1.01 of it for a sum and 1.02 for a copy, 2^18 take 2.0 for a sum, as what a PE then moves takes 0.5 us.

What it takes: each PE has its share in its own memory, and always some loads in the queue of its DMA. `tl.load` with
`wait=False` puts them there 3 blocks before they are used, so that HBM goes on while the kernel adds, and while it
waits for a store, which comes back when it is complete.
"""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._grid import BlockSize
from kernbench_builtin.benches._shared import read_back, require_positive
from kernbench_builtin.benches._stream import asked_ahead, evenly, memory_block
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.values.dtypes import itemsize


def add_kernel(x_ptr, y_ptr, z_ptr, n, share, BLOCK, AHEAD, tl):
    """Add one PE's share of the elements, a block at a time, with the loads of AHEAD blocks on their way."""
    first = tl.program_id(0) * share

    def ask(block):
        start, size = block
        return tl.load(x_ptr + start, shape=(size,), wait=False), tl.load(y_ptr + start, shape=(size,), wait=False)

    for (start, _), (x, y) in asked_ahead(evenly(first, min(first + share, n), BLOCK), ask, AHEAD):
        tl.store(z_ptr + start, x + y)


def copy_kernel(x_ptr, y_ptr, n, share, BLOCK, AHEAD, tl):
    """Copy one PE's share of the elements likewise."""
    first = tl.program_id(0) * share

    def ask(block):
        start, size = block
        return tl.load(x_ptr + start, shape=(size,), wait=False)

    for (start, _), x in asked_ahead(evenly(first, min(first + share, n), BLOCK), ask, AHEAD):
        tl.store(y_ptr + start, x)


@sizes_from(x="n", y="n")
def bench(
    rt: Runtime,
    n: int = 262144,
    block: BlockSize = "auto",
    ahead: int = 3,
    dtype: Literal["f32", "f16", "bf16"] = "f32",
    x: ArrayOrTensor | None = None,
    y: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Add two vectors of n elements, each PE its own share, from its own memory.

    Args:
        n: Elements of a vector.
        block: Elements that a PE takes at once; auto takes what a DMA keeps under way, and at most half of a share.
        ahead: Blocks that are asked for before they are used.
        dtype: Of the arrays.
    """
    share = -(-n // rt.n_pes)
    block = memory_block(rt, itemsize(dtype), share, 2, ahead) if block == "auto" else block
    require_positive(n=n, block=block, ahead=ahead)
    given = y if x is None else x
    shape = (n,) if given is None else given.shape
    left = rt.operand(x, shape, dtype, name="x")
    right = rt.operand(y, shape, dtype, name="y")
    z = rt.empty(shape, dtype, name="z")
    rt.launch(add_kernel, left, right, z, n, share, block, ahead)
    read_back(rt, z, x, y)
    first, second = left.snapshot(), right.snapshot()
    rt.check(z, lambda: first() + second())
    return z


@sizes_from(x="n")
def copy(
    rt: Runtime,
    n: int = 16777216,
    block: BlockSize = "auto",
    ahead: int = 3,
    dtype: Literal["f32", "f16", "bf16"] = "f32",
    x: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Copy a vector of n elements, each PE its own share, within its own memory.

    Args:
        n: Elements of the vector.
        block: Elements that a PE takes at once; auto takes what a DMA keeps under way, and at most half of a share.
        ahead: Blocks that are asked for before they are used.
        dtype: Of the array.
    """
    share = -(-n // rt.n_pes)
    block = memory_block(rt, itemsize(dtype), share, 1, ahead) if block == "auto" else block
    require_positive(n=n, block=block, ahead=ahead)
    shape = (n,) if x is None else x.shape
    is_given = x is not None
    source = rt.operand(x, shape, dtype, name="x") if is_given else rt.tensor(shape, dtype, name="x", resident=True)
    y = rt.empty(shape, dtype, name="y")
    rt.launch(copy_kernel, source, y, n, share, block, ahead)
    rt.check(y, source.snapshot())
    return y
