"""The page of a sweep from its records: the front, what moves what and the counts, against plain Python."""

from __future__ import annotations

import itertools
import json
import random
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.pages.report import SweepPage
from kernbench_builtin.sweeps import SweepPlan, SweepResult, open_sweep, points_of, sweep_page
from kernbench_builtin.sweeps.axes import PARAM, SET, read_axis
from kernbench_builtin.sweeps.evaluate import blank_record, job_of
from kernbench_builtin.sweeps.pages.page import front_of, read_sweep_page
from kernbench_core.errors import UsageError
from tests.commands import Run
from tests.core.working_machine import plugins

ROWS = "components.pe_gemm.params.rows"


def plan(**more: Any) -> SweepPlan:
    """Return the plan of a grid of 12 points."""
    axes = (read_axis(ROWS, SET, "16,32,64"), read_axis("kind", PARAM, "ring,mesh"), read_axis("n", PARAM, "1,8"))
    return SweepPlan(**{"bench": "gemm", "axes": axes, "objectives": ("time", "max:gain=n*time_ns"), **more})


def swept(of: SweepPlan, cells: Sequence[Mapping[str, Any] | None]) -> SweepResult:
    """Return a sweep whose points have these objectives; those of None failed."""
    records = []
    for point, found in zip(points_of(of), itertools.cycle(cells), strict=False):
        record = blank_record(job_of(of, point))
        if found is None:
            record |= {"error": {"kind": "KernelError", "exit_code": 6, "sentence": f"{point.index} failed."}}
        else:
            figures = {"time_ns": found.get("time")}
            record |= {"status": "ok", "objectives": dict(found), "figures": figures, "op_log_sha256": "ab" * 32}
        records.append(record)
    return SweepResult(of, tuple(records))


def page_of(sweep: SweepResult, **more: Any) -> SweepPage:
    """Return its page."""
    return sweep_page(sweep, "s/", plugins(), **more)


NUMBERS = st.one_of(st.integers(0, 4), st.sampled_from(["inf", "-inf", "nan", None]))


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS)), min_size=12, max_size=12))
def test_the_front_is_of_those_that_none_is_better_than(cells: list[tuple[Any, Any] | None]) -> None:
    """By comparing each with each: small times, large gains; what failed or has no finite number is not on it."""
    sweep = swept(plan(), [None if each is None else dict(zip(("time", "gain"), each, strict=True)) for each in cells])

    def known(cell: tuple[Any, Any] | None) -> bool:
        return cell is not None and all(isinstance(each, int) for each in cell)

    def better(a: Any, b: Any) -> bool:
        (t, g), (u, h) = map(float, a), map(float, b)
        return t <= u and g >= h and (t, g) != (u, h)

    brute = [known(one) and not any(known(other) and better(other, one) for other in cells) for one in cells]
    assert page_of(sweep).front == brute
    assert [record["index"] for record in front_of(sweep)] == [i for i, best in enumerate(brute) if best]


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_a_share_is_the_variance_between_means(seed: int) -> None:
    """Of a full grid; the means at whose ends it stands are those of the values that it names."""
    draw = random.Random(seed)
    times = [float(draw.randrange(100)) for _ in range(12)]
    sweep = swept(plan(objectives=("time",)), [{"time": each} for each in times])
    found = {each.parameter: each for each in page_of(sweep).moved_by}
    for name in (ROWS, "kind", "n"):
        groups: dict[str, list[float]] = {}
        for record in sweep.records:
            groups.setdefault(str(record["values"][name]), []).append(record["objectives"]["time"])
        means = {value: statistics.fmean(group) for value, group in groups.items()}
        whole = statistics.pvariance(times)
        between = statistics.pvariance([means[str(record["values"][name])] for record in sweep.records])
        assert found[name].share == pytest.approx(between / whole, abs=1e-12)
        (least, at), (most, there) = found[name].ends or ((0.0, ""), (0.0, ""))
        assert (least, most) == pytest.approx((min(means.values()), max(means.values())))
        assert means[at] == pytest.approx(least) and means[there] == pytest.approx(most)


def test_values_that_stand_for_their_neighbours_say_so() -> None:
    """Of twenty values there are eight groups, each of which the middle one stands for; of eight each is its own."""
    for count, least, most in ((20, "around 2", "around 20"), (8, "1", "8")):
        numbers = ",".join(str(i) for i in range(1, count + 1))
        axes = (read_axis("n", PARAM, numbers), read_axis("kind", PARAM, "a,b"))
        of = plan(axes=axes, objectives=("time",))
        page = page_of(swept(of, [{"time": float(i)} for i in range(2 * count)]))
        found = next(each for each in page.moved_by if each.parameter == "n")
        assert found.ends is not None and [at for _, at in found.ends] == [least, most]


def test_what_is_not_known_of_a_parameter_says_why() -> None:
    """One value, an objective that does not move, points that have nothing in common, none that has the objective."""
    one = plan(axes=(read_axis("n", PARAM, "3"), read_axis("kind", PARAM, "a,b")), objectives=("time",))
    apart = plan(axes=(read_axis("n", PARAM, "1,2,3,4,5"),), objectives=("time",))
    told = [
        page_of(swept(*each)).moved_by[0]
        for each in (
            (one, [{"time": 1.0}, {"time": 2.0}]), (plan(objectives=("time",)), [{"time": 4.0}]),
            (apart, [{"time": float(i)} for i in range(5)]), (plan(objectives=("time",)), [{"time": None}]),
        )
    ]  # fmt: skip
    assert {each.share for each in told} == {None}
    assert [each.why for each in told] == [
        "it has one value",
        "the objective is the same at all points",
        "no two points share a value of it",
        "no point has this objective",
    ]
    assert page_of(swept(one, [{"time": 1.0}, {"time": 2.0}])).moved_by[1].why == "no two points share a value of it"
    assert page_of(swept(plan(), [None])).moved_by == []


@pytest.mark.parametrize(
    ("more", "failing", "doubt"),
    [
        ({}, False, ""),
        ({}, True, " Points of the grid failed: parameters go together then, and their shares overlap."),
        (
            {"where": ("n > 0",)},
            True,
            " Points of the grid failed and were left out: parameters go together then, and their shares overlap.",
        ),
        (
            {"where": ("n > 0",)},
            False,
            " Points of the grid were left out: parameters go together then, and their shares overlap.",
        ),
        (
            {"sample": "random:9"},
            True,
            " Of points that were drawn, a parameter that moves nothing has a small share, too, by chance.",
        ),
        (
            {"search": "nsga2:9"},
            False,
            " The search chose where to look: shares say what moved among its points.",
        ),
    ],
)
def test_shares_come_with_their_doubts(more: dict[str, Any], failing: bool, doubt: str) -> None:
    """A full grid has none; what is drawn has a share by chance: groups less one of points less one."""
    cells: list[Mapping[str, Any] | None] = [{"time": float(i % 7)} for i in range(9)]
    page = page_of(swept(plan(objectives=("time",), **more), [*cells, None] if failing else cells))
    assert page.moved_of.endswith(f"is in none of them.{doubt}")
    ran = sum(each["status"] == "ok" for each in page.points)
    chance = {each.parameter: each.chance for each in page.moved_by}
    assert chance["kind"] == pytest.approx(1 / (ran - 1) if {"sample", "search"} & {*more} else 0.0)


def test_the_head_says_what_was_asked_for() -> None:
    """Bench, machine, what is the same and what is varied, constraints, the kind of sample; ways of objectives."""
    of = plan(
        set={"system.sips": 2}, params={"M": 64}, where=("n > 0",), sample="lhs:5", seed=3, options={"data": False},
        components="my.yaml", topology="tiny",
    )  # fmt: skip
    page = page_of(swept(of, [{"time": 1.0, "gain": 2.0}]))
    assert list(page.facts) == [
        ("bench", "gemm"), ("machine", "tiny"), ("components", "my.yaml"), ("the same in all", "system.sips=2, M=64"),
        (ROWS, "16, 32, 64"), ("kind", "ring, mesh"), ("n", "1, 8"), ("objectives", "time, max:gain=n*time_ns"),
        ("constraints", "n > 0"), ("points", "5 of a Latin hypercube, seed 3"), ("of every run", "data=False"),
    ]  # fmt: skip
    assert [(each.name, each.greatest, each.figure) for each in page.objectives] == [
        ("time", False, "time_ns"), ("gain", True, "n*time_ns"),
    ]  # fmt: skip
    assert [(each.name, each.log) for each in page.parameters] == [(ROWS, False), ("kind", False), ("n", True)]
    assert page.notes == ["All points ran without data (--no-data): what depends on data, as errors, is not known."]


def test_points_that_are_to_come_are_counted() -> None:
    """A grid by its product, a sample by its number; constraints of what only the bench knows leave it open."""
    cells = [{"time": 1.0}]
    assert (page_of(swept(plan(), cells)).planned, page_of(swept(plan(), cells)).skipped) == (12, 0)
    assert page_of(swept(plan(sample="random:9"), cells)).planned == 9
    left = page_of(swept(plan(where=("n > 1", f"{ROWS} <= 32 or kind == 'ring'")), cells))
    assert (left.planned, left.skipped) == (5, 7)
    assert page_of(swept(plan(where=("tile_m > 1",)), cells)).planned is None
    assert page_of(swept(plan(search="tpe:5"), cells)).planned is None


def test_a_point_that_failed_keeps_its_sentence_and_has_commands() -> None:
    """The one that runs it again, and the one that makes its page, by as much of its key as tells it apart."""
    sweep = swept(plan(), [None])
    page = sweep_page(sweep, "my s", plugins(), lambda record: f"{record['index']}.html")
    assert page.points[3]["error"] == "3 failed."
    again, show = map(shlex.split, page.commands[3])
    assert again[:5] == ["kernbench", "run", "gemm", "--topology", "default"]
    assert again[5:] == ["--set", f"{ROWS}=16", "-p", "kind=mesh", "-p", "n=8"]
    assert show == ["kernbench", "report", "my s", "--point", sweep.records[3]["key"][:12]]
    assert page.links[3] == "3.html"
    assert sweep_page(sweep, plugins=plugins()).commands[3][1] == ""
    assert page_of(SweepResult(plan(objectives=()), ())).objectives[0].figure == "time_ns"


def test_looking_at_a_sweep_runs_nothing_of_it(tmp_path: Path) -> None:
    """Neither its bench nor its file of figures, which may come from somebody else."""
    for name in ("bench.py", "figures.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    of = plan(bench=str(tmp_path / "bench.py"), figures=str(tmp_path / "figures.py"), where=("n > 1",))
    assert page_of(swept(of, [{"time": 1.0, "gain": 2.0}])).planned == 6
    assert not (tmp_path / "ran").exists()


def written(folder: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Write records as a sweep."""
    with open_sweep(folder, plan()) as opened:
        for record in records:
            opened.put(dict(record))
    return folder


def test_a_function_of_a_notebook_has_no_command() -> None:
    """No other process would find it; files, scripts and registered benches have one."""
    for bench, has in (("mine", False), ("mine.py", True), ("mine.py:other", True), ("triton:s.py", True)):
        sweep = swept(plan(bench=bench), [{"time": 1.0, "gain": 2.0}])
        assert {bool(again) for again, _ in sweep_page(sweep, plugins=plugins()).commands} == {has}
        assert all(again for again, _ in page_of(sweep).commands)  # what is kept has a name for all


def test_a_folder_is_read_into_the_same_page(tmp_path: Path) -> None:
    """As from the records themselves; the best are those that the result of a sweep names."""
    sweep = swept(plan(), [{"time": float(i % 5), "gain": float(i % 3)} for i in range(12)])
    page = read_sweep_page(written(tmp_path / "s", sweep.records), "s/", plugins())
    assert page == page_of(sweep)
    assert {record["index"] for record in front_of(sweep)} == {row["index"] for row in sweep.best}


@pytest.mark.parametrize(
    "damage",
    [{"status": 3}, {"status": "odd"}, {"figures": []}, {"error": "e"}, {"values": [1]}, {"objectives": 5},
     {"index": None}],
)  # fmt: skip
def test_a_damaged_record_is_a_sentence(tmp_path: Path, damage: dict[str, Any]) -> None:
    """Not an error of ours, whatever it is that is wrong with it."""
    record = swept(plan(), [{"time": 1.0, "gain": 2.0}]).records[0]
    folder = written(tmp_path / "s", [record])
    (folder / "points" / f"{record['key']}.json").write_text(json.dumps({**record, **damage}))
    with pytest.raises(UsageError) as caught:
        read_sweep_page(folder, "s/", plugins())
    point = folder / "points" / f"{record['key']}.json"
    assert str(caught.value) == f"{str(point)!r} must be as a sweep wrote it, and is damaged; remove it."


def test_what_was_screened_is_the_best_of_nothing() -> None:
    """Points that ran twice stand there twice; shares are of all that were screened, the front of those in full."""
    of = plan(objectives=("time",), fidelity="auto:2")
    coarse = swept(of, [{"time": float(10 + i)} for i in range(12)]).records
    full = [{**coarse[i], "key": f"{i}" * 64, "objectives": {"time": 20.0 + i}, "fidelity": "full"} for i in (0, 1)]
    screened = [{**each, "fidelity": "screen"} for each in coarse]
    sweep = SweepResult(of, tuple(sorted([*screened, *full], key=lambda each: each["index"])), notes=("a note",))
    page = page_of(sweep)
    assert [point["key"] for point, best in zip(page.points, page.front, strict=True) if best] == ["0" * 64]
    assert [record["key"] for record in front_of(sweep)] == ["0" * 64]
    assert (page.planned, len(page.points)) == (14, 14)
    alone = page_of(swept(plan(objectives=("time",)), [each["objectives"] for each in coarse]))
    assert page.moved_by == alone.moved_by and page.moved_of.endswith(" They are of the points as they were screened.")
    assert page.notes == [
        "a note",
        "Screened against in full, time: rank correlation 1.00, error 48.81% (median), 50.00% (largest), over 2 "
        "points.",
    ]


def test_a_sweep_writes_its_page_at_its_end(inside: Run, tmp_path: Path) -> None:
    """The one that `kernbench report` writes of its folder, without which there is none."""
    asked = ["sweep", "vector-add", "--topology", "tiny", "-p", "n=64,128", "-q"]
    here, folder = tmp_path / "here.html", tmp_path / "s"
    refused = inside(*asked, "--report", str(here))
    assert (refused.returncode, here.exists()) == (2, False)
    assert "--report must be given with -o DIR, which holds the sweep that the page shows; add it." in refused.stderr
    assert inside(*asked, "--report", str(here), "-o", str(folder)).returncode == 0
    assert inside("report", str(folder), "-o", str(tmp_path / "later.html")).returncode == 0
    assert here.read_text() == (tmp_path / "later.html").read_text()
