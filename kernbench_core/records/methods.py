"""The methods of records: those that are written for each class, when one is first asked for, and those of all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kernbench_core.records.fields import NOTHING, Factory, Field


class Later:
    """Stand for a method of a class until somebody asks for it: then it is made, and takes the place."""

    __slots__ = ("_cls", "_make", "_name")

    def __init__(self, cls: type, name: str, make: Callable[[type], Any]) -> None:
        self._cls, self._name, self._make = cls, name, make

    def __get__(self, record: object, kind: type | None = None) -> Any:
        made = self._make(self._cls)
        setattr(self._cls, self._name, made)
        return made.__get__(record, kind) if hasattr(made, "__get__") else made


def _written(cls: type, name: str, head: str, lines: Sequence[str], names: dict[str, Any]) -> Any:
    """Return a function of a class that has these lines; `names` are those that it knows."""
    source = "\n    ".join((f"def {name}({head}):", *lines))
    space = {"__name__": __name__, **names}
    exec(compile(source, f"<{name} of {cls.__module__}.{cls.__qualname__}>", "exec"), space)
    made = space[name]
    made.__module__, made.__qualname__ = cls.__module__, f"{cls.__qualname__}.{name}"
    made.__doc__ = f"Method made for class {cls.__name__}."
    return made


def fields_of(cls: Any) -> tuple[Field, ...]:
    """Return the fields of a record's class."""
    fields: tuple[Field, ...] = cls.__record_fields__
    return fields


def make_init(cls: Any) -> Any:
    """Return `__init__`: it converts, sets and checks the fields in their order, as attrs has it."""
    return _init(cls, "__init__")


def make_attrs_init(cls: Any) -> Any:
    """Return `__attrs_init__`, for a class whose own `__init__` calls it."""
    return _init(cls, "__attrs_init__")


def _init(cls: Any, name: str) -> Any:
    names: dict[str, Any] = {"NOTHING": NOTHING, "_bind": object.__setattr__.__get__}
    fields = fields_of(cls)
    lines = list(_assignments(cls, fields, names))
    for each in fields:
        for number, check in enumerate(each.validators):
            names[f"_v{number}_{each.name}"], names[f"_a_{each.name}"] = check, each
            lines.append(f"_v{number}_{each.name}(self, _a_{each.name}, self.{each.name})")
    if hasattr(cls, "__attrs_post_init__"):
        lines.append("self.__attrs_post_init__()")
    heads: dict[bool, list[str]] = {False: ["self"], True: []}
    annotations: dict[str, Any] = {}
    for each in fields:
        if each.init:
            heads[each.kw_only].append(each.alias + _default(each, names))
            if each.converter is None and each.type is not None:
                annotations[each.alias] = each.type
    head = [*heads[False], *(["*", *heads[True]] if heads[True] else [])]
    made = _written(cls, name, ", ".join(head), lines or ["pass"], names)
    made.__annotations__ = {**annotations, "return": None}
    return made


def _default(each: Field, names: dict[str, Any]) -> str:
    """Return what stands behind the name of a parameter."""
    if each.default is NOTHING:
        return ""
    if isinstance(each.default, Factory):
        return "=NOTHING"
    names[f"_d_{each.name}"] = each.default
    return f"=_d_{each.name}"


def _assignments(cls: Any, fields: Sequence[Field], names: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that set the fields; what is frozen is set past its own refusal."""
    if cls.__record_frozen__ and fields:
        yield "_set = _bind(self)"
    for each in fields:
        form = f"_set({each.name!r}, {{}})" if cls.__record_frozen__ else f"self.{each.name} = {{}}"
        if each.converter is not None:
            names[f"_c_{each.name}"] = each.converter
            form = form.format(f"_c_{each.name}({{}})")
        if isinstance(each.default, Factory):
            names[f"_f_{each.name}"] = each.default.factory
            made = form.format(f"_f_{each.name}({'self' if each.default.takes_self else ''})")
            if each.init:
                yield f"if {each.alias} is NOTHING: {made}"
                yield f"else: {form.format(each.alias)}"
            else:
                yield made
        elif each.init:
            yield form.format(each.alias)
        elif each.default is not NOTHING:
            names[f"_d_{each.name}"] = each.default
            yield form.format(f"_d_{each.name}")


def make_eq(cls: Any) -> Any:
    """Return `__eq__`: of one class, field by field."""
    same = " and ".join(f"self.{each.name} == other.{each.name}" for each in fields_of(cls) if each.eq)
    lines = ["if other.__class__ is not self.__class__: return NotImplemented", f"return {same or True}"]
    return _written(cls, "__eq__", "self, other", lines, {})


def make_hash(cls: Any) -> Any:
    """Return `__hash__`, of the fields that are compared."""
    values = "".join(f", self.{each.name}" for each in fields_of(cls) if each.hash)
    names = {"_kind": hash(f"{cls.__module__}.{cls.__qualname__}"), "_set": object.__setattr__}
    lines = [f"return hash((_kind{values}))"]
    if CACHED in cls.__dict__:
        lines = [
            f"try: return self.{CACHED}",
            f"except AttributeError: _set(self, {CACHED!r}, hash((_kind{values})))",
            f"return self.{CACHED}",
        ]
    return _written(cls, "__hash__", "self", lines, names)


CACHED: Final = "_record_hash"
"""Where a class that keeps its hash keeps it."""


def make_repr(cls: Any) -> Any:
    """Return `__repr__`: how it could be made, field by field; what holds itself is told as `...`."""
    names = {f"_r_{each.name}": each.repr for each in fields_of(cls) if callable(each.repr)}
    parts = ", ".join(
        f"{each.name}={{{f'_r_{each.name}(self.{each.name})' if callable(each.repr) else f'self.{each.name}!r'}}}"
        for each in fields_of(cls)
        if each.repr
    )
    lines = [
        "held = _under_way()",
        "if id(self) in held: return '...'",
        "held.add(id(self))",
        f"try: return f'''{{self.__class__.__qualname__.rsplit('>.', 1)[-1]}}({parts})'''",
        "finally: held.discard(id(self))",
    ]
    return _written(cls, "__repr__", "self", lines, {**names, "_under_way": _under_way})


_THREAD = threading.local()


def _under_way() -> set[int]:
    """Return the records whose repr this thread is about to tell."""
    held: set[int] | None = getattr(_THREAD, "held", None)
    if held is None:
        held = _THREAD.held = set()
    return held


def ordered(name: str) -> Callable[[Any, Any], Any]:
    """Return a comparison of records of one class by their fields in order, `__lt__` for instance."""

    def compare(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        names = [each.name for each in fields_of(type(self)) if each.eq]
        mine, others = (tuple(getattr(record, each) for each in names) for record in (self, other))
        return getattr(mine, name)(others)

    compare.__name__ = name
    return compare


def make_fields(cls: Any) -> Any:
    """Return what attrs calls the fields of a class of its own: of records, too, `attrs.fields` tells all."""
    import attrs

    def told(each: Field) -> Any:
        given: Any = attrs.NOTHING if each.default is NOTHING else each.default
        if isinstance(given, Factory):
            given = attrs.Factory(given.factory, takes_self=given.takes_self)  # type: ignore[call-overload]
        said: Any = attrs.field  # whose overloads know no default that may be of any kind
        return said(
            default=given, validator=list(each.validators) or None, converter=each.converter, repr=each.repr,
            eq=each.eq, hash=None if each.hash == each.eq else each.hash, init=each.init, kw_only=each.kw_only,
            alias=each.alias, type=each.type,
        )  # fmt: skip

    twin = attrs.make_class(cls.__name__, {each.name: told(each) for each in fields_of(cls)})
    return attrs.fields(twin)


def refuse_set(self: Any, name: str, value: object) -> None:
    """Refuse to change what is frozen."""
    from attrs.exceptions import FrozenInstanceError

    raise FrozenInstanceError()


def refuse_delete(self: Any, name: str) -> None:
    """Refuse to change what is frozen."""
    from attrs.exceptions import FrozenInstanceError

    raise FrozenInstanceError()


def get_state(self: Any) -> dict[str, Any]:
    """Return the fields by name, for copies and pickles."""
    return {each.name: getattr(self, each.name) for each in fields_of(type(self))}


def set_state(self: Any, state: dict[str, Any]) -> None:
    """Take the fields that are known to a pickle."""
    put = object.__setattr__
    for each in fields_of(type(self)):
        if each.name in state:
            put(self, each.name, state[each.name])
