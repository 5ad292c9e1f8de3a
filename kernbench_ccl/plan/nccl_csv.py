"""A table of a machine as the CSV of NCCL's example tuner plug-in, for the algorithms that NCCL has a name for.

A line is `collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks`; `#` begins a comment, and the
plug-in reads 255 letters of a line. NCCL's bytes are the larger of what a rank sends and what it receives, which is the
size as nccl-tests counts it. Broadcast and reduce have the ring only, all-gather and reduce-scatter no tree.

Source: NVIDIA nccl, `ext-tuner/example/README.md` and `plugin.c` (format), `src/graph/tuning.cc` (who has what).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kernbench_ccl.plan.machine_tuning import MachineTuning, MeasuredTimes
from kernbench_core.units import format_bytes

LARGEST: Final = 4294967295
"""What stands for no upper limit."""

TYPES: Final = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter", "broadcast": "broadcast",
    "reduce": "reduce",
}  # fmt: skip
"""What NCCL calls the collectives that its tuner has."""

_RINGS: Final = {"ring": "ring", "ring_bidirectional": "ring"}
NAMES: Final = {**dict.fromkeys(TYPES, _RINGS), "all_reduce": {**_RINGS, "double_binary_tree": "tree"}}
"""What NCCL calls the methods of a collective."""

_REST: Final = "simple,-1,-1"
"""The protocol that copies whole blocks, NCCL's own number of channels, any number of nodes."""


def nccl_lines(table: MachineTuning) -> Iterator[str]:
    """Yield the lines: for each size the best algorithm that NCCL has a name for, and where another one is better."""
    yield "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks"
    yield f"# by kernbench ccl tune, from simulations of {table.made_on}"[:200]
    for entry in table.entries:
        yield from _of_entry(entry)


def _of_entry(entry: MeasuredTimes) -> Iterator[str]:
    what = f"{entry.collective} of {entry.world} ranks"
    kind = TYPES.get(entry.collective)
    if kind is None:
        yield f"# {what}: NCCL's tuner has no such collective"
        return
    named = {name: nccl for name in entry.names if (nccl := nccl_name(name, entry.collective)) is not None}
    if not named:
        yield f"# {what}: nothing that was measured has a name in NCCL"
        return
    least = 0
    for most, name in entry.best_name_by_size(tuple(entry.names)):
        if name not in named:
            yield f"# {what}, {_span(least, most)}: {name} is the fastest, and has no name in NCCL"
        least = 0 if most is None else most + 1
    least, lines = 0, list[tuple[int, int, str]]()
    for most, name in entry.best_name_by_size(tuple(named)):
        end = LARGEST if most is None else most
        if lines and lines[-1][2] == named[name]:
            lines[-1] = (lines[-1][0], end, named[name])
        else:
            lines.append((least, end, named[name]))
        least = end + 1
    yield from (f"{kind},{low},{high},{name},{_REST},{entry.world}" for low, high, name in lines)


def nccl_name(name: str, collective: str) -> str | None:
    """Return what NCCL calls a registered algorithm of a collective; None where it has no name for it."""
    method = name.rpartition(".")[2].removesuffix(f"_{collective}")
    return NAMES.get(collective, {}).get(method)


def _span(least: int, most: int | None) -> str:
    if most is None:
        return f"from {format_bytes(least)} on" if least else "all sizes"
    return f"up to {format_bytes(most)}" if not least else f"{format_bytes(least)} to {format_bytes(most)}"
