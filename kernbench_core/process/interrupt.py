"""The interrupt for a program that never comes back: a limit on wall time, Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Final

from kernbench_core.errors import LimitError
from kernbench_core.package import PACKAGES, is_ours, is_pythons
from kernbench_core.process import supervision

#: How much later than the limit a program that never returns to the simulator is interrupted, and again, in s.
_GRACE_S = 0.3


class WallTimeExceeded(BaseException):
    """Raised inside whatever runs when the wall-time limit is over; no `except Exception` stops it.

    Where a program swallowed it, it is raised once more: `swallowed_in` is the line, as "file:line", if it is known.
    """

    def __init__(self, swallowed_in: str | None = None) -> None:
        super().__init__()
        self.swallowed_in = swallowed_in

    @property
    def line(self) -> str | None:
        """The innermost line of the program, as "file:line"; None where nothing of it ran."""
        return self.swallowed_in or innermost_user_line(self.__traceback__)


class Terminated(KeyboardInterrupt):
    """SIGTERM came; all that is done for Ctrl-C is done for it."""


INTERRUPTS: Final = (KeyboardInterrupt, WallTimeExceeded)
"""What ends a program from outside: nobody may take it for a fault of the program."""


class Termination:
    """A handler of SIGTERM for the command line, which raises it once; `came` says whether it did.

    `timeout 60 kernbench …` sends one to the process and one to its group.
    """

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise what the signal is; called by Python when it comes."""
        if self.is_first():
            raise Terminated

    def is_first(self) -> bool:
        """Note that the signal came; return whether it had not come before."""
        before, self.came = self.came, True
        return not before


class Alarm:
    """Raise WallTimeExceeded in a block of the main thread some time after the limit, again and again, until it ends.

    A signal does it, which also ends a sleep; in other threads, where the program uses SIGALRM itself, and in what no
    signal interrupts nothing does, but `supervision` where somebody supervises; nor in a loop that catches everything.
    Whatever becomes of what was raised, the block does not end well: its end raises it again.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._replaced: dict[int, Any] = {}
        self._came: set[int] = set()
        self._line: str | None = None
        self._around: set[FrameType] = set()
        self._watched_until = math.inf
        self._hooks = (sys.excepthook, sys.unraisablehook)

    @property
    def interrupted(self) -> BaseException | None:
        """What to raise if Ctrl-C, SIGTERM or the limit came: asked between events, as the program may swallow it."""
        for number, error in _RAISES.items():
            if number in self._came:
                return WallTimeExceeded(self._line) if error is WallTimeExceeded else error()
        return None

    def __enter__(self) -> Alarm:
        self._around = set(_outwards(sys._getframe(1).f_back))
        self._hooks = (sys.excepthook, sys.unraisablehook)
        sys.excepthook, sys.unraisablehook = self._on_lost, self._on_unraisable
        if threading.current_thread() is threading.main_thread():
            self._take(signal.SIGINT, signal.default_int_handler)
            self._take(signal.SIGTERM)
            if self._timeout_s is not None:
                self._take(signal.SIGALRM, signal.SIG_DFL)
        if self._timeout_s is not None:
            self._watched_until = supervision.watch_for(self._timeout_s)
            if signal.SIGALRM in self._replaced:
                _ring_in(self._timeout_s + _GRACE_S)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if signal.SIGALRM in self._replaced:
            _ring_in(0.0)
        if self._timeout_s is not None:
            supervision.watch_until(self._watched_until)
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        sys.excepthook, sys.unraisablehook = self._hooks
        self._around.clear()
        if not isinstance(error, (*INTERRUPTS, LimitError)) and (swallowed := self.interrupted) is not None:
            raise swallowed from None

    def _take(self, number: int, usual: Any = None) -> None:
        """Handle a signal here, unless somebody has set a handler of his own."""
        handler = signal.getsignal(number)
        if isinstance(handler, Termination) or (usual is not None and handler == usual):
            self._replaced[number] = signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        handler = self._replaced.get(number)
        if isinstance(handler, Termination) and not handler.is_first():
            return
        self._came.add(number)
        if self._line is None:
            self._line = self._line_of(frame)
        raise _RAISES[number]

    def _on_lost(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        """Print what compiled code cannot raise, as Python does, but for what came: it is raised again."""
        if not (self._came and isinstance(error, INTERRUPTS)):
            self._hooks[0](kind, error, traceback)

    def _on_unraisable(self, lost: Any) -> None:
        """Print what a finalizer cannot raise, likewise."""
        if not (self._came and isinstance(lost.exc_value, INTERRUPTS)):
            self._hooks[1](lost)

    def _line_of(self, frame: FrameType | None) -> str | None:
        """Return where the block's own program is, as "file:line": its innermost frame."""
        inner = (each for each in _outwards(frame) if each not in self._around and _is_users(each))
        return next((f"{each.f_code.co_filename}:{each.f_lineno}" for each in inner), None)


def _ring_in(wait_s: float) -> None:
    """Have SIGALRM sent so much later, and again; 0 for never."""
    signal.setitimer(signal.ITIMER_REAL, wait_s, _GRACE_S)


_RAISES: Final[dict[int, type[BaseException]]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
    signal.SIGALRM: WallTimeExceeded,
}


@contextlib.contextmanager
def doing(what: str) -> Iterator[None]:
    """Note on a Ctrl-C or SIGTERM in the block what it interrupted: "building the machine"."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not hasattr(stop, "__notes__"):
            stop.add_note(f"while {what}")
        raise


class WallTime:
    """The wall time that a run may take in all, in s, None for no limit, and what it has `spent_s` of it.

    What lies between the blocks that spend it, as loading the simulator does, is not counted.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        self.spent_s = 0.0

    @property
    def left_s(self) -> float | None:
        """How much is left, in s; None without a limit."""
        return None if self.timeout_s is None else max(0.0, self.timeout_s - self.spent_s)

    @contextlib.contextmanager
    def spent_on(self, what: str) -> Iterator[None]:
        """Raise LimitError when the time is over in the block, naming `what` it does and the line that it is in."""
        began = time.perf_counter()
        try:
            with self.in_words(what), doing(what), Alarm(self.left_s):
                yield
        finally:
            self.spent_s += time.perf_counter() - began

    @contextlib.contextmanager
    def in_words(self, what: str) -> Iterator[None]:
        """Raise LimitError where the time was over in the block, as a sentence of `what` it does, and where."""
        try:
            yield
        except WallTimeExceeded as stuck:
            where = f", in {stuck.line}" if stuck.line else ""
            raise LimitError(
                f"the run reached its limit of {self.timeout_s:g} s of wall time while {what}{where}; raise --timeout "
                "if it is only long."
            ) from None


def innermost_user_line(traceback: TracebackType | None, *, shipped: bool = True) -> str | None:
    """Return "file:line" of the innermost frame that is a user's, or None; without `shipped`, none of kernbench's."""
    found = None
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if _is_users(traceback.tb_frame) and (shipped or module.partition(".")[0] not in PACKAGES):
            found = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Give a frame and those that called it, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_users(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return not (is_ours(module) or module.partition(".")[0] == "simpy" or is_pythons(frame.f_code.co_filename))
