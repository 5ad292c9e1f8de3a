"""Numbers of a kernel stay typed: what a function of `tl` makes of scalars alone is a scalar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from kernbench_builtin.triton.scalars import TypedNumber, constant, scalar, typed
from kernbench_builtin.triton.storage import HostAddresses
from kernbench_builtin.triton.wrapping_index import WrappingIndex
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.promotion import meet
from kernbench_core.errors import KernelError, ShapeError
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pointers import Pointer, PointerType
from kernbench_core.kernel.tl.language import TLContext
from kernbench_core.kernel.tl.shapes import kind_of, met, type_of_result
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.params import did_you_mean
from kernbench_core.values.dtypes import dtype_of, is_float, numpy_dtype

if TYPE_CHECKING:
    from kernbench_core.compute.ops import MathOp

_LOOP_HINTS = (
    "num_stages", "loop_unroll_factor", "disallow_acc_multi_buffer", "flatten", "warp_specialize", "disable_licm",
)  # fmt: skip
"""What `tl.range` may be told of its loop."""
#: Ops in a row that make an address or a mask of positions: data that more than these led to is arithmetic of its own.
_FREE_WORK = 8


def is_number(thing: Any) -> bool:
    """Tell whether something is a number, typed or not."""
    return isinstance(thing, int | float | np.number | np.bool_)


def as_scalar(number: Any, dtype: str) -> Any:
    """Give a number as a scalar of `dtype`, or of int64 where int32 does not hold it."""
    if dtype == "int32" and not -(2**31) <= int(number) < 2**31:
        dtype = "int64"
    return scalar(number, dtype)


class NumberLanguage(TLContext):
    """Scalars, positions and loops."""

    def program_id(self, axis: int = 0) -> Any:
        """Give this program's position along `axis` of the grid, an int32 scalar."""
        return scalar(self._program[self._grid_axis(axis, "program_id")], "int32")

    def num_programs(self, axis: int = 0) -> Any:
        """Give the number of programs along `axis` of the grid, an int32 scalar."""
        return scalar(self._grid[self._grid_axis(axis, "num_programs")], "int32")

    @staticmethod
    def _grid_axis(axis: Any, name: str) -> int:
        if axis not in (0, 1, 2):
            here = f"tl.{name} at {describe_site(call_site())}"
            raise ShapeError(f"{here}: {name} axis must be 0, 1, or 2 but got {axis}; a grid has three.")
        return int(axis)

    def expand_dims(self, x: Any, axis: int | Sequence[int]) -> Any:
        """Insert dimensions of extent 1; of pointers, too, and of a number, which makes a block of it."""
        if not isinstance(x, Pointer) and not is_number(x):
            return super().expand_dims(x, axis)
        shape = x.shape if isinstance(x, Pointer) else ()
        inserted = self._inserted(axis, len(shape))
        return typed(x)[tuple(None if at in inserted else slice(None) for at in range(len(shape) + len(inserted)))]

    def arange(self, start: int, end: int) -> IndexTensor:
        """Give the int32 integers from `start` to `end`, `end` not included; free. ShapeError when there are none."""
        found = super().arange(start, end)
        return WrappingIndex(found.shape, int(start), (1,))

    def range(self, start: Any, end: Any = None, step: Any = 1, **hints: Any) -> Any:
        """Give int32 scalars, or int64 where a bound is; hints of pipelining change nothing. KernelError for others."""
        for name in hints:
            if name not in _LOOP_HINTS:
                here = f"tl.range at {describe_site(call_site())}"
                raise KernelError(
                    f"{here} must be given bounds, a step and hints of Triton's, not {name!r}; correct the name."
                    f"{did_you_mean(name, _LOOP_HINTS)}"
                )
        self.ignore(f"{name} of tl.range" for name in hints)
        bounds = (0, start, step) if end is None else (start, end, step)
        numbers = [index(each) for each in bounds]
        dtypes = [getattr(each, "dtype", None) or typed(n).dtype for each, n in zip(bounds, numbers, strict=True)]
        return _counted(range(*numbers), reduce(meet, dtypes, "int32"))

    @staticmethod
    def static_range(arg1: Any, arg2: Any = None, step: Any = 1) -> Any:
        """Give the numbers of a loop that is unrolled: constants."""
        first, end = (0, arg1) if arg2 is None else (arg1, arg2)
        return map(constant, range(index(first), index(end), index(step)))

    def ignore(self, hints: Iterable[str]) -> None:
        """Have the result tell of hints, each as `num_stages of tl.range`, that they change nothing."""
        for hint in hints:
            self._state.kernels.ignored[f"{hint} is a hint to Triton's compiler, and changes nothing."] += 1

    def math(self, op: str | MathOp, things: Sequence[Any], *rest: Any, **named: Any) -> Tensor:
        """Run one math command, as a store of positions is, too; of operands that free arithmetic made it tells."""
        for thing in things:
            if isinstance(thing, WrappingIndex) and thing.work > _FREE_WORK and thing.kind != "bool":
                self._tell_free_work(thing.work)
        return super().math(op, things, *rest, **named)

    def _tell_free_work(self, ops: int) -> None:
        """Have the result tell, once for each line, of data that index arithmetic made at no time."""
        told = self._state.kernels.notes
        head = f"what is stored or computed with at {describe_site(call_site())} comes from tl.arange "
        rest = (
            f"by {ops} integer ops in a row at least, which take no time, as index arithmetic; to time them, begin "
            "with a tile, as tl.arange(…) + tl.zeros(…, tl.int32)."
        )
        if not any(each.startswith(head) for each in told):
            told[head + rest] = None

    def unary(self, op: str, x: Any) -> Any:
        """Run an op of one operand; of a number it gives a scalar."""
        found = super().unary(op, x)
        return as_scalar(found, type_of_result(op, (kind_of(x),))) if is_number(found) else found

    def binary(self, op: str, left: Any, right: Any, **extra: object) -> Any:
        """Run an op of two operands; of numbers it gives a scalar."""
        found = super().binary(op, left, right, **extra)
        if not is_number(found):
            return found
        return as_scalar(found, type_of_result(op, (kind_of(left), kind_of(right))))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Choose `x` where `condition` holds, else `y`; one of two pointers by a single condition."""
        if isinstance(x, Pointer) and isinstance(y, Pointer):
            return x if bool(condition) else y
        found = super().where(condition, x, y)
        return as_scalar(found, met("where", (kind_of(x), kind_of(y)))) if is_number(found) else found

    def cdiv(self, x: Any, div: Any) -> Any:
        """Divide integers, rounding up: of numbers free, of tiles by timed commands."""
        if any(isinstance(each, Tensor | IndexTensor | TypedNumber) for each in (x, div)):
            return (x + (div - 1)) // div
        return as_scalar(-(-int(x) // int(div)), "int32")

    def cast(self, x: Any, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Any:
        """Convert to `dtype`, or keep the bits with `bitcast`; a number becomes a scalar."""
        if isinstance(x, Pointer):
            return x.to(dtype, bitcast)
        if isinstance(dtype, PointerType):
            return self.pointer_at(x, dtype)
        if not is_number(x):
            return super().cast(x, dtype, fp_downcast_rounding, bitcast)
        name = dtype_of(dtype)
        if not bitcast:
            return scalar(typed(x), name)
        own = numpy_dtype(_type_of(x))
        if own.itemsize != numpy_dtype(name).itemsize:
            here = f"tl.cast at {describe_site(call_site())}"
            given = f"go from {_type_of(x)} to {name}"
            raise ShapeError(f"{here} must keep the element size with bitcast=True, not {given}.")
        return scalar(np.asarray(x, own).view(numpy_dtype(name)).item(), name)

    def pointer_at(self, x: Any, dtype: PointerType) -> Pointer:
        """Give the pointer to what is at an address of the host; at several, those of a tile."""
        if is_float(kind_of(x)):
            raise ShapeError(
                f"a cast to pointers at {describe_site(call_site())} must be of integers, not {kind_of(x)}; cast first."
            )
        if isinstance(x, Tensor):
            numbers = x._read("an address")
        else:
            numbers = x.numpy() if isinstance(x, IndexTensor) else np.asarray(int(x), object)
        addresses = getattr(self._launch.kernel, "addresses", None) or HostAddresses()
        return addresses.pointer(numbers, dtype)

    def hypot(self, x: Any, y: Any) -> Any:
        """Give the length of the hypotenuse: products, a sum and a root, each a timed command."""
        return self.unary("sqrt", self.binary("add", self.binary("mul", x, x), self.binary("mul", y, y)))

    def to_tensor(self, x: Any) -> Any:
        """Give a number as a scalar with a dtype, a tensor as it is."""
        return as_scalar(x, _type_of(x)) if is_number(x) else x

    def zeros_like(self, input: Any) -> Any:
        """Make zeros of the shape and dtype of `input`; of a number a scalar."""
        return scalar(0, _type_of(input)) if is_number(input) else super().zeros_like(input)

    def swizzle2d(self, i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
        """Turn the indices of a row-major grid into those of one in which groups of `size_g` rows go by columns."""
        ij = i * size_j + j
        group = ij // (size_g * size_j)
        first = group * size_g
        rows = self.minimum(size_i - first, size_g)
        ij = ij % (size_g * size_j)
        return first + ij % rows, ij // rows


def _counted(numbers: range, dtype: str) -> Iterator[Any]:
    return (scalar(number, dtype) for number in numbers)


def _type_of(number: Any) -> str:
    """Give the dtype of a number by itself."""
    found = getattr(typed(number), "dtype", None)
    if isinstance(found, str):
        return found
    return "f32" if isinstance(number, float) else "int32"
