"""The page of one point's run, made when it is asked for: the run is made again, and is to be the same."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kernbench_builtin.sweeps.pages.commands import plan_at
from kernbench_builtin.sweeps.pages.page import SHORT_KEY
from kernbench_builtin.sweeps.plan import params_of, settings_of
from kernbench_builtin.sweeps.results import RETIMED, SweepResult
from kernbench_builtin.sweeps.scripts import run_script
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.result import RunResult

RUNS: Final = "runs"
"""The folder in a sweep's folder where the runs of points are kept."""
PAGE: Final = "report.html"
_LEAST_DIGITS: Final = 4


def point_named(sweep: SweepResult, given: str) -> Mapping[str, Any]:
    """Return the point whose key begins so; UsageError for none, several, or too few digits."""
    begin = given.lower()
    found = [record for record in sweep.records if record["key"].startswith(begin)]
    if len(begin) < _LEAST_DIGITS or not found:
        raise UsageError(
            f"--point must begin a point's key, with at least {_LEAST_DIGITS} digits, as the page and the table show "
            f"it, not {brief(given)}."
        )
    if len(found) > 1:
        raise UsageError(f"--point must name one point, and the keys of {len(found)} begin with it; give more digits.")
    return found[0]


def run_folder(folder: Path, record: Mapping[str, Any]) -> Path:
    """Return where the run of a point is kept."""
    return folder / RUNS / str(record["key"])[:SHORT_KEY]


def make_page(sweep: SweepResult, record: Mapping[str, Any], plugins: Plugins) -> Path:
    """Run a point again, keep the run in the sweep's folder, and return its page.

    Warn where the run is not the one that was recorded. Raise what the run raises, as the point did that failed.
    """
    assert sweep.folder is not None, "it was read"
    plan = plan_at(sweep.plan, record)
    folder = run_folder(sweep.folder, record)
    page = folder / PAGE
    asked = plan.run_of(record["values"])
    how = {
        **asked["options"], "components": asked["components"], "set": settings_of(asked), "plugins": plugins,
        "out": folder, "report": page,
    }  # fmt: skip
    try:
        result = run_script(asked, how) if plan.is_script else _run(asked, how)
    except UsageError as error:
        error.add_note("Files that a sweep names are looked for from the folder in which it was begun.")
        raise
    what, recorded, now = "op log", record["op_log_sha256"], str(result.op_log_sha256)
    if record.get("timed") == RETIMED:
        what, recorded, now = "time", str(record["figures"].get("time_ns")), str(result.total_ns)
    if recorded is not None and recorded != now:
        told = f"point {record['index']} must run as it was recorded, and its {what} is another one now"
        again = "what it is made of was changed since. A new sweep has new points."
        warnings.warn(f"{told}: {again}", KernbenchWarning, stacklevel=2)
    return page


def _run(asked: Mapping[str, Any], how: Mapping[str, Any]) -> RunResult:
    from kernbench_core.runs.bench_run import run

    found: RunResult = run(asked["bench"], topology=asked["topology"], params=params_of(asked), **how)
    return found
