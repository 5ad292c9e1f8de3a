"""Slots of queues that are lent to a kernel; no hardware model takes part."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.errors import KernelError
from kernbench_core.kernel.queue_commands import SlotBlock
from kernbench_core.memory.hazards import Hazards
from kernbench_core.memory.scratchpad import Birth
from kernbench_core.values.region import Region

HERE = (test_site := (lambda: None).__code__, 0)


def slot(back: Any, hazards: Hazards | None = None) -> SlotBlock:
    """Lend a slot of 128 B."""
    birth = Birth("tl.recv", (32,), "f32", HERE)
    return SlotBlock(Region(4096, 128), 64, birth, back, "slot 1 of a queue", 1, hazards)


def test_a_slot_goes_back_once_by_whichever_way_comes_first() -> None:
    """With its last name, or with tl.free; never twice."""
    given: list[str] = []
    lent = slot(lambda: given.append("name"))
    del lent
    lent = slot(lambda: given.append("free"))
    lent.free(HERE)
    assert given == ["name", "free"]
    with pytest.raises(KernelError) as caught:
        lent.free(HERE)
    line = f"{__file__}:{test_site.co_firstlineno}"
    assert str(caught.value) == (
        f"tl.free at {line} must be given a slot once, and f32 [32] of tl.recv, born at {line} was given back at "
        f"{line}; free it once."
    )
    del lent
    assert given == ["name", "free"]


def test_uses_after_that_are_hazards_of_two_lines() -> None:
    """Counted once for each pair of lines, with the place of the slot in the scratchpad and both times."""
    times = iter([5.0, 7.0, 9.0])
    hazards = Hazards(["pe0", "pe1"], lambda: next(times))
    lent = slot(lambda: None, hazards)
    lent.free(HERE)
    lent.refuse("tl.add", HERE)
    lent.refuse("tl.add", HERE)
    (found,) = hazards.found()
    assert (found.kind, found.name, found.byte, found.nbytes, found.count) == (
        "recycled_slot", "slot 1 of a queue", 64, 128, 2
    )  # fmt: skip
    assert (found.first.call, found.first.pe, found.first.issued_ns) == ("tl.free", "pe1", 5.0)
    assert (found.second.call, found.second.issued_ns) == ("tl.add", 7.0)
