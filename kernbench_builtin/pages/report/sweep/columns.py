"""The points of a sweep as columns for the page's scripts: numbers packed small, each text once."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from kernbench_builtin.pages.report.payload import packed
from kernbench_builtin.pages.report.sweep.sweep_page import SweepPage, SweptParameter
from kernbench_core.units import DIMENSIONS, parse_quantity

#: How figures are written, by the end of their names; others are plain numbers.
_FORMS: Final = {"_ns": "time", "_bytes": "bytes", "_gb_per_s": "bandwidth"}
#: Dimensions of parameters, and how numbers of them are written; of others the values stand as they were given.
_QUANTITIES: Final = {"time": "time", "size": "bytes", "bandwidth": "bandwidth"}
#: How records write floats that JSON has not.
_NOT_FINITE: Final = ("inf", "-inf", "nan")
#: Figures below, of which no more than six digits are shown, take half of the room.
_LARGE: Final = 1e30
#: From this factor between the largest and the smallest figure on they stand apart by factors.
_WIDE: Final = 100.0


def columns(page: SweepPage) -> dict[str, Any]:
    """Return all that the page's scripts are to know of the points, as JSON types and packed arrays."""
    points = page.points
    found = [_parameter(each, [point["values"].get(each.name) for point in points]) for each in page.parameters]
    for objective in page.objectives:
        values = [point["objectives"].get(objective.name) for point in points]
        column = {**_figures("objective", objective.figure or objective.name, values), "name": objective.name}
        found.append({**column, "best": "greatest" if objective.greatest else "least"})
    named = {each.name for each in page.objectives}
    for name in dict.fromkeys(name for point in points for name in point["figures"] if name not in named):
        found.append(_figures("figure", name, [point["figures"].get(name) for point in points]))
    return {
        "count": len(points),
        "columns": found,
        "index": packed(np.array([point["index"] for point in points], np.uint32)),
        "ranked": packed(np.array([is_ranked(point) for point in points], np.uint8)),
        "front": packed(np.array(page.front, np.uint8)),
        "key": texts(point["key"] for point in points),
        "status": texts(point["status"] for point in points),
        "error": texts(point.get("error") or "" for point in points),
        "warning": texts("\n".join(point.get("warnings") or ()) for point in points),
        "op_log": texts(point.get("op_log_sha256") or "" for point in points),
        "fidelity": texts(point.get("fidelity") or "" for point in points),
        "again": texts(again for again, _ in page.commands),
        "show": texts(show for _, show in page.commands),
        "link": texts(page.links),
    }  # fmt: skip


def is_ranked(point: Mapping[str, Any]) -> bool:
    """Return whether a point is compared with the others: it ran, and nothing was left out of it."""
    return bool(point["status"] == "ok" and point.get("fidelity") != "screen")


def texts(values: Iterable[str]) -> dict[str, Any]:
    """Pack texts: each of them once, one behind the other, and which one each point has."""
    known: dict[str, int] = {}
    codes = [known.setdefault(str(value).replace("\0", "\ufffd"), len(known)) for value in values]
    joined = "\0".join(known).encode("utf-8", "replace")
    return {"texts": packed(np.frombuffer(joined, np.uint8)), "codes": packed(np.array(codes, np.uint32))}


def _parameter(parameter: SweptParameter, values: Sequence[Any]) -> dict[str, Any]:
    """Return a column of a parameter: its texts as they were given, and numbers where all are of one kind."""
    form, numbers = _numbers([value for value in values if value is not None])
    column: dict[str, Any] = {"name": parameter.name, "role": "parameter", "form": form}
    column["texts"] = texts("" if value is None else _given(value) for value in values)
    if numbers is None:
        return column
    rest = iter(numbers)
    column["numbers"] = packed(np.array([math.nan if value is None else next(rest) for value in values], np.float64))
    return {**column, "log": parameter.log and min(numbers, default=0.0) > 0}


def _given(value: Any) -> str:
    """Write a value as a configuration and a command line have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(values: Sequence[Any]) -> tuple[str, list[float] | None]:
    """Return how numbers of these values are written, and the numbers; None where one of them is none."""
    if not any(isinstance(value, bool) for value in values):
        if all(isinstance(value, int | float) for value in values):
            return "number", [float(value) for value in values]
        for name in DIMENSIONS:
            if DIMENSIONS[name].units:
                numbers = _quantities(values, partial(parse_quantity, dimension=name))
                if numbers is not None:
                    return _QUANTITIES.get(name, "number"), numbers
    return "text", None


def _quantities(values: Sequence[Any], parse: Any) -> list[float] | None:
    try:
        return [float(parse(value)) for value in values]
    except ValueError:
        return None


def _figures(role: str, name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return a column of figures; what is no number, as of a point that failed, is NaN."""
    if any(isinstance(value, str) and value not in _NOT_FINITE for value in values):
        said = texts("" if value is None else str(value) for value in values)
        return {"name": name, "role": role, "form": "text", "texts": said}
    numbers = np.array([_figure(value) for value in values], np.float64)
    usual = numbers[np.isfinite(numbers)]
    low, high = (float(usual.min()), float(usual.max())) if usual.size else (0.0, 0.0)
    wide = low > 0 and high / low >= _WIDE
    short = role == "figure" and (usual.size == 0 or np.abs(usual).max() < _LARGE)
    kept = packed(numbers.astype(np.float32) if short else numbers)
    return {"name": name, "role": role, "form": figure_form(name), "numbers": kept, "log": wide}


def figure_form(name: str) -> str:
    """Return how a figure is written: by the unit that its name ends in; an expression has none."""
    plain = re.fullmatch(r"[\w.]+", name)
    return next((form for end, form in _FORMS.items() if plain and name.endswith(end)), "number")


def _figure(value: Any) -> float:
    return float(value) if isinstance(value, int | float) or value in _NOT_FINITE else math.nan

