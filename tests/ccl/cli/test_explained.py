"""`kernbench ccl` with --explain, --report, --trace and --wide: why a row took its time; and -q."""

from __future__ import annotations

import json

import pytest

import kernbench_core as kb
from kernbench_ccl.measure import time_collective
from kernbench_core.spread import NOT_KNOWN
from kernbench_core.units import format_time
from tests.ccl.cli.machines import SMALL

ONE = ("all_reduce", *SMALL, "-b", "2K", "-e", "2K")


def test_a_row_is_explained_as_a_run_of_it_is(call, faulty_plugins):
    """The verdict's lines are those of `run collective`, and end what is printed; the row is as without it."""
    _, plain, _ = call(*ONE, "--algo", "ring")
    code, out, _ = call(*ONE, "--algo", "ring", "--explain")
    params = {"collective": "all_reduce", "size": "2 KiB", "algo": "ring"}
    found = kb.run("collective", "tiny", params, set=["system.sips=3"], verify_data=True, plugins=faulty_plugins)
    assert code == 0 and out.startswith(plain)
    assert "where the time went" in out and found.parts["verdict"].limiter is not None
    told = " ".join(out.split())
    *lines, more = found.parts["verdict"].lines
    assert all(" ".join(line.split()) in told for line in lines) and more not in out


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (("--explain",), ["more: --report page.html."]), (("--report", "p.html"), ["more: --explain."]),
        (("--trace", "t.json"), ["more: --explain or --report page.html."]),
        (("--explain", "--report", "p.html"), []),
    ],
)  # fmt: skip
def test_what_tells_more_is_not_what_was_asked_for(call, tmp_path, asked, more):
    """Nor is it a saved run: rows of a table are not saved."""
    out = call(*ONE, "--algo", "ring", "--no-check", *asked, folder=tmp_path)[1]
    assert [line for line in out.splitlines() if line.startswith("more: ")] == more


@pytest.mark.parametrize(
    "how",
    [
        ("--algo", "ring", "--pipeline", "off", "--pes", "2"), ("--algo", "narrow"), ("--algo", "auto", "--idealised"),
        ("--algo", "ring", "--network", "switch", "-d", "f32", "-o", "max"),
    ],
)  # fmt: skip
def test_what_is_explained_takes_the_time_of_the_row(call, tmp_path, how):
    """To the bit, however it runs: settings of an entry, of the command line, machines of options."""
    (tmp_path / "ccl.yaml").write_text(
        "algorithms: {narrow: {algorithm: ring, slots: 2, slot_bytes: 512 B, chunk: 256 B, tier: sram}}\n"
    )
    _, out, _ = call(*ONE, *how, "--config", "ccl.yaml", "--explain", "--json", folder=tmp_path)
    found = json.loads(out)
    assert found["run"]["rows"][0]["time_ns"] == found["rows"][0]["out_of_place"]["time_ns"]
    assert found["run"]["explain"] is not None and found["run"]["verified"] is True


def test_files_are_written_and_the_line_is_one(call, tmp_path):
    """-q prints one line whatever else is asked; a page and a timeline are of the row."""
    code, out, err = call(*ONE, "--algo", "ring", "-q", "--report", "p.html", "--trace", "t.json", folder=tmp_path)
    assert (code, err) == (0, "")
    [row] = time_collective("all_reduce", [2048], "tiny", algo="ring", ranks=3, check=False)
    time = format_time(row.out_of_place.time_ns)
    assert out.startswith(f"all_reduce, 3 ranks of tiny: 2 KiB in {time}, ") and out.count("\n") == 1
    assert "ring_all_reduce" in (tmp_path / "p.html").read_text()
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("-e", "8K"), "--explain must be given one size, not 3; give -b and -e the same, as '64K'."),
        (("--algo", "all"), "--explain must be given one algorithm, not several; name one with --algo, or auto."),
        (
            ("--contributors", "pe"),
            "--explain must be given one vector per rank, not --contributors pe; leave that out.",
        ),
    ],
)
def test_there_is_one_run_to_look_at(call, more, sentence):
    code, out, err = call(*ONE, "--explain", *more)
    assert (code, out, err) == (2, "", f"error: {sentence}\n")


def test_a_wide_table_says_what_a_time_is_made_of_and_what_auto_tried(call):
    """Its parts add up to the time of --json, whose bound and formula they are; auto's best takes what the row does."""
    how = ("all_reduce", *SMALL, "-b", "2K", "-e", "2K", "--link-bw", "37 GB/s", "--no-check")
    [row] = json.loads(call(*how, "--json")[1])["rows"]
    lines = call(*how, "--wide")[1].splitlines()
    [why] = [line for line in lines if line.startswith("# 2 KiB: ")]
    ns, bound, form = row["out_of_place"]["time_ns"], row["bound_ns"], row["formula_ns"]
    parts = f"{format_time(ns)} is {format_time(bound)} for any algorithm ({row['bound_reason']}), "
    assert why.startswith(f"# 2 KiB: {parts}{format_time(form - bound)} more for the steps of {row['algorithm']} ")
    rest = "by its formula, {} more, which that leaves out: dies, memories, waits of the kernel; busiest"
    assert rest.format(format_time(ns - form)) in why
    [tried] = [line for line in lines if line.startswith("# auto tried for 2 KiB: ")]
    short = row["algorithm"].partition(".")[2].removesuffix("_all_reduce")
    assert tried.startswith(f"# auto tried for 2 KiB: {short} {format_time(ns)}, ")


def test_algorithms_are_called_different_beyond_the_spread_alone(call):
    """Without --shake the table says that nobody knows; the spread lies round the row's time, the same every time."""
    how = ("all_reduce", *SMALL, "-b", "1K", "-e", "1K", "--no-check", "--algo", "ring", "--algo", "ring_bidirectional")
    assert f"# single times: {NOT_KNOWN}" in call(*how)[1].splitlines()
    found = json.loads(call(*how, "--shake", "3", "--json")[1])
    [shaken] = found["shaken"]
    rows = {row["algorithm"]: row["out_of_place"]["time_ns"] for row in found["rows"]}
    for name, spread in shaken["algorithms"].items():
        assert spread["low_ns"] < spread["high_ns"] and spread["runs"] == 3
        assert spread["median_ns"] == pytest.approx(rows[f"ccl.{name}_all_reduce"], rel=0.01)
    [line] = [line for line in call(*how, "--shake", "3")[1].splitlines() if "shaken" in line]
    assert line.startswith(f"# 1 KiB shaken: {shaken['not_shown_to_differ'][0]} against ")
    assert "# single times" not in line


def test_tune_shakes_the_leaders(call, tmp_path):
    """The table has medians then; what compares single times says so."""
    how = ("tune", *SMALL[:4], "-j", "1", "--collective", "broadcast", "--sizes", "1K")
    code, out, _ = call(*how, "-o", "a.json", folder=tmp_path)
    assert code == 0 and out.endswith(f"it compares single times: {NOT_KNOWN}\n")
    code, out, _ = call(*how, "-o", "b.json", "--shake", "3", folder=tmp_path)
    assert code == 0 and "single times" not in out
    tables = [json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json")]
    assert tables[0] != tables[1]
