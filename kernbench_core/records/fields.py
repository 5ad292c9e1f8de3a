"""The fields of a record: what its class says of each, and those that it has from the classes below it."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final


class _Nothing(enum.Enum):
    NOTHING = enum.auto()

    def __repr__(self) -> str:
        return "NOTHING"

    def __bool__(self) -> bool:
        return False


NOTHING: Final = _Nothing.NOTHING
"""That a field has no default, or was not given."""


class Factory:
    """Have a default made anew for each record, from the record so far where it `takes_self`."""

    __slots__ = ("factory", "takes_self")

    def __init__(self, factory: Callable[..., Any], takes_self: bool = False) -> None:
        self.factory, self.takes_self = factory, takes_self


class Field:
    """One field of a record: what `__init__` calls it is its `alias`, `type` its annotation as it is written."""

    __slots__ = (
        "alias", "converter", "default", "eq", "hash", "init", "kw_only", "name", "repr", "type", "validators",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        default: Any,
        validators: tuple[Callable[..., Any], ...],
        converter: Callable[[Any], Any] | None,
        *,
        repr: bool | Callable[[Any], str],
        eq: bool,
        hash: bool | None,
        init: bool,
        kw_only: bool,
        alias: str | None,
        type: object,
    ) -> None:
        self.name, self.type, self.alias = name, type, alias or name.lstrip("_")
        self.default, self.validators, self.converter = default, validators, converter
        self.repr, self.eq, self.hash, self.init, self.kw_only = repr, eq, eq if hash is None else hash, init, kw_only


class Said:
    """What the body of a class says of a field; there it decorates the methods that go with the field."""

    __slots__ = ("_default", "_more", "_validators")

    def __init__(self, default: Any, validators: tuple[Callable[..., Any], ...], **more: Any) -> None:
        self._default, self._validators, self._more = default, validators, more

    def default(self, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Decorate the method that makes the default."""
        self._default = Factory(method, takes_self=True)
        return method

    def validator(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a method that raises for a wrong value."""
        self._validators = (*self._validators, method)
        return method

    def named(self, name: str, kind: object, kw_only: bool) -> Field:
        """Return the field."""
        more = {**self._more, "kw_only": kw_only or self._more["kw_only"]}
        return Field(name, self._default, self._validators, **more, type=kind)


def field(
    *,
    default: Any = NOTHING,
    factory: Callable[[], Any] | None = None,
    validator: Callable[..., Any] | None = None,
    converter: Callable[[Any], Any] | None = None,
    repr: bool | Callable[[Any], str] = True,
    eq: bool = True,
    hash: bool | None = None,
    init: bool = True,
    kw_only: bool = False,
    alias: str | None = None,
) -> Any:
    """Say more of a field than its type and default, in the words of attrs."""
    given = default if factory is None else Factory(factory)
    return Said(
        given, () if validator is None else (validator,), converter=converter, repr=repr, eq=eq, hash=hash, init=init,
        kw_only=kw_only, alias=alias,
    )  # fmt: skip


def own_fields(cls: type, kw_only: bool) -> list[Field]:
    """Return the fields of a class that its annotations are; TypeError for one without."""
    found = []
    annotations = inspect.get_annotations(cls)
    for name, kind in annotations.items():
        if str(kind).strip("\"'").startswith(("ClassVar", "typing.ClassVar")):
            continue
        given = cls.__dict__.get(name, NOTHING)
        found.append((given if isinstance(given, Said) else field(default=given)).named(name, kind, kw_only))
    for name, value in cls.__dict__.items():
        if isinstance(value, Said) and name not in annotations:
            raise TypeError(f"{cls.__name__}.{name} must have an annotation, as every field; write its type.")
    return found


def all_fields(cls: type, own: Iterable[Field]) -> tuple[Field, ...]:
    """Return the fields of a class behind those that it has from others; ValueError where one must be given too late.

    What a class says of a field that it has from another one counts.
    """
    mine = {each.name: each for each in own}
    inherited: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:-1]):
        for each in _fields_of(base):
            inherited.pop(each.name, None)
            inherited[each.name] = each
    found = (*(each for name, each in inherited.items() if name not in mine), *mine.values())
    optional = False
    for each in found:
        if each.init and not each.kw_only:
            if optional and each.default is NOTHING:
                raise ValueError(f"{cls.__name__}.{each.name} must have a default, as the fields before it have.")
            optional = optional or each.default is not NOTHING
    return found


def _fields_of(cls: type) -> Iterable[Field]:
    """Return the fields of a class that is a record itself, or one of attrs'."""
    fields = cls.__dict__.get("__record_fields__")
    if fields is not None:
        return tuple(fields)
    if "__attrs_attrs__" not in cls.__dict__:
        return ()
    return [_of_attrs(each) for each in cls.__dict__["__attrs_attrs__"]]


def _of_attrs(each: Any) -> Field:
    """Return a field of a class that attrs made."""
    import attrs

    given: Any = NOTHING if each.default is attrs.NOTHING else each.default
    if isinstance(given, attrs.Factory):  # type: ignore[arg-type]  # a class, which its stub calls a function
        given = Factory(given.factory, given.takes_self)
    return Field(
        each.name, given, () if each.validator is None else (each.validator,), each.converter, repr=each.repr,
        eq=each.eq, hash=each.hash, init=each.init, kw_only=each.kw_only, alias=each.alias, type=each.type,
    )  # fmt: skip
