"""PyTorch as what computes: products, float math element by element, and reductions, on the CPU or a GPU.

What a table below does not have is left to numpy, as is all of integers. f32 stays f32 in products: PyTorch must not
round their operands to fewer digits (TF32), which is its own default too.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Self
from weakref import ref

import numpy as np

from kernbench_core.compute import Backend
from kernbench_core.compute.ops import MathOp
from kernbench_core.compute.ops.record import MathFunction, Params
from kernbench_core.errors import UsageError
from kernbench_core.values.arrays import Array

_SAME: Final = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid", "abs", "neg", "floor", "ceil",
    "trunc", "add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite",
)  # fmt: skip
"""Ops that PyTorch has under the same name."""
KEPT_BYTES: Final = 1 << 30
"""So many bytes of operands at most stay on a GPU for who reads them next."""
_WORTH_KEEPING: Final = 1 << 16
_WORTH_ELEMENTS: Final = 1 << 20
_WORTH_MULTIPLICATIONS: Final = 1 << 24
"""Of as much, a GPU takes about as long as a core does, the way there and back included."""


class TorchBackend(Backend):
    """PyTorch on one of its devices; it has threads of its own."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._device = device
        self.name = f"torch:{device}"
        self._functions = _functions(torch)
        if device.type != "cpu":
            self.worth_elements, self.worth_multiplications = _WORTH_ELEMENTS, _WORTH_MULTIPLICATIONS
        self._kept: OrderedDict[int, tuple[Any, Any]] = OrderedDict()
        self._kept_bytes = 0

    @classmethod
    def on(cls, device: str) -> Self:
        """Return the backend of a device; UsageError where PyTorch is not installed or has no such device."""
        device = device or "cpu"
        try:
            torch: Any = import_module("torch")
        except ImportError:
            raise UsageError(
                f"--backend torch:{device} needs PyTorch, which is not installed; pip install 'kernbench[torch]'."
            ) from None
        kind, colon, number = device.partition(":")
        if kind not in ("cpu", "cuda") or (colon and (kind == "cpu" or not number.isdecimal())):
            raise UsageError(f"the device of --backend torch:{device} must be cpu, cuda or cuda:N; give one of these.")
        if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
            raise UsageError(
                f"--backend torch:{device} needs a GPU that PyTorch {torch.__version__} sees, and it sees "
                f"{torch.cuda.device_count() or 'none'}; give --backend torch:cpu, or leave it out."
            )
        return cls(torch, torch.device(device))

    @property
    def library(self) -> str:
        """PyTorch and its version."""
        return f"torch {self._torch.__version__}"

    @property
    def device(self) -> str:
        """The GPU by its name, or the CPU."""
        return str(self._torch.cuda.get_device_name(self._device)) if self._device.type == "cuda" else "CPU"

    def product(self, a: Array, b: Array) -> Array:
        """Multiply two matrices, or stacks of them."""
        return self._array(self._torch.matmul(self._tensor(a), self._tensor(b)))

    def function(self, op: MathOp) -> MathFunction | None:
        """Return what computes an op that a table here has; None for others."""
        found = self._functions.get(op.name)
        if found is None:
            return None

        def compute(params: Params, *arrays: Array) -> Array:
            return self._array(found(params, *map(self._tensor, arrays)))

        return compute

    def _tensor(self, array: Array) -> Any:
        if self._device.type == "cpu":
            return self._shared(array)
        kept = self._kept.get(id(array))
        if kept is not None:
            self._kept.move_to_end(id(array))
            return kept[1]
        tensor = self._shared(array).to(self._device)
        if array.nbytes >= _WORTH_KEEPING and not array.flags.writeable:
            self._keep(array, tensor)
        return tensor

    def _shared(self, array: Array) -> Any:
        """Return a tensor on the memory of an array."""
        if any(stride < 0 for stride in array.strides):
            array = np.ascontiguousarray(array)
        return self._torch.from_numpy(np.asarray(_Open(array)))

    def _keep(self, array: Array, tensor: Any) -> None:
        """Keep on the GPU what an array that nobody writes to holds, for as long as the array lives."""
        key = id(array)
        self._kept[key] = ref(array, lambda _: self._forget(key)), tensor
        self._kept_bytes += array.nbytes
        while self._kept_bytes > KEPT_BYTES:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: int) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._kept_bytes -= kept[1].nbytes

    def _array(self, tensor: Any) -> Array:
        found: Array = tensor.cpu().numpy()
        return found


def _functions(torch: Any) -> Mapping[str, Callable[..., Any]]:
    """Return, by name of op, what computes it on tensors, its parameters first."""

    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda params, *tensors: function(*tensors)

    def extreme(number: Any, with_nan: Any) -> Callable[..., Any]:
        return lambda params, a, b: (with_nan if params.get("propagate_nan") else number)(a, b)

    def along(function: Callable[..., Any]) -> Callable[..., Any]:
        def reduce(params: Params, x: Any) -> Any:
            axis = params.get("axis")
            axes = tuple(range(x.ndim)) if axis is None else (int(axis),)
            return function(x, axes, bool(params.get("keepdims", False))) if axes else x

        return reduce

    def past_nan(function: Any, end: float) -> Callable[..., Any]:
        """Reduce to an extreme and pass NaN over, unless there is nothing else."""

        def reduce(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
            missing = torch.isnan(x)
            found = function(torch.where(missing, end, x), dim=axes, keepdim=keepdims)
            nothing = missing.sum(dim=axes, keepdim=keepdims) == x.numel() // max(1, found.numel())
            return torch.where(nothing, torch.nan, found)

        return reduce

    return {
        **{name: plain(getattr(torch, name)) for name in _SAME},
        "relu": plain(torch.relu),
        "silu": plain(torch.nn.functional.silu),
        "gelu": plain(lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        "gelu_erf": plain(lambda x: 0.5 * x * (1.0 + torch.erf(x * math.sqrt(0.5)))),
        "minimum": extreme(torch.fmin, torch.minimum),
        "maximum": extreme(torch.fmax, torch.maximum),
        "where": plain(lambda condition, x, y: torch.where(condition.bool(), x, y)),
        "fma": plain(lambda a, b, c: a * b + c),
        "sum": along(lambda x, axes, keepdims: x.sum(dim=axes, keepdim=keepdims)),
        "max": along(past_nan(torch.amax, -torch.inf)),
        "min": along(past_nan(torch.amin, torch.inf)),
    }


class _Open:
    """Show the memory of an array to a library that has no arrays which may not be written to; it must not write."""

    def __init__(self, array: Array) -> None:
        self._array = array
        about = array.__array_interface__
        self.__array_interface__ = {**about, "data": (about["data"][0], False)}
