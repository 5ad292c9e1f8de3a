"""Units: text becomes kernbench's own units exactly, or a sentence."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.units import (
    GRID_NS,
    format_bandwidth,
    format_bytes,
    format_count,
    format_flops,
    format_time,
    grid_ceil,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("8 ns", "time", 8.0),
        ("8ns", "time", 8.0),
        ("0.1 us", "time", 100.0),
        ("500 ps", "time", 0.5),
        ("1.5 µs", "time", 1500.0),
        ("2 s", "time", 2e9),
        ("100 GB/s", "bandwidth", 100.0),
        ("800 Gb/s", "bandwidth", 100.0),
        ("1 GiB/s", "bandwidth", 1.073741824),
        ("32 B/ns", "bandwidth", 32.0),
        ("64 KiB", "size", 65536),
        ("0.5 KiB", "size", 512),
        ("2 kB", "size", 2000),
        ("10 mm", "length", 10.0),
        ("50 um", "length", 0.05),
        ("0.1 ns/mm", "time_per_length", 0.1),
        ("0.96 GHz", "frequency", 0.96),
        (4, "int", 4),
        (1e3, "int", 1000),
        (0.25, "float", 0.25),
        (True, "bool", True),
        ("fast", "str", "fast"),
    ],
)
def test_a_quantity_is_read_in_its_own_unit(text: object, dimension: str, value: object) -> None:
    read = parse_quantity(text, dimension)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "dimension", "positive", "sentence"),
    [
        ("12 ns", "bandwidth", True, "must be a positive bandwidth, not '12 ns'. Did you mean '12 GB/s'?"),
        ("12 gbps", "bandwidth", True, "must be a positive bandwidth, not '12 gbps'. Did you mean '12 Gb/s'?"),
        ("12 Gbps", "bandwidth", True, "must be a positive bandwidth, not '12 Gbps'. Did you mean '12 Gb/s'?"),
        ("12 GBps", "bandwidth", True, "must be a positive bandwidth, not '12 GBps'. Did you mean '12 GB/s'?"),
        ("12 usec", "time", False, "must be a time, not '12 usec'. Its units are ps, ns, us, ms, s, µs, μs."),
        (12, "time", False, "must be a time, not 12. Did you mean '12 ns'?"),
        ("12", "size", True, "must be a positive size, not '12'. Did you mean '12 B'?"),
        ("1,048,576", "size", True, "must be a positive size, not '1,048,576'. Did you mean '1048576 B'?"),
        ("1,024.5 us", "time", True, "must be a positive time, not '1,024.5 us'. Did you mean '1024.5 us'?"),
        ("64k", "size", True, "must be a positive size, not '64k'. Did you mean '64 KiB'?"),
        ("0 ns", "time", True, "must be a positive time, not '0 ns'."),
        ("-1 ns", "time", False, "must be a time, not '-1 ns'."),
        ("0.3 B", "size", False, "must be a size, not '0.3 B'."),
        (True, "int", False, "must be an integer, not True."),
        (1.5, "int", True, "must be a positive integer, not 1.5."),
        ("4", "int", False, "must be an integer, not '4'."),
        (math.nan, "float", False, "must be a number, not nan."),
        ("on", "bool", False, "must be a truth value (true or false), not 'on'."),
        (3, "str", False, "must be text, not 3."),
        (None, "time", False, "must be a time, not None."),
        ("1e999 ns", "time", False, "must be a time, not '1e999 ns'. That is too large to be meant."),
        (10**30, "int", False, f"must be an integer, not {10**30}. That is too large to be meant."),
        ("one ns", "time", False, "must be a time, not 'one ns'."),
    ],
)
def test_a_value_that_does_not_fit_is_refused(text: object, dimension: str, positive: bool, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_quantity(text, dimension, positive=positive)
    assert str(caught.value) == sentence


def test_a_minimum_is_part_of_the_sentence() -> None:
    with pytest.raises(ValueError) as caught:
        parse_quantity("1 ns", "time", minimum=2.0)
    assert str(caught.value) == "must be a time of at least 2 ns, not '1 ns'."
    with pytest.raises(ValueError) as caught:
        parse_quantity(0, "int", minimum=1)
    assert str(caught.value) == "must be an integer of at least 1, not 0."


@pytest.mark.parametrize(
    ("value", "bounds", "must_be"),
    [
        (9, {"minimum": 1, "maximum": 8}, "an integer from 1 to 8"),
        (0, {"minimum": 1, "maximum": 8}, "an integer from 1 to 8"),
        (9, {"maximum": 8}, "an integer of at most 8"),
        (10**7, {"positive": True, "maximum": 1048576}, "a positive integer of at most 1048576"),
    ],
)
def test_a_maximum_is_part_of_the_sentence(value: int, bounds: dict[str, Any], must_be: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_quantity(value, "int", **bounds)
    assert str(caught.value) == f"must be {must_be}, not {value}."


def test_a_maximum_itself_is_allowed() -> None:
    assert parse_quantity(8, "int", minimum=1, maximum=8) == 8
    assert parse_quantity("8 ns", "time", maximum=8.0) == 8.0


@given(st.integers(1, 10**8), st.sampled_from(["ps", "ns", "us", "ms", "s"]))
def test_times_are_converted_exactly(number: int, unit: str) -> None:
    factor = {"ps": Fraction(1, 1000), "ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}[unit]
    assert parse_quantity(f"{number} {unit}", "time") == float(number * factor)


@given(st.floats(0, 1e9))
def test_the_grid_rounds_up_by_less_than_a_step(ns: float) -> None:
    rounded = grid_ceil(ns)
    assert rounded / GRID_NS == int(rounded / GRID_NS)
    assert 0 <= Fraction(rounded) - Fraction(ns) < Fraction(GRID_NS)


def test_values_are_written_with_the_unit_that_reads_best() -> None:
    assert [format_time(ns) for ns in (0, 0.5, 12.5, 3410, 2.5e6, 3e9)] == [
        "0 ns", "500 ps", "12.5 ns", "3.41 us", "2.5 ms", "3 s",
    ]  # fmt: skip
    assert [format_bytes(n) for n in (0, 100, 65536, 3 * 2**30)] == ["0 B", "100 B", "64 KiB", "3 GiB"]
    assert [format_bandwidth(b) for b in (25.6, 1200, 0.5)] == ["25.6 GB/s", "1.2 TB/s", "500 MB/s"]
    assert [format_flops(rate) for rate in (4096.0, 630.3, 0.6303, 1.5e-6, 0.0)] == [
        "4.096 TFLOP/s", "630.3 GFLOP/s", "630.3 MFLOP/s", "1.5 kFLOP/s", "0 FLOP/s",
    ]  # fmt: skip
    assert [format_count(n) for n in (0, 950, 12_400, 3_100_000)] == ["0", "950", "12.4 k", "3.1 M"]
