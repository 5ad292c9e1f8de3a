"""Points carried out by the workers of a Dask cluster, each recorded once whatever becomes of workers and scheduler.

A worker that ends costs the points it had, which others are sent; one that joins is sent points once it has been looked
at. A scheduler that goes is waited for, and so is one without workers, for the patience that was asked for.
"""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from kernbench_core.errors import KernbenchError, KernbenchWarning, LimitError, UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.sweeps.evaluate import blank_record, failure
from kernbench_core.sweeps.executors.base import PATIENCE_S, PointJob, PointRecord
from kernbench_core.sweeps.executors.cluster.connection import Connection, ConnectionLost, PointAnswer, check_address
from kernbench_core.sweeps.executors.cluster.dispatch import Dispatch
from kernbench_core.sweeps.executors.cluster.luggage import Luggage, pack
from kernbench_core.sweeps.executors.cluster.sameness import differences, installed
from kernbench_core.sweeps.plan import SweepPlan

#: How often it is looked which workers are there, in s.
_LOOK_S = 1.0
#: How long there is between two attempts to connect, in s.
_PAUSE_S = 0.5


def _warn(sentence: str) -> None:
    warnings.warn(sentence, KernbenchWarning, stacklevel=2)


class ClusterError(KernbenchError):
    """The cluster of a sweep went away, or cannot carry out any point."""


@attrs.define(kw_only=True)
class ClusterExecutor:
    """Carries out jobs on the workers of the scheduler at `address`; a context manager.

    `luggage` goes to each worker before its first job, `installed` is what every worker must have. `warn` is told in a
    sentence of workers that cannot be used, and of the scheduler when it goes and when it comes back.
    """

    address: str = attrs.field(converter=check_address)
    luggage: Luggage
    installed: Mapping[str, Any]
    patience_s: float = PATIENCE_S
    warn: Callable[[str], None] = _warn
    connect: Callable[[str], Connection] = Connection
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _dispatch: Dispatch = attrs.field(init=False)
    _connection: Connection | None = attrs.field(default=None, init=False)
    _refused: set[str] = attrs.field(factory=set, init=False)
    _looked_s: float = attrs.field(default=float("-inf"), init=False)
    _served_s: float = attrs.field(default=0.0, init=False)
    _begun: bool = attrs.field(default=False, init=False)
    _given_up: list[PointRecord] = attrs.field(factory=list, init=False)
    _answers: deque[PointAnswer] = attrs.field(factory=deque, init=False)

    def __attrs_post_init__(self) -> None:
        self._dispatch = Dispatch(self.luggage.sweep)

    @classmethod
    def for_plan(cls, plan: SweepPlan, plugins: Plugins, address: str, patience_s: float) -> ClusterExecutor:
        """Return one for the points of a plan; UsageError for a wrong address, and for files that cannot travel."""
        check_address(address)
        return cls(address=address, luggage=pack(plan, plugins), installed=installed(plugins), patience_s=patience_s)

    def __enter__(self) -> ClusterExecutor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def run(self, jobs: Iterable[PointJob]) -> Iterator[PointRecord]:
        """Yield the record of each job as it finishes, in any order, one for each.

        Raise UsageError where nothing listens at the address, and where a worker has something else installed; and
        ClusterError where the cluster is gone for longer than the patience. What was yielded before stays true.
        """
        coming = iter(jobs)
        if not self._begun:
            self._begin()
        self._served_s = self.clock()
        more = True
        while more or not self._dispatch.is_idle:
            try:
                connection = self._connected()
                if connection is not None:
                    self._look(connection)
                    more = self._fill(connection, coming) and more
                    yield from self._taken()
                    self._answers.extend(connection.answers(_LOOK_S if self._dispatch.tickets else 0.0))
                    while self._answers:
                        yield from self._record(connection, self._answers.popleft())
                yield from self._taken()
            except ConnectionLost:
                self._lost()
            self._check_patience()

    @property
    def has_more(self) -> bool:
        """Whether another record has come by now."""
        return bool(self._given_up or self._answers)

    def close(self) -> None:
        """Have workers stop what they evaluate, and end the connection."""
        if self._connection is not None:
            self._connection.end(self.luggage.sweep)
            self._connection.close()
            self._connection = None

    def _begin(self) -> None:
        """Connect, and look at the workers that are there."""
        try:
            self._connection = self.connect(self.address)
            fault = self._connection.scheduler_fault()
            if fault:
                raise UsageError(f"scheduler {self.address} must have kernbench installed, too: {fault}.")
            wrong = self._join(self._connection, self._connection.workers())
        except ConnectionLost:
            raise UsageError(
                f"scheduler {self.address} must answer, and does not; start it with `dask scheduler`, and look whether "
                "its port can be reached from here."
            ) from None
        if wrong:
            raise UsageError("\n".join(wrong))
        self._begun = True

    def _connected(self) -> Connection | None:
        """Return the connection, a new one after the last was lost; None where there is none yet."""
        if self._connection is None:
            try:
                self._connection = self.connect(self.address)
            except ConnectionLost:
                self.sleep(_PAUSE_S)
            else:
                self._looked_s = float("-inf")
                self.warn(f"scheduler {self.address} is back; going on.")
        return self._connection

    def _lost(self) -> None:
        """Give a connection up: what was sent by it is sent again by the next."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._dispatch.leave_all()
        self.warn(
            f"scheduler {self.address} does not answer any more; waiting up to {self.patience_s:g} s for it to come "
            "back."
        )

    def _check_patience(self) -> None:
        if self._dispatch.workers:
            self._served_s = self.clock()
        elif self.clock() - self._served_s > self.patience_s:
            what = "has not come back" if self._connection is None else "has had no worker that can be used"
            raise ClusterError(
                f"scheduler {self.address} {what} for {self.patience_s:g} s; every point that had finished is "
                "recorded: go on with --resume once it is there, with another --scheduler, or here without one."
            )

    def _look(self, connection: Connection) -> None:
        """Take note of workers that have gone and that have joined, if it was not looked for a while."""
        if self.clock() - self._looked_s < _LOOK_S and self._dispatch.workers:
            return
        there = connection.workers()
        self._looked_s = self.clock()
        for gone in self._dispatch.workers - there.keys():
            self._leave(connection, gone)
        self._refused &= there.keys()
        known = self._dispatch.workers | self._refused
        for sentence in self._join(connection, {each: n for each, n in there.items() if each not in known}):
            self.warn(f"{sentence} It is sent no points.")
        if not self._dispatch.workers:
            self.sleep(_PAUSE_S)

    def _join(self, connection: Connection, workers: Mapping[str, int]) -> list[str]:
        """Get workers ready, and send points to those that have the same installed; tell of the others."""
        if not workers:
            return []
        told = connection.prepare(list(workers), self.luggage)
        still_there = connection.workers()
        wrong = []
        for address, threads in sorted(workers.items()):
            if address not in still_there or address not in told:
                continue
            sentence = differences(f"worker {address}", told[address], self.installed)
            if sentence is None:
                self._dispatch.join(address, threads)
            else:
                self._refused.add(address)
                wrong.append(sentence)
        return wrong

    def _leave(self, connection: Connection, worker: str) -> None:
        """Send a worker that is gone nothing more; record points that have taken too many with them."""
        before = self._dispatch.tickets
        for job in self._dispatch.leave(worker):
            self._give_up(job)
        connection.forget(before - self._dispatch.tickets)

    def _give_up(self, job: PointJob) -> None:
        self._given_up.append(
            blank_record(job)
            | failure(
                LimitError(
                    f"the point was sent to {self._dispatch.tries} workers, each of which ended while it was "
                    "evaluated; run it alone to see why, and give workers more memory if it needs that."
                )
            )
        )

    def _taken(self) -> Iterator[PointRecord]:
        """Yield the records of points that were given up."""
        while self._given_up:
            yield self._given_up.pop(0)

    def _fill(self, connection: Connection, coming: Iterator[PointJob]) -> bool:
        """Send jobs as long as a worker has room for one; return whether there may be more."""
        while (worker := self._dispatch.free_worker()) is not None:
            job = self._dispatch.next_waiting()
            if job is None:
                job = next(coming, None)
                if job is None:
                    return False
            connection.submit(self._dispatch.send(job, worker), worker, self.luggage.sweep, job)
        return True

    def _record(self, connection: Connection, answer: PointAnswer) -> Iterator[PointRecord]:
        """Yield the record that an answer holds; without one, have the job sent again."""
        worker = self._dispatch.worker_of(answer.ticket)
        if worker is None:
            return
        if answer.fault:
            raise ClusterError(
                f"worker {worker} cannot evaluate points: {answer.fault}; look at its log. Every point that had "
                "finished is recorded: go on with --resume."
            )
        if answer.record is not None:
            self._dispatch.answered(answer.ticket)
            yield answer.record
        elif answer.is_ended:  # the worker is there, the process that it had evaluate the point is not
            job = self._dispatch.failed(answer.ticket)
            if job is not None:
                self._give_up(job)
        else:  # it went with its worker, or that has another process by now
            self._leave(connection, worker)
            self._looked_s = float("-inf")
