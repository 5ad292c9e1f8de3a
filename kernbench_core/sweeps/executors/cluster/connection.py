"""One connection to a Dask scheduler: whatever ends it, its methods raise `ConnectionLost`, and another is made.

Dask's client reconnects by itself, but answers nothing meanwhile, for as long as it likes, and forgets what was sent.
So a connection that fails is given up at once. All calls have limits, and Dask's own log stays off the terminal.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib.util
import logging
import queue
import warnings
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import attrs

from kernbench_core.errors import UsageError, in_words
from kernbench_core.sweeps.executors.base import PointJob, PointRecord
from kernbench_core.sweeps.executors.cluster import worker
from kernbench_core.sweeps.executors.cluster.luggage import Luggage

#: What Dask raises where a connection is not there any more.
_LOST = (OSError, TimeoutError, RuntimeError, asyncio.CancelledError, concurrent.futures.CancelledError)
_SCHEMES = ("tcp", "tls", "ws", "wss")
#: How long one question to scheduler or workers may take, in s.
ANSWER_S = 15.0
#: How long it may take to fetch results from workers, in s.
FETCH_S = 5.0
#: How long workers may take to unpack files and to start the process that evaluates, in s.
PREPARE_S = 120.0
#: How long an attempt to connect may take, in s.
CONNECT_S = 5.0
#: How long it may take to say goodbye, in s.
GOODBYE_S = 3.0


class ConnectionLost(Exception):
    """The scheduler does not answer any more, or nothing listens at its address."""


@attrs.frozen
class PointAnswer:
    """What became of a ticket: the record, or None where no record came.

    `is_ended` says that the process ended which evaluated the point, and not the worker; `fault` why no point can be
    evaluated.
    """

    ticket: str
    record: PointRecord | None = None
    is_ended: bool = False
    fault: str = ""


def check_address(address: str) -> str:
    """Return the address of a scheduler; raise UsageError for a text that cannot be one, or where Dask is missing."""
    try:
        found = urlsplit(address)
        good = found.scheme in _SCHEMES and bool(found.hostname and found.port) and not found.path
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            f"--scheduler must be the address of a Dask scheduler, as tcp://host:8786, not {address!r}; "
            "`dask scheduler` prints it."
        )
    if importlib.util.find_spec("distributed") is None:
        raise UsageError(
            "--scheduler needs the package distributed, which is not installed; pip install 'kernbench[cluster]'."
        )
    return address


def _check_security(address: str) -> None:
    """Raise UsageError where Dask's configuration has no certificates for an address that needs them."""
    from distributed.security import Security

    security: Any = Security
    if urlsplit(address).scheme in ("tls", "wss") and not security().get_connection_args("client").get("ssl_context"):
        raise UsageError(
            f"scheduler {address} must be given certificates, and Dask's configuration has none; set those of "
            "distributed.comm.tls, or take an address with tcp://."
        )


class Connection:
    """A client of the scheduler at an address, for as long as that answers."""

    def __init__(self, address: str) -> None:
        from distributed import Client

        make: Any = Client
        _check_security(address)
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._futures: dict[str, Any] = {}
        self._quiet = _quiet()
        self._quiet.__enter__()
        try:
            with warnings.catch_warnings():  # of versions of libraries that play no part here
                warnings.filterwarnings("ignore", module=r"distributed\.")
                self._client = make(address, timeout=CONNECT_S, set_as_default=False, name="kernbench")
        except BaseException as error:
            self._quiet.__exit__(None, None, None)
            if isinstance(error, _LOST):
                raise ConnectionLost(str(error)) from None
            if isinstance(error, Exception):
                raise UsageError(
                    f"scheduler {address} must understand the version of distributed that is installed here, "
                    f"{version('distributed')}, and its security, but {in_words(error).rstrip('.')}; look at both."
                ) from error
            raise

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker that is there, by address."""
        found: Mapping[str, int] = self._ask(lambda: self._client.nthreads(), ANSWER_S)
        return dict(found)

    def scheduler_fault(self) -> str:
        """Return why the scheduler cannot pass points on, "" where it can: it has to know the function that is sent."""
        try:
            found = self._ask(lambda: self._client.run_on_scheduler(worker.is_known), ANSWER_S)
        except ConnectionLost:
            raise
        except Exception as error:  # what it raised there
            return in_words(error)
        return "" if found is True else repr(found)

    def prepare(self, workers: Collection[str], luggage: Luggage) -> dict[str, Any]:
        """Have workers get ready for a sweep; return what each has installed, or the exception that it met."""
        found: Mapping[str, Any] = self._run(worker.prepare, workers, PREPARE_S, luggage.packed())
        return dict(found)

    def submit(self, ticket: str, address: str, sweep: str, job: PointJob) -> None:
        """Send a job to one worker."""
        self._check()
        future = self._client.submit(
            worker.evaluate_job, sweep, job,
            key=ticket, workers=[address], allow_other_workers=False, pure=False,
        )  # fmt: skip
        self._futures[ticket] = future
        future.add_done_callback(self._answers.put)

    def answers(self, wait_s: float) -> list[PointAnswer]:
        """Return what has been answered, after about this time at most; faults last.

        Neither workers nor scheduler keep any of it.
        """
        done = []
        with suppress(queue.Empty):
            done.append(self._answers.get(timeout=wait_s) if wait_s else self._answers.get_nowait())
            while True:
                done.append(self._answers.get_nowait())
        self._check()
        ours = [future for future in done if future.key in self._futures]
        if any(future.status == "cancelled" for future in ours):  # not by us: the scheduler is gone
            raise ConnectionLost
        results = self._results([future for future in ours if future.status == "finished"])
        answers = [self._answer(future, results.get(future.key)) for future in ours]
        self.forget(answer.ticket for answer in answers)
        return sorted(answers, key=lambda answer: answer.fault)

    def _answer(self, future: Any, result: Mapping[str, Any] | None) -> PointAnswer:
        if future.status != "error":
            return PointAnswer(future.key, *((result.get("record"), "ended" in result) if result is not None else ()))
        from distributed.scheduler import KilledWorker

        try:
            error = future.exception(timeout=ANSWER_S)
        except _LOST as lost:
            raise ConnectionLost(str(lost)) from None
        return PointAnswer(future.key, fault="" if isinstance(error, KilledWorker) else in_words(error))

    def _results(self, finished: list[Any]) -> dict[str, Any]:
        """Return what workers gave, by ticket, without what was lost with its worker meanwhile."""
        if not finished:
            return {}
        found = self._gathered(finished)
        if len(found) == len(finished):
            return dict(zip((future.key for future in finished), found, strict=True))
        each = {future.key: self._gathered([future]) for future in finished}
        return {ticket: found[0] for ticket, found in each.items() if found}

    def _gathered(self, futures: list[Any]) -> list[Any]:
        try:
            found: list[Any] = self._ask(lambda: self._client.gather(futures, errors="skip"), FETCH_S)
        except ConnectionLost:
            self._check()
            return []
        return found

    def forget(self, tickets: Iterable[str]) -> None:
        """Have the scheduler forget tickets, whatever is known of them."""
        mine = [self._futures.pop(ticket) for ticket in tickets if ticket in self._futures]
        for future in mine:
            future.release()

    def end(self, sweep: str) -> None:
        """Have all workers stop what they evaluate for a sweep, and remove its files, as far as they can be reached."""
        with suppress(ConnectionLost):
            self._run(worker.end, None, GOODBYE_S, sweep)

    def close(self) -> None:
        """End the connection; whatever is not answered is dropped."""
        self.forget(list(self._futures))
        try:
            self._client.close(timeout=GOODBYE_S)
        except (OSError, TimeoutError):
            pass
        finally:
            self._quiet.__exit__(None, None, None)

    def _run(self, function: Callable[..., Any], workers: Collection[str] | None, limit_s: float, *args: Any) -> Any:
        chosen = None if workers is None else list(workers)
        return self._ask(lambda: self._client.run(function, *args, workers=chosen, on_error="return"), limit_s)

    def _ask(self, question: Callable[[], Awaitable[Any]], limit_s: float) -> Any:
        """Await an answer in the loop of the client, at most so long."""

        async def asked() -> Any:
            return await question()

        self._check()
        coming = asyncio.run_coroutine_threadsafe(asked(), self._client.loop.asyncio_loop)
        try:
            return coming.result(limit_s)
        except _LOST as error:
            coming.cancel()
            raise ConnectionLost(str(error)) from None

    def _check(self) -> None:
        if self._client.status != "running":
            raise ConnectionLost


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Dask and its network library log off the terminal: a sentence tells of it."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    loggers += [
        found
        for name, found in logging.root.manager.loggerDict.items()
        if isinstance(found, logging.Logger) and name.startswith(("distributed.", "tornado."))
    ]
    before = [(each.handlers, each.propagate) for each in loggers]
    for each in loggers:
        each.handlers, each.propagate = [logging.NullHandler()], False
    try:
        yield
    finally:
        for each, (handlers, propagate) in zip(loggers, before, strict=True):
            each.handlers, each.propagate = handlers, propagate
