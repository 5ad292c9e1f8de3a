"""A few seeds of tools/fuzz_config.py and tools/fuzz_determinism.py; more of them are slow, or run by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.conftest import loaded_tool


@pytest.fixture(scope="module")
def machines() -> Iterator[ModuleType]:
    """Give tools/fuzz_config.py."""
    with loaded_tool("fuzz_config") as module:
        yield module


@pytest.fixture(scope="module")
def determinism() -> Iterator[ModuleType]:
    """Give tools/fuzz_determinism.py."""
    with loaded_tool("fuzz_determinism") as module:
        yield module


def test_machines_that_nobody_would_write_down_end_well_or_in_sentences(machines: ModuleType) -> None:
    codes: Counter[int] = Counter()
    assert list(machines.faults(range(1000, 1008), 1, codes)) == []
    assert codes.total() == 8


@pytest.mark.parametrize("first", range(2000, 2200, 40))
def test_many_machines_that_nobody_would_write_down(machines: ModuleType, first: int) -> None:
    codes: Counter[int] = Counter()
    assert list(machines.faults(range(first, first + 40), 2, codes)) == []
    assert min(codes[0], codes[3]) > 6, "as many machines must run as are refused, or little is tried"


@pytest.mark.parametrize(
    ("code", "words", "fault"),
    [
        (0, "", ""),
        (3, "a.yaml:1:1: …", ""),
        (3, "", "exit code 3: without a word"),
        (1, "DATA IS WRONG", "exit code 1: DATA IS WRONG"),
        (7, "error: bytes were lost", "exit code 7: error: bytes were lost"),
        (141, "", "exit code 141: "),
        (-9, "", "died: of signal 9"),
        (7, "Traceback (most recent call last):\n  …\nKeyError: 'x'\nerror: k", "a traceback: KeyError: 'x'"),
    ],
)
def test_what_counts_as_a_fault(machines: ModuleType, code: int, words: str, fault: str) -> None:
    assert machines.fault_of(code, words) == fault


def test_looking_at_a_run_changes_nothing(determinism: ModuleType) -> None:
    assert list(determinism.differences(determinism.case_of(3), processes=False)) == []


@pytest.mark.parametrize("seed", range(8))
def test_nothing_that_must_change_nothing_does(determinism: ModuleType, seed: int) -> None:
    assert list(determinism.differences(determinism.case_of(seed))) == []


def test_a_difference_is_told(determinism: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run that takes another time, or has another log, is named with the way in which it was run."""
    given = iter([("same", 1.0), ("same", 1.0), ("same", 1.0), ("other", 1.0)])
    monkeypatch.setattr(determinism, "found", lambda *_, **__: next(given, ("same", 1.0)))
    case = determinism.Case("gemm", {}, "tiny", 0)
    assert list(determinism.differences(case, processes=False)) == [
        f"{case} with tcm_map: must give ('same', 1.0), not ('other', 1.0)"
    ]
