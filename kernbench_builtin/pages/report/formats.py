"""How numbers stand on the page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Final

from markupsafe import Markup

from kernbench_builtin.machines.figures.roofline import rate_text
from kernbench_core.units import format_bandwidth, format_bytes, format_count, format_time


def share(value: float) -> str:
    """Write a share from 0 to 1 in percent."""
    return f"{value:.1%}"


def file_name(line: str | None) -> str:
    """Leave the folders of a kernel line out."""
    return PurePath(line).name if line else ""


def place(name: str | None) -> Markup:
    """Write the name of a place: a wire has an arrow, and lines break behind dots only."""
    return _split(r"(?<=\.)", (name or "").replace("->", " → "))


def figure(value: Any) -> str:
    """Write any value of a table."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def quantity(value: Any, form: str) -> str:
    """Write a figure with its unit, where its name says which: `form` is as of `figure_form`."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return str(FILTERS[form](value)) if known and form in FILTERS else figure(value)


def unitless(name: str) -> str:
    """Leave out of the name of a figure the unit that its value says."""
    return re.sub(r"_(ns|bytes|gb_per_s)$", "", name)


def breakable(name: str) -> Markup:
    """Let a long name break behind its dots and underscores, and nowhere else."""
    return _split(r"(?<=[._])", name)


def _split(at: str, name: str) -> Markup:
    return Markup("<wbr>").join(re.split(at, name))


FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    "bandwidth": format_bandwidth,
    "breakable": breakable,
    "bytes": format_bytes,
    "count": format_count,
    "figure": figure,
    "file_name": file_name,
    "place": place,
    "quantity": quantity,
    "rate": rate_text,
    "share": share,
    "time": format_time,
    "unitless": unitless,
}
