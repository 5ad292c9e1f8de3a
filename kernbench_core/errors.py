"""Every exception that kernbench raises, and the exit code that the command line maps it to.

Only the command line exits; everything else raises one of these. The message of each is a sentence
that names the place, the thing, what it must be, and what to do.
"""

from __future__ import annotations

import re
import sys

#: What to do where memory is exhausted, as the end of a sentence.
OUT_OF_MEMORY = "give it more, or a smaller problem."


def blamed(error: BaseException, usual: type[KernbenchError]) -> type[KernbenchError]:
    """Return the class of error that tells what somebody's code raised: want of memory is a limit, whoever met it."""
    return LimitError if isinstance(error, MemoryError) else usual


def in_words(error: BaseException) -> str:
    """Return the class of an error and what it says, in the words of a traceback's last line."""
    try:
        told = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        told = "<exception str() failed>"
    if isinstance(error, ImportError):
        told += _refusal(told)
    return f"{type(error).__name__}: {told}".removesuffix(": ")


def _refusal(told: str) -> str:
    """Return what a module that refuses a name in words of its own says, of which an import tells nothing."""
    found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", told)
    module = sys.modules.get(found[2]) if found else None
    if found is None or module is None:
        return ""
    try:
        getattr(module, found[1])
    except AttributeError as error:
        return "" if type(error) is AttributeError else f"; {str(error).rstrip('.')}"
    except Exception:  # of what the module does to find the name
        return ""
    return ""


def _readable(text: str) -> str:
    """Return a message, of a very long line its begin and its end."""
    if len(text) <= 700:
        return text
    from kernbench_core.wording import shortened  # a room, which only those who say much enter

    return shortened(text)


class KernbenchError(Exception):
    """Root of the family; `exit_code` is what `kernbench` exits with when it reaches the top.

    >>> try:
    ...     kb.load_plugins(["acme"])
    ... except kb.KernbenchError as error:
    ...     print(error, error.exit_code)
    an extra plug-in must be written 'name = package.module', or be the path of a .py file, not 'acme'. 6
    """

    exit_code: int = 6

    def __init__(self, *told: object) -> None:
        super().__init__(*(_readable(each) if isinstance(each, str) else each for each in told))

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the lines of the user that led here, and the sentence."""
        from kernbench_core.callsite import user_traceback

        lines = user_traceback(self).splitlines()
        head = ["Traceback (most recent call last):"] if lines else []
        return [*head, *lines, *f"{type(self).__name__}: {self}".splitlines(), *getattr(self, "__notes__", ())]


class KernbenchWarning(UserWarning):
    """Something is left out that may be missed; the command line writes it to stderr as a sentence."""


class UsageError(KernbenchError):
    """The command or call names something that does not exist, or in the wrong form.

    >>> kb.run("gemm", "tiny", device="sip:9")
    Traceback (most recent call last):
    kernbench_core.errors.UsageError: --device must be 'all' or 'sip:N' with N from 0 to 0, not 'sip:9'.
    """

    exit_code = 2


class ConfigError(KernbenchError):
    """A configuration is wrong; `problems` holds one sentence for each fault found, the message the first of them.

    >>> try:
    ...     kb.run("gemm", "tiny", set=["cube.pes=0", "system.sips=two"])
    ... except kb.ConfigError as error:
    ...     for problem in error.problems:
    ...         print(problem)
    --set system.sips=two: system.sips must be a positive integer, not 'two'.
    --set cube.pes=0: cube.pes must be a positive integer, not 0.
    """

    exit_code = 3

    def __init__(self, *problems: str) -> None:
        from kernbench_core.wording import first_of

        super().__init__("\n".join(first_of(problems)))
        self.problems: tuple[str, ...] = tuple(map(_readable, problems))


class RoutingError(ConfigError):
    """No path joins two nodes of the compiled graph."""


class DeadlockError(KernbenchError):
    """Nothing is left to happen, yet something still waits."""

    exit_code = 4


class LimitError(KernbenchError):
    """A limit on events, simulated time or wall time was reached."""

    exit_code = 5


class ComponentError(KernbenchError):
    """A component broke the contract of `ComponentBase`."""


class PluginError(KernbenchError):
    """A plug-in that the configuration names cannot be used."""


class UnknownName(UsageError):
    """Nothing is registered under a name; `suggestions` are the registered names closest to it, best first."""

    def __init__(self, message: str, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.suggestions = suggestions


class StoreError(KernbenchError):
    """A memory access does not fit what the memory store holds."""


class ExecutionError(KernbenchError):
    """An op of the log could not be computed: that of `op_id`, where it is known."""

    op_id: tuple[int, int] | None = None


class SanityError(KernbenchError):
    """A check at the end of a run failed: its result must not be used."""

    exit_code = 7


class KernelError(KernbenchError):
    """A kernel or a host program did something that it must not, or raised.

    >>> try:
    ...     kb.run(lambda rt: rt.launch(lambda x, tl: tl.load(x + 4), rt.zeros((4,), "f32")), "tiny")
    ... except kb.KernelError as error:
    ...     print(type(error).__name__)
    OutOfBoundsError
    """


class PendingDataError(KernelError):
    """Data was asked for that exists only after phase 2."""


class NoDataError(KernelError):
    """Data was asked for in a run that keeps shapes only."""


class OutOfBoundsError(KernelError):
    """An access reaches outside its tensor."""


class UninitializedReadError(KernelError):
    """Memory was read that nobody has written.

    `missing` are the physical regions, where the store found them: base, bytes of a row, rows and pitch of each.
    """

    def __init__(self, message: str, missing: tuple[tuple[int, int, int, int], ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing


class TcmOverflowError(KernelError):
    """A PE's scratchpad is full."""


class QueueOverflowError(KernelError):
    """The slots of a queue do not fit in the memory that they are to be in."""


class ShapeError(KernelError):
    """Operands do not fit each other."""


class UnsupportedError(KernelError):
    """A name exists in Triton but kernbench refuses it."""


class PageFaultError(KernelError):
    """A virtual address is mapped to no memory."""
