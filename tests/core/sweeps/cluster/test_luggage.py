"""The files that travel with a sweep, and where they lie on the other machine."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.plugins import load_plugins
from kernbench_core.sweeps import SweepPlan
from kernbench_core.sweeps.axes import Axis
from kernbench_core.sweeps.executors.cluster import luggage
from kernbench_core.sweeps.executors.cluster.luggage import Luggage, pack, unpack, unpacked, untravelled

NONE = load_plugins(installed=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a bench, a module of its own, and a machine with its base, started in a folder beside them."""
    project = tmp_path / "project"
    (project / "machines").mkdir(parents=True)
    (project / "start").mkdir()
    (project / "mine.py").write_text("import side\nimport json\ndef bench(rt): ...\n")
    (project / "side.py").write_text("import deeper\n")
    (project / "deeper.py").write_text("")
    (project / "other.py").write_text("")
    (project / "cost.py").write_text("import deeper\n")
    (project / "machines" / "a.yaml").write_text("base: b.yaml\n")
    (project / "machines" / "b.yaml").write_text("cube: {pes: 2}\n")
    (project / "more.yaml").write_text("cube: {pes: 4}\n")
    (project / "start" / "x.npy").write_bytes(b"array")
    monkeypatch.chdir(project / "start")
    monkeypatch.delenv("KERNBENCH_PLUGIN", raising=False)
    return project


def _names(found: Luggage, project: Path) -> set[str]:
    return {Path(path).relative_to(project).as_posix() for path in found.files}


def _plan(**given: Any) -> SweepPlan:
    return SweepPlan(**{"bench": "../mine.py:layer", "topology": "../machines/a.yaml", **given})


def test_what_the_plan_names_travels_with_what_that_needs(here: Path) -> None:
    found = pack(_plan(components="../more.yaml", figures="../cost.py", params={"x": "x.npy", "n": 4}), NONE)
    assert _names(found, here) == {
        "mine.py", "side.py", "deeper.py", "cost.py", "machines/a.yaml", "machines/b.yaml", "more.yaml", "start/x.npy",
    }  # fmt: skip
    assert found.files[str(here / "start" / "x.npy")] == b"array"
    assert found.start == str(here / "start")


def test_every_machine_of_an_axis_travels(here: Path) -> None:
    axis = Axis("topology", "topology", ("../more.yaml", "../machines/b.yaml"))
    assert _names(pack(_plan(bench="gemm", axes=[axis]), NONE), here) == {"more.yaml", "machines/b.yaml"}


def test_every_file_of_a_parameter_travels(here: Path) -> None:
    axis = Axis("x", "param", ("x.npy", "y.npy"))
    assert _names(pack(_plan(bench="gemm", topology="../more.yaml", axes=[axis]), NONE), here) == {
        "more.yaml",
        "start/x.npy",
    }


def test_a_script_in_triton_and_plug_ins_that_are_files_travel(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_PLUGIN", f"../side.py{os.pathsep}{here / 'other.py'}")
    monkeypatch.setenv("KERNBENCH_NO_PLUGIN", "ccl")
    found = pack(_plan(bench="triton:../cost.py", topology="../more.yaml"), NONE)
    assert _names(found, here) == {"cost.py", "deeper.py", "side.py", "other.py", "more.yaml"}
    assert found.environment == {
        "KERNBENCH_PLUGIN": f"../side.py{os.pathsep}{here / 'other.py'}",
        "KERNBENCH_NO_PLUGIN": "ccl",
        "KERNBENCH_STRICT_PLUGINS": "",
    }


def test_two_sweeps_have_two_names(here: Path) -> None:
    assert pack(_plan(), NONE).sweep != pack(_plan(), NONE).sweep


def test_more_than_can_travel_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(luggage, "MOST_BYTES", 1 << 20)
    (here / "start" / "x.npy").write_bytes(bytes(1 << 20))
    with pytest.raises(UsageError) as caught:
        pack(_plan(params={"x": "x.npy"}), NONE)
    assert str(caught.value) == (
        "the files that a sweep sends to its workers must have at most 1 MiB together, and with the 1.0 MiB of "
        f"{str(here / 'start' / 'x.npy')!r} they have more; let the bench open it in a folder that all machines share."
    )


def test_files_lie_there_as_they_lie_here(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_PLUGIN", f"../side.py{os.pathsep}{here / 'other.py'}")
    packed = pack(_plan(params={"x": "x.npy"}), NONE).packed()
    there = tmp_path / "there"
    start, environment = unpack(packed, there)
    for path in ("../mine.py", "../machines/a.yaml", "x.npy"):
        digests = [hashlib.sha256((folder / path).read_bytes()).digest() for folder in (start, here / "start")]
        assert digests[0] == digests[1]
    assert start == there / str(here / "start")[1:]
    assert environment["KERNBENCH_PLUGIN"] == f"../side.py{os.pathsep}{there}{here / 'other.py'}"


def test_an_absolute_path_leads_to_the_file_that_travelled_and_back(here: Path, tmp_path: Path) -> None:
    bench = f"{here / 'mine.py'}:layer"
    there = tmp_path / "there"
    unpack(pack(_plan(bench=bench), NONE).packed(), there)
    params = {"x": "/no/such.npy", "n": 4}
    job = {
        "run": {"bench": bench, "topology": "default", "params": params},
        "more": [bench, 1.5],
    }
    moved = unpacked(job, there)
    assert moved == {
        "run": {"bench": f"{there}{bench}", "topology": "default", "params": params},
        "more": [f"{there}{bench}", 1.5],
    }
    assert unpacked(f"triton:{here / 'mine.py'}", there) == f"triton:{there}{here / 'mine.py'}"
    assert untravelled(moved, there) == job
    assert untravelled({"sentence": f"{there}{here}/mine.py:3: no"}, there) == {"sentence": f"{here}/mine.py:3: no"}
