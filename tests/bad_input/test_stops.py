"""Runs that have to be stopped, and files that cannot be written: limits, Ctrl-C, a full disk."""

from __future__ import annotations

import json
import re
import resource
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.process import interrupt

BENCH = '''
import time
def kernel(x, how, tl):
    open("started", "w").close()
    if how == "prints":
        print("hello from the kernel")
    while how == "loads":
        tl.load(x, shape=(4,))
    while how == "spins":
        pass
    if how == "sleeps":
        time.sleep(1000)
    if how == "swallows":
        try:
            while True:
                pass
        except:
            pass
def bench(rt, how: str):
    """Never end."""
    x = rt.zeros((64,))
    if how == "host":
        open("started", "w").close()
    while how == "host":
        pass
    rt.launch(kernel, x, how, grid=(1,) if how == "swallows" else (4,))
    if how == "prints":
        raise ValueError("my own fault")
'''
#: The line at which each of them is stuck.
STUCK = {"spins": {9, 10}, "sleeps": {12}, "host": {24, 25}, "swallows": {15, 16}}


@pytest.fixture(autouse=True)
def bench(folder: Any) -> None:
    """Put the bench file into the folder."""
    folder.write("k.py", BENCH)


class _Clock:
    """Stands still until a file is there, and goes like the machine's from then on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._began: float | None = None

    def perf_counter(self) -> float:
        """Return how long the file has been there, in s."""
        if self._began is None and self._file.exists():
            self._began = time.perf_counter()
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.fixture
def limited_once_started(folder: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Count wall time from where the bench is stuck: a loaded machine may take longer than the limit to come there."""
    started, ring_in, lock = folder.path / "started", interrupt._ring_in, threading.Lock()
    waiting: list[float] = []

    def ring_later(wait_s: float) -> None:
        with lock:
            waiting[:] = [wait_s] if wait_s else []
            ring_in(0.0)

    def look() -> None:
        while not over.wait(0.02):
            with lock:
                if waiting and started.exists():
                    ring_in(waiting.pop())

    clock, over = _Clock(started), threading.Event()
    thread = threading.Thread(target=look)
    thread.start()
    monkeypatch.setattr("kernbench_core.process.interrupt.time", clock)
    monkeypatch.setattr("kernbench_core.engine.watchdog.time", clock)
    monkeypatch.setattr(interrupt, "_ring_in", ring_later)
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("limited_once_started")
@pytest.mark.parametrize(
    ("option", "limit", "said"),
    [
        ("--max-sim-time", "3 us", r"its limit of 3 us of simulated time after \d+ events; raise --max-sim-time"),
        ("--max-events", "900", r"its limit of 900 events at simulated time [0-9.]+ us; raise --max-events"),
        ("--timeout", "200 ms", r"its limit of 0\.2 s of wall time at simulated time [0-9.]+ us, after \d+ events; "
        r"raise "
                                r"--timeout"),
    ],
)  # fmt: skip
def test_a_kernel_that_loops_in_simulated_time_meets_each_limit(
    folder: Any, option: str, limit: str, said: str
) -> None:
    """Exit code 5; which limit, the line of every kernel that waits, and what limited the run until then."""
    outcome = folder.run("k.py", "-p", "how=loads", option, limit)
    first, second, *kernels, then, _, verdict = outcome.err.splitlines()
    assert then == "  until then:" and verdict.startswith("    kernel, which had not ended on ")
    assert " of its time waiting for tl.load (k.py:8)" in verdict
    assert re.fullmatch(rf"error: the run reached {said} if it is only long\.", first), first
    assert second == "  kernels that wait:"
    here = re.escape(str(folder.path))
    for line in kernels:
        assert re.fullmatch(
            rf"    sip0\.cube0\.pe\d\.pe_cpu kernel 'kernel' at {here}/k\.py:8 waits for tl\.load from its pe_dma, for "
            r"[0-9.]+ ns( \(\d PEs wait so\))?",
            line,
        )
    assert (outcome.code, outcome.out, outcome.left) == (5, "", {"started"})


@pytest.mark.usefixtures("limited_once_started")
@pytest.mark.parametrize("how", STUCK)
def test_a_program_that_never_returns_is_named_with_its_line(folder: Any, how: str) -> None:
    """--timeout stops a loop without simulated time, a sleep of 1000 s, and who catches what stops it."""
    outcome = folder.run("k.py", "-p", f"how={how}", "--timeout", "200 ms")
    found = re.fullmatch(
        r"error: the run reached its limit of 0\.2 s of wall time at simulated time [0-9.]+ [nu]s, after \d+ events in "
        rf"{re.escape(str(folder.path))}/k\.py:(\d+), which never returned to the simulator; raise --timeout if it is "
        rf"only "
        r"long\.\n  what limited it until then cannot be said: no command of a kernel had ended\.\n",
        outcome.err,
    )
    assert found is not None, outcome.err
    assert int(found[1]) in STUCK[how]
    assert (outcome.code, outcome.out, outcome.left) == (5, "", {"started"})


@pytest.mark.parametrize("how", ["loads", "spins", "sleeps", "host"])
def test_ctrl_c_prints_what_there_is(folder: Any, how: str) -> None:
    """Exit code 130, a summary that says that it is partial, nothing written."""
    files = ("--trace", "t.json", "--report", "r.html", "--out", "o")
    process = folder.fork("run", "k.py", "--topology", "tiny", "-p", f"how={how}", *files)
    _wait_for(folder.path / "started")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert re.fullmatch(_interrupted_in(folder), err) or (how, err) == ("loads", "")
    assert out.startswith("k on tiny ") and "\ninterrupted at " in out
    assert "\ninterrupted: everything here covers only what ran; --out, --report and --trace are not written\n" in out
    assert folder.files() == {"k.py", "started"}


def _interrupted_in(folder: Any) -> str:
    """Return what is said where a program is interrupted, not the simulator."""
    return rf"note: the run was interrupted in {re.escape(str(folder.path))}/k\.py:\d+\.\n"


def test_ctrl_c_with_json_is_one_object(folder: Any) -> None:
    """Partial figures, marked as such."""
    process = folder.fork("run", "k.py", "--topology", "tiny", "-p", "how=loads", "--json")
    _wait_for(folder.path / "started")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    found = json.loads(out)
    assert (process.returncode, found["schema"]) == (130, "kernbench.run/1")
    assert re.fullmatch(f"({_interrupted_in(folder)})?", err)
    assert (found["interrupted"], found["verified"], found["op_log_sha256"]) == (True, None, None)
    assert sum(found["phases"].values()) == found["total_ns"] > 0


def test_a_failing_run_with_json_is_one_object(folder: Any) -> None:
    """What kernels printed is on stderr, before the sentence."""
    outcome = folder.run("k.py", "-p", "how=prints", "--json")
    *prints, error = outcome.err.split("error: ")
    assert prints == ["hello from the kernel\n" * 4]
    found = json.loads(outcome.out)
    assert found == {"schema": "kernbench.error/1", "exit_code": 6, "problems": [error.removesuffix("\n")]}
    assert error.startswith("bench 'k' raised ValueError: my own fault at simulated time ")
    assert (outcome.code, outcome.left) == (6, {"started"})


@pytest.mark.parametrize("option", [("--out", "o"), ("--trace", "t.json")])
def test_a_full_disk_leaves_nothing_behind(folder: Any, option: tuple[str, str]) -> None:
    """The run was right, so the sentence says so; no part of a file stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    try:
        outcome = folder.call("run", "gemm", "--topology", "tiny", "-p", "M=128", "-p", "N=128", "-p", "K=128", *option)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file = str(folder.path / option[1])
    assert outcome.err == (
        f"error: the files of {option[0]} must be writable, but {file!r} failed "
        "with 'File too large' after the run had ended well; make room or name another place.\n"
    )
    assert (outcome.code, outcome.out, outcome.left) == (2, "", frozenset())


def _wait_for(path: Path) -> None:
    """Wait until the program has come to what does not end."""
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
