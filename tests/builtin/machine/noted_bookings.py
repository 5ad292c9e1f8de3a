"""Every booking of every wire, noted as it is made: what figures of links are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kernbench_core.engine.hardware import Hardware
from kernbench_core.wire import Wire


@contextmanager
def noted_bookings() -> Iterator[list[tuple[str, float, float]]]:
    """Give a list that gets each booking: its wire's name, when it was asked for, and how long it takes, in ns."""
    booked: list[tuple[str, float, float]] = []

    class NotingWire(Wire):
        def send(self, msg: Any, head: float, tail: float) -> None:
            before = self.busy_ns
            super().send(msg, head, tail)
            booked.append((self.name, head, self.busy_ns - before))

        def book(self, nbytes: int, head: float, tail: float, msg: Any = None) -> tuple[float, float]:
            before = self.busy_ns
            answer = super().book(nbytes, head, tail, msg)
            booked.append((self.name, head, self.busy_ns - before))
            return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Hardware, "wire_type", NotingWire)
        yield booked
