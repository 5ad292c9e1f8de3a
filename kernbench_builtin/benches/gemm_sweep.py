"""Composite matrix products of several shapes, tiles and pinned operands, one launch for each combination."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Literal

from attrs import frozen

from kernbench_builtin.benches._blocks import Blocks, columns_by_cube, rows_by_cube
from kernbench_builtin.benches._shared import check_product
from kernbench_builtin.benches.gemm_composite import composite_kernel
from kernbench_core.errors import UsageError
from kernbench_core.host import DeviceTensor, Runtime
from kernbench_core.wording import brief

STAGES = ("DMA_READ", "FETCH", "GEMM", "STORE", "DMA_WRITE")
PINS = ("none", "a", "b", "ab")


@frozen
class _Case:
    """One combination: extents M, N, K, tile extents along M, N, K, and which operands are pinned."""

    shape: tuple[int, ...]
    tile: tuple[int, ...]
    pin: str

    def __str__(self) -> str:
        return f"{_times(self.shape)}, tile {_times(self.tile)}, pin {self.pin}"


def bench(
    rt: Runtime,
    shapes: str = "256x256x256,512x512x512",
    tiles: str = "64,128",
    pin: str = "none,a",
    dtype: Literal["f16", "bf16", "f32", "int8"] = "f16",
) -> None:
    """Multiply matrices of each shape (MxNxK) with each tile and pinning; tabulate time and stages.

    Args:
        shapes: A list of MxNxK with commas.
        tiles: A list of tile sizes, each one number, or three as 64x128x32.
        pin: A list of operands that are loaded once: none, a, b or ab.
        dtype: Of the arrays.
    """
    sizes = [_extents("shapes", text, 3) for text in _items("shapes", shapes)]
    cuts = [_extents("tiles", text, 1, 3) for text in _items("tiles", tiles)]
    pins = _items("pin", pin)
    for text in pins:
        if text not in PINS:
            raise UsageError(f"parameter 'pin' must list some of {', '.join(PINS)}, not {brief(text)}; correct it.")
    for m, n, k in sizes:
        a = rt.tensor((m, k), dtype, name="a", placement=rows_by_cube(rt, m, k, dtype))
        b = rt.tensor((k, n), dtype, name="b", placement=columns_by_cube(rt, k, n, dtype))
        for tile, operands in product(cuts, pins):
            _one(rt, a, b, _Case((m, n, k), tile * (3 // len(tile)), operands))
        rt.free(a)
        rt.free(b)


def _one(rt: Runtime, a: DeviceTensor, b: DeviceTensor, case: _Case) -> None:
    """Launch one combination and report its row."""
    (m, n, k), dtype = case.shape, a.dtype
    c = rt.empty((m, n), "int32" if dtype == "int8" else dtype, name=f"c of {case}")
    before = len(rt.op_log)
    launch = rt.launch(composite_kernel, a, b, c, n, k, Blocks.over(rt, m, n), *case.tile, case.pin)
    counts, read = _count(rt, before)
    rt.report(
        shape="x".join(map(str, case.shape)),
        tile=_times(case.tile),
        pin=case.pin,
        kernel_ns=launch.time_ns,
        **{"TFLOP/s": 2e-3 * m * n * k / launch.time_ns},
        **{stage: counts[f"TileToken/{stage}"] for stage in STAGES},
        read_bytes=read,
    )
    check_product(rt, c, a, b)
    rt.free(c)


def _count(rt: Runtime, before: int) -> tuple[Counter[str], int]:
    """Return how often each op came since, and the bytes that DMAs read from HBM, by tiles and by loads."""
    counts: Counter[str] = Counter()
    read = 0
    for op in rt.op_log.since(before):
        counts[op.op_name] += 1
        if op.op_name in ("TileToken/DMA_READ", "dma_read"):
            read += op.params["nbytes"]
    return counts, read


def _items(name: str, text: str) -> list[str]:
    """Split a list at its commas; UsageError when nothing is in it."""
    found = [item.strip() for item in text.split(",") if item.strip()]
    if not found:
        raise UsageError(
            f"parameter {name!r} must list at least one item, not {brief(text)}; separate items by commas."
        )
    return found


def _extents(name: str, text: str, *counts: int) -> tuple[int, ...]:
    """Read `512x256x64`; UsageError unless it has one of so many positive extents."""
    parts = text.split("x")
    if len(parts) not in counts or not all(part.isdecimal() and int(part) for part in parts):
        example = "512x512x512" if 1 not in counts else "128 or 128x64x128"
        raise UsageError(f"parameter {name!r} must list extents M, N, K as {example}, not {brief(text)}; correct it.")
    return tuple(int(part) for part in parts)


def _times(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents[:1] if len(set(extents)) == 1 else extents))
