"""A grid in words is computed from the integers that a kernel is given."""

from __future__ import annotations

import pytest

from kernbench_core.host.parameters.grid import LaunchGrid


@pytest.mark.parametrize(("text", "extents"), [("max(n, 4)", (7,)), ("cdiv(n, 2), n // 2 - 1", (4, 2))])
def test_its_functions_are_those_whatever_parameters_are_called(text: str, extents: tuple[int, ...]) -> None:
    """A kernel may have a parameter of that name."""
    assert LaunchGrid(text).of({"max": 5, "n": 7, "cdiv": 1}) == extents
