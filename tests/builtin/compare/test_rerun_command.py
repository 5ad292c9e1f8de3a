"""`kernbench rerun`: the same op log, or what differs, in words and in JSON; what there is at Ctrl-C."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.core.cli.command_line import call


def test_rerun_says_same_or_what_differs(toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 for the same op log, 1 for another, in words and in JSON."""
    out = tmp_path / "o"
    call(toy, "run", "toy", "--topology", "one", "--out", str(out), "-q")
    capsys.readouterr()
    path = out / "manifest.json"
    same = json.loads(path.read_text())["op_log_sha256"]
    assert call(toy, "rerun", str(path)) == 0
    assert capsys.readouterr().out == f"the kernel says hello\nsame op log: {same} (4,096 ops)\n"
    path.write_text(path.read_text().replace('"n": 3', '"n": 4'))
    assert call(toy, "rerun", str(path), "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["same"]) == ("kernbench.rerun/1", False)
    assert found["differences"][:1] == [f"op_log_sha256 was {same} and is {found['result']['op_log_sha256']}."]


def test_a_rerun_with_wrong_data_is_exit_one(
    toy: ModuleType, samples: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same op log with data that is wrong now: the verdict is printed, and the code says so."""
    out = tmp_path / "o"
    assert call(toy, "run", "toy", "--topology", "one", "--verify-data", "--out", str(out), "-q") == 0
    toy.verdict = samples.WRONG
    capsys.readouterr()
    path = out / "manifest.json"
    assert call(toy, "rerun", str(path)) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[1].startswith("same op log: ")
    assert told[2] == "DATA IS WRONG: 1 of 2 tensors, largest error 3"
    failures = "\n".join(samples.WRONG.failures).splitlines()
    assert told[3:] == [f"  {line}" for line in failures] != []
    assert call(toy, "rerun", str(path), "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["result"]["verified"]) == (True, False)


def test_an_interrupted_rerun_prints_what_there_is(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C gives the partial summary of a run and 130, in JSON too, where `same` is not known."""
    out = tmp_path / "o"
    call(toy, "run", "toy", "--topology", "one", "--out", str(out), "-q")
    path = out / "manifest.json"
    path.write_text(path.read_text().replace('"fail": ""', '"fail": "interrupt"'))
    capsys.readouterr()
    assert call(toy, "rerun", str(path)) == 130
    out_text, err = capsys.readouterr()
    assert "interrupted: everything here covers only what ran" in out_text
    assert re.fullmatch(r"note: the run was interrupted in \S+/toy_parts/__init__\.py:\d+\.\n", err)
    assert call(toy, "rerun", str(path), "--json") == 130
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["same"], found["result"]["interrupted"]) == ("kernbench.rerun/1", None, True)


def test_a_limit_covers_what_never_ends(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it does a run; the manifest keeps its own limit."""
    monkeypatch.chdir(tmp_path)
    call(toy, "run", "toy", "--topology", "one", "--out", "o", "-q")
    capsys.readouterr()
    monkeypatch.setattr("kernbench_core.topology.compilation.compile_topology", lambda *_, **__: time.sleep(1000))
    assert call(toy, "rerun", "o/manifest.json", "--timeout", "20 ms") == 5
    told = capsys.readouterr().err
    assert told.startswith("error: the run reached its limit of 0.02 s of wall time while building the machine, in ")
