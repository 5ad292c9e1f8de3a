"""What this distribution offers. kernbench imports this module at start-up: keep it light."""

from __future__ import annotations

from kernbench_core import (
    AlgorithmEntry,
    BenchEntry,
    CollectiveEntry,
    ComponentEntry,
    MachineEntry,
    NetworkEntry,
    OpEntry,
    ReportSectionEntry,
)

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_components() -> list[ComponentEntry]:
    """Return the hardware models; each is imported when a configuration names it."""
    return [
        ComponentEntry(
            "example.slow_gemm",
            "kernbench_example.slow_gemm:SlowGemm",
            kind="pe_gemm",
            sentence="A small systolic array that fills and drains for every product.",
        ),
        ComponentEntry(
            "example.sfu",
            "kernbench_example.sfu:Sfu",
            kind="pe_sfu",
            sentence="A unit for special functions, which kernbench itself does not have.",
        ),
        ComponentEntry(
            "example.batching_sfu",
            "kernbench_example.batching_sfu:BatchingSfu",
            kind="pe_sfu",
            sentence="The same, with a table that is loaded for each batch of commands.",
        ),
        ComponentEntry(
            "example.retimed_port",
            "kernbench_example.retimed_port:RetimedPort",
            kind="io_ucie, ucie, link",
            sentence="A port of a long link, with retimers on the way.",
        ),
    ]


def kernbench_networks() -> list[NetworkEntry]:
    """Return the shapes of the scale-up network; `system.network.topology: example.hypercube` takes this one."""
    return [
        NetworkEntry(
            "example.hypercube",
            "kernbench_example.hypercube:SHAPE",
            "Packages whose numbers differ in one bit are linked.",
        )
    ]


def kernbench_machines() -> list[MachineEntry]:
    """Return the kinds of machine; a configuration with a section `chain` describes this one."""
    return [MachineEntry("chain", "kernbench_example.chain:CHAIN", "Routers in a row, to drive traffic over.")]


def kernbench_ops() -> list[OpEntry]:
    """Return the ops: a function for one that a unit is asked for, a record for one that kernels call by its name."""
    return [
        OpEntry("example_silu", "kernbench_example.sfu:silu"),
        OpEntry("softplus", "kernbench_example.softplus:SOFTPLUS"),
    ]


def kernbench_collectives() -> list[CollectiveEntry]:
    """Return the collectives: each is a record of what ranks bring and end with."""
    return [
        CollectiveEntry(
            "neighbour_exchange",
            "kernbench_example.neighbour_exchange:NEIGHBOUR_EXCHANGE",
            "Every rank gets the vectors of both its neighbours.",
        )
    ]


def kernbench_algorithms() -> list[AlgorithmEntry]:
    """Return the collective algorithms: each is the `kernel` of a module of its own."""
    return [
        AlgorithmEntry(
            "example.star_all_reduce",
            "kernbench_example.star_all_reduce:kernel",
            "Rank 0 adds what everyone sends, and sends everyone the result.",
        ),
        AlgorithmEntry(
            "example.ring_neighbour_exchange",
            "kernbench_example.ring_neighbour_exchange:kernel",
            "One way around the ring, then the other way.",
        ),
    ]


def kernbench_benches() -> list[BenchEntry]:
    """Return the benches."""
    return [
        BenchEntry("example-silu", "kernbench_example.sfu:bench"),
        BenchEntry("example-softplus", "kernbench_example.softplus:bench"),
    ]


def kernbench_report_sections() -> list[ReportSectionEntry]:
    """Return the sections of the report; this one stands on every page that `kernbench report` writes."""
    return [ReportSectionEntry("late", "kernbench_example.late_starts:LATE", "Which PEs began late, and how late.")]
