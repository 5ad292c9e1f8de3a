"""Ranges as a person writes them: `1..9:lin:5`, `100..800GB/s:log:4`, `1..64:pow2`, and `1..9` for a sampler."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from attrs import field, frozen

from kernbench_core.params import did_you_mean
from kernbench_core.units import DIMENSIONS, Dimension
from kernbench_core.wording import brief

#: How many values one range may have.
MOST_VALUES: Final = 10**6
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_RANGE = re.compile(rf"({_NUMBER})\s*([^\d\s.:]\S*?)?\s*\.\.\s*({_NUMBER})\s*([^\d\s:]\S*?)?\s*(?::(.*))?")
_MEANT = re.compile(r"[-+]?\.?\d[^\"']*?\.\.\s*[-+]?\.?\d")
_WHOLE = re.compile(r"[-+]?\d+")
_FORM = "LOW..HIGH, LOW..HIGH:lin:N, LOW..HIGH:log:N or LOW..HIGH:pow2"
_DIGITS = 6


def is_range(text: str) -> bool:
    """Whether a text is meant as a range; a path with `..` in it is not."""
    return _MEANT.match(text.strip()) is not None


@frozen
class ValueRange:
    """All from `low` to `high`, in the units that they are written with, or `count` of it; 0 for any.

    `scale` is "lin", "log" or "pow2" (each the double of the one before). Where both ends are integers, so is what is
    between them.
    """

    low: Fraction
    high: Fraction
    scale: str = "lin"
    count: int = 0
    units: tuple[str, str] = ("", "")
    whole: bool = field(default=False, kw_only=True)

    @property
    def is_open(self) -> bool:
        """Whether a sampler must choose of it, as nothing says how many values it has."""
        return self.count == 0 and self.scale != "pow2"

    def values(self) -> tuple[object, ...]:
        """Return the values that it says, in order, each once; none of an open one."""
        if self.scale == "pow2":
            doubles = range(int(math.log2(self._most / self._least)) + 2)
            found = [self._least * 2**times for times in doubles if self._least * 2**times <= self._most]
            return tuple(dict.fromkeys(map(self.written, found)))
        steps = max(self.count - 1, 1)
        return tuple(dict.fromkeys(self._between(Fraction(at, steps)) for at in range(self.count)))

    def at(self, fraction: float) -> object:
        """Return the value at a fraction from 0 to 1 of an open range."""
        if not self.whole:
            return self._between(Fraction(fraction))
        if self.scale == "log":
            low, high = float(self.low), float(self.high) + 1
            return min(int(self.high), int(low * (high / low) ** fraction))
        return min(int(self.high), int(self.low) + int(fraction * float(self.high - self.low + 1)))

    def ends(self) -> tuple[object, object]:
        """Return the lowest and the highest value."""
        return self.written(self._least), self.written(self._most)

    def _between(self, fraction: Fraction) -> object:
        if fraction in (0, 1) or self.scale != "log":
            return self.written(self._least + (self._most - self._least) * fraction)
        return self.written(Fraction(float(self._least) * float(self._most / self._least) ** float(fraction)))

    def written(self, number: Fraction) -> object:
        """Write a number, in kernbench's own unit, as a person would: `64`, `0.25`, "282.843 GB/s"; ends exactly."""
        end = next((each for each in (0, 1) if number == (self._least, self._most)[each]), None)
        if not self.units[0]:
            rounded = float(number) if end is not None else float(f"{float(number):.{_DIGITS}g}")
            return math.floor(number + Fraction(1, 2)) if self.whole else rounded
        if end is not None:
            given = (self.low, self.high)[end]
            return f"{given if given.denominator == 1 else float(given)} {self.units[end]}"
        kind = _dimension(self.units[0])
        number = Fraction(math.floor(number + Fraction(1, 2))) if kind.integral else number
        unit = self.units[1] if number >= kind.units[self.units[1]] else self.units[0]
        text = f"{float(number / kind.units[unit]):.{_DIGITS}g} {unit}"
        if kind.integral and Fraction(text.split()[0]) * kind.units[unit] != number:
            return f"{number} B"
        return text

    @property
    def _least(self) -> Fraction:
        return self.low * self._factor(0)

    @property
    def _most(self) -> Fraction:
        return self.high * self._factor(1)

    def _factor(self, end: int) -> Fraction:
        unit = self.units[end]
        return _dimension(unit).units[unit] if unit else Fraction(1)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"low": str(self.low), "high": str(self.high), "scale": self.scale, "count": self.count,
                "units": list(self.units), "whole": self.whole}  # fmt: skip

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> ValueRange:
        """Return the range that `to_json` told of."""
        low, high = told["units"]
        return cls(Fraction(told["low"]), Fraction(told["high"]), told["scale"], told["count"], (low, high),
                   whole=told["whole"])  # fmt: skip


def parse_range(text: str) -> ValueRange:
    """Read a range; ValueError, with a text that begins with "must be", for what is none."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"must be a range as {_FORM}, not {brief(text)}.")
    low, low_unit, high, high_unit, rest = found.groups()
    unit = high_unit or low_unit or ""
    units = (low_unit or unit, unit)
    for each in units:
        _check_unit(each, text)
    if unit and _dimension(units[0]) is not _dimension(units[1]):
        raise ValueError(f"must be a range of one kind of quantity, not from {units[0]} to {units[1]}.")
    scale, count = _spacing(rest, text)
    whole = not unit and _WHOLE.fullmatch(low) is not None and _WHOLE.fullmatch(high) is not None
    made = ValueRange(Fraction(low), Fraction(high), scale, count, units, whole=whole)
    if made._least >= made._most:
        raise ValueError(f"must be a range that rises, not {brief(text)}.")
    if scale != "lin" and made._least <= 0:
        raise ValueError(f"must be a range above 0 for {scale!r}, not {brief(text)}.")
    return made


def _spacing(rest: str | None, text: str) -> tuple[str, int]:
    """Read what stands behind a range: the scale and how many values."""
    if rest is None:
        return "lin", 0
    scale, *counts = (part.strip() for part in rest.split(":"))
    if scale not in ("lin", "log", "pow2") or len(counts) > (scale != "pow2"):
        raise ValueError(f"must be a range as {_FORM}, not {brief(text)}.")
    if not counts:
        return scale, 0
    count = int(counts[0]) if counts[0].isdecimal() and len(counts[0]) < 9 else 0
    if not 2 <= count <= MOST_VALUES:
        raise ValueError(f"must have from 2 to {MOST_VALUES:,} values, not {brief(counts[0])}.")
    return scale, count


def _check_unit(unit: str, text: str) -> None:
    if unit and unit not in _UNITS:
        hint = did_you_mean(unit, _UNITS)
        raise ValueError(f"must have a unit that there is, not {unit!r} in {brief(text)}.{hint}")


_UNITS: Mapping[str, Dimension] = {unit: kind for kind in DIMENSIONS.values() for unit in kind.units}


def _dimension(unit: str) -> Dimension:
    return _UNITS[unit]


def in_numbers(value: object) -> float | None:
    """Return a value as a number in kernbench's own unit: "100 GB/s" is 100.0, `true` 1.0; None for other texts."""
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    found = re.fullmatch(rf"({_NUMBER})\s*([^\d\s].*)?", value.strip())
    if found is None or (found[2] is not None and found[2] not in _UNITS):
        return None
    return float(Fraction(found[1]) * (_UNITS[found[2]].units[found[2]] if found[2] else 1))
