"""Two fidelities: every point is screened without data and with coarse transfers, and the best run again in full."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from kernbench_builtin.sweeps.drive import OnPoints, OnRecord, closing, jobs_left, record_all
from kernbench_builtin.sweeps.executors.base import Executor
from kernbench_builtin.sweeps.folder import SweepFolder
from kernbench_builtin.sweeps.pareto import best_first
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_builtin.sweeps.points import SweepPoint, point_of
from kernbench_builtin.sweeps.results import FULL, SCREEN, SweepResult, objective_table, points_in_words
from kernbench_builtin.sweeps.sensitivity import spearman
from kernbench_core.errors import UsageError
from kernbench_core.units import format_bytes
from kernbench_core.wording import brief

CHUNK: Final = "system.chunk_bytes"
COARSE_BYTES: Final = 1 << 16
"""The largest transfer of a screened run; a machine whose own is larger keeps that."""
#: Options of a run that need data.
_OF_DATA: Final = ("verify_data", "verify_ops", "outputs")
#: So many of ten points run in full, and never fewer than the second number.
_SHARE, _LEAST = 0.1, 3


@attrs.frozen
class Screening:
    """How points are screened, by `plan`, and how many run in full: `best`, or a tenth of them where that is None.

    `chunk_bytes` is the largest transfer of a screened run, None where that is as it is in full.
    """

    plan: SweepPlan
    chunk_bytes: int | None
    best: int | None

    def count(self, points: int) -> int:
        """Return how many of so many points run in full."""
        wanted = max(_LEAST, math.ceil(_SHARE * points)) if self.best is None else self.best
        return min(wanted, points)

    def __str__(self) -> str:
        data = [] if self.plan.is_script else ["without data"]
        chunks = [] if self.chunk_bytes is None else [f"with chunks of {format_bytes(self.chunk_bytes)}"]
        return " and ".join([*data, *chunks])


@attrs.frozen
class FidelityError:
    """How far one objective is off when screened, over the `points` that ran at both fidelities.

    `correlation` is Spearman's rank correlation, NaN where all values of one fidelity are equal. `median` and `largest`
    are of the differences, relative to the run in full; NaN where such a run gave 0.
    """

    objective: str
    points: int
    correlation: float
    median: float
    largest: float

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; None is what cannot be told."""
        return {name: None if value != value else value for name, value in attrs.asdict(self).items()}

    def __str__(self) -> str:
        ranks = f"{self.correlation:.2f}"
        if math.isnan(self.correlation):
            ranks = "none of one point" if self.points == 1 else "none, as all are equal"
        error = "error not defined, as a run in full gives 0"
        if not math.isnan(self.largest):
            error = f"error {self.median:.2%} (median), {self.largest:.2%} (largest)"
        return f"{self.objective}: rank correlation {ranks}, {error}, over {points_in_words(self.points)}"


def parse_fidelity(text: str) -> int | None:
    """Read `auto`, or `auto:K` with the number of points that run in full; UsageError for what is neither."""
    match = re.fullmatch(r"auto(?::([1-9]\d{0,6}))?", text)
    if match is None:
        raise UsageError(f"--fidelity must be auto, or auto:K with K points to run in full, not {brief(text)}.")
    return None if match[1] is None else int(match[1])


def screening_of(plan: SweepPlan, chunk_bytes: int) -> Screening:
    """Return how the points of a plan are screened, on machines whose largest transfer is of `chunk_bytes`.

    Scripts written in Triton, which read their arrays back, keep data. UsageError where screening is no different from
    running in full.
    """
    assert plan.fidelity is not None, "asked of such plans only"
    best = parse_fidelity(plan.fidelity)
    coarse = None if plan.axis(CHUNK) is not None or chunk_bytes >= COARSE_BYTES else COARSE_BYTES
    if coarse is None and (plan.is_script or plan.options.get("data") is False):
        why = "are of a script, which needs its data" if plan.is_script else "run without data already"
        raise UsageError(
            f"--fidelity auto must make runs cheaper, but these points {why}, and {CHUNK} stays as it is; drop it."
        )
    options = {name: value for name, value in plan.options.items() if name not in _OF_DATA}
    if not plan.is_script:
        options["data"] = False
    more = {} if coarse is None else {CHUNK: f"{coarse} B"}
    return Screening(attrs.evolve(plan, set={**plan.set, **more}, options=options), coarse, best)


def carry_out_screened(
    folder: SweepFolder, points: Sequence[SweepPoint], screening: Screening, executor: Executor, on_points: OnPoints,
    on_record: OnRecord, *, retry_failed: bool = False,
) -> SweepResult:  # fmt: skip
    """Screen all points, and run the best in full; raise UsageError where none has a value to be ranked by.

    A record says as `fidelity` which of both it is of.
    """
    screened = [point_of(screening.plan, point.values, point.index) for point in points]

    def record(plan: SweepPlan, these: Iterable[SweepPoint], fidelity: str) -> None:
        on_points(list(these))
        record_all(folder, jobs_left(folder, plan, these, retry_failed, fidelity=fidelity), executor, on_record)

    with closing(folder, executor):
        record(screening.plan, screened, SCREEN)
        best = _best(folder.plan, [folder.records[point.key] for point in screened])
        if not best:
            raise UsageError(
                f"--fidelity auto must have points to choose from, and none of the {len(points)} has a value when it "
                f"runs {screening}; drop it to run all in full."
            )
        record(folder.plan, [points[at] for at in best[: screening.count(len(points))]], FULL)
    return folder.sweep()


def fidelity_errors(sweep: SweepResult) -> tuple[FidelityError, ...]:
    """Return how far each objective is off over the points that ran at both fidelities, of those that have such."""
    at: dict[str, dict[int, Mapping[str, Any]]] = {SCREEN: {}, FULL: {}}
    for record in sweep.records:
        if "fidelity" in record:
            at[record["fidelity"]][record["index"]] = record
    both = [index for index in at[FULL] if index in at[SCREEN]]
    names, coarse, _ = objective_table(sweep.plan, [at[SCREEN][index] for index in both])
    full = objective_table(sweep.plan, [at[FULL][index] for index in both])[1]
    pairs = zip(names, np.reshape(coarse, (-1, len(names))).T, np.reshape(full, (-1, len(names))).T, strict=True)
    return tuple(found for name, low, high in pairs if (found := _error(name, low, high)).points)


def _error(name: str, coarse: Any, full: Any) -> FidelityError:
    known = ~(np.isnan(coarse) | np.isnan(full))
    coarse, full = coarse[known], full[known]
    off = np.abs(coarse - full) / np.abs(full) if len(full) and full.all() else np.full(1, math.nan)
    return FidelityError(name, len(full), spearman(coarse, full), float(np.median(off)), float(off.max()))


def _best(plan: SweepPlan, records: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of the records that have all objectives, best first."""
    _, numbers, maximise = objective_table(plan, records)
    found: list[int] = best_first(numbers, maximise).tolist()
    return found
