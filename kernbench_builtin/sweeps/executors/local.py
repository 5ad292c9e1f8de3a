"""Processes of this machine, forked from the warm one, so that a small point costs its run and not its start."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import IO, Any, Final

from attrs import define, field

from kernbench_builtin.sweeps.evaluate import blank_record, evaluate, failure
from kernbench_builtin.sweeps.executors.base import PointJob, PointRecord
from kernbench_core.errors import KernbenchError, KernelError, LimitError
from kernbench_core.process import GRACE_S, end_with, ended_by_limit, limit_error, report_to

#: How often it is looked whether a process is late, in s.
_LOOK_S: Final = 0.25
#: How much longer than its limit a process may take that is not stopped by that.
_LATE_S: Final = GRACE_S + 3.0
#: So many points are carried out by one process, so that what benches leave in memory does not grow for ever.
_POINTS_A_PROCESS: Final = 512
#: Signals of what a process did itself.
_FAULTS: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)


@define(eq=False)
class _Worker:
    """One forked process: its end of the pipe, the jobs that it has, the first of them under way."""

    pid: int
    pipe: Connection
    report: IO[bytes]
    given: int = 0
    jobs: deque[PointJob] = field(factory=deque)
    since: float = field(factory=time.monotonic)
    killed: bool = False
    status: int | None = None

    def give(self, job: PointJob) -> None:
        """Send a job; one that cannot be sent is told of when the process is found to have ended."""
        if not self.jobs:
            self.since = time.monotonic()
        self.jobs.append(job)
        self.given += 1
        with suppress(OSError):
            self.pipe.send_bytes(json.dumps(job).encode())

    @property
    def is_used_up(self) -> bool:
        """Whether it is to get no more jobs."""
        return self.given >= _POINTS_A_PROCESS

    @property
    def is_late(self) -> bool:
        """Whether its job has taken much longer than it may."""
        limit_s = _limit_s(self.jobs[0]) if self.jobs else None
        return limit_s is not None and time.monotonic() - self.since > limit_s + _LATE_S

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, though what it started may hold the other end of the pipe."""
        if self.status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if ended else None
        return self.status is not None

    def end(self) -> int:
        """End the process and all that it started; return its exit status as `waitpid` has it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # before it has a group of its own
            _, self.status = os.waitpid(self.pid, 0)
        self.pipe.close()
        return self.status


class LocalExecutor:
    """Carries out jobs in `processes` forked from this one, which are replaced when they end.

    `ahead` is how many jobs each has waiting, so that it need not wait for this process. `work` is `evaluate`.
    """

    def __init__(
        self, processes: int, *, ahead: int = 1, work: Callable[[Mapping[str, Any]], dict[str, Any]] = evaluate
    ) -> None:
        self._processes = processes
        self._room = 1 + ahead
        self._work = work
        self._workers: list[_Worker] = []

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Fork the processes now, before this one has threads; otherwise the first jobs do."""
        while len(self._workers) < self._processes:
            self._workers.append(self._forked())

    def run(self, jobs: Iterable[PointJob]) -> Iterator[PointRecord]:
        """Yield the record of each job as it finishes."""
        waiting: deque[PointJob] = deque()
        source = iter(jobs)
        while True:
            self._hand_out(waiting, source)
            if not any(worker.jobs for worker in self._workers):
                return
            yield from self._finished(waiting)

    def close(self) -> None:
        """End all processes."""
        while self._workers:
            _ended(self._workers.pop())

    def _hand_out(self, waiting: deque[PointJob], source: Iterator[PointJob]) -> None:
        """Give every process as many jobs as it has room for, an idle one first."""
        for most in range(1, self._room + 1):
            for at in range(self._processes):
                if at < len(self._workers) and (len(self._workers[at].jobs) >= most or self._workers[at].is_used_up):
                    continue
                job = waiting.popleft() if waiting else next(source, None)
                if job is None:
                    return
                if at < len(self._workers) and not self._workers[at].jobs and self._workers[at].is_over:
                    _ended(self._workers[at])  # somebody ended it while it was idle
                    self._workers[at] = self._forked()
                while len(self._workers) <= at:
                    self._workers.append(self._forked())
                self._workers[at].give(job)

    def _finished(self, waiting: deque[PointJob]) -> Iterator[PointRecord]:
        """Wait a while, and yield the records that have come; a process that ended is replaced by the next job."""
        busy = {worker.pipe: worker for worker in self._workers if worker.jobs}
        ready = wait(list(busy), _LOOK_S)
        for pipe in ready:
            worker = busy[pipe]  # type: ignore[index]  # they are pipes
            record = _received(worker)
            if record is None:
                yield self._lost(worker, waiting)
                continue
            worker.jobs.popleft()
            worker.since = time.monotonic()
            if worker.is_used_up and not worker.jobs:
                self._workers.remove(worker)
                _ended(worker)
            yield record
        for worker in [each for each in self._workers if each.jobs and (each.is_late or each.is_over)]:
            if worker.pipe.poll():
                continue  # its record came meanwhile
            worker.killed = worker.status is None
            yield self._lost(worker, waiting)

    def _lost(self, worker: _Worker, waiting: deque[PointJob]) -> PointRecord:
        """Return the record of the job whose process has ended; those that it had not begun go to others."""
        self._workers.remove(worker)
        job = worker.jobs.popleft()
        waiting.extend(worker.jobs)
        took_s = time.monotonic() - worker.since
        error = _why(worker, _limit_s(job), worker.end())
        return blank_record(job) | failure(error) | {"wall_s": took_s}

    def _forked(self) -> _Worker:
        ours, theirs = Pipe()
        report = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the worker
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child needs none of their locks
            pid = os.fork()
        if pid == 0:
            try:
                _serve(parent, theirs, report.fileno(), self._work)
            finally:
                os._exit(0)
        theirs.close()
        return _Worker(pid, ours, report)


def _ended(worker: _Worker) -> None:
    worker.end()
    worker.report.close()


def _received(worker: _Worker) -> PointRecord | None:
    """Return the record that a process sent; None where it has ended instead."""
    try:
        record: PointRecord = json.loads(worker.pipe.recv_bytes())
    except (OSError, EOFError, ValueError):
        return None
    return record


def _limit_s(job: PointJob) -> float | None:
    limit_s: float | None = job["run"]["options"].get("timeout_s")
    return limit_s


def _why(worker: _Worker, limit_s: float | None, status: int) -> KernbenchError:
    """Say what became of a process that has ended without a record."""
    size = os.fstat(worker.report.fileno()).st_size
    report = os.pread(worker.report.fileno(), size, 0).decode(errors="replace")
    worker.report.close()
    if limit_s is not None:
        if (ended := ended_by_limit(report, limit_s)) is not None:
            return ended
        if worker.killed:
            return limit_error(limit_s, "")
    if not os.WIFSIGNALED(status):
        return KernelError(
            f"the process of this point ended with exit code {os.waitstatus_to_exitcode(status)} and without a result; "
            "a bench must return, not end its process."
        )
    return _ended_by(os.WTERMSIG(status))


def _ended_by(number: int) -> KernbenchError:
    """Say what a signal tells of why a process has ended: a fault has its own, others are somebody's."""
    if number == signal.SIGKILL:
        return LimitError(
            "the process of this point was killed from outside (SIGKILL), as the system does where memory is "
            "exhausted; give it more, or fewer processes by -j."
        )
    names = {each.value: each.name for each in signal.Signals}  # those of real time have none
    told = f"{names.get(number, f'signal {number}')} ({signal.strsignal(number)})"
    why = "a library in C that the bench calls is faulty" if number in _FAULTS else "something else sent that to it"
    return KernelError(f"the process of this point was ended by {told}; {why}.")


def _serve(
    parent: int, pipe: Connection, report: int, work: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> None:
    """Carry out jobs until none comes; this is all that a forked process does."""
    os.setsid()  # Ctrl-C is for the process that was started; what a bench starts ends with this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
    _leave_files((pipe.fileno(), report))
    report_to(report)
    pid = os.getpid()
    while True:
        try:
            job = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        record = work(job)
        if os.getpid() != pid:
            return  # the bench forked, and this is its child
        pipe.send_bytes(json.dumps(record).encode())


def _leave_files(kept: tuple[int, ...]) -> None:
    """Have what is printed go nowhere, and no other file of the process that forked this one be open here."""
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as this runs
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else range(3):  # noqa: PTH208, PTH112
        if int(name) not in (*kept, nothing, sys.stdout.fileno()):
            with suppress(OSError):
                os.dup2(nothing, int(name))
