"""`kernbench ccl` stops what takes too long: a kernel that never comes back, a run of too many events."""

from __future__ import annotations

import re

import pytest

from kernbench_core.cli import main

LOOP = '''\
"""Compute for ever on rank 1."""

from kernbench_ccl.contract import kernel_args

COLLECTIVE = "all_reduce"
TOPO_NAME_TO_KIND = {"ring": 0}


def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    while rank == 1:
        pass
'''
SMALL = ("--topology", "tiny", "--ranks", "2", "-b", "1K", "-e", "2K", "--no-check")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_kernel_that_never_comes_back_is_stopped_with_its_line(tmp_path, capfd, monkeypatch, jobs):
    """In this process or in another one."""
    monkeypatch.setattr("kernbench_ccl.measure.sweep._FEW", 0)
    file = tmp_path / "loop.py"
    file.write_text(LOOP)
    assert main(["ccl", "all_reduce", *SMALL, "--algo", str(file), "--timeout", "1 s", "-j", jobs]) == 5
    told = (
        r"error: the run reached its limit of 1 s of wall time at simulated time [\d.]+ [nu]s, after \d+ events in "
        rf"{re.escape(str(file))}:1[01], which never returned to the simulator; raise --timeout if it is only long\.\n"
        rf"This was [12] KiB by {re.escape(str(file))}, (out of|in) place\.\n"
    )
    assert re.fullmatch(told, capfd.readouterr().err)


def test_too_many_events_end_the_run(capsys):
    """As for `kernbench run`; beside others each algorithm has the limit for itself."""
    assert main(["ccl", "all_reduce", *SMALL, "-j", "1", "--algo", "ring", "--max-events", "100"]) == 5
    told = "the run reached its limit of 100 events at simulated time "
    assert capsys.readouterr().err.startswith(f"error: {told}")
    assert main(["ccl", "broadcast", *SMALL, "-j", "1", "--algo", "all", "--max-events", "100"]) == 5
    out, err = capsys.readouterr()
    assert err.count("\n") == out.count("limit") // 2 > 1
    assert err.startswith(f"error: 1 KiB by ccl.binomial_tree_broadcast: {told}")
    assert err.splitlines()[0].endswith("raise --max-events if it is only long; 1 more size failed.")


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--timeout", "5", "option --timeout must be a positive time with its unit, as '60 s', not '5'."),
        ("--timeout", "-1 s", "option --timeout must be a positive time with its unit, as '60 s', not '-1 s'."),
        ("--max-events", "0", "option --max-events must be an integer of at least 1, not '0'."),
    ],
)
def test_limits_are_positive(capsys, option, value, told):
    """Refused before anything runs."""
    assert main(["ccl", "all_reduce", *SMALL, option, value]) == 2
    assert capsys.readouterr() == ("", f"error: {told}\n")
