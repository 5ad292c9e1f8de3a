"""Names of dtypes as files in Triton write and print them: long, short, in annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernbench_core.values.dtypes import TRITON
from kernbench_core.values.element_types import ElementType, as_dtype

SHORT_NAMES: Mapping[str, str] = {
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "bool": "i1", "int1": "u1", "uint1": "u1", "float16": "fp16", "bfloat16": "bf16", "float": "fp32",
    "float32": "fp32", "double": "fp64", "float64": "fp64", "float8e4nv": "fp8e4nv", "float8_e4m3fn": "fp8e4nv",
    "float8e5": "fp8e5", "float8_e5m2": "fp8e5", "float8e4b15": "fp8e4b15",
}  # fmt: skip
"""Triton's short names of dtypes by its long ones, and torch's."""

_BY_SHORT = {SHORT_NAMES[long]: TRITON[long] for long in SHORT_NAMES if long in TRITON} | {"i1": "bool"}


def annotated(annotation: Any) -> str | None:
    """Return the dtype that an annotation of a parameter names, by a long or short name; None where it names none."""
    if isinstance(annotation, ElementType):
        return annotation
    if not isinstance(annotation, str):
        return None
    name = annotation.strip("'\"").removeprefix("tl.").removeprefix("triton.language.")
    return _BY_SHORT.get(SHORT_NAMES.get(name, name))


def text_of_dtype(dtype: ElementType) -> str:
    """Return what `str` gives of a dtype in Triton: `fp32`, `int1`, `pointer<fp16>`."""
    if dtype.is_ptr():
        return f"pointer<{text_of_dtype(dtype.element_ty)}>"
    return dtype.name


def str_to_ty(name: str, c: Any = None) -> ElementType:
    """Give the dtype of a name, short or long (`fp32`, `int64`, `*fp16`)."""
    found = annotated(name.lstrip("*").removeprefix("k"))
    return as_dtype(found or name)
