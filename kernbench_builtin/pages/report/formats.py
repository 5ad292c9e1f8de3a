"""How numbers stand on the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Final

from markupsafe import Markup

from kernbench_core.host.figures.roofline import rate_text
from kernbench_core.units import format_bandwidth, format_bytes, format_count, format_time


def share(value: float) -> str:
    """Write a share from 0 to 1 in percent."""
    return f"{value:.1%}"


def file_name(line: str | None) -> str:
    """Leave the folders of a kernel line out."""
    return PurePath(line).name if line else ""


def place(name: str | None) -> str:
    """Write the name of a place: a wire has an arrow that no line ends in."""
    return (name or "").replace("->", " → ")


def figure(value: Any) -> str:
    """Write any value of a table."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def breakable(name: str) -> Markup:
    """Let a long name break behind its dots and underscores, and nowhere else."""
    return Markup("<wbr>").join(re.split(r"(?<=[._])", name))


FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    "bandwidth": format_bandwidth,
    "breakable": breakable,
    "bytes": format_bytes,
    "count": format_count,
    "figure": figure,
    "file_name": file_name,
    "place": place,
    "rate": rate_text,
    "share": share,
    "time": format_time,
}
