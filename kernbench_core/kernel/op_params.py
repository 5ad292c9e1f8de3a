"""The parameters of op records that commands of one kind have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kernbench_core.oplog.description import Access
from kernbench_core.oplog.parameters import OF_READS, OfReads
from kernbench_core.values.dtypes import is_float
from kernbench_core.values.value import Value

NO_ADDRESS = -1
"""What a record's address fields hold for an immediate operand."""

_PLAIN: Final = frozenset((int, str, bool, type(None), OfReads))
_OPEN: Final = frozenset(("dst_addr", "input_addrs", "handle_id"))


def gemm_params(a: Value, b: Value, out: Value) -> dict[str, object]:
    """Give the shape, dtype and layout fields that every GEMM record has."""
    return {
        "shape_a": a.shape,
        "shape_b": b.shape,
        "shape_out": out.shape,
        "dtype_in": a.dtype,
        "dtype_acc": "f32" if is_float(a.dtype) else "int32",
        "dtype_out": out.dtype,
        "transpose_a": False,
        "transpose_b": False,
        "layout_a": "row_major",
        "layout_b": "row_major",
        "layout_out": "row_major",
        "m": a.shape[0],
        "k": a.shape[1],
        "n": b.shape[1],
    }


def math_inputs(reads: Sequence[Access]) -> dict[str, object]:
    """Give the operand fields that every math record has: one item for each of its reads, which must have values."""
    values = [read.value for read in reads if read.value is not None]
    dtypes = [value.dtype for value in values]
    return {
        "input_addrs": [read.regions[0].base if read.regions else NO_ADDRESS for read in reads],
        "input_shapes": [value.shape for value in values],
        "input_spaces": [read.space for read in reads],
        "input_dtypes": dtypes,
        "in_dtypes": dtypes,
        "input_snapshots": OF_READS,
    }


def frozen(extra: Mapping[str, object]) -> tuple[object, ...] | None:
    """Return what tells parameters from others, with their types.

    None where something else would be equal to one of them, or where they are of what differs in every record.
    """
    found = []
    for name, value in extra.items():
        kind = type(value)
        if kind not in _PLAIN or name in _OPEN:
            return None
        found.append((name, kind, value))
    return tuple(found)
