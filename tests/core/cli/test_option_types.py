"""Options are refused in our words, by name."""

from __future__ import annotations

from types import ModuleType

import pytest

from kernbench_core.cli import main


@pytest.mark.parametrize("option", [("--max-sim-time", "5 ms"), ("--timeout", "60 s")])
@pytest.mark.parametrize("text", ["1e-400s", "0 s", "-1 s", "soon"])
def test_a_limit_that_is_no_time_names_the_option(
    toy: ModuleType, capsys: pytest.CaptureFixture[str], option: tuple[str, str], text: str
) -> None:
    """Also one that is positive, and too small for a number."""
    assert main(("run", "toy", "--topology", "one", option[0], text), toy.plugins) == 2
    assert capsys.readouterr().err == (
        f"error: option {option[0]} must be a positive time with its unit, as {option[1]!r}, not {text!r}.\n"
    )


@pytest.mark.parametrize(
    ("option", "text", "least"),
    [("--seed", "-1", 0), ("--seed", "1.5", 0), ("--max-events", "0", 1), ("--max-events", "many", 1)],
)
def test_a_number_below_its_least_names_the_option(
    toy: ModuleType, capsys: pytest.CaptureFixture[str], option: str, text: str, least: int
) -> None:
    """Also what is no whole number; the least itself is taken."""
    assert main(("run", "toy", "--topology", "one", option, text), toy.plugins) == 2
    assert capsys.readouterr().err == f"error: option {option} must be an integer of at least {least}, not {text!r}.\n"
    assert main(("run", "toy", "--topology", "one", option, str(least)), toy.plugins) == 0
