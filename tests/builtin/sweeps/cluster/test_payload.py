"""What is sent with a sweep, where it lies on the other machine, and what has to be installed there."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.sweeps import SweepPlan
from kernbench_builtin.sweeps.axes import Axis
from kernbench_builtin.sweeps.executors.cluster.payload import (
    difference,
    digest_of,
    installed,
    pack,
    sent_from,
    sent_to,
    unpack,
)
from kernbench_core.package import __version__
from kernbench_core.plugins import load_plugins

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


def _sent(plan: SweepPlan) -> dict[str, bytes]:
    """Return what is sent, by path."""
    with zipfile.ZipFile(io.BytesIO(pack(plan, NONE))) as archive:
        return {f"/{name}": archive.read(name) for name in archive.namelist()}


def _names(plan: SweepPlan, project: Path) -> set[str]:
    paths = _sent(plan).keys() - {"/sweep.json"}
    return {Path(path).relative_to(project).as_posix() for path in paths}


def _unpacked(plan: SweepPlan, folder: Path) -> dict[str, Any]:
    archive = folder.with_suffix(".zip")
    archive.write_bytes(pack(plan, NONE))
    return unpack(archive, folder)


def _plan(**given: Any) -> SweepPlan:
    return SweepPlan(**{"bench": "../mine.py:layer", "topology": "../machines/a.yaml", **given})


def test_what_the_plan_names_travels_with_what_that_needs(here: Path) -> None:
    plan = _plan(components="../more.yaml", figures="../cost.py", params={"x": "x.npy", "n": 4})
    assert _names(plan, here) == {
        "mine.py", "side.py", "deeper.py", "cost.py", "machines/a.yaml", "machines/b.yaml", "more.yaml", "start/x.npy",
    }  # fmt: skip
    assert _sent(plan)[str(here / "start" / "x.npy")] == b"array"


def test_every_machine_of_an_axis_travels(here: Path) -> None:
    axis = Axis("topology", "topology", ("../more.yaml", "../machines/b.yaml"))
    assert _names(_plan(bench="gemm", axes=[axis]), here) == {"more.yaml", "machines/b.yaml"}


def test_every_file_of_a_parameter_travels(here: Path) -> None:
    axis = Axis("x", "param", ("x.npy", "y.npy"))
    assert _names(_plan(bench="gemm", topology="../more.yaml", axes=[axis]), here) == {
        "more.yaml",
        "start/x.npy",
    }


def test_a_script_in_triton_and_plug_ins_that_are_files_travel(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_PLUGIN", f"../side.py{os.pathsep}{here / 'other.py'}")
    monkeypatch.setenv("KERNBENCH_NO_PLUGIN", "ccl")
    plan = _plan(bench="triton:../cost.py", topology="../more.yaml")
    assert _names(plan, here) == {"cost.py", "deeper.py", "side.py", "other.py", "more.yaml"}
    assert json.loads(_sent(plan)["/sweep.json"])["environment"] == {
        "KERNBENCH_PLUGIN": f"../side.py{os.pathsep}{here / 'other.py'}",
        "KERNBENCH_NO_PLUGIN": "ccl",
        "KERNBENCH_STRICT_PLUGINS": "",
    }


def test_files_lie_there_as_they_lie_here(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_PLUGIN", f"../side.py{os.pathsep}{here / 'other.py'}")
    there = tmp_path / "there"
    told = _unpacked(_plan(params={"x": "x.npy"}), there)
    assert told["start"] == f"{there}{here / 'start'}"
    for path in ("../mine.py", "../machines/a.yaml", "x.npy"):
        assert Path(told["start"], path).read_bytes() == (here / "start" / path).read_bytes()
    assert told["environment"]["KERNBENCH_PLUGIN"] == f"../side.py{os.pathsep}{there}{here / 'other.py'}"


def test_an_absolute_path_leads_to_the_file_that_travelled_and_back(here: Path, tmp_path: Path) -> None:
    bench = f"{here / 'mine.py'}:layer"
    there = tmp_path / "there"
    _unpacked(_plan(bench=bench), there)
    params = {"x": "/no/such.npy", "n": 4}
    job = {
        "run": {"bench": bench, "topology": "default", "params": params},
        "more": [bench, 1.5],
    }
    moved = sent_to(there, job)
    assert moved == {
        "run": {"bench": f"{there}{bench}", "topology": "default", "params": params},
        "more": [f"{there}{bench}", 1.5],
    }
    assert sent_to(there, f"triton:{here / 'mine.py'}") == f"triton:{there}{here / 'mine.py'}"
    assert sent_from(there, moved) == job
    assert sent_from(there, {"sentence": f"{there}{here}/mine.py:3: no"}) == {"sentence": f"{here}/mine.py:3: no"}


HERE = {"kernbench": "1.0 with files 0", "plug-in 'acme'": "of acme-models 1.2 with files 1"}


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        ({**HERE}, None),
        (
            {**HERE, "kernbench": "0.9 with files 9"},
            "must have kernbench 1.0 with files 0, as is here, not 0.9 with files 9",
        ),
        (
            {"kernbench": HERE["kernbench"]},
            "must have plug-in 'acme' of acme-models 1.2 with files 1, as is here, not left out",
        ),
        (
            {**HERE, "plug-in 'more'": "of more-models 3 with files 3"},
            "must have plug-in 'more' left out, as is here, not of more-models 3 with files 3",
        ),
    ],
)
def test_what_differs_is_named(there: dict[str, str], sentence: str | None) -> None:
    more = "; install the same there, and start the worker again."
    assert difference(there, HERE) == (None if sentence is None else f"{sentence}{more}")


def test_a_plug_in_counts_with_all_of_its_package_and_one_that_is_a_file_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "payload_models"
    (package / "__pycache__").mkdir(parents=True)
    (package / "plugin.py").write_text("kernbench_api = 1\n")
    (tmp_path / "single_file_plugin.py").write_text("kernbench_api = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["acme = payload_models.plugin", str(tmp_path / "single_file_plugin.py")], installed=False)

    def told() -> dict[str, str]:
        digest_of.cache_clear()
        return installed(plugins)

    before = told()
    assert before.keys() == {"kernbench", "plug-in 'acme'"}
    assert before["kernbench"].startswith(f"{__version__} with files ")
    assert before["plug-in 'acme'"].startswith("of payload_models (source tree) with files ")
    (package / "__pycache__" / "plugin.pyc").write_text("another")
    (tmp_path / "single_file_plugin.py").write_text("kernbench_api = 1  # changed\n")
    assert told() == before
    (package / "table.csv").write_text("1,2\n")
    assert told()["kernbench"] == before["kernbench"]
    assert told()["plug-in 'acme'"] != before["plug-in 'acme'"]
