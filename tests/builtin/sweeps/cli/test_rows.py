"""How a sweep looks while it goes on: columns, rows in order, and the line that tells how far it is."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_builtin.sweeps import SweepPlan
from kernbench_builtin.sweeps.axes import PARAM, SET, read_axis
from kernbench_builtin.sweeps.cli import progress as progress_module
from kernbench_builtin.sweeps.cli.progress import SweepProgress
from kernbench_builtin.sweeps.cli.rows import RowPrinter, Rows
from kernbench_builtin.sweeps.evaluate import blank_record, job_of
from kernbench_builtin.sweeps.points import SweepPoint, points_of

PLAN = SweepPlan(
    bench="b", objectives=("cost=1", "n=2"),
    axes=(read_axis("a.long.name", SET, "1,200"), read_axis("b.name", SET, "x")),
)  # fmt: skip
POINTS = list(points_of(PLAN))


def record(point: SweepPoint, **more: Any) -> dict[str, Any]:
    figures = {"figures": {"time_ns": 1234.5}, "objectives": {"cost": 12345.678, "n": 0.25}}
    return blank_record(job_of(PLAN, point)) | {"status": "ok", **figures} | more


def test_columns_are_as_wide_as_what_will_be_in_them() -> None:
    """Short names that tell axes apart; times with their unit, large numbers with a letter."""
    rows = Rows(PLAN, POINTS, 100, 2)
    assert rows.head() == "#  long.name  b.name  status    time        cost        n"
    assert rows.row(record(POINTS[1])) == "1  200        x       ok        1.234 us    12.35 k     0.25"
    assert rows.row(record(POINTS[0], status="deadlock", figures={}, objectives={"cost": None, "n": None})) == (
        "0  1          x       deadlock  -           -           -"
    )


def test_columns_that_find_no_room_go_on_below() -> None:
    """No line is wider than the terminal, which the last blanks do not count in."""
    rows = Rows(PLAN, POINTS, 40, 2)
    assert rows.head().splitlines() == ["#  long.name  b.name  status", "     time        cost        n"]
    assert max(map(len, rows.row(record(POINTS[1])).splitlines())) <= 40


def test_an_error_stands_below_its_row() -> None:
    """Its first line, cut at words where somebody looks at it."""
    error = {"kind": "KernelError", "exit_code": 6, "sentence": "it failed because of this\n  line 3"}
    ended = record(POINTS[0], status="error", error=error)
    assert Rows(PLAN, POINTS, 100, 2).row(ended).splitlines()[1:] == ["    it failed because of this"]
    assert Rows(PLAN, POINTS, 90, 2, wraps=True).row(ended).splitlines()[-1] == "    it failed because of this"
    lines = Rows(PLAN, POINTS, 20, 2, wraps=True).row(ended).splitlines()
    assert lines[-2:] == ["    it failed", "    because of this"]


def test_rows_come_in_order_where_nobody_looks_at_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that wait for one that never comes are printed in the end."""
    plan = SweepPlan(bench="b", axes=(read_axis("n", PARAM, "0,1,2,3"),))
    points = list(points_of(plan))
    printer = RowPrinter(Rows(plan, points, 80, 4))
    printer.coming(points)

    def came(*indices: int) -> list[str]:
        for index in indices:
            one = blank_record(job_of(plan, points[index])) | {"status": "ok"}
            printer.row(one)
        return [line[0] for line in capsys.readouterr().out.splitlines()]

    assert (came(1), came(0), came(3)) == ([], ["0", "1"], [])
    printer.rest()
    assert capsys.readouterr().out.split()[0] == "3"
    printer.at_once = True
    assert came(3, 2) == ["3", "2"]


def test_the_time_that_is_left_is_that_of_points_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points that were recorded before took none; those that failed are counted."""
    now = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    progress = SweepProgress("b", 10, enabled=False)
    progress.began()
    progress.known(4)
    assert progress.forms()[0] == "4 of 10 points  0:00"
    now[0] = 130.0
    progress.told({"status": "ok"})
    progress.told({"status": "timeout"})
    assert progress.forms() == (
        "6 of 10 points  60%, 1:00 left  1 failed  0:30", "6 of 10 points  60%, 1:00 left", "6 of 10 points", "6/10",
    )  # fmt: skip
    now[0] = 100.0 + 7200.0
    assert progress.forms()[1] == "6 of 10 points  60%, 4:00:00 left"
