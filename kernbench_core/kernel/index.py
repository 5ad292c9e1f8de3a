"""Index tensors: what `arange`, `program_id` and Python numbers become. Eager, never in memory, and free.

Only blocks of floats take a command of a unit: they are known at once as well, and are no addresses.

The common ones are affine (`base + Σ index·stride`), and stay symbolic until somebody needs elements; all
others are numpy arrays. They meet other operands as loaded tensors do (`promotion`), but int32 is computed in 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.functions import evaluate
from kernbench_core.compute.ops import MathOp, Operands, op_of
from kernbench_core.compute.promotion import WeakType, meet_all
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.bridge import current_language
from kernbench_core.kernel.placeholders import describe_given
from kernbench_core.values.arrays import in_words
from kernbench_core.values.dtypes import cast, dtype_name, dtype_of, is_float, is_int, numpy_dtype
from kernbench_core.values.element_types import TYPES, ElementType

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


def inserts_only(parts: tuple[Any, ...]) -> bool:
    """Tell whether the parts of an index insert dimensions (None) and keep the others whole (`:`), no more."""
    return all(part is None or (isinstance(part, slice) and part == slice(None)) for part in parts)


def extents(shape: Sequence[Any]) -> tuple[int, ...]:
    """Read a shape, or an order of dimensions, given as one sequence or as several numbers."""
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], Iterable) else shape
    return tuple(int(extent) for extent in given)


def number_as(number: Any, dtype: str) -> NDArray[Any]:
    """Give a number as a 0-d array of a dtype; ShapeError with the kernel line for one that an integer lacks.

    A float is cut towards zero first; NaN and infinity are in no integer dtype. A typed scalar is converted.
    """
    if is_int(dtype) and dtype != "bool" and not isinstance(getattr(type(number), "dtype", None), str):
        limits = np.iinfo(numpy_dtype(dtype))
        if not limits.min <= (int(number) if math.isfinite(number) else math.inf) <= limits.max:
            raise ShapeError(
                f"a number at {describe_site(call_site())} must be one that {dtype} holds, from {limits.min} "
                f"to {limits.max}, and {number} is out of range; cast the tensor first."
            )
    return cast(np.asarray(number), dtype)


def _operator(op: str, swap: bool = False) -> Callable[[IndexTensor, Any], Any]:
    """Make a Python operator of an index tensor that has no affine form; with `swap` the tensor is on the right."""
    return lambda self, other: self._dense(op, other, swap)


class IndexTensor:
    """A tensor of numbers that the kernel computed itself; its elements may be read and branched on at any time.

    `kind` is its dtype as operands meet. Elements of kind int32 are held in 64 bits.
    """

    __slots__ = ("_array", "_base", "_strides", "kind", "shape")
    computed: ClassVar[str] = "int64"  # what int32 is computed in
    words: ClassVar[str] = "index arithmetic"
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(
        self,
        shape: tuple[int, ...],
        base: int = 0,
        strides: tuple[int, ...] | None = None,
        array: Any = None,
        kind: str = "int32",
    ) -> None:
        self.shape = shape
        self.kind = kind
        self._base = base
        self._strides = strides
        self._array: NDArray[Any] | None = array

    @classmethod
    def of(cls, array: Any, kind: str | None = None) -> IndexTensor:
        """Wrap a numpy array of one of kernbench's dtypes; integers of 32 and 64 bits are of kind int32 unless told."""
        found = np.asarray(array)
        own = kind or dtype_name(found.dtype)
        own = "int32" if kind is None and own == "int64" else own
        return cls(found.shape, array=found.astype(np.int64) if own == "int32" else found, kind=own)

    @classmethod
    def single(cls, element: NDArray[Any], dtype: str) -> Any:
        """Give what an op made of all elements: one, as a number."""
        return element.item()

    @property
    def affine(self) -> tuple[int, tuple[int, ...]] | None:
        """`(base, strides)` when element i is `base + Σ i·strides`, else None."""
        return None if self._strides is None else (self._base, self._strides)

    @property
    def dtype(self) -> ElementType:
        """The dtype of the elements as an operand of a unit: `kind`, but int64 where int32 does not hold them."""
        return TYPES["int64" if self.kind == "int32" and not self.bounds_fit("int32") else self.kind]

    @property
    def type(self) -> ElementType:
        """The dtype, as Triton's tensors call it too."""
        return self.dtype

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
        """Give the elements; those of kind int32 are int64."""
        if self._array is None:
            assert self._strides is not None
            total: Any = np.int64(self._base)
            for axis, (extent, stride) in enumerate(zip(self.shape, self._strides, strict=True)):
                line = np.arange(extent, dtype=np.int64) * stride
                total = total + line.reshape((extent,) + (1,) * (len(self.shape) - axis - 1))
            self._array = np.asarray(total)
        return self._array

    def offsets(self) -> IndexTensor:
        """The same elements as offsets of a pointer, which are of 64 bits."""
        if self._array is None or self._array.dtype == np.int64:
            return self
        return IndexTensor.of(self._array.astype(np.int64), "int64")

    # Shape ------------------------------------------------------------------------------------------

    def reshape(self, *shape: int | Sequence[int], can_reorder: bool = False) -> IndexTensor:
        """Give the same elements in row-major order under another shape."""
        return self.of(self.numpy().reshape(*shape), self.kind)

    def broadcast_to(self, *shape: int | Sequence[int]) -> IndexTensor:
        """Repeat along dimensions of extent 1, or new leading ones."""
        wanted = extents(shape)
        broadcast_shapes(self.shape, wanted, "broadcast_to")
        if self._strides is None:
            return self.of(np.broadcast_to(self.numpy(), wanted), self.kind)
        return type(self)(wanted, self._base, _spread(self.shape, self._strides, len(wanted)), kind=self.kind)

    def permute(self, *dims: int | Sequence[int]) -> IndexTensor:
        """Reorder the dimensions."""
        order = extents(dims)
        if self._strides is None:
            return self.of(self.numpy().transpose(order), self.kind)
        shape, strides = self.shape, self._strides
        turned = tuple(shape[i] for i in order), self._base, tuple(strides[i] for i in order)
        return type(self)(*turned, kind=self.kind)

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
        """Convert the elements, of or to floats by a command; what is in kind int32 and fits stays as it is."""
        name = dtype_of(dtype)
        if name == self.kind and (name != "int32" or self.bounds_fit(name)):
            return self
        if name == "int64" and self._strides is not None:
            return type(self)(self.shape, self._base, self._strides, kind=name)
        _take_time("cast", (self,), self.shape, name, name)
        return self.of(cast(self.numpy(), name), name)

    def cast(self, dtype: Any) -> Any:
        """As `to`: Triton's other name for it."""
        return self.to(dtype)

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
        if self._strides is None or not inserts_only(parts):
            found = self.numpy()[tuple(int(p) if isinstance(p, IndexTensor) else p for p in parts)]
            return found.item() if np.ndim(found) == 0 else self.of(found, self.kind)
        shape, strides = [], []
        old = iter(zip(self.shape, self._strides, strict=True))
        for part in parts:
            extent, stride = (1, 0) if part is None else next(old)
            shape.append(extent)
            strides.append(stride)
        for extent, stride in old:
            shape.append(extent)
            strides.append(stride)
        return type(self)(tuple(shape), self._base, tuple(strides), kind=self.kind)

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
        return f"IndexTensor({in_words(self.numpy(), 'IndexTensor(')}, {self.dtype}{list(self.shape)})"

    # Arithmetic -------------------------------------------------------------------------------------

    def _add(self, other: Any, sign: int) -> Any:
        if isinstance(other, int | np.integer) and self._strides is not None:
            return type(self)(self.shape, self._base + sign * int(other), self._strides, kind=self.kind)
        if isinstance(other, IndexTensor) and self._strides is not None and other._strides is not None:
            shape = broadcast_shapes(self.shape, other.shape, "index arithmetic")
            left = _spread(self.shape, self._strides, len(shape))
            right = _spread(other.shape, other._strides, len(shape))
            strides = tuple(a + sign * b for a, b in zip(left, right, strict=True))
            kind = self.kind if self.kind == other.kind else "int64"
            return type(self)(shape, self._base + sign * other._base, strides, kind=kind)
        return self._dense("add" if sign == 1 else "sub", other)

    def __add__(self, other: Any) -> Any:
        return self._add(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._add(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return self._dense("sub", other, True) if self._strides is None else (-self)._add(other, 1)

    def __neg__(self) -> Any:
        return compute_index("neg", (self,)) if self._strides is None else self.__mul__(-1)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int | np.integer) and self._strides is not None:
            factor = int(other)
            strides = tuple(factor * stride for stride in self._strides)
            return type(self)(self.shape, self._base * factor, strides, kind=self.kind)
        return self._dense("mul", other)

    __rmul__ = __mul__

    def _dense(self, op: str, other: Any, swap: bool = False) -> Any:
        if isinstance(other, IndexTensor):
            broadcast_shapes(self.shape, other.shape, "index arithmetic")
        elif not isinstance(other, int | float | np.number | np.bool_):
            return NotImplemented
        return compute_index(op, (other, self) if swap else (self, other))

    __floordiv__, __rfloordiv__ = _operator("floordiv"), _operator("floordiv", swap=True)
    __mod__, __rmod__ = _operator("mod"), _operator("mod", swap=True)
    __pow__, __rpow__ = _operator("pow"), _operator("pow", swap=True)
    __and__, __rand__ = _operator("and"), _operator("and", swap=True)
    __or__, __ror__ = _operator("or"), _operator("or", swap=True)
    __xor__, __rxor__ = _operator("xor"), _operator("xor", swap=True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", swap=True)
    __lshift__, __rlshift__ = _operator("shl"), _operator("shl", swap=True)
    __rshift__, __rrshift__ = _operator("shr"), _operator("shr", swap=True)
    __lt__, __le__ = _operator("lt"), _operator("le")
    __gt__, __ge__ = _operator("gt"), _operator("ge")

    def __eq__(self, other: Any) -> Any:
        return self._equality("eq", other)

    def __ne__(self, other: Any) -> Any:
        return self._equality("ne", other)

    def _equality(self, op: str, other: Any) -> Any:
        """Compare, or let the other side; where neither can, ShapeError: Python would answer by identity."""
        found = self._dense(op, other)
        if found is NotImplemented:
            found = getattr(type(other), f"__{op}__")(other, self)
        if found is NotImplemented:
            raise ShapeError(
                f"a comparison at {describe_site(call_site())} must be of tensors and numbers, not of an index tensor "
                f"and {describe_given(other)}; compare with an index tensor of tl.arange, or a number."
            )
        return found

    def __invert__(self) -> Any:
        return compute_index("invert", (self,))

    def __abs__(self) -> Any:
        return compute_index("abs", (self,))


def kind_of_number(number: Any) -> WeakType | str:
    """Give the Python type that stands for a number where operands meet, or the dtype of a typed scalar."""
    kind = type(number)
    if kind is int or kind is float or kind is bool:
        return kind
    if isinstance(typed := getattr(kind, "dtype", None), str):
        return typed
    return bool if isinstance(number, bool | np.bool_) else int if isinstance(number, int | np.integer) else float


def compute_index(op: str | MathOp, things: Sequence[Any], call: str = "index arithmetic", **params: object) -> Any:
    """Compute an op on index tensors and numbers at once, int32 in what the first of them is `computed` in.

    ShapeError that names `call` and the kernel line where the op does not exist for the operands.
    """
    kinds = [thing.kind if isinstance(thing, IndexTensor) else kind_of_number(thing) for thing in things]
    record = op_of(op)
    first = 1 if record.operands is Operands.CHOSEN else 0
    try:
        out = record.types(record, kinds, params)
        met = None if record.operands is Operands.GIVEN else record.meet(kinds[first:])
    except ShapeError as error:
        raise ShapeError(f"{call} at {describe_site(call_site())}: {error}") from None
    made = next((type(thing) for thing in things if isinstance(thing, IndexTensor)), IndexTensor)
    wide = made.computed
    arrays = [_array(thing, met if number >= first else None, wide) for number, thing in enumerate(things)]
    found = np.asarray(evaluate(record, {**params, "dtype": _held(out, wide)}, arrays))
    _take_time(op, things, found.shape, out, met or out, **params)
    return made.of(found, out) if found.ndim else made.single(found, out)


def _take_time(
    op: str | MathOp, things: Sequence[Any], shape: tuple[int, ...], dtype: str, numbers: str, **params: object
) -> None:
    """Have a unit take its time over an op that uses or makes a block of floats: those are no addresses.

    What it comes to is known already; so a command computes it once more, and nobody reads that. Its numbers are of the
    dtype `numbers`.
    """
    tensors = [thing for thing in things if isinstance(thing, IndexTensor)]
    if not (is_float(dtype) or any(is_float(tensor.kind) for tensor in tensors)):
        return
    largest, language = max(tensors, key=lambda tensor: math.prod(tensor.shape), default=None), current_language()
    if largest is None or math.prod(largest.shape) < 2 or language is None:
        return
    if params or math.prod(shape) < math.prod(largest.shape):  # a reduction or a scan: it goes through all of it
        language.math("copy", (largest,), largest.shape, largest.dtype)
    else:
        language.math(op, things, shape, dtype, operand_dtype=numbers)


def _array(thing: Any, met: str | None, wide: str) -> NDArray[Any]:
    """Give an index tensor or number as an array that meets others in the dtype `met`, with int32 held in `wide`."""
    if not isinstance(thing, IndexTensor):
        return number_as(thing, _held(met or meet_all((kind_of_number(thing),)), wide))
    if thing.kind != "int32":
        return thing.numpy()
    return cast(thing.numpy(), _held(met if met is not None and is_int(met) else "int32", wide))


def _held(dtype: str, wide: str) -> str:
    return wide if dtype == "int32" else dtype


def _spread(shape: tuple[int, ...], strides: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Give strides for a broadcast: 0 where the extent is 1, and for new leading dimensions."""
    kept = tuple(0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True))
    return (0,) * (rank - len(kept)) + kept
