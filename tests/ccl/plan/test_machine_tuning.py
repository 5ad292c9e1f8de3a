"""A measured table of a machine: between sizes, beyond them, and where the best changes; files of other kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.plan.machine_tuning import SCHEMA, MachineTuning, MeasuredTimes, read_machine_tuning

FEW, WIDE, ODD = "ccl.few_all_reduce", "ccl.wide_all_reduce", "acme.odd_all_reduce"
CELL = ("all_reduce", "ring", 5)


def measured(*rows: tuple[int, dict[str, float]]) -> MeasuredTimes:
    """Return times of a cell."""
    return MeasuredTimes(*CELL, tuple(rows))


def test_between_two_sizes_times_are_on_a_line_and_the_outermost_lines_go_on() -> None:
    """Below the smallest size it is the time there; what one end has not is left out."""
    entry = measured((100, {FEW: 10.0, WIDE: 30.0}), (200, {FEW: 20.0, WIDE: 32.0, ODD: 5.0}), (300, {WIDE: 34.0}))
    assert entry.at(1) == entry.at(100) == {FEW: 10.0, WIDE: 30.0}
    assert entry.at(150) == {FEW: 15.0, WIDE: 31.0}
    assert entry.at(200) == {FEW: 20.0, WIDE: 32.0}
    assert entry.at(250) == {WIDE: 33.0}
    assert entry.at(1300) == {WIDE: 54.0}


def test_times_do_not_fall_below_both_ends() -> None:
    """Where a larger size took less, as fewer PEs were waited for."""
    entry = measured((100, {FEW: 10.0}), (200, {FEW: 9.0}))
    assert entry.at(100_000) == {FEW: 9.0}


def test_the_best_is_one_of_those_that_are_able() -> None:
    """By name among equals; none of them was measured: none."""
    entry = measured((100, {WIDE: 10.0, FEW: 10.0, ODD: 1.0}))
    assert entry.best(100, (WIDE, FEW)) == FEW
    assert entry.best(100, (WIDE, FEW, ODD)) == ODD
    assert entry.best(100, ("ccl.other",)) is None


@given(st.floats(1, 1e4), st.floats(1e-4, 1), st.floats(1, 1e4), st.floats(1e-4, 1), st.integers(1, 1 << 24))
def test_stretches_say_what_is_best_at_every_size(a: float, b: float, c: float, d: float, nbytes: int) -> None:
    """Two lines: what the stretch of a size names takes no longer than the other."""
    sizes = (1 << 10, 1 << 14, 1 << 20)
    entry = measured(*((n, {FEW: a + b * n, WIDE: c + d * n}) for n in sizes))
    stretches = entry.best_name_by_size((FEW, WIDE))
    assert [name for _, name in stretches] == list(dict.fromkeys(name for _, name in stretches))
    assert stretches[-1][0] is None and all(most is not None for most, _ in stretches[:-1])
    name = next(name for most, name in stretches if most is None or nbytes <= most)
    times = entry.at(nbytes)
    assert times[name] <= min(times.values()) * (1 + 1e-9)


def test_a_table_comes_back_from_its_text_and_keeps_its_other_entries(tmp_path: Path) -> None:
    """An entry of a cell takes the place of the one that was there; entries are in order."""
    path = tmp_path / "tuning.json"
    old, new = measured((8, {FEW: 1.5})), measured((8, {FEW: 2.5, WIDE: 1 / 3}))
    other = MeasuredTimes("broadcast", "ring", 5, ((8, {FEW: 1.0}),), {FEW: ("pes=1", "pipeline=off")})
    table = MachineTuning("key", "tiny", "f16").with_entry(other).with_entry(old).with_entry(new)
    assert table.entries == (new, other)
    path.write_text(table.text())
    found = read_machine_tuning(path)
    assert (found.key, found.made_on, found.dtype, found.source) == ("key", "tiny", "f16", str(path))
    assert found.entries == table.entries and found.text() == table.text()
    assert found.of(*CELL) == new and found.of("all_reduce", "ring", 4) is None


WRONG: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "must be a table that kernbench ccl tune wrote, and {path!r} is no JSON."),
    "a list": ([], "must be a table of the schema 'kernbench.machine_tuning/1', as kernbench ccl tune writes it, and "
                   "{path!r} has None."),
    "of another version": ({"schema": "kernbench.machine_tuning/2"},
                           "must be a table of the schema 'kernbench.machine_tuning/1', as kernbench ccl tune writes "
                           "it, and {path!r} has 'kernbench.machine_tuning/2'."),
    "without a machine": ({"schema": SCHEMA, "entries": []},
                          "must be a whole table that kernbench ccl tune wrote, and in {path!r} 'machine' is wrong."),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_table_is_told(tmp_path: Path, what: str) -> None:
    """In one sentence, that begins behind the name of what holds the path."""
    path, (given, sentence) = tmp_path / "t.json", WRONG[what]
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    with pytest.raises(ValueError) as caught:
        read_machine_tuning(path)
    assert str(caught.value) == sentence.format(path=str(path))


@pytest.mark.parametrize(
    "times",
    [[], [[8, {}]], [[8, {FEW: 0.0}]], [[8, {FEW: float("inf")}]], [[8, {FEW: 1.0}], [8, {FEW: 1.0}]],
     [[9, {FEW: 1.0}], [8, {FEW: 1.0}]]],
)  # fmt: skip
def test_times_that_nobody_measures_are_refused(tmp_path: Path, times: Any) -> None:
    """No sizes, no algorithm, no time, an endless one, a size twice, sizes in no order."""
    path = tmp_path / "t.json"
    entry = {"collective": "all_reduce", "network": "ring", "world": 5, "times": times}
    head = {"schema": SCHEMA, "machine": {"key": "k", "made_on": "m"}, "dtype": "f16"}
    path.write_text(json.dumps({**head, "entries": [entry]}))
    with pytest.raises(ValueError) as caught:
        read_machine_tuning(path)
    told = f"must be a whole table that kernbench ccl tune wrote, and in {str(path)!r} 'times' is wrong."
    assert str(caught.value) == told
