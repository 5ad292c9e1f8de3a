"""What failures call tensors that are checked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs

from kernbench_core.runs.wrong_data import check_names


@attrs.frozen
class Program:
    """A host program; that of number 0 is the bench."""

    number: int
    name: str


def test_a_tensor_that_its_program_checks_again_has_a_number() -> None:
    """Of the checks of that program; another program's check of the same name is its first."""
    one, other = Program(1, "rank 0"), Program(2, "rank 1")
    checks: list[Any] = [
        SimpleNamespace(program=program, name=name)
        for program, name in [(one, "y"), (one, "z"), (other, "y"), (one, "y"), (None, "y"), (None, "y")]
    ]
    assert check_names(checks) == [
        "tensor 'y'", "tensor 'z'", "tensor 'y'", "tensor 'y' (check 3)", "tensor 'y'", "tensor 'y' (check 2)",
    ]  # fmt: skip
