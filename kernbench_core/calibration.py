"""The contract of a format of measurements, and what helps to read one: CSVs with every fault at its line.

A plug-in registers a `Calibrator` class; `kernbench calibrate` finds the one whose format a log has, reads the rows,
fits the parameters that they tell of within their limits, and has every row simulated on the fitted machine.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from attrs import evolve, field, frozen

from kernbench_core.errors import ConfigError
from kernbench_core.units import DIMENSIONS, LARGEST, parse_quantity

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

TIME_COLUMNS: Mapping[str, float] = MappingProxyType({"time_ns": 1.0, "time_us": 1e3, "time_ms": 1e6, "time_s": 1e9})
"""Columns of plain numbers that are times, with the ns of one; a column `time` has the unit in each cell."""
_DIGITS = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
LEAST_NS = 1e-3
"""No measurement takes less, in ns; the grid of simulated times is not much finer."""
_POWER_OF_1024 = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])")
_TIMES = ("time", *TIME_COLUMNS)

_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,.]).*")
_LONGEST = 100
"""Characters of the names of columns that are told."""

ReadCell = Callable[[str], Any]
"""Turn the text of a cell into its value; ValueError with what it must be, beginning with "must be"."""


@frozen
class MachineChoice:
    """A machine as texts: a preset or file, and the settings over it, as `--topology` and `--set` have them."""

    topology: str
    sets: tuple[str, ...] = ()

    def having(self, sets: Sequence[str]) -> MachineChoice:
        """Return it with more settings over its own."""
        return evolve(self, sets=(*self.sets, *sets))


@frozen
class LogOptions:
    """What the command line says of a log, and of how its rows are simulated.

    `collective`, `ranks`, `algo`, `config` (a file of settings) and `pipeline` (False: step by step; None: as the
    configuration has it, or step by step where only that fits) are for logs of collectives. No row above
    `simulate_to` bytes is simulated as it is, and fewer are where times grow evenly before, but for `whole`, which asks
    for every row as it is; `ends` asks for the ends of what one algorithm serves alone, and for lines between them;
    `jobs` processes may simulate. In `simulated` is what calibrators of these options, or some made of them, keep.
    """

    collective: str | None = None
    ranks: int | None = None
    algo: str | None = None
    config: str | None = None
    simulate_to: int = 64 << 20
    jobs: int = 1
    pipeline: bool | None = None
    whole: bool = False
    ends: bool = False
    simulated: dict[Hashable, Any] = field(factory=dict, eq=False, repr=False)


@frozen
class LogRow:
    """One measurement: `place` is its file and line, `label` says what was measured, `ns` how long it took.

    `case` is what the calibrator itself makes of it; rows of one case measured the same thing. A `check` is not fitted
    where there are enough others: it is simulated on the fitted machine alone, for how far that is off.
    """

    place: str
    label: str
    ns: float
    case: Hashable = field(repr=False)
    check: bool = False


@frozen
class Unknown:
    """A parameter to fit: its `key` in the configuration, and the limits within which its value must be.

    Values are in kernbench's own unit of `dimension`; the key gets `scale` times the value. Times are linear in the
    value, or with `inverse` in 1 / value. `source` says where the limits are from, `needs` which rows identify it.
    """

    name: str
    key: str
    dimension: str
    low: float
    high: float
    source: str
    needs: str
    inverse: bool = False
    scale: float = 1.0

    def setting(self, value: float) -> str:
        """Return the setting that gives a machine a value, as `--set` has it."""
        return f"{self.key}={self.text(value * self.scale)}"

    def text(self, value: float) -> str:
        """Write a value with its unit, to ten digits."""
        return DIMENSIONS[self.dimension].text(value)


BEGIN = 4 << 20
"""Bytes up to which every size is simulated, before times are asked whether they grow evenly."""
EVEN = 0.03
"""A part by which slopes differ that are alike."""


def grows_evenly(slope: float, other: float, average: float) -> bool:
    """Tell whether times go on with `slope` (ns a byte) from here: as `other`, or as from nothing, on `average`.

    `other` is the slope before, or better what the busiest resource takes for a byte: where that is idle because of
    latencies, time grows by less than it does later.
    """
    return abs(slope - other) <= EVEN * other or slope >= (1 - EVEN) * average


@frozen
class SimulatedRow:
    """What a machine takes for a row, in ns; `extended` says that a smaller size was simulated, and continued.

    Where times do not grow evenly there yet, `settled` is False, and the row tells nothing.
    """

    ns: float
    extended: bool = False
    settled: bool = True

    @classmethod
    def along(
        cls, size: int, simulate_to: int, time_ns: Callable[[int], float], begin: int | None = None
    ) -> SimulatedRow:
        """Return the time of a size: simulated to where times grow evenly, from there on the line through the last two.

        `time_ns` simulates a size. All up to `begin` are, and its doubles up to `simulate_to` until times do.
        """
        at = simulate_to if begin is None else min(begin, simulate_to)
        while size > at:
            quarter, half, whole = (time_ns(at // part) for part in (4, 2, 1))
            slope, before = (whole - half) / (at - at // 2), (half - quarter) / (at // 2 - at // 4)
            settled = grows_evenly(slope, before, whole / at)
            if settled or 2 * at > simulate_to:
                return cls(whole + (size - at) * slope, True, settled)
            at *= 2
        return cls(time_ns(size))


class Calibrator(Protocol):
    """One format of measurements. It is made once for all logs of a call, with what the command line says.

    `read` is called first, for each log; then `unknowns`, for all rows; `slopes` and `simulate` for as many machines
    as the fit tries.
    """

    #: What a log of the format looks like, in words, for whoever gave another.
    FORM: ClassVar[str]

    def __init__(self, plugins: Plugins, options: LogOptions) -> None:
        """Keep both; nothing is loaded yet."""

    @staticmethod
    def recognises(text: str) -> bool:
        """Tell whether a log is of this format, faults and all."""

    def read(self, name: str, text: str) -> Sequence[LogRow]:
        """Return the rows of a log that is called `name`; raise ConfigError with every fault, at `name:line`."""

    def settings(self, rows: Sequence[LogRow]) -> Sequence[str]:
        """Return what the rows say of the machine itself, as its number of packages, in the words of `--set`."""

    def unknowns(self, rows: Sequence[LogRow], machine: MachineChoice) -> Sequence[Unknown]:
        """Return the parameters that rows of this format are fitted by, on this machine."""

    def slopes(
        self, rows: Sequence[LogRow], machine: MachineChoice, values: Mapping[str, float]
    ) -> Sequence[Mapping[str, float]]:
        """Return for each row d ns / d value (d ns / d (1 / value) of an inverse one) by unknown, from closed forms.

        `machine` is the one that `unknowns` was asked of, `values` are those of the unknowns at this point. What a row
        does not depend on may be left out.
        """

    def simulate(self, rows: Sequence[LogRow], machine: MachineChoice) -> Sequence[SimulatedRow]:
        """Return what the machine takes for each row."""


@frozen
class CsvLine:
    """One row of a CSV: the line of its file, the values of its columns, and its time in ns."""

    line: int
    values: Mapping[str, Any]
    ns: float


@frozen
class CsvForm:
    """The columns of a CSV of measurements, beside one of time, and how their cells are read.

    The first line that is neither empty nor begins with # names the columns, in any order and case. Other columns are
    ignored.
    """

    columns: Mapping[str, ReadCell]

    def recognises(self, text: str) -> bool:
        """Tell whether the first line names all of these columns, and a time."""
        for _, cells in _lines(text):
            named = {cell.lower() for cell in cells}
            return named >= {column.lower() for column in self.columns} and not named.isdisjoint(_TIMES)
        return False

    def read(self, name: str, text: str) -> list[CsvLine]:
        """Return the rows of a CSV.

        Raises:
            ConfigError: columns are missing, or cells are not what they must be; `problems` has every fault.
        """
        lines = list(_lines(text))
        first, header = lines[0] if lines else (1, [])
        named = [cell.lower() for cell in header]
        problems = [f"{name}:{first}: {fault}" for fault in self._faults_of(named)]
        readers = {
            column: read
            for column, read in {**self.columns, **{time: _time_reader(time) for time in _TIMES}}.items()
            if named.count(column.lower()) == 1
        }
        found: list[CsvLine] = []
        for line, cells in lines[1:]:
            values, faults = _values(named, cells, readers)
            problems += [f"{name}:{line}: {fault}" for fault in faults]
            times = [values.pop(time) for time in _TIMES if time in values]
            found += [CsvLine(line, values, ns) for ns in times[:1]]
        if not lines[1:]:
            problems.append(f"{name}:{first}: a row of measurements must follow the names of the columns; add one.")
        if problems:
            raise ConfigError(*problems)
        return found

    @staticmethod
    def whole(text: str) -> int:
        """Read a positive integer, also as '1e6'; ValueError with what it must be."""
        number = _number(text)
        if number is None or number.denominator != 1 or number < 1:
            raise ValueError(f"must be a positive integer, not {text!r}.{_ungrouped(text)}")
        if number >= LARGEST:
            raise ValueError(f"must be a positive integer below 10^18, not {text!r}.")
        return int(number)

    @staticmethod
    def size(text: str) -> int:
        """Read a positive number of bytes: plain, with a unit, or as '64K'; ValueError with what it must be.

        K, M, G and T alone are powers of 1024, as nccl-tests and `kernbench ccl -b` take them.
        """
        if _number(text) is not None:
            return CsvForm.whole(text)
        match = _POWER_OF_1024.fullmatch(text)
        if match is None:
            return int(parse_quantity(text, "size", positive=True))
        number = Fraction(match[1]) * 1024 ** " KMGT".index(match[2])
        if number.denominator != 1 or number < 1:
            raise ValueError(f"must be a positive integer of bytes, not {text!r}.")
        if number >= LARGEST:
            raise ValueError(f"must be a size below 10^18 B, not {text!r}.")
        return int(number)

    @staticmethod
    def one_of(*choices: str) -> ReadCell:
        """Return a reader of one of these words, in lower case."""

        def read(text: str) -> str:
            if text.lower() not in choices:
                raise ValueError(f"must be one of {', '.join(choices)}, not {text!r}.")
            return text.lower()

        return read

    def _faults_of(self, named: list[str]) -> Iterator[str]:
        there = _shown(named)
        for column in sorted({one for one in named if named.count(one) > 1}):
            yield f"column {_shown([column])} must stand once; drop one."
        for column in self.columns:
            if column.lower() not in named:
                yield f"a column {column} must be there, not only {there}; add it."
        times = [one for one in named if one in _TIMES]
        if len(set(times)) != 1:
            yield f"one column of {', '.join(_TIMES)} must be there, not {' and '.join(times) or 'none'}."


def _values(
    named: Sequence[str], cells: Sequence[str], readers: Mapping[str, ReadCell]
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a row, its time in ns among them, and a sentence for each cell that is wrong."""
    if len(cells) != len(named):
        hint = "write numbers without commas, and quote text that has some" if len(cells) > len(named) else "restore it"
        return {}, [f"a row must have {len(named)} cells ({_shown(named)}), not {len(cells)}; {hint}."]
    row = dict(zip(named, cells, strict=True))
    values: dict[str, Any] = {}
    faults: list[str] = []
    for column, read in readers.items():
        try:
            values[column] = read(row[column.lower()])
        except ValueError as fault:
            faults.append(f"{column} {fault}")
    return values, faults


def _shown(names: Sequence[str]) -> str:
    """Name columns so that a terminal can show them."""
    whole = ", ".join(one if one.isprintable() else repr(one)[1:-1] for one in names) or "nothing"
    return whole if len(whole) <= _LONGEST else f"{whole[:_LONGEST]}..."


def _ungrouped(text: str) -> str:
    """Say how a number is written that has commas between its thousands; "" for another text."""
    return f" Did you mean {text.replace(',', '')!r}?" if _GROUPED.fullmatch(text) else ""


def _time_reader(column: str) -> ReadCell:
    factor = TIME_COLUMNS.get(column)

    def read(text: str) -> float:
        if factor is None and _number(text) is not None:
            columns = ", ".join(TIME_COLUMNS)
            told = f"must be a time with its unit, not {text!r}; add it, or call the column one of {columns}."
            raise ValueError(told)
        if factor is None:
            return _measurable(parse_quantity(text, "time", positive=True), text)
        number = _number(text)
        if number is None or number <= 0:
            raise ValueError(f"must be a positive number, not {text!r}.{_ungrouped(text)}")
        if number * Fraction(factor) >= LARGEST:
            raise ValueError(f"must be a positive number below {LARGEST / factor:g}, not {text!r}.")
        return _measurable(float(number) * factor, text)

    return read


def _measurable(ns: float, text: str) -> float:
    if ns < LEAST_NS:
        raise ValueError(f"must be a time of at least {LEAST_NS:g} ns, not {text!r}.")
    return ns


def _number(text: str) -> Fraction | None:
    return Fraction(text) if _DIGITS.fullmatch(text) else None


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line with its number, leaving out empty ones and those that begin with #."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            cells = next(csv.reader(io.StringIO(line), skipinitialspace=True))
            yield number, [cell.strip() for cell in cells]
