"""What kernels give ops of plug-ins by name: names that an op takes, and values that a saved log gives back as such.

Phase 2 computes from the log, perhaps in another process: what is not data cannot reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kernbench_core.errors import KernelError
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.placeholders import Placeholder, describe_given
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.params import did_you_mean
from kernbench_core.values.dtypes import dtype_of, is_known
from kernbench_core.wording import brief

_PLAIN: Final = (type(None), bool, int, float, str)
_MAY: Final = "a number, a text, a bool, None, a dtype, or a tuple or list of such"


def checked_keywords(
    call: str, given: Mapping[str, object], takes: tuple[frozenset[str], frozenset[str]] | None
) -> dict[str, object]:
    """Return the keywords of a call as the log keeps them; KernelError for a name or a value that will not do.

    `takes` are the names that a call may give and those that it must; None where they are not known. Numbers and dtypes
    of numpy become Python's numbers and kernbench's names.
    """
    if takes is not None:
        may, must = takes
        for name in given:
            if name not in may:
                those = "a keyword that the op takes" if may else "no keywords"
                raise KernelError(
                    f"{call} must be given {those}, not {brief(name)}.{did_you_mean(name, may)} An op takes what the "
                    "`keywords` of its record name, or its function's keyword-only arguments."
                )
        missing = sorted(must - given.keys())
        if missing:
            raise KernelError(f"{call} must be given {missing[0]!r} by name, which the op's function needs; add it.")
    return {name: _kept(call, name, value) for name, value in given.items()}


def _kept(call: str, name: str, value: Any) -> object:
    """Return what the log keeps of a value, the same before and after it is saved."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return kind(_kept(call, name, each) for each in value)
    if isinstance(value, np.generic) and type(value.item()) in _PLAIN:
        return value.item()
    if isinstance(value, np.dtype | type) and is_known(value):
        return dtype_of(value)
    raise KernelError(f"{call} must be given {_MAY} as {name!r}, not {_described(value)}.")


def _described(value: Any) -> str:
    """Call what was given, and say what to do."""
    if isinstance(value, Tensor | IndexTensor | np.ndarray | Placeholder):
        return f"{_shown(value)}; tensors are operands: give it before the keywords"
    if isinstance(value, Pointer):
        return "a pointer; load it, and give the tensor as an operand, before the keywords"
    return f"{describe_given(value)}; give the op data, which its function makes such a thing of"


def _shown(value: Any) -> str:
    return describe_given(value) if isinstance(value, Placeholder) else f"a tensor of shape {tuple(value.shape)}"
