"""Sections of plug-ins: they are read, and faults are told with their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import attrs
import pytest

from kernbench_builtin.machines.specification import LinkSpec
from kernbench_core.errors import ConfigError
from kernbench_core.topology.configuration import Config
from kernbench_core.topology.section_reader import read_section
from kernbench_core.topology.sections import Count

LINK = {"bandwidth": "2 GB/s", "latency": "1 ns"}


@attrs.frozen
class Grid:
    """What a section may hold."""

    rows: Annotated[Count, "Rows."]
    ways: Mapping[str, LinkSpec] = attrs.field(factory=dict)
    spare: LinkSpec | None = None

    def __attrs_post_init__(self) -> None:
        if self.rows == 7:
            raise ValueError("must not have 7 rows.")


def read(**section: Any) -> Grid:
    return read_section(Config({"grid": section, "components": {}}, {}), "grid", Grid)


def problems(**section: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(**section)
    return [problem.partition("grid")[2] for problem in caught.value.problems]


def test_sections_in_sections_are_read() -> None:
    found = read(rows=3, ways={"w": LINK}, spare=LINK)
    assert found == Grid(3, {"w": LinkSpec(2.0, 1.0)}, LinkSpec(2.0, 1.0))
    assert read(rows=1, spare=None) == Grid(1)


def test_a_type_that_no_section_has_is_told() -> None:
    """Not converted by rules of its own, as a text to a number."""

    @attrs.frozen
    class Plain:
        rows: int

    with pytest.raises(TypeError) as caught:
        read_section(Config({"grid": {"rows": "3"}, "components": {}}, {}), "grid", Plain)
    told = "a field of a section must have a type of kernbench_core.topology.sections, not <class 'int'>"
    assert str(caught.value) == told


def test_every_fault_is_told_with_its_place_and_in_order() -> None:
    assert problems(ways={"w": {**LINK, "latency": "?"}, "v": {"bandwith": 1}}, row=1) == [
        " must have the key 'rows'; add it, or start from a preset with 'base:'.",
        ".ways.w.latency must be a positive time, not '?'.",
        ".ways.v must have the key 'bandwidth'; add it, or start from a preset with 'base:'.",
        ".ways.v must have the key 'latency'; add it, or start from a preset with 'base:'.",
        ".ways.v.bandwith must be a known key. Did you mean 'bandwidth'?",
        ".row must be a known key. Did you mean 'rows'?",
    ]
    assert problems(rows=7) == [" must not have 7 rows."]
