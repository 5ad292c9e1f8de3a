"""Numbers with a unit inside expressions: how they are written there, and which kind a result of theirs is of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Final, TypeAlias

from attrs import frozen

from kernbench_core.units import DIMENSIONS, closest_unit

Known: TypeAlias = bool | int | float | str
_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {unit: kind.name for kind in DIMENSIONS.values() for unit in kind.units}
)
_UNIT: Final = "|".join(re.escape(unit) for unit in sorted(_KINDS, key=len, reverse=True))
_NUMBER: Final = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_QUOTED: Final = r"'[^']*'|\"[^\"]*\""
_BARE: Final = re.compile(rf"{_QUOTED}|(?<![\w.])(?P<found>{_NUMBER}\s*(?:{_UNIT}))(?!\w)")
_WHOLE: Final = re.compile(rf"\s*([-+]?{_NUMBER})\s*({_UNIT})\s*")
_SLIP: Final = re.compile(rf"{_QUOTED}|(?<![\w.])(?P<number>{_NUMBER})\s*(?P<unit>[^\W\d][\w/]*)")
_WORDS: Final = frozenset({"and", "or", "if", "else", "not", "in", "is", "for"})
#: What the product of two kinds is, where that has a unit.
_PRODUCTS: Final[Mapping[frozenset[str], str]] = MappingProxyType(
    {
        frozenset({"bandwidth", "time"}): "size",
        frozenset({"length", "time_per_length"}): "time",
    }
)


@frozen
class UnitNumber:
    """A number of a `dimension` of `units.DIMENSIONS`, in kernbench's own unit; "" where that is no longer known.

    What is `lenient` may stand beside a plain number: its name says its unit, as that of `time_ns`.
    """

    value: int | float
    dimension: str
    lenient: bool = False

    def __str__(self) -> str:
        return DIMENSIONS[self.dimension].text(self.value) if self.dimension else f"{self.value:.10g}"


def as_known(value: Known | UnitNumber) -> Known | UnitNumber:
    """Return a value as an expression computes with it: of the text of a quantity, "400 GB/s", the quantity."""
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value)):
        return _quantity(match[1], match[2])
    return value


def bare_quantities(text: str) -> tuple[str, Mapping[int, UnitNumber]]:
    """Replace quantities without quotes by `_`, so that Python's parser takes the text.

    Return the text, its columns as before, and what stood at each column, which is counted in bytes.
    """
    found: dict[int, UnitNumber] = {}

    def replaced(match: re.Match[str]) -> str:
        if match["found"] is None:
            return match[0]
        whole = _WHOLE.fullmatch(match["found"])
        assert whole is not None
        found[len(text[: match.start()].encode())] = _quantity(whole[1], whole[2])
        return "_".ljust(len(match[0].encode()))

    return _BARE.sub(replaced, text), found


def mistaken_unit(text: str) -> str:
    """Return what is wrong with the first number that has something like a unit behind it, "" where none has."""
    for match in _SLIP.finditer(text):
        unit = match["unit"]
        if unit is not None and unit not in _KINDS and unit not in _WORDS:
            near = closest_unit(unit, _KINDS)
            hint = f" Did you mean '{match['number']} {near}'?" if near else " Units are as those of a configuration."
            return f"{unit!r} behind {match['number']} must be a unit, and there is none of this name.{hint}"
    return ""


def combined(name: str, given: Sequence[Known | UnitNumber], found: int | float) -> Known | UnitNumber:
    """Return what an operator or function gave, `found`, with the kind that it is of."""
    quantities = [each for each in given if isinstance(each, UnitNumber)]
    kind = _kind(name, given, [each.dimension for each in quantities]) if quantities else None
    return found if kind is None else UnitNumber(found, kind, any(each.lenient for each in quantities))


def _kind(name: str, given: Sequence[Known | UnitNumber], kinds: Sequence[str]) -> str | None:
    """Return the kind of a result: None for a plain number, "" where it may be anything."""
    same = len(set(kinds)) == 1
    if name == "log2" or (name in ("/", "//") and same and len(kinds) == 2):
        return None
    if name in ("*", "/") and len(kinds) == 2:
        return _product(kinds) if name == "*" else _quotient(*kinds)
    if name in ("**", "sqrt", "//") or (name == "/" and not isinstance(given[0], UnitNumber)):
        return ""
    return kinds[0] if same else ""


def _product(kinds: Sequence[str]) -> str:
    return _PRODUCTS.get(frozenset(kinds), "") if len(set(kinds)) == 2 else ""


def _quotient(above: str, below: str) -> str:
    pairs = (pair for pair, product in _PRODUCTS.items() if product == above and below in pair)
    return next((other for pair in pairs for other in pair - {below}), "")


def _quantity(number: str, unit: str) -> UnitNumber:
    kind = DIMENSIONS[_KINDS[unit]]
    exact = Fraction(number) * kind.units[unit]
    return UnitNumber(int(exact) if kind.integral and exact.denominator == 1 else float(exact), kind.name)
