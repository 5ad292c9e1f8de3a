"""Read sections: from merged configuration to typed classes, with every fault as a sentence."""

from __future__ import annotations

import collections.abc
import functools
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

from kernbench_core.errors import ConfigError
from kernbench_core.params import closest, did_you_mean
from kernbench_core.topology.configuration import Config, KeyPath, dotted
from kernbench_core.topology.sections import Choices, ComponentSpec, Derivation, OverrideSpec, Quantity, Text
from kernbench_core.units import parse_quantity
from kernbench_core.wording import MOST_TOLD, brief

_T = TypeVar("_T")
_Reader = Callable[[Any], Any]
"""Type a value, or raise Faults, or a ValueError that says what is wrong with it."""
_LACKS = "must have the key"
ReadingFault: TypeAlias = "tuple[KeyPath, str, tuple[str, Sequence[str]] | None]"
"""The path of a key, the rest of the sentence, and of an unknown key what it is and what is known, for a hint."""


class Faults(Exception):
    """What is wrong with a configuration where it is typed, `found` in order."""

    def __init__(self, found: list[ReadingFault]) -> None:
        super().__init__(found)
        self.found = found


def faults_of(error: Exception, *key: str | int) -> list[ReadingFault]:
    """Return what an error says of the value below a key."""
    if isinstance(error, Faults):
        return [((*key, *path), text, slip) for path, text, slip in error.found]
    return [(key, str(error), None)]


def read_choices(config: Config, units: tuple[KeyPath, type[ComponentSpec]] | None = None) -> Choices:
    """Read these sections alone, for messages about them when other sections are wrong; a wrong one reads as empty.

    `units` is where further kinds of node are named, and the class of each.
    """

    def section(path: KeyPath, reader: _Reader, empty: Any) -> Any:
        value: Any = config.data
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        try:
            return reader(value)
        except (Faults, ValueError):
            return empty

    components = section(("components",), reader_of(Mapping[str, ComponentSpec]), {})
    overrides = section(("overrides",), reader_of(list[OverrideSpec]), [])
    if units is None:
        return Choices(components, overrides)
    at, kind = units
    return Choices(components, overrides, section(at, functools.partial(_several, reader_of(kind)), {}), at)


def read_whole(config: Config, kind: type[_T]) -> _T:
    """Type the merged configuration as a class whose fields are its sections.

    Raises:
        ConfigError: one sentence for every unknown or missing key and every value that does not fit.
    """
    found: _T = _read_checked(config, reader_of(kind))
    return found


def _read_checked(config: Config, reader: _Reader) -> Any:
    """Type the merged configuration; raise ConfigError with every fault."""
    try:
        return reader(config.data)
    except Faults as faults:
        problems = []
        unknown = {path for path, _, slip in faults.found if slip}
        for number, (path, text, slip) in enumerate(faults.found):
            hint = ""
            if slip and number <= MOST_TOLD:
                known = [*slip[1], "base"] if len(path) == 1 and slip[0] != "base" else slip[1]
                hint = did_you_mean(slip[0], known)
                if not hint.startswith(" Did you mean"):
                    hint = _known_elsewhere(config.data, path, unknown) or hint
            problems.append(f"{config.at(path)} {text}{hint}")
    # outside of the block above: a notebook shows what an exception followed from with all our lines
    raise ConfigError(*dict.fromkeys(problems))


def _known_elsewhere(data: Mapping[str, Any], path: KeyPath, unknown: Collection[KeyPath]) -> str:
    """Return ` Did you mean 'cube.mesh.rows'?` where just one key of this name is nearest to where it was written."""
    near: dict[tuple[int, int], list[KeyPath]] = {}
    for other in _key_paths(data, (), unknown):
        if other[-1] == path[-1]:
            shared = next((at for at, (a, b) in enumerate(zip(path, other, strict=False)) if a != b), len(other))
            near.setdefault((-shared, len(other)), []).append(other)
    found = near[min(near)] if near else []
    return f" Did you mean {dotted(found[0])!r}?" if len(found) == 1 else ""


def _key_paths(data: Mapping[str, Any], path: KeyPath, unknown: Collection[KeyPath]) -> Iterator[KeyPath]:
    """Yield the path of each key of mappings in mappings, but for those that are unknown and what is below them."""
    for key, value in data.items():
        at = (*path, key)
        if at not in unknown:
            yield at
            if isinstance(value, Mapping):
                yield from _key_paths(value, at, unknown)


def read_section(config: Config, name: str, kind: type[_T]) -> _T:
    """Type one section of a configuration that has no others but `title`, `components` and `overrides`.

    Raises:
        ConfigError: one sentence for every unknown or missing key and every value that does not fit.
    """
    known = {
        name: (reader_of(kind), True),
        "components": (reader_of(Mapping[str, ComponentSpec]), True),
        "overrides": (reader_of(list[OverrideSpec]), False),
        "title": (reader_of(Text), False),
    }
    found: _T = _read_checked(config, _keys(known))[name]
    return found


def reader_of(kind: Any) -> _Reader:
    """Return what types a value as a kind: a quantity, a section, or several by name or in a list."""
    marks, arguments = get_args(kind)[1:], get_args(kind)
    if get_origin(kind) is Annotated:
        for mark in marks:
            if isinstance(mark, Quantity):
                return functools.partial(_quantity, mark)
        return reader_of(arguments[0])
    if get_origin(kind) in (Union, types.UnionType) and len(arguments) == 2 and arguments[1] is type(None):
        inner = reader_of(arguments[0])
        return lambda value: None if value is None else inner(value)
    if get_origin(kind) is collections.abc.Mapping and arguments == (str, object):
        return _mapping
    if get_origin(kind) is collections.abc.Mapping and attrs.has(arguments[1]):
        return functools.partial(_several, reader_of(arguments[1]))
    if get_origin(kind) is list:
        return functools.partial(_listed, reader_of(arguments[0]))
    if attrs.has(kind):
        return _section(kind)
    raise TypeError(f"a field of a section must have a type of kernbench_core.topology.sections, not {kind!r}")


def _quantity(quantity: Quantity, value: object) -> object:
    if quantity.auto and value in ("auto", None):
        return None
    try:
        return _converted(quantity, value)
    except ValueError as error:
        if quantity.auto:
            raise ValueError(str(error).replace(", not ", " or auto, not ", 1)) from None
        raise


def _converted(quantity: Quantity, value: object) -> object:
    found = parse_quantity(
        value, quantity.dimension, positive=quantity.positive, minimum=quantity.minimum, maximum=quantity.maximum
    )
    if quantity.choices and found not in quantity.choices:
        raise ValueError(f"must be one of {', '.join(map(str, quantity.choices))}, not {brief(value)}.")
    return found


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of keys to values, not {brief(value)}.")
    return dict(value)


def _several(reader: _Reader, value: object) -> dict[str, object]:
    """Type what stands below each key; a name whose section is not whole may be a slip for one whose section is."""
    given = _mapping(value)
    try:
        return {str(key): item for key, item in _each(reader, given.items())}
    except Faults as faults:
        whole = given.keys() - {path[0] for path, _, _ in faults.found}
        raise Faults([_slip_for(fault, whole) for fault in faults.found]) from None


def _slip_for(fault: ReadingFault, names: Collection[str]) -> ReadingFault:
    """Return a fault with the name that was probably meant, where one that is not complete is close to it."""
    path, text, _ = fault
    near = closest(str(path[0]), names) if len(path) == 1 and text.startswith(_LACKS) else ""
    return (path, text, (str(path[0]), [near])) if near else fault


def _listed(reader: _Reader, value: object) -> list[object]:
    """Type each of a list."""
    if not isinstance(value, list):
        raise ValueError(f"must be a list, not {brief(value)}.")
    return [item for _, item in _each(reader, enumerate(value))]


def _each(reader: _Reader, pairs: Iterable[tuple[Any, object]]) -> list[tuple[Any, object]]:
    """Type what stands beside each key, or raise the faults of all."""
    found: list[tuple[Any, object]] = []
    faults: list[ReadingFault] = []
    for key, value in pairs:
        try:
            found.append((key, reader(value)))
        except Exception as error:
            faults += faults_of(error, key)
    if faults:
        raise Faults(faults)
    return found


@functools.cache
def _section(cls: Any) -> _Reader:
    """Return what types a section: each key as its field is annotated."""
    hints = get_type_hints(cls, include_extras=True)
    fields = [each for each in attrs.fields(cls) if each.init]
    keys = _keys({each.name: (reader_of(hints[each.name]), each.default is attrs.NOTHING) for each in fields})
    aliases = {each.name: each.alias for each in fields}
    forms: tuple[Derivation, ...] = getattr(cls, "FORMS", ())

    def read(value: Any) -> Any:
        found = {aliases[name]: item for name, item in keys(value).items()}
        try:
            made = cls(**found)
        except Exception as error:
            raise Faults(faults_of(error)) from None
        return _with_forms(forms, value, made) if forms else made

    return read


def _keys(known: Mapping[str, tuple[_Reader, bool]]) -> Callable[[Any], dict[str, Any]]:
    """Return what types each of the `known` keys of a mapping; those that it must have are True."""

    def read(value: Any) -> dict[str, Any]:
        given, found = _mapping(value), {}
        faults: list[ReadingFault] = []
        for name, (reader, needed) in known.items():
            if name in given:
                try:
                    found[name] = reader(given[name])
                except Exception as error:
                    faults += faults_of(error, name)
            elif needed:
                faults.append(((), f"{_LACKS} {name!r}; add it, or start from a preset with 'base:'.", None))
        for key in sorted(given.keys() - known.keys()):
            faults.append(((key,), "must be a known key.", (key, list(known))))
        if faults:
            raise Faults(faults)
        return found

    return read


class _KeyFault(Faults):
    """A fault of one key of a section, found once the section was read; `text` starts with the key."""

    def __init__(self, text: str) -> None:
        key, _, rest = text.partition(" ")
        super().__init__([((key,), rest, None)])


def _with_forms(forms: tuple[Derivation, ...], given: Mapping[str, object], read: Any) -> Any:
    """Complete a section that was read: each figure is given by itself or by its other form, never by both."""
    for form in forms:
        others = [key for key in form.others if key in given]
        names = " and ".join(form.others)
        if form.key in given and others:
            raise _KeyFault(f"{others[0]} must not be given with {form.key}: give {form.key}, or {names}, not both.")
        if form.key not in given and len(others) < len(form.others):
            raise ValueError(f"must have {form.key}, or {names}; add what is missing, or start from a preset.")
        if others:
            try:
                figure = form.derive(*(getattr(read, key) for key in form.others))
            except ValueError as fault:
                raise _KeyFault(str(fault)) from None
            read = attrs.evolve(read, **{form.key: figure})
    return read
