"""A kernel that never ends is told with rank and line, after a time or a number of commands; then no more is tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernbench_ccl.catalogue import read_file
from kernbench_ccl.prove import Wanted, check, check_all, check_pool, proof_run
from kernbench_ccl.prove.proof_case import ENDLESS
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from tests.ccl.prove.proofs import run_command
from tests.ccl.ring_source import ring

BEGIN = "    c = tl.collective\n"
SPIN = (BEGIN, f"{BEGIN}    while rank == 1:\n        pass  # L\n")
LOAD = (BEGIN, f"{BEGIN}    while rank == 1:\n        tl.load(in_ptr, shape=(1,))  # L\n")
EVERYWHERE = ('{"ring": 0}', '{"ring": 0, "mesh_2d": 1, "switch": 2}')


def test_a_loop_without_commands_is_ended_by_the_wall_time(tmp_path: Path) -> None:
    """The rank that runs and its line are named."""
    algorithm, lines = ring(tmp_path, SPIN)
    (found,) = check(algorithm, Wanted([2], counts=[1], pes=1, timeout_s=0.2))
    (fault,) = found.faults
    assert (fault.kind, fault.rank, fault.pe, fault.step) == (ENDLESS, 1, 0, 0)
    loop = int(lines["L"].rpartition(":")[2])
    assert fault.lines[0] in (lines["L"], f"{tmp_path / 'ring.py'}:{loop - 1}")
    assert fault.sentence == (
        f"rank 1 after step 0: the case must end within the wall time of --timeout, and is still in {fault.lines[0]}; "
        "correct the loop, or give it more time if it is only long."
    )


def test_a_loop_of_commands_is_ended_by_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the wall time; the number is that of its own kernel."""
    assert proof_run._FEWEST == 50_000
    monkeypatch.setattr(proof_run, "_FEWEST", 1_000)
    algorithm, lines = ring(tmp_path, LOAD)
    (found,) = check(algorithm, Wanted([2], counts=[1], pes=1))
    (fault,) = found.faults
    assert (fault.kind, fault.rank, fault.lines) == (ENDLESS, 1, (lines["L"],))
    assert fault.sentence == (
        f"rank 1 after step 0: tl.load at {lines['L']} must not be reached without end, and this is command number "
        "1,065 of its kernel; correct the loop."
    )


def test_a_module_that_never_returns_has_no_rank(tmp_path: Path) -> None:
    """No kernel was running."""
    spin = "def scratch_count(count, world):\n    while True:\n        pass\n\n\n"
    algorithm, _ = ring(tmp_path, ("def kernel(", f"{spin}def kernel("))
    (found,) = check(algorithm, Wanted([2], counts=[1], pes=1, timeout_s=0.2))
    (fault,) = found.faults
    assert (fault.kind, fault.rank, fault.pe) == (ENDLESS, None, None)
    assert fault.sentence.startswith(f"the case must end within the wall time of --timeout, and is still in {tmp_path}")


def test_a_kernel_that_swallows_the_limit_is_endless_all_the_same(tmp_path: Path) -> None:
    """It proves nothing: what it did depends on the time that it had."""
    swallow = "    try:\n        while rank == 1:\n            pass  # L\n    except BaseException:\n        pass\n"
    algorithm, lines = ring(tmp_path, (BEGIN, f"{BEGIN}{swallow}"))
    (found,) = check(algorithm, Wanted([2], counts=[1], pes=1, timeout_s=0.2))
    (fault,) = found.faults
    file, _, line = lines["L"].rpartition(":")
    assert fault.kind == ENDLESS and fault.rank in (None, 1)  # where the limit came out, in the kernel or behind it
    assert fault.lines[0] in (lines["L"], f"{file}:{int(line) - 1}")
    assert fault.sentence.endswith(
        f"the case must end within the wall time of --timeout, and is still in {fault.lines[0]}; correct the loop, or "
        "give it more time if it is only long."
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_fewer_ranks_and_other_networks_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """Each would take as long again; in however many processes."""
    monkeypatch.setattr(check_pool, "_MUCH", 0)
    ring(tmp_path, SPIN, EVERYWHERE)
    wanted = Wanted([2, 3, 4], counts=[1], pes=1, timeout_s=0.2)
    ((_, rows),) = check_all([read_file(tmp_path / "ring.py")], wanted, jobs)
    assert [[(r.world, r.tried, r.refusal) for r in row.ranks] for row in rows] == [
        [
            (2, False, "it did not end with 4 ranks."),
            (3, False, "it did not end with 4 ranks."),
            (4, not elsewhere, "it did not end on ring." if elsewhere else None),
        ]
        for elsewhere in (False, True, True)
    ]
    assert rows[0].ranks[2].endless


def test_the_command_exits_with_5(plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a run does that has reached a limit; --json says what was not tried."""
    ring(tmp_path, SPIN, EVERYWHERE)
    call = (str(tmp_path / "ring.py"), "--ranks", "2-3", "--count", "1", "--timeout", "200 ms")
    assert run_command(plugins, *call) == 5
    _, _, *rows = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert rows == [
        "    NO END for 3 ranks", "    not tried 2: it did not end with 3 ranks.", "  not tried on mesh_2d, switch",
    ]  # fmt: skip
    assert run_command(plugins, *call, "--json") == 5
    first, *_ = json.loads(capsys.readouterr().out)["topologies"]
    assert [(each["ranks"], each["tried"], each["proved"]) for each in first["ranks"]] == [
        (2, False, False), (3, True, False),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["5", "-1 s", "0 s", "soon"])
def test_a_timeout_must_be_a_time(plugins: Plugins, text: str) -> None:
    """With its unit."""
    with pytest.raises(UsageError) as refused:
        run_command(plugins, "ring", "--timeout", text)
    assert str(refused.value) == f"option --timeout must be a positive time with its unit, as '60 s', not {text!r}."
