"""Plan how a composite command flows through a PE: tiles, and the stages that each tile goes through.

Pure functions of their arguments: no clock, no component, no state. Tiles come in M -> N -> K order. The stages
of a GEMM tile are

    [DMA_READ(a)] [DMA_READ(b)] FETCH GEMM [MATH of k_tile scope]*
    and for the last k of an (m, n) pair: [MATH of output_tile scope]* STORE DMA_WRITE

so the accumulator stays in the register file between the k tiles. A pinned operand is in the scratchpad already: its
DMA_READ is left out of every tile. A MATH step whose operand stays in HBM has a DMA_READ of its part right before it.
Tiles at an edge have their true, smaller size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from kernbench_core.compute import Scope
from kernbench_core.errors import ShapeError
from kernbench_core.topology.naming import pe_unit
from kernbench_core.values.dtypes import is_float, itemsize


class StageType(Enum):
    """What a stage does: the op kind of its record in the op log, a word for it, and the way that a DMA moves data."""

    DMA_READ = ("memory", "dma_read", "read")
    FETCH = ("memory", "fetch")
    GEMM = ("gemm", "gemm")
    MATH = ("math", "math")
    STORE = ("memory", "store")
    DMA_WRITE = ("memory", "dma_write", "write")

    def __init__(self, op_kind: str, word: str, dma_op: str = "") -> None:
        #: The op kind of a record of this stage: memory, gemm or math.
        self.op_kind = op_kind
        self.word = word
        #: "read" or "write" where a DMA serves it, or "".
        self.dma_op = dma_op


def _read_only(params: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(params))


@frozen
class Stage:
    """One visit of a tile to a unit: what is done, the id of the unit, and its sizes (elements and bytes).

    DMA stages have operand, row0, rows, col0, cols and nbytes; FETCH and STORE nbytes; GEMM m, k, n and dtype_in; MATH
    op_kind, elements, dtype and, where the step reads an operand beside the tile, its bytes as beside_bytes. The
    mapping is read only.
    """

    stage_type: StageType
    component: str
    params: Mapping[str, Any] = field(converter=_read_only)


@frozen
class TilePlan:
    """The stages of one tile, in order, the tile's indices along M, N and K, and the room that it takes.

    `staged_bytes` are its buffers in the scratchpad. In the register file it takes `operand_bytes` from its FETCH until
    the stage with index `last_use` has ended, and its output tile takes `sum_bytes` from the first FETCH of its k tiles
    until its STORE has ended.
    """

    stages: tuple[Stage, ...]
    m_tile: int = 0
    n_tile: int = 0
    k_tile: int = 0
    staged_bytes: int = 0
    operand_bytes: int = 0
    sum_bytes: int = 0
    last_use: int = -1


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


_ONLY = _Extent(0, 0, 1)
"""The one k tile of an op without k, and the range of a dimension that broadcasts."""


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

    def multiply(self, m: int, k: int, n: int, dtype: str) -> Stage:
        return self._stage(StageType.GEMM, self._gemm, {"m": m, "k": k, "n": n, "dtype_in": dtype})

    def compute(
        self, step: object, rows: _Extent, cols: _Extent, dtype: str, depth: _Extent | None = None
    ) -> list[Stage]:
        """Return the stages of an epilogue step, or of a plain op that is given by its name: MATH, perhaps a read."""
        op = step if isinstance(step, str) else str(getattr(step, "kind", ""))
        params: dict[str, Any] = {"op_kind": op, "elements": rows.size * cols.size, "dtype": dtype}
        beside = _beside_bytes(step, rows, cols)
        source = getattr(step, "layout", None)
        read = [] if source is None else [self._read_beside(step, source, rows, cols, depth)]
        beside += sum(stage.params["nbytes"] for stage in read)
        math = self._stage(StageType.MATH, self._math, {**params, "beside_bytes": beside} if beside else params)
        return [*read, math]

    def _read_beside(self, step: Any, source: Any, rows: _Extent, cols: _Extent, depth: _Extent | None) -> Stage:
        """Return the read of the part of a step's operand in HBM that broadcasts to a tile; `depth` is its k tile."""
        own = _Extent(0, depth.index, 1) if step.per_tile and depth is not None else _broadcast(rows, source.rows)
        across = _broadcast(cols, source.cols)
        return self.transfer(StageType.DMA_READ, step.source, own, across, itemsize(source.dtype))

    def write_back(
        self, rows: _Extent, cols: _Extent, width: int, dst_addr: int | None = None
    ) -> tuple[Stage, Stage]:
        """Return the two last stages of an output tile."""
        write = self.transfer(StageType.DMA_WRITE, "out", rows, cols, width, dst_addr=dst_addr)
        return self.move(StageType.STORE, rows.size * cols.size * width), write

    def _stage(self, kind: StageType, component: str, params: dict[str, Any]) -> Stage:
        key = (kind.word, *params.values())
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Stage(kind, component, params)
        return found


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
    after_gemm, before_store = _of_scope(specs, Scope.K_TILE), _of_scope(specs, Scope.OUTPUT_TILE)
    dtype_in = max(dtype, dtype_b or dtype, key=itemsize)
    acc = "f32" if is_float(dtype_in) else "int32"
    tiles: list[TilePlan] = []
    for m in rows:
        for n in cols:
            sum_bytes = m.size * n.size * itemsize(acc)
            for k in depth:
                stages: list[Stage] = []
                if not a_pinned:
                    stages.append(units.transfer(StageType.DMA_READ, "a", m, k, width_a))
                if not b_pinned:
                    stages.append(units.transfer(StageType.DMA_READ, "b", k, n, width_b))
                nbytes = m.size * k.size * width_a + k.size * n.size * width_b
                stages += [units.move(StageType.FETCH, nbytes), units.multiply(m.size, k.size, n.size, dtype_in)]
                stages += [stage for step in after_gemm for stage in units.compute(step, m, n, acc, k)]
                last_use = len(stages) - 1
                if k is depth[-1]:
                    stages += [stage for step in before_store for stage in units.compute(step, m, n, acc)]
                    stages += units.write_back(m, n, width_out)
                # a step on each product keeps that apart from the sum
                held = nbytes + (sum_bytes if after_gemm else 0)
                room = (_staged(stages), held, sum_bytes, last_use)
                tiles.append(TilePlan(tuple(stages), m.index, n.index, k.index, *room))
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
    shapes: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    dtypes: Mapping[str, str] = MappingProxyType({}),
    epilogue_specs: Iterable[object] = (),
) -> PipelinePlan:
    """Tile an element-wise op over (M, N): DMA_READ FETCH MATH STORE DMA_WRITE per tile, in M -> N order.

    There is one DMA_READ for each of `operands` that is not in `pinned`, of shape (M, N) and of `dtype` unless `shapes`
    and `dtypes` say otherwise; of an extent of 1 every tile reads the same. `src_addr` and `dst_addr` are the first
    bytes of the (one) operand and the output; the DMA stages carry them along when they are given. Math is done in
    `dtype`. Epilogue specs, as those of a GEMM, add a MATH each after the op: every tile is an output tile and its only
    k tile. Raises ShapeError when a size is below 1.
    """
    specs = tuple(epilogue_specs)
    chain = (math_op, *_of_scope(specs, Scope.K_TILE), *_of_scope(specs, Scope.OUTPUT_TILE))
    units = _Units(pe_prefix)
    width_out = itemsize(dtype_out or dtype)
    tiles: list[TilePlan] = []
    for m in _extents("M", M, tile_m):
        for n in _extents("N", N, tile_n):
            stages, fetched = [], 0
            for operand in operands:
                rows, cols = (_broadcast(*pair) for pair in zip((m, n), shapes.get(operand, (M, N)), strict=True))
                width = itemsize(dtypes.get(operand, dtype))
                fetched += rows.size * cols.size * width
                if operand not in pinned:
                    stages.append(
                        units.transfer(StageType.DMA_READ, operand, rows, cols, width, src_addr=src_addr)
                    )
            stages.append(units.move(StageType.FETCH, fetched))
            stages += [stage for step in chain for stage in units.compute(step, m, n, dtype, _ONLY)]
            last_use = len(stages) - 1
            stages += units.write_back(m, n, width_out, dst_addr)
            room = (_staged(stages), fetched, m.size * n.size * width_out, last_use)
            tiles.append(TilePlan(tuple(stages), m.index, n.index, 0, *room))
    return PipelinePlan(tuple(tiles))


def _extents(axis: str, size: int, tile: int) -> tuple[_Extent, ...]:
    """Cut `size` elements into tiles of `tile`, the last of which may be smaller."""
    for name, value in ((axis, size), (f"tile_{axis.lower()}", tile)):
        if value < 1:
            raise ShapeError(f"{name} of a tile plan must be at least 1, not {value!r}; give a larger one.")
    return tuple(_Extent(index, start, min(tile, size - start)) for index, start in enumerate(range(0, size, tile)))


def _broadcast(tile: _Extent, extent: int) -> _Extent:
    """Return the range of an operand of this extent that broadcasts to a tile."""
    return _ONLY if extent == 1 else tile


def _of_scope(specs: Sequence[object], scope: Scope) -> tuple[object, ...]:
    """Return the epilogue specs of one scope, in their order."""
    scopes = [getattr(spec, "scope", None) for spec in specs]
    return tuple(spec for spec, own in zip(specs, scopes, strict=True) if getattr(own, "value", own) == scope)


def _beside_bytes(step: object, rows: _Extent, cols: _Extent) -> int:
    """Return the bytes of an epilogue step's operands in the scratchpad that broadcast to one tile."""
    total = 0
    for operand in getattr(step, "operands", ()):
        if operand.region is not None:
            shape = operand.value.shape[1:] if step.per_tile else operand.value.shape  # type: ignore[attr-defined]
            across, down = (*reversed(shape), 1, 1)[:2]
            total += min(down, rows.size) * min(across, cols.size) * itemsize(operand.value.dtype)
    return total


def _staged(stages: Iterable[Stage]) -> int:
    """Return the bytes that a tile's DMA stages read into, and write from, the scratchpad."""
    return sum(s.params["nbytes"] for s in stages if s.stage_type in (StageType.DMA_READ, StageType.DMA_WRITE))
