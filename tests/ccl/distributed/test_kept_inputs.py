"""The folder of a run takes along the ccl.yaml that a bench names, and the algorithm's file that this names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernbench_builtin.compare.reruns import rerun
from kernbench_ccl.cli.scaffold import write_algorithm
from kernbench_core.plugins import load_plugins, own_plugins
from kernbench_core.runs.bench_run import run

BENCH = """
import os
import kernbench_ccl.distributed as dist
def rank(rank, rt):
    dist.init_process_group(config="ccl.yaml")
    dist.all_reduce(rt.zeros((64,), dtype="f32"))
def bench(rt):
    dist.spawn(rank)
"""
CCL = "algorithms:\n  mine:\n    algorithm: sub/mine.py\ncollectives:\n  all_reduce: mine\n"


def test_a_configuration_and_its_algorithm_are_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is the same where neither is any more."""
    plugins = load_plugins(own_plugins(), installed=False)
    folder = tmp_path / "one"
    (folder / "sub").mkdir(parents=True)
    write_algorithm("mine", folder=folder / "sub")
    (folder / "ccl.yaml").write_text(CCL)
    (folder / "b.py").write_text(BENCH)
    monkeypatch.chdir(folder)
    options = {"set": ["system.sips=2"], "out": "../kept", "plugins": plugins}
    first = run("b.py", "tiny", **options)  # type: ignore[arg-type]
    assert list(first.manifest["bench"]["inputs"]) == ["ccl.yaml", "sub/mine.py"]
    os.renames(folder, tmp_path / "gone")
    monkeypatch.chdir(tmp_path)
    again = rerun("kept/manifest.json", plugins=plugins)
    assert (again.same, again.differences) == (True, ())
