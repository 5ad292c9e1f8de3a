"""Composites: one command for a whole tiled GEMM or elementwise op, run by the PE's scheduler tile by tile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from attrs import field, frozen

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.compute.functions import Scope
from kernbench_core.errors import PageFaultError, UninitializedReadError
from kernbench_core.kernel.commands import KernelCommand, MemoryUse
from kernbench_core.kernel.compute_commands import Operand, gemm_params, math_inputs
from kernbench_core.kernel.pe_state import PeState
from kernbench_core.kernel.pointers import Ref
from kernbench_core.memory.device_memory import DeviceMemory, TensorAllocation
from kernbench_core.memory.elements import check_whole_elements, missing_element, unmapped_element
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.values.dtypes import itemsize
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import LoadedValue, ResultValue, Value

_COMMAND_BYTES = 128


@frozen(eq=False)
class MatrixLayout:
    """Where a matrix operand lies: rows `pitch` bytes apart, in HBM (`memory` translates for `pe`) or in the TCM."""

    base: int
    pitch: int
    rows: int
    cols: int
    dtype: str
    memory: DeviceMemory | None = None
    tensor: TensorAllocation | None = None
    pe: int | None = None

    def virtual(self) -> tuple[Region, ...]:
        """Give the whole matrix as virtual regions."""
        width = self.cols * itemsize(self.dtype)
        return (Region(self.base, width, self.rows, self.pitch),)

    @property
    def space(self) -> str:
        """The space that holds it."""
        return "tcm" if self.memory is None else "hbm"

    def regions(
        self, row: int = 0, rows: int | None = None, col: int = 0, cols: int | None = None
    ) -> tuple[Region, ...]:
        """Give the physical regions of a tile, cut at the edges of the matrix."""
        rows = min(self.rows - row, self.rows if rows is None else rows)
        cols = min(self.cols - col, self.cols if cols is None else cols)
        item = itemsize(self.dtype)
        base = self.base + row * self.pitch + col * item
        contiguous = cols * item == self.pitch
        tile = Region(base, rows * cols * item) if contiguous else Region(base, cols * item, rows, self.pitch)
        return (tile,) if self.memory is None else self.memory.translate((tile,), self.pe)

    @classmethod
    def of_ref(cls, ref: Ref, memory: DeviceMemory, pe: int | None = None) -> MatrixLayout:
        """Give the layout of a tile of a tensor, as a PE sees it; its last dimension is contiguous."""
        rows, cols = ref.shape
        pitch = ref.strides[0] * itemsize(ref.dtype)
        return cls(ref.base, pitch, rows, cols, ref.dtype, memory, ref.pointer.tensor, pe)

    @classmethod
    def of_operand(cls, operand: Operand) -> MatrixLayout:
        """Give the layout of a tile in the scratchpad."""
        rows, cols = operand.value.shape
        return cls(operand.address, cols * itemsize(operand.value.dtype), rows, cols, operand.value.dtype)


@frozen(eq=False)
class EpilogueSpec:
    """One step of an epilogue: its kind (`bias`, `scale`, `relu`, any unary math op…), scope, and operands.

    With `per_tile` the operand's first dimension counts the k tiles, and each reads its own part. An operand that stays
    in HBM is the one of the command's layouts that `source` names; each tile reads its part of the matrix `layout`.
    """

    kind: str
    scope: Scope
    operands: tuple[Operand, ...] = ()
    per_tile: bool = False
    source: str = ""
    layout: MatrixLayout | None = None


@frozen(eq=False)
class CompositeWork:
    """What a composite computes: (m, k) x (k, n) with op "gemm", or with op "math" and k 0 a `math_op`, of (m, n)."""

    op: str
    m: int
    k: int
    n: int
    tile_m: int
    tile_k: int
    tile_n: int
    math_op: str = ""
    epilogue: tuple[EpilogueSpec, ...] = field(default=())


class CompositeCmd(KernelCommand):
    """Run a tiled pipeline: read tiles, compute, epilogue, write tiles. One executable record; its stages are timing.

    `op` is "gemm" (operands a, b, out) or "math" (a, perhaps b, out; `k` is 0). Operands in `pinned` are in the
    scratchpad already, their reads are skipped; the others stay in HBM, and so do `epilogue0`, … that epilogue steps
    name. Inputs are sampled, and the output is visible, at issue.
    """

    __slots__ = (
        "_inputs", "_translated", "epilogue", "k", "layouts", "m", "math_op", "n", "op", "out", "pinned",
        "tile_k", "tile_m", "tile_n", "tiles", "tiles_done",
    )  # fmt: skip

    serves: ClassVar[str] = "pe_scheduler"

    def __init__(
        self,
        op_id: tuple[int, int],
        site: CallSite,
        blocks: tuple[TcmBlock, ...],
        work: CompositeWork,
        layouts: dict[str, MatrixLayout],
        pinned: dict[str, Operand],
    ) -> None:
        super().__init__(op_id, "tl.composite", site, blocks, _COMMAND_BYTES)
        self.op, self.math_op, self.epilogue = work.op, work.math_op, work.epilogue
        self.m, self.k, self.n = work.m, work.k, work.n
        self.tile_m, self.tile_k, self.tile_n = work.tile_m, work.tile_k, work.tile_n
        self.layouts = layouts
        self.pinned = pinned
        out = layouts["out"]
        self.out: Value = ResultValue(op_id, (out.rows, out.cols), out.dtype)
        self._inputs: dict[str, Access] = {}
        self._translated: dict[str, tuple[Region, ...]] = {}
        self.memory_uses = tuple(self._uses())
        #: How many tiles it has, and how many of them are back; whoever serves it says so, or leaves both at 0.
        self.tiles = self.tiles_done = 0

    @property
    def a_pinned(self) -> bool:
        """Whether the first operand is in the scratchpad already."""
        return "a" in self.pinned

    @property
    def b_pinned(self) -> bool:
        """Whether the second operand is in the scratchpad already."""
        return "b" in self.pinned

    @property
    def dtype(self) -> str:
        """The dtype of the inputs."""
        return self.layouts["a"].dtype

    def tile_regions(self, operand: str, row: int, rows: int, col: int, cols: int) -> tuple[Region, ...]:
        """Give the physical regions of a tile of an operand ("a", "b", "out"…), cut at its edges. For the scheduler."""
        return self.layouts[operand].regions(row, rows, col, cols)

    def at_issue(self, state: PeState, now: float) -> None:
        """Fix the inputs as memory holds them now, and let the output hold the result from now on."""
        self._inputs = {name: self._input(name, state.store) for name in self.layouts if name != "out"}
        super().at_issue(state, now)
        state.store.write("hbm", self._whole("out"), self.out, writer=self.op_id)

    def _uses(self) -> Iterator[MemoryUse]:
        """Yield its operands in HBM, and its output, where they lie."""
        for name, layout in self.layouts.items():
            if layout.tensor is not None:
                yield layout.tensor, layout.virtual(), self._whole(name), name == "out"

    def _whole(self, name: str) -> tuple[Region, ...]:
        """Give the physical regions of a whole operand, translated once."""
        found = self._translated.get(name)
        if found is None:
            layout = self.layouts[name]
            try:
                found = self._translated[name] = layout.regions()
            except PageFaultError as error:
                assert layout.tensor is not None
                here = f"tl.composite at {describe_site(self.site)}"
                raise PageFaultError(unmapped_element(here, layout.tensor, layout.base, error)) from None
            if layout.tensor is not None and layout.dtype != layout.tensor.dtype:
                here = f"tl.composite at {describe_site(self.site)}"
                check_whole_elements(here, layout.tensor, found, layout.dtype)
        return found

    def _input(self, name: str, store: MemoryStore) -> Access:
        if name in self.pinned:
            return self.pinned[name].access
        layout = self.layouts[name]
        regions = self._whole(name)
        try:
            content, sources = store.sample("hbm", regions, (layout.rows, layout.cols), layout.dtype)
        except UninitializedReadError as error:
            assert layout.tensor is not None
            which = missing_element(layout.tensor, layout.virtual(), regions, error.missing)
            raise UninitializedReadError(
                f"tl.composite at {describe_site(self.site)} must read memory that was written, and {which} "
                f"(operand {name}) was not; store to it first, or make the tensor with rt.zeros."
            ) from None
        return Access("hbm", regions, LoadedValue(content.shape, content.dtype, content, self.op_id, sources))

    def describe(self) -> OpDescription:
        """Describe the whole computation for the op log."""
        regions = self._whole("out")
        reads = [access for name, access in self._inputs.items() if name in ("a", "b")]
        steps = []
        for spec in self.epilogue:
            own = [self._inputs[spec.source]] if spec.source else [operand.access for operand in spec.operands]
            numbers = tuple(range(len(reads), len(reads) + len(own)))
            steps.append((spec.kind, spec.scope.value, numbers, spec.per_tile))
            reads.extend(own)
        params: dict[str, object] = {
            "op": self.op,
            "out_addr": regions[0].base,
            "out_nbytes": self.out.nbytes,
            "dst_space": "hbm",
            "dst_addr": regions[0].base,
            "tile_m": self.tile_m,
            "tile_k": self.tile_k,
            "tile_n": self.tile_n,
            "epilogue": tuple(steps),
            **(self._gemm_params() if self.op == "gemm" else self._math_params(reads)),
        }
        kind = "gemm" if self.op == "gemm" else "math"
        writes = Access("hbm", regions, self.out)
        return OpDescription(kind, f"composite_{self.op}", params, tuple(reads), writes, op_id=self.op_id)

    def _gemm_params(self) -> dict[str, object]:
        a, b = self._inputs["a"], self._inputs["b"]
        assert a.value is not None
        assert b.value is not None
        return {
            **gemm_params(a.value, b.value, self.out),
            "src_a_addr": a.regions[0].base,
            "src_b_addr": b.regions[0].base,
            "src_a_space": a.space,
            "src_b_space": b.space,
            "a_pinned": self.a_pinned,
            "b_pinned": self.b_pinned,
        }

    def _math_params(self, reads: list[Access]) -> dict[str, object]:
        return {
            "math_op": self.math_op,
            **math_inputs(reads),
            "shape_out": self.out.shape,
            "dtype": self.out.dtype,
            "axis": None,
            "keepdims": False,
            "mask": False,
        }
