"""Rows that a bench reports beside the result: plain values under names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

Scalar: TypeAlias = int | float | str | bool | None
Row: TypeAlias = Mapping[str, Scalar]


def make_row(columns: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the columns with numpy's scalars as Python's; UsageError for a value that is none, or for no column."""
    if not columns:
        raise UsageError("rt.report must be given at least one column, as rt.report(size=64); name one.")
    return {name: _plain(name, value) for name, value in columns.items()}


def _plain(name: str, value: Any) -> Scalar:
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if value is not None and not isinstance(value, int | float | str):
        raise UsageError(
            f"rt.report: column {name!r} must be a number, a text, true, false or None, not {brief(value)}; report a "
            "plain value."
        )
    plain: Scalar = value
    return plain
