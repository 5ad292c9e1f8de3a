"""What is asked of records, in the words of attrs: copies with other values, their fields, what they hold."""

from __future__ import annotations

from typing import Any

from kernbench_core.records.fields import Field


class Fields(tuple[Field, ...]):
    """The fields of a class, in order and by their names."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Field:
        for each in self:
            if each.name == name:
                return each
        raise AttributeError(f"there is no field {name!r}")


def fields(cls: Any) -> Any:
    """Return the fields of a class; of one that attrs made, as attrs tells them."""
    for base in cls.__mro__:
        if "__record_fields__" in vars(base):
            return Fields(vars(base)["__record_fields__"])
        if "__attrs_attrs__" in vars(base):
            break
    import attrs

    return attrs.fields(cls)


def has(cls: Any) -> bool:
    """Tell whether a class is a record, or one of attrs'."""
    kind = getattr(cls, "__origin__", cls)
    return isinstance(kind, type) and any("__attrs_attrs__" in vars(base) for base in kind.__mro__)


def evolve(record: Any, **changes: Any) -> Any:
    """Return a record of the same class with other values for some fields."""
    for each in fields(type(record)):
        if each.init and each.alias not in changes:
            changes[each.alias] = getattr(record, each.name)
    return type(record)(**changes)


def asdict(record: Any, *, recurse: bool = True) -> dict[str, Any]:
    """Return what a record holds, by the names of its fields, with `recurse` told throughout; all else is shared."""
    held = {each.name: getattr(record, each.name) for each in fields(type(record))}
    return {name: _held(value) for name, value in held.items()} if recurse else held


def _held(value: Any) -> Any:
    """Return a value with the records in it told; containers are made anew, of their class."""
    if has(type(value)):
        return asdict(value)
    if isinstance(value, tuple | list | set | frozenset):
        told = [_held(each) for each in value]
        return type(value)._make(told) if hasattr(value, "_make") else type(value)(told)
    if isinstance(value, dict):
        return {_held(key): _held(each) for key, each in value.items()}
    return value
