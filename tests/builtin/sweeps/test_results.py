"""What a sweep answers in Python."""

from __future__ import annotations

from typing import Any

from kernbench_builtin.sweeps import SweepPlan, SweepResult
from kernbench_builtin.sweeps.axes import PARAM, read_axis
from kernbench_builtin.sweeps.evaluate import blank_record, job_of
from kernbench_builtin.sweeps.objectives import MEDIAN, SPREAD
from kernbench_builtin.sweeps.points import points_of


def swept(*ends: dict[str, Any], objectives: tuple[str, ...] = ()) -> SweepResult:
    """Return the result of a sweep over `n`, whose points ended so."""
    axis = read_axis("n", PARAM, ",".join(f"<{at}>" for at in range(len(ends))))
    plan = SweepPlan(bench="b", axes=(axis,), objectives=objectives)
    blank = [blank_record(job_of(plan, point)) for point in points_of(plan)]
    return SweepResult(plan, tuple({**one, "status": "ok", **end} for one, end in zip(blank, ends, strict=False)))


def test_the_best_are_those_that_no_other_is_better_than() -> None:
    """Of what is to grow the largest; a point that is wrong, failed or has no value is none of them."""
    ends = [(3, 5), (2, 5), (2, 9), (9, 9), (1, 1), (0, 99), (0, None)]
    wrong = {5: {"status": "wrong"}}
    rows = [{"objectives": {"a": a, "b": b}, **wrong.get(at, {})} for at, (a, b) in enumerate(ends)]
    done = swept(*rows, objectives=("a", "max: b"))
    assert sorted(row["index"] for row in done.best) == [2, 4]
    assert [row["a"] for row in done.rows][:3] == [3, 2, 2]


def test_without_objectives_the_shortest_is_the_best() -> None:
    """And none where nothing is known of any."""
    done = swept({"figures": {"time_ns": 7.0}}, {"figures": {"time_ns": 5.0}}, {"status": "error"})
    assert [row["index"] for row in done.best] == [1]
    assert swept({"status": "error"}).best == []
    assert swept().best == []


def test_counts_begin_with_what_is_right() -> None:
    """The others follow in the order of the alphabet; the repr says the same."""
    done = swept({"status": "timeout"}, {"status": "error"}, {}, {"status": "error"})
    assert list(done.counts.items()) == [("ok", 1), ("error", 2), ("timeout", 1)]
    assert repr(done) == "<SweepResult b: 4 points, 1 ok, 2 error, 1 timeout>"
    assert repr(swept({})) == "<SweepResult b: 1 point, 1 ok>"
    assert repr(swept()) == "<SweepResult b: 0 points, none>"


def test_a_notebook_shows_a_table_of_the_first_rows() -> None:
    """Escaped; an error is a row of its own sentence's point, without values."""
    text = swept(*({"figures": {"time_ns": 1.5}} for _ in range(60)))._repr_html_()
    assert text.startswith("<table><thead><tr><th>#</th><th>n</th><th>status</th><th>time_ns</th></tr></thead>")
    assert text.count("<tr>") == 51 and text.endswith("<p>and 10 more</p>")
    assert "<td>&lt;3&gt;</td><td>ok</td><td>1.5 ns</td>" in text


def test_a_row_has_the_first_line_of_an_error() -> None:
    """The record has all of it."""
    error = {"kind": "KernelError", "exit_code": 6, "sentence": "it failed.\n  line 3"}
    done = swept({"status": "error", "error": error})
    assert done.rows[0]["error"] == "it failed." and done.records[0]["error"] == error


def test_columns_of_one_name_are_told_apart() -> None:
    """A parameter may be called as a figure is, or as a column that every table has; each keeps its value."""
    axes = [read_axis(name, PARAM, f"{at}") for at, name in enumerate(("hops", "status", "index", "key", "n"))]
    plan = SweepPlan(bench="b", axes=axes, objectives=("n", "figures.hops"))
    (point,) = points_of(plan)
    record = blank_record(job_of(plan, point)) | {"status": "ok", "key": "k"}
    record |= {"figures": {"hops": 26, "n": 7, "error": 8}, "objectives": {"n": 4.0, "figures.hops": 26.0}}
    assert SweepResult(plan, (record,)).rows == [
        {
            "index": 0, "hops": 0, "params.status": 1, "params.index": 2, "params.key": 3, "n": 4, "status": "ok",
            "objectives.n": 4.0, "figures.hops": 26.0, "figures.error": 8, "error": None, "op_log_sha256": None,
            "key": "k",
        }
    ]  # fmt: skip


def test_points_within_the_spread_of_the_best_are_not_told_apart() -> None:
    """By the median, which is ranked too; the mean of the two spreads counts, and a time without one is no answer."""
    times = [(100.0, 3.0), (101.0, 9.0), (109.0, 1.0), (109.0, 10.0), (98.0, 4.0)]
    rows: list[dict[str, Any]] = [
        {"figures": {"time_ns": -median, MEDIAN: median, SPREAD: width}} for median, width in times
    ]
    done = swept(*rows, {"status": "error"})
    assert [row["index"] for row in done.best] == [4]
    assert done.alike == (0, 1)
    timed: list[dict[str, Any]] = [{**row, "objectives": {"time": row["figures"]["time_ns"]}} for row in rows]
    assert swept(*timed, objectives=("time",)).alike == (0, 1)
    assert swept(*({"figures": {"time_ns": 5.0}} for _ in range(2))).alike is None
    other: list[dict[str, Any]] = [{**row, "objectives": {"ops": 1}} for row in rows]
    assert swept(*other, objectives=("ops",)).alike is None
    assert swept().alike is None
