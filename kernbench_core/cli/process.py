"""The process of a command: a parent that keeps its limit, SIGTERM, and threads that were left running."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import KernelError, LimitError
from kernbench_core.process.interrupt import Termination
from kernbench_core.process.quiet_exit import QuietExit

#: How long threads that a program left running may take to end, in s.
_PATIENCE_S = 2.0


def own_process(body: Callable[[], int], given: Sequence[str], tell: Callable[[BaseException], int]) -> int:
    """Carry out a command that is all that this process does; return its exit code.

    With --timeout among what is `given`, `body` is called in a child of this process, which `tell`s of it where it had
    to be ended, or where the program in it ended it. Without, it is called here.
    """
    most_s = limit_s(given)
    if most_s is None or not hasattr(os, "fork"):
        return _threads_end(body())
    from kernbench_core.process.supervision import KilledError, end_likewise, supervised

    try:
        return supervised(lambda: _threads_end(body()), most_s, Shell().warn)
    except (LimitError, KernelError, KilledError) as error:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K\x1b[?25h")  # a progress line may stand there, and the cursor be hidden
        code = tell(error)
        if isinstance(error, KilledError):
            end_likewise(error.number)
        return code


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
    """Have SIGTERM do what Ctrl-C does, and both what Python has them do, unless somebody handles them."""
    termination = Termination()
    main_thread = threading.current_thread() is threading.main_thread()
    usual = signal.getsignal(signal.SIGINT)
    if main_thread and isinstance(usual, QuietExit):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        usual.began = True
    if not main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield termination
        return
    signal.signal(signal.SIGTERM, termination)
    try:
        yield termination
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if usual is not None:
            signal.signal(signal.SIGINT, usual)


def _threads_end(code: int) -> int:
    """Return `code`, having seen to it that threads which a program left running do not keep the process for ever."""
    if _threads_left():
        threading.Thread(target=_give_up, args=(code,), daemon=True).start()
    return code


def _threads_left() -> list[str]:
    """Return the names of the threads that Python would wait for."""
    return [one.name for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]


def _give_up(code: int) -> None:
    """End the process although threads are running, once they have had the time to end; say so."""
    time.sleep(_PATIENCE_S)
    left = _threads_left()
    threads = f"a thread running, {left[0]!r}" if len(left) == 1 else f"{len(left)} threads running, {left[0]!r} first"
    try:
        Shell().warn(
            f"the program left {threads}, still there {_PATIENCE_S:g} s after the end, and ended it with the command; "
            "join the threads that a bench or kernel starts."
        )
    finally:
        os._exit(code)
