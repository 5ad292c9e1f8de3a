"""tools/golden.py runs every bench and some collectives, and says of each run what moved."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from kernbench_ccl.measure.data_check import DataVerdict
from kernbench_core.plugins import Plugins
from tests.conftest import loaded_tool


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    with loaded_tool("golden") as module:
        yield module


@pytest.fixture
def files(golden: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with copies of the files, which the tool reads and writes from now on."""
    for file in golden.FOLDER.glob("*.json"):
        (tmp_path / file.name).write_text(file.read_text())
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    return tmp_path


def edit(path: Path, name: str, **values: object) -> None:
    held = json.loads(path.read_text())
    held[name] = values.get("events") or {**held[name], **values}
    path.write_text(json.dumps(held))


def test_every_registered_bench_and_six_collectives_run_on_both_machines(golden: ModuleType, plugins: Plugins) -> None:
    runs = golden.goldens()
    for topology in ("tiny", "default"):
        of_this = [run.what for run in runs if run.topology == topology]
        benches = set(plugins.benches)
        assert benches <= set(of_this)
        assert len(set(of_this) - benches) == 6


def test_the_files_hold_every_run_and_nothing_else(golden: ModuleType) -> None:
    names = [run.name for run in golden.goldens()]
    for file in ("runs.json", "events.json"):
        assert list(json.loads((golden.FOLDER / file).read_text())) == names


def test_what_is_as_it_was(golden: ModuleType, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert golden.main(["--only", "tiny/vector-add", "--only", "tiny/reduce.*"]) == 0
    assert capsys.readouterr().out == "2 golden runs are as they were\n"


def test_what_moved_is_told_and_written_down(
    golden: ModuleType, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    was = golden.read()["tiny/vector-add"]
    before = {file.name: file.read_text() for file in files.iterdir()}
    edit(files / "runs.json", "tiny/vector-add", total_ns=was.total_ns / 2, op_log_sha256="0" * 64)
    edit(files / "events.json", "tiny/vector-add", events=7)
    assert golden.main(["--only", "tiny/vector-add"]) == 1
    titles, row, hint = capsys.readouterr().out.splitlines()
    assert titles.split("  ")[0] == "golden run" and hint == golden.UPDATE
    assert " ".join(row.split()) == (
        f"tiny/vector-add {was.total_ns / 2!r} -> {was.total_ns!r} (+100 %) "
        f"00000000 -> {was.op_log_sha256[:8]} 7 -> {was.events}"
    )
    assert golden.main(["--update", "--only", "tiny/vector-add"]) == 0
    assert {file.name: file.read_text() for file in files.iterdir()} == before


@pytest.mark.parametrize(
    ("changed", "row"),
    [
        ({"total_ns": 10.5}, ("x", "10.0 -> 10.5 (+5 %)", "", "")),
        ({"op_log_sha256": "b" * 64}, ("x", "", "aaaaaaaa -> bbbbbbbb", "")),
        ({"events": 4}, ("x", "", "", "3 -> 4")),
    ],
)
def test_each_thing_that_moves_is_seen_alone(
    golden: ModuleType, changed: dict[str, object], row: tuple[str, ...]
) -> None:
    was = {"total_ns": 10.0, "op_log_sha256": "a" * 64, "events": 3}
    old = {"x": golden.Found(**was)}
    assert golden.moved(old, {"x": golden.Found(**{**was, **changed})}, whole=True) == [row]
    assert golden.moved(old, {"x": golden.Found(**was)}, whole=True) == []


def test_a_run_that_is_new_or_gone_is_seen(golden: ModuleType) -> None:
    new = {"y": golden.Found(2.0, "c" * 64, 5)}
    old = {"x": golden.Found(1.0, "d" * 64, 4)}
    came, left = ("y", "new: 2.0", "new: cccccccc", "new: 5"), ("x", "no run any more", "", "")
    assert golden.moved(old, new, whole=True) == [came, left]
    assert golden.moved(old, new, whole=False) == [came]


def test_wrong_data_fails_and_is_never_written_down(
    golden: ModuleType, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (files / "runs.json").read_text()
    monkeypatch.setattr(golden, "carry_out", lambda run: golden.Found(1.0, "e" * 64, 2, "all of it"))
    assert golden.main(["--update", "--only", "tiny/gemm"]) == 1
    assert "tiny/gemm: the data is wrong: all of it\n" in capsys.readouterr().out
    assert (files / "runs.json").read_text() == before


def test_a_bench_that_checks_nothing_is_no_golden_run(golden: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernbench_core.host.runtime.Runtime.check", lambda *given, **named: None)
    assert golden.carry_out(golden.Golden("vector-add", "tiny", {"n": 64})).wrong == "it checks no data"


def test_wrong_data_of_a_collective_is_seen(golden: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kernbench_ccl.measure.timed_run.TimedRun.check", lambda ran, engine: DataVerdict(3, ("rank 0 is off",))
    )
    assert golden.carry_out(golden.chosen(["tiny/reduce.*"])[0]).wrong == "3 elements\nrank 0 is off"


def test_a_name_that_fits_no_run_is_refused(golden: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        golden.main(["--only", "gem"])
    assert exit_info.value.code == 2
    assert (
        "no run fits 'gem'; name one as 'tiny/gemm', by a pattern, or by one of attention, " in capsys.readouterr().err
    )
