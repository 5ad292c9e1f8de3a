"""What a DRAM controller is asked by `kernbench probe --dram`: address patterns, turns of reads and writes, traces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from attrs import frozen

from kernbench_builtin.components.dram import DramGeometry, DramPlace
from kernbench_core.errors import UsageError
from kernbench_core.units import LARGEST, format_bytes, grid_ceil
from kernbench_core.values import Region
from kernbench_core.wording import brief

PATTERNS = ("sequential", "stride", "random", "rows", "onebank")
#: Patterns that name banks and rows.
_BANKED = ("rows", "onebank")
#: Rows of a bank that patterns go over.
ROWS = 4096
_MOST_LINES = 1_000_000
_MOST_FAULTS = 20
_LINE = re.compile(r"(\S+)\s+(\S+)\s+(\S+)\s+(\S+)")

READ, WRITE = 0, 1
#: (bank, row) of a burst.
RowPlace = tuple[int, int]
#: (READ or WRITE, bursts): what one request asks of one pseudo-channel.
RequestPart = tuple[int, list[RowPlace]]
#: (READ or WRITE, bursts by pseudo-channel): what one request asks.
AskedPlaces = tuple[int, dict[int, list[RowPlace]]]

#: (ns, operation, ranges): a request of a trace.
Timed = tuple[float, str, tuple[Region, ...]]


@frozen
class DramCase:
    """Say what a controller is asked: `requests` of `chunk` bytes by `pattern`, `stride` bytes apart for stride.

    `read_ratio` is the fraction of reads, which ones follows `seed` as random addresses do; with `turns` (R, W) it is R
    reads and W writes in turn instead. With `chain`, reads of one burst go to random places beside them, each sent when
    the one before is answered, and it is these whose latency is measured.
    """

    pattern: str
    chunk: int
    requests: int
    read_ratio: float = 1.0
    stride: int = 4096
    seed: int = 0
    turns: tuple[int, int] | None = None
    chain: bool = False

    @property
    def reads(self) -> float:
        """The fraction of the requests that are reads."""
        return self.read_ratio if self.turns is None else self.turns[0] / sum(self.turns)


def check(case: DramCase, g: DramGeometry, impl: str) -> None:
    """Raise UsageError when a controller cannot be asked this."""
    if case.pattern in _BANKED and g.address is None:
        raise UsageError(
            f"pattern {case.pattern} must have a controller with banks, but {impl} has none; choose a model "
            "with banks for hbm_ctrl, or another pattern."
        )
    if case.pattern in _BANKED and (case.chunk % g.burst_bytes or case.chunk > g.row_bytes):
        raise UsageError(
            f"--chunk must be whole bursts of {g.burst_bytes} B in a row of {format_bytes(g.row_bytes)} for "
            f"pattern {case.pattern}, not {format_bytes(case.chunk)}."
        )
    if case.pattern == "stride" and case.stride > g.span_bytes // 2:
        raise UsageError(
            f"--stride must be at most {format_bytes(g.span_bytes // 2)}, half of the addresses that the probe "
            f"uses, not {format_bytes(case.stride)}."
        )
    if case.chunk > g.span_bytes // 16:
        raise UsageError(f"--chunk must be at most {format_bytes(g.span_bytes // 16)}, not {format_bytes(case.chunk)}.")


def workload(case: DramCase, g: DramGeometry) -> Iterator[tuple[str, tuple[Region, ...]]]:
    """Yield (operation, physical ranges) of every request."""
    rng = np.random.default_rng(case.seed)
    reads = (rng.random(case.requests) < case.read_ratio).tolist()
    if case.turns is not None:
        reads = [index % sum(case.turns) < case.turns[0] for index in range(case.requests)]
    span = g.span_bytes
    slots = rng.integers(0, span // case.chunk, case.requests).tolist() if case.pattern == "random" else []
    step = case.stride if case.pattern == "stride" else case.chunk
    turns = max(1, (span - case.chunk) // step)
    banked, chunk = case.pattern in _BANKED, case.chunk
    for index, read in enumerate(reads):
        op = "read" if read else "write"
        if not banked:
            base = slots[index] * chunk if slots else index % turns * step
            yield op, (Region(base, chunk),)
        elif case.pattern == "onebank":
            yield op, _of_a_row(g, DramPlace(0, 0, index % ROWS, 0), chunk)
        else:
            channel, bank, row = (int(rng.integers(0, most)) for most in (g.channels, g.banks, ROWS))
            column = int(rng.integers(0, g.row_bytes // chunk)) * (chunk // g.burst_bytes)
            yield op, _of_a_row(g, DramPlace(channel, bank, row, column), chunk)


def asked(case: DramCase, g: DramGeometry, together: int = 1) -> list[AskedPlaces]:
    """Return of each request of a case what it asks of each pseudo-channel, or of so many `together`."""
    return [(READ if op == "read" else WRITE, places_of(regions, g, together)) for op, regions in workload(case, g)]


def parts(requests: Iterable[AskedPlaces]) -> dict[int, list[RequestPart]]:
    """Return what each pseudo-channel of a controller with banks is asked, in order."""
    found: dict[int, list[RequestPart]] = {}
    for kind, by_channel in requests:
        for channel, places in by_channel.items():
            found.setdefault(channel, []).append((kind, places))
    return found


def places_of(regions: tuple[Region, ...], g: DramGeometry, together: int = 1) -> dict[int, list[RowPlace]]:
    """Return the bursts of a request, by pseudo-channel; or by so many `together`, whose banks follow each other."""
    assert g.locate is not None
    found: dict[int, list[RowPlace]] = {}
    for region in regions:
        first = region.base // g.burst_bytes * g.burst_bytes
        for at in range(first, region.base + region.nbytes, g.burst_bytes):
            place = g.locate(at)
            first, behind = divmod(place.channel, together)
            found.setdefault(first, []).append((behind * g.banks + place.bank, place.row))
    return found


def chain(case: DramCase, g: DramGeometry) -> Iterator[tuple[str, tuple[Region, ...]]]:
    """Yield dependent reads that go beside a case, without end: one burst each, anywhere."""
    rng = np.random.default_rng(case.seed + 2)
    while True:
        slot = int(rng.integers(0, g.span_bytes // g.burst_bytes))
        yield "read", (Region(slot * g.burst_bytes, g.burst_bytes),)


def _of_a_row(g: DramGeometry, first: DramPlace, chunk: int) -> tuple[Region, ...]:
    """Return `chunk` bytes that follow each other in a row, as the ranges of its bursts."""
    burst, address = g.burst_bytes, g.address
    assert address is not None
    places = (DramPlace(first.channel, first.bank, first.row, first.column + n) for n in range(chunk // burst))
    return tuple(Region(address(place), burst) for place in places)


def read_trace(path: str, g: DramGeometry, capacity: int) -> list[Timed]:
    """Return the requests of a file: a line each, `ns R|W address bytes`; empty lines and `#` comments are none.

    Raises UsageError with every fault (the first twenty) as FILE:LINE. What is asked must lie in `capacity` bytes.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        if "\0" in text:
            raise UnicodeError
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"--trace must be a file that can be read, not {brief(path)}: {reason}.") from None
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise UsageError(f"--trace must have at most {_MOST_LINES:,} lines, not {len(lines):,}; cut {path}.")
    found: list[Timed] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        told = line.partition("#")[0].strip()
        if not told:
            continue
        faults: list[str] = []
        request = _request(told, found[-1][0] if found else 0.0, g, capacity, faults)
        found += [request] if request else []
        problems += [f"{path}:{number}: {fault}" for fault in faults]
    if problems:
        left = len(problems) - _MOST_FAULTS
        raise UsageError("\n".join(problems[:_MOST_FAULTS] + ([f"and {left} more"] if left > 0 else [])))
    if not found:
        raise UsageError(f"--trace must have at least one request, 'ns R|W address bytes' a line, but {path} has none.")
    return found


def _request(line: str, before: float, g: DramGeometry, capacity: int, faults: list[str]) -> Timed | None:
    """Return one request; None, and in `faults` what it must be, where it is none."""
    parts = _LINE.fullmatch(line)
    if parts is None:
        faults.append(f"a request must be four words, 'ns R|W address bytes', not {brief(line)}.")
        return None
    when, kind, address, size = parts.groups()
    time = _number(when, "ns", float, faults)
    if time is not None and time < before:
        faults.append(f"ns must not fall from request to request, not {when} after {before:g}; sort the lines.")
    if kind not in ("R", "W"):
        faults.append(f"the operation must be R or W, not {brief(kind)}.")
    base, nbytes = _number(address, "the address", int, faults), _number(size, "bytes", int, faults)
    most = min(g.span_bytes // 16, capacity)
    if nbytes is not None and not 1 <= nbytes <= most:
        faults.append(f"bytes must be from 1 to {most}, not {size}.")
    elif nbytes is not None and base is not None and base + nbytes > capacity:
        whole = f"{nbytes} bytes of a slice of {format_bytes(capacity)}"
        faults.append(f"the address must be at most {capacity - int(nbytes):#x} for {whole}, not {address}.")
    if faults or time is None or base is None or nbytes is None:
        return None
    return grid_ceil(time), "read" if kind == "R" else "write", (Region(int(base), int(nbytes)),)


def _number(text: str, what: str, kind: type[int] | type[float], faults: list[str]) -> float | None:
    """Return what a word says; None, and in `faults` what it must be, where it is no such number."""
    try:
        value = int(text, 0) if kind is int else float(text)
    except ValueError:
        value = -1
    if 0 <= value < LARGEST:
        return value
    noun = "a whole number of at least 0, as 0x1f40" if kind is int else "a number of at least 0, as 12.5"
    faults.append(f"{what} must be {noun}, not {brief(text)}.")
    return None
