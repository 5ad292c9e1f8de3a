"""Axes and ranges, as the command line and plans write them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.sweeps.axes import (
    PARAM,
    SET,
    Axis,
    axis_of,
    read_axis,
    setting_text,
    short_names,
    split_values,
    value_text,
)  # fmt: skip
from kernbench_builtin.sweeps.ranges import in_numbers, is_range, parse_range
from kernbench_core.units import DIMENSIONS, parse_quantity


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("16,32, 64", (16, 32, 64)),
        ("1..9:lin:5", (1, 3, 5, 7, 9)),
        ("1..10:lin:3", (1, 6, 10)),
        ("1..4:lin:9", (1, 2, 3, 4)),
        ("1..64:pow2", (1, 2, 4, 8, 16, 32, 64)),
        ("3..50:pow2", (3, 6, 12, 24, 48)),
        ("1..1000:log:4", (1, 10, 100, 1000)),
        ("0.5..2:lin:4", (0.5, 1.0, 1.5, 2.0)),
        ("1.0..2:log:3", (1.0, 1.41421, 2.0)),
        ("100..800GB/s:log:4", ("100 GB/s", "200 GB/s", "400 GB/s", "800 GB/s")),
        ("100GB/s..1TB/s:lin:3", ("100 GB/s", "550 GB/s", "1 TB/s")),
        ("900 ps..3 ns:lin:2", ("900 ps", "3 ns")),
        ("1..3KiB:pow2", ("1 KiB", "2 KiB")),
        ("1..2KiB:log:3", ("1 KiB", "1448 B", "2 KiB")),
        ("10GiB/s..20GB/s:lin:2", ("10 GiB/s", "20 GB/s")),
        ("1.2345678..9.87654321GB/s:log:2", ("1.2345678 GB/s", "9.87654321 GB/s")),
        ("0.12345678..0.25:pow2", (0.12345678, 0.246914)),
        ("2000MB/s..8GB/s:pow2", ("2000 MB/s", "4 GB/s", "8 GB/s")),
        ("0.1234567..12345678.5:lin:2", (0.1234567, 12345678.5)),
        ("-1..1:lin:3", (-1, 0, 1)),
        ("8,16..64:pow2", (8, 16, 32, 64)),
        ("builtin.pe_gemm,other", ("builtin.pe_gemm", "other")),
        ("{a: 1, b: 2},[1,2]", ({"a": 1, "b": 2}, [1, 2])),
        ("100 GB/s,'a,b'", ("100 GB/s", "a,b")),
        ("'1..9'", ("1..9",)),
        ("true,null", (True, None)),
    ],
)  # fmt: skip
def test_values_are_those_that_a_text_says(text: str, values: tuple[object, ...]) -> None:
    """Lists and ranges, beside each other too; integers stay integers, and a unit stands behind each number."""
    found = read_axis("key", SET, text)
    assert found == Axis("key", SET, values)
    assert [type(value) for value in found.values] == [type(value) for value in values]
    assert Axis.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64,0.5,true", (64, 0.5, True)), ("064,1e3,1_0", ("064", "1e3", "1_0")), ("a b,x=1", ("a b", "x=1")),
        ("empty:f32:8,4,zeros:f16:16", ("empty:f32:8,4", "zeros:f16:16")), ("a.npy,../b.npy", ("a.npy", "../b.npy")),
        ("cdiv(n, 4),64", ("cdiv(n, 4)", 64)), ('"64"', ("64",)), ("", ("",)),
    ],
)  # fmt: skip
def test_parameters_are_what_they_are_written_as(text: str, values: tuple[object, ...]) -> None:
    """A number only where it is written as Python writes it, so that a text is given to the bench as it was typed."""
    assert read_axis("n", PARAM, text).values == values


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("9..1", "must be a range that rises, not '9..1'."),
        ("1..1:lin:3", "must be a range that rises, not '1..1:lin:3'."),
        ("0..8:log:3", "must be a range above 0 for 'log', not '0..8:log:3'."),
        ("-4..8:pow2", "must be a range above 0 for 'pow2', not '-4..8:pow2'."),
        ("1..9:lin:1", "must have from 2 to 1,000,000 values, not '1'."),
        ("1..9:lin:x", "must have from 2 to 1,000,000 values, not 'x'."),
        ("1..9:lin:9999999", "must have from 2 to 1,000,000 values, not '9999999'."),
        ("1..9:cube:3", "must be a range as LOW..HIGH, LOW..HIGH:lin:N, LOW..HIGH:log:N or LOW..HIGH:pow2, not "
         "'1..9:cube:3'."),
        ("1..9:pow2:3", "must be a range as LOW..HIGH, LOW..HIGH:lin:N, LOW..HIGH:log:N or LOW..HIGH:pow2, not "
         "'1..9:pow2:3'."),
        ("1..9GBs:lin:3", "must have a unit that there is, not 'GBs' in '1..9GBs:lin:3'. Did you mean 'GB/s'?"),
        ("1ns..9GB/s:lin:3", "must be a range of one kind of quantity, not from ns to GB/s."),
        ("1..9,3", "must not mix values with a range that has no count."),
        ("1,2,1", "must have each value once, and has 1 twice."),
        ("1..3:lin:3,2", "must have each value once, and has 2 twice."),
    ],
)  # fmt: skip
def test_what_is_no_axis_is_told(text: str, told: str) -> None:
    """In a sentence that goes on after the name of the axis."""
    with pytest.raises(ValueError) as caught:
        read_axis("key", SET, text)
    assert str(caught.value) == told


def test_a_range_that_is_open_is_for_samplers() -> None:
    """It has ends, and a value at each fraction of it; integers are had evenly, also the last."""
    found = read_axis("n", PARAM, "1..4")
    assert found.values == () and found.looked_at() == (1, 4)
    assert [found.at(fraction) for fraction in (0, 0.24, 0.26, 0.51, 0.76, 0.99999)] == [1, 1, 2, 3, 4, 4]
    assert Axis.from_json(found.to_json()) == found
    link = read_axis("link", SET, "100..1600GB/s:log")
    assert [link.at(fraction) for fraction in (0, 0.25, 0.5, 1)] == ["100 GB/s", "200 GB/s", "400 GB/s", "1600 GB/s"]
    exact = read_axis("link", SET, "1.2345678GiB/s..1TB/s")
    assert (exact.looked_at(), exact.at(0.0)) == (("1.2345678 GiB/s", "1 TB/s"), "1.2345678 GiB/s")
    span = parse_range("1..7:log")
    octaves = [int(str(span.at((at + 0.5) / 300))) for at in range(300)]
    assert [sum(low <= n < 2 * low for n in octaves) for low in (1, 2, 4)] == [100, 100, 100]


def test_python_and_plans_give_lists_ranges_and_single_values() -> None:
    """A text is divided at no comma there, and a range in a list is what it says."""
    assert axis_of("n", PARAM, [1, "2..4:pow2"]).values == (1, 2, 4)
    for row in (range(16, 64, 16), np.arange(16, 64, 16), (16, 32, 48)):
        assert axis_of("n", PARAM, row).values == (16, 32, 48)
    assert axis_of("n", PARAM, np.float64(0.5)).values == (0.5,)
    assert axis_of("n", PARAM, "a,b").values == ("a,b",)
    assert axis_of("n", PARAM, "1..4").range == parse_range("1..4")
    assert axis_of("n", PARAM, 5).values == (5,)
    with pytest.raises(ValueError, match=r"^must have a value, not \[\]\.$"):
        axis_of("n", PARAM, [])


_UNITS = [unit for kind in DIMENSIONS.values() for unit in kind.units]


@given(number=st.floats(1e-3, 1e6), unit=st.sampled_from(_UNITS))
def test_a_number_is_what_the_configuration_takes_it_for(number: float, unit: str) -> None:
    """Against `parse_quantity`, in kernbench's own unit."""
    text = f"{number!r} {unit}"
    (kind,) = {kind.name for kind in DIMENSIONS.values() if unit in kind.units}
    factor = DIMENSIONS[kind].units[unit]
    assert in_numbers(text) == float(Fraction(repr(number)) * factor)
    if not DIMENSIONS[kind].integral:
        assert in_numbers(text) == parse_quantity(text, kind)
    assert (in_numbers(7), in_numbers(True), in_numbers("7"), in_numbers("7 apples"), in_numbers(None)) == (
        7.0, 1.0, 7.0, None, None,
    )  # fmt: skip


_SCALARS = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)


@given(st.recursive(_SCALARS | _TEXTS, lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_a_setting_is_read_by_yaml_as_what_it_is(value: object) -> None:
    """Against PyYAML's own loader where the two agree on scalars, and our reader everywhere."""
    from kernbench_core.topology.strict_yaml import plain, read_yaml

    text = setting_text(value)
    assert plain(read_yaml(text, "t", positions=False)) == value
    if isinstance(value, list):
        assert yaml.safe_load(text) is not None


@given(st.lists(st.from_regex(r"[a-c](\.[a-c]){0,3}", fullmatch=True), unique=True, max_size=6))
def test_short_names_are_the_shortest_ends_that_tell_apart(names: list[str]) -> None:
    """Each belongs to its name alone, where any end of it does."""
    for name, short in zip(names, short_names(names), strict=True):
        own = [other for other in names if f".{other}".endswith(f".{short}")]
        assert f".{name}".endswith(f".{short}")
        assert own == [name] or short == name
        shorter = short.partition(".")[2]
        assert not shorter or len([other for other in names if f".{other}".endswith(f".{shorter}")]) > 1


def test_texts_are_divided_outside_of_brackets_and_quotes() -> None:
    """A quote that is never closed takes the rest."""
    assert split_values("a,(b,c),'d,e',[f,[g,h]],{i: j,k: l}") == [
        "a", "(b,c)", "'d,e'", "[f,[g,h]]", "{i: j,k: l}",
    ]  # fmt: skip
    assert split_values("a,'b,c") == ["a", "'b,c"]
    assert [value_text(each) for each in (None, True, 1, 0.5, "x", [1])] == ["none", "true", "1", "0.5", "x", "[1]"]
    assert [is_range(text) for text in ("1..2", " 1 .. 2", "a..b", "../x", "1.5", "x1..2")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
