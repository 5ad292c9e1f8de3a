"""The spellings of dtypes that kernels may use, and the names that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernbench_core.errors import UnsupportedError
from kernbench_core.values.dtypes import NAMES, dtype_name

TRITON_DTYPES = {
    "int1": "bool",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "float8e4nv": "f8e4m3",
    "float8e5": "f8e5m2",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
}
"""Triton's dtype names (`tl.float16`), and kernbench's."""

_SPELLINGS = {name: name for name in NAMES} | TRITON_DTYPES | {
    "fp16": "f16", "fp32": "f32", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "i1": "bool",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "fp8e4nv": "f8e4m3", "fp8e5": "f8e5m2",
}  # fmt: skip

REFUSED_DTYPES = (
    "float64", "float8e4b15", "float8e4b8", "float8e5b16", "uint64", "void",
)  # fmt: skip
"""Triton's dtypes that kernbench has no unit for."""


def dtype_of(given: Any) -> str:
    """Give the name of a dtype spelled as a string or a numpy type; UnsupportedError for any other."""
    found = _SPELLINGS.get(given) if isinstance(given, str) else None
    if found is not None:
        return found
    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        return dtype_name(np.dtype(given))
    raise UnsupportedError(f"a dtype must be one of {', '.join(NAMES)}, not {given!r}; use one of these.")
