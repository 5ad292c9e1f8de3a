"""What a class says of its objects: their fields, their places, and whether they hold more than these."""

from __future__ import annotations

import collections
import struct
from typing import Any, Final

_POINTER: Final = struct.calcsize("P")
CONTAINERS: Final = (
    bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, collections.OrderedDict,
    collections.defaultdict, collections.deque,
)  # fmt: skip
"""Classes in C whose objects hold what they look like."""


def fields_of(kind: type) -> tuple[Any, ...]:
    """Return what attrs and dataclasses know of the fields of a class."""
    dataclass = vars(kind).get("__dataclass_fields__", {})
    return (*vars(kind).get("__attrs_attrs__", ()), *dataclass.values())


def is_generated(member: object) -> bool:
    """Whether attrs or dataclasses wrote a method, of the fields that are taken in by themselves."""
    code = getattr(member, "__code__", None)
    module = getattr(member, "__globals__", {}).get("__name__")
    return code is not None and (code.co_filename.startswith("<") or module in ("dataclasses", "reprlib"))


def slots_of(kind: type) -> list[str]:
    """Return the attributes of a class that have places of their own in its objects."""
    found = []
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            found.append(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def holds_more(kind: type) -> bool:
    """Whether objects of a class hold more than their attributes, as what is written in C, and no container, does."""
    solid = next((base for base in kind.__mro__ if base in CONTAINERS), object)
    known: int = solid.__basicsize__ + _POINTER * len(slots_of(kind))
    offsets = kind.__dictoffset__, kind.__weakrefoffset__
    return kind.__basicsize__ > known + _POINTER * sum(offset > 0 for offset in offsets)
