"""Strict YAML, read with the place of every key: the only door to PyYAML.

Scalars follow YAML 1.2 (`1e9` is a float, `on` and `yes` are text). Duplicate keys, tags, several documents, aliases
that expand beyond a small budget, files over 4 MiB and nesting deeper than 64 are refused. `read_objects` reads the
same from Python objects.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from attrs import evolve, field, frozen

from kernbench_core.errors import ConfigError
from kernbench_core.wording import brief

MAX_BYTES = 4 * 2**20
"""Largest configuration file that is read."""
MAX_DEPTH = 64
"""Deepest nesting of mappings and lists that is read."""
ALIAS_BUDGET = 2000
"""How many values all aliases of one file may expand to, together."""

#: Documents of more letters are parsed each time.
_KEPT_LETTERS = 1 << 16
#: More digits than these have no text, by which it would be told.
_MOST_INT = 10**300
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@frozen
class Located:
    """A value and the place of its key: a scalar, a dict of Located or a list of Located; `size` counts values.

    `inherited` is a parameter that was given for another implementation than the one that it now stands beside;
    `replaced`, one of those beside which the same layer gives parameters of its own for the new one.
    """

    value: Any
    place: str
    size: int = 1
    inherited: bool = False
    replaced: bool = False


def plain(tree: Located) -> Any:
    """Return the values without their places: dicts, lists and scalars."""
    if isinstance(tree.value, dict):
        return {key: plain(item) for key, item in tree.value.items()}
    if isinstance(tree.value, list):
        return [plain(item) for item in tree.value]
    return tree.value


def read_yaml(text: str, name: str, *, positions: bool = True, deferred: list[str] | None = None) -> Located:
    """Read one YAML document strictly; `positions` adds line and column to the name in the place of a key.

    Raises:
        ConfigError: the text is no such document; duplicate keys are all reported, syntax faults one at a time.
            With `deferred` duplicate keys are not raised but added to it, and the first of each holds.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise ConfigError(f"{name}: file must be at most 4 MiB, not {len(text)} characters; split it with 'base:'.")
    tree, problems = (_parsed if len(text) <= _KEPT_LETTERS else _parsed.__wrapped__)(text, name, positions)
    if problems and deferred is None:
        raise ConfigError(*problems)
    if deferred is not None:
        deferred.extend(problems)
    return tree


@functools.lru_cache(maxsize=64)
def _parsed(text: str, name: str, positions: bool) -> tuple[Located, tuple[str, ...]]:
    """Return a document, which nobody changes, and what is wrong with it though it could be read on.

    The last ones are remembered: every point of a sweep is laid over the same files.
    """
    composer = _Composer(name, positions)
    try:
        tree = composer.document(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        place = composer.place_of(mark) if mark else name
        raise ConfigError(f"{place}: text must be valid YAML, but {fault.problem}.") from None
    except yaml.YAMLError as fault:
        raise ConfigError(f"{name}: text must be valid YAML, but {' '.join(str(fault).split())}.") from None
    return tree, tuple(composer.problems)


def read_objects(given: object, name: str) -> Located:
    """Read what YAML would give from Python objects: mappings with texts as keys, lists, tuples and scalars.

    The place of a value is its path below `name`, as in "topology.cube.pes". Scalars of numpy become Python's. Raise
    ConfigError for everything else.
    """
    return _read_object(given, name, 1)


def _read_object(value: Any, place: str, depth: int) -> Located:
    if depth > MAX_DEPTH:
        raise ConfigError(f"{place[:80]}…: nesting must be at most {MAX_DEPTH} deep; flatten it.")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ConfigError(f"{place}: key must be text, not {brief(key)}.")
        return Located({key: _read_object(item, f"{place}.{key}", depth + 1) for key, item in value.items()}, place)
    if isinstance(value, list | tuple):
        items = [_read_object(item, f"{place}.{number}", depth + 1) for number, item in enumerate(value)]
        return Located(items, place)
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if value is None or isinstance(value, bool | str | float) or (isinstance(value, int) and abs(value) < _MOST_INT):
        return Located(value, place)
    raise ConfigError(
        f"{place}: value must be text, a number, true or false, None, a list or a mapping, not {brief(value)}."
    )


@frozen
class _Composer:
    """Build a located tree from YAML events, counting depth and alias expansion on the way."""

    name: str
    positions: bool
    problems: list[str] = field(factory=list)
    anchors: dict[str, Located] = field(factory=dict)
    expanded: list[int] = field(factory=lambda: [0])

    def document(self, events: Iterator[Any]) -> Located:
        tree: Located | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if tree is not None:
                    raise ConfigError(f"{self.place(event)}: file must hold one YAML document, not several.")
                tree = self.node(next(events), events, 1, None)
        return Located({}, f"{self.name}:1:1") if tree is None else tree

    def place(self, event: Any) -> str:
        return self.place_of(event.start_mark)

    def place_of(self, mark: Any) -> str:
        return f"{self.name}:{mark.line + 1}:{mark.column + 1}" if self.positions else self.name

    def node(self, event: Any, events: Iterator[Any], depth: int, place: str | None) -> Located:
        place = place or self.place(event)
        if isinstance(event, yaml.AliasEvent):
            return evolve(self.alias(event), place=place)
        if event.tag is not None:
            raise ConfigError(f"{place}: value must have no tag, not {brief(event.tag)}; drop it.")
        if isinstance(event, yaml.ScalarEvent):
            tree = Located(_scalar(event.value) if event.style in (None, "") else event.value, place)
        elif depth > MAX_DEPTH:
            raise ConfigError(f"{place}: nesting must be at most {MAX_DEPTH} deep; flatten the file.")
        elif isinstance(event, yaml.SequenceStartEvent):
            tree = self.sequence(events, depth, place)
        else:
            tree = self.mapping(events, depth, place)
        if event.anchor is not None:
            self.anchors[event.anchor] = tree
        return tree

    def sequence(self, events: Iterator[Any], depth: int, place: str) -> Located:
        items: list[Located] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self.node(event, events, depth + 1, None))
        return Located(items, place, 1 + sum(item.size for item in items))

    def mapping(self, events: Iterator[Any], depth: int, place: str) -> Located:
        items: dict[str, Located] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key, at = plain(self.node(event, events, depth + 1, None)), self.place(event)
            item = self.node(next(events), events, depth + 1, at)
            if not isinstance(key, str):
                self.problems.append(f"{at}: key must be text, not {brief(key)}; quote it.")
            elif key in items:
                self.problems.append(f"{at}: key {key!r} must appear once, but it is also at {items[key].place}.")
            else:
                items[key] = item
        return Located(items, place, 1 + sum(item.size for item in items.values()))

    def alias(self, event: Any) -> Located:
        target = self.anchors.get(event.anchor)
        if target is None:
            raise ConfigError(f"{self.place(event)}: alias must name a finished anchor, not {brief(event.anchor)}.")
        self.expanded[0] += target.size
        if self.expanded[0] > ALIAS_BUDGET:
            raise ConfigError(
                f"{self.place(event)}: aliases must expand to at most {ALIAS_BUDGET} values in one file; "
                "write the values out."
            )
        return target


_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def _scalar(text: str) -> object:
    """Resolve a plain scalar by the core schema of YAML 1.2."""
    if _NULL.fullmatch(text):
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    special = _SPECIAL.fullmatch(text)
    if special:
        return float("nan") if special[3] else float(f"{special[1]}inf")
    return text
