"""What the collective package offers: its algorithms, one line for each."""

from __future__ import annotations

from kernbench_core.registry import AlgorithmEntry


def kernbench_algorithms() -> list[AlgorithmEntry]:
    """Return the collective algorithms; there are none yet."""
    return []
