"""`triton.language` of the reference interpreter, and a launcher: what differs from `tl` of kernbench's own kernels.

Positions are int32 scalars, everything computed may be read, and kernels find `tl` as a global name.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from tests.reference import numerics as num
from tests.reference.interpreter import Tl
from tests.reference.numerics import BOOL, F32, F64, I32, I64, U32, U64, Array
from tests.reference.posts import Post, Runtime
from tests.reference.tiles import Buffer, Pointer, Tile


@dataclass(frozen=True)
class BlockPointer:
    """A block of a tensor by the tensor's shape and strides."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    block: tuple[int, ...]

    def elements(self, checked: Sequence[int]) -> tuple[Pointer, Tile]:
        """Give the place of each element, and whether it is inside along the checked dimensions."""
        grid = np.indices(self.block)
        at = [index + first for index, first in zip(grid, self.offsets, strict=True)]
        inside = [(at[axis] >= 0) & (at[axis] < self.shape[axis]) for axis in checked]
        places = functools.reduce(operator.add, (i * step for i, step in zip(at, self.strides, strict=True)))
        return self.base + places, Tile(functools.reduce(operator.and_, inside, np.ones(self.block, bool)))


class TritonTl(Tl):
    """`tl` of one program of a kernel in Triton."""

    def program_id(self, axis: int) -> Any:
        return Tile(np.asarray(self._program[axis], I32))

    def num_programs(self, axis: int) -> Any:
        return Tile(np.asarray(self._grid[axis], I32))

    constexpr = "constexpr"

    @staticmethod
    def range(*bounds: Any, **hints: Any) -> Iterator[Tile]:  # type: ignore[override]
        kind = functools.reduce(num.meet, (named(bound).data.dtype for bound in bounds))
        return (Tile(np.asarray(i, kind)) for i in range(*(int(bound) for bound in bounds)))

    @staticmethod
    def cdiv(a: Any, b: Any) -> Any:
        return (a + (b - 1)) // b

    def make_block_ptr(self, base: Pointer, *sizes: Any) -> BlockPointer:
        return BlockPointer(base, *(tuple(int(n) for n in each) for each in sizes[:4]))

    def advance(self, pointer: BlockPointer, steps: Sequence[Any]) -> BlockPointer:
        return replace(pointer, offsets=tuple(at + int(by) for at, by in zip(pointer.offsets, steps, strict=True)))

    def load(  # type: ignore[override]
        self, pointer: Any, mask: Any = None, other: Any = None, boundary_check: Sequence[int] = (),
        padding_option: str = "zero", **hints: Any,
    ) -> Tile:  # fmt: skip
        if isinstance(pointer, BlockPointer):
            places, inside = pointer.elements(boundary_check)
            return super().load(places, inside, float("nan") if padding_option == "nan" else 0)
        return super().load(pointer, mask, other)

    def store(self, pointer: Any, value: Any, mask: Any = None, boundary_check: Sequence[int] = ()) -> None:  # type: ignore[override]
        if isinstance(pointer, BlockPointer):
            pointer, mask = pointer.elements(boundary_check)
        super().store(pointer, value, mask)

    def max(self, x: Tile, axis: int | None = None, return_indices: bool = False, keep_dims: bool = False) -> Any:  # type: ignore[override]
        """Give f32 or int32 of less than 32 bits; beside places of bf16 only."""
        found = super().max(x, axis, keep_dims)
        return self._beside(found, self.argmax(x, axis, keep_dims)) if return_indices else self._of_32_bits(found)

    def min(self, x: Tile, axis: int | None = None, return_indices: bool = False, keep_dims: bool = False) -> Any:  # type: ignore[override]
        """Give what `max` gives, of the least."""
        found = super().min(x, axis, keep_dims)
        return self._beside(found, self.argmin(x, axis, keep_dims)) if return_indices else self._of_32_bits(found)

    def maximum(self, x: Any, y: Any) -> Tile:
        """Make a number a scalar first, which bf16 is not left in."""
        return super().maximum(_operand(x), _operand(y))

    def minimum(self, x: Any, y: Any) -> Tile:
        return super().minimum(_operand(x), _operand(y))

    @staticmethod
    def _beside(found: Tile, places: Tile) -> tuple[Tile, Tile]:
        return (found.to(F32) if found.dtype == num.BF16 else found), places

    @staticmethod
    def _of_32_bits(x: Tile) -> Tile:
        return x if x.dtype.itemsize >= 4 else x.to(F32 if num.is_float(x.dtype) else I32)

    def cumsum(self, x: Tile, axis: int = 0, reverse: bool = False) -> Tile:
        return super().cumsum(x.to(F32) if x.dtype == num.BF16 else x, axis, reverse)

    def cumprod(self, x: Tile, axis: int = 0, reverse: bool = False) -> Tile:
        return super().cumprod(x.to(F32) if x.dtype == num.BF16 else x, axis, reverse)

    def reduce(self, given: Any, axis: int, combine: Callable[..., Any]) -> Any:
        """Combine one after the other."""
        found = self._steps(given, axis, combine)[-1]
        return found if isinstance(given, tuple) else found[0]

    def associative_scan(self, given: Any, axis: int, combine: Callable[..., Any], reverse: bool = False) -> Any:
        """Combine one after the other, and keep each."""
        steps = self._steps(given, axis, combine, reverse)
        steps = steps[::-1] if reverse else steps
        found = tuple(Tile(np.stack([step[i].data for step in steps], axis)) for i in range(len(steps[0])))
        return found if isinstance(given, tuple) else found[0]

    @staticmethod
    def _steps(given: Any, axis: int, combine: Callable[..., Any], reverse: bool = False) -> list[tuple[Tile, ...]]:
        tiles = given if isinstance(given, tuple) else (given,)
        lines = [np.moveaxis(tile.exact(), axis, 0) for tile in tiles]
        lines = [line[::-1] for line in lines] if reverse else lines
        found = [tuple(Tile(np.asarray(line[0])) for line in lines)]
        for at in range(1, len(lines[0])):
            made = combine(*found[-1], *(Tile(np.asarray(line[at])) for line in lines))
            made = made if isinstance(made, tuple) else (made,)
            found.append(tuple(each.to(tile.dtype) for each, tile in zip(made, tiles, strict=True)))
        return found

    def sort(self, x: Tile, descending: bool = False) -> Tile:
        found = np.sort(x.exact(), -1)
        return Tile(np.flip(found, -1) if descending else found)


def named(value: Any) -> Any:
    """Give what an assignment makes of a number, or of each in a tuple: a scalar."""
    if isinstance(value, tuple):
        return _each(named, value)
    if isinstance(value, float):
        return Tile(np.asarray(value, F32 if num.is_normal(value) else F64))
    return _whole(value, (I32, U32, I64, U64)) if isinstance(value, int) else value


def typed(value: Any, annotation: Any = "") -> Any:
    """Give what a kernel is given for a number, or each in a tuple, by what the parameter says or by the number."""
    if isinstance(value, tuple):
        return _each(typed, value)
    if not isinstance(value, int | float) or annotation == "constexpr":
        return value
    if annotation:
        kind = SHORT.get(annotation, annotation) if isinstance(annotation, str) else annotation
        return Tile(num.cast(np.asarray(value), num.dtype_of(kind)))
    return Tile(np.asarray(value, F32)) if isinstance(value, float) else _whole(value, (I32, I64, U64))


def _operand(value: Any) -> Any:
    """Give what `maximum`, `minimum` and `clamp` make of an operand."""
    tile = named(value)
    return tile.to(F32) if tile.dtype == num.BF16 else tile


def _whole(number: int, kinds: Sequence[np.dtype[Any]]) -> Tile:
    """Give an integer as the first dtype that holds it; a bool is of one bit."""
    if isinstance(number, bool):
        return Tile(np.asarray(number, BOOL))
    fitting = [kind for kind in kinds if np.iinfo(kind).min <= number <= np.iinfo(kind).max]
    return Tile(np.asarray(number, fitting[0]))


def _each(change: Callable[[Any], Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    made = map(change, values)
    return type(values)(*made) if hasattr(values, "_fields") else tuple(made)


#: Texts that annotations have for dtypes, where others do not.
SHORT = {"u1": "bool", "bf16": "bf16", "fp16": "f16", "fp32": "f32", "fp64": "f64"}


def typing_names(source: str, file: str = "<made up>", whole: bool = False) -> Any:
    """Compile statements in which each assigned name becomes what `named` makes of it: of jit functions, or of all."""
    tree = ast.parse(source)
    for block in [tree] if whole else [each for each in tree.body if isinstance(each, ast.FunctionDef)]:
        if whole or block.decorator_list:  # type: ignore[union-attr]
            block.body = list(_typing(block.body))
    return compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)


def _typing(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and behind each assignment one more for each of its names."""
    for each in body:
        for field in ("body", "orelse"):
            if hasattr(each, field):
                setattr(each, field, list(_typing(getattr(each, field))))
        yield each
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        for target in targets if isinstance(each, ast.Assign | ast.AugAssign) else ():
            for name in (node.id for node in ast.walk(target) if isinstance(node, ast.Name)):  # type: ignore[arg-type]
                yield ast.copy_location(ast.parse(f"{name} = NAMED({name})").body[0], each)


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Have programs read what ops have made."""
    with mock.patch.object(Tile, "known", lambda tile: tile):
        yield


class TritonRuntime(Runtime):
    """Launches of kernels in Triton, whose arguments are numpy's arrays."""

    language = TritonTl

    def __init__(self, n_pes: int) -> None:
        super().__init__(n_pes)
        self._held: dict[int, Buffer] = {}
        self._running = threading.local()

    def buffer(self, array: Array) -> Buffer:
        """Give the tensor that an array is, always the same."""
        if id(array) not in self._held:
            made = Buffer(array.shape, array.dtype, np.zeros(array.size))
            made.data = array.reshape(-1)
            self._held[id(array)] = made
        return self._held[id(array)]

    def run_file(self, source: str, file: str) -> dict[str, Any]:
        """Run a file that imports `triton`; give its names."""
        triton, language = ModuleType("triton"), ModuleType("triton.language")
        language.__getattr__ = lambda name: getattr(getattr(self._running, "tl", OUTSIDE), name)  # type: ignore[method-assign]
        triton.jit, triton.language = functools.partial(_Jit, self), language  # type: ignore[attr-defined]
        names: dict[str, Any] = {"__name__": "made_up", "__file__": file, **BUILTINS}
        with readable(), mock.patch.dict(sys.modules, {"triton": triton, "triton.language": language}):
            exec(typing_names(source, file), names)
        return names

    def within(self, tl: Any, kernel: Callable[..., None], args: Sequence[Any]) -> None:
        """Run one program, in a thread of its own."""
        self._running.tl = tl
        kernel(*args)


class _Jit:
    def __init__(self, runtime: TritonRuntime, fn: Callable[..., Any]) -> None:
        self.runtime, self.fn = runtime, fn

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*given: Any) -> None:
            said = [self.fn.__annotations__.get(name, "") for name in inspect.signature(self.fn).parameters]
            args = [self._argument(*each) for each in zip(given, said, strict=True)]
            self.runtime.launch(lambda *args, tl: self.runtime.within(tl, self.fn, args), *args, grid=grid)

        return launch

    def _argument(self, value: Any, said: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self.runtime.buffer(value)
        return typed(self._inside(value), said)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return _each(self._inside, value)
        return Pointer(self.runtime.buffer(value), np.asarray(0)) if isinstance(value, np.ndarray) else value

    def __call__(self, *args: Any) -> Any:
        return self.fn(*args)


#: `tl` where no program runs, which has the dtypes of annotations.
OUTSIDE = TritonTl((0, 0, 0), (1, 1, 1), Post())
#: What Triton makes of names that Python has, and what statements behind assignments call.
BUILTINS: dict[str, Any] = {"range": TritonTl.range, "NAMED": named}
