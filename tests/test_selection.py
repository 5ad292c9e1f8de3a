"""Which tests a run has: the rule on made-up tests, the records, and the map from changed files to tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from tests.selection.changed import TestMap
from tests.selection.records import Ledger, Times, key, write_times
from tests.selection.rule import FAR, NEAR, Choice, Known, Rule, choose
from tests.selection.session import draw_fewer


@frozen
class Item:
    nodeid: str


def suite(**cases: int) -> list[Item]:
    """Return tests of one file by the number of their cases."""
    return [Item(f"tests/test_a.py::{name}[{case}]") for name, number in cases.items() for case in range(number)]


def known(seconds: dict[str, float] | None = None, seed: str = "", **more: Any) -> Known:
    return Known(Times({key(name): each for name, each in (seconds or {}).items()}, {}), seed, **more)


def names(tests: list[Any]) -> list[str]:
    return [test.nodeid for test in tests]


def heavy_suite(number: int) -> tuple[list[Item], dict[str, float]]:
    tests = [Item(f"tests/test_a.py::test_{at}") for at in range(number)]
    return tests, dict.fromkeys(names(tests), 1.0)


# The rule ------------------------------------------------------------------------------------------------


def test_without_limits_everything_runs() -> None:
    tests = suite(test_a=5, test_b=1)
    assert choose(tests, Rule(None, None), known()) == Choice(tests, [], [], frozenset())


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 4), st.text(max_size=3))
def test_a_function_has_its_first_case_and_others_up_to_the_number(one: int, other: int, most: int, seed: str) -> None:
    tests = suite(test_a=one, test_b=other)
    found = choose(tests, Rule(most, None), known(seed=seed))
    counts = Counter(name.partition("[")[0].rpartition("_")[2] for name in names(found.chosen))
    assert counts == {"a": min(one, most), "b": min(other, most)}
    assert {tests[0].nodeid, tests[one].nodeid} <= set(names(found.chosen))
    assert sorted(names(found.chosen + found.cases)) == sorted(names(tests)) and not found.heavy
    assert [name for name in names(tests) if name in names(found.chosen)] == names(found.chosen)


def test_other_commits_have_other_cases_and_all_of_them_in_the_end() -> None:
    tests = suite(test_a=10)
    chosen = [frozenset(names(choose(tests, Rule(3, None), known(seed=str(seed))).chosen)) for seed in range(40)]
    assert len(set(chosen)) > 10
    assert frozenset.union(*chosen) == set(names(tests))
    assert chosen[7] == frozenset(names(choose(tests, Rule(3, None), known(seed="7")).chosen))


def test_heavy_tests_come_in_turn_until_each_has_run() -> None:
    """By the ledger each third is another one: three landings have all of them."""
    tests, seconds = heavy_suite(9)
    passed: dict[str, float] = {}
    for landing in range(1, 4):
        found = choose(tests, Rule(3, 3), known(seconds, str(landing), last_passed=dict(passed)))
        assert len(found.chosen) == 3 and len(found.heavy) == 6
        assert not {key(name) for name in names(found.chosen)} & set(passed)
        assert found.rotated == set(names(found.chosen))
        passed.update({key(name): float(landing) for name in names(found.chosen)})
    assert set(passed) == {key(test.nodeid) for test in tests}


def test_what_the_change_touches_comes_before_what_waited_longest() -> None:
    tests, seconds = heavy_suite(9)
    last = {key(test.nodeid): float(at) for at, test in enumerate(tests)}
    far = dict.fromkeys(names(tests[7:]), 1.0)
    found = choose(tests, Rule(3, 3), known(seconds, last_passed=last, distance=lambda name: far.get(name, FAR)))
    assert names(found.chosen) == names([tests[0], *tests[7:]])


def test_cases_that_are_named_for_what_changed_run_beside_the_others() -> None:
    tests = suite(test_a=10)
    found = choose(tests, Rule(3, None), known(distance=lambda name: 0 if name.endswith(("[6]", "[7]")) else FAR))
    assert len(found.chosen) == 5 and {tests[0].nodeid, tests[6].nodeid, tests[7].nodeid} <= set(names(found.chosen))


def test_of_what_the_change_touches_more_cases_run() -> None:
    """The nearest first: of three functions, the change is nearest to the last and does not touch the first."""
    tests = suite(test_a=60, test_b=60, test_c=60)
    far = {"a": FAR, "b": 9.0, "c": 2.0}
    found = names(choose(tests, Rule(3, None), known(distance=lambda name: far[name.partition("[")[0][-1]])).chosen)
    counts = Counter(name.partition("[")[0][-1] for name in found)
    assert counts == {"a": 3, "b": 3 + NEAR - 57, "c": 60}


def test_a_third_is_of_the_time_and_light_tests_stay() -> None:
    """8 s in one test and 22 s in 22: a third of 30 s is ten of these, or the one and two; all in the end."""
    others, seconds = heavy_suite(22)
    tests = [Item("tests/test_a.py::test_long"), *others, Item("tests/test_a.py::test_light")]
    seconds[tests[0].nodeid] = 8.0
    with_long = 0
    for seed in range(60):
        chosen = names(choose(tests, Rule(3, 3), known(seconds, str(seed))).chosen)
        assert sum(seconds.get(name, 0.0) for name in chosen) == 10.0 and chosen[-1] == tests[-1].nodeid
        with_long += tests[0].nodeid in chosen
    assert 0 < with_long < 60
    waited = {key(test.nodeid): 1.0 for test in others}
    assert tests[0] in choose(tests, Rule(3, 3), known(seconds, last_passed=waited)).chosen
    assert names(choose(tests, Rule(3, 0), known(seconds)).chosen) == [tests[-1].nodeid]


def test_long_tests_have_seconds_of_their_own_or_one_of_them_runs() -> None:
    """Of 6, 7 and 90 s, 15 s have the first two or the last alone; other heavy tests have their third."""
    others, seconds = heavy_suite(9)
    longs = [Item(f"tests/test_b.py::test_{at}") for at in range(3)]
    seconds.update(zip(names(longs), (6.0, 7.0, 90.0), strict=True))
    chosen = set()
    for seed in range(30):
        found = names(choose([*others, *longs], Rule(3, 3, 15), known(seconds, str(seed))).chosen)
        assert len([name for name in found if "test_a" in name]) == 3
        chosen.add(tuple(name[-1] for name in found if "test_b" in name))
    assert chosen == {("0", "1"), ("2",)}
    assert choose(longs, Rule(3, 0, 15), known(seconds)).chosen == []


def test_the_rule_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_CASES", "3")
    monkeypatch.setenv("KB_HEAVY", "")
    monkeypatch.delenv("KB_LONG", raising=False)
    assert Rule.of_environment() == Rule(3, None) and Rule(3, None).has_limits and not Rule(None, None).has_limits
    monkeypatch.setenv("KB_HEAVY", "a third")
    with pytest.raises(ValueError) as caught:
        Rule.of_environment()
    assert str(caught.value) == "KB_HEAVY must be a whole number, not 'a third'; leave it empty for all tests."


def test_a_sixth_of_the_examples_is_drawn() -> None:
    @hypothesis.settings(max_examples=60, database=None)
    @given(st.integers())
    def test_many(number: int) -> None:
        drawn.append(number)

    drawn: list[int] = []
    draw_fewer([_function(test_many)])
    test_many()
    assert 1 <= len(drawn) <= 10


def _function(obj: Any) -> pytest.Item:
    """Return a test of pytest's that has this function and nothing else."""
    item: pytest.Function = object.__new__(pytest.Function)
    item.obj = obj
    return item


# Records -------------------------------------------------------------------------------------------------


def test_times_survive_a_move_to_another_room(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    write_times({"tests/a/test_x.py::test_y[1]": 0.75, "tests/a/test_x.py::test_y[2]": 0.05}, file)
    times = Times.read(file)
    assert times.of("tests/b/c/test_x.py::test_y[1]") == 0.75 and times.is_heavy("tests/b/c/test_x.py::test_y[1]")
    assert times.of("tests/a/test_x.py::test_y[2]") == 0.0
    assert times.of_file("tests/b/test_x.py") == pytest.approx(0.8)
    assert times.of_file("tests/b/test_x.py", heavy_share=1 / 3) == pytest.approx(0.3)


def test_times_of_some_files_leave_those_of_others(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    write_times({"tests/test_x.py::test_a": 2.0, "tests/test_y.py::test_b": 3.0, "tests/test_y.py::test_c": 1.0}, file)
    write_times({"tests/test_y.py::test_b": 0.25}, file, only=True)
    times = Times.read(file)
    assert times.of("test_x.py::test_a") == 2.0
    assert times.of("test_y.py::test_b") == 0.25 and times.of("test_y.py::test_c") == 0.0


def test_news_are_heavy_tests_that_were_recorded_as_light() -> None:
    times = Times({"test_a.py::test_old": 0.6, "test_a.py::test_near": 0.4}, {})
    assert times.is_news("test_a.py::test_new", 0.6) and not times.is_news("test_a.py::test_new", 0.5)
    assert not times.is_news("test_a.py::test_old", 2.0) and not times.is_news("test_a.py::test_near", 0.6)


def test_the_ledger_has_the_last_time_and_forgets_what_failed(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "ledger.tsv"
    ledger = Ledger(file)
    assert ledger.last_passed() == {}
    ledger.add(["tests/a/test_x.py::test_one", "tests/test_x.py::test_two"], [])
    ledger.add([], ["tests/b/test_x.py::test_one"])
    with file.open("a") as lines:
        lines.write("torn")
    found = ledger.last_passed()
    assert found["test_x.py::test_one"] == 0.0 < found["test_x.py::test_two"]


def test_a_long_ledger_is_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "ledger.tsv"
    file.write_text("".join(f"{at}\ttest_x.py::test_{at % 5}\n" for at in range(20_001)))
    found = Ledger(file).last_passed()
    assert found == Ledger(file).last_passed() and found["test_x.py::test_0"] == 20_000.0
    assert len(file.read_text().splitlines()) == 5


# The map -------------------------------------------------------------------------------------------------

TREE = {
    "tests/core/values/test_region.py": "from kernbench_core.values.region import Region\n",
    "tests/core/values/test_region_pages.py": "",
    "tests/core/values/test_store.py": "",
    "tests/core/test_wire.py": "from kernbench_core import wire\n",
    "tests/core/rig.py": "from kernbench_core.wire import Wire\n",
    "tests/core/memory/test_hazards.py": "from tests.core.rig import machine\nimport kernbench_core.values.region\n",
    "tests/core/memory/conftest.py": "",
    "tests/builtin/test_plugin.py": "REGION = 'tiny.yaml'\n",
    "tests/builtin/triton/test_names.py": "",
    "tests/test_docs.py": "",
    "tests/test_golden.py": "with loaded_tool('golden'): pass\n",
    "plugins_example/tests/test_offers.py": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> TestMap:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return TestMap(tmp_path)


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        (
            "kernbench_core/values/region.pxd",  # mirrors, then the room, then who imports it
            ["core/values/test_region.py", "core/values/test_region_pages.py", "core/values/test_store.py",
             "core/memory/test_hazards.py"],
        ),
        ("kernbench_core/wire.py", ["core/test_wire.py", "core/memory/test_hazards.py"]),  # by a helper, too
        ("kernbench_builtin/triton/language/names.py", ["builtin/triton/test_names.py"]),
        ("kernbench_builtin/topologies/tiny.yaml", ["builtin/test_plugin.py"]),
        ("tools/golden.py", ["test_golden.py"]),
        ("docs/adr/ADR-0001.md", ["test_docs.py"]),
        ("tests/core/test_wire.py", ["core/test_wire.py"]),
        ("tests/core/rig.py", ["core/memory/test_hazards.py"]),
        ("tests/core/memory/conftest.py", ["core/memory/test_hazards.py"]),
        ("LICENSE", []),
    ],
)  # fmt: skip
def test_a_file_touches_mirrors_room_and_importers(tree: TestMap, changed: str, touched: list[str]) -> None:
    assert tree.touched([changed]) == [f"tests/{name}" for name in touched]


def test_the_nearest_tests_of_all_changes_come_first(tree: TestMap) -> None:
    found = tree.touched(["kernbench_core/values/region.py", "kernbench_core/memory/hazards.py"])
    nearest = ("memory/test_hazards.py", "values/test_region.py", "values/test_region_pages.py")
    assert found[:3] == [f"tests/core/{name}" for name in nearest]
