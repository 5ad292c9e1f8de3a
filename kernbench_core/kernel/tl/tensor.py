"""The tensor handle of a kernel: a value in the PE's scratchpad, ready or pending."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from kernbench_core.callsite import CallSite, call_site, describe_site
from kernbench_core.compute.ops import OPS, Form
from kernbench_core.errors import KernelError, NoDataError, PendingDataError, ShapeError, UnsupportedError
from kernbench_core.kernel.index import IndexTensor, extents, inserts_only
from kernbench_core.values.arrays import in_words
from kernbench_core.values.dtypes import is_float
from kernbench_core.values.element_types import TYPES, ElementType
from kernbench_core.values.value import Value

if TYPE_CHECKING:
    from kernbench_core.kernel.commands import KernelCommand
    from kernbench_core.memory.scratchpad import TcmBlock


class Handle:
    """Something that a command of the kernel makes; `command` is in flight until it is waited on, then None."""

    __slots__ = ("_tl", "command", "op", "site", "value")

    def __init__(self, tl: Any, value: Value, op: str, site: CallSite, command: KernelCommand | None = None) -> None:
        self._tl = tl  # the language, which makes these
        self.value = value
        self.op = op
        self.site = site
        self.command = command

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each dimension."""
        return self.value.shape

    @property
    def dtype(self) -> str:
        """Name of the element type, such as "f16"."""
        return self.value.dtype

    def settle(self) -> None:
        """Wait, in simulated time, until the command that makes this is complete."""
        command = self.command
        if command is not None:
            self._tl.wait_for((command,))
            self.command = None

    def check_own(self, tl: object, use: str) -> None:
        """Raise KernelError unless the program of `tl` made this; `use` names the call that needs it.

        A variable of the file, or a list that a kernel closes over, hands Python objects from PE to PE; the machine
        does not.
        """
        if self._tl is not tl:
            raise KernelError(
                f"{use} at {describe_site(call_site())} must be given a result of its own program, not the result of "
                f"{self.op} made at {describe_site(self.site)} by another one; send it with tl.send, or store and load "
                "it."
            )

    def __repr__(self) -> str:
        name, made = type(self).__name__, f"of {self.op} at {describe_site(self.site)}"
        found = self._tl.shown(self.value)
        if not isinstance(found, str):
            return f"{name}({in_words(found, f'{name}(')}, {self.dtype}{list(self.shape)}, {made})"
        state = "in flight, " if self.command is not None else ""
        return f"{name}({self.dtype}{list(self.shape)}, {state}{found}, {made})"

    def _refuse_data(self, why: str) -> NoReturn:
        if self._tl.made_before(self.value):
            raise PendingDataError(
                f"{why} at {describe_site(call_site())} must have data that is known while the kernel runs, but the "
                f"host submitted this launch without waiting for the one that made the result of {self.op} at "
                f"{describe_site(self.site)}; wait for that one first."
            )
        raise PendingDataError(
            f"{why} at {describe_site(call_site())} must have data that is known while the kernel runs, and the result "
            f"of {self.op} made at {describe_site(self.site)} exists only after it; branch on loaded data or on "
            "integers computed from it, or store the result and read it in the next launch."
        )


class CopiedHandle(Handle):
    """A handle of what a plug-in's command left in HBM: `tl.store` has it copied."""

    __slots__ = ()

    def copy_to(self, pointer: Any, mask: Any, shape: Sequence[int] | None, strides: Any) -> None:
        """Copy it to where `pointer` says, once it is complete; the arguments are those of `tl.store`."""
        raise NotImplementedError


def _operator(op: str, swap: bool = False) -> Callable[[Tensor, Any], Any]:
    """Make a Python operator of a tensor: one timed math command. With `swap` the tensor is on the right."""
    if swap:
        return lambda self, other: self._tl.operator(op, other, self)
    return lambda self, other: self._tl.operator(op, self, other)


class Tile(Handle):
    """A handle of what is in the PE's scratchpad, in `block`."""

    __slots__ = ("block",)

    def __init__(
        self,
        tl: Any,
        value: Value,
        block: TcmBlock,
        op: str,
        site: CallSite,
        command: KernelCommand | None = None,
    ) -> None:
        self._tl = tl  # inlined from Handle: each command makes one
        self.value = value
        self.op = op
        self.site = site
        self.command = command
        self.block = block

    @property
    def known(self) -> bool:
        """Whether its data may be read, once its command is complete."""
        return bool(self._tl.known(self.value))

    def check_live(self, use: str) -> None:
        """Raise KernelError when the tensor was freed; `use` names the call that needs it.

        A slot of a queue that was given back is a hazard instead.
        """
        if self.block.freed_at is not None:
            self.block.refuse(use, call_site())

    def check_use(self, tl: object, op: object) -> None:
        """Raise KernelError where a program may not use it, as `check_own` and `check_live` say, for `tl.{op}`."""
        if self._tl is not tl:
            self.check_own(tl, f"tl.{op}")
        if self.block.freed_at is not None:
            self.check_live(f"tl.{op}")


class Tensor(Tile):
    """A tile in the PE's scratchpad.

    Loaded data, and integers computed from it, are *ready*: elements (`x[i, j]`), `float()`, `int()`, `bool()`,
    `item()` and `numpy()` give them, so a kernel may branch on them; what they give is counted, and takes time of the
    PE's CPU. Every other result is *pending*: reading it is a PendingDataError. The space is given back when the last
    handle is gone and the last reader is complete.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    @property
    def dtype(self) -> ElementType:
        """The element type: a text such as "f16", with Triton's questions."""
        return TYPES[self.value.dtype]

    @property
    def type(self) -> ElementType:
        """The element type, as Triton's tensors call it too."""
        return TYPES[self.value.dtype]

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    # Reading ----------------------------------------------------------------------------------------

    def numpy(self) -> NDArray[Any]:
        """Give the data as a read-only array; PendingDataError when it is known only after phase 2."""
        return self._counted("numpy()")

    def _counted(self, why: str) -> NDArray[Any]:
        found = self._read(why)
        self._tl.note_read(found.size)
        return found

    def _read(self, why: str) -> NDArray[Any]:
        """Give the data to what is not the kernel's Python, at no time: an address, a mask, a print, `why`."""
        self.check_live(why)
        self.settle()
        if not self.known:
            self._refuse_data(why)
        try:
            found: NDArray[Any] = self._tl.data_of(self.value, why)
        except NoDataError:
            raise NoDataError(
                f"{why} at {describe_site(call_site())} must have data, and this run keeps shapes only; leave out "
                "--no-data to run kernels that read or branch on data."
            ) from None
        return found

    @property
    def data(self) -> NDArray[Any]:
        """The data, as `numpy()` gives it."""
        return self._counted("data")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._counted("an array"), dtype, copy=copy)

    def __array_function__(self, function: Any, types: object, args: Any, named: Any) -> Any:
        """Let numpy tell the shape, and read data that is known; refuse what `tl` has, which takes time."""
        name = function.__name__
        if not hasattr(type(self._tl), name):
            return function._implementation(*args, **named)
        here = f"numpy.{name} at {describe_site(call_site())}"
        raise UnsupportedError(f"{here} does not compute tensors of a kernel; write tl.{name}.")

    def item(self, why: str = "item()") -> Any:
        """Give the one element as a Python number; ShapeError when there are more."""
        if self.value.shape and any(extent != 1 for extent in self.value.shape):
            raise ShapeError(
                f"{why} at {describe_site(call_site())} must have a tensor of one element, not of shape {self.shape}; "
                "index the element."
            )
        return self._counted(why).item()

    def __float__(self) -> float:
        return float(self.item("float()"))

    def __int__(self) -> int:
        return int(self.item("int()"))

    def __index__(self) -> int:
        if is_float(self.dtype):
            raise TypeError(f"an index must be an integer, not a {self.dtype} tensor; use int().")
        return int(self.item("an index"))

    def __bool__(self) -> bool:
        return bool(self.item("a condition"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() needs a tensor of at least one dimension, not a scalar.")
        return self.shape[0]

    def as_offsets(self) -> int | IndexTensor:
        """Give loaded integers as pointer offsets, free; PendingDataError when they are pending."""
        if is_float(self.dtype):
            raise ShapeError(
                f"pointer arithmetic at {describe_site(call_site())} must use integers, not {self.dtype}; cast first."
            )
        found = self._read("an address").astype(np.int64)
        return int(found) if not found.ndim else IndexTensor.of(found)

    # Shape ------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """`x[i, j]` gives an element as a Python number; `x[:, None]` inserts dimensions, free."""
        parts = key if isinstance(key, tuple) else (key,)
        if inserts_only(parts) and sum(part is not None for part in parts) <= len(self.shape):
            extents = iter(self.shape)
            shape = [1 if part is None else next(extents) for part in parts]
            return self.view((*shape, *extents))
        if len(parts) != len(self.shape) or any(part is None or isinstance(part, slice) for part in parts):
            raise UnsupportedError(
                f"an index at {describe_site(call_site())} must name one element of shape {self.shape} or insert "
                "dimensions with None, not cut a tile; load the part that you need."
            )
        found = self._read("an element")[tuple(int(part) for part in parts)].item()
        self._tl.note_read(1)
        return found

    def view(self, *shape: int | Sequence[int]) -> Tensor:
        """Give the same bytes under another shape of the same size: free, sharing the space."""
        self.check_live("a view")
        return Tensor(self._tl, self.value.reshape(extents(shape)), self.block, self.op, self.site, self.command)

    def reshape(self, *shape: int | Sequence[int], can_reorder: bool = False) -> Any:
        """Give the elements in row-major order under another shape; free. ShapeError when sizes differ."""
        return self._tl.reshape(self, *shape)

    def expand_dims(self, axis: int) -> Any:
        """Insert a dimension of extent 1; free."""
        return self._tl.expand_dims(self, axis)

    def broadcast_to(self, *shape: int | Sequence[int]) -> Any:
        """Repeat along dimensions of extent 1; a timed math command."""
        return self._tl.broadcast_to(self, *shape)

    def trans(self, *order: int) -> Any:
        """Reorder dimensions (the last two swap by default); a timed math command."""
        return self._tl.trans(self, *order)

    @property
    def T(self) -> Any:  # noqa: N802 - Triton's spelling
        """The transpose; a timed math command."""
        return self._tl.trans(self)

    def to(self, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Any:
        """Cast, rounding once; a timed math command unless the dtype is the same."""
        return self._tl.cast(self, dtype, fp_downcast_rounding, bitcast)

    __add__, __radd__ = _operator("add"), _operator("add", swap=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", swap=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", swap=True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", swap=True)
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _operator("floordiv", swap=True)
    __mod__, __rmod__ = _operator("mod"), _operator("mod", swap=True)
    __and__, __rand__ = _operator("and"), _operator("and", swap=True)
    __or__, __ror__ = _operator("or"), _operator("or", swap=True)
    __xor__, __rxor__ = _operator("xor"), _operator("xor", swap=True)
    __lshift__, __rlshift__ = _operator("shl"), _operator("shl", swap=True)
    __rshift__, __rrshift__ = _operator("shr"), _operator("shr", swap=True)
    __lt__, __le__ = _operator("lt"), _operator("le")
    __gt__, __ge__ = _operator("gt"), _operator("ge")
    __eq__, __ne__ = _operator("eq"), _operator("ne")

    def __matmul__(self, other: object) -> NoReturn:
        raise UnsupportedError(f"@ at {describe_site(call_site())} is no operator of tensors; write tl.dot(a, b).")

    __rmatmul__ = __matmul__

    def __neg__(self) -> Any:
        return self._tl.unary("neg", self)

    def __abs__(self) -> Any:
        return self._tl.unary("abs", self)

    def __format__(self, spec: str) -> str:
        """Show the one element as `spec` says, free like a print; without a spec, or before it is known, as `repr`."""
        found = self._tl.shown(self.value) if spec else ""
        if isinstance(found, str):
            return repr(self)
        return format(found.item() if found.size == 1 else found, spec)

    def __invert__(self) -> Any:
        return self._tl.unary("invert", self)


METHODS = (
    *(op.name for op in OPS.values() if op.triton is not None and op.form in (Form.REDUCTION, Form.SCAN)),
    *(op.name for op in OPS.values() if op.triton is not None and op.form is Form.ELEMENTWISE and op.arity == 1),
    "flip", "gather", "permute", "ravel", "softmax", "split", "sqrt_rn",
)  # fmt: skip
"""Functions of `tl` that are also methods of a tensor, with the tensor as their first argument."""

METHODS_IN_TRITON = ("associative_scan", "cast", "reduce", "sort")
"""Those that kernels written in Triton have; elsewhere they are refused in a sentence, as functions of `tl` are."""


def _method(name: str) -> Callable[..., Any]:
    def call(self: Tensor, *args: Any, **named: Any) -> Any:
        return getattr(self._tl, name)(self, *args, **named)

    call.__name__, call.__qualname__, call.__doc__ = name, f"Tensor.{name}", f"Give `tl.{name}` of this tensor."
    return call


for _name in ("logical_and", "logical_or"):
    setattr(Tensor, _name, _operator(_name))
for _name in (*METHODS, *METHODS_IN_TRITON):
    setattr(Tensor, _name, _method(_name))
