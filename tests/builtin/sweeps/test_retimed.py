"""Points that are timed again have the times of their runs, in every bit, and say how they were timed."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.native import timing
from kernbench_builtin.sweeps import SweepResult, sweep
from kernbench_builtin.sweeps.retimed import FIGURES, how_timed
from kernbench_core.errors import KernbenchError
from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from tests.commands import Run

pytestmark = pytest.mark.skipif(timing.library_file() is None, reason="the native engine was not compiled")

NOC = "cube.noc.bandwidth"
SETS = {NOC: ["96 GB/s", "128 GB/s", "256 GB/s"], "components.hbm_ctrl.params.overhead": ["10 ns", "40 ns"]}
SHARED = """
def bench(rt):
    todo = iter(range(37))
    x = rt.zeros((64 * 37,), "f32")

    def kernel(x, tl):
        for at in todo:
            here = x + at * 64 + tl.arange(0, 64)
            tl.store(here, tl.load(here) + 1.0)

    rt.launch(kernel, x)
"""
NOW = """
def bench(rt):
    x = rt.zeros((64 * rt.n_pes,), 'f32')
    rt.launch(kernel, x)
    x.numpy()
    assert rt.now > 0

def kernel(x, tl):
    at = x + tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(at, tl.load(at) * 2.0)
"""
SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def add(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        total += tl.load(x + i * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), total)

n = int(sys.argv[1])
x, out = np.ones(n * 256, np.float32), np.empty(256, np.float32)
add[(1,)](x, out, n, BLOCK=256)
assert out.tolist() == [n] * 256
"""


def swept(plugins: Plugins, bench: str = "softmax", **more: Any) -> SweepResult:
    given = {"params": {"rows": [16, 32], "cols": 128}, "set": SETS, "retime": True, "processes": 1, **more}
    return sweep(bench, "tiny", plugins=plugins, **given)


def test_points_have_the_figures_of_their_runs(plugins: Plugins) -> None:
    """Over machines whose fabric differs, too, with a recorded run for each size, of which a point is checked."""
    sets = {**SETS, "components.pe_dma.params.servers": [2, 8]}
    again, full = swept(plugins, set=sets), swept(plugins, set=sets, retime=False)
    assert Counter(record["timed"] for record in again.records) == {"re-timed": 24}
    checked = [record["index"] for record in again.records if record["checked"]]
    assert 2 <= len(checked) < 16 and {record["recording"] for record in again.records if record["checked"]} == {
        record["recording"] for record in again.records
    }
    for mine, other in zip(again.records, full.records, strict=True):
        assert {name: mine["figures"][name] for name in FIGURES} == {name: other["figures"][name] for name in FIGURES}
        assert mine["op_log_sha256"] is None and mine["figures"].keys() == set(FIGURES)
    assert len({record["figures"]["time_ns"] for record in again.records}) >= 12


def test_points_of_a_script_have_the_figures_of_their_runs(plugins: Plugins, tmp_path: Path) -> None:
    """Its loop loads ahead; a recording for each of its arguments."""
    (tmp_path / "add.py").write_text(SCRIPT)
    given = {"params": {"n": [5, 9]}, "arguments": ["{n}"], "objectives": "time"}
    again, full = (swept(plugins, f"triton:{tmp_path / 'add.py'}", retime=on, **given) for on in (True, False))
    assert [record.get("timed", record["error"]) for record in again.records] == ["re-timed"] * 12
    assert len({record["recording"] for record in again.records}) == 2
    for mine, other in zip(again.records, full.records, strict=True):
        assert mine["figures"] == {name: other["figures"][name] for name in FIGURES}
    assert len({record["figures"]["time_ns"] for record in again.records}) > 6


def test_what_cannot_be_timed_again_is_simulated_and_says_why(plugins: Plugins, tmp_path: Path) -> None:
    """A size of the machine, a program that looks at the time, and no plug-in that records."""
    file = tmp_path / "b.py"
    file.write_text(NOW)
    without = load_plugins([name for name in own_plugins() if "native" not in name], installed=False)
    cases: list[tuple[str, Plugins, dict[str, Any]]] = [
        ("another structure of the machine", plugins, {"set": {"cube.pes": [4, 2]}}),
        ("a program that asks for rt.now at ", plugins, {"bench": str(file), "params": {}}),
        ("no plug-in records runs", without, {}),
    ]
    for why, known, more in cases:
        done = swept(known, **more)
        last = done.records[-1]
        assert last["timed"].startswith(f"in full: {why}"), last
        assert last["status"] == "ok" and last["op_log_sha256"] and "utilisation.pe_dma" in last["figures"]


def test_where_a_point_that_is_checked_differs_none_of_its_recording_counts(
    plugins: Plugins, tmp_path: Path
) -> None:
    """A work queue that all programs share in Python: who takes what depends on times, and no recording can know."""
    (tmp_path / "shared.py").write_text(SHARED)
    sets = {"components.hbm_ctrl.params.channel_bandwidth": ["25.6 GB/s", "2 GB/s", "26 GB/s"]}
    done = swept(plugins, bench=str(tmp_path / "shared.py"), params={}, set=sets, objectives="time")
    assert [record["timed"] for record in done.records] == ["re-timed", "differs", "re-timed"]
    assert [record["error"]["exit_code"] for record in done.records] == [7, 7, 7] and done.best == []
    sentence = done.records[1]["error"]["sentence"]
    assert sentence.startswith("a re-timed point must have the figures of its run, and has others: time_ns ")
    assert sentence.endswith(
        " What its program does depends on times in a way that no recording can see, as where programs share values in "
        "Python."
    )
    assert done.records[2]["error"]["sentence"] == (
        "point 1, timed again from the same recording, has other times than its run; run the sweep without --retime."
    )
    assert how_timed(done.records)[0] == "1 point with other times than their runs: nothing re-timed beside them counts"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"fidelity": "auto"}, "--retime cannot be used with --fidelity; leave out one of them."),
        ({"cached": True}, "--retime cannot be used with --cached; leave out one of them."),
        ({"shake": 3}, "--retime cannot be used with --shake; leave out one of them."),
        ({"max_events": 9}, "--retime cannot be used with --max-events; leave out one of them."),
        ({"set": {}}, "--retime must have a machine that is varied, as --set cube.noc.bandwidth=64GB/s,128GB/s."),
        (
            {"bench": "triton:mine.py", "params": {}, "arguments": ["--at", "{cube.noc.bandwidth}"]},
            "--retime must have a script that is not told what is varied in the machine, and its arguments have "
            "{cube.noc.bandwidth}; leave out --retime.",
        ),
        (
            {"objectives": "max:utilisation.pe_dma"},
            "re-timed points have no utilisation.pe_dma, which --objective max:utilisation.pe_dma reads, but "
            f"{', '.join(FIGURES)}; choose another objective, or leave out --retime.",
        ),
    ],
)
def test_what_goes_not_together_is_refused(plugins: Plugins, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(KernbenchError) as caught:
        swept(plugins, **given)
    assert str(caught.value) == sentence


def test_the_command_says_how_each_point_was_timed(inside: Run, tmp_path: Path) -> None:
    sets = [part for key, values in SETS.items() for part in ("--set", f"{key}={','.join(values)}")]
    asked = ["sweep", "softmax", "--topology", "tiny", "-p", "rows=16", "-p", "cols=128", *sets, "--objective", "time"]
    done = inside(*asked, "--retime", "-o", str(tmp_path / "s"))
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0].split() == ["#", "bandwidth", "overhead", "status", "timed", "time"]
    how = r"^6 points re-timed from 1 recorded run; [2-5] of them simulated, too: equal times$"
    assert re.search(how, done.stdout, re.MULTILINE)
    with (tmp_path / "s" / "table.csv").open() as file:
        assert {row["timed"] for row in csv.DictReader(file)} == {"re-timed"}
