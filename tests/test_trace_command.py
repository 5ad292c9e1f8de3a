"""`kernbench trace` and `run --trace`: the same trace from a saved run, cut as asked, or a sentence."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.pages.timeline import load
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins

SMALL = ("run", "gemm", "--topology", "tiny", "-p", "M=64", "-p", "N=48", "-p", "K=32", "-p", "tile_k=16", "-q")
Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], plugins: Plugins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Give a function that does what `kernbench` does, in this process and a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        code = main(args, plugins)
        return subprocess.CompletedProcess(args, code, *capfd.readouterr())

    return run


def refused(call: Call, *args: str) -> str:
    """Return the sentence that refuses a command, which changes no file."""
    before = {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")}
    done = call(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")} == before
    return done.stderr.removeprefix("error: ").rstrip("\n")


def events(path: str) -> list[dict[str, Any]]:
    data = Path(path).read_bytes()
    found: list[dict[str, Any]] = json.loads(gzip.decompress(data) if path.endswith(".gz") else data)["traceEvents"]
    return found


@pytest.mark.parametrize("command", ["run", "trace"])
def test_the_help_has_every_level(call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """In a terminal of 80 columns too."""
    monkeypatch.setenv("COLUMNS", "80")
    told = " ".join(call(command, "--help").stdout.split())
    assert "timeline: host, launch, kernel, unit, channel or wire. [default: wire]" in told and "…" not in told


def test_a_run_of_a_later_kernbench_is_refused(call: Call) -> None:
    """By its result, though the timeline could be read; a timeline alone has none."""
    assert call(*SMALL, "--out", "o").returncode == 0
    text = Path("o/result.json").read_text()
    Path("o/result.json").write_text(text.replace("kernbench.run/1", "kernbench.run/99"))
    assert refused(call, "trace", "o", "-o", "t.json") == (
        "file 'o/result.json' must have schema 'kernbench.run/1', not 'kernbench.run/99'; a later kernbench wrote it; "
        "use a newer kernbench."
    )
    Path("o/result.json").unlink()
    assert call("trace", "o", "-o", "t.json").returncode == 0


def test_a_saved_run_gives_the_trace_of_the_run(call: Call) -> None:
    """Byte for byte, in each format."""
    assert call(*SMALL, "--out", "o", "--trace", "run.pftrace").returncode == 0
    done = call("trace", "o", "-o", "saved.pftrace")
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("run.pftrace").read_bytes() == Path("saved.pftrace").read_bytes()
    spans = len(load("o/timeline.npz").spans)
    assert done.stdout.endswith(f", {spans:,} spans\n")
    assert call("trace", "o", "-o", "saved.json.gz").returncode == 0
    assert sum(event["ph"] == "X" for event in events("saved.json.gz")) == spans


def test_level_and_window_cut(call: Call) -> None:
    """A run that is told so notes what a whole one has of it."""
    assert call(*SMALL, "--out", "o").returncode == 0
    cut = ("--level", "unit", "--window", "3 us..5 us")
    assert call("trace", "o", "-o", "saved.json", *cut).returncode == 0
    assert call(*SMALL, "--trace", "run.json", *cut).returncode == 0
    saved, noted = ([event for event in events(name) if event["ph"] == "X"] for name in ("saved.json", "run.json"))
    assert saved == noted != []
    assert {e["cat"] for e in saved} <= {"host", "launch", "kernel", "unit"}
    assert all(e["ts"] < 5 and e["ts"] + e["dur"] > 3 for e in saved)


def test_what_cannot_be_written_is_a_sentence(call: Call) -> None:
    """Each one whole, with exit code 2, and no file."""
    assert call(*SMALL, "--out", "o").returncode == 0
    known = "trace file must end in .json or .json.gz, .pftrace or .pftrace.gz, not 't.txt'."
    assert refused(call, "trace", "o", "-o", "t.txt") == known
    assert refused(call, *SMALL, "--trace", "t.txt") == known
    assert refused(call, "trace", "o") == "trace must be given -o FILE or --open; add one of them."
    assert refused(call, "trace", "p", "-o", "t.json") == "RUN must be a folder that `run --out` wrote, not 'p'."
    late = refused(call, "trace", "o", "-o", "t.json", "--window", "1 ms..2 ms")
    assert late.startswith("a window must lie in the run, which took ")
    assert late.endswith(", and not be empty, not 1 ms..2 ms; give another one.")
    assert refused(call, *SMALL, "--trace", "t.json", "--window", "1 ms..2 ms") == late
    told = refused(call, "trace", "no-run", "-o", "t.json", "--window", "1..2")
    assert told == refused(call, *SMALL, "--trace", "t.json", "--window", "1..2") and told.startswith("window must be ")
    assert refused(call, *SMALL, "--open") == "--open shows what --trace writes; give --trace FILE, too."
    assert refused(call, *SMALL, "--links", "all") == (
        "--links must be given with --json or --out; add one, or leave out --links all."
    )
    assert refused(call, "trace", "o", "--open", "--port", "70000") == (
        "option --port must be a port from 0 (any free one) to 65535, not '70000'."
    )
    Path("o/timeline.npz").write_bytes(Path("o/timeline.npz").read_bytes()[:100])
    assert refused(call, "trace", "o", "-o", "t.json").startswith(
        "timeline 'o/timeline.npz' must be a whole file as a run wrote it, and is damaged ("
    )
    Path("o/timeline.npz").unlink()
    assert refused(call, "trace", "o", "-o", "t.json") == (
        "timeline 'o/timeline.npz' must exist, and does not; run with --out to have one written."
    )
