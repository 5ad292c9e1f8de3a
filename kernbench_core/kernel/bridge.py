"""The only door to greenlets: runs a plain function that can stop in the middle and ask for something.

Kernels and host programs are plain Python functions; what they call may suspend them until the
simulator has an answer. Nothing here touches standard streams, `sys` hooks or signal handlers, so
`print` and `breakpoint()` work inside the function.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final, cast

from greenlet import GreenletExit, getcurrent, greenlet

from kernbench_core.errors import KernelError
from kernbench_core.process.interrupt import INTERRUPTS

_LEAVE_AS_THEY_ARE: Final = (Exception, GreenletExit, *INTERRUPTS)


class Finished:
    """What `Bridge.resume` gives when the function has returned; `value` is what it returned."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Escaped(Exception):
    """A function raised what no `except Exception` catches, as SystemExit, CancelledError or GeneratorExit is.

    It leaves the stack in this form, as generators above would take a GeneratorExit for the end of their own.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def escaped(error: BaseException) -> BaseException:
    """Return what a function really raised."""
    return error.error if isinstance(error, Escaped) else error


class _KernelStack(greenlet):  # type: ignore[misc]  # greenlet is untyped
    """The stack of a kernel, told from a host program's by its type; `language` is its `tl`."""

    language: Any = None


def in_kernel() -> bool:
    """Tell whether the caller runs in a kernel, of whichever run."""
    return isinstance(getcurrent(), _KernelStack)


def current_language() -> Any:
    """Return the `tl` of the kernel that the caller runs in, None outside of kernels."""
    own = getcurrent()
    return own.language if isinstance(own, _KernelStack) else None


class _Abandoned(Exception):
    """Nobody will visit a guest any more."""


class Guest:
    """Hold a function suspended in the middle of all that it has called, while its caller goes on.

    The function, or what runs on further stacks deep inside it, calls `ask(answer)` to hand an answer out and wait for
    the next request; `visit(request)` takes a request in, and gives the answer, or `Finished`. What the function raises
    leaves through `visit`.
    """

    __slots__ = ("_asker", "_caller", "_greenlet")

    def __init__(self, fn: Callable[[], Any]) -> None:
        self._greenlet: Any = greenlet(lambda _: Finished(fn()))
        self._asker: Any = None
        self._caller: Any = None

    def visit(self, request: Any = None) -> Any:
        """Go on inside with `request` until the next `ask`; the first visit starts the function."""
        self._caller = self._greenlet.parent = getcurrent()
        asker, self._asker = self._asker, None
        return (asker or self._greenlet).switch(request)

    def ask(self, answer: Any = None) -> Any:
        """Hand `answer` out, and give the request of the next visit."""
        self._asker = getcurrent()
        return self._caller.switch(answer)

    def abandon(self) -> None:
        """End the function where it asks: its `finally` blocks run, and what it raises then is nobody's."""
        self._caller = self._greenlet.parent = getcurrent()
        with suppress(Exception):
            self._asker.throw(_Abandoned())

    @property
    def over(self) -> bool:
        """Whether the function has returned or raised."""
        return bool(self._greenlet.dead)


class Bridge:
    """Run `fn()` in its own stack, one step at a time.

    `resume` runs it until it calls `suspend(request)` and gives that request; the next `resume(value)` makes
    `suspend` return `value`. An exception that the function raises leaves through `resume`. `kernel` says that
    the function is a kernel, for `in_kernel`.
    """

    __slots__ = ("_greenlet",)

    def __init__(self, fn: Callable[[], Any], *, kernel: bool = False) -> None:
        def run(_: Any) -> Finished:
            try:
                return Finished(fn())
            except _LEAVE_AS_THEY_ARE:
                raise
            except BaseException as error:
                raise Escaped(error) from None

        self._greenlet: Any = _KernelStack(run) if kernel else greenlet(run)

    def resume(self, value: Any = None) -> Any:
        """Continue the function; gives its next request, or `Finished`. Called by whoever owns the simulation."""
        child = self._greenlet
        current = getcurrent()
        if child.parent is not current:
            child.parent = current
        return child.switch(value)

    def suspend(self, request: Any) -> Any:
        """Stop the function and hand `request` out; gives what the next `resume` brings.

        Raise KernelError for a call from anywhere else than inside the function.
        """
        own = self._greenlet
        if getcurrent() is not own:
            raise KernelError(
                "a call that takes simulated time must be made by the kernel or host program that was given the tl or "
                "rt, while it runs, not from elsewhere; call it there."
            )
        return own.parent.switch(request)

    def throw(self, error: BaseException) -> Any:
        """Continue the function with `error` raised at the place where it is suspended."""
        child = self._greenlet
        child.parent = getcurrent()
        return child.throw(error)

    def close(self) -> None:
        """Unwind a function that will not be resumed: its `finally` blocks run, its references go."""
        child = self._greenlet
        if not child.dead and bool(child):
            child.parent = getcurrent()
            child.throw()

    @property
    def finished(self) -> bool:
        """Whether the function has returned or raised."""
        return bool(self._greenlet.dead)

    @property
    def inside(self) -> bool:
        """Whether the caller runs inside this function."""
        return getcurrent() is self._greenlet

    def speak(self, language: Any) -> None:
        """Note the `tl` of the kernel that the function is, for `current_language`."""
        self._greenlet.language = language

    @property
    def frame(self) -> FrameType | None:
        """The innermost frame of the function while it is suspended, else None."""
        return cast("FrameType | None", self._greenlet.gr_frame)
