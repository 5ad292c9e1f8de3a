"""The reductions of collectives: which there are, with which dtypes they go, and their right results in numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kernbench_core.values import Array
from kernbench_core.values.dtypes import cast, dtype_name, is_float, to_compute

REDOPS: Final = ("sum", "avg", "product", "min", "max")
"""The reductions that there are."""

_COMBINE: Final[Mapping[str, np.ufunc]] = {
    "sum": np.add, "avg": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def refuse_redop(redop: str, dtype: str) -> str | None:
    """Return a sentence why a reduction does not go with a dtype, or None if it does."""
    if redop not in REDOPS:
        return f"a reduction must be one of {', '.join(REDOPS)}, not {redop!r}; choose one of these."
    if redop == "avg" and not is_float(dtype):
        return f"avg must be of a float dtype, not of {dtype}, which cannot hold the quotient; use sum, or cast first."
    return None


def reduced(inputs: Sequence[Array], redop: str, over: int | None = None) -> Array:
    """Return the reduction of arrays of one dtype; of bool, a sum is "any" and a product is "all".

    An average is their sum divided by `over`, by default by their number.

    It is computed in f64 (integers: in their own type, which wraps) and rounded once: exact where every partial result
    is.
    """
    dtype = inputs[0].dtype
    if dtype.kind == "b":
        return np.asarray((np.any if redop in ("sum", "max") else np.all)(np.stack(list(inputs)), axis=0))
    combine = _COMBINE.get(redop, np.add)
    found = np.array(to_compute(inputs[0]), dtype if dtype.kind in "iu" else np.float64)
    for each in inputs[1:]:
        combine(found, to_compute(each), out=found)
    if redop == "avg":
        found = found / (len(inputs) if over is None else over)
    if dtype.kind in "iu":
        return np.asarray(found.astype(dtype))
    return np.asarray(found if dtype == np.float64 else cast(found.astype(np.float32), dtype_name(dtype)))
