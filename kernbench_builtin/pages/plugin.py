"""What shows runs: commands, parts of runs, formats of traces and sections of the report, which others may add to."""

from __future__ import annotations

from typing import Any, Final

from kernbench_core.plugin import RUN
from kernbench_core.plugins import (
    CommandEntry,
    ExporterEntry,
    FolderEntry,
    PictureEntry,
    Point,
    ReportSectionEntry,
    RunPartEntry,
)

HERE = "kernbench_builtin.pages"
PAGE = f"{HERE}.report"

#: The version of the hooks that this module is written for.
kernbench_api = 1

EXPORTERS: Final = Point(
    ExporterEntry, "Return the file formats of `--trace FILE`, each with the suffixes of FILE that choose it."
)
REPORT_SECTIONS: Final = Point(
    ReportSectionEntry, "Return the sections of the HTML report; names are bare.", all_used=True
)
FOLDERS: Final = Point(FolderEntry, "Return what the pages of saved things show besides runs; names are bare.")


def kernbench_points() -> list[Point[Any]]:
    """Return the sorts of entries that pages are made of."""
    return [EXPORTERS, REPORT_SECTIONS, FOLDERS]


def kernbench_commands() -> list[CommandEntry]:
    """Return the commands."""
    return [
        CommandEntry("trace", f"{HERE}.trace_command:trace", "Write or open the timeline of a saved run.", RUN),
        CommandEntry(
            "report", f"{HERE}.report_command:report", "Write one offline HTML page of runs, or of a sweep.", RUN
        ),
        CommandEntry("web", f"{HERE}.web_command:web", "Show saved runs and sweeps in a browser.", RUN),
    ]


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return the parts of runs."""
    return [
        RunPartEntry("timeline", f"{HERE}.parts:TimelinePart", "What happened when."),
        RunPartEntry("machine", f"{HERE}.parts:MachinePart", "The machine as it is drawn, with what everything did."),
        RunPartEntry("trace", f"{HERE}.parts:TracePart", "The timeline in a file for a viewer."),
        RunPartEntry("report", f"{HERE}.parts:ReportPart", "A page of the run."),
        RunPartEntry("watch", f"{HERE}.parts:WatchPart", "Pages of a run while it goes on."),
    ]


def kernbench_exporters() -> list[ExporterEntry]:
    """Return the trace formats."""
    return [
        ExporterEntry(
            "chrome-trace",
            f"{HERE}.exporters.chrome_trace:export",
            (".json",),
            "Chrome and Perfetto JSON.",
            takes="timeline",
        ),
        ExporterEntry(
            "perfetto",
            f"{HERE}.exporters.perfetto:export",
            (".pftrace",),
            "Perfetto's own protobuf, with nested tracks.",
            takes="timeline",
        ),
    ]


def kernbench_pictures() -> list[PictureEntry]:
    """Return what draws for notebooks."""
    return [PictureEntry("pages", f"{PAGE}.notebook:picture", "Runs, machines, launches, hazards and tensors.")]


def kernbench_report_sections() -> list[ReportSectionEntry]:
    """Return the sections of the report; core draws what it knows of every run itself."""
    return [
        ReportSectionEntry("summary", f"{PAGE}.summary_section:SUMMARY", "How long, how fast, and whether right."),
        ReportSectionEntry("machine", f"{PAGE}.machine_section:MACHINE", "The machine, coloured by use or queueing."),
        ReportSectionEntry("timeline", f"{PAGE}.timeline_section:TIMELINE", "What happened when, down to single ops."),
        ReportSectionEntry("ledger", f"{PAGE}.ledger_section:LEDGER", "Where the time went, and why."),
        ReportSectionEntry("what_if", f"{PAGE}.what_if_section:WHAT_IF", "What a faster resource would gain."),
        ReportSectionEntry("run", f"{PAGE}.run_section:RUN", "What it takes to run it again."),
    ]
