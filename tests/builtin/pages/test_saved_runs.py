"""What the command line makes of runs in folders: traces, reports, pages of a server; on a machine of toys."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import kernbench_core as kb
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.timeline import save
from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins, own_plugins, points
from kernbench_core.process.interrupt import Terminated
from tests.builtin.report.pages import shipped
from tests.builtin.working_machine import YAML, on_machine, plugins

COMMANDS = load_plugins(own_plugins("builtin"), installed=False).commands
PLUGINS = plugins().having(REPORT_SECTIONS, shipped()).having(points.COMMANDS, COMMANDS)
BENCH = """
import numpy as np
def double(x, n, tl):
    at = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(x + at, tl.load(x + at) * 2)
def bench(rt, n: int = 2):
    '''Double a few numbers.'''
    x = rt.tensor(np.arange(4 * n, dtype=np.float32))
    rt.launch(double, x, n, grid=(4,))
    rt.check(x, np.arange(4 * n) * 2.0)
"""
Told = tuple[int, str, str]
Call = Callable[..., Told]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, kb.RunResult]:
    """Give the folder that a run wrote, and its result."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "double.py").write_text(BENCH)
    return folder / "one", kb.run(str(folder / "double.py"), **on_machine(timeline=True, out=folder / "one"))


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Give a function that does what `kernbench` does, in this process and a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object) -> Told:
        code = main(tuple(map(str, args)), PLUGINS)
        return code, *capfd.readouterr()

    return run


def rows(path: str) -> list[list[str]]:
    """Return the lines of a trace in words, sorted."""
    return sorted(line.split("\t") for line in Path(path).read_text().splitlines())


def test_a_trace_of_a_saved_run_has_its_spans(call: Call, saved: tuple[Path, kb.RunResult]) -> None:
    """As the run itself would have written it; how many, and how large the file is, is told."""
    folder, result = saved
    assert result.timeline is not None
    spans = result.timeline.spans
    code, out, err = call("trace", folder, "-o", "t.tsv")
    assert (code, err) == (0, "")
    assert re.fullmatch(rf"t\.tsv: [\d.]+ (KiB|B), {len(spans)} spans\n", out)
    assert sorted(float(row[2]) for row in rows("t.tsv")) == sorted(spans.start_ns.tolist())
    assert call("run", folder.parent / "double.py", "--topology", machine_file(), "--trace", "run.tsv", "-q")[0] == 0
    assert rows("run.tsv") == rows("t.tsv")


def machine_file() -> Path:
    """Write the machine into the current folder."""
    Path("m.yaml").write_text(YAML)
    return Path("m.yaml")


def test_level_and_window_cut_a_trace(call: Call, saved: tuple[Path, kb.RunResult]) -> None:
    """What lies in the window even in part, of units and what is coarser: none of wires."""
    folder, result = saved
    half = result.total_ns / 2
    assert call("trace", folder, "-o", "all.tsv")[0] == 0
    assert call("trace", folder, "-o", "cut.tsv", "--level", "unit", "--window", f"0 ns..{half:.0f} ns")[0] == 0
    kept = [row for row in rows("all.tsv") if "->" not in row[0] and "#" not in row[0] and float(row[2]) < round(half)]
    assert rows("cut.tsv") == kept
    assert 0 < len(kept) < len(rows("all.tsv"))


def test_what_a_run_did_not_note_is_told_beside_its_trace(call: Call, saved: tuple[Path, kb.RunResult]) -> None:
    """Once for times and once for levels; a window that lies beside what is known is refused, and writes nothing."""
    folder, result = saved
    assert result.timeline is not None
    part = Path("part")
    shutil.copytree(folder, part)
    save(result.timeline.window(10.0, 20.0).level("unit"), part / "timeline.npz")
    times = (
        "The timeline of this run is known from 10 ns to 20 ns only, and so is the trace; run again without --window "
        "for the rest.\n"
    )
    depth = (
        "The timeline of this run goes down to level unit only, not wire, and so does the trace; run again with "
        "--level wire for the rest.\n"
    )
    for args, told in (
        ((), times + depth),
        (("--level", "unit", "--window", "0 ns..15 ns"), times),
        (("--level", "unit", "--window", "10 ns..20 ns"), ""),
    ):
        code, _, err = call("trace", part, "-o", "t.tsv", *args)
        assert (code, err) == (0, told)
    assert call("trace", part, "-o", "u.tsv", "--window", "20 ns..30 ns") == (
        2,
        "",
        "error: a window must lie in what is known of the run, which is from 10 ns to 20 ns, and not be empty, not "
        "20 ns..30 ns; give another one.\n",
    )
    assert not Path("u.tsv").exists()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["FOLDER"], "trace must be given -o FILE or --open; add one of them."),
        (["none", "-o", "t.tsv"], "RUN must be a folder that `run --out` wrote, not 'none'."),
        (["FOLDER", "-o", "t.txt"],
         "trace file must be of a format that takes a timeline, not 't.txt'; use run --trace."),
        (["FOLDER", "-o", "t.csv"], "trace file must end in .json or .json.gz, .pftrace or .pftrace.gz, "
         ".tsv or .tsv.gz, .txt or .txt.gz, not 't.csv'."),
    ],
)  # fmt: skip
def test_a_trace_that_cannot_be_is_a_sentence(
    call: Call, saved: tuple[Path, kb.RunResult], args: list[str], sentence: str
) -> None:
    """And no file."""
    told = call("trace", *(str(saved[0]) if each == "FOLDER" else each for each in args))
    assert told == (2, "", f"error: {sentence}\n")
    assert [*Path().iterdir()] == []


def test_a_report_has_runs_side_by_side(call: Call, saved: tuple[Path, kb.RunResult]) -> None:
    """One, or several; each under the name that it was given by."""
    folder, _ = saved
    assert call("report", folder, "-o", "r.html") == (0, "r.html: 1 run\n", "")
    assert f"<h1>{folder}</h1>" in Path("r.html").read_text()
    assert call("report", folder, folder, "-o", "r.html") == (0, "r.html: 2 runs side by side\n", "")
    assert call("report", folder, "-o", "r.pdf")[::2] == (
        2, "error: report 'r.pdf' must end in .html; give such a name.\n",
    )  # fmt: skip
    code, _, err = call("report", "none", "-o", "s.html")
    assert code == 2 and "'none'" in err
    assert [path.name for path in Path().iterdir()] == ["r.html"]


def test_the_server_of_a_folder_tells_where_it_is(
    call: Call, saved: tuple[Path, kb.RunResult], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It serves until Ctrl-C, which is its good end; and says so where no browser comes up."""
    seen: list[str] = []

    class Waiting:
        def wait(self) -> None:
            told = capfd.readouterr().err
            found = re.search(r"http://\S+", told)
            assert found is not None
            seen.append(told.replace(found[0], "HERE"))
            with urllib.request.urlopen(f"{found[0]}run?at=one", timeout=30) as answer:
                seen.append(answer.read().decode())
            raise KeyboardInterrupt

    monkeypatch.setattr("kernbench_builtin.pages.served.threading", SimpleNamespace(Event=Waiting))
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    folder = saved[0].parent
    assert call("web", folder, "--open") == (0, "", "")
    assert seen[0] == (
        f"1 run is in {folder}, shown at HERE until Ctrl-C.\nno browser was found; open the address in one.\n"
    )
    assert "<title>one – kernbench</title>" in seen[1]


def test_a_signal_to_end_is_no_good_end_of_the_server(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is passed on, to be told from Ctrl-C by the exit code."""

    class Waiting:
        def wait(self) -> None:
            raise Terminated

    monkeypatch.setattr("kernbench_builtin.pages.served.threading", SimpleNamespace(Event=Waiting))
    code, out, err = call("web", tmp_path)
    assert (code, out) == (143, "")
    assert err.startswith(f"no runs are in {tmp_path}, shown at http://127.0.0.1:")


def test_a_bench_file_runs_on_a_machine_file(call: Call, saved: tuple[Path, kb.RunResult]) -> None:
    """From the command line to the verdict; the same run as the one from Python, bit for bit."""
    folder, result = saved
    code, out, err = call("run", folder.parent / "double.py", "--topology", machine_file(), "--verify-data")
    assert (code, err) == (0, "")
    assert out.startswith("double on m.yaml   n=2")
    assert "\ndata verified: 1 tensor, largest error 0" in out
    code, out, err = call("run", folder.parent / "double.py", "--topology", machine_file(), "--json")
    assert code == 0 and json.loads(out)["op_log_sha256"] == result.op_log_sha256
