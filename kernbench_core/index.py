"""Index tensors: what `arange`, `program_id` and Python numbers become. Eager, free, never in memory.

The common ones are affine (`base + Σ index·stride`), and stay symbolic until somebody needs elements; all
others are numpy arrays. Integers are computed in 64 bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute_math import FUNCTIONS
from kernbench_core.dtypes import cast
from kernbench_core.errors import ShapeError
from kernbench_core.typenames import dtype_of

Number: TypeAlias = int | float | bool


def broadcast_shapes(left: tuple[int, ...], right: tuple[int, ...], op: str) -> tuple[int, ...]:
    """Give the numpy broadcast of two shapes; ShapeError naming `op` and the kernel line."""
    if left == right or not right:
        return left
    rank = max(len(left), len(right))
    wide_left, wide_right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    found = []
    for a, b in zip(wide_left, wide_right, strict=True):
        if a != b and a != 1 and b != 1:
            raise ShapeError(
                f"{op} at {describe_site(call_site())} must have operands that broadcast, not {left} and {right}; "
                "reshape one of them."
            )
        found.append(b if a == 1 else a)
    return tuple(found)


class IndexTensor:
    """A tensor of numbers that the kernel computed itself; its elements may be read and branched on at any time."""

    __slots__ = ("_array", "_base", "_strides", "shape")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(
        self, shape: tuple[int, ...], base: int = 0, strides: tuple[int, ...] | None = None, array: Any = None
    ) -> None:
        self.shape = shape
        self._base = base
        self._strides = strides
        self._array: NDArray[Any] | None = array

    @classmethod
    def of(cls, array: Any) -> IndexTensor:
        """Wrap a numpy array."""
        found = np.asarray(array)
        return cls(found.shape, array=found)

    @property
    def affine(self) -> tuple[int, tuple[int, ...]] | None:
        """`(base, strides)` when element i is `base + Σ i·strides`, else None."""
        return None if self._strides is None else (self._base, self._strides)

    @property
    def dtype(self) -> str:
        """The dtype that the elements have as an operand of a unit: int32 where they fit, else int64; f32; bool."""
        if self._strides is None and self.numpy().dtype.kind not in "iu":
            return "bool" if self.numpy().dtype.kind == "b" else "f32"
        return "int32" if self.bounds_fit("int32") else "int64"

    def bounds(self) -> tuple[int, int]:
        """Give the least and the greatest element of an integer tensor; (0, -1) when it is empty."""
        if 0 in self.shape:
            return 0, -1
        if self._strides is None:
            array = self.numpy()
            return int(array.min()), int(array.max())
        low = high = self._base
        for extent, stride in zip(self.shape, self._strides, strict=True):
            reach = (extent - 1) * stride
            low, high = (low + reach, high) if reach < 0 else (low, high + reach)
        return low, high

    def numpy(self) -> NDArray[Any]:
        """Give the elements; integers are int64."""
        if self._array is None:
            assert self._strides is not None
            total: Any = np.int64(self._base)
            for axis, (extent, stride) in enumerate(zip(self.shape, self._strides, strict=True)):
                line = np.arange(extent, dtype=np.int64) * stride
                total = total + line.reshape((extent,) + (1,) * (len(self.shape) - axis - 1))
            self._array = np.asarray(total)
        return self._array

    # Shape ------------------------------------------------------------------------------------------

    def reshape(self, *shape: int | Sequence[int]) -> IndexTensor:
        """Give the same elements in row-major order under another shape."""
        return IndexTensor.of(self.numpy().reshape(*shape))

    def broadcast_to(self, shape: Sequence[int]) -> IndexTensor:
        """Repeat along dimensions of extent 1, or new leading ones."""
        wanted = tuple(shape)
        broadcast_shapes(self.shape, wanted, "broadcast_to")
        if self._strides is None:
            return IndexTensor.of(np.broadcast_to(self.numpy(), wanted))
        return IndexTensor(wanted, self._base, _spread(self.shape, self._strides, len(wanted)))

    def permute(self, order: Sequence[int]) -> IndexTensor:
        """Reorder the dimensions."""
        if self._strides is None:
            return IndexTensor.of(self.numpy().transpose(order))
        shape, strides = self.shape, self._strides
        return IndexTensor(tuple(shape[i] for i in order), self._base, tuple(strides[i] for i in order))

    def expand_dims(self, axis: int) -> IndexTensor:
        """Insert a dimension of extent 1."""
        at = axis if axis >= 0 else axis + len(self.shape) + 1
        found: IndexTensor = self[(*[slice(None)] * at, None)]
        return found

    @property
    def T(self) -> IndexTensor:  # noqa: N802 - Triton's spelling
        """The same elements, dimensions reversed."""
        return self.permute(tuple(reversed(range(len(self.shape)))))

    def to(self, dtype: Any) -> Any:
        """Convert the elements; integers stay as they are in int32 and int64, whose arithmetic is in 64 bits anyway."""
        name = dtype_of(dtype)
        if name in ("int32", "int64") and self.bounds_fit(name):
            return self
        return IndexTensor.of(cast(self.numpy(), name))

    def bounds_fit(self, dtype: str) -> bool:
        """Tell whether every element is an integer that `dtype` holds."""
        if self._strides is None and self.numpy().dtype.kind not in "iu":
            return False
        low, high = self.bounds()
        limit = 2**31 if dtype == "int32" else 2**63
        return -limit <= low and high < limit

    def __getitem__(self, key: Any) -> Any:
        """`[:, None]` inserts dimensions; integers and slices select, down to a Python number."""
        parts = key if isinstance(key, tuple) else (key,)
        if self._strides is None or any(part is not None and part != slice(None) for part in parts):
            found = self.numpy()[tuple(int(p) if isinstance(p, IndexTensor) else p for p in parts)]
            return found.item() if np.ndim(found) == 0 else IndexTensor.of(found)
        shape, strides = [], []
        old = iter(zip(self.shape, self._strides, strict=True))
        for part in parts:
            extent, stride = (1, 0) if part is None else next(old)
            shape.append(extent)
            strides.append(stride)
        for extent, stride in old:
            shape.append(extent)
            strides.append(stride)
        return IndexTensor(tuple(shape), self._base, tuple(strides))

    # Reading ----------------------------------------------------------------------------------------

    def item(self) -> Any:
        """Give the one element as a Python number; ShapeError when there are more."""
        array = self.numpy()
        if array.size != 1:
            raise ShapeError(f"a tensor of shape {self.shape} must have one element to be read as a scalar; index it.")
        return array.item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    __index__ = __int__

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"IndexTensor(shape={self.shape}, {self.numpy()!r})"

    # Arithmetic -------------------------------------------------------------------------------------

    def _add(self, other: Any, sign: int) -> Any:
        if isinstance(other, int | np.integer) and self._strides is not None:
            return IndexTensor(self.shape, self._base + sign * int(other), self._strides)
        if isinstance(other, IndexTensor) and self._strides is not None and other._strides is not None:
            shape = broadcast_shapes(self.shape, other.shape, "index arithmetic")
            left = _spread(self.shape, self._strides, len(shape))
            right = _spread(other.shape, other._strides, len(shape))
            strides = tuple(a + sign * b for a, b in zip(left, right, strict=True))
            return IndexTensor(shape, self._base + sign * other._base, strides)
        return self._dense(other, operator.add if sign == 1 else operator.sub)

    def __add__(self, other: Any) -> Any:
        return self._add(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._add(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._add(other, 1)

    def __neg__(self) -> Any:
        return self.__mul__(-1)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int | np.integer) and self._strides is not None:
            factor = int(other)
            return IndexTensor(self.shape, self._base * factor, tuple(factor * stride for stride in self._strides))
        return self._dense(other, operator.mul)

    __rmul__ = __mul__

    def _dense(self, other: Any, op: Callable[[Any, Any], Any], swap: bool = False) -> Any:
        if isinstance(other, IndexTensor):
            broadcast_shapes(self.shape, other.shape, "index arithmetic")
            right: Any = other.numpy()
        elif isinstance(other, int | float | np.number | np.bool_):
            right = other
        else:
            return NotImplemented
        return IndexTensor.of(op(right, self.numpy()) if swap else op(self.numpy(), right))

    def __invert__(self) -> IndexTensor:
        return IndexTensor.of(~self.numpy())

    def __abs__(self) -> IndexTensor:
        return IndexTensor.of(abs(self.numpy()))


def _spread(shape: tuple[int, ...], strides: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Give strides for a broadcast: 0 where the extent is 1, and for new leading dimensions."""
    kept = tuple(0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True))
    return (0,) * (rank - len(kept)) + kept



def _install() -> None:
    """Give IndexTensor the operators that have no affine form."""
    def plain(op: Callable[[Any, Any], Any], swap: bool) -> Callable[[IndexTensor, Any], Any]:
        return lambda self, other: self._dense(other, op, swap)

    def cut(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        return lambda a, b: function({}, np.asarray(a), np.asarray(b))

    for name in ("floordiv", "mod"):  # integers as in C and Triton: towards zero
        op = cut(FUNCTIONS[name])
        setattr(IndexTensor, f"__{name}__", plain(op, False))
        setattr(IndexTensor, f"__r{name}__", plain(op, True))
    for name in ("truediv", "pow", "and", "or", "xor", "lshift", "rshift"):
        op = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(IndexTensor, f"__{name}__", plain(op, False))
        setattr(IndexTensor, f"__r{name}__", plain(op, True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(IndexTensor, f"__{name}__", plain(getattr(operator, name), False))


_install()
