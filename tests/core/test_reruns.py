"""A run made again from its manifest gives the same log, or says what differs."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np

from kernbench_core.reruns import rerun
from kernbench_core.runs import run


def test_a_rerun_gives_the_same_hash(toy: ModuleType, tmp_path: Path) -> None:
    """A manifest is enough to run again, file, array and configuration included."""
    path = tmp_path / "mine.py"
    path.write_text("import numpy as np\ndef bench(rt, a: np.ndarray):\n    rt.logged.append(float(a.sum()))\n")
    first = run(path, "one", {"a": np.ones(3)}, set=["system.sips=2"], out=tmp_path / "out", plugins=toy.plugins)
    path.unlink()
    again = rerun(tmp_path / "out" / "manifest.json", plugins=toy.plugins)
    assert again.same
    assert again.differences == ()
    assert again.result.op_log.records == [3.0]
    assert again.result.op_log_sha256 == first.op_log_sha256
    assert toy.engines[-1].graph.data == {"system": {"sips": 2}}


def test_a_rerun_says_what_differs(toy: ModuleType, tmp_path: Path) -> None:
    """Another op log is not the same; the reasons are sentences."""
    run("toy", "one", out=tmp_path / "out", plugins=toy.plugins)
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    was = manifest["op_log_sha256"]
    manifest["params"]["n"] = 4
    manifest["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(manifest))
    again = rerun(path, plugins=toy.plugins)
    assert not again.same
    assert again.differences[0].startswith("numpy was 1.0 and is ")
    assert again.differences[1:] == (
        f"op_log_sha256 was {was} and is {again.result.op_log_sha256}.",
        "the first op that differs is number 0: params was {'value': '3'} and is {'value': '4'}, "
        "in log (op 1 of PE 0, sip0.cube0.pe0.pe_math, 0.000 ns).",
    )


def test_a_rerun_says_how_far_two_logs_are_alike(toy: ModuleType, tmp_path: Path) -> None:
    """A log that is longer than the saved one differs in its length."""
    path = tmp_path / "mine.py"
    path.write_text("def bench(rt, n: int = 1):\n    rt.logged.extend([0] * n)\n")
    run(path, "one", {"n": 2}, out=tmp_path / "out", plugins=toy.plugins)
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"n": 2', '"n": 3'))
    assert rerun(manifest, plugins=toy.plugins).differences[-1] == "the log had 2 ops and has 3, the first 2 alike."
