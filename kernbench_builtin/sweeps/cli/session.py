"""One call of `kernbench sweep`: the plan that it asks for, its rows as they come, and how it ended."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import rich_click as click
from attrs import define, field

from kernbench_builtin.machines.cli.project import project_machine
from kernbench_builtin.sweeps.axes import short_names, value_text
from kernbench_builtin.sweeps.cli.progress import SweepProgress
from kernbench_builtin.sweeps.cli.rows import RowPrinter, Rows
from kernbench_builtin.sweeps.drive import is_failed
from kernbench_builtin.sweeps.fidelity import fidelity_errors
from kernbench_builtin.sweeps.folder import SweepFolder, is_sweep, read_sweep
from kernbench_builtin.sweeps.plan import LIMITS, OPTIONS, SweepPlan
from kernbench_builtin.sweeps.planning.cli_plan import plan_of
from kernbench_builtin.sweeps.planning.plan_file import read_plan
from kernbench_builtin.sweeps.points import SweepPoint
from kernbench_builtin.sweeps.results import FULL, SweepResult, points_in_words
from kernbench_builtin.sweeps.retimed import how_timed
from kernbench_builtin.sweeps.shaken import PointOptions
from kernbench_builtin.sweeps.sweeping import PlannedSweep, planned, run_planned
from kernbench_core.cli.columns import width
from kernbench_core.cli.shell import Shell
from kernbench_core.cli.streams import prints_to_stderr
from kernbench_core.errors import UsageError
from kernbench_core.process.terminal import shown
from kernbench_core.runs.result import json_text
from kernbench_core.spread import NOT_KNOWN

_FAILED = 1
#: So many of the best points are named.
_BEST = 12
#: So many of the warnings of points are told.
_NOTES = 5


@define
class SweepSession:
    """A sweep that can begin, or one to look at: `planned` is None for that."""

    shell: Shell
    folder: str | None
    as_json: bool
    quiet: bool
    planned: PlannedSweep | None
    rows: RowPrinter | None = None
    progress: SweepProgress | None = None
    opened: SweepFolder | None = None
    notes: dict[str, None] = field(factory=dict)
    retries: bool = False

    @classmethod
    def of(
        cls, shell: Shell, bench: str, folder: str | None, goes_on: bool, as_json: bool, quiet: bool,
        asked: dict[str, Any],
    ) -> SweepSession:  # fmt: skip
        """Plan a sweep of what the command line asks for; raise the KernbenchError that says all that is wrong."""
        if is_sweep(bench):
            _require_alone(bench, folder, asked)
            if not goes_on:
                return cls(shell, bench, as_json, quiet, None)
            with prints_to_stderr():
                return cls(shell, bench, as_json, quiet, planned(_again(read_sweep(bench).plan, asked), shell.plugins))
        if goes_on and (folder is None or not is_sweep(folder)):
            raise UsageError(
                "--resume, --retry-failed and --retry-changed must be given with the folder of a sweep, as -o DIR or "
                "in place of BENCH; drop them to begin one."
            )
        with prints_to_stderr():  # what a bench prints when it is opened is no row
            return cls(shell, folder, as_json, quiet, planned(_plan(shell, bench, asked), shell.plugins))

    def run(self, **how: Any) -> int:
        """Carry the sweep out and print it; return the exit code. `how` is what `run_planned` takes."""
        if self.planned is None:
            assert self.folder is not None, "it is what is looked at"
            return self._shown(read_sweep(self.folder))
        self.retries = bool(how.get("retry_failed"))
        self._plan_rows(self.planned.plan, self.planned.points, self.planned.most)
        title, of = Path(self.planned.plan.bench).name, self.planned.most
        self.progress = SweepProgress(title, of, at_most=self.planned.search is not None, enabled=self.tells)
        try:
            with self.progress:
                done = run_planned(
                    self.planned, self.shell.plugins, folder=self.folder, begin=self._begin,
                    on_points=self._show_points, on_record=self._show_record, **how,
                )  # fmt: skip
        except BaseException as error:
            self._rest()
            if isinstance(error, KeyboardInterrupt):
                error.add_note(self._interrupted(of))
            raise
        return self._end(done)

    def page(self, report: str) -> Path:
        """Return where the sweep's page goes; UsageError where it cannot be written, or no folder holds the sweep."""
        from kernbench_core.process.whole_files import check_file

        if self.folder is None:
            raise UsageError("--report must be given with -o DIR, which holds the sweep that the page shows; add it.")
        return check_file("report", Path(report), ".html")

    def write_page(self, path: Path, named: str) -> None:
        """Write the sweep's page, as `kernbench report` does, to the file that the user `named`."""
        from kernbench_builtin.sweeps.pages.folder import SavedSweep

        assert self.folder is not None, "`page` asked for it"
        points = SavedSweep().write_page(self.shell, self.folder, path, ())
        if self.tells:
            click.echo(shown(f"{named}: {points}"))

    @property
    def tells(self) -> bool:
        """Whether more than the end is shown."""
        return not (self.as_json or self.quiet)

    def _plan_rows(self, plan: SweepPlan, points: Sequence[SweepPoint], most: int) -> None:
        self.rows = None if not self.tells else RowPrinter(Rows(plan, points, width(), most, sys.stdout.isatty()))

    def _begin(self, folder: SweepFolder) -> None:
        """Print the head."""
        assert self.progress is not None, "a sweep begins when it is planned"
        self.opened = folder
        self.progress.began()
        if self.rows is not None:
            self.rows.head()

    def _show_points(self, points: Sequence[SweepPoint]) -> None:
        """Print the rows of those points that are recorded already."""
        assert self.progress is not None and self.opened is not None, "points come when a sweep has begun"
        known = [self.opened.records[point.key] for point in points if point.key in self.opened.records]
        known = [record for record in known if not (self.retries and is_failed(record))]
        self.progress.known(len(known))
        if self.rows is not None:
            self.rows.coming(points)
            for record in known:
                self.rows.row(record)

    def _show_record(self, record: Mapping[str, Any]) -> None:
        self.notes |= dict.fromkeys(record["warnings"])
        if self.progress is not None:
            self.progress.told(record)
        if self.rows is not None:
            self.rows.row(record)

    def _rest(self) -> None:
        if self.rows is not None:
            self.rows.rest()

    def _interrupted(self, of: int) -> str:
        over = 0 if self.progress is None else self.progress.over
        count = f"after {over} of {of} points"
        if self.folder is None:
            return f"{count}; with -o DIR they would be kept"
        return f"{count}, which are kept; go on with 'kernbench sweep {self.folder} --resume'"

    def _shown(self, sweep: SweepResult) -> int:
        points = [SweepPoint(record["values"], record["key"], record["index"]) for record in sweep.records]
        self._plan_rows(sweep.plan, points, len(points))
        if self.rows is not None:
            self.rows.head()
            for record in sweep.records:
                self.rows.row(record)
        return self._end(sweep)

    def _end(self, sweep: SweepResult) -> int:
        """Sum up; return 1 where a point failed or is wrong."""
        self._rest()
        for note in list(self.notes)[:_NOTES]:
            self.shell.warn(note)
        if len(self.notes) > _NOTES:
            self.shell.warn(f"and {len(self.notes) - _NOTES} more; each is in the record of its point.")
        hits = [record["cache_note"] for record in sweep.records if record["from_cache"]]
        if hits:
            self.shell.note(f"{len(hits):,} of {points_in_words(len(sweep.records))}, the first {hits[0]}")
        counts = sweep.counts
        if self.as_json:
            told: dict[str, Any] = {"schema": "kernbench.sweep/1", "folder": self.folder, "plan": sweep.plan.to_json()}
            if sweep.plan.fidelity is not None:
                told["fidelity"] = [each.to_json() for each in fidelity_errors(sweep)]
            if sweep.notes:
                told["notes"] = list(sweep.notes)
            click.echo(json_text({**told, "counts": counts, "left": sweep.left, "points": sweep.rows}))
        else:
            self._sum_up(sweep)
        return _FAILED if set(counts) - {"ok"} else 0

    def _fidelity(self, sweep: SweepResult) -> list[str]:
        """Say how far what was screened is off."""
        found = fidelity_errors(sweep)
        if not found:
            return []
        how = "" if self.planned is None or self.planned.screening is None else f" ({self.planned.screening})"
        return [f"screened{how} against in full:", *(f"  {each}" for each in found)]

    def _sum_up(self, sweep: SweepResult) -> None:
        """Say how many points there are, how they ended, and which are the best."""
        parts = ", ".join(f"{count} {status}" for status, count in sweep.counts.items())
        skipped = 0 if self.planned is None else self.planned.skipped
        left_out = f"; {points_in_words(skipped)} left out by --where" if skipped else ""
        where = "" if self.folder is None else f"; kept in {self.folder}"
        full = sum(record.get("fidelity") == FULL for record in sweep.records)
        points = points_in_words(len(sweep.records) - full)
        points += "" if sweep.plan.fidelity is None else f" screened, {full} of them run in full"
        left = f"; {sweep.left:,} left, which --resume goes on with" if sweep.left else ""
        best, parts = _best(sweep), f": {parts}" if parts else ""
        if self.quiet:
            click.echo(shown(f"{points}{parts}{left_out}{where}{left}{'; ' if best else ''}{best}"))
            return
        click.echo(shown(f"{points}{parts}{left_out}{where}{left}"))
        for note in (*sweep.notes, *self._fidelity(sweep), *how_timed(sweep.records)):
            click.echo(shown(note))
        for told in (best, _apart(sweep) if best else "", _unmoved(sweep)):
            if told:
                click.echo(shown(told))
        if self.folder is not None:
            click.echo(shown(f"more: kernbench report {shlex.quote(self.folder)}"))


def _best(sweep: SweepResult) -> str:
    """Name the best points, with the values of the first; "" where all took equal times, and nobody asked for more."""
    best, gain = [row["index"] for row in sweep.best], sweep.gain
    if not best or (not sweep.plan.objectives and (gain is None or gain == 1)):
        return ""
    texts = [f"#{number}" for number in best[:_BEST]]
    what = "best" if len(best) == 1 else "the Pareto front" if len(sweep.plan.objectives) > 1 else "equal best"
    values = next(record["values"] for record in sweep.records if record["index"] == best[0])
    if values and len(sweep.plan.objectives) < 2:
        pairs = zip(short_names(values), values.values(), strict=True)
        texts[0] += f" ({', '.join(f'{name}={value_text(value)}' for name, value in pairs)})"
    more = f" and {len(best) - _BEST} more" if len(best) > _BEST else ""
    faster = "" if gain is None or gain < 1.005 else f"; {gain:,.2f} times as fast as the slowest"
    return f"{what}: {', '.join(texts)}{more}{faster}"


def _apart(sweep: SweepResult) -> str:
    """Say which points may be as good as the best, as far as the spread of their times is known."""
    best = {row["index"] for row in sweep.best}
    if sweep.alike is None:
        if not sweep.plan.objectives:
            return ""
        all_equal = len(sweep.plan.objectives) == 1 and len(best) == sweep.counts.get("ok")
        return "" if all_equal or len(sweep.records) < 2 or sweep.plan.options.get("shake") else NOT_KNOWN
    others = [number for number in sweep.alike if number not in best]
    named = ", ".join(f"#{number}" for number in others[:_BEST])
    more = f" and {len(others) - _BEST} more" if len(others) > _BEST else ""
    return f"not told apart from {'it' if len(best) == 1 else 'them'} by their spread: {named or 'none'}{more}"


def _unmoved(sweep: SweepResult) -> str:
    """Name the axes of a whole grid that changed no time: points that differ in one of them alone took equal times."""
    if not sweep.plan.is_grid or sweep.left or set(sweep.counts) != {"ok"}:
        return ""
    records = [each for each in sweep.records if each.get("fidelity", FULL) == FULL]
    names, found = [axis.name for axis in sweep.plan.axes], []
    for name, short in zip(names, short_names(names), strict=True):
        times: dict[str, list[float]] = {}
        for record in records:
            others = repr([record["values"][other] for other in names if other != name])
            times.setdefault(others, []).append(record["figures"].get("time_ns", math.nan))
        several = [each for each in times.values() if len(each) > 1]
        if several and all(min(each) == max(each) for each in several):
            found.append(short)
    return f"{', '.join(found)} changed no time" if found else ""


def _plan(shell: Shell, bench: str, asked: dict[str, Any]) -> SweepPlan:
    """Return the plan of a file, or of the project's machine, with what the command line says laid over it."""
    options = {name: asked.pop(name) for name in OPTIONS if name in asked}
    is_file = Path(bench).suffix in (".yaml", ".yml")
    if is_file:
        plan = read_plan(bench)
    else:
        machine = project_machine(shell, asked["topology"])
        plan = plan_of(
            SweepPlan(bench=bench), sets=machine.set, topology=machine.topology, components=machine.components
        )
    for name in ("arguments", "where"):
        asked[name] = asked[name] or None
    return plan_of(plan, options={**plan.options, **_changed(options)}, **asked)


def _changed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options that are not as they are by default."""
    fields = attrs.fields_dict(PointOptions)
    return {name: value for name, value in options.items() if value != fields[name].default}


def _again(plan: SweepPlan, asked: Mapping[str, Any]) -> SweepPlan:
    """Return the plan of a sweep that goes on, with other limits where these are given."""
    limits = _changed({name: asked[name] for name in LIMITS})
    cached = plan.cached if asked["cached"] is None else asked["cached"]
    return attrs.evolve(plan, options={**plan.options, **limits}, cached=cached)


def _require_alone(bench: str, folder: str | None, asked: Mapping[str, Any]) -> None:
    """Raise UsageError where a sweep that is there is given another folder, or other points."""
    if folder is not None and Path(folder) != Path(bench):
        raise UsageError(f"-o must be left out when {bench!r} is the folder of a sweep.")
    options = _changed({name: asked[name] for name in OPTIONS if name not in LIMITS})
    others = {name: value for name, value in asked.items() if name not in OPTIONS and name != "cached"}
    if options or any(others.values()):
        raise UsageError(
            f"the folder of a sweep, {bench!r}, must be given without other points, as it has a plan already; use "
            "another folder for another sweep."
        )
