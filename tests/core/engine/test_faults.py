"""Who is at fault for what was raised when models were asked about themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.engine.faults import models_blamed
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Harness, Probe, Rig, line
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


class Later(ComponentBase):
    """Have something called a ns after a message came."""

    def receive(self, msg: MsgBase) -> None:
        self.begin(msg)
        self.env.call_at(self.env.now + 1, msg, self.what())

    def what(self) -> Callable[[Any], Any]:
        """Return what is called."""
        raise NotImplementedError


class ByLambda(Later):
    """Call a method below a lambda."""

    def what(self) -> Callable[[Any], Any]:
        return lambda m: (self.end(m), self.end(m))


class ByClosure(Later):
    """Call a method below a function within a function."""

    def what(self) -> Callable[[Any], Any]:
        def twice(m: MsgBase) -> None:
            self.end(m)
            self.end(m)

        return twice


class ByPartial(Later):
    """Have a method called that has some of what it takes."""

    def what(self) -> Callable[[Any], Any]:
        return partial(self.end, busy="x")


class ByEvent(ComponentBase):
    """Call a method below a callback of SimPy."""

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        event = env.event()
        event.callbacks.append(lambda ev: self.note_busy("x", 1))  # type: ignore[arg-type]
        event.succeed()
        yield event


@pytest.mark.parametrize(
    ("model", "raised", "function"),
    [
        (ByLambda, "ValueError: end must be called once", "<lambda>"),
        (ByClosure, "ValueError: end must be called once", "twice"),
        (ByPartial, "TypeError: ", None),
        (ByEvent, "TypeError: ", "<lambda>"),
    ],
)
def test_who_made_a_callback_is_known(model: type[ComponentBase], raised: str, function: str | None) -> None:
    """Also where a method of the base, which may be compiled, raised below it: by what it was made with."""
    with pytest.raises(ComponentError) as caught:
        Rig(model).feed(0, 10).run()
    said, _, lines = str(caught.value).partition("\n")
    assert said.startswith(f"under_test: {__name__}.{model.__name__} raised {raised}")
    assert function is None or "test_faults.py" in lines
    assert function is None or f", in {function}" in lines


def test_a_message_that_is_sent_on_twice_is_told_by_its_model() -> None:
    """The second time it has gone on, and no wire leads to where it goes next."""

    class Doubling(ComponentBase):
        def emit(self, msg: MsgBase, head: float, tail: float) -> None:
            super().emit(msg, head, tail)
            super().emit(msg, head, tail)

    machine = Harness({"a": Probe, "b": Doubling, "c": Probe, "d": Probe}, line("a", "b", "c", "d"))
    machine.send(("a", "b", "c", "d"), 0.0, nbytes=8)
    with pytest.raises(ComponentError) as caught:
        machine.run()
    assert str(caught.value) == (
        f"b: {__name__}.{Doubling.__qualname__} must send each message once, to the next node of its path, but no wire "
        "leads to 'd'; call emit once for it, and have pick remove what it returns."
    )
