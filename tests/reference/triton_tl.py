"""`triton.language` of the reference interpreter, and a launcher: what differs from `tl` of kernbench's own kernels.

Positions are int32 scalars, everything computed may be read, and kernels find `tl` as a global name.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from tests.reference.interpreter import Tl
from tests.reference.numerics import F32, I32, I64, Array
from tests.reference.posts import Runtime
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

    @staticmethod
    def range(*bounds: Any, **hints: Any) -> Iterator[Tile]:  # type: ignore[override]
        return (Tile(np.asarray(i, I32)) for i in range(*(int(bound) for bound in bounds)))

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


def typed(number: float) -> Tile:
    """Give a number as a kernel is given it: of int32, or of int64 where that does not hold it, or f32."""
    if isinstance(number, float):
        return Tile(np.asarray(number, F32))
    kinds = [kind for kind in (I32, I64) if np.iinfo(kind).min <= number <= np.iinfo(kind).max]
    return Tile(np.asarray(number, kinds[0]))


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
        language.__getattr__ = lambda name: getattr(self._running.tl, name)  # type: ignore[method-assign]
        triton.jit, triton.language = functools.partial(_Jit, self), language  # type: ignore[attr-defined]
        names: dict[str, Any] = {"__name__": "made_up", "__file__": file}
        with readable(), mock.patch.dict(sys.modules, {"triton": triton, "triton.language": language}):
            exec(compile(source, file, "exec"), names)
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
            args = [self.runtime.buffer(each) if isinstance(each, np.ndarray) else typed(each) for each in given]
            self.runtime.launch(lambda *args, tl: self.runtime.within(tl, self.fn, args), *args, grid=grid)

        return launch

    def __call__(self, *args: Any) -> Any:
        return self.fn(*args)


