"""What stands for `triton._internal_testing` where Triton's own tests run: dtypes by name, random numbers, devices."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernbench_builtin.triton.dtype_names import str_to_ty
from kernbench_builtin.triton.storage import ReinterpretedArray, reinterpret
from kernbench_core.values.arrays import Array
from kernbench_core.values.element_types import ElementType

_INTS = ["int8", "int16", "int32", "int64"]
_UINTS = [f"u{name}" for name in _INTS]
_FLOATS = ["float16", "float32", "float64"]
_ALL = [*_INTS, *_UINTS, *_FLOATS]

LISTS: Mapping[str, list[str]] = {
    "int_dtypes": _INTS, "uint_dtypes": _UINTS, "integral_dtypes": [*_INTS, *_UINTS], "float_dtypes": _FLOATS,
    "float_dtypes_with_bfloat16": [*_FLOATS, "bfloat16"], "dtypes": _ALL, "dtypes_with_bfloat16": [*_ALL, "bfloat16"],
    "torch_float8_dtypes": ["float8_e4m3fn", "float8_e5m2"],
    "torch_dtypes": ["bool", *_INTS, "uint8", *_FLOATS, "bfloat16"],
    "tma_dtypes": sorted({*_ALL, "bfloat16"} - {"int64", "uint64", "float64"}),
}  # fmt: skip

#: What a test asks of the device before it expects something of one kind of GPU: the machine is none of them.
_OTHERS = (
    "is_cuda", "is_ampere_or_newer", "is_blackwell", "is_blackwell_ultra", "is_hopper", "is_hopper_or_newer",
    "is_sm12x", "is_hip", "is_hip_cdna", "is_hip_cdna2", "is_hip_cdna3", "is_hip_cdna3_or_newer", "is_hip_cdna4",
    "is_hip_rdna", "is_hip_rdna3", "is_hip_rdna4", "is_hip_gfx1250", "is_xpu",
)  # fmt: skip


def _no() -> bool:
    return False


def _yes() -> bool:
    return True


def is_interpreter() -> bool:
    """Whether tests are to expect what Triton's interpreter does, which needs no GPU."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


def numpy_random(shape: Any, dtype_str: str, rs: Any = None, low: Any = None, high: Any = None) -> Array:
    """Give random numbers: integers of the whole range but 0, normal floats, bools; the same each time without `rs`."""
    rng: Any = np.random.RandomState(seed=17) if rs is None else rs
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if dtype_str in LISTS["integral_dtypes"]:
        held = np.iinfo(dtype_str)
        least = held.min if low is None else max(low, held.min)
        most = held.max if high is None else min(high, held.max)
        numbers = rng.randint(least, most, extents, dtype=dtype_str)
        return np.where(numbers == 0, np.ones((), dtype_str), numbers)
    if "float8" in dtype_str:
        return np.asarray(rng.randint(20, 40, extents, dtype=np.int8))
    normal = np.asarray(rng.normal(0, 1, extents))
    if dtype_str in ("bool", "int1", "bool_"):
        return normal > 0
    if dtype_str == "bfloat16":
        return (normal.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    if dtype_str not in _FLOATS:
        raise RuntimeError(f"dtype_str must be the name of a dtype, such as float32, not {dtype_str!r}.")
    return normal.astype(dtype_str)


def to_triton(x: Array, device: Any, dst_type: str | None = None) -> Any:
    """Make a torch tensor of an array; of an unsigned one, or for floats of 8 bits, reinterpreted as what it is."""
    torch = importlib.import_module("torch")
    name = x.dtype.name
    if name in _UINTS:
        return reinterpret(torch.tensor(x.view(name[1:]), device=device), name)
    made = torch.tensor(x, device=device)
    if dst_type and "float8" in dst_type:
        return reinterpret(made, dst_type)
    return made.bfloat16() if name == "float32" and dst_type == "bfloat16" else made


def to_numpy(x: Any) -> Array:
    """Make an array of a torch tensor, or of what `to_triton` made."""
    if isinstance(x, ReinterpretedArray):
        return np.asarray(x.base.cpu().numpy()).view(torch_dtype_name(x.dtype))
    if str(x.dtype) == "torch.bfloat16":
        return np.asarray(x.cpu().float().numpy())
    return np.asarray(x.cpu().numpy())


def default_alloc_fn(size: int, align: int, stream: Any) -> Any:
    """Give a torch tensor of bytes, for `triton.set_allocator`."""
    torch = importlib.import_module("torch")
    return torch.empty(size, dtype=torch.int8)


def unwrap_tensor(x: Any) -> Any:
    """Give the tensor that was reinterpreted, or the tensor itself."""
    return x.base if isinstance(x, ReinterpretedArray) else x


def torch_dtype_name(dtype: Any) -> str:
    """Give a dtype's name in torch: of one of torch's, or of Triton's."""
    return repr(dtype) if isinstance(dtype, ElementType) else str(dtype).removeprefix("torch.")


NAMES: Mapping[str, object] = {
    **LISTS, **dict.fromkeys(_OTHERS, _no), "is_interpreter": is_interpreter, "supports_tma": _yes, "supports_ws": _yes,
    "numpy_random": numpy_random, "to_triton": to_triton, "to_numpy": to_numpy, "unwrap_tensor": unwrap_tensor,
    "default_alloc_fn": default_alloc_fn,
    "torch_dtype_name": torch_dtype_name, "str_to_triton_dtype": str_to_ty,
}  # fmt: skip
