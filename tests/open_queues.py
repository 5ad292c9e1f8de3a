"""The queues between PEs that exist at a moment of a run."""

from __future__ import annotations

from typing import Any

from kernbench_builtin.components.queues.rings import Queue, Queues


def open_queues(rt: Any) -> list[Queue]:
    """List them, of the run that a host program is of."""
    found = rt._session.hardware.find(Queues)
    assert found is not None
    return [*found]
