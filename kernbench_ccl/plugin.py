"""What the collective package offers: its algorithms, one line for each, and its command."""

from __future__ import annotations

from kernbench_core.registry import AlgorithmEntry, CommandEntry


def _algorithm(method: str, collective: str, sentence: str) -> AlgorithmEntry:
    name = f"{method}_{collective}"
    return AlgorithmEntry(f"ccl.{name}", f"kernbench_ccl.algorithms.{name}:kernel", sentence, collective)


def kernbench_algorithms() -> list[AlgorithmEntry]:
    """Return the collective algorithms."""
    return [
        _algorithm("ring", "all_reduce", "Partial sums, then sums, around a ring."),
        _algorithm("ring", "all_gather", "Every rank passes on what it got last, around a ring."),
        _algorithm("ring", "reduce_scatter", "Partial sums travel around a ring to their rank."),
        _algorithm("ring_bidirectional", "all_reduce", "Halves of the vector go around a ring in opposite directions."),
        _algorithm("ring_bidirectional", "all_gather", "Halves of each part go around a ring in opposite directions."),
        _algorithm("ring_bidirectional", "reduce_scatter", "Halves of each part go around a ring in opposite ways."),
    ]


def kernbench_commands() -> list[CommandEntry]:
    """Return the command that times and checks collectives."""
    return [CommandEntry("ccl", "kernbench_ccl.cli:ccl", "Time collectives as nccl-tests does; check algorithms.")]
