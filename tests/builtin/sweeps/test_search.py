"""Searches over an analytic function in place of the simulator: its front is known by brute force over the grid."""

from __future__ import annotations

import builtins
import itertools
import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.sweeps.axes import PARAM, Axis, read_axis
from kernbench_builtin.sweeps.evaluate import blank_record
from kernbench_builtin.sweeps.folder import open_sweep
from kernbench_builtin.sweeps.pareto import pareto_front
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_builtin.sweeps.points import SweepPoint
from kernbench_builtin.sweeps.search.method import SearchMethod, parse_search
from kernbench_builtin.sweeps.search.searching import PointSearch, SearchOutcome, objectives_of
from kernbench_builtin.sweeps.search.study import PointStudy
from kernbench_core.errors import UsageError

AXES = {"rows": "8,16,32,64,128", "columns": "8,16,32,64,128", "depth": "1..8:lin:8", "kind": "a,b"}


class Killed(BaseException):
    """What ends a search in the middle."""


def axes(**texts: str) -> tuple[Axis, ...]:
    return tuple(read_axis(name, PARAM, text) for name, text in (texts or AXES).items())


def machine(values: Mapping[str, Any]) -> tuple[float, float]:
    """Return time and area of a made-up array: more of it is faster until the depth limits, and larger."""
    rows, columns, depth = (float(values[name]) for name in ("rows", "columns", "depth"))
    time = 4096 / rows * 4096 / columns * (1 + abs(depth - 5)) + 10 * (rows + columns)
    return time, rows * columns * (1.0 if values["kind"] == "b" else 1.2) + 30 * depth


class Analytic:
    """Carries out jobs by a function, and counts how often each was; `order` is that in which records come."""

    def __init__(self, function: Callable[[Mapping[str, Any]], Any] = machine, die_after: int | None = None) -> None:
        self.function, self.die_after = function, die_after
        self.ran: list[str] = []

    def run(self, jobs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        for job in reversed(list(jobs)):  # as they finish, in any order
            if len(self.ran) == self.die_after:
                raise Killed
            self.ran.append(job["key"])
            found = self.function(job["values"])
            told = (
                {"status": "error"}
                if found is None
                else {"status": "ok", "objectives": dict(zip("ta", found, strict=False))}
            )
            yield blank_record(job) | told

    def close(self) -> None:
        pass


def searched(
    folder: Path, method: str, executor: Analytic, *, of: tuple[Axis, ...] = (), seed: int = 0, processes: int = 1,
    allowed: Callable[[SweepPoint], bool] = lambda _: True, maximise: tuple[bool, ...] = (False, False),
    retry: bool = False,
) -> tuple[SearchOutcome, list[dict[str, Any]]]:  # fmt: skip
    """Carry out a search in a folder, and return its outcome and records, in their order."""
    plan = SweepPlan(bench="x", axes=of or axes(), search=method, seed=seed, objectives=("t", "a")[: len(maximise)])
    with open_sweep(folder, plan) as opened:
        parsed = parse_search(method)
        study = PointStudy(parsed, plan.axes, maximise, seed)
        outcome = PointSearch(
            opened,
            study,
            parsed,
            executor,
            allowed,
            lambda _: None,
            lambda _: None,
            processes=processes,
            retry_failed=retry,
        ).run()
        return outcome, sorted(opened.records.values(), key=lambda record: record["index"])


def hypervolume(points: Iterable[tuple[float, ...]], corner: tuple[float, float]) -> float:
    """Return the area between points and a corner that is worse than all."""
    found, low = 0.0, corner[1]
    for x, y in sorted(points):
        if y < low:
            found += (corner[0] - x) * (low - y)
            low = y
    return found


def whole_grid() -> list[tuple[float, float]]:
    return [
        machine(dict(zip(AXES, cells, strict=True))) for cells in itertools.product(*(axis.values for axis in axes()))
    ]


@pytest.mark.parametrize(
    ("method", "share"), [("random:64", 0.75), ("nsga2:160", 0.97), ("tpe:60", 0.9)]
)
def test_a_search_comes_near_the_front_of_the_grid(tmp_path: Path, method: str, share: float) -> None:
    """Of 400 points it looks at less than half, and dominates nearly all that the whole grid does."""
    grid = whole_grid()
    corner = (max(time for time, _ in grid), max(area for _, area in grid))
    best = hypervolume([point for point, on in zip(grid, pareto_front(grid), strict=True) if on], corner)
    executor = Analytic()
    outcome, records = searched(tmp_path / "s", method, executor)
    found = [tuple(record["objectives"].values()) for record in records]
    assert hypervolume(found, corner) >= share * best
    assert outcome.trials == int(method.split(":")[1])
    assert outcome.points == len(records) == len(executor.ran) == len(set(executor.ran)) <= outcome.trials
    assert all(record["objectives"] == dict(zip("ta", machine(record["values"]), strict=True)) for record in records)


def test_the_best_of_one_objective_is_found(tmp_path: Path) -> None:
    """Small or large, over numbers, quantities on a log scale, integers and words."""

    def far(values: Mapping[str, Any]) -> tuple[float]:
        link = float(str(values["link"]).split()[0])
        return ((math.log(link / 250)) ** 2 + (values["n"] - 40) ** 2 / 100 + (values["kind"] != "y"),)

    of = axes(link="100..800 GB/s:log", n="1..64", kind="x,y,z", wide="0.5..2.5")
    _, records = searched(tmp_path / "a", "tpe:80", Analytic(far), of=of, maximise=(False,))
    best = min(records, key=lambda record: record["objectives"]["t"])
    assert best["objectives"]["t"] < 0.1
    assert best["values"]["kind"] == "y"
    for record in records:
        link, n, wide = (record["values"][name] for name in ("link", "n", "wide"))
        assert 100 <= float(link.split()[0]) <= 800 and link.endswith(" GB/s")
        assert type(n) is int and 1 <= n <= 64
        assert type(wide) is float and 0.5 <= wide <= 2.5
    _, records = searched(tmp_path / "b", "tpe:40", Analytic(far), of=of, maximise=(True,))
    assert max(record["objectives"]["t"] for record in records) > 14


KILLED = [(method, point) for method in ("nsga2:24", "tpe:12", "random:40") for point in (0, 1, 9)]


@pytest.mark.parametrize(("method", "die_after"), KILLED)
def test_a_search_that_was_killed_goes_on_as_if_it_had_not_been(tmp_path: Path, method: str, die_after: int) -> None:
    """The same records in the same order, none of them run twice."""
    _, wanted = searched(tmp_path / "whole", method, Analytic())
    first, rest = Analytic(die_after=die_after), Analytic()
    with pytest.raises(Killed):
        searched(tmp_path / "cut", method, first)
    _, found = searched(tmp_path / "cut", method, rest)
    assert found == wanted
    assert sorted(first.ran + rest.ran) == sorted(record["key"] for record in wanted)
    again = Analytic()
    assert searched(tmp_path / "cut", method, again)[1] == wanted
    assert again.ran == []


def test_who_draws_the_same_with_any_number_of_processes(tmp_path: Path) -> None:
    """Generations and random draws do; tpe asks for as many at once as there are processes, and repeats itself."""
    for method, same in (("nsga2:30", True), ("random:30", True), ("tpe:30", False)):
        runs = [
            searched(tmp_path / f"{method}-{n}", method, Analytic(), processes=p)[1] for n, p in enumerate((1, 4, 4))
        ]
        assert (runs[0] == runs[1]) is same
        assert runs[1] == runs[2]
    other = searched(tmp_path / "seed", "random:30", Analytic(), seed=1)[1]
    assert other != runs[0]


def test_axes_are_drawn_of_as_they_are_written(tmp_path: Path) -> None:
    """Numbers by their size, whatever their order; by factors where the range says so; words as choices."""
    of = axes(n="64,16,32", link="1..1000GB/s:log", count="1..1000:log", even="1..1000", kind="b,a")
    _, records = searched(tmp_path / "s", "random:60", Analytic(lambda _: (1.0, 1.0)), of=of)
    drawn = PointStudy(parse_search("random:60"), of, (False,), 0)._distributions
    assert (drawn["n"].low, drawn["n"].high, drawn["kind"].choices) == (0, 2, ("b", "a"))
    assert {record["values"]["n"] for record in records} == {16, 32, 64}
    columns = [sorted(record["values"][name] for record in records) for name in ("count", "even")]
    links = sorted(float(record["values"]["link"].removesuffix(" GB/s")) for record in records)
    assert columns[0][30] < 120 < 300 < columns[1][30]
    assert links[30] < 120


def test_a_point_that_is_repeated_is_run_once(tmp_path: Path) -> None:
    """Of a grid of four there are four records, whatever the number of trials."""
    executor = Analytic(lambda values: (float(values["n"]), -float(values["n"])))
    outcome, records = searched(tmp_path / "s", "nsga2:16", executor, of=axes(n="1,2,3,4"))
    assert outcome == SearchOutcome(trials=16, failed=0, points=4, skipped=0)
    assert str(outcome) == "16 trials of 4 points, 12 repeated"
    assert sorted(record["values"]["n"] for record in records) == [1, 2, 3, 4]
    assert [record["index"] for record in records] == [0, 1, 2, 3]
    assert len(executor.ran) == 4


def test_constraints_leave_points_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not run, and are no trials; where they hold nowhere, that is told."""

    def allowed(point: SweepPoint) -> bool:
        return bool(point.values["rows"] * point.values["columns"] <= 1024)

    outcome, records = searched(tmp_path / "s", "nsga2:16", Analytic(), allowed=allowed)
    assert all(record["values"]["rows"] * record["values"]["columns"] <= 1024 for record in records)
    assert (outcome.trials, outcome.points) == (16, len(records))
    assert outcome.skipped > 0
    assert str(outcome).endswith(f"{outcome.skipped} more left out by --where")
    monkeypatch.setattr("kernbench_builtin.sweeps.search.searching._MOST_SKIPPED", 40)
    with pytest.raises(UsageError) as caught:
        searched(tmp_path / "none", "random:5", Analytic(), allowed=lambda _: False)
    assert str(caught.value) == (
        "--where must be true for some points, but is false for the last 40 that the search chose; give other "
        "values, or drop a --where."
    )


def test_points_that_fail_have_no_value(tmp_path: Path) -> None:
    """The search goes on without them; tried again it goes on with what they give, and numbers stay apart."""

    def fails(values: Mapping[str, Any]) -> Any:
        return None if values["kind"] == "a" else machine(values)

    outcome, records = searched(tmp_path / "s", "nsga2:16", Analytic(fails))
    failed = [record["key"] for record in records if record["status"] != "ok"]
    assert outcome.trials == 16 and 0 < len(failed) <= outcome.failed < 16
    executor = Analytic()
    outcome, again = searched(tmp_path / "s", "nsga2:16", executor, retry=True)
    passed = {record["key"] for record in records} - set(failed)
    assert passed.isdisjoint(executor.ran) and not set(failed).isdisjoint(executor.ran)
    assert (outcome.trials, outcome.failed) == (16, 0)
    assert len({record["index"] for record in again}) == len(again) >= len(records)


def test_a_point_with_wrong_data_has_no_value() -> None:
    """However good its figures are; nor has one without one of its objectives."""
    record = {"status": "ok", "objectives": {"t": 1.0, "a": 2}}
    assert objectives_of(record) == [1.0, 2]
    for change in ({"status": "wrong"}, {"objectives": {"t": 1.0, "a": None}}):
        assert objectives_of({**record, **change}) is None


def test_optuna_keeps_to_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing of its log or its warnings is seen, and its settings are as they were."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.INFO)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for method in ("nsga2:9", "tpe:3"):
            searched(
                tmp_path / method[:3], method, Analytic(lambda values: None if values["kind"] == "a" else (1.0, 2.0))
            )
    assert (seen, capfd.readouterr()) == ([], ("", ""))
    assert logging.getLogger("optuna").level == logging.INFO


def test_optuna_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "optuna":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "optuna", raising=False)
    with pytest.raises(UsageError) as caught:
        searched(tmp_path / "s", "tpe:3", Analytic())
    assert str(caught.value) == "--search needs Optuna, which is not installed; pip install 'kernbench[dse]'."


@pytest.mark.parametrize(
    ("text", "hint"),
    [("nsga:20", " Did you mean 'nsga2'?"), ("tpe", ""), ("tpe:0", ""), ("tpe:2000000", ""), ("tpe:-3", ""),
     ("x", " Known: nsga2, random, tpe."), ("random:1e3", "")],
)  # fmt: skip
def test_a_search_that_is_none_is_told(text: str, hint: str) -> None:
    """With the forms that there are."""
    with pytest.raises(UsageError) as caught:
        parse_search(text)
    assert str(caught.value) == (
        f"--search must be nsga2:N, tpe:N or random:N with N from 1 to 1,000,000 trials, not '{text}'.{hint}"
    )


def test_generations_are_an_eighth_of_the_trials() -> None:
    """Within bounds, and a batch ends with its generation."""
    assert [SearchMethod("nsga2", trials).population for trials in (1, 64, 200, 400, 9999)] == [8, 8, 25, 50, 50]
    assert [SearchMethod("nsga2", 200).batch(done, 2) for done in (0, 24, 25, 40)] == [25, 1, 25, 10]
    assert [SearchMethod(name, 200).batch(7, 3) for name in ("tpe", "random")] == [3, 32]
