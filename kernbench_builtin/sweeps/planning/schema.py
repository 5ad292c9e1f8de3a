"""A JSON Schema (2020-12) of plans, made of what reads them: for editors and validators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kernbench_builtin.machines.schema.document import DIALECT
from kernbench_builtin.machines.schema.values import value_schema
from kernbench_builtin.sweeps.plan import OPTIONS
from kernbench_builtin.sweeps.planning.plan_file import KEYS
from kernbench_core.runs.options import Option, RunCall, command_options

_TEXT: Final[dict[str, Any]] = {"type": "string", "pattern": r"\S"}
_TEXTS: Final[dict[str, Any]] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_ARGUMENT: Final[dict[str, Any]] = {"type": ["string", "number"]}
_VALUES: Final[dict[str, Any]] = {
    "description": "A value, a list of values, or a range, as 1..9:lin:5, 100..800GB/s:log:4 or 1..64:pow2.",
    "anyOf": [{"type": ["string", "number", "boolean", "null", "object"]}, {"type": "array", "minItems": 1}],
}
_SAMPLE: Final = r"^(grid|(random|lhs):[0-9]+)$"
_SCHEMAS: Final[Mapping[str, dict[str, Any]]] = {
    "bench": _TEXT,
    "arguments": {"anyOf": [_ARGUMENT, {"type": "array", "items": _ARGUMENT}]},
    "topology": _TEXTS,
    "components": _TEXT,
    "set": {"type": "object", "additionalProperties": _VALUES},
    "params": {"type": "object", "additionalProperties": _VALUES},
    "where": _TEXTS,
    "objectives": _TEXTS,
    "figures": _TEXT,
    "sample": {"type": "string", "pattern": _SAMPLE},
    "seed": {"type": "integer", "minimum": 0},
    "search": _TEXT,
    "fidelity": _TEXT,
    "cached": {"type": "boolean"},
}


def plan_schema() -> dict[str, Any]:
    """Return the schema of a plan, as plain data."""
    known = {**_SCHEMAS, "options": _options()}
    return {
        "$schema": DIALECT,
        "title": "plan of kernbench sweep",
        "description": "A bench, what is the same in all of its runs, what is varied, and what is looked for.",
        "type": "object",
        "properties": {key: {"description": told, **known[key]} for key, told in KEYS.items()},
        "required": ["bench"],
        "additionalProperties": False,
    }


def _options() -> dict[str, Any]:
    """Return the schema of the options of runs, by both spellings of each."""
    found: dict[str, Any] = {}
    for name, option in command_options(RunCall).items():
        if name in OPTIONS:
            flag = option.name or name
            schema = {"description": option.help, **_option(name, option)}
            found |= dict.fromkeys((flag.replace("-", "_"), flag), schema)
    return {"type": "object", "properties": found, "additionalProperties": False}


def _option(name: str, option: Option) -> dict[str, Any]:
    default = attrs.fields_dict(RunCall)[name].default
    if isinstance(default, bool):
        return {"type": "boolean", "default": default}
    if option.example is not None:
        return value_schema("time", positive=True)
    if option.choices:
        return {"enum": list(option.choices), "default": default}
    if option.least is not None:
        return {"type": "integer", "minimum": option.least}
    return {"type": ["string", "number"]}
