"""What a kernel asks the units of its PE to compute: products, and elementwise, reducing and moving ops."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, ClassVar, Final

from kernbench_core.callsite import CallSite
from kernbench_core.kernel.commands import COMMAND_BYTES, KernelCommand
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.oplog.description import Access, OpDescription, OpPattern, Patterns
from kernbench_core.oplog.parameters import OF_READS, OfReads
from kernbench_core.values.dtypes import is_float
from kernbench_core.values.region import Region
from kernbench_core.values.value import OpId, Value

if TYPE_CHECKING:
    from kernbench_core.compute.ops import MathOp

IMMEDIATE = "immediate"
"""The space of operands that come with the command: Python numbers, and index tensors."""

NO_ADDRESS = -1
"""What a record's address fields hold for an immediate operand."""

_PLAIN: Final = frozenset((int, str, bool, type(None), OfReads))
_OPEN: Final = frozenset(("dst_addr", "input_addrs", "handle_id"))

_GEMMS, _MATHS = Patterns(), Patterns()


def called(op: str | MathOp) -> str:
    """Return the call of the language that a math op is made by, the same text each time."""
    return _call_of(op) if type(op) is str else f"tl.{op}"


@cache
def _call_of(op: str) -> str:
    return f"tl.{op}"


class Operand:
    """A value as a unit reads it: from `region` of the scratchpad, or (None) with the command itself."""

    __slots__ = ("region", "value")

    def __init__(self, value: Value, region: Region | None) -> None:
        self.value = value
        self.region = region

    @property
    def access(self) -> Access:
        """Where it is read, and what."""
        if self.region is None:
            return Access(IMMEDIATE, (), self.value)
        return Access("tcm", (self.region,), self.value)

    @property
    def look(self) -> tuple[str, tuple[int, ...], str]:
        """What it is beside its address: the space that holds it, shape and dtype."""
        value = self.value
        return IMMEDIATE if self.region is None else "tcm", value.shape, value.dtype

    @property
    def address(self) -> int:
        """Physical address of its first byte, or `NO_ADDRESS`."""
        return NO_ADDRESS if self.region is None else self.region.base

    @property
    def space(self) -> str:
        """The space that holds it."""
        return IMMEDIATE if self.region is None else "tcm"


class ComputeCommand(KernelCommand):
    """Compute one tensor of the scratchpad from others. `out` is where it goes: the last of `blocks`."""

    __slots__ = ("out", "reads", "value")

    def _compute(
        self,
        op_id: OpId,
        call: str,
        site: CallSite,
        blocks: tuple[TcmBlock, ...],
        reads: tuple[Operand, ...],
        value: Value,
    ) -> None:
        """Be a command that is not issued yet, of `reads`, whose result is `value`."""
        self._begin(op_id, call, site, blocks, COMMAND_BYTES)
        self.reads = reads
        self.out = blocks[-1].region
        self.value = value
        self.scratch_uses = (*[read.region for read in reads if read.region is not None], self.out)

    @property
    def _writes(self) -> Access:
        return Access("tcm", (self.out,), self.value)


class GemmCmd(ComputeCommand):
    """Multiply two tiles: (m, k) by (k, n), with an optional third operand that the product is added to.

    Floats are accumulated in f32, integers in int32, and rounded once to the output's dtype.
    """

    __slots__ = ("dtype_in", "k", "m", "n")

    serves: ClassVar[str] = "pe_gemm"

    def __init__(
        self, op_id: OpId, site: CallSite, blocks: tuple[TcmBlock, ...], reads: tuple[Operand, ...], value: Value
    ) -> None:
        self._compute(op_id, "tl.dot", site, blocks, reads, value)
        a, b = reads[0].value, reads[1].value
        self.m, self.k = a.shape
        self.n = b.shape[1]
        self.dtype_in = a.dtype

    @property
    def sum_before(self) -> OpId | None:
        """The op whose result the product is added to; None without a third operand, and for one that is no result."""
        return self.reads[2].value.writer if len(self.reads) > 2 else None

    @property
    def sum_after(self) -> OpId:
        """The op that makes the sum."""
        return self.op_id

    def operand_key(self, operand: str) -> Hashable:
        """Return what tells an operand, "a" or "b", from others."""
        return self.reads["ab".index(operand)].value

    def describe(self) -> OpDescription:
        """Describe the product for the op log."""
        a, b = self.reads[0], self.reads[1]
        reads = tuple([read.access for read in self.reads])
        looks = a.look, b.look, self.value.shape, self.value.dtype, len(reads)
        pattern = _GEMMS.find(looks)
        if pattern is None:
            open_ = "src_a_addr", "src_b_addr", "dst_addr"
            pattern = _GEMMS.add(looks, OpPattern("gemm", f"gemm_{self.dtype_in}", self._params(), open_))
        return pattern.described((a.address, b.address, self.out.base), reads, self._writes, self.op_id)

    def _params(self) -> dict[str, object]:
        a, b = self.reads[0], self.reads[1]
        return {
            **gemm_params(a.value, b.value, self.value),
            "src_a_addr": a.address,
            "src_b_addr": b.address,
            "src_a_space": a.space,
            "src_b_space": b.space,
            "dst_addr": self.out.base,
            "dst_space": "tcm",
            "addr_space": "tcm",
            "accumulate": len(self.reads) > 2,
        }


class MathCmd(ComputeCommand):
    """Compute one elementwise, reducing or moving op. `elements` is the work: outputs, or inputs of a reduction."""

    __slots__ = ("_pattern", "extra", "op", "reduce")

    serves: ClassVar[str] = "pe_math"

    def __init__(
        self,
        op_id: OpId,
        op: str,
        site: CallSite,
        blocks: tuple[TcmBlock, ...],
        reads: tuple[Operand, ...],
        value: Value,
        extra: Mapping[str, object],
        reduce: bool,
    ) -> None:
        self._compute(op_id, called(op), site, blocks, reads, value)
        self.op = op
        self.extra = extra
        self.reduce = reduce
        self._pattern: OpPattern | None = None

    @property
    def elements(self) -> int:
        """Work items: elements of the input of a reduction, of the output otherwise."""
        return prod(self.reads[0].value.shape) if self.reduce else prod(self.value.shape)

    @property
    def alike(self) -> OpPattern | None:
        """What all commands share that differ in nothing but addresses and numbers; None where that is not known.

        They are of one class, op, parameters, and shapes and dtypes of operands and result.
        """
        if self._pattern is None:
            self._pattern = self._found_pattern()
        return self._pattern

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return self.value.dtype

    def describe(self) -> OpDescription:
        """Describe the op for the op log."""
        reads = tuple([read.access for read in self.reads])
        pattern = self.alike
        if pattern is None:
            return OpDescription("math", self.op, self._params(reads), reads, self._writes, op_id=self.op_id)
        numbers = (self.out.base, *[read.address for read in self.reads])
        return pattern.described(numbers, reads, self._writes, self.op_id)

    def _found_pattern(self) -> OpPattern | None:
        more = frozen(self.extra) if self.extra else ()
        if more is None:
            return None
        looks = type(self), self.op, self.value.shape, self.value.dtype, tuple([read.look for read in self.reads]), more
        pattern = _MATHS.find(looks)
        if pattern is None:
            params = self._params([read.access for read in self.reads])
            pattern = _MATHS.add(looks, OpPattern("math", self.op, params, ("dst_addr", "input_addrs")))
        return pattern

    def _params(self, reads: Sequence[Access]) -> dict[str, object]:
        return {
            "op": self.op,
            **math_inputs(reads),
            "dst_addr": self.out.base,
            "dst_space": "tcm",
            "shape_out": self.value.shape,
            "dtype": self.value.dtype,
            "axis": None,
            "keepdims": False,
            "addr_space": "tcm",
            "mask": False,
            **self.extra,
        }


class PluginMathCmd(MathCmd):
    """Compute a plug-in's math op; a model finds in `math_op` what it does not know of the name."""

    __slots__ = ("math_op",)

    def __init__(
        self,
        op_id: OpId,
        op: MathOp,
        site: CallSite,
        blocks: tuple[TcmBlock, ...],
        reads: tuple[Operand, ...],
        value: Value,
        extra: Mapping[str, object],
        reduce: bool,
    ) -> None:
        super().__init__(op_id, op.name, site, blocks, reads, value, extra, reduce)
        self.math_op = op


def address_of(access: Access) -> int:
    """Give the physical address of the first byte that is read or written, or `NO_ADDRESS`."""
    return access.regions[0].base if access.regions else NO_ADDRESS


def gemm_params(a: Value, b: Value, out: Value) -> dict[str, object]:
    """Give the shape, dtype and layout fields that every GEMM record has."""
    return {
        "shape_a": a.shape,
        "shape_b": b.shape,
        "shape_out": out.shape,
        "dtype_in": a.dtype,
        "dtype_acc": "f32" if is_float(a.dtype) else "int32",
        "dtype_out": out.dtype,
        "transpose_a": False,
        "transpose_b": False,
        "layout_a": "row_major",
        "layout_b": "row_major",
        "layout_out": "row_major",
        "m": a.shape[0],
        "k": a.shape[1],
        "n": b.shape[1],
    }


def math_inputs(reads: Sequence[Access]) -> dict[str, object]:
    """Give the operand fields that every math record has: one item for each of its reads, which must have values."""
    values = [read.value for read in reads if read.value is not None]
    dtypes = [value.dtype for value in values]
    return {
        "input_addrs": [address_of(read) for read in reads],
        "input_shapes": [value.shape for value in values],
        "input_spaces": [read.space for read in reads],
        "input_dtypes": dtypes,
        "in_dtypes": dtypes,
        "input_snapshots": OF_READS,
    }


def frozen(extra: Mapping[str, object]) -> tuple[object, ...] | None:
    """Return what tells parameters from others, with their types.

    None where something else would be equal to one of them, or where they are of what differs in every record.
    """
    found = []
    for name, value in extra.items():
        kind = type(value)
        if kind not in _PLAIN or name in _OPEN:
            return None
        found.append((name, kind, value))
    return tuple(found)
