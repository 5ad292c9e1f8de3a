"""Plan how a composite command flows through a PE: tiles, and the stages that each tile goes through.

Pure functions of their arguments: no clock, no component, no state. Tiles come in M -> N -> K order. The stages
of a GEMM tile are

    [DMA_READ(a)] [DMA_READ(b)] FETCH GEMM [MATH of k_tile scope]*
    and for the last k of an (m, n) pair: [MATH of output_tile scope]* STORE DMA_WRITE

so the accumulator stays in the register file between the k tiles. A pinned operand is in the scratchpad already: its
DMA_READ is left out of every tile. Tiles at an edge have their true, smaller size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from attrs import frozen

from kernbench_core.compute import Scope
from kernbench_core.dtypes import itemsize
from kernbench_core.errors import ShapeError
from kernbench_core.naming import pe_unit


class StageType(Enum):
    """What a stage does; the value is the op kind of its record in the op log."""

    DMA_READ = ("memory", "dma_read")
    FETCH = ("memory", "fetch")
    GEMM = ("gemm", "gemm")
    MATH = ("math", "math")
    STORE = ("memory", "store")
    DMA_WRITE = ("memory", "dma_write")

    @property
    def op_kind(self) -> str:
        """The op kind of a record of this stage: memory, gemm or math."""
        return self.value[0]


@frozen
class Stage:
    """One visit of a tile to a unit: what is done, the id of the unit, and its sizes (elements and bytes).

    DMA stages have operand, row0, rows, col0, cols and nbytes; FETCH and STORE nbytes; GEMM m, k and n; MATH op_kind
    and elements. The mapping is read only.
    """

    stage_type: StageType
    component: str
    params: Mapping[str, Any]


@frozen
class TilePlan:
    """The stages of one tile, in order, and the tile's indices along M, N and K."""

    stages: tuple[Stage, ...]
    m_tile: int = 0
    n_tile: int = 0
    k_tile: int = 0


@frozen
class PipelinePlan:
    """All tiles of one composite command, in the order in which they are fed."""

    tiles: tuple[TilePlan, ...]


@frozen
class _Extent:
    """A tile's range along one axis: index, first element, elements."""

    index: int
    start: int
    size: int


class _Units:
    """Make the stages that the units of one PE serve; within a plan, equal stages are one object."""

    def __init__(self, pe_prefix: str) -> None:
        self._dma, self._fetch_store, self._gemm, self._math = (
            pe_unit(pe_prefix, kind) for kind in ("pe_dma", "pe_fetch_store", "pe_gemm", "pe_math")
        )
        self._made: dict[tuple[object, ...], Stage] = {}

    def transfer(
        self, kind: StageType, operand: str, rows: _Extent, cols: _Extent, width: int, **address: int | None
    ) -> Stage:
        params: dict[str, Any] = {"operand": operand, "row0": rows.start, "rows": rows.size}
        params |= {"col0": cols.start, "cols": cols.size, "nbytes": rows.size * cols.size * width}
        params |= {name: value for name, value in address.items() if value is not None}
        return self._stage(kind, self._dma, params)

    def move(self, kind: StageType, nbytes: int) -> Stage:
        return self._stage(kind, self._fetch_store, {"nbytes": nbytes})

    def multiply(self, m: int, k: int, n: int) -> Stage:
        return self._stage(StageType.GEMM, self._gemm, {"m": m, "k": k, "n": n})

    def compute(self, op: str, elements: int) -> Stage:
        return self._stage(StageType.MATH, self._math, {"op_kind": op, "elements": elements})

    def write_back(
        self, rows: _Extent, cols: _Extent, width: int, dst_addr: int | None = None
    ) -> tuple[Stage, Stage]:
        """Return the two last stages of an output tile."""
        write = self.transfer(StageType.DMA_WRITE, "out", rows, cols, width, dst_addr=dst_addr)
        return self.move(StageType.STORE, rows.size * cols.size * width), write

    def _stage(self, kind: StageType, component: str, params: dict[str, Any]) -> Stage:
        return self._made.setdefault((kind, *params.values()), Stage(kind, component, params))


def generate_gemm_plan(
    M: int,  # noqa: N803
    K: int,  # noqa: N803
    N: int,  # noqa: N803
    tile_m: int,
    tile_k: int,
    tile_n: int,
    *,
    pe_prefix: str,
    a_pinned: bool = False,
    b_pinned: bool = False,
    epilogue_specs: Iterable[object] = (),
    dtype: str = "f16",
    dtype_b: str | None = None,
    dtype_out: str | None = None,
) -> PipelinePlan:
    """Tile (M, K) @ (K, N) -> (M, N) for the PE whose units share `pe_prefix`.

    Sizes are in elements; `dtype_b` and `dtype_out` are `dtype` unless given. Each epilogue spec has `kind`, the math
    op, and `scope`, "k_tile" or "output_tile" (or an enum with these values); a spec of any other scope takes no part:
    filling in a default is up to the caller. Raises ShapeError when a size is below 1.
    """
    units = _Units(pe_prefix)
    rows, depth, cols = _extents("M", M, tile_m), _extents("K", K, tile_k), _extents("N", N, tile_n)
    width_a, width_b, width_out = itemsize(dtype), itemsize(dtype_b or dtype), itemsize(dtype_out or dtype)
    specs = tuple(epilogue_specs)
    after_gemm, before_store = _kinds(specs, Scope.K_TILE), _kinds(specs, Scope.OUTPUT_TILE)
    tiles: list[TilePlan] = []
    for m in rows:
        for n in cols:
            for k in depth:
                stages: list[Stage] = []
                if not a_pinned:
                    stages.append(units.transfer(StageType.DMA_READ, "a", m, k, width_a))
                if not b_pinned:
                    stages.append(units.transfer(StageType.DMA_READ, "b", k, n, width_b))
                nbytes = m.size * k.size * width_a + k.size * n.size * width_b
                stages += [units.move(StageType.FETCH, nbytes), units.multiply(m.size, k.size, n.size)]
                stages += [units.compute(kind, m.size * n.size) for kind in after_gemm]
                if k is depth[-1]:
                    stages += [units.compute(kind, m.size * n.size) for kind in before_store]
                    stages += units.write_back(m, n, width_out)
                tiles.append(TilePlan(tuple(stages), m.index, n.index, k.index))
    return PipelinePlan(tuple(tiles))


def generate_math_plan(
    M: int,  # noqa: N803
    N: int,  # noqa: N803
    tile_m: int,
    tile_n: int,
    *,
    math_op: str,
    pe_prefix: str,
    src_addr: int | None = None,
    dst_addr: int | None = None,
    dtype: str = "f16",
    dtype_out: str | None = None,
    operands: Sequence[str] = ("a",),
    pinned: Sequence[str] = (),
    epilogue_specs: Iterable[object] = (),
) -> PipelinePlan:
    """Tile an element-wise op over (M, N): DMA_READ FETCH MATH STORE DMA_WRITE per tile, in M -> N order.

    There is one DMA_READ for each of `operands` that is not in `pinned`, all of shape (M, N). `src_addr` and `dst_addr`
    are the first bytes of the (one) operand and the output; the DMA stages carry them along when they are given.
    Epilogue specs, as those of a GEMM, add a MATH each after the op: every tile is an output tile and its only k tile.
    Raises ShapeError when a size is below 1.
    """
    specs = tuple(epilogue_specs)
    chain = (math_op, *_kinds(specs, Scope.K_TILE), *_kinds(specs, Scope.OUTPUT_TILE))
    units = _Units(pe_prefix)
    width, width_out = itemsize(dtype), itemsize(dtype_out or dtype)
    read = [operand for operand in operands if operand not in pinned]
    tiles: list[TilePlan] = []
    for m in _extents("M", M, tile_m):
        for n in _extents("N", N, tile_n):
            elements = m.size * n.size
            stages = [
                units.transfer(StageType.DMA_READ, operand, m, n, width, src_addr=src_addr) for operand in read
            ]
            stages.append(units.move(StageType.FETCH, len(operands) * elements * width))
            stages += [units.compute(kind, elements) for kind in chain]
            stages += units.write_back(m, n, width_out, dst_addr)
            tiles.append(TilePlan(tuple(stages), m.index, n.index))
    return PipelinePlan(tuple(tiles))


def _extents(axis: str, size: int, tile: int) -> tuple[_Extent, ...]:
    """Cut `size` elements into tiles of `tile`, the last of which may be smaller."""
    for name, value in ((axis, size), (f"tile_{axis.lower()}", tile)):
        if value < 1:
            raise ShapeError(f"{name} of a tile plan must be at least 1, not {value!r}; give a larger one.")
    return tuple(_Extent(index, start, min(tile, size - start)) for index, start in enumerate(range(0, size, tile)))


def _kinds(specs: Iterable[object], scope: Scope) -> tuple[str, ...]:
    """Return the math ops of the epilogue specs of one scope, in their order."""
    return tuple(
        str(getattr(spec, "kind", ""))
        for spec in specs
        if getattr(getattr(spec, "scope", None), "value", getattr(spec, "scope", None)) == scope
    )
