"""An axis of a sweep: what is varied, and the values that it takes, as the command line and plans write them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from attrs import frozen

from kernbench_builtin.sweeps.ranges import ValueRange, is_range, parse_range
from kernbench_core.topology.strict_yaml import plain, read_objects, read_yaml
from kernbench_core.wording import brief

SET, PARAM, TOPOLOGY = "set", "param", "topology"
TARGETS: Final = (SET, PARAM, TOPOLOGY)
"""What an axis varies: a key of the configuration, a parameter of the bench, or the whole machine."""

#: An array that a kernel alone is given, whose shape has commas of its own.
_NEW_ARRAY = re.compile(r"(?:empty|zeros):\w+:[\d,]+")
#: A text that may stand in YAML without quotes.
_PLAIN = re.compile(r"[\w./%+-]([\w ./%*+-]*[\w./%*+-])?")


@frozen
class Axis:
    """One thing that is varied: its `name`, what that is of, and its `values`, or a `range` that a sampler chooses of.

    `name` is the key of the configuration, the parameter of the bench, or "topology".
    """

    name: str
    target: str
    values: tuple[Any, ...] = ()
    range: ValueRange | None = None

    def at(self, fraction: float) -> object:
        """Return the value at a fraction of the axis, from 0 to 1: each of its values has an equal part of that."""
        if self.range is not None:
            return self.range.at(fraction)
        return self.values[min(int(fraction * len(self.values)), len(self.values) - 1)]

    def looked_at(self) -> tuple[Any, ...]:
        """Return the values that are checked before anything runs: all, or the ends of a range."""
        return self.values if self.range is None else self.range.ends()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        told: dict[str, Any] = {"name": self.name, "target": self.target}
        return told | ({"values": list(self.values)} if self.range is None else {"range": self.range.to_json()})

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Axis:
        """Return the axis that `to_json` told of."""
        found = told.get("range")
        return cls(told["name"], told["target"], tuple(told.get("values", ())), found and ValueRange.from_json(found))


def read_axis(name: str, target: str, text: str) -> Axis:
    """Read the values of an axis as the command line has them; ValueError that begins with "must" for what is none.

    _Values stand between commas; those inside brackets or quotes are of one value. Any of them may be a range.
    """
    return _axis(name, target, [_item(part, target) for part in split_values(text)], text)


def axis_of(name: str, target: str, given: object) -> Axis:
    """Return the axis of what Python or a plan gives: values in a row, a text that is a range, or one value."""
    one_by_one = isinstance(given, list | tuple | range) or getattr(given, "ndim", 0) == 1
    items = list(cast("Iterable[object]", given)) if one_by_one else [given]
    found = (parse_range(each) if isinstance(each, str) and is_range(each) else _value(each, name) for each in items)
    return _axis(name, target, found, given)


def _axis(name: str, target: str, items: Iterable[object], given: object) -> Axis:
    values: list[object] = []
    listed = list(items)
    for item in listed:
        if not isinstance(item, ValueRange):
            values.append(item)
        elif not item.is_open:
            values += item.values()
        elif len(listed) == 1:
            return Axis(name, target, (), item)
        else:
            raise ValueError("must not mix values with a range that has no count.")
    if not values:
        raise ValueError(f"must have a value, not {brief(given)}.")
    seen: set[tuple[str, str]] = set()
    for value in values:
        known = (type(value).__name__, value_text(value))
        if known in seen:
            raise ValueError(f"must have each value once, and has {brief(value)} twice.")
        seen.add(known)
    return Axis(name, target, tuple(values))


def _value(given: object, name: str) -> object:
    return plain(read_objects(given, name))


def _item(text: str, target: str) -> object:
    """Return what a part of an axis is: a range, or a value as YAML reads it where that is written as it stands."""
    if is_range(text):
        return parse_range(text)
    if target == SET or text[:1] in ("'", '"'):
        return plain(read_yaml(text or "null", f"value {brief(text)}", positions=False))
    found = plain(read_yaml(text, "value", positions=False)) if re.fullmatch(r"[-+.\w]+", text) else text
    return found if value_text(found) == text else text


def value_text(value: object) -> str:
    """Write a value as a person gives it: `64`, `0.25`, `true`, `100 GB/s`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def setting_text(value: object) -> str:
    """Write a value of the configuration so that YAML reads the same: a text that looks like a number is quoted."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) is not None
    if is_plain and plain(read_yaml(str(value), "value", positions=False)) == value:
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def ends_of(name: str) -> list[str]:
    """Return the ends of a dotted name, the shortest first: "c", "b.c" and "a.b.c" of "a.b.c"."""
    parts = name.split(".")
    return [".".join(parts[at:]) for at in reversed(range(len(parts)))]


def short_names(names: Iterable[str]) -> list[str]:
    """Return the shortest ends of dotted names that tell them apart."""
    ends = [ends_of(name) for name in names]
    count = Counter(end for each in ends for end in each)
    return [next((end for end in each if count[end] == 1), each[-1]) for each in ends]


def split_values(text: str) -> list[str]:
    """Divide a text at the commas that stand in no bracket and no quotes; `empty:f32:8,4` is one value."""
    found: list[str] = []
    for part in _parts(text):
        if found and part.strip().isdecimal() and _NEW_ARRAY.fullmatch(found[-1]):
            found[-1] += f",{part.strip()}"
        else:
            found.append(part.strip())
    return found


def _parts(text: str) -> Iterator[str]:
    depth, quote, begun = 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[begun:at]
            begun = at + 1
    yield text[begun:]
