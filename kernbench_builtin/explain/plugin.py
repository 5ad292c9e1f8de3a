"""What tells where the time of a run went, and who waits where it stands still."""

from __future__ import annotations

from kernbench_core.plugins import DiagnosisEntry, RunPartEntry

HERE = "kernbench_builtin.explain"

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return the parts of runs."""
    return [
        RunPartEntry("verdict", f"{HERE}.part:VerdictPart", "What limits the run, and what to try."),
        RunPartEntry("explain", f"{HERE}.part:ExplainPart", "Where the time went, and why."),
        RunPartEntry("tcm_map", f"{HERE}.part:TcmMapPart", "What the scratchpads held over time."),
    ]


def kernbench_diagnoses() -> list[DiagnosisEntry]:
    """Return what tells who waits."""
    return [DiagnosisEntry("waits", f"{HERE}.deadlock:diagnosis", "Who waits for whom, and the shortest cycle.")]
