"""The whole command on the real machine: streams, exit codes, files, interrupts, the same bytes every time.

Where the process itself matters, it is one of its own; all else is asked of the command in this one.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
import kernbench_core.runs.bench_run
from kernbench_core.plugins import Plugins
from tests.commands import REPO, Run, kernbench
from tests.core.forked import Forked, command

SMALL = ("gemm", "--topology", "tiny", "-p", "M=64", "-p", "N=48", "-p", "K=32", "-p", "tile_k=16")
KERNEL = '''
def kernel(x, how, tl):
    a = tl.load(x, shape=(4,), dtype="f32")
    print("kernel saw", float(a[0]), flush=True)
    if how == "raise":
        raise ValueError("my own fault")
    while how == "forever":
        tl.load(x, shape=(4,), dtype="f32")
    while how == "stuck":
        pass
def bench(rt, how: str = ""):
    """Misbehave on demand."""
    x = rt.zeros((64,))
    rt.launch(kernel, x, how)
'''


def as_json(run: Run, *args: str, **more: str) -> Any:
    done = run("run", *args, "--json", **more)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_gemm_is_timed_and_right(inside: Run) -> None:
    """One object: phases sum to the total, data verified, something busy, something not modelled."""
    found = as_json(inside, *SMALL, "--verify-data")
    assert found["schema"] == "kernbench.run/1"
    assert found["verified"] is True
    assert 0 <= found["max_abs_error"] < 0.1
    assert sum(found["phases"].values()) == found["total_ns"] > 0
    assert found["params"]["M"] == 64
    assert found["busiest"][0]["utilisation"] <= 1
    assert found["not_modelled"]
    assert len(found["op_log_sha256"]) == 64


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """Run it in a process with another hash seed; return the digest of its op log, and its compressed trace."""
    trace = tmp_path_factory.mktemp("elsewhere") / "t.json.gz"
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    found = as_json(kernbench, *SMALL, "--verify-data", "--trace", str(trace), PYTHONHASHSEED=seed)
    return found["op_log_sha256"], trace.read_bytes()


def test_the_op_log_depends_on_nothing_but_the_inputs(
    tmp_path: Path, inside: Run, elsewhere: tuple[str, bytes]
) -> None:
    """Hash seed, tracing and verification change no bit of the log."""
    hashes = {
        elsewhere[0],
        as_json(inside, *SMALL)["op_log_sha256"],
        as_json(inside, *SMALL, "--verify-data")["op_log_sha256"],
        as_json(inside, *SMALL, "--trace", str(tmp_path / "t.json"))["op_log_sha256"],
    }
    assert len(hashes) == 1


def test_traces_of_equal_runs_are_equal_bytes(tmp_path: Path, inside: Run, elsewhere: tuple[str, bytes]) -> None:
    """A compressed trace is the same file every time, in another process too, and Chrome JSON."""
    as_json(inside, *SMALL, "--verify-data", "--trace", str(tmp_path / "t.json.gz"))
    first = elsewhere[1]
    assert first == (tmp_path / "t.json.gz").read_bytes()
    events = json.loads(gzip.decompress(first))["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C", "s", "f"}


def test_out_can_be_run_again(tmp_path: Path, inside: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest with its .npy inputs gives the same op log, after the inputs themselves are gone."""
    rng = np.random.default_rng(1)
    for name, shape in (("a", (64, 32)), ("b", (32, 48))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float16))
    out = tmp_path / "out"
    files = ("-p", f"a={tmp_path / 'a.npy'}", "-p", f"b={tmp_path / 'b.npy'}")
    found = as_json(inside, *SMALL, *files, "--out", str(out), "--verify-data")
    assert found["verified"] is True
    (tmp_path / "a.npy").unlink()
    monkeypatch.chdir(tmp_path)
    done = inside("rerun", str(out / "manifest.json"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"same op log: {found['op_log_sha256']} ({found['ops']} ops)\n"
    path = out / "manifest.json"
    path.write_text(path.read_text().replace('"tile_k": 16', '"tile_k": 32'))
    done = inside("rerun", str(path))
    assert done.returncode == 1
    assert done.stdout.startswith(f"the op log differs:\n  op_log_sha256 was {found['op_log_sha256']} and is ")
    assert "\n  the first op that differs is number 0: " in done.stdout


def test_no_data_takes_the_same_time(inside: Run) -> None:
    """Shapes alone give the same timing and the same number of events."""
    full, shapes = as_json(inside, *SMALL), as_json(inside, *SMALL, "--no-data")
    assert (shapes["total_ns"], shapes["phases"], shapes["events"]) == (
        full["total_ns"], full["phases"], full["events"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("how", "options", "code", "sentences"),
    [
        ("raise", (), 6, ("ValueError: my own fault", 'raise ValueError("my own fault")', "on sip0.cube0.pe0 at ")),
        (
            "forever",
            ("--max-events", "3000"),
            5,
            ("error: the run reached its limit of 3000 events at simulated time ",),
        ),
        ("forever", ("--max-sim-time", "20 us"), 5, ("error: the run reached its limit of 20 us of simulated time",)),
        ("stuck", ("--timeout", "0.5 s"), 5, ("error: the run reached its limit of 0.5 s of wall time", "mine.py:")),
    ],
)
def test_a_kernel_that_misbehaves_is_named(
    tmp_path: Path, inside: Run, how: str, options: tuple[str, ...], code: int, sentences: tuple[str, ...]
) -> None:
    """One error, the right exit code, nothing of ours in the traceback, only the kernel's own prints on stdout."""
    file = tmp_path / "mine.py"
    file.write_text(KERNEL)
    done = inside("run", str(file), "--topology", "tiny", "-p", f"how={how}", "--out", str(tmp_path / "o"), *options)
    assert done.returncode == code
    assert [sentence for sentence in sentences if sentence not in done.stderr] == []
    assert set(done.stdout.splitlines()) == {"kernel saw 0.0"}
    assert "kernbench_core" not in done.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("run", "gem"), 2,
         "error: bench must be a registered name or the path of a .py file, not 'gem'. Did you mean 'gemv'?\n"),
        (("run", "gemm", "--topology", "tinny"), 2,
         "error: topology must be a preset or a file, not 'tinny'. Did you mean 'tiny'?\n"),
        (("run", "gemm", "--set", "cube.pez=4"), 3,
         "--set cube.pez=4: cube.pez must be a known key. Did you mean 'pes'?\n"),
        (("topology", "validate", "tiny", "--set", "components.pe_gemm.impl=builtin.pe_gem"), 3,
         "--set components.pe_gemm.impl=builtin.pe_gem: components.pe_gemm.impl must be a registered component, "
         "not 'builtin.pe_gem'. Did you mean 'builtin.pe_gemm'?\n"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(
    inside: Run, args: tuple[str, ...], code: int, sentence: str
) -> None:
    """Names and keys that do not exist."""
    done = inside(*args)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", sentence)


@pytest.mark.parametrize(("how", "line"), [("forever", None), ("stuck", "([4-9]|10)")])
def test_ctrl_c_prints_a_partial_summary(tmp_path: Path, plugins: Plugins, how: str, line: str | None) -> None:
    """SIGINT in the middle of a run: what there is, exit code 130, nothing written."""
    file = tmp_path / "mine.py"
    file.write_text(KERNEL)
    asked = ("run", str(file), "--topology", "tiny", "-p", f"how={how}", "--out", str(tmp_path / "o"))
    process = Forked(command(*asked, plugins=plugins), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "kernel saw 0.0\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "\ninterrupted: everything here covers only what ran; --out is not written\n" in out
    assert "interrupted at" in out
    if line is not None:  # where the simulator is interrupted, none is told
        assert re.fullmatch(rf"note: the run was interrupted in {re.escape(str(file))}:{line}\.\n", err)
    assert not (tmp_path / "o").exists()


def test_ctrl_c_in_a_rerun_prints_a_partial_summary(tmp_path: Path, inside: Run, plugins: Plugins) -> None:
    """SIGINT in the middle of a run that is made again: as for the first one."""
    file = tmp_path / "mine.py"
    file.write_text(KERNEL)
    out = tmp_path / "o"
    assert inside("run", str(file), "--topology", "tiny", "-q", "--out", str(out)).returncode == 0
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"how": ""', '"how": "forever"'))
    rerun = command("rerun", str(manifest), plugins=plugins)
    process = Forked(rerun, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "kernel saw 0.0\n"
    process.send_signal(signal.SIGINT)
    told, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err == "" or err.startswith(f"note: the run was interrupted in {out / 'bench' / 'mine.py'}:")
    assert "interrupted: everything here covers only what ran\n" in told


@pytest.mark.parametrize("view", ["system", "sip", "cube", "pe"])
def test_topology_can_be_looked_at(inside: Run, view: str) -> None:
    """Every view of a preset prints something."""
    done = inside("topology", "show", "tiny", "--view", view)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 3


def test_topology_counts_in_json(inside: Run) -> None:
    """The counts of a preset as one object."""
    found = json.loads(inside("topology", "validate", "tiny", "--json").stdout)
    assert (found["schema"], found["valid"], found["pes"]) == ("kernbench.topology/1", True, 4)
    assert sum(found["kinds"].values()) == found["nodes"]


def test_components_describe_themselves(inside: Run) -> None:
    """NAME prints parameters with unit, default and sentence; --json holds the same."""
    lines = [" ".join(line.split()) for line in inside("components", "builtin.pe_gemm").stdout.splitlines()]
    assert "clock frequency (GHz) 1 GHz Clock of the array." in lines
    found = json.loads(inside("components", "builtin.pe_gemm", "--json").stdout)["component"]
    assert found["params"][0] == {
        "name": "clock", "type": "frequency", "unit": "GHz", "default": "1 GHz", "required": False, "choices": [],
        "sentence": "Clock of the array.",
    }  # fmt: skip


def test_three_lines_of_python(plugins: Plugins, capfd: pytest.CaptureFixture[str]) -> None:
    """What the command line does, a notebook does, also when the module that holds `run` is imported already."""
    assert "kernbench_core.runs.bench_run" in sys.modules
    r = kb.run("vector-add", topology="tiny", params={"n": 4096}, verify_data=True, plugins=plugins)
    assert (r.verified, r.total_ns > 0, len(r.op_log) == len(r.ops)) == (True, True, True)
    assert repr(r).startswith("<RunResult vector-add on ti")
    assert capfd.readouterr() == ("", "")


def test_names_cannot_act_on_a_terminal(
    tmp_path: Path, inside: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file, a tensor, a column, a parameter and a key: they are shown; in JSON they are escaped."""
    source = (
        'import numpy as np\ndef kernel(x, y, tl):\n    tl.store(y, tl.load(x) + 1.0)\ndef bench(rt):\n'
        '    """A \x1b[31mred one."""\n    x = rt.tensor(np.ones(4, np.float32), name="x\\x1b[2J")\n'
        '    y = rt.zeros((4,), name="y\\x1b]0;t\\x07")\n    rt.launch(kernel, x, y)\n    rt.check(y, np.ones(4))\n'
        '    rt.report(**{"c\\x1b[5m": "v\\x9b31m"})\n'
    )
    (tmp_path / "b\x1b[31m.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text('base: tiny\n"\\e[31mkey": 1\n')
    run = inside("run", "b\x1b[31m.py", "--topology", "tiny", "--verify-data")
    assert run.returncode == 1
    assert "b\\x1b[31m on tiny" in run.stdout
    assert "tensor 'y\\x1b]0;t\\x07', checked at" in run.stdout
    assert "c\\x1b[5m" in run.stdout
    assert "v\\x9b31m" in run.stdout
    key = inside("run", "gemm", "--topology", "c.yaml")
    assert key.stderr.startswith("c.yaml:2:1: \\x1b[31mkey must be a known key.")
    param = inside("run", "gemm", "-p", "\x1b[1mx=1")
    assert param.stderr.startswith("error: bench 'gemm' has no parameter '\\x1b[1mx'; its parameters are: M, N,")
    found = inside("run", "b\x1b[31m.py", "--topology", "tiny", "--json")
    assert json.loads(found.stdout)["rows"] == [{"c\x1b[5m": "v\x9b31m"}]
    for done in (run, key, param, found):
        assert "\x1b" not in done.stdout + done.stderr


def test_another_model_keeps_its_parameters_and_tells_what_it_lacks(tmp_path: Path, inside: Run) -> None:
    """On stderr, once, and in the result; the manifest holds what was used, so that it runs again without a word."""
    swap = ("--set", "components.pe_gemm.impl=builtin.pe_gemm_systolic", "--set", "components.pe_gemm.params.rows=32")
    done = inside("run", *SMALL, *swap, "--json", "--out", str(tmp_path / "out"))
    assert done.returncode == 0
    (warning,) = done.stderr.splitlines()
    found = json.loads(done.stdout)
    assert found["warnings"] == [warning.removeprefix("warning: ")]
    base = REPO / "kernbench_builtin" / "topologies" / "base.yaml"
    assert warning.startswith(
        f"warning: components.pe_gemm: builtin.pe_gemm_systolic has no parameter 'rates' that {base}:"
    )
    held = found["manifest"]["configuration"]["components"]["pe_gemm"]
    assert held["impl"] == "builtin.pe_gemm_systolic"
    assert held["params"]["rows"] == 32
    assert "clock" in held["params"]
    assert "rates" not in held["params"]
    again = inside("rerun", str(tmp_path / "out" / "manifest.json"))
    assert (again.returncode, again.stderr) == (0, "")
