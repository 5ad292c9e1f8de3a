"""Searches, screening and figures over real runs: against runs made one by one."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import kernbench as kb
from kernbench_builtin.sweeps.folder import read_sweep
from kernbench_core.cli import main
from kernbench_core.errors import UsageError
from tests.core.forked import Forked, command

SMALL = {"M": 64, "N": 64, "K": 64}
AREA = """
def area(config, figures):
    return config["components.pe_gemm.params.rows"] * config["components.pe_gemm.params.columns"]
"""
ROWS, COLUMNS = (f"components.pe_gemm.params.{name}" for name in ("rows", "columns"))


def test_a_search_finds_the_front_of_a_machine(tmp_path: Path) -> None:
    """Time against area over nine arrays: the front is that of all nine, run one by one."""
    (tmp_path / "area.py").write_text(AREA)
    sizes = (8, 32, 64)
    done = kb.sweep(
        "gemm-naive", "tiny", {**SMALL, "M": 128}, set={ROWS: list(sizes), COLUMNS: list(sizes)}, processes=2,
        objectives=["time", "area", "max:share=flop / 2 / 128 / 64 / 64"], figures=tmp_path / "area.py",
        search="nsga2:40", data=False,
    )  # fmt: skip
    every = {
        (rows, columns): kb.run(
            "gemm-naive", "tiny", {**SMALL, "M": 128}, set={ROWS: rows, COLUMNS: columns}, data=False
        )
        for rows in sizes
        for columns in sizes
    }
    for row in done.rows:
        run = every[row[ROWS], row[COLUMNS]]
        assert row["time"] == row["time_ns"] == run.total_ns
        assert row["area"] == row[ROWS] * row[COLUMNS]
        assert row["share"] == run.kernels.roofline.flops / 2 / 128 / 64 / 64 >= 1
        assert row["hbm_bytes"] == run.kernels.roofline.hbm_bytes
    assert len(done.rows) == 9
    front = {
        size
        for size, run in every.items()
        if not any(
            other.total_ns <= run.total_ns
            and math.prod(at) <= math.prod(size)
            and (other.total_ns, math.prod(at)) != (run.total_ns, math.prod(size))
            for at, other in every.items()
        )
    }
    assert {(row[ROWS], row[COLUMNS]) for row in done.best} == front


def test_a_point_is_screened_as_it_would_be_run_so(tmp_path: Path) -> None:
    """Without data and with coarse chunks, as `kb.run` does; in full as it was asked for, with the data verified."""
    done = kb.sweep(
        "vector-add", "tiny", {"n": 16384, "block": [1024, 4096]}, objectives=["time"], fidelity="auto:1", processes=1,
        verify_data=True, out=tmp_path / "s",
    )  # fmt: skip
    coarse = {
        block: kb.run("vector-add", "tiny", {"n": 16384, "block": block}, set=["system.chunk_bytes=64 KiB"], data=False)
        for block in (1024, 4096)
    }
    best = min(coarse, key=lambda block: coarse[block].total_ns)
    full = kb.run("vector-add", "tiny", {"n": 16384, "block": best})
    rows = [(row["fidelity"], row["block"], row["time"], row["verified"]) for row in done.rows]
    assert rows == [
        *(("screen", block, coarse[block].total_ns, None) for block in (1024, 4096)),
        ("full", best, full.total_ns, True),
    ]
    assert coarse[best].total_ns != full.total_ns
    assert [row["time"] for row in done.best] == [full.total_ns]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({"search": "tpe:4"}, "--search must have an --objective, as time; give it."),
        ({"search": "tpe:4", "objectives": "time", "sample": "lhs:3"},
         "--search chooses the points itself, one after the other; leave out --sample or --search."),
        ({"search": "tpe:4", "objectives": "time", "fidelity": "auto"},
         "--search chooses the points itself, one after the other; leave out --fidelity or --search."),
        ({"search": "tpe", "objectives": "time"},
         "--search must be nsga2:N, tpe:N or random:N with N from 1 to 1,000,000 trials, not 'tpe'."),
        ({"fidelity": "fast"}, "--fidelity must be auto, or auto:K with K points to run in full, not 'fast'."),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_told(asked: dict[str, Any], wanted: str) -> None:
    """Before anything runs."""
    with pytest.raises(UsageError) as caught:
        kb.sweep("gemm", "tiny", {**SMALL, "tile_m": [16, 64]}, **asked)
    assert str(caught.value) == wanted


def test_a_search_needs_something_to_vary() -> None:
    """A single point is no search."""
    with pytest.raises(UsageError) as caught:
        kb.sweep("gemm", "tiny", SMALL, search="tpe:4", objectives="time")
    assert str(caught.value) == "--search must have something to vary, as -p M=1..64; give it."


@pytest.mark.parametrize("method", ["nsga2:24", "tpe:12"])
def test_a_search_that_is_killed_gives_the_same_table(
    tmp_path: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With SIGKILL, several times and anywhere: the same bytes, and each point carried out once."""
    asked = [
        "gemm", "--topology", "tiny", *(f"-p{name}=64" for name in "MNK"), "-p", "tile_m=16..64", "--set",
        "cube.noc.bandwidth=96..512GB/s:log", "--objective", "time,link=bandwidth / 1 GB/s", "--search", method, "-j2",
        "--no-data",
    ]  # fmt: skip
    assert main(["sweep", *asked, "-o", str(tmp_path / "whole")]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"\d+ trials of \d+ points", out)
    assert err == ""
    folder, seen = tmp_path / "cut", {}
    for wait_for in (1, 4, 8):
        process = Forked(
            command("sweep", *asked, "-o", str(folder)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        while process.poll() is None and len(list(folder.glob("points/*.json"))) < wait_for:
            time.sleep(0.005)
        with_group = os.getpgid(process.pid) if process.poll() is None else None
        if with_group is not None:
            os.killpg(with_group, signal.SIGKILL)
        process.wait()
        for path in folder.glob("points/*.json"):
            record = json.loads(path.read_text())
            assert seen.setdefault(path.name, record["wall_s"]) == record["wall_s"]
    assert main(["sweep", *asked, "-o", str(folder), "--resume"]) == 0
    assert (folder / "table.csv").read_bytes() == (tmp_path / "whole" / "table.csv").read_bytes()
    walls = {f"{record['key']}.json": record["wall_s"] for record in read_sweep(folder).records}
    assert seen.items() <= walls.items()
