"""The named figures of a result, which objectives are made of: times in ns, sizes in bytes, shares from 0 to 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from kernbench_builtin.sweeps.expressions.quantities import UnitNumber
from kernbench_builtin.sweeps.shaken import Shaken
from kernbench_core.errors import UsageError
from kernbench_core.host.rows import Scalar
from kernbench_core.params import did_you_mean
from kernbench_core.units import finite

if TYPE_CHECKING:
    from kernbench_core.runs.result import RunResult

#: What ends the name of a figure that is no plain number, and the dimension that it tells.
_ENDS: Final[Mapping[str, str]] = MappingProxyType({"_ns": "time", "_bytes": "size"})
_MISSING: Final = object()
#: What of a result's JSON is no figure: it differs from run to run, or says what was asked for.
_NO_FIGURES: Final = frozenset({"schema", "wall_s", "from_cache", "manifest", "models", "params"})


@frozen
class NamedFigure:
    """One figure that every result has: its name, which ends in its unit, its sentence, and how it is read."""

    name: str
    sentence: str
    read: Callable[[RunResult], Scalar]


def _phase(name: str) -> Callable[[RunResult], Scalar]:
    return lambda result: result.phases[name]


def _kernels(result: RunResult) -> Any:
    """Return what kernels did together; None where none ran, or nobody measured."""
    return getattr(result, "kernels", None)


def _roofline(name: str) -> Callable[[RunResult], Scalar]:
    def read(result: RunResult) -> Scalar:
        kernels = _kernels(result)
        point = None if kernels is None else kernels.roofline
        return 0 if point is None else getattr(point, name)

    return read


FIGURES: Final[tuple[NamedFigure, ...]] = (
    NamedFigure("time_ns", "Simulated time of the whole run; `time` is short for it.", lambda r: r.total_ns),
    NamedFigure("host_to_device_ns", "Its phase in which data go to the device, or nothing does.",
                _phase("host_to_device")),
    NamedFigure("launch_ns", "Its phase in which kernels are launched.", _phase("launch")),
    NamedFigure("kernel_ns", "Its phase in which kernels run.", _phase("kernel")),
    NamedFigure("device_to_host_ns", "Its phase in which data come back.", _phase("device_to_host")),
    NamedFigure("kernel_time_ns", "How long any kernel ran.",
                lambda r: getattr(_kernels(r), "time_ns", 0.0)),
    NamedFigure("flop", "Floating-point operations of all kernels, of all lanes of their blocks.", _roofline("flops")),
    NamedFigure("hbm_bytes", "What kernels moved to and from HBM.", _roofline("hbm_bytes")),
    NamedFigure("intensity", "FLOP of kernels per byte of their HBM traffic.", _roofline("intensity")),
    NamedFigure("gflops", "FLOP of kernels per ns in which any ran (GFLOP/s).", _roofline("achieved")),
    NamedFigure("roofline_share", "Of what the roofline lets kernels attain, the share that they achieved.",
                _roofline("share")),
    NamedFigure("launches", "Launches of kernels.", lambda r: len(getattr(r, "launches", ()))),
    NamedFigure("ops", "Records of the op log.", lambda r: r.timing.ops),
    NamedFigure("events", "Events that the simulator processed.", lambda r: r.events),
    NamedFigure("hops", "Deliveries over wires and channels.", lambda r: r.timing.hops),
    NamedFigure("hazards", "Uses of memory that nothing orders.", lambda r: len(r.hazards)),
    NamedFigure("outside", "Accesses outside of their tensors, where these are no errors.", lambda r: len(r.outside)),
    NamedFigure("elements_read", "Elements of tiles that kernels read into Python, whose arithmetic is not timed.",
                lambda r: 0 if r.python_reads is None else r.python_reads.elements),
    NamedFigure("verified", "Whether all checked data are right; none without --verify-data.", lambda r: r.verified),
    NamedFigure("max_abs_error", "The largest difference from what was expected; none without --verify-data.",
                lambda r: r.max_abs_error),
    NamedFigure("reported_rows", "Rows that the bench reported.", lambda r: len(r.rows)),
)  # fmt: skip
#: What a result's JSON has beside them: single figures, and sections whose figures have dotted names.
SECTIONS: Final = frozenset(
    {
        "bench", "topology", "device", "total_ns", "phases", "interrupted", "checked", "wrong", "ops_verified",
        "ops_checked", "ops_wrong", "kernels", "branch_values", "host_reads", "op_log_sha256",
    }
)  # fmt: skip
#: Figures of which a result has one for each kind of resource, statistic of a model, or column of reported rows.
FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "shaken": "shaken.median_ns and shaken.spread_ns: Of the whole run's time, with --shake.",
        "utilisation": "utilisation.KIND: Of the busiest of its kind, over the run, from 0 to 1.",
        "mean_utilisation": "mean_utilisation.KIND: The mean over those of its kind that were used.",
        "kernel_utilisation": "kernel_utilisation.KIND: Of the busiest of its kind, while kernels ran.",
        "busy_ns": "busy_ns.KIND: How long the busiest of its kind was busy.",
        "statistics": "statistics.MODEL.NAME: What a model counted, as statistics.acme.hbm.row_hits.",
        "rows": "rows.COLUMN: Of one reported row its cell; rows.COLUMN.min, .max and .mean of any number of rows.",
    }
)
MEDIAN: Final = "shaken.median_ns"
SPREAD: Final = "shaken.spread_ns"
#: Short names.
ALIASES: Final[Mapping[str, str]] = MappingProxyType({"time": "time_ns"})
#: The names of figures that every result has.
KNOWN: Final = frozenset({*(each.name for each in FIGURES), *ALIASES})


def plain_name(text: str) -> str:
    """Return a text as an expression can name it: "hbm_ctrl channel" is `hbm_ctrl_channel`."""
    return ".".join(re.sub(r"\W+", "_", part).strip("_") for part in text.split("."))


def named_figures(result: RunResult) -> dict[str, Scalar]:
    """Return all figures of a result by name, as JSON has them: those of `FIGURES`, and those of `FAMILIES` it has."""
    found: dict[str, Scalar] = {each.name: _cell(each.read(result)) for each in FIGURES}
    found.update(_families(result))
    return found


def figure_of(result: RunResult, name: str, figures: Mapping[str, Scalar] | None = None) -> Scalar:
    """Return one figure: a named one, or what the result's JSON has at a dotted path, as `kernels.roofline.bound`.

    `figures` are those that are known already. UsageError for a name that the result has no figure of.
    """
    known = named_figures(result) if figures is None else figures
    name = ALIASES.get(name, name)
    if name in known:
        return known[name]
    at: Any = {key: value for key, value in result.to_json().items() if key not in _NO_FIGURES}
    for part in name.split("."):
        at = at.get(part, _MISSING) if isinstance(at, Mapping) else _MISSING
    if at is _MISSING:
        hint = did_you_mean(name, known)
        raise UsageError(f"{name!r} must be a figure of the result, and it has none of this name.{hint}")
    if isinstance(at, Mapping | list | tuple):
        raise UsageError(f"{name!r} must be one figure of the result, and it is a {_structure(at)}; name a part of it.")
    return _cell(at)


def may_be_figure(name: str) -> bool:
    """Whether a result may have a figure of that name: of families and sections only the first word is known."""
    return name in KNOWN or name.partition(".")[0] in {*FAMILIES, *SECTIONS}


def measured(figures: Mapping[str, Scalar]) -> dict[str, Scalar | UnitNumber]:
    """Return figures as expressions take them: times and sizes, which their names tell, as such."""
    return {name: _with_unit(name, value) for name, value in figures.items()}


def _with_unit(name: str, value: Scalar) -> Scalar | UnitNumber:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    ends = (dimension for part in name.split(".") for end, dimension in _ENDS.items() if part.endswith(end))
    dimension = next(ends, None)
    return value if dimension is None else UnitNumber(value, dimension, lenient=True)


def _cell(value: Any) -> Scalar:
    """Return a value as JSON has it; of a float that it has not, the name."""
    if hasattr(value, "item"):
        value = value.item()
    return finite(value) if isinstance(value, float) else value


def _structure(value: object) -> str:
    return "section" if isinstance(value, Mapping) else "list"


def _families(result: RunResult) -> Iterator[tuple[str, Scalar]]:
    shaken = result.part(Shaken)
    if shaken is not None:
        yield MEDIAN, shaken.total.median_ns
        yield SPREAD, shaken.total.width_ns
    for use in result.busiest:
        kind = plain_name(use.kind)
        yield f"utilisation.{kind}", use.utilisation
        yield f"mean_utilisation.{kind}", use.mean_utilisation
        yield f"busy_ns.{kind}", use.busy_ns
    for busy in getattr(_kernels(result), "busiest", ()):
        yield f"kernel_utilisation.{plain_name(busy.kind)}", busy.utilisation
    for each in result.timing.statistics:
        yield f"statistics.{plain_name(each.component)}.{plain_name(each.name)}", _cell(each.value)
    yield from _reported(result)


def _reported(result: RunResult) -> Iterator[tuple[str, Scalar]]:
    """Yield the columns of the reported rows: their value where there is one row, and extremes and mean of numbers."""
    columns: dict[str, list[Any]] = {}
    for row in result.rows:
        for name, cell in row.items():
            columns.setdefault(plain_name(name), []).append(cell)
    for name, cells in columns.items():
        if len(result.rows) == 1:
            yield f"rows.{name}", _cell(cells[0])
        numbers = [cell for cell in cells if isinstance(cell, int | float) and not isinstance(cell, bool)]
        if numbers and len(numbers) == len(cells):
            yield f"rows.{name}.min", _cell(min(numbers))
            yield f"rows.{name}.max", _cell(max(numbers))
            yield f"rows.{name}.mean", _cell(sum(numbers) / len(numbers))
