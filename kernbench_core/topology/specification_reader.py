"""Read a specification: from merged configuration to the typed sections of `spec`, with every fault as a sentence."""

from __future__ import annotations

import collections.abc
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import attrs
import cattrs
from cattrs.cols import list_structure_factory, mapping_structure_factory
from cattrs.errors import (
    AttributeValidationNote,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
)
from cattrs.gen import make_dict_structure_fn

from kernbench_core import records
from kernbench_core.errors import ConfigError
from kernbench_core.params import did_you_mean
from kernbench_core.topology.configuration import Config, KeyPath
from kernbench_core.topology.specification import (
    Choices,
    ComponentSpec,
    Derivation,
    OverrideSpec,
    Quantity,
    Spec,
    Text,
    UnitSpec,
)
from kernbench_core.units import parse_quantity
from kernbench_core.wording import MOST_TOLD, brief

_T = TypeVar("_T")


def read_choices(config: Config) -> Choices:
    """Read these sections alone, for messages about them when other sections are wrong; a wrong one reads as empty."""
    converter, pe = _converter(), config.data.get("pe")

    def section(value: Any, kind: Any, empty: Any) -> Any:
        try:
            return converter.structure(value, kind)
        except (ClassValidationError, IterableValidationError, ValueError):
            return empty

    return Choices(
        section(config.data.get("components"), Mapping[str, ComponentSpec], {}),
        section(config.data.get("overrides"), list[OverrideSpec], []),
        section(pe.get("units") if isinstance(pe, Mapping) else None, Mapping[str, UnitSpec], {}),
    )


def read_spec(config: Config) -> Spec:
    """Type the merged configuration.

    Raises:
        ConfigError: one sentence for every unknown or missing key and every value that does not fit.
    """
    return structure(config, Spec)


def structure(config: Config, kind: type[_T]) -> _T:
    """Type the merged configuration as a class of sections; raise ConfigError with every fault."""
    try:
        return _converter().structure(config.data, kind)
    except ClassValidationError as faults:
        problems = []
        for number, (path, text, slip) in enumerate(_flatten(faults, ())):
            hint = did_you_mean(*slip) if slip and number <= MOST_TOLD else ""
            problems.append(f"{config.at(path)} {text}{hint}")
    # outside of the block above: a notebook shows what follows a group of exceptions its own way, with all our lines
    raise ConfigError(*dict.fromkeys(problems))


def read_section(config: Config, name: str, kind: type[_T]) -> _T:
    """Type one section of a configuration that has no others but `title`, `components` and `overrides`.

    Raises:
        ConfigError: one sentence for every unknown or missing key and every value that does not fit.
    """
    whole = _FILES.get((name, kind)) or _FILES.setdefault((name, kind), _file_of(name, kind))
    found: _T = getattr(structure(config, whole), name)
    return found


_FILES: Final[dict[tuple[str, object], type[Any]]] = {}
"""The class of a whole file, by its section of its own and the class of that; a converter keeps each for good."""


def _file_of(name: str, kind: type[Any]) -> type[Any]:
    return attrs.make_class(
        f"FileOf_{name}",
        {
            name: attrs.field(type=kind),
            "components": attrs.field(type=Mapping[str, ComponentSpec]),
            "overrides": attrs.field(type=list[OverrideSpec], factory=list),
            "title": attrs.field(type=Text, default=""),
        },
        frozen=True,
    )


def _quantity_hook(kind: object) -> Callable[[object, object], object]:
    quantity = next(mark for mark in get_args(kind)[1:] if isinstance(mark, Quantity))

    def structure(value: object, _: object) -> object:
        if quantity.auto and value in ("auto", None):
            return None
        try:
            return _converted(quantity, value)
        except ValueError as error:
            if quantity.auto:
                raise ValueError(str(error).replace(", not ", " or auto, not ", 1)) from None
            raise

    return structure


def _converted(quantity: Quantity, value: object) -> object:
    found = parse_quantity(
        value, quantity.dimension, positive=quantity.positive, minimum=quantity.minimum, maximum=quantity.maximum
    )
    if quantity.choices and found not in quantity.choices:
        raise ValueError(f"must be one of {', '.join(map(str, quantity.choices))}, not {brief(value)}.")
    return found


def _is_quantity(kind: object) -> bool:
    return get_origin(kind) is Annotated and any(isinstance(mark, Quantity) for mark in get_args(kind)[1:])


def _is_params(kind: object) -> bool:
    return get_origin(kind) is collections.abc.Mapping and get_args(kind) == (str, object)


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of keys to values, not {brief(value)}.")
    return dict(value)


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"must be a list, not {brief(value)}.")
    return value


@functools.cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    converter.register_structure_hook_factory(_is_quantity, _quantity_hook)
    converter.register_structure_hook_func(_is_params, lambda value, _: dict(_mapping(value)))
    for applies, factory in (
        (records.has, _section_hook),
        (_is_mapping_of_sections, mapping_structure_factory),
        (_is_list, list_structure_factory),
    ):
        converter.register_structure_hook_factory(applies, _guarded(factory, converter))
    return converter


def _section_hook(cls: type[Any], converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    inner = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)
    forms: tuple[Derivation, ...] = getattr(cls, "FORMS", ())
    return (lambda value, target: _with_forms(forms, value, inner(value, target))) if forms else inner


class _KeyFault(ValueError):
    """A fault of one key of a section, found once the section was read; `text` starts with the key."""

    def __init__(self, text: str) -> None:
        self.key, _, rest = text.partition(" ")
        super().__init__(rest)


def _with_forms(forms: tuple[Derivation, ...], given: Mapping[str, object], read: Any) -> Any:
    """Complete a section that was read: each figure is given by itself or by its other form, never by both."""
    for form in forms:
        others = [key for key in form.others if key in given]
        names = " and ".join(form.others)
        if form.key in given and others:
            raise _KeyFault(f"{others[0]} must not stand beside {form.key}: give {form.key}, or {names}, not both.")
        if form.key not in given and len(others) < len(form.others):
            raise ValueError(f"must have {form.key}, or {names}; add what is missing, or start from a preset.")
        if others:
            try:
                figure = form.derive(*(getattr(read, key) for key in form.others))
            except ValueError as fault:
                raise _KeyFault(str(fault)) from None
            read = records.evolve(read, **{form.key: figure})
    return read


def _guarded(factory: Any, converter: cattrs.Converter) -> Callable[[Any], Callable[[Any, Any], Any]]:
    """Refuse a value of the wrong shape with a sentence before cattrs takes it apart."""

    def make(kind: object) -> Callable[[object, object], object]:
        inner = factory(kind, converter)
        check: Callable[[object], object] = _list if _is_list(kind) else _mapping
        return lambda value, target: inner(check(value), target)

    return make


def _is_list(kind: object) -> bool:
    origin: object = get_origin(kind)
    return origin is list


def _is_mapping_of_sections(kind: object) -> bool:
    arguments = get_args(kind)
    return get_origin(kind) is collections.abc.Mapping and records.has(arguments[1])


def _flatten(faults: BaseException, path: KeyPath) -> Iterator[tuple[KeyPath, str, tuple[str, Sequence[str]] | None]]:
    """Yield (key path, rest of the sentence) for every fault inside a cattrs exception group.

    Of an unknown key comes with it what it is, and what is known: a hint takes long where there are many.
    """
    if isinstance(faults, ClassValidationError | IterableValidationError):
        with_notes, without = faults.group_exceptions()
        for fault, note in with_notes:
            key: Any = note.name if isinstance(note, AttributeValidationNote) else note.index
            if isinstance(fault, KeyError):
                yield path, f"must have the key {key!r}; add it, or start from a preset with 'base:'.", None
            else:
                yield from _flatten(fault, (*path, key))
        for fault in without:
            yield from _flatten(fault, path)
    elif isinstance(faults, ForbiddenExtraKeysError):
        known = [a.name for a in records.fields(faults.cl)] + ["base"] * (not path)
        for key in sorted(faults.extra_fields):
            yield (*path, key), "must be a known key.", (key, known)
    elif isinstance(faults, _KeyFault):
        yield (*path, faults.key), str(faults), None
    else:
        yield path, str(faults), None
