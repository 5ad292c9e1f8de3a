"""`kernbench sweep` and `kb.sweep` on real machines: the table is that of plain loops, however it is made."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import signal
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.sweeps import SweepPlan
from kernbench_builtin.sweeps.axes import PARAM, TOPOLOGY, axis_of
from kernbench_builtin.sweeps.drive import digests_of
from kernbench_core.cli import main
from kernbench_core.errors import ConfigError, KernbenchWarning, UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.spread import NOT_KNOWN
from tests.commands import Run
from tests.core.forked import Forked, command

BENCH = '''
import os
import time
def kernel(x, n, tl):
    at = x + tl.arange(0, n)
    tl.store(at, tl.load(at) * 2)
def bench(rt, how: str = "ok", n: int = 8, s: float = 0.0):
    """Do what it is told."""
    time.sleep(s)
    if how == "exit":
        os._exit(3)
    if how == "raise":
        raise ValueError("it is told to")
    while how == "forever":
        time.sleep(1)
    x = rt.zeros((64,), "f32")
    rt.launch(kernel, x, n)
'''
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
    print("said")
    y = np.zeros(n, "f4")
    double[(triton.cdiv(n, block),)](np.ones(n, "f4"), y, n, BLOCK=block)
    assert n != 999, "not this one"
'''
SMALL = ("--topology", "tiny", "-p", "M=64", "-p", "N=48", "-p", "tile_k=16")


@pytest.fixture(scope="module")
def swept(
    tmp_path_factory: pytest.TempPathFactory, plugins: Plugins
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Give the folder of a grid of four points, and what the command printed of it."""
    folder = tmp_path_factory.mktemp("swept") / "s"
    asked = (
        "sweep", "gemm", *SMALL, "-p", "K=32", "--set", "cube.pes=1,2", "--set",
        "system.network.bandwidth=100..200GB/s:log:2", "--objective", "time,cost = pes * time_ns", "-j", "2",
        "-o", str(folder),
    )  # fmt: skip
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(asked, plugins)
    return folder, subprocess.CompletedProcess(asked, code, out.getvalue(), err.getvalue())


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "table.jsonl").read_text().splitlines()]


def test_the_table_is_that_of_plain_loops(
    swept: tuple[Path, subprocess.CompletedProcess[str]], plugins: Plugins
) -> None:
    """Of `kb.run` in this process, in the order of the axes; no wall time is in it."""
    folder, done = swept
    assert (done.returncode, done.stderr) == (0, "")
    found = rows_in(folder)
    expected = []
    for pes, link in product((1, 2), ("100 GB/s", "200 GB/s")):
        result = kb.run(
            "gemm", "tiny", {"M": 64, "N": 48, "K": 32, "tile_k": 16}, plugins=plugins,
            set={"cube.pes": pes, "system.network.bandwidth": link},
        )  # fmt: skip
        expected.append((pes, link, "ok", result.total_ns, pes * result.total_ns, result.op_log_sha256))
    names = ("cube.pes", "system.network.bandwidth", "status", "time_ns", "cost", "op_log_sha256")
    assert [tuple(row[name] for name in names) for row in found] == expected
    assert [row["index"] for row in found] == list(range(4))
    assert not [name for row in found for name in row if "wall" in name]
    lines = list(csv.DictReader(io.StringIO((folder / "table.csv").read_text())))
    assert [{name: str(row[name]) for name in names} for row in found] == [
        {name: line[name] for name in names} for line in lines
    ]


def test_rows_stand_in_a_pipe_in_the_order_of_the_points(
    swept: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """One text, whichever process was first; a time has its unit, and the best point its number."""
    folder, done = swept
    rows = rows_in(folder)
    head, *lines, total, best, spread, unmoved, more = done.stdout.splitlines()
    assert head.split() == ["#", "pes", "bandwidth", "status", "time", "cost"]
    assert [line.split()[:5] for line in lines] == [
        [str(row["index"]), str(row["cube.pes"]), *row["system.network.bandwidth"].split(), "ok"]
        for row in rows
    ]
    assert total == f"4 points: 4 ok; kept in {folder}"
    least = min(range(4), key=lambda at: (rows[at]["time"], rows[at]["cost"]))
    assert unmoved == "bandwidth changed no time"  # of a network that one device does not use
    assert best.startswith(("best: #", "the Pareto front: #")) and f"#{least}" in best
    assert (spread, more) == (NOT_KNOWN, f"more: kernbench report {folder}")


@pytest.mark.parametrize(
    ("torch", "sentence"),
    [
        (None, "--backend torch:cuda needs PyTorch, which is not installed; pip install 'kernbench[torch]'."),
        (
            SimpleNamespace(__version__="2.9.0", cuda=SimpleNamespace(device_count=lambda: 0)),
            "--backend torch:cuda needs a GPU that PyTorch 2.9.0 sees, and it sees none; give --backend torch:cpu, or "
            "leave it out.",
        ),
    ],
)
@pytest.mark.parametrize("search", [(), ("--search", "random:2", "--objective", "time")])
def test_a_backend_that_is_not_here_fails_the_sweep_once(
    inside: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, torch: object, sentence: str,
    search: tuple[str, ...],
) -> None:  # fmt: skip
    """Before the first point, and before anything is printed or written."""
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    folder = tmp_path / "s"
    asked = ("sweep", "gemm", *SMALL, "-p", "K=16,32", *search, "--verify-data", "--backend", "torch:cuda", "-o")
    done = inside(*asked, str(folder))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {sentence}\n")
    assert not folder.exists()


def test_a_sweep_that_is_there_is_shown_and_not_run_again(
    swept: tuple[Path, subprocess.CompletedProcess[str]], inside: Run
) -> None:
    """By its folder alone; with --resume, and by the same command, nothing is left to be run either."""
    folder, done = swept
    before = {path: path.stat().st_mtime_ns for path in (folder / "points").iterdir()}
    assert len(before) == 4
    for more in ((), ("--resume",)):
        shown = inside("sweep", str(folder), *more)
        assert (shown.returncode, shown.stdout) == (0, done.stdout)
    as_json = json.loads(inside("sweep", str(folder), "--json").stdout)
    assert as_json["points"] == rows_in(folder) and as_json["counts"] == {"ok": 4}
    assert {path: path.stat().st_mtime_ns for path in (folder / "points").iterdir()} == before
    refused = inside("sweep", str(folder), "--set", "cube.pes=1")
    assert (refused.returncode, refused.stderr) == (
        2,
        f"error: the folder of a sweep, {str(folder)!r}, must be given without other points, as it has a plan "
        "already; use another folder for another sweep.\n",
    )


def test_a_point_that_fails_is_recorded_and_the_others_go_on(tmp_path: Path, plugins: Plugins) -> None:
    """Each with its sentence; with retry_failed those are run again, and no other."""
    bench = tmp_path / "told.py"
    bench.write_text(BENCH)
    told: list[str] = []
    asked: dict[str, Any] = {"params": {"how": ["ok", "raise", "exit", "forever"]}, "timeout_s": 0.4}

    def sweep(**more: Any) -> Any:
        told.clear()
        return kb.sweep(
            bench, "tiny", **asked, plugins=plugins, processes=2, out=tmp_path / "s",
            on_record=lambda record: told.append(record["values"]["how"]), **more,
        )  # fmt: skip

    done = sweep()
    assert [row["status"] for row in done.rows] == ["ok", "error", "error", "timeout"]
    assert sorted(told) == ["exit", "forever", "ok", "raise"]
    assert done.rows[1]["error"] == "bench 'told' raised ValueError: it is told to at simulated time 0 ns."
    assert done.records[1]["error"]["sentence"].endswith('in bench\n    raise ValueError("it is told to")')
    assert done.rows[3]["error"].startswith("the run reached its limit of 0.4 s of wall time")
    assert repr(done) == f"<SweepResult {bench}: 4 points, 1 ok, 2 error, 1 timeout>"
    assert [row["how"] for row in done.best] == ["ok"]
    sweep()
    assert told == []
    sweep(retry_failed=True)
    assert sorted(told) == ["exit", "forever", "raise"]


def test_all_that_is_wrong_with_a_plan_is_told_before_anything_runs(inside: Run, tmp_path: Path) -> None:
    """Keys, values, units, parameters, machines, expressions: each in a sentence, those of a configuration as there."""
    done = inside(
        "sweep", "gemm", "--topology", "tiny,none", "--set", "cube.pes=1,0,two", "--set", "cube.pess=1,2",
        "--set", "system.network.bandwidth=100..800GB:log:2", "-p", "M=64,x", "-p", "Z=1", "--where", "Q < 3",
        "--objective", "tim", "-o", str(tmp_path / "s"),
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "--where 'Q < 3', column 1: 'Q' must be a parameter or a key of the configuration, and there is none of this "
        "name.",
        "--objective 'tim': 'tim' must be a figure, a parameter, or a function of --figures FILE.py, and there is none "
        "of this name. Did you mean 'time'?",
        "topology must be a preset or a file, not 'none'. Known: a100_node, default, full, mesh, tiny, tpu7x_slice, "
        "u280_hbm.",
        "bench 'gemm' has no parameter 'Z'; its parameters are: M, N, K, tile_m, tile_n, tile_k, dtype, a, b.",
        "--set cube.pes=0: cube.pes must be a positive integer, not 0.",
        "--set cube.pes=two: cube.pes must be a positive integer, not 'two'.",
        "--set cube.pess=1: cube.pess must be a known key. Did you mean 'pes'?",
        "--set cube.pess=2: cube.pess must be a known key. Did you mean 'pes'?",
        "--set system.network.bandwidth=100 GB: system.network.bandwidth must be a positive bandwidth, not '100 GB'. "
        "Did you mean '100 GB/s'?",
        "--set system.network.bandwidth=800 GB: system.network.bandwidth must be a positive bandwidth, not '800 GB'. "
        "Did you mean '800 GB/s'?",
        "parameter 'M' of bench 'gemm' must be an integer, not 'x'.",
    ]
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("gemmm",), "bench must be a registered name or the path of a .py file, not 'gemmm'. Did you mean 'gemm'?"),
        (("gemm", "--where", "1 > 2"), "a sweep must have a point, and --where leaves out all 1; give other values, or "
         "drop one."),
        (("gemm", "--set", "cube.pes=1,2", "--where", "1 / (pes - 2) < 0"),
         "--where '1 / (pes - 2) < 0', column 1: 1 / 0 is not a finite number. This happens at cube.pes=2."),
        (("gemm", "--resume"), "--resume, --retry-failed and --retry-changed must be given with the "
         "folder of a sweep, as -o DIR or in place of BENCH; drop them to begin one."),
        (("gemm", "--sample", "some"), "--sample must be grid, random:N or lhs:N with N from 1 to 1,000,000, not "
         "'some'."),
        (("plan.yaml",), "plan 'plan.yaml' must be a readable file: No such file or directory."),
        (("gemm", "-j", "0"), "option -j must be an integer of at least 1, not '0'."),
    ],
)  # fmt: skip
def test_what_is_no_sweep_is_a_sentence(args: tuple[str, ...], told: str, inside: Run) -> None:
    """And nothing runs."""
    done = inside("sweep", *args, "--topology", "tiny")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {told}\n")


@pytest.mark.parametrize(
    ("bench", "grid", "told"),
    [
        ("gemm", "4", "--grid must be given with a kernel, and 'gemm' is a bench; drop it."),
        ("made.py:kernel", "cdiv(N, n)", "--grid cdiv(N, n) must be made of parameters of kernel 'made:kernel', which "
         "are x, n, not of 'N'; correct the name."),
    ],
)  # fmt: skip
def test_an_option_that_no_point_can_have_is_told_once(
    tmp_path: Path, bench: str, grid: str, told: str, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything runs, and not by each point."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.py").write_text(BENCH)
    params = {"M": [64, 128]} if bench == "gemm" else {"x": "zeros:f32:64", "n": [4, 8]}
    with pytest.raises(ConfigError) as caught:
        kb.sweep(bench, "tiny", params, grid=grid, out=tmp_path / "s", plugins=plugins)
    assert caught.value.problems == (told,)
    assert not (tmp_path / "s").exists()


def test_what_is_wrong_of_a_combination_is_the_error_of_its_points(tmp_path: Path, inside: Run) -> None:
    """Values that are right beside others are not refused; the exit code tells of the points."""
    done = inside(
        "sweep", "gemm", *SMALL, "-p", "K=32", "--set", "cube.pes=1,2", "--set", "cube.hbm.capacity=8GiB,12KiB",
        "--json",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert found["counts"] == {"ok": 2, "error": 2}
    assert [row["status"] for row in found["points"]] == ["ok", "error", "ok", "error"]
    assert found["points"][3]["error"] == (
        "--set cube.hbm.capacity=12KiB: cube.hbm.capacity must split into 2 slices of whole pages of 4 KiB, not 12 KiB."
    )


def test_an_interrupted_sweep_keeps_what_it_has_and_goes_on(
    tmp_path: Path, inside: Run, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends with 130 and says how to go on; afterwards the tables are those of a sweep that was left alone."""
    (tmp_path / "told.py").write_text(BENCH)
    asked = ("told.py", "--topology", "tiny", "-p", "n=1..8:lin:8", "-p", "s=0.2", "-j", "1")
    program = command("sweep", *asked, "-o", "s", plugins=plugins)
    process = Forked(program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(3):  # the head, and two rows
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    over = len(list((tmp_path / "s" / "points").glob("*.json")))
    assert process.returncode == 130 and 2 <= over < 8
    assert told == (
        f"\nerror: interrupted after {over} of 8 points, which are kept; go on with 'kernbench sweep s --resume'.\n"
    )
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "points").iterdir()}
    monkeypatch.chdir(tmp_path)
    last = inside("sweep", "s").stdout.splitlines()[-2]
    assert last == f"{over} points: {over} ok; kept in s; {8 - over} left, which --resume goes on with"
    assert inside("sweep", "s", "--resume").returncode == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert inside("sweep", *asked, "-o", "t").returncode == 0
    for name in ("table.csv", "table.jsonl"):
        assert (tmp_path / "s" / name).read_bytes() == (tmp_path / "t" / name).read_bytes()


def test_python_is_told_what_is_no_sweep(plugins: Plugins) -> None:
    """Functions, options that no point has, values that are wrong: each before anything runs."""
    for error, told, given in (
        (UsageError, "bench must be a registered name, the path of a .py file, or a function, not 3.", {"bench": 3}),
        (UsageError, "bench must be a registered name or the path of a .py file where out or a scheduler is given, not "
         "the function <built-in function print>: others", {"bench": print, "out": "x"}),
        (UsageError, "kb.sweep: 'trace' must be an option that every point may have. Did you mean ", {"trace": "x"}),
        (ConfigError, "set a must be a range that rises, not '3..1'.\nparam b must have a value, not [].", {
            "set": {"a": "3..1"}, "params": {"b": []}}),
        (UsageError, "topology of a sweep must be presets or files, not a mapping; write it to a file.", {
            "topology": {"base": "tiny"}}),
        (UsageError, "set of a sweep must be a mapping of names to values, not ['cube.pes=1'].", {
            "set": ["cube.pes=1"]}),
        (UsageError, "params of a sweep must be a mapping of names to values, not [1].", {"params": [1]}),
        (UsageError, "processes must be an integer of at least 1, not 0.", {"processes": 0}),
    ):  # fmt: skip
        with pytest.raises(error) as caught:
            kb.sweep(**{"bench": "gemm", "topology": "tiny", "plugins": plugins, **given})
        assert str(caught.value).startswith(told)


def test_a_script_written_in_triton_is_swept_by_its_arguments(tmp_path: Path, plugins: Plugins) -> None:
    """Each time is that of `kb.triton`; what a script prints goes nowhere, and what it raises is its point's error."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = kb.sweep(
        f"triton:{path}", "tiny", {"n": [100, 999], "block": [64, 128]}, set={"cube.pes": 2}, plugins=plugins,
        arguments=["{n}", "--block={block}"],
    )  # fmt: skip
    assert [row["status"] for row in done.rows] == ["ok", "ok", "error", "error"]
    assert {row["error"] for row in done.rows[2:]} == {
        f"script {str(path)!r} must end with exit code 0, not 1: AssertionError: not this one"
    }
    for row in done.rows[:2]:
        with kb.triton("tiny", set=["cube.pes=2"], plugins=plugins) as held:
            names: dict[str, Any] = {"__name__": "held"}
            exec(SCRIPT, names)
            x, y = np.ones(100, "f4"), np.zeros(100, "f4")
            names["double"][(-(-100 // row["block"]),)](x, y, 100, BLOCK=row["block"])
        assert held.result is not None and row["time_ns"] == held.result.total_ns


def test_a_kernel_alone_is_swept_over_its_grid(tmp_path: Path, plugins: Plugins) -> None:
    """Arrays with commas in their shape are one value; the grid is a formula of what is varied."""
    path = tmp_path / "kernels.py"
    path.write_text(SCRIPT)
    params = {"x": "zeros:f32:4,32", "y": "empty:f32:4,32", "n": 128}
    done = kb.sweep(
        f"{path}:double", "tiny", {**params, "BLOCK": [32, 64]}, grid="cdiv(n, BLOCK)", plugins=plugins, cached=False
    )
    assert done.counts == {"ok": 2}
    for row in done.rows:
        alone = kb.run(
            f"{path}:double", "tiny", {**params, "BLOCK": row["BLOCK"]}, grid=128 // row["BLOCK"], plugins=plugins
        )
        assert (row["time_ns"], row["op_log_sha256"]) == (alone.total_ns, alone.op_log_sha256)


def test_what_is_wrong_with_a_script_is_told(inside: Run, tmp_path: Path) -> None:
    """Its file, the names in its arguments, options that scripts have not; arguments of a bench."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    asked = ("--topology", "tiny", "-p", "m=3", "--verify-data", "--", "{n}")
    done = inside("sweep", f"triton:{path}", *asked)
    assert (done.returncode, done.stderr.splitlines()) == (3, [
        "argument {n} of the script must name what -p or --set gives. Known: m.",
        "parameter 'm' of a script must stand in its arguments, as '-- --m {m}'; add it.",
        "--verify-data must be left out for a script written in Triton, which has no such option.",
    ])  # fmt: skip
    done = inside("sweep", "gemm", "--topology", "tiny", "--", "x")
    assert done.stderr == (
        "error: arguments must be given to a Triton script, triton:FILE.py, not to bench 'gemm'; give its parameters "
        "with -p.\n"
    )


def test_a_function_of_a_notebook_is_swept(plugins: Plugins) -> None:
    """With what it closes over; it is the bench even where one of its name is registered."""
    factor = 3

    def gemm(rt: Any, n: int = 1, shift: int = 0) -> None:
        """Report something."""
        rt.zeros((n,), "f32")
        rt.report(value=n * factor + shift)

    done = kb.sweep(gemm, "tiny", {"n": [1, 2, 5]}, objectives="rows.value", where="n + shift > 1", plugins=plugins)
    assert [row["rows.value"] for row in done.rows] == [6, 15]
    assert repr(done) == "<SweepResult gemm: 2 points, 2 ok>"


def test_what_runs_warn_of_is_told_once(plugins: Plugins) -> None:
    """Though each point has its warning; the command tells a few of them."""

    def odd(rt: Any, n: int = 1) -> None:
        """Warn of the same at every point, and of its own."""
        rt.zeros((n,), "f32")
        warnings.warn("it is odd", KernbenchWarning, stacklevel=1)
        warnings.warn(f"it is {n}", KernbenchWarning, stacklevel=1)

    with pytest.warns(KernbenchWarning) as caught:
        done = kb.sweep(odd, "tiny", {"n": [1, 2]}, plugins=plugins, cached=False, processes=1)
    assert [str(each.message) for each in caught] == ["it is odd", "it is 1", "it is 2"]
    assert [record["warnings"] for record in done.records] == [["it is odd", "it is 1"], ["it is odd", "it is 2"]]


def test_a_sweep_goes_on_with_the_files_that_it_began_with(tmp_path: Path, plugins: Plugins) -> None:
    """Bench, machine, what that is based on, arrays, functions, with own modules; packages are known by names.

    A file without a dot in its name, and one that stands behind the name of an option, are files, too.
    """
    plan = SweepPlan(
        bench=str(tmp_path / "own.py:other"), figures=str(tmp_path / "area.py"),
        params={"a": str(tmp_path / "x.npy"), "long": "9" * 300}, arguments=(f"--of={tmp_path}/weights", "--of="),
        axes=(axis_of("topology", TOPOLOGY, ["tiny", str(tmp_path / "mine.yaml")]),
              axis_of("b", PARAM, [str(tmp_path / "y.npy"), "none", "not.there", 3, str(tmp_path / "ring.py")])),
    )  # fmt: skip
    for name in ("x.npy", "y.npy", "z.npy", "unused.py", "weights"):
        (tmp_path / name).write_text(name)
    (tmp_path / "sub").mkdir()
    texts = {"own.py": "import near", "near.py": "from sub import deep", "sub/deep.py": "", "area.py": "import rates",
             "ring.py": "import steps", "steps.py": ""}  # fmt: skip
    for name, text in (texts | {"rates.py": "import json"}).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "mine.yaml").write_text("base: base.yaml")
    (tmp_path / "base.yaml").write_text("base: tiny")
    found = digests_of(plan, plugins)
    own = {name: digest for name, digest in found.items() if name.startswith(str(tmp_path))}
    assert own == {
        str(tmp_path / name): hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in (*texts, "rates.py", "x.npy", "y.npy", "mine.yaml", "base.yaml", "weights")
    }
    others = found.keys() - own.keys()
    assert others >= {"kernbench_core", "kernbench_builtin", "kernbench_ccl"}
    assert not any("/" in name for name in others)


def test_what_benches_print_is_no_part_of_the_output(tmp_path: Path, inside: Run) -> None:
    """When they are opened it goes to stderr, as of other commands; while points run it goes nowhere."""
    bench = tmp_path / "loud.py"
    bench.write_text("print('opened')\ndef bench(rt, n: int = 1):\n    print('running')\n    rt.zeros((n,), 'f32')\n")
    done = inside("sweep", str(bench), "--topology", "tiny", "-p", "n=1,2", "--json", "-j", "1")
    assert json.loads(done.stdout)["counts"] == {"ok": 2}
    assert (done.returncode, set(done.stderr.split())) == (0, {"opened"})


def test_a_machine_that_runs_no_bench_is_refused(inside: Run) -> None:
    """Before the points of the others run."""
    done = inside("sweep", "gemm", "--topology", "tiny,mesh")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith(
        "mesh is a mesh on its own, which has no PEs to run a bench on; drive it with 'kernbench probe --traffic', or "
        "choose another --topology.\n"
    )
