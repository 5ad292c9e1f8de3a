"""tools/tune_ccl.py measures what `auto` goes by: here with times that are made up, so that nothing is simulated."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.conftest import loaded_tool

KIB = 1 << 10


@pytest.fixture
def tool() -> Iterator[ModuleType]:
    """Give tools/tune_ccl.py."""
    with loaded_tool("tune_ccl") as found:
        yield found


class Lines:
    """Algorithms that take a + b S each; it notes which were run at which size."""

    def __init__(self, tool: ModuleType, monkeypatch: pytest.MonkeyPatch, **algorithms: tuple[float, float]) -> None:
        self.of, self.run = algorithms, list[tuple[int, tuple[str, ...]]]()
        self.auto = min(algorithms)
        choice = SimpleNamespace(algorithm=SimpleNamespace(name=self.auto))
        chooser = SimpleNamespace(able=lambda: dict(algorithms), best=lambda size: choice)
        monkeypatch.setattr(tool, "chooser_of", lambda cell: (None, chooser))
        monkeypatch.setattr(tool, "times", self.times)

    def time(self, name: str, size: int) -> float:
        """Return the time of an algorithm, in ns."""
        latency, each = self.of[name]
        return latency + each * size

    def times(self, _: Any, __: Any, size: int, names: Collection[str] | None = None) -> tuple[int, dict[str, float]]:
        """Stand in for the tool's own."""
        asked = tuple(sorted(name for name in self.of if names is None or name in names))
        self.run.append((size, asked))
        return size, {name: self.time(name, size) for name in asked}


def test_sizes_are_halved_where_the_best_changes(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """`few` is the best up to 100 KB, `wide` from there on: between 64 and 128 KiB, and nothing is run elsewhere."""
    made = Lines(tool, monkeypatch, few=(1000.0, 0.03), wide=(2000.0, 0.02))
    cell = tool.Cell("all_gather", "ring", 8)
    measured = tool.measure(cell)
    assert [size for size, _ in measured] == [n * KIB for n in (1, 16, 64, 128, 256, 1024)]
    found = tool.entry(cell, measured)
    assert found == {
        "collective": "all_gather", "network": "ring", "world": 8,
        "best": [[64 * KIB, "few"], [1024 * KIB, "wide"]],
    }  # fmt: skip
    for size in (1 * KIB, 60_000, 200_000, 1024 * KIB):
        right = min(made.of, key=lambda name: made.time(name, size))
        assert next(name for most, name in found["best"] if size <= most) == right


def test_what_is_far_behind_is_not_run_at_larger_sizes(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """`slow` takes 3.7 times as long as the best at 16 KiB, `near` 2.9 times at 1 KiB."""
    made = Lines(tool, monkeypatch, quick=(1000.0, 0.01), near=(3000.0, 0.02), slow=(1000.0, 0.2))
    tool.measure(tool.Cell("all_reduce", "switch", 4))
    every = ("near", "quick", "slow")
    assert made.run == [
        (1 * KIB, every), (16 * KIB, every), (256 * KIB, ("near", "quick")), (1024 * KIB, ("near", "quick")),
        (4096 * KIB, ("near", "quick")),
    ]  # fmt: skip


def test_one_algorithm_is_not_run_at_all(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to choose."""
    made = Lines(tool, monkeypatch, only=(1.0, 1.0))
    assert tool.entry(tool.Cell("gather", "ring", 3), tool.measure(tool.Cell("gather", "ring", 3)))["best"] == [
        [1024 * KIB, "only"]
    ]
    assert made.run == []


@pytest.mark.parametrize(("latency", "code"), [(1095.0, 0), (1105.0, 1)])
def test_a_sample_fails_where_auto_is_a_tenth_slower(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], latency: float, code: int
) -> None:
    """At points that a seed names, of cells with a choice: the same again, others with another one."""

    class Here:
        def __init__(self, *_: Any, **__: Any) -> None: ...
        def __enter__(self) -> Here:
            return self

        def __exit__(self, *_: object) -> None: ...
        map = staticmethod(map)

    made = Lines(tool, monkeypatch, auto=(latency, 0.0), best=(1000.0, 0.0))
    several, single = tool.chooser_of(None), SimpleNamespace(able=lambda: {"auto": None})
    one = [cell for cell in tool.cells() if cell.collective in ("gather", "all_reduce")]
    monkeypatch.setattr(tool, "cells", lambda: one)
    choosers = {"gather": (None, single), "all_reduce": several}
    monkeypatch.setattr(tool, "chooser_of", lambda cell: choosers[cell.collective])
    monkeypatch.setattr(tool, "ProcessPoolExecutor", Here)
    drawn = []
    for seed in (3, 3, 4):
        made.run.clear()
        assert tool.sample(4, seed, 1) == code
        drawn.append([size for size, _ in made.run])
    assert drawn[0] == drawn[1] != drawn[2] and all(KIB <= size <= 1024 * KIB for size in drawn[0])
    out = capsys.readouterr().out
    assert out.count("gather:") == 0 and out.count("all_reduce:") == 12
    assert out.count("TOO SLOW") == (12 if code else 0) and f"at most {latency / 1000:.3f} x the best" in out
