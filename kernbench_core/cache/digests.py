"""Digests of Python values, of functions with all that they name, and of classes: equal where the values are.

A function is its code object, its defaults, what it closes over and the globals that it names, and so on from there.
Code of packages whose files are digested elsewhere is its name; code of libraries is its name and their version.
"""

from __future__ import annotations

import collections
import enum
import functools
import hashlib
import inspect
import logging
import pathlib
import random
import re
import struct
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from kernbench_core.cache.class_facts import CONTAINERS, fields_of, holds_more, is_generated, slots_of
from kernbench_core.cache.code_facts import CodeFacts, code_facts
from kernbench_core.cache.not_cacheable import NotCacheable
from kernbench_core.cache.origins import Origins
from kernbench_core.wording import brief

#: Values that one digest may take in: what is larger is no argument but a world.
_MOST_VALUES: Final = 200_000
_PLAIN: Final = {type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented)}
#: Kinds whose repr says all, whatever library they are from.
_SAID_BY_REPR: Final = (
    "datetime.date", "datetime.datetime", "datetime.timedelta", "datetime.time", "decimal.Decimal",
    "fractions.Fraction", "uuid.UUID", "builtins.range", "builtins.slice", "builtins.bytearray",
)  # fmt: skip
#: What a class has that says nothing of how it behaves.
_NOT_BEHAVIOUR: Final = (
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __firstlineno__ __static_attributes__ _abc_impl "
    "__attrs_attrs__ __attrs_own_setattr__ __attrs_props__ __attrs_base_of_slotted__ __dataclass_fields__ "
    "__dataclass_params__ __match_args__ __slots__ __parameters__ __orig_bases__ __abstractmethods__ __annotations__ "
    "__annotate_func__ __annotations_cache__ __getstate__ __setstate__"
)
_REACHES_ALL: Final = ("eval", "exec", "globals", "__import__")
_SKIPPED: Final = frozenset(_NOT_BEHAVIOUR.split())
_SLOTS: Final = (types.MemberDescriptorType, types.GetSetDescriptorType)
_BUILT_IN: Final = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType, types.MethodWrapperType,
)  # fmt: skip


class Digester:
    """Takes values in, one after the other, and gives the SHA-256 of all of them.

    `origins` says whose code is digested elsewhere, and what files and libraries the rest comes from.
    """

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._hash = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._alive: list[object] = []
        self._count = 0
        self._where: list[str] = []

    @property
    def sha256(self) -> str:
        """The digest of what was taken in until now, in hex."""
        return self._hash.hexdigest()

    def add(self, name: str, value: object) -> None:
        """Take a value in; `name` is what a sentence calls it. Raise NotCacheable for what has no digest."""
        self._where.append(name)
        self._tag("value", name)
        try:
            self._take(value)
        except RecursionError:
            raise self._refused("is nested too deeply") from None
        self._where.pop()

    # Pieces -----------------------------------------------------------------------------------------

    def _tag(self, kind: str, *texts: object) -> None:
        """Take texts in so that no other ones give the same bytes."""
        parts = [str(text).encode("utf-8", "surrogatepass") for text in (kind, *texts)]
        self._hash.update(struct.pack(f"<{len(parts) + 1}q", len(parts), *map(len, parts)))
        self._hash.update(b"".join(parts))

    def _inside(self, name: str, value: object) -> None:
        """Take a part of a value in."""
        self._where.append(name)
        self._take(value)
        self._where.pop()

    def _refused(self, why: str) -> NotCacheable:
        return NotCacheable(f"{_spelled(self._where)} {why}, which no key covers; the run is not kept.")

    def _take(self, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN:
            data = value if kind is bytes else struct.pack("<d", value) if kind is float else None
            self._tag(kind.__name__, repr(value) if data is None else "")
            if data is not None:
                self._tag("bytes", len(data))
                self._hash.update(data)
            return
        before = self._seen.get(id(value))
        if before is not None:
            self._tag("seen", before)
            return
        self._count += 1
        if self._count > _MOST_VALUES:
            raise self._refused(f"is of more than {_MOST_VALUES:,} values")
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        take = _TAKES.get(kind)
        if take is not None:
            take(self, value)
        else:
            self._take_other(value, kind)

    def _take_other(self, value: Any, kind: type) -> None:
        """Take in what has no kind of its own above: an array, a class, an object."""
        whole = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(value, type):
            self._class(value)
        elif kind.__module__.partition(".")[0] in ("numpy", "ml_dtypes") and self._numpy(value, kind):
            pass
        elif whole in _SAID_BY_REPR or kind.__module__ == "typing" or isinstance(value, typing.TypeVar):
            self._tag("repr", whole, repr(value))
        elif isinstance(value, enum.Enum):
            self._tag("enum", value.name)
            self._inside("'s class", kind)
        elif isinstance(value, pathlib.PurePath):
            self._tag("path", whole, str(value))
        elif isinstance(value, re.Pattern):
            self._tag("pattern", value.pattern, value.flags)
        elif isinstance(value, logging.Logger):
            self._tag("logger", value.name)
        elif isinstance(value, random.Random):
            self._tag("random", whole)
            self._inside("'s state", value.getstate())
        elif isinstance(value, functools.partial):
            self._tag("partial")
            self._inside("'s function", value.func)
            self._inside("'s arguments", (value.args, value.keywords))
        elif kind.__module__ == "functools" and hasattr(value, "__wrapped__"):
            self._tag("wrapper", whole)
            self._inside("", value.__wrapped__)
        elif kind.__name__ != "cython_function_or_method" or not self._known(value):
            self._instance(value, kind)

    # Containers -------------------------------------------------------------------------------------

    def _sequence(self, value: Any) -> None:
        self._tag(type(value).__name__, len(value))
        for at, each in enumerate(value):
            self._inside(f"[{at}]", each)

    def _mapping(self, value: Mapping[Any, Any]) -> None:
        self._tag(type(value).__name__, len(value))
        for key, each in value.items():
            self._take(key)
            self._inside(f"[{brief(key)}]", each)

    def _set(self, value: Any) -> None:
        """Take a set in by its members' digests, in their order, as its own order is by chance."""
        found = []
        for each in value:
            one = Digester(self._origins)
            one._where = [*self._where, ""]
            one._take(each)
            found.append(one.sha256)
        self._tag(type(value).__name__, *sorted(found))

    def _default_dict(self, value: Any) -> None:
        self._inside("'s default", value.default_factory)
        self._mapping(value)

    def _deque(self, value: Any) -> None:
        self._tag("limit", value.maxlen)
        self._sequence(value)

    # Arrays -----------------------------------------------------------------------------------------

    def _numpy(self, value: Any, kind: type) -> bool:
        """Take what numpy keeps; say whether it was such a thing."""
        import numpy as np

        if isinstance(value, np.dtype):
            self._tag("dtype", value, value.byteorder)
        elif isinstance(value, np.generic) or kind in (np.ndarray, np.memmap):
            if value.dtype.hasobject:
                raise self._refused("is an array of objects")
            order = value.strides if isinstance(value, np.ndarray) and not value.flags.c_contiguous else ""
            self._tag("array", kind.__name__, value.dtype, value.shape, order)
            self._hash.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
        elif isinstance(value, np.ma.MaskedArray):
            self._tag("masked")
            self._inside("'s data", np.asarray(value.data))
            self._inside("'s mask", np.asarray(np.ma.getmaskarray(value)))
        elif isinstance(value, np.random.Generator | np.random.BitGenerator):
            self._tag("generator", kind.__name__)
            bits = value.bit_generator if isinstance(value, np.random.Generator) else value
            self._inside("'s state", bits.state)
        elif isinstance(value, np.random.RandomState):
            self._tag("random state")
            self._inside("'s state", value.get_state(legacy=False))
        elif isinstance(value, np.ufunc):
            self._tag("ufunc", value.__name__, self._origins.library("numpy"))
        else:
            return False
        return True

    # Code -------------------------------------------------------------------------------------------

    def _known(self, value: types.FunctionType) -> bool:
        """Take in a function that is digested with its module; say whether it is."""
        names = value.__globals__
        known = self._origins.known(str(names.get("__name__", value.__module__)), names)
        if known is not None:
            self._tag("function", known, value.__qualname__, value.__code__.co_firstlineno)
        return known is not None

    def _function(self, value: types.FunctionType) -> None:
        if not self._known(value):
            names = value.__globals__
            self._tag("function", value.__qualname__)
            facts = code_facts(value.__code__)
            self._tag("code", facts.sha256)
            self._inside("'s defaults", value.__defaults__)
            self._inside("'s defaults", value.__kwdefaults__)
            if vars(value):
                self._inside("'s attributes", {k: v for k, v in vars(value).items() if k != "__wrapped__"})
            self._globals(facts, names)
            self._annotations(value.__annotations__)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                held = cell.cell_contents
            except ValueError:
                self._tag("empty cell", name)
                continue
            self._inside(f"'s closure {name!r}", held)

    def _globals(self, facts: CodeFacts, names: Mapping[str, Any]) -> None:
        """Take in the globals that code names, and the modules that it imports."""
        for name in facts.globals:
            self._tag("global", name)
            if name in _REACHES_ALL and name not in names:
                raise self._refused(f"names {name}, and so may name anything else")
            if name in names:
                self._inside(f"'s global {name!r}", names[name])
                if isinstance(names[name], types.ModuleType):
                    self._attributes(names[name], facts)
        for name in facts.imports:
            package = str(names.get("__package__") or "")
            self._tag("import", name, *self._origins.imported(name, package))
            for loaded in filter(None, map(sys.modules.get, {name: 0, f"{package}.{name}": 0})):
                self._attributes(loaded, facts)

    def _attributes(self, module: types.ModuleType, facts: CodeFacts) -> None:
        """Take in what code may name of a module that is nobody else's, as it is in memory."""
        if module is sys and "modules" in facts.names:
            raise self._refused("names sys.modules, and so may name anything else")
        if self._origins.known(module.__name__, vars(module)) is not None:
            return
        for name in facts.names:
            if name in vars(module):
                self._tag("attribute", name)
                self._inside(f"'s {module.__name__}.{name}", vars(module)[name])

    def _annotations(self, found: Mapping[str, Any]) -> None:
        """Take annotations in, where they may make a parameter a constant."""
        for name, each in found.items():
            told = each if isinstance(each, str) else getattr(each, "__qualname__", None) or type(each).__qualname__
            self._tag("annotation", name, told)

    def _code(self, value: types.CodeType) -> None:
        self._tag("code", code_facts(value).sha256)

    def _method(self, value: types.MethodType) -> None:
        self._inside("", value.__func__)
        self._inside("'s self", value.__self__)

    def _built_in(self, value: Any) -> None:
        owner = getattr(value, "__self__", None)
        self._tag("built in", getattr(value, "__module__", None), value.__qualname__)
        if owner is not None and not isinstance(owner, types.ModuleType):
            self._inside("'s self", owner)

    def _module(self, value: types.ModuleType) -> None:
        self._tag("module", value.__name__, *self._origins.imported(value.__name__, ""))

    def _descriptor(self, value: Any) -> None:
        self._tag(type(value).__name__)
        self._inside("", value.__func__)

    def _property(self, value: property) -> None:
        self._tag("property")
        for each in (value.fget, value.fset, value.fdel):
            self._inside("", each)

    def _cached_property(self, value: Any) -> None:
        self._tag("cached property")
        self._inside("", value.func)

    def _class(self, value: type) -> None:
        known = self._origins.known_class(value)
        self._tag("class", known or "own", value.__module__, value.__qualname__)
        if known is not None:
            return
        self._inside("'s bases", value.__bases__)
        self._inside("'s class", type(value))
        fields = fields_of(value)
        for name, each in vars(value).items():
            if name in _SKIPPED or isinstance(each, _SLOTS) or (fields and is_generated(each)):
                continue
            self._tag("member", name)
            self._inside(f".{name}", each)
        self._annotations(vars(value).get("__annotations__", {}))
        for field in fields:
            self._tag("field", field.name)
            for part in ("default", "default_factory", "converter", "validator"):
                given: Any = getattr(field, part, None)
                if type(given).__name__ == "Factory":
                    given = given.factory, given.takes_self
                if type(given).__name__ not in ("_MISSING_TYPE", "_Nothing"):
                    self._inside(f"'s field {field.name!r}", given)

    def _instance(self, value: Any, kind: type) -> None:
        """Take an object in by its class and its attributes, where these are all that it holds."""
        known = self._origins.known_class(kind)
        made_of_fields = bool(fields_of(kind))
        foreign = known is not None and not self._origins.is_ours(kind.__module__) and not made_of_fields
        if foreign or holds_more(kind):
            article = "an" if kind.__module__.lstrip("_")[:1] in "aeio" else "a"
            raise self._refused(f"is {article} {kind.__module__}.{kind.__qualname__}")
        self._tag("object")
        self._inside("'s class", kind)
        held: Any = next((base for base in kind.__mro__ if base in CONTAINERS), None)
        if held in _PLAIN:
            self._take(held(value))
        elif held is not None:
            _TAKES[held](self, value)
        state = dict(getattr(value, "__dict__", {}))
        state |= {name: getattr(value, name) for name in slots_of(kind) if hasattr(value, name)}
        for name, each in state.items():
            if name not in ("__globals__", "__wrapped__", "__doc__"):
                self._tag("attribute", name)
                self._inside(f".{name}", each)


def _spelled(where: list[str]) -> str:
    """Say which thing it is: "the bench's closure 'f'[0]"."""
    return "".join(where)


def _simple(name: str) -> Callable[[Digester, Any], None]:
    return lambda digester, value: digester._tag(name, repr(value))


def _signature(digester: Digester, value: inspect.Signature) -> None:
    digester._tag("signature", len(value.parameters))
    for each in value.parameters.values():
        digester._tag("parameter", each.name, each.kind.name, each.default is each.empty)
        if each.default is not each.empty:
            digester._inside(f"'s default {each.name!r}", each.default)
        digester._annotations({each.name: each.annotation})


_TAKES: Final[Mapping[type, Callable[[Digester, Any], None]]] = {
    tuple: Digester._sequence,
    list: Digester._sequence,
    dict: Digester._mapping,
    set: Digester._set,
    frozenset: Digester._set,
    types.MappingProxyType: Digester._mapping,
    collections.OrderedDict: Digester._mapping,
    collections.Counter: Digester._mapping,
    collections.defaultdict: Digester._default_dict,
    collections.deque: Digester._deque,
    types.FunctionType: Digester._function,
    types.MethodType: Digester._method,
    types.CodeType: Digester._code,
    types.ModuleType: Digester._module,
    staticmethod: Digester._descriptor,
    classmethod: Digester._descriptor,
    property: Digester._property,
    functools.cached_property: Digester._cached_property,
    types.GenericAlias: _simple("alias"),
    types.UnionType: _simple("union"),
    inspect.Signature: _signature,
    **dict.fromkeys(_BUILT_IN, Digester._built_in),
}
