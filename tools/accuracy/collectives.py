"""Collectives: simulated times against sums over steps and links, and what nothing can beat.

The reference adds up the messages of an algorithm step by step on a graph of the links (`tests/reference`,
networkx) with its own list of who sends what to whom; it shares nothing with kernbench's kernels, wires and forms.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from kernbench_ccl.measure import time_collective
from tests.reference import collective_steps

ABOUT = SimpleNamespace(
    title="Collectives",
    reference="The messages of each step, written down once more and added up on a graph of the links by networkx: a "
    "step takes the latency of its longest way and the bytes of its fullest link.",
    equal="Links of 100 GB/s and 500 ns, ranks, bytes, who sends what to whom in which step. Nothing on a die takes "
    "time (`--idealised`), and no step begins before the last one has ended (`--pipeline off`).",
    differs="kernbench runs the kernels: messages of 16 KiB in chunks of 4 KiB, queues, windows, and 2^-16 ns for "
    "each node and wire on a die. The reference has whole messages and no nodes; over a storing switch kernbench has "
    "whole messages, too.",
    direction="Never below. Above by the time grid, 1 to 2 ns; `halving_doubling` of other numbers of ranks than "
    "powers of two by two or three chunks on the link of a switch (4 % of 64 KiB on 6), as what comes early holds a "
    "PE's wires. What the reference leaves out, overheads on a die, is in docs/timing_model.md: there a step of a ring "
    "is the sum of its parts, within 1 %. Optimistic where wires buffer without limit.",
    cost="0.2 to 7 s for a case, some 60,000 events a second; pipelined the same.",
    within=0.01,
)
"""What the page says of it."""
STORING = "storing switch"
"""A switch that has each message in whole before it goes on; one PE of a rank sends whole parts to it."""
BANDWIDTH, LATENCY = 100.0, 500.0
"""GB/s and ns of a link and direction of the preset."""
CASES: tuple[tuple[str, str, str, int, int], ...] = (
    ("ring", "all_reduce", "ring", 8, 1 << 20),
    ("ring", "all_reduce", "switch", 8, 1 << 18),
    ("ring", "all_gather", "ring", 16, 1 << 18),
    ("ring", "broadcast", "ring", 5, 1 << 18),
    ("ring_bidirectional", "all_reduce", "ring", 7, 1 << 18),
    ("ring_bidirectional", "reduce_scatter", "fully_connected", 6, 1 << 18),
    ("direct", "all_reduce", "fully_connected", 8, 1 << 20),
    ("direct", "all_reduce", "fully_connected", 16, 1 << 20),
    ("direct", "all_gather", "switch", 12, 1 << 18),
    ("direct", "all_to_all", "fully_connected", 12, 1 << 18),
    ("direct", "gather", "switch", 16, 1 << 18),
    ("direct", "broadcast", "fully_connected", 16, 1 << 16),
    ("pairwise", "all_to_all", "switch", 8, 1 << 18),
    ("halving_doubling", "all_reduce", "fully_connected", 8, 1 << 18),
    ("halving_doubling", "all_reduce", "fully_connected", 6, 1 << 18),
    ("halving_doubling", "all_reduce", "switch", 16, 1 << 18),
    ("halving_doubling", "all_gather", "switch", 8, 1 << 18),
    ("halving_doubling", "reduce_scatter", "fully_connected", 16, 1 << 18),
    ("direct", "all_gather", STORING, 5, 5 << 17),
    ("direct", "all_gather", STORING, 8, 1 << 20),
    ("direct", "all_reduce", STORING, 6, 6 << 17),
    ("ring", "all_gather", STORING, 4, 1 << 19),
)
"""Method, collective, network, ranks, and bytes as nccl counts them."""


def compare() -> list[tuple[str, float, float, str, float]]:
    """Run each case on the idealised machine, step by step, with the PEs of "auto"; times in us, out of place."""
    return [_row(*case) for case in CASES]


def _row(method: str, collective: str, network: str, ranks: int, nbytes: int) -> tuple[str, float, float, str, float]:
    stores, part = network == STORING, nbytes // ranks
    network = "switch" if stores else network
    whole = [f"system.chunk_bytes={part} B", "components.switch.params.store_and_forward=true"] if stores else []
    with TemporaryDirectory() as folder:
        config = Path(folder, "ccl.yaml")
        config.write_text(f"defaults: {{chunk: {part} B, slot_bytes: {part} B, pes: 1}}\n" if stores else "{}\n")
        [found] = time_collective(
            collective, [nbytes], "tiny", algo=method, ranks=ranks, idealised=True, pipeline=False, check=False,
            set=[f"system.network.topology={network}", *whole], config=str(config),
        )  # fmt: skip
    steps = collective_steps.STEPS[f"{method}_{collective}"](ranks, float(found.size))
    links = collective_steps.links_of(f"{method}_{collective}", network, ranks)
    right = collective_steps.time_of(links, steps, BANDWIDTH, LATENCY, stores=stores) / 1000
    ours = found.out_of_place.time_ns / 1000
    case = f"{method} {collective}, {STORING if stores else network} of {ranks}, {nbytes >> 10} KiB"
    return case, ours, right, "us", ours / right - 1
