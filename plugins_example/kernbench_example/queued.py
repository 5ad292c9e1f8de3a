"""What is said of units of our kind where a run stands still: how many commands wait for their next batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_example.batching_sfu import BatchingSfu

if TYPE_CHECKING:
    from kernbench_core.host import GraphEngine


def lines(session: GraphEngine, over: bool) -> list[str]:
    """Return a line for each such unit that has commands which wait; `over` where nothing is left to happen."""
    units = session.hardware.components.items()
    waiting = [(name, len(unit.queue)) for name, unit in units if isinstance(unit, BatchingSfu) and unit.queue]
    return [f"  {name} has {count} commands that wait for its next batch" for name, count in waiting]
