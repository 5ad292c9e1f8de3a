"""Quantities with units: the one place where text becomes nanoseconds, bytes and bytes per nanosecond, and back.

Inside kernbench a time is float nanoseconds, a bandwidth float bytes per nanosecond (= GB/s), a size integer bytes,
a length float millimetres, a frequency float gigahertz (= cycles per nanosecond), a transfer rate float GT/s.
Outside, every one is text that carries its unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

GRID_NS = 2.0**-16
"""The grid of simulated time, in nanoseconds: sums of its multiples are exact in a float64 up to `EXACT_NS`."""

EXACT_NS = 2.0**37
"""Simulated time that a run may reach, in nanoseconds (137 s): a float64 holds 53 bits, 16 of them below 1 ns."""

_GRID_PER_NS = 2.0**16
LARGEST = 10**18
"""No quantity or number of a configuration reaches this, in kernbench's own unit."""


def grid_ceil(ns: float) -> float:
    """Round a duration in ns up to the time grid; the grid value below it is never returned for a positive rest."""
    return math.ceil(ns * _GRID_PER_NS) * GRID_NS


def as_float(number: float) -> float:
    """Return a number of any class, as numpy's, as Python's own float; TypeError for text and for what is no number."""
    return math.ldexp(number, 0)  # `float` takes text, too, and C does not


@frozen
class Dimension:
    """What kind of quantity a value is: its name in messages, its units and the unit that examples use."""

    name: str
    noun: str
    article: str = "a"
    units: Mapping[str, Fraction] = field(factory=lambda: MappingProxyType({}))
    example_unit: str = ""
    integral: bool = False

    def phrase(self, positive: bool, minimum: float | None, maximum: float | None = None) -> str:
        """Return what a value must be, as it stands in a sentence after "must be"."""
        what = f"a positive {self.noun}" if positive else f"{self.article} {self.noun}".strip()
        if maximum is None:
            return what if positive or minimum is None else f"{what} of at least {self.text(minimum)}"
        if positive or minimum is None:
            return f"{what} of at most {self.text(maximum)}"
        return f"{what} from {self.text(minimum)} to {self.text(maximum)}"

    def text(self, value: float) -> str:
        """Write a value of this dimension (in kernbench's own unit) with the dimension's usual unit."""
        if not self.units:
            return f"{value:.10g}"
        return f"{float(Fraction(value) / self.units[self.example_unit]):.10g} {self.example_unit}"


def _units(others: Mapping[str, Fraction] = MappingProxyType({}), **factors: str) -> Mapping[str, Fraction]:
    named = {name.replace("_per_", "/"): Fraction(factor) for name, factor in factors.items()}
    return MappingProxyType(named | dict(others))


_MICRO = {"µs": Fraction(1000), "\u03bcs": Fraction(1000)}  # micro sign and Greek mu: keyboards differ
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_DECIMAL = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BITS = {"kb": 10**3, "Mb": 10**6, "Gb": 10**9, "Tb": 10**12}
_SIZES = {name: Fraction(factor) for name, factor in (_DECIMAL | _BINARY).items()}
_RATES = {f"{name}/s": factor / 10**9 for name, factor in _SIZES.items()}
_RATES |= {f"{name}/s": Fraction(factor, 8 * 10**9) for name, factor in _BITS.items()} | {"B/ns": Fraction(1)}

DIMENSIONS: Mapping[str, Dimension] = MappingProxyType(
    {
        d.name: d
        for d in (
            Dimension(
                "time", "time", units=_units(_MICRO, ps="1/1000", ns="1", us="1000", ms="1e6", s="1e9"),
                example_unit="ns",
            ),
            Dimension("bandwidth", "bandwidth", units=MappingProxyType(_RATES), example_unit="GB/s"),
            Dimension("size", "size", units=MappingProxyType(_SIZES), example_unit="B", integral=True),
            Dimension("length", "length", units=_units(um="1/1000", mm="1", cm="10", m="1000"), example_unit="mm"),
            Dimension("time_per_length", "time per length", units=_units(ps_per_mm="1/1000", ns_per_mm="1"),
                      example_unit="ns/mm"),
            Dimension("frequency", "frequency", units=_units(Hz="1e-9", kHz="1e-6", MHz="1/1000", GHz="1"),
                      example_unit="GHz"),
            Dimension("transfer_rate", "transfer rate", units=MappingProxyType(
                {"MT/s": Fraction(1, 1000), "GT/s": Fraction(1)}), example_unit="GT/s"),
            Dimension("int", "integer", "an", integral=True),
            Dimension("float", "number"),
            Dimension("bool", "truth value (true or false)"),
            Dimension("str", "text", ""),
            Dimension("table", "table of numbers"),
        )
    }
)  # fmt: skip
"""Every dimension that a parameter or a configuration key can have, by name."""

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?"
"""What stands before a unit, as a regular expression."""
_QUANTITY = re.compile(rf"({NUMBER})\s*([^\s\d].*)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?![\d,])")
"""A number with commas between its thousands, which no quantity has: elsewhere they stand for a decimal point."""


def parse_quantity(
    value: object,
    dimension: str,
    *,
    positive: bool = False,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """Turn a configuration value into kernbench's own unit for its dimension.

    Returns float for time (ns), bandwidth (B/ns), length (mm), time_per_length (ns/mm), frequency (GHz), transfer_rate
    (GT/s) and float; int for size (bytes) and int; bool and str as they are.

    Raises:
        ValueError: the value does not fit; the text starts with "must be" and may end with "Did you mean …?".
    """
    kind = DIMENSIONS[dimension]
    if dimension in ("bool", "str"):
        wanted = bool if dimension == "bool" else str
        if not isinstance(value, wanted):
            raise ValueError(f"must be {kind.phrase(False, None)}, not {value!r}.")
        return value
    floor = 0.0 if kind.units and minimum is None and not positive else minimum
    number, hint = _number(value, kind)
    bad = number is None or (positive and number <= 0) or (floor is not None and number < floor)
    bad = bad or (maximum is not None and number is not None and number > maximum)
    if bad or (kind.integral and number is not None and number.denominator != 1):
        must = kind.phrase(positive, minimum if not (kind.units and minimum is None) else None, maximum)
        raise ValueError(f"must be {must}, not {value!r}.{hint}")
    assert number is not None
    return int(number) if kind.integral else float(number)


def _number(value: object, kind: Dimension) -> tuple[Fraction | None, str]:
    """Read the exact number in a value, or None; the second item says what was probably meant."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None, ""
    if not isinstance(value, str):
        if not math.isfinite(value):
            return None, ""
        if kind.units:
            return None, f" Did you mean '{value:g} {kind.example_unit}'?" if value else ""
        return (Fraction(value), "") if abs(value) < LARGEST else (None, " That is too large to be meant.")
    if _GROUPED.match(value.strip()):
        plain = value.strip().replace(",", "")
        number, hint = _number(plain, kind)
        return None, hint if number is None else f" Did you mean {plain!r}?"
    match = _QUANTITY.fullmatch(value.strip()) if kind.units else None
    if match is None:
        return None, ""
    digits, unit = match.groups()
    factor = kind.units.get(unit or "")
    if factor is None:
        elsewhere = unit is None or any(unit in each.units for each in DIMENSIONS.values())
        near = kind.example_unit if elsewhere else closest_unit(str(unit), kind.units)
        hint = f" Did you mean '{digits} {near}'?" if near else f" Its units are {', '.join(kind.units)}."
        return None, hint if Fraction(digits) else ""
    number = Fraction(digits) * factor
    return (number, "") if abs(number) < LARGEST else (None, " That is too large to be meant.")


def closest_unit(unit: str, known: Iterable[str]) -> str:
    """Return the unit that differs in upper and lower case alone, or in `ps` for `/s` or `K` for `KiB`; "" for none."""
    for byte in ("\0", "b"):  # a small b is a bit, where there are bits
        folded = {name.replace("B", byte).lower(): name for name in reversed(list(known))}
        for written in (unit, re.sub(r"ps$", "/s", unit), f"{unit}iB"):  # 64K is meant as nccl-tests takes it
            if near := folded.get(written.replace("B", byte).lower()):
                return near
    return ""


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    for size, unit in steps:
        if abs(value) >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / steps[-1][0]:.4g} {steps[-1][1]}"


def format_time(ns: float) -> str:
    """Write a time in ns with the unit that reads best, to four digits: `12.5 ns`, `3.41 us`."""
    return _scaled(ns, ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"), (1e-3, "ps"))) if ns else "0 ns"


def format_bytes(count: float) -> str:
    """Write a size in bytes with a binary unit, to four digits: `64 KiB`."""
    return _scaled(count, ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")))


def format_bandwidth(bytes_per_ns: float) -> str:
    """Write a bandwidth in bytes per ns with a decimal unit, to four digits: `25.6 GB/s`."""
    return _scaled(bytes_per_ns, ((1e3, "TB/s"), (1.0, "GB/s"), (1e-3, "MB/s"), (1e-6, "kB/s"), (1e-9, "B/s")))


def format_flops(per_ns: float) -> str:
    """Write a rate in FLOP per ns as FLOP/s, to four digits: `4.096 TFLOP/s`."""
    steps = ((1e6, "PFLOP/s"), (1e3, "TFLOP/s"), (1.0, "GFLOP/s"))
    return _scaled(per_ns, (*steps, (1e-3, "MFLOP/s"), (1e-6, "kFLOP/s"), (1e-9, "FLOP/s")))


def format_count(count: float) -> str:
    """Write a plain count, to four digits above a thousand: `950`, `12.4 k`, `3.1 M`."""
    return f"{count:g}" if abs(count) < 1e4 else _scaled(count, ((1e9, "G"), (1e6, "M"), (1e3, "k")))


def finite(number: float | None) -> float | str | None:
    """Return `number`, or its name if JSON has no way to write it: "inf", "-inf" or "nan"."""
    return number if number is None or math.isfinite(number) else str(number)
