"""nccl-tests' text output: the columns of its table as its header names them, ranks from its list of devices.

A line must agree with itself: its bandwidth is size over time, its count that of its size, and no data came out wrong.

Source: NVIDIA nccl-tests, whose binaries are called after the collective (all_reduce_perf) and print one line a rank.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import Factory, define, field, frozen

from kernbench_ccl.calibrate.heading import Heading
from kernbench_core.calibration import LEAST_NS
from kernbench_core.units import LARGEST
from kernbench_core.values.dtypes import itemsize

#: The words of a header's first line, in order, that a table of nccl-tests begins with.
_HEADER = ("size", "count", "type")
_OPTIONAL = ("redop", "root")
#: What MPI writes before the lines of a process.
_PREFIX = re.compile(r"^\ufeff?\s*(?:\[\d+\]|\d+:)?")
_RANK = re.compile(r"Rank\s+([0-9]{1,7})\s.*device")
_BINARY = re.compile(r"\b([a-z][a-z_]*?)_perf(?:_mpi)?\b")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")
NOT_MEASURED = ("N/A", "n/a", "-")
TIME_UNITS = {"us": 1e3, "ns": 1.0, "ms": 1e6, "s": 1e9}
#: Columns that have a unit below the header, and which ones are read.
_UNITS = {
    "size": ("(B)",), "count": ("(elements)",), "time": tuple(f"({unit})" for unit in TIME_UNITS),
    "algbw": ("(GB/s)",), "busbw": ("(GB/s)",),
}  # fmt: skip
_WHOLE = re.compile(r"[0-9]{1,40}")
_LONGEST = 100
"""Characters of a word of a table."""
_EXACT = 1e-9
"""What floating point may lose of a bandwidth."""
#: nccl-tests' names of dtypes, and ours; what has no counterpart is simulated by one of its size.
DTYPES = {
    "float": "f32", "half": "f16", "bfloat16": "bf16", "double": "f64", "int8": "int8", "uint8": "uint8",
    "int32": "int32", "uint32": "int32", "int64": "int64", "uint64": "int64", "f8e4m3": "f8e4m3", "f8e5m2": "f8e5m2",
    "fp8_e4m3": "f8e4m3", "fp8_e5m2": "f8e5m2",
}  # fmt: skip
REDOPS = {"sum": "sum", "prod": "product", "max": "max", "min": "min", "avg": "avg", "none": "none"}
_KNOWN_DTYPES = {**DTYPES, **{name: name for name in DTYPES.values()}}
_KNOWN_REDOPS = {**REDOPS, "product": "product"}


@frozen
class NcclLine:
    """One line of a table: the line of its file, its size in bytes, dtype, reduction and root, and both times in ns.

    A time is None where it was not measured; `redop` "none" where nothing is reduced, None where nothing tells. `bus`
    has for each time how it was printed, and the bus bandwidth beside it.
    """

    line: int
    size: int
    dtype: str
    redop: str | None
    root: int
    out_of_place: float | None
    in_place: float | None
    bus: tuple[tuple[str, str], ...] = field(default=(), eq=False, repr=False)


@frozen
class NcclTable:
    """The lines of one table with what stands above it: the collective and the ranks, None where nothing says.

    `heading` has more of one that `kernbench ccl` printed.
    """

    collective: str | None
    ranks: int | None
    lines: tuple[NcclLine, ...]
    at: int
    heading: Heading | None = None


def is_nccl(text: str) -> bool:
    """Tell whether a text has the header of a table of nccl-tests."""
    return any(_columns(words) for _, words in _lines(text))


def read_nccl(name: str, text: str, ranks: int | None = None) -> tuple[list[NcclTable], list[str]]:
    """Return the tables of a log, one for each header, and a sentence for each fault, at its line.

    `ranks` are those that the caller knows of. Lines that are not what their header says, or that contradict
    themselves, are faults, and in no table; a log without a table is one.
    """
    reader = _Reader(name, set() if ranks is None else {ranks})
    for number, words in _lines(text):
        reader.see(number, words)
    reader.end()
    if not reader.tables and not reader.problems:
        reader.problems.append(
            f"{name}:1: a log of nccl-tests must have a table, a line that begins {' '.join(_HEADER)} and lines of "
            "numbers below it, and this one has none; give the output as it was printed."
        )
    return reader.tables, reader.problems


@define
class _Reader:
    """What is known at a line: the collective, the ranks, and the columns and units of the table that it is in."""

    name: str
    given: set[int]
    collective: str | None = None
    ranks: set[int] = Factory(set)
    columns: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    at: int = 0
    empty: bool = True
    heading: Heading | None = None
    lines: list[NcclLine] = Factory(list)
    tables: list[NcclTable] = Factory(list)
    problems: list[str] = Factory(list)

    def see(self, number: int, words: Sequence[str]) -> None:
        """Take one more line."""
        whole = " ".join(words)
        columns = _columns(words)
        if columns:
            if self.columns:
                self.end()
            self.columns, self.at = columns, number
        elif own := Heading.begun(f"{self.name}:{number}", whole):
            self.end(own.collective)
            self.ranks, self.heading = {own.ranks - 1}, own
        elif rank := _RANK.search(whole):
            if self.columns:  # a new test has begun
                self.end()
            self.ranks.add(int(rank[1]))
        elif found := _BINARY.search(whole):
            self.end(None if "concluded" in whole else found[1])
        elif self.heading is not None and not self.columns:
            self.heading.see(whole)
        elif self.columns and words[0].startswith("("):
            self._see_units(number, words)
        elif self.columns and words[0][0].isdigit():
            self.empty = False
            if words[:2] == ["0", "0"]:
                return  # nothing was sent: nccl-tests prints sizes that leave no element to a rank so
            one = self._line(number, words)
            if isinstance(one, NcclLine):
                self.lines.append(one)
            else:
                self._blame(number, one)

    def end(self, collective: str | None = None) -> None:
        """Keep the table, if there is one, and know nothing any more but the next one's collective."""
        if not self.empty:
            ranks = max(self.ranks) + 1 if self.ranks else None
            self.tables.append(NcclTable(self.collective, ranks, tuple(self.lines), self.at, self.heading))
            self.problems += [] if self.heading is None else self.heading.faults
        self.collective, self.ranks, self.columns, self.units, self.lines = collective, set(), (), (), []
        self.empty, self.heading = True, None

    def _blame(self, number: int, faults: Sequence[str]) -> None:
        self.problems += [f"{self.name}:{number}: {fault}" for fault in faults]

    def _see_units(self, number: int, words: Sequence[str]) -> None:
        """Take the units of columns that have one; of times any will do, others are as nccl-tests has them.

        Units of columns that the header has not, as of those in place, are passed over.
        """
        own = [column for column in self.columns if column in _UNITS]
        if len(words) < len(own):
            there = f"{len(words)} for {', '.join(own)}"
            self._blame(number, [f"units must be one for each column that has one, not {there}; restore the line."])
            return
        for column, unit in zip(own, words, strict=False):
            if unit not in _UNITS[column]:
                may = " or ".join(_UNITS[column])
                self._blame(number, [f"the unit of {column} must be {may}, not {unit!r}; convert the column."])
        self.units = tuple(unit for column, unit in zip(own, words, strict=False) if column == "time")

    def _line(self, number: int, words: Sequence[str]) -> NcclLine | list[str]:
        """Read one line of a table, or say everything that is wrong with it."""
        if len(words) != len(self.columns):
            there = f"{len(words)} columns, and its header names {len(self.columns)}"
            return [
                f"a line of the table must have a word for each column of its header, not {there}; restore the line."
            ]
        longest = max(len(word) for word in words)
        if longest > _LONGEST:
            return [f"a word of the table must have at most {_LONGEST} characters, not {longest:,}; restore the line."]
        cells = dict(zip(self.columns[:5], words[:5], strict=True))
        problems: list[str] = []
        size = cells["size"]
        if not _WHOLE.fullmatch(size) or not int(size):
            problems.append(f"size must be a positive number of bytes, not {size!r}.")
        elif int(size) >= LARGEST:
            problems.append(f"size must be below 10^18 B, not {size!r}.")
        dtype = _KNOWN_DTYPES.get(cells["type"])
        if dtype is None:
            problems.append(f"type must be one of {', '.join(DTYPES)}, not {cells['type']!r}.")
        redop = cells.get("redop")
        if redop is not None and redop not in _KNOWN_REDOPS:
            problems.append(f"redop must be one of {', '.join(REDOPS)}, not {redop!r}; leave such rows out.")
        times = self._times(words, problems)
        if problems:
            return problems
        ranks = {1, *self.given, *({max(self.ranks) + 1} if self.ranks else set())}
        faults = _count_faults(int(size), dtype or "", cells["count"], ranks)
        faults += _result_faults(int(size), dict(self._halves(words)), times)
        if faults:
            return faults
        root = int(cells["root"]) if _WHOLE.fullmatch(cells.get("root", "-1")) else 0
        reduction = None if redop is None else _KNOWN_REDOPS[redop]
        bus = tuple((half["time"], half.get("busbw", "N/A")) for _, half in self._halves(words))
        first, second, *_ = [*times, None]
        return NcclLine(number, int(size), dtype or "", reduction, root, first, second, bus)

    def _halves(self, words: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield what was measured out of place (0), and in place (1) if it was, by column."""
        starts = [index for index, column in enumerate(self.columns) if column == "time"]
        for half, (start, end) in enumerate(itertools.pairwise([*starts, len(words)])):
            yield half, dict(zip(self.columns[start:end], words[start:end], strict=True))

    def _times(self, words: Sequence[str], problems: list[str]) -> list[float | None]:
        """Return the times in ns, None where nothing was measured."""
        found: list[float | None] = []
        for half, cells in self._halves(words):
            unit = (self.units[half] if half < len(self.units) else "(us)").strip("()")
            word, factor = cells["time"], TIME_UNITS.get(unit, 1e3)
            number = float(word) * factor if _NUMBER.fullmatch(word) else 0.0
            known = 0 < number < LARGEST
            if number >= LARGEST:
                problems.append(f"time must be below {LARGEST / factor:g} {unit}, not {word!r}.")
            elif 0 < number < LEAST_NS:
                problems.append(f"time must be at least {LEAST_NS / factor:g} {unit}, not {word!r}.")
            elif not known and word not in NOT_MEASURED:
                problems.append(f"time must be a positive number of {unit} or N/A, not {word!r}.")
            found.append(number if known else None)
        return found


def _count_faults(size: int, dtype: str, word: str, ranks: Collection[int]) -> list[str]:
    """Say whether a count is neither that of all elements nor, as of a gather, that of one rank's."""
    item = itemsize(dtype)
    parts = {size // (item * n) for n in ranks if size % (item * n) == 0}
    count = int(word) if _WHOLE.fullmatch(word) else 0
    if count in parts or (ranks == {1} and count and size % (item * count) == 0):
        return []
    return [f"count must be size / {item} B, or one rank's part of that, not {word!r}; restore the line."]


def _result_faults(size: int, halves: Mapping[int, Mapping[str, str]], times: Sequence[float | None]) -> list[str]:
    """Say where a time is not that of the bandwidth beside it, or data came out wrong."""
    found: list[str] = []
    for half, ns in enumerate(times):
        cells = halves[half]
        algbw, wrong = cells.get("algbw", "N/A"), cells.get("#wrong", "N/A")
        if ns is not None and algbw not in NOT_MEASURED and not agree(size, ns, cells["time"], algbw):
            found.append(
                f"algbw must be size / time, which is {size / ns:.4g} GB/s, not {algbw!r}; restore the line, or the "
                "units above it."
            )
        if wrong not in NOT_MEASURED and not (_NUMBER.fullmatch(wrong) and float(wrong) == 0):
            found.append(f"#wrong must be 0 or N/A, not {wrong!r}; leave out what was measured with wrong data.")
    return found


def agree(size: float, ns: float, time: str, algbw: str) -> bool:
    """Tell whether a size (B) over a time is a bandwidth (GB/s), as far as the digits printed of both tell.

    The time is given in ns, and as it was printed.
    """
    if not _NUMBER.fullmatch(algbw) or not 0 <= float(algbw) < LARGEST:
        return False
    slack = ns / float(time) * _half_digit(time)
    least, most = size / (ns + slack), size / (ns - slack)
    return least - _half_digit(algbw) <= float(algbw) * (1 + _EXACT) and float(algbw) <= most * (1 + _EXACT) + (
        _half_digit(algbw)
    )


def _half_digit(word: str) -> float:
    """Return half of the last digit of a number."""
    digits, _, exponent = word.lower().partition("e")
    return float(f"0.5e{int(exponent or 0) - len(digits.partition('.')[2])}")


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each line that has some, without the number of a process and the # before them."""
    for number, line in enumerate(text.splitlines(), 1):
        words = _PREFIX.sub("", line).split()
        rest = " ".join(words).lstrip("# ").split()
        if rest and not (words[0].startswith("#") and rest[0].isdigit()):  # that is a remark, and no line of a table
            yield number, rest


def _columns(words: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a header's line; none for another line."""
    if tuple(words[:3]) != _HEADER:
        return ()
    rest = list(words[3:])
    own = [word for word in _OPTIONAL if word in rest]
    halves = rest[len(own) :]
    if rest[: len(own)] != own or not halves or halves[0] != "time":
        return ()
    return tuple(words)
