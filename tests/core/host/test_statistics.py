"""What models count is one number for each statistic, in the table and in the object of a run."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any, ClassVar

import numpy as np
import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.engine.watchdog import Limits
from kernbench_core.errors import ComponentError, LimitError
from kernbench_core.host.statistics import Statistic
from kernbench_core.host.timing import TimingResult
from kernbench_core.messages import MsgBase
from kernbench_core.reporting import Stat
from tests.core.toy_machine import Classes, ToyForward, toy_engine

STATS = (
    Stat("passed", "", "sum", "Messages that passed."),
    Stat("largest", "B", "max", "The largest message."),
    Stat("share", "", "mean", "Where it stands."),
)


class Counting(ToyForward):
    """Count what passes; `share` is 1 at the port of the host and 0 elsewhere."""

    STATS: ClassVar[tuple[Stat, ...]] = STATS

    def __init__(self, node: Any, fabric: Any) -> None:
        super().__init__(node, fabric)
        self.passed = self.largest = 0
        self.share = 1.0 if node.id.endswith("pcie_ep") else 0.0

    def overhead(self, msg: MsgBase) -> float:
        return super().overhead(msg)

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        self.passed += 1
        self.largest = max(self.largest, msg.nbytes)
        super().emit(msg, head, tail)


def timed(forward: type[ComponentBase]) -> TimingResult:
    """Copy 64 x 64 floats to a toy machine, whose port and router are of the model."""
    engine = toy_engine(pes=2, classes=Classes(forward=forward))
    engine.run(lambda rt: rt.tensor((64, 64), "f32"))
    return engine.get_timing_result()


class NeverCounted(Counting):
    """Never say what passed."""

    @property
    def passed(self) -> int:
        while True:
            pass

    @passed.setter
    def passed(self, value: int) -> None:
        pass

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        ToyForward.emit(self, msg, head, tail)


def test_a_number_that_never_comes_meets_the_limit_on_wall_time() -> None:
    """It is asked for behind the last event; the line is named."""
    engine = toy_engine(pes=2, classes=Classes(forward=NeverCounted), limits=Limits(timeout_s=0.5))
    with pytest.raises(LimitError) as caught:
        engine.run(lambda rt: rt.tensor((64, 64), "f32"))
    told = f"the run reached its limit of 0.5 s of wall time while checking the run, in {__file__}:"
    assert str(caught.value).startswith(told)


def test_the_numbers_of_a_model_become_one() -> None:
    """Two writes of 8 KiB and their answers pass the port and the router: 8 messages."""
    passed, largest, share = timed(Counting).statistics
    assert passed == Statistic("forward", "passed", 8, "", "sum", 2, "Messages that passed.")
    assert largest == Statistic("forward", "largest", 8192, "B", "max", 2, "The largest message.")
    assert share == Statistic("forward", "share", 0.5, "", "mean", 2, "Where it stands.")
    assert timed(ToyForward).statistics == ()


def test_what_served_nothing_counts_nothing() -> None:
    """A model that no message crossed is left out, as it is of what is not modelled."""

    class Idle(Counting):
        def emit(self, msg: MsgBase, head: float, tail: float) -> None:
            self.served = 0
            super().emit(msg, head, tail)

    assert timed(Idle).statistics == ()


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "None"), (float("nan"), "nan"), ("many", "'many'"), (..., "nothing")]
)
def test_what_is_no_number_is_the_models_fault(value: object, shown: str) -> None:
    """In a sentence that names node, class and statistic."""

    class Wrong(ToyForward):
        STATS: ClassVar[tuple[Stat, ...]] = STATS[:1]

        def connect(self) -> None:
            if value is not ...:
                self.passed = value

    with pytest.raises(ComponentError) as caught:
        timed(Wrong)
    assert str(caught.value) == (
        f"sip0.cube0.r0c0: {__name__}.{Wrong.__qualname__}.passed must be a finite number at the end of a run, as its "
        f"STATS say, not {shown}; count it there, or leave it out of STATS."
    ).replace("sip0.cube0.r0c0", str(caught.value).partition(":")[0])


def refuse(error: BaseException) -> int:
    raise error


class Refusing:
    """A descriptor of a model's own, which has no method of the model in its traceback."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __get__(self, component: Any, owner: Any) -> int:
        raise self.error

    def __set__(self, component: Any, value: int) -> None:
        pass


@pytest.mark.parametrize(
    "error",
    [ValueError("none"), SystemExit(0), CancelledError(), GeneratorExit(), StopIteration(), BaseException("odd")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("how", ["property", "descriptor"])
def test_a_model_that_raises_instead_is_at_fault(how: str, error: BaseException) -> None:
    """Named with its node, its class and what it raised, whatever that is and whatever its method calls itself."""

    class Raising(ToyForward):
        STATS: ClassVar[tuple[Stat, ...]] = STATS[:1]
        passed = property(lambda s: refuse(error)) if how == "property" else Refusing(error)

    with pytest.raises(ComponentError) as caught:
        timed(Raising)
    told = str(caught.value).splitlines()[0]
    node = told.partition(":")[0]
    raised = type(error).__name__ + (f": {error}" if str(error) else "")
    assert node in ("sip0.io0.pcie_ep", "sip0.cube0.r0c0")
    assert told.startswith(f"{node}: {__name__}.{Raising.__qualname__} raised {raised} at simulated time ")
    assert f"{__file__}\", line " in str(caught.value)


def test_a_count_beyond_floats_is_the_models_fault() -> None:
    class Counts(ToyForward):
        STATS: ClassVar[tuple[Stat, ...]] = STATS[:1]
        passed = 10**400

    with pytest.raises(ComponentError) as caught:
        timed(Counts)
    told = str(caught.value).splitlines()[0]
    assert f"{__name__}.{Counts.__qualname__} raised OverflowError: int too large to convert to float at" in told


def test_numbers_of_numpy_are_numbers() -> None:
    """As plain ones, which JSON can hold."""

    class Counts(ToyForward):
        STATS: ClassVar[tuple[Stat, ...]] = STATS[:1]
        passed = np.float32(0.5)

    (found,) = timed(Counts).statistics
    assert (found.value, type(found.value)) == (1.0, float)


@pytest.mark.parametrize(
    ("name", "unit", "combine", "told"),
    [
        ("", "ns", "sum", "name of statistic '' must be a text, not ''"),
        (5, "ns", "sum", "name of statistic 5 must be a text, not 5"),
        ("x", "furlong", "sum", "unit of statistic 'x' must be one of ('ns', 'B', ''), not 'furlong'"),
        ("x", "", "median", "combine of statistic 'x' must be one of ('sum', 'max', 'mean'), not 'median'"),
    ],
)
def test_a_statistic_that_cannot_be_is_refused(name: str, unit: str, combine: str, told: str) -> None:
    """Where it is declared."""
    with pytest.raises(ValueError) as caught:
        Stat(name, unit, combine, "A number.")
    assert str(caught.value) == told


def test_a_statistic_says_what_it_is() -> None:
    """A result shows it."""
    with pytest.raises(ValueError) as caught:
        Stat("x", "", "sum", None)  # type: ignore[arg-type]
    assert str(caught.value) == "doc of statistic 'x' must be a text, not None"
