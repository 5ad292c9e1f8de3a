"""Processes that simulate or prove beside this one: they end with the block that started them, or with its process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Final, NoReturn

from kernbench_core.lifeline import end_with

_PATIENCE_S = 2.0
"""How long a process may take to end when it is told to, before it is made to, in s."""

TERMINATED: Final = 128 + signal.SIGTERM
"""The exit code of a command that SIGTERM ended."""


@contextmanager
def process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Give so many processes, which begin anew and end with the block. SIGTERM ends the block as SystemExit does."""
    before = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # where it cannot start, semaphores made before it would stay for ever
    with _orderly_end():
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(os.getpid(),))
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            started = [child for child in multiprocessing.active_children() if child not in before]
            for child in started:
                child.terminate()
            for child in started:
                child.join(_PATIENCE_S)
                if child.is_alive():
                    child.kill()
                    child.join()


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


def _begin(parent: int) -> None:
    """Leave Ctrl-C to the process that started this one, which ends it; and end when that process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
