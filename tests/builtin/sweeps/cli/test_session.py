"""What `kernbench sweep` says at its end: which points are best, what changed nothing, and what is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins
from kernbench_core.spread import NOT_KNOWN

Sweep = Callable[..., str]


@pytest.fixture
def sweep(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Sweep:
    """Give a function that sweeps a bench whose time does not depend on `tag`, and returns what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def bench(rt, n: int = 4, tag: int = 0):\n    rt.zeros((n,), 'f32')\n")

    def call(*words: str) -> str:
        assert main(["sweep", *words], plugins) == 0
        return capsys.readouterr().out

    return call


def test_equal_points_are_equally_good(sweep: Sweep, tmp_path: Path) -> None:
    """Nothing differs by chance where nothing differs; with other points a small difference may be some."""
    words = ("mine.py", "--topology", "tiny", "--objective", "time", "-j", "1", "-p", "tag=1,2")
    end = "equal best: #0 (tag=1), #1\ntag changed no time\n"
    assert sweep(*words).endswith(f"2 points: 2 ok\n{end}")
    assert sweep(*words, "-p", "n=4096,4").endswith(
        "4 points: 4 ok\nequal best: #1 (tag=1, n=4), #3; 1.16 times as fast as the slowest\n"
        f"{NOT_KNOWN}\ntag changed no time\n"
    )
    sweep(*words, "-p", "n=4", "-o", "kept")
    next((tmp_path / "kept/points").iterdir()).unlink()
    assert "changed no time" not in sweep("kept")  # which are not all


def test_the_best_point_is_named_with_its_values_and_what_it_gains(sweep: Sweep, tmp_path: Path) -> None:
    """Without an objective the shortest time is the best; where all are equal, or one is alone, nothing is."""
    words = ("mine.py", "--topology", "tiny", "-j", "1", "--set", "host.pcie.latency=300ns,100ns", "-p", "n=4096,4")
    told = sweep(*words, "-o", "kept").splitlines()[-2]
    times = [row["time_ns"] for row in map(json.loads, (tmp_path / "kept/table.jsonl").read_text().splitlines())]
    gain = f"{max(times) / min(times):.2f} times as fast as the slowest"
    assert (times.index(min(times)), told) == (3, f"best: #3 (latency=100ns, n=4); {gain}")
    for objective in ((), ("--objective", "time")):
        assert sweep(*words, "-q", *objective) == f"4 points: 4 ok; best: #3 (latency=100ns, n=4); {gain}\n"
    assert sweep(*words, "-q", "--objective", "cost=2*n") == "4 points: 4 ok; equal best: #1 (latency=300ns, n=4), #3\n"
    both = ("--objective", "time", "--objective", "latency")
    assert sweep(*words, "-q", *both) == "4 points: 4 ok; best: #3\n"
    for alike in ("n=4", "tag=1,2"):
        assert "best" not in sweep("mine.py", "--topology", "tiny", "-j", "1", "-p", alike)


def test_a_folder_without_a_point_is_shown(sweep: Sweep, tmp_path: Path) -> None:
    """As one is that was interrupted early."""
    sweep("mine.py", "--topology", "tiny", "-j", "1", "-p", "n=4,8", "-o", "kept")
    for path in (tmp_path / "kept/points").iterdir():
        path.unlink()
    assert sweep("kept") == (
        "#  n  status    time\n0 points; kept in kept; 2 left, which --resume goes on with\n"
        "more: kernbench report kept\n"
    )
