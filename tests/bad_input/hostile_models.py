"""Components that break the contract, each in its own way. Not a test: test_components.py makes a plug-in of it."""

from __future__ import annotations

from typing import Any

from kernbench_core.component import ComponentBase
from kernbench_core.plugins import ComponentEntry


class Yields(ComponentBase):
    def run(self, env: Any, msg: Any) -> Any:
        yield 5


class Returns(ComponentBase):
    def run(self, env: Any, msg: Any) -> Any:
        return 5


class Negative(ComponentBase):
    def overhead(self, msg: Any) -> float:
        return -1.0


class NotANumber(ComponentBase):
    def overhead(self, msg: Any) -> float:
        return float("nan")


class Text(ComponentBase):
    def interval(self, msg: Any) -> Any:
        return "5 ns"


class BadDelay(ComponentBase):
    def run(self, env: Any, msg: Any) -> Any:
        yield env.timeout(-5)


class Raises(ComponentBase):
    def run(self, env: Any, msg: Any) -> Any:
        yield env.timeout(3)
        raise ValueError("my own fault")


class Exits(ComponentBase):
    def overhead(self, msg: Any) -> float:
        raise SystemExit(0)


class RaisesEarly(ComponentBase):
    def connect(self) -> None:
        self.out_ports["nowhere"]


class Stops(ComponentBase):
    def run(self, env: Any, msg: Any) -> Any:
        yield next(iter(()))


class Never(ComponentBase):
    def run(self, env: Any, msg: Any) -> Any:
        yield env.event()


class Loses(ComponentBase):
    def emit(self, msg: Any, head: float, tail: float) -> None:
        """Send nothing on."""


class Twice(ComponentBase):
    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head, tail)
        super().emit(msg, head, tail)


class IntoThePast(ComponentBase):
    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head - 1000, tail - 1000)


class Loops(ComponentBase):
    def run(self, env: Any, msg: Any) -> Any:
        while True:
            yield env.timeout(1)


class Hangs(ComponentBase):
    def overhead(self, msg: Any) -> float:
        while True:
            pass


class NeverBuilt(ComponentBase):
    def __init__(self, *given: Any) -> None:
        while True:
            pass


class NoComponent:
    """Lack everything."""

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_components() -> list[ComponentEntry]:
    """Register all of the above, and one that is not there."""
    mine = [name for name, thing in globals().items() if getattr(thing, "__module__", "") == __name__]
    return [
        ComponentEntry(
            f"hostile.{name.lower()}", f"hostile_models:{name}", kind="pe_gemm", sentence="Break the contract."
        )
        for name in (*mine, "Missing")
        if name[0].isupper()
    ]
