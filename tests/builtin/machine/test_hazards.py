"""Hazards on the real machine: the verdict, the object of --json, exit codes; the benches have none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.cli import main
from kernbench_core.runs.bench_run import RaceError

RACE = '''
import numpy as np


def racy(x, tl):
    tl.store(x, tl.zeros((8,), "f32"))


def bench(rt):
    """Let every PE write the same bytes."""
    x = rt.tensor(np.zeros(8, np.float32), name="x")
    rt.launch(racy, x)
    rt.check(x, np.zeros(8, np.float32))
'''


@pytest.fixture
def race(tmp_path: Path) -> Path:
    """Give a bench that races."""
    path = tmp_path / "race.py"
    path.write_text(RACE)
    return path


def test_the_verdict_names_hazards(race: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the one line of -q, with both sides under -v, and as entries of --json."""
    assert main(["run", str(race), "--topology", "tiny", "--verify-data", "-q"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("data verified: 1 tensor, largest error 0, 1 RACE")
    assert main(["run", str(race), "--topology", "tiny"]) == 0
    text = capsys.readouterr().out
    assert "  unordered writes: x[0], 32 B, 6 such pairs\n" in text
    assert text.count("    tl.store at race.py:6 on sip0.cube0.pe") == 2
    assert "-v lists them" not in text.partition("not modelled")[0]
    assert main(["run", str(race), "--topology", "tiny", "-v"]) == 0
    text = capsys.readouterr().out
    assert "unordered writes: x[0], 32 B, 6 such pairs\n" in text
    assert text.count(f"  tl.store at {race}:6 on sip0.cube0.pe") == 2
    assert main(["run", str(race), "--topology", "tiny", "--json", "--no-data"]) == 0
    (hazard,) = json.loads(capsys.readouterr().out)["hazards"]
    assert (hazard["kind"], hazard["name"], hazard["index"], hazard["count"]) == ("unordered_writes", "x", [0], 6)
    assert hazard["first"]["line"] == hazard["second"]["line"] == f"{race}:6"


def test_strict_races_exit_with_7(race: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The result is printed, the sentence goes to stderr, and no file is written."""
    out = tmp_path / "out"
    given = ["run", str(race), "--topology", "tiny", "--strict-races", "--json", "--out", str(out)]
    assert main(given) == 7
    told = capsys.readouterr()
    assert len(json.loads(told.out)["hazards"]) == 1
    first, second, *sides, orders = told.err.splitlines()[-5:]
    assert first == "error: bench 'race' must have no hazards with --strict-races, and has 1 hazard; the first is"
    assert second == "unordered writes: x[0], 32 B, 6 such pairs"
    assert all(side.startswith(f"  tl.store at {race}:6 on sip0.cube0.pe") for side in sides)
    assert len(sides) == 2
    assert orders == "  a message (tl.send, tl.recv) or a launch that the host waits for in between orders them"
    assert not (out / "result.json").exists()
    with pytest.raises(RaceError) as caught:
        kb.run(race, "tiny", strict_races=True)
    assert caught.value.exit_code == 7
    assert caught.value.result.hazards[0].kind == "unordered_writes"


PRODUCT = {"M": 64, "N": 64, "K": 128, "tile_n": 16, "tile_k": 32}


@pytest.mark.parametrize(
    ("bench", "params"),
    [
        ("gemm", {**PRODUCT, "tile_m": 16}),
        ("gemm-composite", {**PRODUCT, "tile_m": 16}),
        ("sparse-gemm", PRODUCT),
        ("softmax", {"rows": 20, "cols": 40}),
        ("vector-add", {"n": 10000}),
    ],
)
def test_the_benches_have_none(bench: str, params: dict[str, int]) -> None:
    """Programs that are right list nothing."""
    assert kb.run(bench, "tiny", params, strict_races=True).hazards == ()


def test_a_launch_in_flight_races_with_the_next_one() -> None:
    """Launches that the host does not wait for are ordered at each PE only; waiting in between orders all."""

    def turned(x: Any, by: int, tl: Any) -> None:
        pe = (tl.program_id(0) + by) % tl.num_programs(0)
        tl.store(x + 8 * pe, tl.zeros((8,), "f32"))

    def bench(rt: Any, by: int, wait: bool) -> None:
        x = rt.tensor(np.zeros(8 * rt.n_pes, np.float32), name="x")
        handle = rt.launch(turned, x, 0, wait=False)
        if wait:
            rt.wait(handle)
        rt.launch(turned, x, by)

    def count(by: int, wait: bool) -> list[int]:
        return [hazard.count for hazard in kb.run(bench, "tiny", {"by": by, "wait": wait}).hazards]

    assert count(1, wait=True) == count(0, wait=False) == []
    assert count(1, wait=False) == [4]


def test_the_map_of_a_run_changes_no_hash() -> None:
    """`tcm_map` adds its own object, the op log is the same."""
    plain, mapped = kb.run("gemm", "tiny", PRODUCT), kb.run("gemm", "tiny", PRODUCT, tcm_map=True)
    assert plain.op_log_sha256 == mapped.op_log_sha256
    assert plain.tcm_map is None
    assert "tcm_map" not in plain.to_json()
    assert mapped.tcm_map is not None
    assert len(mapped.tcm_map.uses) == 4
    assert mapped.to_json()["tcm_map"][0]["peak_bytes"] == mapped.tcm_map.uses[0].peak_bytes > 0


def test_polling_a_flag_in_memory_is_a_hazard() -> None:
    """The flag and the data that it guards: a store, a flag, a poll, a load. A message instead of the flag orders."""

    def polled(x: Any, flag: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(x, tl.full((8,), 1.0, "f32"))
            tl.store(flag, tl.full((1,), 1, "int32"))
        elif tl.program_id(0) == 1:
            while not tl.load(flag, shape=(1,)).item():
                pass
            tl.load(x, shape=(8,))

    def sent(x: Any, flag: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(x, tl.full((8,), 1.0, "f32"))
            tl.send(tl.full((1,), 1, "int32"), 1)
        elif tl.program_id(0) == 1:
            tl.recv((1,), "int32", 0)
            tl.load(x, shape=(8,))

    def bench(rt: Any, kernel: Any) -> None:
        rt.launch(kernel, rt.zeros((8,), name="x"), rt.zeros((1,), "int32", name="flag"))

    def found(kernel: Any) -> list[tuple[str, str]]:
        return sorted((h.kind, h.name) for h in kb.run(lambda rt: bench(rt, kernel), "tiny").hazards)

    assert found(polled) == [("unordered_read", "flag"), ("unordered_read", "x")]
    assert found(sent) == []


@pytest.mark.parametrize(
    ("one_launch", "race_by", "count"), [(True, "pe", 0), (True, "program", 2), (False, "program", 0)]
)
def test_programs_of_one_launch_on_one_pe(one_launch: bool, race_by: str, count: int) -> None:
    """They are in order; by program only those of different launches are, which queue at their PE."""

    def add_up(x: Any, first: int, last: int, tl: Any) -> None:
        if tl.program_id(0) in (first, last):
            tl.store(x, tl.load(x, shape=(1,)) + 1.0)

    def bench(rt: Any) -> None:
        x = rt.zeros((1,), name="x")
        first, last = 1, 1 + rt.n_pes
        for one, two in [(first, last)] if one_launch else [(first, first), (last, last)]:
            rt.launch(add_up, x, one, two, grid=(2 * rt.n_pes,), wait=False)

    result = kb.run(bench, "tiny", race_by=race_by)
    assert len(result.hazards) == count
    assert all(hazard.first.pe == hazard.second.pe == "sip0.cube0.pe1" for hazard in result.hazards)


def test_a_message_between_programs_of_one_pe_orders_them() -> None:
    """Program 0 tells PE 1, whose second program tells the second program of PE 0: in order, by program too."""

    def kernel(x: Any, told: bool, tl: Any) -> None:
        me, tile = tl.program_id(0), tl.zeros((1,), "f32")
        if me == 0:
            tl.store(x, tile)
            if told:
                tl.send(tile, 1)
        elif me == 5 and told:
            tl.send(tl.recv((1,), "f32", 0), 0)
        elif me == 4:
            if told:
                tl.recv((1,), "f32", 1)
            tl.store(x, tile)

    def bench(rt: Any, told: bool) -> None:
        rt.launch(kernel, rt.zeros((1,), name="x"), told, grid=(8,))

    assert kb.run(bench, "tiny", {"told": True}, race_by="program").hazards == ()
    (hazard,) = kb.run(bench, "tiny", {"told": False}, race_by="program").hazards
    assert hazard.kind == "unordered_writes"
    assert kb.run(bench, "tiny", {"told": False}).hazards == ()


PROGRAMS = '''
def add_up(x, tl):
    tl.store(x, tl.load(x, shape=(1,)) + 1.0)


def bench(rt):
    """Add up."""
    rt.launch(add_up, rt.zeros((1,), name="x"), grid=(2,))
'''


def test_race_by_is_an_option_and_part_of_the_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line, --strict-races, a rerun; manifests that do not say it are by PE; anything else is refused."""
    path = tmp_path / "programs.py"
    path.write_text(PROGRAMS)
    given = ["run", str(path), "--topology", "tiny", "--set", "cube.pes=1", "--race-by", "program"]
    assert main([*given, "--strict-races", "-q"]) == 7
    out = tmp_path / "out"
    capsys.readouterr()
    assert main([*given, "-q", "--out", str(out)]) == 0
    assert capsys.readouterr().out.rstrip().endswith(", 2 RACES")
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["race_by"] == "program"
    assert len(kb.rerun(out / "manifest.json").result.hazards) == 2
    del manifest["race_by"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert kb.rerun(out / "manifest.json").result.hazards == ()
    manifest["race_by"] = "warp"
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(kb.UsageError) as refused:
        kb.rerun(out / "manifest.json")
    assert str(refused.value) == (
        f"manifest {str(out / 'manifest.json')!r} must be as a run wrote it, but race_by is 'warp', not 'pe' or "
        "'program'; restore it."
    )
    with pytest.raises(kb.UsageError) as refused:
        kb.run(path, "tiny", race_by="warp")
    assert str(refused.value) == "race_by must be 'pe' or 'program', not 'warp'."
