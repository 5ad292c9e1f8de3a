"""Who is at fault for what was raised when models were asked about themselves."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.engine.faults import models_blamed
from kernbench_core.errors import ComponentError
from tests.core.toy_machine import Classes, ToyForward, toy_engine


class Unusual(ToyForward):
    """Call itself something else than self."""

    def number(me: Any, error: BaseException) -> int:  # noqa: N805
        raise error

    @staticmethod
    def of_nobody(error: BaseException) -> int:
        raise error


@pytest.fixture
def engine() -> Any:
    return toy_engine(classes=Classes(forward=Unusual))


@pytest.mark.parametrize("error", [ValueError("none"), SystemExit(0), StopIteration(), GeneratorExit()])
def test_a_method_is_known_by_its_first_parameter(engine: Any, error: BaseException) -> None:
    """Whatever it is called."""
    model = next(each for each in engine.hardware.components.values() if isinstance(each, Unusual))
    with pytest.raises(ComponentError) as caught, models_blamed(engine.hardware):
        model.number(error)
    assert str(caught.value).startswith(f"{model.id}: {__name__}.Unusual raised {type(error).__name__}")


def test_nothing_ends_kernbench_without_a_word(engine: Any) -> None:
    """Where nobody is found an exception stays as it is, for it is kernbench's own, and what would end it does not."""
    with pytest.raises(ValueError, match=r"^none$"), models_blamed(engine.hardware):
        Unusual.of_nobody(ValueError("none"))
    with pytest.raises(ComponentError) as caught, models_blamed(engine.hardware):
        Unusual.of_nobody(SystemExit(0))
    assert str(caught.value) == "the simulation raised SystemExit: 0 at simulated time 0 ns."


def test_a_known_one_is_asked(engine: Any) -> None:
    """Also where the traceback has another one, and none."""
    asked, other = [each for each in engine.hardware.components.values() if isinstance(each, Unusual)][:2]
    with pytest.raises(ComponentError) as caught, models_blamed(engine.hardware, asked):
        other.number(ValueError("none"))
    assert str(caught.value).startswith(f"{asked.id}: ")


def test_an_interrupt_is_nobodys(engine: Any) -> None:
    """It goes on as it is."""
    with pytest.raises(KeyboardInterrupt), models_blamed(engine.hardware):
        engine.hardware.components["sip0.cube0.r0c0"].number(KeyboardInterrupt())
