"""The schema of a value takes what the reader takes, and says what it must be."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kernbench_builtin.machines.schema.values import param_schema, params_schema, required_params
from kernbench_core.params import Param, resolve_params
from kernbench_core.units import DIMENSIONS

UNITS = sorted({unit for kind in DIMENSIONS.values() for unit in kind.units})
numbers = st.integers(-3, 2000) | st.sampled_from([0.0, 0.5, 4.0, 2.5, -0.5, 1e17, 1e18, -1e18, 2e20, float("inf")])
spelt = st.from_regex(r"[-+]?[0-9]{0,2}(\.[0-9]?)?([eE][-+]?[0-9]{1,2})?", fullmatch=True)
others = st.booleans() | st.none() | st.sampled_from(["tcm", [], {}, {"f16": 2}, {"f16": 0}, {"f9": 1}])
DEFAULTS: dict[str, object] = {"bool": False, "str": "tcm", "int": 4, "float": 4, "table": {"f16": 1}}


def fits(schema: dict[str, Any], value: object) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, object]:
    """Draw a dimension and what may be written for it: mostly numbers with its own units."""
    dimension = draw(st.sampled_from(sorted(DIMENSIONS)))
    units = st.sampled_from([*DIMENSIONS[dimension].units] * 3 + ["", *UNITS])
    texts = st.builds(lambda a, b, c: f"{a}{b}{c}", spelt, st.sampled_from(["", " ", " ", ","]), units)
    return dimension, draw(texts | texts | numbers | others)


@given(written(), st.booleans(), st.sampled_from([None, 1]))
@example(("time", "0 ns"), True, None)
@example(("time", "-0 ns"), False, None)
@example(("size", "-3 KiB"), False, None)
@example(("float", 0.5), True, 1)
@settings(max_examples=200)
def test_it_takes_what_the_reader_takes(asked: tuple[str, object], positive: bool, minimum: int | None) -> None:
    dimension, value = asked
    kind = DIMENSIONS[dimension]
    param = Param("p", dimension, DEFAULTS.get(dimension, f"4 {kind.example_unit}"), "What.", minimum, positive)
    _, faults = resolve_params([param], {"p": value}, lambda *_: "p")
    taken = fits(params_schema([param]), {"p": value})
    assert taken or faults, "the reader takes it"
    if taken and faults:
        assert kind.units and isinstance(value, str), "a plain value is refused by both"
        number, unit = re.fullmatch(r"\s*([-+.\deE]+)\s*(.*)", value).groups()  # type: ignore[union-attr]
        exact = float(number) * float(kind.units[unit])
        assert exact > 0 or (exact == 0 and not positive), "and so is a quantity with the wrong sign"
        assert exact >= 1e18 or exact < (minimum or 0) or exact % 1, "but not what its digits come to"


@pytest.mark.parametrize(
    ("param", "schema"),
    [
        (Param("servers", "int", 2, "Workers.", minimum=1, maximum=64),
         {"type": "integer", "minimum": 1, "maximum": 64, "description": "Workers.", "default": 2}),
        (Param("share", "float", 0.5, "Share.", positive=True, maximum=1.0),
         {"type": "number", "exclusiveMinimum": 0, "maximum": 1.0, "description": "Share.", "default": 0.5}),
        (Param("tier", "str", "tcm", "Memory.", choices=("tcm", "hbm")),
         {"type": "string", "enum": ["tcm", "hbm"], "description": "Memory.", "default": "tcm"}),
        (Param("rates", "table", {"f16": 1, "f32": 0.25}, "Rates.", positive=True, maximum=8),
         {"type": "object", "description": "Rates.", "additionalProperties": False, "properties": {
             "f16": {"type": "number", "exclusiveMinimum": 0, "maximum": 8, "default": 1},
             "f32": {"type": "number", "exclusiveMinimum": 0, "maximum": 8, "default": 0.25}}}),
    ],
)  # fmt: skip
def test_a_plain_parameter_says_its_type_its_range_and_its_default(param: Param, schema: dict[str, Any]) -> None:
    assert param_schema(param) == schema


def test_a_quantity_says_in_words_what_its_pattern_cannot() -> None:
    slots = Param("slot", "size", "16 KiB", "Bytes of a slot.", minimum=64)
    told = param_schema(slots)
    assert told["description"] == "Bytes of a slot. Must be a size of at least 64 B."
    follows = Param(
        "row", "size", "1 KiB", "Bytes.", positive=True, follows=("standard", {"hbm2": "2 KiB", "x": "1 B"})
    )
    assert param_schema(follows)["description"] == (
        "Bytes. Must be a positive size. The default is that of standard: 2 KiB of hbm2, 1 B of x."
    )
    choices = Param("page", "size", "4 KiB", "Page.", choices=(4096, 65536))
    assert param_schema(choices)["description"] == "Page. Must be a size. One of 4096 B, 65536 B."


def test_a_parameter_without_a_default_is_required_but_where_it_follows_another() -> None:
    lead, other = Param("lead", "int", None, "Lead."), Param("other", "int", None, "Other.", follows=("lead", {1: 2}))
    assert required_params([lead, other, Param("last", "int", 1, "Last.")]) == ["lead"]
    assert "default" not in param_schema(lead)
