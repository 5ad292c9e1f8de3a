"""Processes end with the block that started them, whatever ends it."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import process
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from kernbench_ccl.prove.processes import TERMINATED, process_pool
from kernbench_core.plugins import Plugins
from tests.core.forked import Forked, command

LONG = [
    "ccl", "all_reduce", "--topology", "tiny", "--set", "cube.pes=1", "--ranks", "3", "--algo", "ring",
    "-b", "1K", "-e", "256M",
]  # fmt: skip
MAIN = "import sys; from kernbench_core.cli import main; sys.exit(main())"


def test_sigterm_ends_a_table_and_its_processes(plugins: Plugins) -> None:
    """The exit code is that of a command which the signal ended; rows that were there stay."""
    with Forked(command(*LONG, plugins=plugins), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as table:
        for line in table.stdout:
            if line.strip().startswith("1024"):
                break
        table.send_signal(signal.SIGTERM)
        _, err = table.communicate(timeout=120)  # the pipes close with the last process; a table takes longer
    assert (table.returncode, err) == (TERMINATED, "error: terminated.\n")
    assert TERMINATED == 143


def busy(seconds: float) -> float:
    """Compute for so many seconds of CPU time, and return how many it was."""
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        pass
    return time.process_time() - begun


def children_cpu_s() -> float:
    """Return the CPU time of the children that have ended and been waited for, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_processes_have_ended_behind_the_block_and_their_time_is_counted() -> None:
    """Also one that was still computing."""
    before = children_cpu_s()
    with process_pool(2) as pool:
        first = pool.submit(busy, 0.3)
        pool.submit(busy, 60.0)
        assert first.result() >= 0.3
        children = multiprocessing.active_children()
    assert len(children) == 2
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)
    assert children_cpu_s() - before >= 0.3


def test_the_thread_of_the_pool_has_ended_behind_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: the end of the interpreter would write to the pipe that it is closing, and fail."""
    before = set(threading.enumerate())
    usual = process._ExecutorManagerThread.join_executor_internals

    def late(thread: threading.Thread) -> None:
        time.sleep(0.3)
        usual(thread)

    monkeypatch.setattr(process._ExecutorManagerThread, "join_executor_internals", late)
    with process_pool(1) as pool:
        assert pool.submit(int, "7").result() == 7
    assert set(threading.enumerate()) <= before


def test_no_semaphore_is_made_before_who_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of descriptors, the process that removes what is left over does not start, and nothing is left over."""
    made: list[object] = []

    def refuse() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(resource_tracker, "ensure_running", refuse)
    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", lambda self, *_, **__: made.append(self))
    with pytest.raises(OSError, match="Too many open files"), process_pool(2):
        pass
    assert made == []


def descendants(parent: int) -> set[int]:
    """Return the processes that a process has started, and those that they have."""
    found, parents = set[int](), dict[int, int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may end while we look
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    while True:
        more = {pid for pid, its_parent in parents.items() if its_parent in found | {parent}} - found
        if not more:
            return found
        found |= more


def semaphores(pid: int) -> set[Path]:
    """Return the files of the named semaphores that a process has opened."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return {Path(line.split()[-1]) for line in maps.splitlines() if "/dev/shm/sem.mp-" in line}


def running(pid: int) -> bool:
    """Return whether a process runs: a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at the processes through /proc")
def test_a_killed_table_takes_its_processes_and_semaphores_with_it() -> None:
    """SIGKILL leaves no time for anything: the processes see to it themselves, also one that is in C code for ever."""
    program = [sys.executable, "-c", MAIN, *LONG]  # a fork would have the semaphores of this process's tracker
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as table:
        for line in table.stdout:
            if line.strip().startswith("1024"):
                break
        started = descendants(table.pid)
        held = set().union(*(semaphores(pid) for pid in started))
        assert len(started) >= 2
        assert held
        table.kill()
    deadline = time.monotonic() + 60
    while any(running(pid) for pid in started) or any(file.exists() for file in held):
        left = {pid for pid in started if running(pid)}
        assert time.monotonic() < deadline, (left, [file for file in held if file.exists()])
        time.sleep(0.05)
