"""Screening and running the best in full, by a made-up function of which both fidelities are known."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from kernbench_builtin.sweeps.axes import PARAM, SET, read_axis
from kernbench_builtin.sweeps.evaluate import blank_record
from kernbench_builtin.sweeps.fidelity import (
    CHUNK,
    FidelityError,
    carry_out_screened,
    fidelity_errors,
    parse_fidelity,
    screening_of,
)
from kernbench_builtin.sweeps.folder import open_sweep, read_sweep
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_builtin.sweeps.points import SweepPoint, points_of
from kernbench_builtin.sweeps.results import SweepResult
from kernbench_core.errors import UsageError

PLAN = SweepPlan(
    bench="x", axes=(read_axis("n", PARAM, "1..40:lin:40"),), objectives=("t", "max:g"), fidelity="auto",
    options={"verify_data": True, "seed": 3},
)  # fmt: skip


class Killed(BaseException):
    """What ends a sweep in the middle."""


def coarse(n: int) -> tuple[float, float]:
    """Return what a screened run gives: nearly what one in full does, in nearly the same order."""
    return (n - 20.2) ** 2 + 100.0, 50.0 + n


def full(n: int) -> tuple[float, float]:
    return (n - 20.2) ** 2 * 1.25 + 110.0 + 7 * (n % 3), 80.0 + n


class TwoFidelities:
    """Carries out jobs by the function of their fidelity, and notes what each was run with."""

    def __init__(self, die_after: int | None = None, fails: Iterable[int] = ()) -> None:
        self.die_after, self.fails = die_after, set(fails)
        self.ran: list[Mapping[str, Any]] = []

    def run(self, jobs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        for job in reversed(list(jobs)):
            if len(self.ran) == self.die_after:
                raise Killed
            self.ran.append(job)
            n = job["values"]["n"]
            found = coarse(n) if job["run"]["options"].get("data") is False else full(n)
            told = {"status": "ok", "objectives": dict(zip("tg", found, strict=True))}
            yield blank_record(job) | ({} if n in self.fails else told)

    def close(self) -> None:
        pass


def screened(
    folder: Path, executor: TwoFidelities, plan: SweepPlan = PLAN, retry: bool = False
) -> tuple[SweepResult, list[SweepPoint]]:
    """Carry out a plan, and return what there is, and the points that were said to come."""
    coming: list[SweepPoint] = []
    with open_sweep(folder, plan) as opened:
        points = list(points_of(plan))
        screening = screening_of(plan, 4096)
        done = carry_out_screened(
            opened, points, screening, executor, coming.extend, lambda _: None, retry_failed=retry
        )  # fmt: skip
        return done, coming


def in_full(result: SweepResult) -> list[int]:
    return [record["values"]["n"] for record in result.records if record["fidelity"] == "full"]


def test_all_are_screened_and_the_best_run_in_full(tmp_path: Path) -> None:
    """Without data and coarsely, then as asked for; each record says which, and the table has both."""
    executor = TwoFidelities()
    plan = attrs.evolve(PLAN, objectives=("t",))
    result, coming = screened(tmp_path, executor, plan)
    best = sorted(range(1, 41), key=coarse)[:4]
    assert in_full(result) == sorted(best) == [19, 20, 21, 22]
    assert [(row["fidelity"], row["n"]) for row in result.rows] == [
        *(("screen", n) for n in range(1, 41)),
        *(("full", n) for n in sorted(best)),
    ]
    assert [(point.values["n"], point.index) for point in coming] == [(n, n - 1) for n in (*range(1, 41), *best)]
    for job in executor.ran:
        assert job["run"]["options"] == ({"data": False, "seed": 3} if job["fidelity"] == "screen" else PLAN.options)
        assert job["run"]["set"] == ({CHUNK: "65536 B"} if job["fidelity"] == "screen" else {})
    assert result.best == [min((row for row in result.rows if row["fidelity"] == "full"), key=lambda row: row["t"])]
    assert read_sweep(tmp_path) == result


def test_the_error_is_that_of_the_points_that_ran_at_both(tmp_path: Path) -> None:
    """Ranks and relative differences, computed anew in plain Python."""
    result, _ = screened(tmp_path, TwoFidelities())
    both = in_full(result)
    assert len(both) == 4
    assert len(set(both)) == 4
    for found, at, name in zip(fidelity_errors(result), (0, 1), "tg", strict=True):
        low, high = [coarse(n)[at] for n in both], [full(n)[at] for n in both]
        off = [abs(a - b) / b for a, b in zip(low, high, strict=True)]
        ranks = [[sorted(side).index(each) for each in side] for side in (low, high)]
        assert (found.objective, found.points) == (name, 4)
        assert found.correlation == pytest.approx(statistics.correlation(*ranks))
        assert found.median == pytest.approx(statistics.median(off))
        assert found.largest == pytest.approx(max(off))


@pytest.mark.parametrize("die_after", [0, 17, 40, 42])
def test_what_was_killed_goes_on(tmp_path: Path, die_after: int) -> None:
    """No recorded run is repeated, at either fidelity."""
    wanted, _ = screened(tmp_path / "whole", TwoFidelities())
    first, rest = TwoFidelities(die_after), TwoFidelities()
    with pytest.raises(Killed):
        screened(tmp_path / "cut", first)
    result, _ = screened(tmp_path / "cut", rest)
    assert result.records == wanted.records
    assert len(first.ran) == die_after
    assert len(first.ran) + len(rest.ran) == len(wanted.records) == 44
    table = [(tmp_path / name / "table.csv").read_bytes() for name in ("whole", "cut")]
    assert table[0] == table[1]


def test_points_that_fail_are_not_chosen(tmp_path: Path) -> None:
    """Tried again they may be; where all fail that is told."""
    plan = attrs.evolve(PLAN, objectives=("t",), fidelity="auto:2")
    assert in_full(screened(tmp_path / "s", TwoFidelities(fails=(20, 21)), plan)[0]) == [19, 22]
    assert in_full(screened(tmp_path / "s", TwoFidelities(), plan, retry=True)[0]) == [19, 20, 21, 22]
    with pytest.raises(UsageError) as caught:
        screened(tmp_path / "none", TwoFidelities(fails=range(99)), plan)
    assert str(caught.value) == (
        "--fidelity auto must have points to choose from, and none of the 40 has a value when it runs without data and "
        "with chunks of 64 KiB; drop it to run all in full."
    )
    assert len(read_sweep(tmp_path / "none").records) == 40


def test_what_cannot_be_told_is_said() -> None:
    """A correlation of equal values, and an error relative to 0."""
    texts = [
        str(FidelityError("t", 4, math.nan, 0.125, 0.5)),
        str(FidelityError("t", 4, -0.5, math.nan, math.nan)),
        str(FidelityError("t", 1, math.nan, 0.0, 0.0)),
    ]
    assert texts == [
        "t: rank correlation none, as all are equal, error 12.50% (median), 50.00% (largest), over 4 points",
        "t: rank correlation -0.50, error not defined, as a run in full gives 0, over 4 points",
        "t: rank correlation none of one point, error 0.00% (median), 0.00% (largest), over 1 point",
    ]
    assert FidelityError("t", 4, math.nan, 0.5, 0.5).to_json()["correlation"] is None


def test_equal_values_and_zeros_have_no_numbers(tmp_path: Path) -> None:
    """They are computed so, not only written so."""

    class Equal(TwoFidelities):
        def run(self, jobs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
            for record in super().run(jobs):
                yield record | {"objectives": {"t": 5.0, "g": 0.0}}

    errors = fidelity_errors(screened(tmp_path, Equal())[0])
    assert [(each.points, math.isnan(each.correlation), each.largest) for each in errors[:1]] == [(4, True, 0.0)]
    assert math.isnan(errors[1].largest)


def test_who_varies_chunks_screens_without_data_only() -> None:
    """Machines whose own chunks are as large, too; with nothing to leave out that is told."""
    varied = attrs.evolve(PLAN, axes=(read_axis(CHUNK, SET, "1KiB,4KiB"),))
    for screening in (screening_of(varied, 4096), screening_of(PLAN, 1 << 16)):
        assert (screening.chunk_bytes, str(screening)) == (None, "without data")
        assert screening.plan.set == {}
    assert str(screening_of(PLAN, 4096)) == "without data and with chunks of 64 KiB"
    with pytest.raises(UsageError) as caught:
        screening_of(attrs.evolve(varied, options={"data": False}), 4096)
    assert str(caught.value) == (
        "--fidelity auto must make runs cheaper, but these points run without data already, and system.chunk_bytes "
        "stays as it is; drop it."
    )


def test_scripts_keep_their_data() -> None:
    """They read arrays back; coarse chunks are what screening is then."""
    script = attrs.evolve(PLAN, bench="triton:x.py", options={"seed": 3, "verify_ops": True})
    screening = screening_of(script, 4096)
    assert (str(screening), screening.plan.options) == ("with chunks of 64 KiB", {"seed": 3})
    assert screening.plan.set == {CHUNK: "65536 B"}
    with pytest.raises(UsageError) as caught:
        screening_of(script, 1 << 16)
    assert str(caught.value) == (
        "--fidelity auto must make runs cheaper, but these points are of a script, which needs its data, and "
        "system.chunk_bytes stays as it is; drop it."
    )


def test_a_tenth_runs_in_full_and_never_fewer_than_three() -> None:
    """But for who says how many."""
    counts = [screening_of(PLAN, 4096).count(points) for points in (1, 3, 20, 31, 400)]
    assert counts == [1, 3, 3, 4, 40]
    assert [screening_of(attrs.evolve(PLAN, fidelity="auto:7"), 4096).count(n) for n in (5, 400)] == [5, 7]
    assert [parse_fidelity(text) for text in ("auto", "auto:12")] == [None, 12]
    for text in ("best", "auto:", "auto:0", "auto:-1", "full"):
        with pytest.raises(UsageError) as caught:
            parse_fidelity(text)
        assert str(caught.value) == f"--fidelity must be auto, or auto:K with K points to run in full, not '{text}'."
