"""`dot` of index arithmetic and of stacks of matrices, which are multiplied one after the other."""

from __future__ import annotations

from typing import Any

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.frontend.language.numbers import NumberLanguage
from kernbench_core.kernel.compute_commands import GemmCmd, Operand
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.values.dtypes import dtype_of, is_float
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, Part, ResultValue, Value, sub_parts


def _matrix(operand: Operand, number: int) -> Operand:
    """Give one matrix of a stack, where it lies in the stack's space."""
    value, region = operand.value, operand.region
    count = value.nbytes // value.shape[0]
    parts = sub_parts(value, Region(number * count, count), Region(0, count))
    part = AssemblyValue(value.shape[1:], value.dtype, tuple(parts), makers=value.makers())
    return Operand(part, None if region is None else Region(region.base + number * count, count))


class ProductLanguage(NumberLanguage):
    """`dot`."""

    def dot(
        self, input: Any, other: Any, acc: Any = None, input_precision: str | None = None,
        allow_tf32: bool | None = None, max_num_imprecise_acc: int | None = None, out_dtype: Any = "f32", *,
        wait: bool = True,
    ) -> Tensor:  # fmt: skip
        """Multiply two matrices, or two stacks of as many; what `arange` led to becomes a tile first."""
        a, b, c = (self._as_tensor(x, x.dtype) if isinstance(x, IndexTensor) else x for x in (input, other, acc))
        if len(getattr(a, "shape", ())) != 3 and len(getattr(b, "shape", ())) != 3:
            return super().dot(a, b, c, out_dtype=out_dtype, wait=wait)
        x, y = a.shape, b.shape
        fits = len(x) == len(y) == 3 and x[0] == y[0] and x[2] == y[1] and a.dtype == b.dtype
        if not fits or (c is not None and c.shape != (*x[:2], y[2])):
            given = f"{a.dtype} of shape {x} and {b.dtype} of shape {y}"
            sums = "" if c is None else f", added to shape {c.shape}"
            raise ShapeError(
                f"tl.dot at {describe_site(call_site())} must be given stacks (b, m, k) and (b, k, n) of one dtype, "
                f"not {given}{sums}; reshape or cast them."
            )
        dtype = c.dtype if c is not None else dtype_of(out_dtype) if is_float(a.dtype) else "int32"
        return self._stacked((a, b) if c is None else (a, b, c), (*x[:2], y[2]), str(dtype))

    def _stacked(self, things: tuple[Tensor, ...], shape: tuple[int, ...], dtype: str) -> Tensor:
        """Multiply matrix by matrix, each into its place of one block."""
        whole = [self.operand(thing, dtype, "dot") for thing in things]
        site = call_site()
        block = self._allocate("dot", shape, dtype, site)
        commands, parts = [], []
        for number in range(shape[0]):
            reads = tuple(_matrix(each, number) for each in whole)
            command, part = self._product(reads, shape[1:], dtype, (*[thing.block for thing in things], block), number)
            commands.append(command)
            parts.append(part)
        self.wait_for(commands)
        made = AssemblyValue(shape, dtype, tuple(parts))
        return Tensor(self, made, block, "tl.dot", site)

    def _product(
        self, reads: tuple[Operand, ...], shape: tuple[int, ...], dtype: str, blocks: tuple[TcmBlock, ...], number: int
    ) -> tuple[GemmCmd, Part]:
        op_id = self.op_id()
        value: Value = ResultValue(op_id, shape, dtype)
        command = GemmCmd(op_id, call_site(), blocks, reads, value)
        command.out = Region(blocks[-1].region.base + number * value.nbytes, value.nbytes)
        self.issue(command, False)
        place = Region(number * value.nbytes, value.nbytes)
        return command, Part(place, value, Region(0, value.nbytes))
