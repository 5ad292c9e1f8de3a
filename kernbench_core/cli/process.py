"""The process of a command: a parent that keeps its limit, and SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise

from kernbench_core.errors import KernelError, LimitError
from kernbench_core.process.interrupt import Termination


def own_process(body: Callable[[], int], given: Sequence[str], tell: Callable[[BaseException], int]) -> int:
    """Carry out a command that is all that this process does; return its exit code.

    With --timeout among what is `given`, `body` is called in a child of this process, which `tell`s of it where it had
    to be ended, or where a signal ended it. Without, it is called here.
    """
    most_s = limit_s(given)
    if most_s is None or not hasattr(os, "fork"):
        return body()
    from kernbench_core.process.supervision import supervised

    try:
        return supervised(body, most_s)
    except (LimitError, KernelError) as error:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K\x1b[?25h")  # a progress line may stand there, and the cursor be hidden
        return tell(error)


def limit_s(given: Sequence[str]) -> float | None:
    """Return what the option --timeout says, in s; None without one, and for one that the command will refuse."""
    if not any(arg.startswith("--timeout") for arg in given):
        return None
    from kernbench_core.units import parse_quantity

    texts = [arg.partition("=")[2] for arg in given if arg.startswith("--timeout=")]
    texts += [text for arg, text in pairwise(given) if arg == "--timeout"]
    with suppress(ValueError, IndexError):
        return float(parse_quantity(texts[-1], "time", positive=True)) * 1e-9
    return None


@contextmanager
def terminable() -> Iterator[Termination]:
    """Have SIGTERM end the command in order, and do as before afterwards, unless somebody handles it."""
    termination = Termination()
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield termination
        return
    signal.signal(signal.SIGTERM, termination)
    try:
        yield termination
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
