"""A cluster of the mind: workers and a scheduler that come, go and answer as a test says, with a clock of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

from attrs import define, field

from kernbench_core.sweeps.executors.cluster.connection import ConnectionLost, PointAnswer
from kernbench_core.sweeps.executors.cluster.executor import ClusterExecutor
from kernbench_core.sweeps.executors.cluster.luggage import Luggage

ADDRESS = "tcp://fake:8786"
#: What every good worker has installed.
SAME = {"kernbench": "1", "plugins": {}, "files": {}}


@define
class FakeCluster:
    """`steps` are called one at a time, whenever the executor waits; then each worker answers its oldest job.

    `losing` is a worker that ends while it gets ready.
    """

    threads: dict[str, int] = field(factory=lambda: {"a": 1, "b": 1})
    installed: dict[str, Any] = field(factory=dict)
    steps: deque[Callable[[], None]] = field(factory=deque)
    is_up: bool = True
    scheduler_fault: str = ""
    now_s: float = 0.0
    sent: dict[str, tuple[str, Any]] = field(factory=dict)
    answers: list[PointAnswer] = field(factory=list)
    evaluated: list[str] = field(factory=list)
    prepared: list[str] = field(factory=list)
    poison: set[str] = field(factory=set)
    told: list[str] = field(factory=list)
    ended: list[str] = field(factory=list)
    is_lost: bool = False
    losing: str | None = None

    def executor(self, patience_s: float = 60.0) -> ClusterExecutor:
        """Return an executor on this cluster."""
        return ClusterExecutor(
            address=ADDRESS, luggage=Luggage({}, "/", sweep="s"), installed=SAME, patience_s=patience_s,
            warn=self.told.append, connect=lambda _: FakeConnection(self), clock=lambda: self.now_s, sleep=self.pass_s,
        )  # fmt: skip

    def pass_s(self, time_s: float) -> None:
        """Let time pass, in which the next step happens."""
        self.now_s += time_s
        if self.steps:
            self.steps.popleft()()

    def work(self) -> None:
        """Have each worker answer its oldest job, or end with it where that is poison."""
        for worker in list(self.threads):
            mine = [(ticket, job) for ticket, (where, job) in self.sent.items() if where == worker]
            for ticket, job in mine[:1]:
                if job["key"] in self.poison:
                    self.lose_worker(worker)
                else:
                    del self.sent[ticket]
                    self.evaluated.append(job["key"])
                    self.answers.append(PointAnswer(ticket, {"key": job["key"], "status": "ok"}))

    def lose_worker(self, name: str) -> None:
        """End a worker; what it was sent is never answered."""
        self.threads.pop(name, None)

    def lose_scheduler(self) -> None:
        """End the scheduler, with all that it knew, and its workers with it."""
        self.is_up = False
        self.is_lost = True
        self.sent.clear()
        self.answers.clear()
        self.threads.clear()

    def start_scheduler(self, **threads: int) -> None:
        """Start the scheduler again, with other workers."""
        self.is_up = True
        self.threads.update(threads)


@define
class FakeConnection:
    """What `Connection` is to a cluster."""

    cluster: FakeCluster

    def __attrs_post_init__(self) -> None:
        self.cluster.is_lost = False
        self._check()

    def _check(self) -> None:
        if not self.cluster.is_up or self.cluster.is_lost:
            raise ConnectionLost

    def scheduler_fault(self) -> str:
        return self.cluster.scheduler_fault

    def workers(self) -> dict[str, int]:
        self._check()
        return dict(self.cluster.threads)

    def prepare(self, workers: Collection[str], luggage: Luggage) -> dict[str, Any]:
        self._check()
        self.cluster.prepared += workers
        found = {each: self.cluster.installed.get(each, SAME) for each in workers if each in self.cluster.threads}
        if self.cluster.losing is not None:
            self.cluster.lose_worker(self.cluster.losing)
        return found

    def submit(self, ticket: str, address: str, sweep: str, job: Any) -> None:
        self._check()
        assert sweep == "s"
        self.cluster.sent[ticket] = (address, job)

    def answers(self, wait_s: float) -> list[PointAnswer]:
        self.cluster.pass_s(wait_s)
        self._check()
        self.cluster.work()
        found = self.cluster.answers
        self.cluster.answers = []
        return found

    def forget(self, tickets: Iterable[str]) -> None:
        for ticket in tickets:
            self.cluster.sent.pop(ticket, None)

    def end(self, sweep: str) -> None:
        self.cluster.ended.append(sweep)

    def close(self) -> None:
        self.cluster.ended.append("closed")
