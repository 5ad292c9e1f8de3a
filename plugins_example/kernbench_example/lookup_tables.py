"""A command of one's own: load the unit's table while operands are on their way, by a function that kernels call."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernbench_core import Command


class LoadTable(Command):
    """Have the unit load its table ahead of the elements that it is for; 64 B of command beside the header."""

    serves = "pe_sfu"
    elements = 0

    def __init__(self) -> None:
        super().__init__(nbytes=64)


def load_table(tl: Any, wait: bool = False) -> LoadTable:
    """Load the table of this PE's special-function unit; `tl.wait` takes what is returned."""
    command = LoadTable()
    tl.issue(command, wait=wait)
    return command


def ahead_kernel(x_ptr, y_ptr, BLOCK, AHEAD, tl):  # type: ignore[no-untyped-def]
    """Apply silu to one PE's block; AHEAD: the table comes at the same time as the operands."""
    if AHEAD:
        load_table(tl)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, tl.unit_op("pe_sfu", "example_silu", x))


def bench(rt: Any, block: int = 1024, ahead: bool = True) -> None:
    """Apply silu to one block per PE, the table loaded ahead or not; needs a batching_sfu, as example-pair has."""
    n = block * rt.n_pes
    x = rt.tensor((n,), "f32", name="x")
    y = rt.empty((n,), "f32", name="y")
    rt.launch(ahead_kernel, x, y, block, ahead)
    rt.copy_to_host(y)
    rt.check(y, lambda: x.numpy() / (1.0 + np.exp(-x.numpy())))
