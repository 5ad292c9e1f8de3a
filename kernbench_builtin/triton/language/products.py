"""`dot` of index arithmetic, of stacks of matrices, which are multiplied one after the other, and of f64.

Matrix units have no f64: the vector unit multiplies that, and adds the products of one k after those of the other.
"""

from __future__ import annotations

from typing import Any

from kernbench_builtin.triton.language.numbers import NumberLanguage
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.compute_commands import ComputeCommand, GemmCmd, MathCmd, Operand
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.tl.shapes import kind_of, shape_of
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.values.dtypes import dtype_of, info, is_float
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, Part, ResultValue, Value, sub_parts


def _matrix(operand: Operand, number: int, shape: tuple[int, ...] | None = None) -> Operand:
    """Give one matrix of a stack, or row of a matrix, where it lies in that space; under another shape if asked."""
    value, region = operand.value, operand.region
    count = value.nbytes // value.shape[0]
    parts = sub_parts(value, Region(number * count, count), Region(0, count))
    part = AssemblyValue(shape or value.shape[1:], value.dtype, tuple(parts), makers=value.makers())
    return Operand(part, None if region is None else Region(region.base + number * count, count))


def _result_type(operands: str, out_dtype: Any) -> str:
    """Give the dtype of a product: f16, or another that is asked for, is that of narrow floats alone."""
    if not is_float(operands):
        return "int32"
    if operands in ("f64", "f32", "bf16"):
        return "f64" if operands == "f64" else "f32"
    return str(dtype_of("f32" if out_dtype is None else out_dtype))


def _multiply(a: str, b: str) -> bool:
    """Tell whether two dtypes are multiplied: one dtype, or two 8-bit floats."""
    return a == b or all(is_float(each) and info(each).itemsize == 1 for each in (a, b))


def _adds(a: str, c: str) -> bool:
    """Tell whether products of `a` may be added to `c`: integers to int32, f64 to itself, other floats to floats."""
    return is_float(c) and (a == "f64") == (c == "f64") if is_float(a) else c == "int32"


class ProductLanguage(NumberLanguage):
    """`dot`."""

    def dot(
        self, input: Any, other: Any, acc: Any = None, input_precision: str | None = None,
        allow_tf32: bool | None = None, max_num_imprecise_acc: int | None = None, out_dtype: Any = "f32", *,
        wait: bool = True,
    ) -> Tensor:  # fmt: skip
        """Multiply two matrices, or two stacks of as many; what `arange` led to becomes a tile first."""
        a, b, c = (self._as_tensor(x, x.dtype) if isinstance(x, IndexTensor) else x for x in (input, other, acc))
        if isinstance(a, Tensor):
            out_dtype = _result_type(a.dtype, out_dtype)
        return self._multiplied(a, b, c, out_dtype, wait)

    def _multiplied(self, a: Any, b: Any, c: Any, out_dtype: Any, wait: bool = True) -> Tensor:
        """Multiply matrices or stacks of them; of floats `out_dtype`, or the dtype of the sum `c`, comes out."""
        x, y = (tuple(getattr(each, "shape", ())) for each in (a, b))
        of_f64 = any(getattr(each, "dtype", None) == "f64" for each in (a, b))
        matrices = of_f64 and len(x) == len(y) == 2
        if not matrices and len(x) != 3 and len(y) != 3:
            return super().dot(a, b, c, out_dtype=out_dtype, wait=wait)
        self._check_stacks(a, b, c, of_f64)
        dtype = c.dtype if c is not None else dtype_of(out_dtype) if is_float(a.dtype) else "int32"
        things = [each for each in (a, b, c) if each is not None]
        if matrices:
            things = [each.view((1, *each.shape)) for each in things]
        found = self._stacked(tuple(things), (*things[0].shape[:2], y[-1]), str(dtype))
        return found.view(found.shape[1:]) if matrices else found

    def _check_stacks(self, a: Any, b: Any, c: Any, of_f64: bool) -> None:
        x, y = a.shape, b.shape
        fits = len(x) == len(y) and x[:-2] == y[:-2] and x[-1] == y[-2] and _multiply(a.dtype, b.dtype)
        fits = fits and all(isinstance(each, Tensor) for each in (a, b))
        wanted = (*x[:-1], y[-1])
        if fits and (c is None or (isinstance(c, Tensor) and c.shape == wanted and _adds(a.dtype, c.dtype))):
            return
        given = f"{a.dtype} of shape {x} and {b.dtype} of shape {y}"
        sums = "" if c is None else f", added to {kind_of(c)} of shape {shape_of(c)}"
        what = "matrices (m, k) and (k, n)" if len(x) == len(y) == 2 else "stacks (b, m, k) and (b, k, n)"
        of_c = ", and a sum of f64 with f64" if c is not None and of_f64 else ""
        raise ShapeError(
            f"tl.dot at {describe_site(call_site())} must be given {what} of one dtype{of_c}, not {given}{sums}; "
            "reshape or cast them."
        )

    def _stacked(self, things: tuple[Tensor, ...], shape: tuple[int, ...], dtype: str) -> Tensor:
        """Multiply matrix by matrix, each into its place of one block."""
        of_f64 = things[0].dtype == "f64"
        if of_f64:
            things = (self.trans(things[0]), *things[1:])  # the elements of one k lie side by side
        whole = [self.operand(thing, dtype, "dot") for thing in things]
        site = call_site()
        block = self._allocate("dot", shape, dtype, site)
        commands: list[GemmCmd] = []
        parts: list[Part] = []
        for number in range(shape[0]):
            reads = tuple(_matrix(each, number) for each in whole)
            blocks = (*[thing.block for thing in things], block)
            if of_f64:
                parts.append(self._multiply_adds(reads, shape[1:], blocks, number))
            else:
                command, part = self._product(reads, shape[1:], dtype, blocks, number)
                commands.append(command)
                parts.append(part)
        if commands:
            self.wait_for(commands)
        made = AssemblyValue(shape, dtype, tuple(parts))
        return Tensor(self, made, block, "tl.dot", site)

    def _product(
        self, reads: tuple[Operand, ...], shape: tuple[int, ...], dtype: str, blocks: tuple[TcmBlock, ...], number: int
    ) -> tuple[GemmCmd, Part]:
        op_id = self.op_id()
        value: Value = ResultValue(op_id, shape, dtype)
        command = GemmCmd(op_id, call_site(), blocks, reads, value)
        part = self._placed(command, blocks, number)
        self.issue(command, False)
        return command, part

    def _multiply_adds(
        self, reads: tuple[Operand, ...], shape: tuple[int, ...], blocks: tuple[TcmBlock, ...], number: int
    ) -> Part:
        """Multiply f64: column by row, m * n multiply-adds each, which the vector unit adds to the sum so far."""
        columns, rows, sums = reads[0], reads[1], reads[2:]
        for k in range(rows.value.shape[0]):
            op_id = self.op_id()
            value: Value = ResultValue(op_id, shape, "f64")
            pair = _matrix(columns, k, (shape[0], 1)), _matrix(rows, k)
            op = "fma" if sums else "mul"
            command = MathCmd(op_id, op, call_site(), blocks, (*pair, *sums), value, {}, False)
            part = self._placed(command, blocks, number)
            self.issue(command, True)
            sums = (Operand(value, command.out),)
        return part

    @staticmethod
    def _placed(command: ComputeCommand, blocks: tuple[TcmBlock, ...], number: int) -> Part:
        """Have a command write matrix `number` of the block that it makes."""
        value = command.value
        place = Region(number * value.nbytes, value.nbytes)
        command.out = Region(blocks[-1].region.base + place.base, value.nbytes)
        return Part(place, value, Region(0, value.nbytes))
