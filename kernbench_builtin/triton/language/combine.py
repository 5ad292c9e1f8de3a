"""Reductions and scans by a function of the kernel's author.

A function that is one op of two operands is the reduction or scan of that op. Any other is computed as a tree (of a
scan: up and down again), each step of which is a few timed commands on half of what the step before had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kernbench_builtin.triton.language.numbers import NumberLanguage
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.ops import OPS
from kernbench_core.errors import KernbenchError, ShapeError
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.tl.shapes import shape_of
from kernbench_core.kernel.tl.tensor import Tensor

Combine = Callable[..., Any]

_REDUCTIONS: Mapping[str, str] = MappingProxyType(
    {"add": "sum", "mul": "prod", "maximum": "max", "minimum": "min", "xor": "xor_sum", "or": "reduce_or"}
)
_SCANS: Mapping[str, str] = MappingProxyType({"add": "cumsum", "mul": "cumprod"})


class _Traced:
    """What stands for an operand while it is found out which op a function is: an op, of which operands."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, op: str, *operands: Any) -> None:
        self.op = op
        self.operands = operands

    def __getattr__(self, name: str) -> Any:
        raise _NoOp


class _NoOp(Exception):
    """A function does more than one op."""


def _traces(op: str) -> Any:
    return lambda self, other: _Traced(op, self, other)


for _name, _op in {"add": "add", "mul": "mul", "xor": "xor", "or": "or"}.items():
    setattr(_Traced, f"__{_name}__", _traces(_op))


def _refuses(self: Any, *_: Any) -> Any:
    raise _NoOp


for _name in ("sub", "truediv", "floordiv", "mod", "and", "lshift", "rshift", "pow", "matmul"):
    setattr(_Traced, f"__{_name}__", _refuses)
    setattr(_Traced, f"__r{_name}__", _refuses)
for _name in ("radd", "rmul", "rxor", "ror", "neg", "invert", "abs", "lt", "le", "gt", "ge", "eq", "ne", "bool", "len"):
    setattr(_Traced, f"__{_name}__", _refuses)


class CombineLanguage(NumberLanguage):
    """`reduce` and `associative_scan`."""

    def check_operand(self, thing: Any, op: Any) -> None:
        """Raise a sentence when `thing` cannot be an operand of `op`."""
        if isinstance(thing, _Traced):
            raise _NoOp
        super().check_operand(thing, op)

    def binary(self, op: str, left: Any, right: Any, **extra: object) -> Any:
        """Run an op of two operands, or note it while a function is found out."""
        if isinstance(left, _Traced) and isinstance(right, _Traced) and not extra:
            return _Traced(op, left, right)
        return super().binary(op, left, right, **extra)

    def reduce(self, input: Any, axis: int | None, combine_fn: Combine, keep_dims: bool = False) -> Any:
        """Combine all along `axis`, or everything, in the order of the elements; of a tuple, several tensors at once.
        """
        given = input if isinstance(input, tuple | list) else (input,)
        op = _REDUCTIONS.get(self._op_of(combine_fn) or "") if len(given) == 1 else None
        if op is not None:
            found = self._alike(self.reduction(op, given[0], axis, keep_dims), given[0])
            return found if given[0] is input else (found,)
        shapes = {shape_of(each) for each in given}
        shape = self._one_shape(shapes, "tl.reduce")
        lines = [self._lines(each, axis, "reduce") for each in given]
        while lines[0].shape[-1] > 1:
            left, right = self._halves(lines)
            lines = self._combined(combine_fn, left, right)
        place = None if axis is None else axis % len(shape)
        kept = tuple(1 if place in (None, at) else extent for at, extent in enumerate(shape))
        out = kept if keep_dims else tuple(extent for at, extent in enumerate(shape) if place not in (None, at))
        results = tuple(self.reshape(each, out) for each in lines)
        return results if isinstance(input, tuple | list) else results[0]

    def associative_scan(self, input: Any, axis: int, combine_fn: Combine, reverse: bool = False) -> Any:
        """Combine each element along `axis` with all before it, or behind it with `reverse`."""
        given = input if isinstance(input, tuple | list) else (input,)
        op = _SCANS.get(self._op_of(combine_fn) or "") if len(given) == 1 else None
        if op is not None:
            found = self._alike(self.scan(op, given[0], axis, reverse), given[0])
            return found if given[0] is input else (found,)
        shape = self._one_shape({shape_of(each) for each in given}, "tl.associative_scan")
        lines = [self._lines(each, axis, "associative_scan") for each in given]
        turned = [self.flip(each) for each in lines] if reverse else lines
        lines = self._scanned(combine_fn, turned)
        lines = [self.flip(each) for each in lines] if reverse else lines
        results = tuple(self._back(each, axis, shape) for each in lines)
        return results if isinstance(input, tuple | list) else results[0]

    def _op_of(self, combine: Combine) -> str | None:
        """Name the op that a function is; None for one that does more."""
        a, b = _Traced("a"), _Traced("b")
        try:
            found = combine(a, b)
        except (_NoOp, KernbenchError, TypeError):
            return None
        if isinstance(found, _Traced) and {id(each) for each in found.operands} == {id(a), id(b)}:
            return found.op
        return None

    def _alike(self, found: Any, given: Any) -> Any:
        """Give what a reduction gave in the dtype of its operand, as a function of two of these would."""
        return found if found.dtype == given.dtype else self.cast(found, given.dtype)

    def _one_shape(self, shapes: set[tuple[int, ...]], call: str) -> tuple[int, ...]:
        if len(shapes) != 1:
            raise ShapeError(
                f"{call} at {describe_site(call_site())} must be given tensors of one shape, not "
                f"{sorted(shapes)}; broadcast them."
            )
        return next(iter(shapes))

    def _lines(self, x: Any, axis: int | None, op: str) -> Any:
        """Give a tile with the axis last; ShapeError where its extent is no power of two."""
        self._tensor(x, op)
        if isinstance(x, IndexTensor):
            x = self._as_tensor(x, x.dtype)
        place = 0 if axis is None else self._axis(axis, x.shape, op)
        x = self.ravel(x) if axis is None else x
        if x.shape[place] & (x.shape[place] - 1):
            raise ShapeError(
                f"tl.{op} at {describe_site(call_site())} must be given a power of two as the extent of its axis, not "
                f"{x.shape[place]}, to combine by a function of two; pad the tile."
            )
        if place == len(x.shape) - 1:
            return x
        return self.trans(x, *(at for at in range(len(x.shape)) if at != place), place)

    def _back(self, x: Any, axis: int, shape: Sequence[int]) -> Any:
        rank = len(shape)
        place = axis % rank
        if place == rank - 1:
            return x
        order = list(range(rank - 1))
        order.insert(place, rank - 1)
        return self.trans(x, *order)

    def _halves(self, lines: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Give elements of even and of odd places along the last axis."""
        pairs = [self.split(self.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))) for x in lines]
        return [left for left, _ in pairs], [right for _, right in pairs]

    def _combined(self, combine: Combine, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        found = combine(*left, *right)
        results = list(found) if isinstance(found, tuple | list) else [found]
        if len(results) != len(left):
            raise ShapeError(
                f"a combine function at {describe_site(call_site())} must return as many results as it combines, "
                f"{len(left)}, not {len(results)}; correct it."
            )
        return [
            self._as_tensor(one, like.dtype, like.shape) if not isinstance(one, Tensor) else self._alike(one, like)
            for one, like in zip(results, left, strict=True)
        ]

    def _scanned(self, combine: Combine, lines: list[Any]) -> list[Any]:
        """Scan along the last axis: pairs first, and from their scan the elements of even places."""
        extent = lines[0].shape[-1]
        if extent == 1:
            return lines
        even, odd = self._halves(lines)
        pairs = self._scanned(combine, self._combined(combine, even, odd))
        if extent == 2:
            evens = even
        else:
            shape = (*pairs[0].shape[:-1], extent // 2)
            at = self.arange(0, extent // 2)
            before = self.maximum(at - 1, 0).broadcast_to(shape)
            shifted = [self.gather(x, before, -1) for x in pairs]
            first = (at == 0).broadcast_to(shape)
            evens = [
                self.where(first, own, more)
                for own, more in zip(even, self._combined(combine, shifted, even), strict=True)
            ]
        return [self.interleave(a, b) for a, b in zip(evens, pairs, strict=True)]


assert set(_REDUCTIONS.values()) | set(_SCANS.values()) <= set(OPS)
