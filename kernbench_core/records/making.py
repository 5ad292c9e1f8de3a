"""Make records of classes: `define` those whose fields may be set, `frozen` those that stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kernbench_core.records import methods
from kernbench_core.records.fields import Field, all_fields, own_fields
from kernbench_core.records.methods import CACHED, Later

_ORDER: Final = ("__lt__", "__le__", "__gt__", "__ge__")
#: What stays behind where a class is made anew.
_LEFT: Final = ("__dict__", "__weakref__")


def define(cls: type | None = None, **asked: Any) -> Any:
    """Make a class a record whose fields may be set, in the words of attrs."""
    return _decorated(cls, False, **asked)


def frozen(cls: type | None = None, **asked: Any) -> Any:
    """Make a class a record whose fields stay as they are, in the words of attrs."""
    return _decorated(cls, True, **asked)


def _decorated(
    cls: type | None,
    frozen: bool,
    *,
    eq: bool = True,
    repr: bool = True,
    order: bool = False,
    kw_only: bool = False,
    slots: bool = True,
    cache_hash: bool = False,
) -> Any:
    def make(cls: type) -> type:
        own = own_fields(cls, kw_only)
        fields = all_fields(cls, own)
        stays = frozen or getattr(cls, "__record_frozen__", False)
        if not stays and any(each.converter or each.validators for each in own):
            raise TypeError(f"{cls.__name__} must be frozen to convert or check fields; attrs does it for others.")
        added: dict[str, Any] = {
            "__record_fields__": fields,
            "__record_frozen__": stays,
            "__match_args__": tuple(each.name for each in fields if each.init and not each.kw_only),
        }
        if slots:
            added |= {"__getstate__": methods.get_state, "__setstate__": methods.set_state}
        if stays:
            added |= {"__setattr__": methods.refuse_set, "__delattr__": methods.refuse_delete}
        if order:
            added |= {name: methods.ordered(name) for name in _ORDER}
        added = {name: value for name, value in added.items() if name not in cls.__dict__}
        made = _slotted(cls, own, added, cache_hash) if slots else _in_place(cls, own, added)
        _add_methods(made, eq=eq, repr=repr, hashable=stays)
        return made

    return make if cls is None else make(cls)


def _add_methods(cls: type, *, eq: bool, repr: bool, hashable: bool) -> None:
    """Add the methods that are made later; those that the class has itself stay."""
    own = cls.__dict__
    later: dict[str, Callable[[type], Any]] = {"__attrs_attrs__": methods.make_fields}
    later["__attrs_init__" if "__init__" in own else "__init__"] = (
        methods.make_attrs_init if "__init__" in own else methods.make_init
    )
    if repr and "__repr__" not in own:
        later["__repr__"] = methods.make_repr
    if eq and "__eq__" not in own:
        later["__eq__"] = methods.make_eq
        if hashable:
            later["__hash__"] = methods.make_hash
    for name, make in later.items():
        if name != "__hash__" or own.get("__hash__") is None:
            setattr(cls, name, Later(cls, name, make))
    if eq and "__eq__" in later and not hashable and own.get("__hash__") is None:
        cls.__hash__ = None  # type: ignore[assignment]


def _in_place(cls: type, own: list[Field], added: dict[str, Any]) -> type:
    """Give a class what is added, without slots."""
    for each in own:
        if each.name in cls.__dict__:
            delattr(cls, each.name)
    for name, value in added.items():
        setattr(cls, name, value)
    return cls


def _slotted(cls: type, own: list[Field], added: dict[str, Any], cache_hash: bool) -> type:
    """Make the class anew, with slots for its own fields: only that gives a class slots."""
    names = {each.name for each in own}
    body = {name: value for name, value in cls.__dict__.items() if name not in names and name not in _LEFT}
    taken = {name for base in cls.__mro__[1:-1] for name in _slots_of(base)}
    slots = [each.name for each in own if each.name not in taken]
    if not any("__weakref__" in base.__dict__ for base in cls.__mro__[1:-1]):
        slots.append("__weakref__")
    if cache_hash:
        slots.append(CACHED)
    body |= added | {"__slots__": tuple(slots), "__qualname__": cls.__qualname__}
    made: type = type(cls)(cls.__name__, cls.__bases__, body)
    for value in body.values():
        _point_at(made, cls, getattr(value, "fget", None) or getattr(value, "__func__", value))
    return made


def _slots_of(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _point_at(made: type, cls: type, function: Any) -> None:
    """Have `super()` and `__class__` in a method mean the class that was made."""
    for cell in getattr(function, "__closure__", None) or ():
        try:
            if cell.cell_contents is cls:
                cell.cell_contents = made
        except ValueError:  # an empty cell
            continue
