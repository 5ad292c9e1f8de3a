"""Points carried out by the workers of a Dask cluster, each recorded once whatever becomes of workers and scheduler.

Dask chooses a worker for each point, and sends the points of one that has ended to others. What is added here: a
scheduler that is not there yet, or has no workers, is waited for, and workers with other code are refused. One that has
gone ends the sweep, which goes on from its records.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib.util
import logging
import queue
import re
import secrets
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kernbench_builtin.sweeps.evaluate import blank_record, failure
from kernbench_builtin.sweeps.executors.base import PointJob, PointRecord
from kernbench_builtin.sweeps.executors.cluster.payload import pack
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_core.errors import KernbenchError, LimitError, UsageError, in_words
from kernbench_core.package import __version__
from kernbench_core.plugins import Plugins

#: What Dask raises where a connection is not there any more.
_LOST: Final = (OSError, asyncio.CancelledError, concurrent.futures.CancelledError)
_ADDRESS: Final = re.compile(r"(tcp|tls|wss?)://[^/\s]+:\d{1,5}")
_WORKER: Final = f"{__name__.rpartition('.')[0]}.worker"
#: How often a point is tried again where a worker could not begin it.
_RETRIES: Final = 3
#: How often workers are counted, in s.
_LOOK_S = 1.0
#: How long an answer and a farewell may take, in s.
_ANSWER_S, _FAREWELL_S = 60.0, 3.0


class ClusterError(KernbenchError):
    """The cluster of a sweep went away, or cannot carry out any point."""


def check_address(address: str) -> None:
    """Raise UsageError for a text that cannot be the address of a scheduler, or where Dask is missing."""
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"--scheduler must be the address of a Dask scheduler, as tcp://host:8786, not {address!r}; "
            "`dask scheduler` prints it."
        )
    if importlib.util.find_spec("distributed") is None:
        raise UsageError(
            "--scheduler needs the package distributed, which is not installed; pip install 'kernbench[cluster]'."
        )


class ClusterExecutor:
    """Carries out jobs on the workers of the scheduler at an address; each of them gets the `payload`, a zip file."""

    def __init__(self, address: str, payload: bytes, patience_s: float) -> None:
        self._address, self._payload, self._patience_s = address, payload, patience_s
        self._name = f"kernbench-{secrets.token_hex(6)}"
        self._client: Any = None
        #: Jobs that are sent, by key, and the futures of these when they are over.
        self._sent: dict[str, tuple[PointJob, Any]] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._records: deque[PointRecord] = deque()
        self._count = self._threads = 0
        self._counted_s = self._served_s = float("-inf")

    @classmethod
    def for_plan(cls, plan: SweepPlan, plugins: Plugins, address: str, patience_s: float) -> ClusterExecutor:
        """Return one for the points of a plan; UsageError for a wrong address."""
        check_address(address)
        return cls(address, pack(plan, plugins), patience_s)

    def run(self, jobs: Iterable[PointJob]) -> Iterator[PointRecord]:
        """Yield the record of each job as it finishes, in any order, one for each.

        Raise UsageError where a worker has other code, and ClusterError where the scheduler goes, where it or all
        workers are missed for longer than the patience, or can carry out no point. What was yielded before stays true.
        """
        coming = iter(jobs)
        try:
            if self._client is None:
                self._connect()
            self._served_s = time.monotonic()
            while True:
                self._count_threads()
                self._send(coming)
                if not self._sent:
                    return
                over = self._over()
                self._send(coming, len(over))  # before records are fetched: else workers would wait for that
                for future in over:
                    self._records.append(self._record(future))
                    del self._sent[future.key]
                    future.release()
                while self._records:
                    yield self._records.popleft()
        except _LOST:
            yield from self._records
            raise self._ended("does not answer") from None

    def _ended(self, how: str) -> ClusterError:
        return ClusterError(
            f"scheduler {self._address} {how}; every point that had finished is recorded: go on with --resume once it "
            "is there, with another --scheduler, or here without one."
        )

    def close(self) -> None:
        """Have workers stop what they evaluate, and end the connection."""
        if self._client is not None:
            for _, future in self._sent.values():
                future.release()
            with suppress(Exception):
                self._ask(self._client.run, _on_worker, "end", self._name, on_error="ignore", limit_s=_FAREWELL_S)
                self._ask(self._client.unregister_worker_plugin, self._name, limit_s=_FAREWELL_S)
        self._disconnect()

    def _count_threads(self) -> None:
        """Count the threads of all workers, if that was not done for a while; ClusterError where none come."""
        if time.monotonic() - self._counted_s > _LOOK_S:
            self._threads = sum(self._ask(self._client.nthreads).values())
            self._counted_s = time.monotonic()
        if self._threads:
            self._served_s = time.monotonic()
        elif time.monotonic() - self._served_s > self._patience_s:
            raise self._ended(f"has had no worker for {self._patience_s:g} s")

    def _connect(self) -> None:
        """Connect, send the payload, and have the workers that are there get ready."""
        from distributed import Client
        from distributed.diagnostics.plugin import UploadFile

        _set_log_level(logging.CRITICAL + 1)
        try:
            with warnings.catch_warnings(action="ignore"):  # of versions of libraries that play no part here
                make: Any = Client
                self._client = make(self._address, timeout=self._patience_s, set_as_default=False, name="kernbench")
        except _LOST:
            raise
        except Exception as error:
            raise ClusterError(f"scheduler {self._address} cannot be reached: {in_words(error)}") from error
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{self._name}.zip")
            path.write_bytes(self._payload)
            plugin = UploadFile(str(path), load=False)
        self._ask(self._client.register_plugin, plugin, name=self._name)
        found = self._ask(self._client.run, _on_worker, "prepare", self._name, on_error="return")
        wrong = [_why(f"worker {who}", told) for who, told in sorted(found.items()) if told is not None]
        if wrong:
            raise UsageError("\n".join(wrong))

    def _send(self, coming: Iterator[PointJob], over: int = 0) -> None:
        """Have a job sent for each thread beside `over` of them: one that waits would be blamed if its worker ended."""
        for job in islice(coming, max(0, max(self._threads, 1) - (len(self._sent) - over))):
            asked, key = ("evaluate_job", self._name, job), f"{self._name}-{self._count}"
            future = self._client.submit(_on_worker, *asked, key=key, retries=_RETRIES, pure=False)
            self._sent[key] = job, future
            self._count += 1
            future.add_done_callback(self._done.put)

    def _over(self) -> list[Any]:
        """Return the futures of jobs that are over, after a while at most."""
        over = []
        with suppress(queue.Empty):
            over.append(self._done.get(timeout=_LOOK_S))
            while True:
                over.append(self._done.get_nowait())
        return [future for future in over if future.key in self._sent]

    def _record(self, future: Any) -> PointRecord:
        """Return the record of a job that is over; raise ClusterError where no worker could begin it."""
        from distributed.scheduler import KilledWorker

        try:
            record: PointRecord = future.result(timeout=_ANSWER_S)
            return record
        except _LOST:
            raise
        except KilledWorker as error:
            limit = LimitError(
                f"the point was sent to {error.allowed_failures + 1} workers, and each ended while running it; run "
                "it alone to see why, and give workers more memory if it needs that."
            )
            return blank_record(self._sent[future.key][0]) | failure(limit)
        except Exception as error:
            told = f"{_why('a worker', error)} Every point that had finished is recorded: go on with --resume."
            raise ClusterError(told) from error

    def _disconnect(self) -> None:
        if self._client is not None:
            with suppress(*_LOST):
                self._client.close(timeout=_FAREWELL_S)
            self._client = None
        _set_log_level(logging.NOTSET)

    def _ask(self, question: Callable[..., Any], *args: Any, limit_s: float = _ANSWER_S, **named: Any) -> Any:
        """Return what a method of the client answers, in so long at most."""
        return self._client.sync(question, *args, callback_timeout=limit_s, **named)


def _why(who: str, error: object) -> str:
    """Say why a worker cannot evaluate points, in a sentence."""
    if isinstance(error, UsageError):
        return str(error)
    told = in_words(error).rstrip(".") if isinstance(error, BaseException) else repr(error)
    return f"{who} must have kernbench {__version__} and be able to evaluate points, but {told}; look at its log."


def _set_log_level(level: int) -> None:
    """Have Dask write what is at least of a level: sentences of ours tell what is to be known."""
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(level)


def _by_value() -> Callable[..., Any]:
    """Return what calls a function of `worker` there: a local function, as those are sent by value.

    So the scheduler, which looks at all that it passes on, need not have kernbench.
    """

    def call(function: str, *args: Any, dask_worker: Any = None) -> Any:
        from distributed import get_worker

        return getattr(import_module(_WORKER), function)(*args, dask_worker or get_worker())

    return call


_on_worker: Final = _by_value()
