"""Forked processes that carry out jobs: whatever a job does, it has one record, and the others theirs."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.sweeps import LocalExecutor
from kernbench_builtin.sweeps.executors import local
from kernbench_builtin.sweeps.executors.base import PointJob


def job(index: int, do: str = "ok", timeout_s: float | None = None) -> dict[str, Any]:
    options = {} if timeout_s is None else {"timeout_s": timeout_s}
    return {"key": f"{index:02}", "index": index, "values": {"do": do}, "objectives": [], "run": {"options": options}}


def work(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Do what a bench may do to its process."""
    match asked["values"]["do"]:
        case "exit":
            os._exit(3)
        case "segv":
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # pytest's faulthandler would tell of it
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
        case "real time":
            os.kill(os.getpid(), 40)
        case "sleep":
            time.sleep(60)
        case "fork":
            if os.fork() == 0:
                pass
        case "fork and exit":
            if os.fork() == 0:
                time.sleep(60)
            os._exit(3)
        case "leave":
            subprocess.Popen(["sleep", "60"])
        case "print":
            print("printed")
            os.write(1, b"written")
    return {"key": asked["key"], "status": "ok", "pid": os.getpid()}


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    """Give one of two processes."""
    with LocalExecutor(2, work=work) as made:
        yield made


def done(executor: LocalExecutor, *jobs: PointJob) -> dict[str, dict[str, Any]]:
    """Return the records by key; each key must be there once."""
    records = list(executor.run(iter(jobs)))
    assert sorted(record["key"] for record in records) == sorted(job["key"] for job in jobs)
    return {record["key"]: record for record in records}


def test_each_job_has_one_record_whatever_becomes_of_its_process(
    executor: LocalExecutor, capfd: pytest.CaptureFixture[str]
) -> None:
    """One that ends, is killed or forks costs its own point; what it prints goes nowhere."""
    doings = ["ok", "exit", "ok", "segv", "kill", "ok", "terminate", "real time", "fork", "print", "exit", "ok", "ok"]
    found = done(executor, *(job(index, do) for index, do in enumerate(doings)))
    told = {record["values"]["do"]: record for record in found.values() if "values" in record}
    assert {do: record["error"]["sentence"] for do, record in told.items()} == {
        "exit": "the process of this point ended with exit code 3 and without a result; a bench must return, not end "
        "its process.",
        "segv": "the process of this point was ended by SIGSEGV (Segmentation fault); a library in C that the bench "
        "calls is faulty.",
        "kill": "the process of this point was killed from outside (SIGKILL), as the system does where memory is "
        "exhausted; give it more, or fewer processes by -j.",
        "terminate": "the process of this point was ended by SIGTERM (Terminated); something else sent that to it.",
        "real time": f"the process of this point was ended by signal 40 ({signal.strsignal(40)}); something else sent "
        "that to it.",
    }
    assert {do: (record["status"], record["error"]["exit_code"]) for do, record in told.items()} == {
        "exit": ("error", 6), "segv": ("error", 6), "kill": ("limit", 5), "terminate": ("error", 6),
        "real time": ("error", 6),
    }  # fmt: skip
    assert sum(record["status"] == "ok" for record in found.values()) == 7
    assert capfd.readouterr() == ("", "")


def test_jobs_are_carried_out_by_so_many_processes(executor: LocalExecutor) -> None:
    """No more than were asked for, and none of them this one; they serve a second run, too."""
    pids = {record["pid"] for record in done(executor, *map(job, range(12))).values()}
    assert len(pids) == 2 and os.getpid() not in pids
    assert {record["pid"] for record in done(executor, *map(job, range(12))).values()} == pids


def test_a_process_is_replaced_after_so_many_points(executor: LocalExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """What benches leave in memory goes with it."""
    monkeypatch.setattr(local, "_POINTS_A_PROCESS", 3)
    pids = [record["pid"] for record in done(executor, *map(job, range(12))).values()]
    assert max(map(pids.count, pids)) == 3


def test_jobs_are_taken_no_further_ahead_than_asked() -> None:
    """With none ahead, a job is taken after the record before it was told: a search learns from each."""
    for ahead, most in ((0, 1), (2, 3)):
        taken: list[int] = []
        told: list[str] = []
        gaps = []

        def jobs(taken: list[int] = taken) -> Iterator[dict[str, Any]]:
            for index in range(6):
                taken.append(index)
                yield job(index)

        with LocalExecutor(1, ahead=ahead, work=work) as executor:
            for record in executor.run(jobs()):
                gaps.append(len(taken) - len(told))
                told.append(record["key"])
        assert max(gaps) == most and told == [f"{index:02}" for index in range(6)]


def test_a_job_that_never_returns_is_ended_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some time after its limit, which the others have from their own begin."""
    monkeypatch.setattr(local, "_LATE_S", 0.1)
    began = time.monotonic()
    with LocalExecutor(1, work=work) as executor:
        found = done(executor, job(0, "sleep", 0.2), job(1), job(2, "sleep", 0.2))
    assert time.monotonic() - began < 10
    assert [found[f"{index:02}"]["status"] for index in range(3)] == ["timeout", "ok", "timeout"]
    assert found["00"]["error"]["sentence"] == (
        "the run reached its limit of 0.2 s of wall time, in code that no interrupt ends; raise --timeout if it "
        "is only long."
    )


def test_a_process_that_was_ended_while_idle_costs_no_point(executor: LocalExecutor) -> None:
    """Another one takes its place."""
    for pid in {record["pid"] for record in done(executor, *map(job, range(4))).values()}:
        os.kill(pid, signal.SIGKILL)
        _until(lambda pid=pid: not _in_session(pid))  # type: ignore[misc]
    assert {record["status"] for record in done(executor, *map(job, range(4))).values()} == {"ok"}


def test_what_a_process_leaves_running_keeps_nobody_waiting(executor: LocalExecutor) -> None:
    """It has the pipe open though the process has ended; it is ended, too."""
    found = done(executor, job(0, "fork and exit"), job(1), job(2))
    assert [found[f"{index:02}"]["status"] for index in range(3)] == ["error", "ok", "ok"]
    assert "ended with exit code 3 and without a result" in found["00"]["error"]["sentence"]


def test_no_process_outlives_the_executor() -> None:
    """Neither idle nor busy ones, nor what they started."""
    with LocalExecutor(2, work=work) as executor:
        records = executor.run([job(0, "leave"), job(1, "sleep"), job(2, "leave")])
        worker = next(records)["pid"]
        assert len(_in_session(worker)) >= 2
    _until(lambda: not _in_session(worker))


def test_a_process_has_no_file_of_the_one_that_forked_it(executor: LocalExecutor, tmp_path: Path) -> None:
    """A lock that it would hold on would keep the next sweep out."""
    with (tmp_path / "lock").open("w") as lock:
        assert os.fstat(lock.fileno()).st_nlink == 1
        record = done(executor, job(0))["00"]
        files = Path(f"/proc/{record['pid']}/fd")
        open_there = {str(each.readlink()) for each in files.iterdir()}
    assert str(tmp_path / "lock") not in open_there
    assert len({name for name in open_there if name != "/dev/null"}) == 2  # the pipe, and the report of its end


def test_processes_end_with_the_one_that_forked_them() -> None:
    """Killed, it cannot end them; the system does."""
    code = (
        "import os, sys, time; from tests.builtin.sweeps.test_local import job, work\n"
        "from kernbench_builtin.sweeps import LocalExecutor\n"
        "executor = LocalExecutor(1, work=work)\n"
        "for record in executor.run([job(0), job(1, 'sleep')]): print(record['pid'], flush=True)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.kill()
    process.communicate()
    _until(lambda: not _in_session(worker))


def _in_session(session: int) -> list[int]:
    """Return the processes of a session that are not over."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def _until(over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not over():
        assert time.monotonic() < deadline
        time.sleep(0.02)
