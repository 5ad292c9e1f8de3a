"""What this distribution offers. kernbench imports this module at start-up: keep it light."""

from __future__ import annotations

from kernbench_core import (
    AlgorithmEntry,
    BackendEntry,
    BenchEntry,
    CalibratorEntry,
    CollectiveEntry,
    CommandEntry,
    ComponentEntry,
    DiagnosisEntry,
    ExporterEntry,
    KitEntry,
    LanguageEntry,
    MachineEntry,
    MemoryStandardEntry,
    NetworkEntry,
    OpEntry,
    PictureEntry,
    ProgramEntry,
    ReportSectionEntry,
    RunPartEntry,
    TopologyEntry,
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


def kernbench_memory_standards() -> list[MemoryStandardEntry]:
    """Return the standards of memories; `standard: example.hbm3_4000` of a controller with banks takes this one."""
    return [MemoryStandardEntry("example.hbm3_4000", "kernbench_example.slow_hbm3:STANDARD", "HBM3 at 4 Gb/s.")]


def kernbench_topologies() -> list[TopologyEntry]:
    """Return the presets; `--topology example-pair` takes this one."""
    return [TopologyEntry("example-pair", "kernbench_example:pair.yaml", "Two small packages with a batching unit.")]


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


def kernbench_language() -> list[LanguageEntry]:
    """Return the calls of the kernel language; kernels call this one as `tl.l2norm(x)`."""
    return [LanguageEntry("l2norm", "kernbench_example.l2norm:l2norm", "The length of a tile as a vector.")]


def kernbench_diagnoses() -> list[DiagnosisEntry]:
    """Return what tells who waits where a run stands still."""
    return [DiagnosisEntry("example", "kernbench_example.queued:lines", "Commands that wait for a batch.")]


def kernbench_backends() -> list[BackendEntry]:
    """Return what computes the data; `--backend example.wide` takes this one."""
    return [BackendEntry("example.wide", "kernbench_example.wide_products:WideProducts", "Products in f64.")]


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
        BenchEntry("example-tables", "kernbench_example.lookup_tables:bench"),
        BenchEntry("example-softplus", "kernbench_example.softplus:bench"),
    ]


def kernbench_programs() -> list[ProgramEntry]:
    """Return the kinds of program that `kernbench run FILE:NAME` knows, beside benches and kernels."""
    return [ProgramEntry("elementwise", "kernbench_example.elementwise:ELEMENTWISE", "A function of elements.")]


def kernbench_report_sections() -> list[ReportSectionEntry]:
    """Return the sections of the report; this one stands on every page that `kernbench report` writes."""
    return [
        ReportSectionEntry("late", "kernbench_example.late_starts:LATE", "Which PEs began late, and how late."),
        ReportSectionEntry("idle", "kernbench_example.idle:IDLE", "When no unit was busy."),
    ]


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return what runs may be asked for besides their times; `kernbench run BENCH --idle` asks for this one."""
    return [RunPartEntry("idle", "kernbench_example.idle:IdlePart", "When no unit was busy.")]


def kernbench_pictures() -> list[PictureEntry]:
    """Return what draws things for notebooks."""
    return [PictureEntry("idle", "kernbench_example.idle:picture", "Idle times.")]


def kernbench_commands() -> list[CommandEntry]:
    """Return the sub-commands of `kernbench`."""
    return [CommandEntry("example-units", "kernbench_example.units:units", "Count the nodes of a machine by model.")]


def kernbench_exporters() -> list[ExporterEntry]:
    """Return the formats of traces; `--trace run.csv` takes this one."""
    return [ExporterEntry("example-csv", "kernbench_example.op_csv:export", (".csv",), "A line for each op.")]


def kernbench_calibrators() -> list[CalibratorEntry]:
    """Return the formats of measurements that `kernbench calibrate` reads."""
    return [CalibratorEntry("pings", "kernbench_example.ping_log:PingLog", "Pings over several hops.")]


def kernbench_kits() -> list[KitEntry]:
    """Return the kits of checks: one is for everybody's formats of traces, one drives units of our own kind."""
    return [
        KitEntry("exporters", "kernbench_example.exporter_kit:KIT", "Formats of traces."),
        KitEntry("components.pe_sfu", "kernbench_example.sfu_driver:drive", "Look-ups for units of the kind pe_sfu."),
    ]
