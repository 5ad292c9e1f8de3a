"""Which worker evaluates which point: a ledger that knows no network, so that every order of events can be tried.

A job is *waiting* (it was on a worker that is gone, and is to be sent again), or *out* with one worker under a ticket
of its own. Tickets are never used twice: an answer to an old one is nobody's, so that no point is answered twice.
"""

from __future__ import annotations

from collections import Counter, deque

import attrs

from kernbench_core.sweeps.executors.base import PointJob

#: How often a point is sent whose worker ended while it was evaluated, before it is recorded as failed.
TRIES = 3
#: How many points a worker is sent beyond those that its threads evaluate, so that none waits for the network.
AHEAD = 1


@attrs.frozen
class _Out:
    job: PointJob
    worker: str


@attrs.define
class Dispatch:
    """The ledger of one sweep: `sweep` is a part of each ticket, `tries` what one job may cost in workers."""

    sweep: str
    tries: int = TRIES
    _threads: dict[str, int] = attrs.field(factory=dict, init=False)
    _out: dict[str, _Out] = attrs.field(factory=dict, init=False)
    _waiting: deque[PointJob] = attrs.field(factory=deque, init=False)
    _lost: Counter[str] = attrs.field(factory=Counter, init=False)
    _tickets: int = attrs.field(default=0, init=False)

    @property
    def is_idle(self) -> bool:
        """Whether no job is out and none is waiting."""
        return not self._out and not self._waiting

    @property
    def workers(self) -> frozenset[str]:
        """The workers that are sent jobs."""
        return frozenset(self._threads)

    @property
    def threads(self) -> int:
        """How many points all workers evaluate at once."""
        return sum(self._threads.values())

    @property
    def tickets(self) -> frozenset[str]:
        """The tickets that are out."""
        return frozenset(self._out)

    def join(self, worker: str, threads: int) -> None:
        """Send jobs to a worker from now on."""
        self._threads[worker] = threads

    def leave(self, worker: str) -> list[PointJob]:
        """Send a worker nothing more: it is gone, and its jobs wait for another; return those that are given up.

        The worker began its oldest jobs, one per thread. Each of these may be why it ended, and is given up when that
        was its last try.
        """
        threads = self._threads.pop(worker, 0)
        mine = [ticket for ticket, out in self._out.items() if out.worker == worker]
        given_up = []
        for place, ticket in enumerate(mine):
            job = self._out.pop(ticket).job
            if place >= threads:
                self._waiting.append(job)
            elif self._count(job):
                given_up.append(job)
        return given_up

    def leave_all(self) -> None:
        """Forget all workers: the connection to them is gone, for which no job is to blame."""
        self._threads.clear()
        self._waiting.extend(out.job for out in self._out.values())
        self._out.clear()

    def free_worker(self) -> str | None:
        """Return the worker that has the fewest jobs for its threads; None where all have as many as they are sent."""
        jobs = Counter(out.worker for out in self._out.values())
        free = [worker for worker, threads in self._threads.items() if jobs[worker] < threads + AHEAD]
        return min(free, key=lambda worker: (jobs[worker] / self._threads[worker], worker), default=None)

    def next_waiting(self) -> PointJob | None:
        """Take the job that has waited longest; None where none does."""
        return self._waiting.popleft() if self._waiting else None

    def send(self, job: PointJob, worker: str) -> str:
        """Note that `worker` has the job now, and return the ticket."""
        self._tickets += 1
        ticket = f"kernbench-{self.sweep}-{job['key'][:12]}-{self._tickets}"
        self._out[ticket] = _Out(job, worker)
        return ticket

    def answered(self, ticket: str) -> PointJob | None:
        """Return the job of a ticket that was answered, which then is done; None for a ticket that is not out."""
        out = self._out.pop(ticket, None)
        return None if out is None else out.job

    def worker_of(self, ticket: str) -> str | None:
        """Return who has the job of a ticket; None for a ticket that is not out."""
        out = self._out.get(ticket)
        return None if out is None else out.worker

    def failed(self, ticket: str) -> PointJob | None:
        """Count a try against the job of a ticket; return it if that was its last, else have it sent again."""
        job = self.answered(ticket)
        return None if job is None or not self._count(job) else job

    def _count(self, job: PointJob) -> bool:
        """Count a try; return whether it was the last, or have the job wait."""
        self._lost[job["key"]] += 1
        if self._lost[job["key"]] >= self.tries:
            return True
        self._waiting.append(job)
        return False
