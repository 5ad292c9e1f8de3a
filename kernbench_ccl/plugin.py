"""What the collective package offers: its collectives, algorithms and benches, one line each, and its command."""

from __future__ import annotations

from typing import Any, Final

from kernbench_core.plugin import RUN
from kernbench_core.plugins import (
    AlgorithmEntry,
    BenchEntry,
    CalibratorEntry,
    CollectiveEntry,
    CommandEntry,
    KitEntry,
    Point,
)


def _algorithm(method: str, collective: str, sentence: str) -> AlgorithmEntry:
    name = f"{method}_{collective}"
    return AlgorithmEntry(f"ccl.{name}", f"kernbench_ccl.algorithms.{name}:kernel", sentence, collective)

#: The version of the hooks that this module is written for.
kernbench_api = 1


#: The algorithms, and the collectives that they do.
ALGORITHMS: Final = Point(AlgorithmEntry, "Return the collective algorithms, named `vendor.thing`.")
COLLECTIVES: Final = Point(
    CollectiveEntry, "Return the collectives, of which algorithms do one each; names are bare."
)


def kernbench_points() -> list[Point[Any]]:
    """Return the sorts of entries that collectives are made of."""
    return [ALGORITHMS, COLLECTIVES]


def kernbench_algorithms() -> list[AlgorithmEntry]:
    """Return the collective algorithms."""
    return [
        _algorithm("ring", "all_reduce", "Partial sums, then sums, around a ring."),
        _algorithm("ring", "all_gather", "Every rank passes on what it got last, around a ring."),
        _algorithm("ring", "reduce_scatter", "Partial sums travel around a ring to their rank."),
        _algorithm("ring", "broadcast", "A chain along the ring that tiles stream through."),
        _algorithm("ring", "reduce", "A chain along the ring in which every rank adds its tiles."),
        _algorithm("ring_bidirectional", "all_reduce", "Halves of the vector go around a ring in opposite directions."),
        _algorithm("ring_bidirectional", "all_gather", "Halves of each part go around a ring in opposite directions."),
        _algorithm(
            "ring_bidirectional", "reduce_scatter", "Halves of each part go around a ring in opposite directions."
        ),
        _algorithm(
            "halving_doubling", "all_reduce", "Recursive halving, then doubling: few steps, any number of ranks."
        ),
        _algorithm("halving_doubling", "all_gather", "Recursive doubling: few steps, a power of two of ranks."),
        _algorithm("halving_doubling", "reduce_scatter", "Recursive halving: few steps, a power of two of ranks."),
        _algorithm("binomial_tree", "broadcast", "Few steps, for short messages."),
        _algorithm("binomial_tree", "reduce", "Few steps, for short messages."),
        _algorithm(
            "double_binary_tree", "all_reduce", "Two trees, each for half of the vector: few steps and full bandwidth."
        ),
        _algorithm(
            "double_binary_tree", "broadcast", "Two trees, each for half of the vector: few steps and full bandwidth."
        ),
        _algorithm(
            "double_binary_tree", "reduce", "Two trees, each for half of the vector: few steps and full bandwidth."
        ),
        _algorithm("mesh", "all_reduce", "Rows and columns of a 2-D mesh, both orders at the same time."),
        _algorithm("mesh", "all_gather", "Rows and columns of a 2-D mesh, both orders at the same time."),
        _algorithm("mesh", "reduce_scatter", "Rows and columns of a 2-D mesh, both orders at the same time."),
        _algorithm(
            "torus", "all_reduce", "Rows and columns of a 2-D torus, both orders and directions at the same time."
        ),
        _algorithm(
            "torus", "all_gather", "Rows and columns of a 2-D torus, both orders and directions at the same time."
        ),
        _algorithm(
            "torus", "reduce_scatter", "Rows and columns of a 2-D torus, both orders and directions at the same time."
        ),
        _algorithm("direct", "all_reduce", "Every rank reduces one segment and sends it to everyone: two steps."),
        _algorithm("direct", "all_gather", "Every rank sends its part to every other."),
        _algorithm("direct", "reduce_scatter", "Every rank sends each other what that one reduces."),
        _algorithm("direct", "all_to_all", "Tiles for all peers at the same time."),
        _algorithm("direct", "broadcast", "The root sends to everyone."),
        _algorithm("direct", "reduce", "Everyone sends to the root."),
        _algorithm("direct", "gather", "Everyone sends its part to the root."),
        _algorithm("direct", "scatter", "The root sends everyone its part."),
        _algorithm("direct", "send_recv", "Every rank sends to the next."),
        _algorithm("pairwise", "all_to_all", "In round i every rank sends to the rank i after it."),
        _algorithm("dissemination", "barrier", "In round k every rank tells the rank 2^k after it."),
        _algorithm("hierarchical", "all_reduce", "Every PE brings a vector: over a cube, a SIP, the SIPs, and back."),
    ]


def _collective(name: str, sentence: str) -> CollectiveEntry:
    return CollectiveEntry(name, f"kernbench_ccl.collectives.{name}:{name.upper()}", sentence)


def kernbench_collectives() -> list[CollectiveEntry]:
    """Return the collectives."""
    return [
        _collective("all_reduce", "Every rank gets the reduction of all ranks' vectors."),
        _collective("all_gather", "Every rank gets the vectors of all ranks, one after the other."),
        _collective("reduce_scatter", "Every rank gets its part of the reduction of all ranks' vectors."),
        _collective("all_to_all", "Every rank sends each rank a part of its vector (alltoall)."),
        _collective("broadcast", "Every rank gets the root's vector."),
        _collective("reduce", "The root gets the reduction of all ranks' vectors."),
        _collective("gather", "The root gets the vectors of all ranks, one after the other."),
        _collective("scatter", "Every rank gets its part of the root's vector."),
        _collective("send_recv", "Every rank sends to the next one and receives from the one before."),
        _collective("barrier", "No rank ends before every other has begun."),
    ]


def kernbench_benches() -> list[BenchEntry]:
    """Return the benches whose ranks work together."""
    return [
        BenchEntry("collective", "kernbench_ccl.benches.collective:bench"),
        BenchEntry("tp-mlp", "kernbench_ccl.benches.tp_mlp:bench"),
        BenchEntry("moe-all-to-all", "kernbench_ccl.benches.moe_all_to_all:bench"),
        BenchEntry("dp-gradients", "kernbench_ccl.benches.dp_gradients:bench"),
    ]


def kernbench_commands() -> list[CommandEntry]:
    """Return the command that times and checks collectives."""
    return [CommandEntry("ccl", "kernbench_ccl.cli:ccl", "Time collectives as nccl-tests does; check algorithms.", RUN)]


def kernbench_calibrators() -> list[CalibratorEntry]:
    """Return the formats of measured collectives."""
    where = "kernbench_ccl.calibrate.collective_log"
    return [
        CalibratorEntry("nccl", f"{where}:NcclLog", "The text output of nccl-tests."),
        CalibratorEntry("collectives", f"{where}:CollectiveCsv", "A CSV of collectives."),
    ]


def kernbench_kits() -> list[KitEntry]:
    """Return the kits of checks for what plug-ins bring to this package."""
    where = "kernbench_ccl.testing.kits"
    return [
        KitEntry("algorithms", f"{where}:ALGORITHMS", "Algorithms of collectives."),
        KitEntry("collectives", f"{where}:COLLECTIVES", "Collectives, which algorithms do."),
    ]
