"""A part of a run's simulated time."""

from __future__ import annotations

import math

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.units import parse_quantity
from kernbench_core.wording import brief


@attrs.frozen
class TimeWindow:
    """From and until when, in ns."""

    from_ns: float = 0.0
    to_ns: float = math.inf


def parse_window(text: str) -> TimeWindow:
    """Read a window, "FROM..TO", times with units; without one of them it begins or ends with the run.

    UsageError for what is none.
    """
    begin, dots, end = text.partition("..") if isinstance(text, str) else ("", "", "")
    try:
        if not dots or not (begin.strip() or end.strip()):
            raise ValueError
        window = TimeWindow(
            parse_quantity(begin.strip(), "time") if begin.strip() else 0.0,
            parse_quantity(end.strip(), "time") if end.strip() else math.inf,
        )
    except ValueError:
        window = TimeWindow(0.0, 0.0)
    if not window.from_ns < window.to_ns:
        raise UsageError(
            "window must be two times with their units, the earlier one first, as '10 us..20 us', one of which may be "
            f"left out, not {brief(text)}."
        )
    return window
