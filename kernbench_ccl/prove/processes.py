"""Processes that simulate or prove beside this one: they end with the block that started them, or with its process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Final, NoReturn

from kernbench_core.errors import LimitError
from kernbench_core.process import end_with, ended_by_limit, report_to

_PATIENCE_S = 2.0
"""How long a process may take to end when it is told to, before it is made to, in s."""

TERMINATED: Final = 128 + signal.SIGTERM
"""The exit code of a command that SIGTERM ended."""


@contextmanager
def process_pool(workers: int, limit_s: float | None = None) -> Iterator[ProcessPoolExecutor]:
    """Give so many processes, which begin anew and end with the block. SIGTERM ends the block as SystemExit does.

    LimitError where one of them ends otherwise: `limit_s` is the limit on wall time, in s, that each job keeps to.
    """
    before = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # where it cannot start, semaphores made before it would stay for ever
    with _orderly_end():
        reader, writer = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(os.getpid(), writer))
        try:
            yield pool
        except BrokenProcessPool:
            raise _lost(reader, limit_s) from None
        finally:
            reader.close()
            writer.close()
            manager = getattr(pool, "_executor_manager_thread", None)
            pool.shutdown(wait=False, cancel_futures=True)
            started = [child for child in multiprocessing.active_children() if child not in before]
            for child in started:
                child.terminate()
            for child in started:
                child.join(_PATIENCE_S)
                if child.is_alive():
                    child.kill()
                    child.join()
            if manager is not None:  # the interpreter's end would write to the pipe that it is closing
                manager.join(_PATIENCE_S)


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Have SIGTERM raise SystemExit unless somebody handles it, so that processes and their semaphores are ended."""
    usual = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or usual != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(TERMINATED)


def _begin(parent: int, report: Connection) -> None:
    """Leave Ctrl-C to the process that started this one, which ends it; and end when that process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
    report_to(os.dup(report.fileno()))


def _lost(reports: Connection, limit_s: float | None) -> LimitError:
    """Return why a process ended that had work to do: what it reported, or what is likely."""
    os.set_blocking(reports.fileno(), False)
    report = b""
    with suppress(BlockingIOError):
        report = os.read(reports.fileno(), 1 << 16)
    found = None if limit_s is None else ended_by_limit(report.decode(errors="replace"), limit_s)
    return found or LimitError(
        "a worker process must not end early, but one did, perhaps because the system ran out of memory; give fewer "
        "--jobs, or a smaller problem."
    )
