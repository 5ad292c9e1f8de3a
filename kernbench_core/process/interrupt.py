"""The interrupt for a program that never comes back: a limit on wall time, and Ctrl-C and SIGTERM made insistent."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, ParamSpec, TypeVar

from kernbench_core.errors import KernelError, LimitError
from kernbench_core.process import supervision

#: How much later than the limit a program that never returns to the simulator is interrupted, and again, in s.
_GRACE_S = 0.3
#: Packages that stand between the line that never ended and whoever wants to know it.
_BETWEEN = ("kernbench_core", "simpy", "threading", "contextlib")
#: How often a `__del__` is spared before it is taken for one that never ends.
_SPARED = 3


#: What `__del__` calls where it is compiled, and so has no frame of its own.
_FINALISERS: Final[set[CodeType]] = set()

_P = ParamSpec("_P")
_R = TypeVar("_R")


def finaliser(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have a function of Python, which a `__del__` that may be compiled calls, spared as `__del__` itself is."""
    _FINALISERS.add(function.__code__)
    return function


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
    """A handler of SIGTERM that raises Terminated; `came` says that it did. A second one soon after is the same one.

    Where the result of a run is to be printed before anything ends it, `awaits_result` is set: once a run is complete
    (`run_is_complete`) SIGTERM and Ctrl-C are `held_back`, each but the first.
    """

    _SAME_S = 1.0

    def __init__(self) -> None:
        self.awaits_result = False
        self.held_back = False
        self._last: float | None = None
        self._holds = False

    @property
    def came(self) -> bool:
        """Whether SIGTERM came."""
        return self._last is not None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise Terminated; called by Python when the signal comes."""
        if self.anew() and not self._hold_back():
            raise Terminated

    def hold(self) -> None:
        """Hold back the first SIGTERM or Ctrl-C that comes from now on; in the main thread."""
        self._holds = True
        if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
            signal.signal(signal.SIGINT, self._on_ctrl_c)

    def let_go(self) -> None:
        """Hold nothing back any more; in the main thread."""
        self._holds = False
        if signal.getsignal(signal.SIGINT) == self._on_ctrl_c:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _on_ctrl_c(self, number: int, frame: FrameType | None) -> None:
        if not self._hold_back():
            raise KeyboardInterrupt

    def _hold_back(self) -> bool:
        held, self.held_back = self.held_back, self._holds
        return self._holds and not held

    def anew(self) -> bool:
        """Note that the signal came; return whether it is another one than the last."""
        before, self._last = self._last, time.monotonic()
        return before is None or self._last - before > self._SAME_S


def await_result() -> None:
    """Have the command line, if one calls this, print the result of the next run that is complete before it ends."""
    handler = signal.getsignal(signal.SIGTERM)
    if isinstance(handler, Termination):
        handler.awaits_result = True


def run_is_complete() -> None:
    """Say that all of a run is there but what is printed of it."""
    handler = signal.getsignal(signal.SIGTERM)
    if isinstance(handler, Termination) and handler.awaits_result:
        handler.hold()


def result_is_told() -> bool:
    """Say that all of a result is printed; return whether nothing came meanwhile that is to end the command."""
    handler = signal.getsignal(signal.SIGTERM)
    if not isinstance(handler, Termination):
        return True
    handler.let_go()
    return not handler.held_back


class Alarm:
    """Raise WallTimeExceeded in the thread that entered, some time after the limit, until it leaves.

    In the main thread a signal does it, which also ends a sleep; elsewhere, or where the program ignores, blocks or
    uses SIGALRM itself, it waits for the next line of Python. C code that never returns is not interrupted: see
    `supervision`. Ctrl-C is made as insistent: pressed again, it also stops a program that catches everything.
    A `__del__`, which would be cut in two and swallow it, is spared for a while; the entry and exit of this class are.
    Whatever becomes of what was raised, the block does not end well: its end raises it again.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._thread_id = threading.get_ident()
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._replaced: dict[int, Any] = {}
        self._came: dict[int, int] = {}
        self._rings = 0
        self._tracer = sys.gettrace()
        self._unraisable: Any = None
        self._line: str | None = None
        self._around: set[FrameType] = set()

    @property
    def interrupted(self) -> BaseException | None:
        """What to raise if Ctrl-C, SIGTERM or the limit came: asked between events, as the program may swallow it."""
        for number, error in _RAISES.items():
            if number in self._came:
                return error()
        return WallTimeExceeded(self._line) if self._rings else None

    def __enter__(self) -> Alarm:
        self._around = set(_outwards(sys._getframe(1).f_back))
        if threading.current_thread() is threading.main_thread():
            self._take(signal.SIGINT, signal.getsignal(signal.SIGINT) == signal.default_int_handler)
            self._take(signal.SIGTERM, isinstance(signal.getsignal(signal.SIGTERM), Termination))
            if self._timeout_s is not None and hasattr(signal, "pthread_kill"):
                self._take(signal.SIGALRM, signal.getsignal(signal.SIGALRM) == signal.SIG_DFL)
        if self._timeout_s is not None:
            supervision.arm(self._timeout_s)
            threading.Thread(target=self._watch, args=(self._timeout_s + _GRACE_S,), daemon=True).start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._lock:
            self._left.set()
        if self._timeout_s is not None:
            supervision.disarm()
            if self._rings:
                self._take_back()
        if self._rings and signal.SIGALRM in self._replaced and signal.SIGALRM in signal.sigpending():
            signal.sigwait({signal.SIGALRM})  # the program blocks it; let through later, it would end the process
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        self._around.clear()
        if max(self._came.values(), default=0) > 1:
            sys.settrace(self._tracer)
        if self._unraisable is not None:
            sys.unraisablehook = self._unraisable
        if not isinstance(error, (*INTERRUPTS, LimitError)) and (swallowed := self.interrupted) is not None:
            raise swallowed from None

    def _take(self, number: int, ours: bool) -> None:
        """Handle a signal here, unless somebody has set a handler of his own."""
        if ours:
            self._replaced[number] = signal.signal(number, self._on_signal)

    def _watch(self, wait_s: float) -> None:
        while not self._left.wait(wait_s):
            wait_s = _GRACE_S
            with self._lock:
                if not self._left.is_set():
                    self._ring()

    def _ring(self) -> None:
        number: int = getattr(signal, "SIGALRM", 0)
        heard = self._rings <= self._came.get(number, 0)  # else the program blocks it, or never returns from C code
        self._rings += 1
        self._hush()
        if self._line is None:
            self._line = self._innermost_line()
        if number in self._replaced and heard and signal.getsignal(number) == self._on_signal:
            signal.pthread_kill(self._thread_id, number)
        else:
            self._raise_soon()

    def _innermost_line(self) -> str | None:
        """Return where the thread that entered is, as "file:line": the innermost frame of the block's own program."""
        for frame in _outwards(sys._current_frames().get(self._thread_id)):
            if frame not in self._around and _is_users(frame):
                return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        return None

    def _raise_soon(self) -> None:
        """Raise WallTimeExceeded at the next line of Python of the thread that entered."""
        import ctypes

        thread = ctypes.c_ulong(self._thread_id)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(WallTimeExceeded))

    def _take_back(self) -> None:
        """Have what was not raised yet raised here, in the thread that entered.

        Replacing it by nothing would leave CPython 3.11 looking for it at every call, and any function that is profiled
        or traced afterwards would never end.
        """
        with contextlib.suppress(WallTimeExceeded):
            while True:
                self._raise_soon()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        handler = self._replaced.get(number)
        if isinstance(handler, Termination) and not handler.anew():
            return
        error = _RAISES.get(number, WallTimeExceeded)
        self._came[number] = self._came.get(number, 0) + 1
        cut = _in_finaliser(frame)
        if _in(frame, _OWN) or (cut and self._came[number] <= _SPARED):
            return
        self._hush()
        if not cut and self._came[number] > 1:
            _raise_at_next_line(frame, error)
        raise error

    def _hush(self) -> None:
        """Keep Python from telling what it was that swallowed the interrupt: whoever interrupted does."""
        if self._unraisable is None:
            usual = self._unraisable = sys.unraisablehook
            sys.unraisablehook = lambda found: None if isinstance(found.exc_value, INTERRUPTS) else usual(found)


_RAISES: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


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

    What lies between the blocks that spend it, as loading the simulator does, is not counted. It belongs to the process
    that made it, and so does the run.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        self.spent_s = 0.0
        self._pid = os.getpid()

    @property
    def left_s(self) -> float | None:
        """How much is left, in s; None without a limit."""
        return None if self.timeout_s is None else max(0.0, self.timeout_s - self.spent_s)

    @contextlib.contextmanager
    def spent_on(self, what: str) -> Iterator[None]:
        """Raise LimitError when the time is over in the block, naming `what` it does and the line that it is in."""
        began = time.perf_counter()
        try:
            with doing(what), Alarm(self.left_s):
                yield
        except WallTimeExceeded as stuck:
            where = f", in {stuck.line}" if stuck.line else ""
            raise LimitError(
                f"the run reached its limit of {self.timeout_s:g} s of wall time while {what}{where}; raise --timeout "
                "if it is only long."
            ) from None
        finally:
            self.spent_s += time.perf_counter() - began
            self.require_own()

    @property
    def own(self) -> bool:
        """Whether this is still the process in which the run began."""
        return os.getpid() == self._pid

    def require_own(self) -> None:
        """Raise KernelError in a process that the program forked, and that would carry the run out a second time."""
        if not self.own:
            raise KernelError(
                f"process {os.getpid()}, which the program forked, came back to the run, which process {self._pid} "
                "carries out; end such a process by os._exit in the program."
            )


_OWN = (Alarm.__enter__.__code__, Alarm.__exit__.__code__)


def _in(frame: FrameType | None, codes: tuple[Any, ...]) -> bool:
    return any(each.f_code in codes for each in _outwards(frame))


def _in_finaliser(frame: FrameType | None) -> bool:
    return any(each.f_code.co_name == "__del__" or each.f_code in _FINALISERS for each in _outwards(frame))


def _raise_at_next_line(frame: FrameType | None, error: type[BaseException]) -> None:
    """Raise `error` once more, at the next line: in the handler of a program that catches everything."""

    def trace(_: FrameType, event: str, __: object) -> Any:
        if event == "line":
            raise error
        return None if event == "call" else trace

    while frame is not None and not frame.f_globals.get("__name__", "").startswith("kernbench_core."):
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)


def innermost_user_line(traceback: TracebackType | None) -> str | None:
    """Return "file:line" of the innermost frame outside kernbench_core, or None."""
    found = None
    while traceback is not None:
        if _is_users(traceback.tb_frame):
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
    return module.partition(".")[0] not in _BETWEEN and not frame.f_code.co_filename.startswith("<frozen ")
