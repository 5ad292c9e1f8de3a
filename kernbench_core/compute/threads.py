"""Threads over independent parts of a computation, with the matrix library's own threads kept out of it.

Both at once would be more threads than cores. Where the library cannot be told to use one, it keeps its own instead.
Answers come in the order of the parts, so nothing depends on which thread was faster.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

_Answer = TypeVar("_Answer")
_MOST_THREADS: Final = 16
#: So often a thread comes back for more: whoever waits for the answers is woken as rarely.
_TURNS: Final = 8
#: How OpenBLAS calls its functions, by who built it.
_NAMES: Final = [(before, after) for before in ("scipy_openblas_", "openblas_") for after in ("64_", "")]


def threads() -> int:
    """Return how many threads a computation may have here."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_THREADS)


def in_threads(parts: Sequence[Callable[[], _Answer]]) -> Iterator[_Answer]:
    """Yield what each part returns, in their order; several are computed at a time where that is faster."""
    count = min(threads(), len(parts))
    if count < 2 or len(parts) < threads() or _openblas() is None:
        yield from one_by_one(parts)
        return
    each = -(-len(parts) // (count * _TURNS))
    runs = [parts[first : first + each] for first in range(0, len(parts), each)]
    with _one_blas_thread(), ThreadPoolExecutor(count, "kernbench-phase-2") as pool:
        try:
            for run in [pool.submit(_answers, run) for run in runs]:
                answers, error = run.result()
                yield from answers
                if error is not None:
                    raise error
        finally:
            pool.shutdown(cancel_futures=True)


def in_one_thread(parts: Sequence[Callable[[], _Answer]]) -> Iterator[_Answer]:
    """Yield what each part returns; the matrix library, too, computes in this thread."""
    if not parts or _openblas() is None:
        yield from one_by_one(parts)
    else:
        with _one_blas_thread():
            yield from one_by_one(parts)


def one_by_one(parts: Iterable[Callable[[], _Answer]]) -> Iterator[_Answer]:
    """Yield what each part returns."""
    for part in parts:
        yield part()


def _answers(parts: Sequence[Callable[[], _Answer]]) -> tuple[list[_Answer], BaseException | None]:
    """Return what parts return, up to one that raises, and what it raised."""
    answers: list[_Answer] = []
    try:
        for part in parts:
            answers.append(part())
    except BaseException as error:
        return answers, error
    return answers, None


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Have the matrix library compute in the thread that calls it."""
    found = _openblas()
    assert found is not None, "nobody asks where there is no library to tell"
    get, put = found
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return how many threads numpy's own OpenBLAS has, and what sets that; None where it has another library."""
    package = Path(np.__file__).parent
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        for file in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(file))
            for before, after in _NAMES:
                get = getattr(library, f"{before}get_num_threads{after}", None)
                put = getattr(library, f"{before}set_num_threads{after}", None)
                if get is not None and put is not None:
                    return get, put
    return None
