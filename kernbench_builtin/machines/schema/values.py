"""The schema of one value: a quantity, a key of a section, a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kernbench_core.params import Param
from kernbench_core.topology.sections import Quantity
from kernbench_core.units import DIMENSIONS, LARGEST, NUMBER, Dimension, format_bytes, parse_quantity

Schema = dict[str, Any]

_TYPES: Mapping[str, str] = {"bool": "boolean", "str": "string", "int": "integer", "float": "number"}


def value_schema(
    dimension: str,
    *,
    positive: bool = False,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[object, ...] = (),
) -> Schema:
    """Return the schema of a value as `parse_quantity` takes it.

    A pattern holds the sign and the unit of a quantity; what bounds it otherwise is for the description, as no pattern
    knows that 1 KiB is 1024 B.
    """
    kind = DIMENSIONS[dimension]
    if kind.units:
        return {"type": "string", "pattern": _pattern(kind, positive)}
    schema: Schema = {"type": _TYPES[dimension]}
    if dimension in ("int", "float"):
        schema |= _bounds(positive, minimum, maximum)
    if choices:
        schema["enum"] = list(choices)
    return schema


def _bounds(positive: bool, minimum: float | None, maximum: float | None) -> Schema:
    bounds: Schema = {"exclusiveMinimum": 0} if positive else {"exclusiveMinimum": -LARGEST}
    if minimum is not None and not (positive and minimum <= 0):
        bounds = {"minimum": minimum}
    return bounds | ({"exclusiveMaximum": LARGEST} if maximum is None else {"maximum": maximum})


def _pattern(kind: Dimension, positive: bool) -> str:
    """Return a regular expression of the numbers and units of a dimension, which must not be below zero."""
    sign = r"(?!-)(?=\+?[.0-9]*[1-9])" if positive else r"(?!-[.0-9]*[1-9])"
    return rf"^\s*{sign}{NUMBER}\s*(?:{'|'.join(kind.units)})\s*$"


def quantity_schema(quantity: Quantity) -> Schema:
    """Return the schema of a key that is a quantity."""
    schema = value_schema(
        quantity.dimension,
        positive=quantity.positive, minimum=quantity.minimum, maximum=quantity.maximum, choices=quantity.choices,
    )  # fmt: skip
    return {"anyOf": [schema, {"enum": ["auto", None]}]} if quantity.auto else schema


def quantity_text(quantity: Quantity, value: Any) -> object:
    """Write a default of a key as a configuration gives it."""
    kind = DIMENSIONS[quantity.dimension]
    if value is None:
        return "auto"
    if quantity.dimension == "size" and parse_quantity(format_bytes(value), "size") == value:
        return format_bytes(value)
    return kind.text(value) if kind.units else value


def param_schema(param: Param) -> Schema:
    """Return the schema of a parameter, with its sentence, what it must be, and its default."""
    if param.dimension == "table":
        assert isinstance(param.default, Mapping), "checked when the parameter was declared"
        entry = value_schema("float", positive=param.positive, minimum=param.minimum, maximum=param.maximum)
        entries = {name: {**entry, "default": number} for name, number in param.default.items()}
        return {"type": "object", "description": param.doc, "properties": entries, "additionalProperties": False}
    schema = value_schema(
        param.dimension,
        positive=param.positive, minimum=param.minimum, maximum=param.maximum, choices=param.choices,
    )  # fmt: skip
    schema["description"] = _described(param)
    return schema if param.default is None else schema | {"default": param.default}


def _described(param: Param) -> str:
    """Return the sentence of a parameter, what it must be where it has a unit, and what its default follows."""
    told = [param.doc.rstrip()]
    kind = DIMENSIONS[param.dimension]
    if kind.units:
        told.append(f"Must be {kind.phrase(param.positive, param.minimum, param.maximum)}.")
        if param.choices:
            told.append(f"One of {', '.join(kind.text(choice) for choice in param.choices)}.")  # type: ignore[arg-type]
    if param.follows is not None:
        name, defaults = param.follows
        known = ", ".join(f"{default} of {of}" for of, default in defaults.items())
        told.append(f"The default is that of {name}: {known}.")
    return " ".join(told)


def params_schema(declared: Iterable[Param]) -> Schema:
    """Return the schema of a mapping of parameters, of which none need be given."""
    return {
        "type": "object",
        "properties": {param.name: param_schema(param) for param in declared},
        "additionalProperties": False,
    }


def required_params(declared: Iterable[Param]) -> list[str]:
    """Return the names of parameters that a configuration must give."""
    return [param.name for param in declared if param.default is None and param.follows is None]
