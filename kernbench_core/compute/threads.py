"""The threads of numpy's matrix library: of small products they wait for each other longer than they compute."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

#: How OpenBLAS calls its functions, by who built it.
_NAMES: Final = [(before, after) for before in ("scipy_openblas_", "openblas_") for after in ("64_", "")]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have the matrix library compute in the thread that calls it; one that cannot be told goes on as it does."""
    found = _openblas()
    if found is None:
        yield
        return
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
