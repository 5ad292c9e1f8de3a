"""Atomic transactions: what the memory that serves one owes it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernbench_core.errors import ComponentError
from kernbench_core.memory import AtomicTransaction
from kernbench_core.values.region import Region


@pytest.mark.parametrize("wrong", [0.0, math.nan, math.inf])
def test_elements_change_when_they_are_served(wrong: float) -> None:
    """Not before the transaction was sent, nor at no time; at the time that is given they have their turn."""
    turns: list[float] = []
    numbers = np.zeros(1, np.int64)
    sent = AtomicTransaction(
        (Region(0, 4),), ("pe", "memory"), lambda back: None, addresses=numbers, turns=numbers, sent=4, returned=4,
        turn=turns.append,
    )  # fmt: skip
    sent.born = 7.0
    with pytest.raises(ComponentError) as caught:
        sent.change(wrong)
    assert str(caught.value) == (
        f"memory must change elements for an AtomicTransaction when it serves it, not at {wrong!r} ns; give change the "
        "present time."
    )
    sent.change(7.0)
    assert (turns, sent.changed_ns) == ([7.0], 7.0)
