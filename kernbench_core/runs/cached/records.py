"""Records of a closed list as JSON, and back as what they were: tuples, lists, mappings, numbers, texts and records."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kernbench_core.cache import NotCacheable

_MARK: Final = "@"
#: The records of a result, by the module that each is in. Nothing else is ever made of what a file says.
_RECORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "kernbench_core.compute.backends.backend": ("ComputedBy",),
    "kernbench_core.compute.on_demand": ("BranchValues", "HostReads"),
    "kernbench_core.compute.verification": ("Failure", "Verification"),
    "kernbench_core.explain.critical_path": ("Segment",),
    "kernbench_core.explain.explanation": ("Balance", "Explanation", "LaunchExplanation", "Went"),
    "kernbench_core.explain.ledger": ("LedgerRow", "QueueingPlace"),
    "kernbench_core.explain.usage": ("Filling", "Usage"),
    "kernbench_core.frontend.tuning": ("JitTuning", "Trial"),
    "kernbench_core.host.figures.kernels": ("ArrayFill", "KernelFigures", "KernelUse"),
    "kernbench_core.host.figures.meter": ("LaunchUse",),
    "kernbench_core.host.figures.roofline": ("Achieved", "RooflinePoint"),
    "kernbench_core.host.statistics": ("Statistic",),
    "kernbench_core.host.timing": ("LateStart", "NotModelled", "ResourceUse", "TimingResult"),
    "kernbench_core.kernel.tl.python_reads": ("PythonReads", "ReadLine"),
    "kernbench_core.memory.hazard": ("Hazard", "HazardUse"),
    "kernbench_core.memory.outside": ("OutsideAccess",),
    "kernbench_core.memory.scratchpad_map": ("Held", "TcmMap", "TcmUse"),
}
_MODULES: Final = {name: module for module, names in _RECORDS.items() for name in names}
#: Fields that stay behind, as those of a pickled result would: they are the run's memory.
_LEFT: Final[Mapping[str, Mapping[str, Any]]] = {"Failure": {"value": None}}


def encode(value: Any) -> Any:
    """Return what JSON says a value with; NotCacheable for what is neither plain nor a record of the list."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if isinstance(value, tuple):
        return [encode(each) for each in value]
    if isinstance(value, list):
        return {_MARK: "list", "of": [encode(each) for each in value]}
    if isinstance(value, Mapping):
        if _MARK not in value and all(type(name) is str for name in value):
            return {name: encode(each) for name, each in value.items()}
        return {_MARK: "map", "of": [[encode(name), encode(each)] for name, each in value.items()]}
    if kind.__module__ == _MODULES.get(kind.__name__):
        left = _LEFT.get(kind.__name__, {})
        fields = [name for name, _ in _fields(kind)]
        return {_MARK: kind.__name__, "of": [encode(left.get(name, getattr(value, name))) for name in fields]}
    if isinstance(value, bool | int | float | str):  # of a class of its own
        return next(base(value) for base in (bool, int, float, str) if isinstance(value, base))
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        return encode(value.item())
    raise NotCacheable(f"the result has a {kind.__module__}.{kind.__qualname__}, which the cache cannot keep.")


def decode(said: Any) -> Any:
    """Return what `encode` was given, each number, text and record equal to what it was."""
    kind = type(said)
    if kind is list:
        return tuple([decode(each) for each in said])
    if kind is not dict:
        return said
    mark = said.get(_MARK)
    if mark is None:
        return {name: decode(each) for name, each in said.items()}
    if mark == "list":
        return [decode(each) for each in said["of"]]
    if mark == "map":
        return {decode(name): decode(each) for name, each in said["of"]}
    return _maker(mark)([decode(each) for each in said["of"]])


def _fields(kind: type) -> list[tuple[str, str]]:
    """Return the fields of a record, each with the name that its constructor has for it."""
    return [(field.name, field.alias or field.name) for field in attrs.fields(kind) if field.init]


@functools.cache
def _maker(name: str) -> Callable[[list[Any]], Any]:
    """Return what makes a record of the values of its fields; KeyError for a name that is not on the list."""
    kind: Any = getattr(importlib.import_module(_MODULES[name]), name)
    if not any(field.kw_only for field in attrs.fields(kind)):
        return lambda values: kind(*values)
    names = [alias for _, alias in _fields(kind)]
    return lambda values: kind(**dict(zip(names, values, strict=True)))
