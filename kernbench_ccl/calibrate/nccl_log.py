"""nccl-tests' text output: the columns of its table as its header names them, ranks from its list of devices.

Source: NVIDIA nccl-tests, whose binaries are called after the collective (all_reduce_perf) and print one line a rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import define, frozen

from kernbench_core.errors import ConfigError
from kernbench_core.units import LARGEST

#: The words of a header's first line, in order, that a table of nccl-tests begins with.
_HEADER = ("size", "count", "type")
_OPTIONAL = ("redop", "root")
#: What MPI writes before the lines of a process.
_PREFIX = re.compile(r"^\ufeff?\s*(?:\[\d+\]|\d+:)?")
_RANK = re.compile(r"Rank\s+(\d+)\s.*device")
_BINARY = re.compile(r"\b([a-z][a-z_]*?)_perf(?:_mpi)?\b")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NOT_MEASURED = ("N/A", "n/a", "-")
#: What `kernbench ccl` prints above its own table, which is one of nccl-tests.
_OWN = re.compile(r"([a-z_]+): (\d+) ranks, the SIPs of ")
#: nccl-tests' names of dtypes, and ours; what has no counterpart is simulated by one of its size.
DTYPES = {
    "float": "f32", "half": "f16", "bfloat16": "bf16", "double": "f64", "int8": "int8", "uint8": "uint8",
    "int32": "int32", "uint32": "int32", "int64": "int64", "uint64": "int64", "f8e4m3": "f8e4m3", "f8e5m2": "f8e5m2",
    "fp8_e4m3": "f8e4m3", "fp8_e5m2": "f8e5m2",
}  # fmt: skip
REDOPS = {"sum": "sum", "prod": "product", "max": "max", "min": "min", "avg": "avg", "none": None}
_KNOWN_DTYPES = {**DTYPES, **{name: name for name in DTYPES.values()}}
_KNOWN_REDOPS = {**REDOPS, "product": "product"}


@frozen
class NcclLine:
    """One line of a table: the line of its file, its size in bytes, dtype, reduction and root, and both times in ns.

    A time is None where it was not measured; `redop` None where nothing is reduced.
    """

    line: int
    size: int
    dtype: str
    redop: str | None
    root: int
    out_of_place: float | None
    in_place: float | None


@frozen
class NcclTable:
    """The lines of one table with what stands above it: the collective and the ranks, None where nothing says."""

    collective: str | None
    ranks: int | None
    lines: tuple[NcclLine, ...]
    at: int


@define
class _Reading:
    """What is known at a line: collective, ranks, and the columns of the table that it is in."""

    collective: str | None = None
    ranks: set[int] | None = None
    columns: tuple[str, ...] = ()
    at: int = 0


def is_nccl(text: str) -> bool:
    """Tell whether a text has the header of a table of nccl-tests."""
    return any(_columns(words) for _, words in _lines(text))


def read_nccl(name: str, text: str) -> list[NcclTable]:
    """Return the tables of a log, one for each header.

    Raises:
        ConfigError: lines of a table are not what its header says, or there is none; `problems` has every fault.
    """
    now = _Reading()
    tables: list[NcclTable] = []
    lines: list[NcclLine] = []
    problems: list[str] = []

    def end() -> None:
        if lines:
            ranks = None if not now.ranks else max(now.ranks) + 1
            tables.append(NcclTable(now.collective, ranks, tuple(lines), now.at))
            lines.clear()

    for number, words in _lines(text):
        whole = " ".join(words)
        columns = _columns(words)
        if columns:
            end()
            now.columns, now.at = columns, number
        elif own := _OWN.match(whole):
            end()
            now = _Reading(own[1], {int(own[2]) - 1})
        elif rank := _RANK.search(whole):
            if now.columns:  # a new test has begun
                end()
                now = _Reading(now.collective)
            now.ranks = (now.ranks or set()) | {int(rank[1])}
        elif found := _BINARY.search(whole):
            end()
            now = _Reading(found[1])
        elif now.columns and words[0].isdigit():
            one = _line(number, words, now.columns)
            if isinstance(one, NcclLine):
                lines.append(one)
            else:
                problems += [f"{name}:{number}: {fault}" for fault in one]
    end()
    if not tables and not problems:
        problems.append(
            f"{name}:1: a log of nccl-tests must have a table, a line that begins {' '.join(_HEADER)} and lines of "
            "numbers below it, and this one has none; give the output as it was printed."
        )
    if problems:
        raise ConfigError(*problems)
    return tables


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


def _line(number: int, words: Sequence[str], columns: tuple[str, ...]) -> NcclLine | list[str]:
    """Read one line of a table, or say everything that is wrong with it."""
    if len(words) != len(columns):
        there = f"{len(words)} columns, and its header names {len(columns)}"
        return [f"a line of the table must have a word for each column of its header, not {there}; restore the line."]
    cells = dict(zip(columns[:5], words[:5], strict=True))
    problems: list[str] = []
    size = cells["size"]
    if not size.isdigit() or not int(size):
        problems.append(f"size must be a positive number of bytes, not {size!r}.")
    dtype = _KNOWN_DTYPES.get(cells["type"])
    if dtype is None:
        problems.append(f"type must be one of {', '.join(DTYPES)}, not {cells['type']!r}.")
    redop = cells.get("redop", "none")
    if redop not in _KNOWN_REDOPS:
        problems.append(f"redop must be one of {', '.join(REDOPS)}, not {redop!r}; leave such rows out.")
    times = [_time(words[index], problems) for index, column in enumerate(columns) if column == "time"]
    if problems:
        return problems
    root = int(cells["root"]) if cells.get("root", "-1").isdigit() else 0
    return NcclLine(number, int(size), dtype or "", _KNOWN_REDOPS[redop], root, *[*times, None][:2])


def _time(word: str, problems: list[str]) -> float | None:
    """Return a time in ns; None where nothing was measured."""
    if word in NOT_MEASURED:
        return None
    if not _NUMBER.fullmatch(word) or not 0 < float(word) * 1e3 < LARGEST:
        problems.append(f"time must be a positive number of us or N/A, not {word!r}.")
        return None
    return float(word) * 1e3
