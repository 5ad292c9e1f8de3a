"""`kernbench report` of a sweep: its page, the pages of its points, and commands that a shell runs as they stand."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.sweeps import read_sweep
from kernbench_builtin.sweeps.pages.commands import plan_at, run_command
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins
from tests.builtin.report.sweep.packed_columns import read

#: A bench whose name and parameters are what shells take apart.
BENCH = '''
def work(rt, text: str = "", n: int = 8, late: bool = False):
    """Add n numbers, and report a text; more than 16 of them fail."""
    if n > 16:
        raise ValueError("there are too many")
    x = rt.tensor(__import__("numpy").ones(n, "f4"), name="x")
    rt.launch(lambda x, tl: tl.store(x + tl.arange(0, n), tl.load(x + tl.arange(0, n))), x, grid=(1,))
    rt.report(text=text)
'''
TEXTS = ["plain", "it's $HOME", 'say "hi"; `ls` *', "-x=1, #2"]
FILE = "my bench's/a $b.py"


@pytest.fixture(scope="module")
def swept(plugins: Plugins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a bench, and the sweep of it in `my s`."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / FILE).parent.mkdir()
    (folder / FILE).write_text(BENCH)
    texts = ",".join(json.dumps(text) for text in TEXTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        asked = ["-p", f"text={texts}", "-p", "n=8,32", "--topology", "tiny", "--seed", "3", "--objective", "time,ops"]
        assert main(["sweep", f"{FILE}:work", *asked, "-j", "1", "-o", "my s"], plugins) == 1  # n=32 fails
    return folder


def column(page: Path, name: str) -> list[str]:
    """Return a column of texts of a page."""
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return read(json.loads(found[1])[name])


def reported(plugins: Plugins, folder: Path, *words: str, exits: int = 0) -> None:
    """Call `kernbench report` in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["report", *words], plugins) == exits


def test_a_sweep_has_its_page_in_its_folder(plugins: Plugins, swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Or where -o says; a sweep that goes on is in nobody's way of it."""
    reported(plugins, swept, "my s")
    assert capsys.readouterr().out == "my s/report.html: 8 points\n"
    page = swept / "my s" / "report.html"
    assert column(page, "status") == ["ok", "error"] * 4
    assert column(page, "error")[1].startswith("bench ") and "there are too many" in column(page, "error")[1]
    reported(plugins, swept, "my s/", "-o", "elsewhere.html")
    assert capsys.readouterr().out == "elsewhere.html: 8 points\n"
    head = html.unescape(page.read_text())
    assert "the best" not in head.partition("</dl>")[0] and "least time" in head and "least ops" in head


@pytest.mark.parametrize("number", range(0, 8, 2))
def test_the_command_of_a_point_runs_it_again(
    plugins: Plugins, swept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """Whatever is in the name of the bench and in its parameters: the op log is the one that was recorded."""
    monkeypatch.chdir(swept)
    sweep = read_sweep("my s")
    program, *words = shlex.split(run_command(sweep.plan, sweep.records[number]["values"]))
    assert program == "kernbench" and main([*words, "--json"], plugins) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["op_log_sha256"] == sweep.records[number]["op_log_sha256"]
    assert (told["rows"], told["manifest"]["seed"]) == ([{"text": TEXTS[number // 2]}], 3)


def test_a_shell_runs_the_commands_of_the_page(
    plugins: Plugins, swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pasted as they stand, of a point that runs, of one that fails, and that which makes a page."""
    reported(plugins, swept, "my s")
    page = swept / "my s" / "report.html"
    program = tmp_path / "kernbench"
    program.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.chdir(swept)

    def shell(text: str) -> tuple[int, str]:
        """Carry out what a shell hands to the program; return exit code and stdout."""
        words = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout.split("\0")
        capsys.readouterr()
        return main(words[:-1], plugins), capsys.readouterr().out

    again, show = column(page, "again"), column(page, "show")
    code, out = shell(f"{again[4]} --json")
    assert (code, json.loads(out)["op_log_sha256"]) == (0, column(page, "op_log")[4])
    assert shell(again[5])[0] == 6
    key = column(page, "key")[4][:12]
    assert shell(show[4]) == (0, f"my s/runs/{key}/report.html: point 4\nmy s/report.html: 8 points\n")


def test_a_point_has_a_page_when_it_is_asked_for(
    plugins: Plugins, swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the begin of its key; the sweep's page leads there from then on, wherever it is, and the run is kept."""
    key = read_sweep(swept / "my s").records[2]["key"]
    reported(plugins, swept, "my s", "--point", key[:6], "-o", "other/sweep.html")
    kept = f"runs/{key[:12]}/report.html"
    assert capsys.readouterr().out == f"my s/{kept}: point 2\nother/sweep.html: 8 points\n"
    links = column(swept / "other" / "sweep.html", "link")
    assert links[2] == f"../my%20s/{kept}" and links[3] == ""
    assert (swept / "my s" / kept).read_text().startswith("<!doctype html>")
    reported(plugins, swept, f"my s/runs/{key[:12]}", "-o", "alone.html")
    assert capsys.readouterr().out == "alone.html: 1 run\n"


def test_all_that_none_is_better_than_have_pages(
    plugins: Plugins, swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--point front`: here the four that ran, which are equal."""
    reported(plugins, swept, "my s", "--point", "front")
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == [*(f"point {i}" for i in (0, 2, 4, 6)), "8 points"]


def test_a_point_that_failed_fails_again(plugins: Plugins, swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its sentence and its exit code; no page is written."""
    key = read_sweep(swept / "my s").records[1]["key"]
    reported(plugins, swept, "my s", "--point", key, "-o", "never.html", exits=6)
    assert "there are too many" in capsys.readouterr().err
    assert not (swept / "never.html").exists() and not (swept / "my s" / "runs" / key[:12]).exists()


def test_a_point_is_run_from_where_the_sweep_was_begun(
    plugins: Plugins, swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Elsewhere its files are not found, and the sentence says where they are looked for."""
    key = read_sweep(swept / "my s").records[0]["key"]
    reported(plugins, tmp_path, str(swept / "my s"), "--point", key, exits=2)
    assert capsys.readouterr().err == (
        f"error: bench file {FILE!r} does not exist; give a registered bench or the path of a .py file.\n"
        "Files that a sweep names are looked for from the folder in which it was begun.\n"
    )


def test_a_run_that_is_another_one_now_is_told(
    plugins: Plugins, swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where the bench was changed since: its page would show what the sweep has not."""
    for name in ("sweep.json", *(f"points/{file.name}" for file in (swept / "my s" / "points").iterdir())):
        target = tmp_path / "s" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((swept / "my s" / name).read_text())
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(BENCH.replace('"f4"', '"f2"'))
    key = read_sweep(tmp_path / "s").records[0]["key"]
    reported(plugins, tmp_path, "s", "--point", key)
    assert " ".join(capsys.readouterr().err.split()) == (
        "warning: point 0 must run as it was recorded, and its op log is another one now: what it is made of was "
        "changed since. A new sweep has new points."
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["my s", "--point", "ab"], "--point must begin a point's key, with at least 4 digits, as the page and the "
         "table show it, not 'ab'."),
        (["my s", "--point", "0000000000"], "--point must begin a point's key, with at least 4 digits, as the page "
         "and the table show it, not '0000000000'."),
        (["my s", "my s"], "-o must name the output file when 2 folders are given."),
        (["my s", "x", "-o", "x.html"], "a sweep must have a page of its own; give 'my s' without the other folders."),
        (["my s/points", "--point", "abcd"], "--point must be given with the folder of a sweep."),
        (["my s", "-o", "x.txt"], "report 'x.txt' must end in .html; give such a name."),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_a_sentence(
    plugins: Plugins, swept: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str], sentence: str
) -> None:
    """With exit code 2."""
    reported(plugins, swept, *words, exits=2)
    assert " ".join(capsys.readouterr().err.split()) == f"error: {sentence}"


def test_a_run_alone_has_its_page_in_its_folder_too(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no -o says otherwise."""
    folder: Any = tmp_path / "run"
    assert main(["run", "vector-add", "--topology", "tiny", "-p", "n=64", "--out", str(folder), "-q"], plugins) == 0
    capsys.readouterr()
    assert main(["report", str(folder)], plugins) == 0
    assert capsys.readouterr().out == f"{folder}/report.html: 1 run\n"
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


SCRIPT = '''
import sys
import numpy as np
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


if __name__ == "__main__":
    n, block = int(sys.argv[1]), int(sys.argv[2].partition("=")[2])
    double[(-(-n // block),)](np.ones(n, "f4"), np.zeros(n, "f4"), n, BLOCK=block)
'''
GEMM = ["-p", "M=64", "-p", "N=64", "-p", "K=64"]
ASKED = {
    "screened": ["gemm", *GEMM, "-p", "tile_m=32,64", "--fidelity", "auto:1", "--objective", "max:gflops"],
    "script": ["triton:s.py", "-p", "n=100,200", "-p", "block=64", "--", "{n}", "--block={block}"],
    "kernel": ["s.py:double", "-p", "x=zeros:f32:4,32", "-p", "y=empty:f32:4,32", "-p", "n=128", "-p", "BLOCK=32,64",
               "--grid", "cdiv(n, BLOCK)", "--timeout", "100 s", "--max-sim-time", "0.5 ms"],
    "machines": ["gemm", *GEMM, "--topology", "tiny,my m.yaml", "--set", "sip.ucie.bandwidth=64 GB/s", "--no-data"],
}  # fmt: skip


@pytest.mark.parametrize("kind", ASKED)
def test_a_point_of_any_kind_is_run_again(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """By its command, and for its page: a screened one as it was then, a script with its arguments, a kernel alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path / "cache"))
    Path("s.py").write_text(SCRIPT)
    Path("my m.yaml").write_text("base: tiny\n")
    topology = [] if kind == "machines" else ["--topology", "tiny"]
    bench, *rest = ASKED[kind]
    assert main(["sweep", bench, *topology, "-j", "1", "-o", "s", *rest], plugins) == 0
    sweep = read_sweep("s")
    assert {record.get("fidelity", "full") for record in sweep.records} >= {"full"}
    again = []
    for record in sweep.records:
        capsys.readouterr()
        words = shlex.split(run_command(plan_at(sweep.plan, record), record["values"]))
        words.insert(words.index("--") if "--" in words else len(words), "--json")
        assert main(words[1:], plugins) == 0
        told = json.loads(capsys.readouterr().out)
        again.append(told.get("result", told)["op_log_sha256"])
        reported(plugins, tmp_path, "s", "--point", record["key"])
        assert "warning" not in capsys.readouterr().err
        kept = json.loads((tmp_path / "s" / "runs" / record["key"][:12] / "result.json").read_text())
        assert kept["op_log_sha256"] == record["op_log_sha256"]
    assert again == [record["op_log_sha256"] for record in sweep.records]
    assert all(column(Path("s/report.html"), "link"))
