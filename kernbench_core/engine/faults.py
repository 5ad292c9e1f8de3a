"""Turn what a component or its user's code raised into one sentence that names the component and the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FunctionType, TracebackType

from kernbench_core.callsite import describe_site, site_of_raise, site_of_traceback, user_traceback
from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware, of_provider
from kernbench_core.errors import ComponentError, KernbenchError, KernelError, blamed, in_words
from kernbench_core.events.faults import NotAnEvent
from kernbench_core.messages import ISSUED, Command, MsgBase
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.units import format_time
from kernbench_core.workers.worker import Worker


def host_error(error: BaseException, program: str, now: float) -> KernbenchError:
    """Build the error for an exception that left a host program at `now` ns: what, where and when.

    `program` is what messages call it, as "bench 'gemm'".

    A sentence that the program itself raised is left as it is; one of the host API is given the program's line.
    """
    when = f"at simulated time {format_time(now)}"
    if not isinstance(error, KernbenchError):
        return blamed(error, KernelError)(
            f"{program} raised {in_words(error)} {when}.\n{user_traceback(error)}".rstrip()
        )
    if site_of_raise(error.__traceback__) is not None:
        return error
    site = site_of_traceback(error.__traceback__)
    line = "" if site is None else f" at {describe_site(site)}"
    return type(error)(f"{error}\n  in {program}{line}, {when}")


@contextmanager
def models_blamed(hardware: Hardware, asked: ComponentBase | None = None) -> Iterator[None]:
    """Name the component whose method raised when it was asked about itself, after the run.

    It is the one that is `asked`, or without that the one whose method is in the traceback. Where none is, an exception
    stays what it is, but nothing ends kernbench without a word.
    """
    try:
        yield
    except (KernbenchError, *INTERRUPTS):
        raise
    except BaseException as error:
        component = asked or _component_in(error.__traceback__)
        if component is None and isinstance(error, Exception):
            raise
        raise component_error(hardware, error, component) from error


def component_error(
    hardware: Hardware, error: BaseException, component: ComponentBase | None = None
) -> KernbenchError:
    """Build the error for an exception that left the event loop: which component raised what, when and where.

    `component` is the one, where that is known without looking for it.
    """
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # what a generator raised, which Python puts into a RuntimeError without its line
    callbacks, event = (None if component is not None else hardware.env.clock.failed) or ((), None)
    component = (
        component or _component_in(error.__traceback__) or _owner(hardware, error) or _closed_over(error.__traceback__)
        or _called(callbacks)
    )  # fmt: skip
    if component is None:
        return blamed(error, ComponentError)(
            f"the simulation raised {in_words(error)} at simulated time {format_time(hardware.env.now)}."
        )
    made = _model_error(component, error, hardware.env.now, event)
    return of_provider(made, hardware.providers.get(component.node.impl))


def _model_error(component: ComponentBase, error: BaseException, now: float, event: object) -> KernbenchError:
    model = f"{component.id}: {type(component).__module__}.{type(component).__qualname__}"
    if "Invalid yield value" in in_words(error):
        value = error.value if isinstance(error, NotAnEvent) else _yielded(error.__traceback__)
        return ComponentError(
            f"{model}.run must yield SimPy events, not {value!r}; "
            "write `yield env.timeout(ns)` to wait."
        )
    if "is not iterable" in in_words(error) and _last_module(error.__traceback__) == Worker.__module__:
        return ComponentError(
            f"{model}.run must be a generator, but it has no yield and returned a plain value ({error}); "
            "write `yield env.timeout(ns)` to wait."
        )
    if isinstance(error, KeyError) and _last_module(error.__traceback__) == ComponentBase.__module__:
        return ComponentError(
            f"{model} must send each message once, to the next node of its path, but no wire leads to {error}; call "
            "emit once for it, and have pick remove what it returns."
        )
    made = blamed(error, ComponentError)(
        f"{model} raised {in_words(error)} at simulated time {format_time(now)}.\n"
        f"{user_traceback(error)}".rstrip()
    )
    served = [msg for msg, _ in component.serving]
    command = _issued_in(error.__traceback__) or next(filter(None, map(_issued_for, (event, *served))), None)
    if command is not None and command.site is not None:
        sent = f"{type(command).__name__} that {command.call} at {describe_site(command.site)} sent"
        made.add_note(
            f"It was given the {sent} to the {command.serves} of its PE: choose a model that takes it, or send another "
            "command."
        )
    return made


def _last_module(traceback: TracebackType | None) -> str | None:
    name = None
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__")
        traceback = traceback.tb_next
    return name


def _owner(hardware: Hardware, error: BaseException) -> ComponentBase | None:
    """Return the component whose process runs now, or was ended by an error."""
    active = hardware.env.active_process
    for component in hardware.components.values():
        if any(worker.process is active or worker.process._value is error for worker in component._workers):
            return component
    return None


def _called(callbacks: Iterable[object]) -> ComponentBase | None:
    """Return the component that one of the callbacks of an event belongs to."""
    return next(filter(None, map(_behind, callbacks)), None)


def _behind(called: object, depth: int = 4) -> ComponentBase | None:
    """Return the component that what can be called is a method of, or was made with; not further away than `depth`."""
    if isinstance(called, ComponentBase):
        return called
    if isinstance(called, Worker):
        return called.component if isinstance(called.component, ComponentBase) else None
    if depth == 0:
        return None
    held: list[object] = [getattr(called, "__self__", None)]
    if isinstance(called, partial):
        held += (called.func, *called.args, *called.keywords.values())
    if isinstance(called, FunctionType):
        held += (*_closed(called), *(called.__defaults__ or ()), *(called.__kwdefaults__ or {}).values())
    return next(filter(None, (_behind(each, depth - 1) for each in held)), None)


def _closed(function: FunctionType) -> Iterator[object]:
    """Give what a function closes over, of what is set."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            yield cell.cell_contents


def _issued_for(event: object) -> Command | None:
    """Return the command of a plug-in's own, which a kernel issued, that a message is or works for."""
    while isinstance(event, MsgBase):
        if isinstance(event, Command) and event.call == ISSUED:
            return event
        event = event.origin
    return None


def _component_in(traceback: TracebackType | None) -> ComponentBase | None:
    """Return the component whose method, of whichever first parameter, is innermost in `traceback`."""
    found = None
    while traceback is not None:
        frame = traceback.tb_frame
        first = frame.f_code.co_varnames[0] if frame.f_code.co_argcount else "self"
        owner = frame.f_locals.get(first)
        if isinstance(owner, ComponentBase):
            found = owner
        traceback = traceback.tb_next
    return found


def _closed_over(traceback: TracebackType | None) -> ComponentBase | None:
    """Return the component that the innermost function of `traceback` which closes over one knows, as a lambda does.

    It is the one where a compiled method raised below the function: its frame has no local variables.
    """
    found = None
    while traceback is not None:
        frame = traceback.tb_frame
        known = (frame.f_locals.get(name) for name in frame.f_code.co_freevars)
        found = next((each for each in known if isinstance(each, ComponentBase)), found)
        traceback = traceback.tb_next
    return found


def _issued_in(traceback: TracebackType | None) -> Command | None:
    """Return the command of a plug-in's own, which a kernel issued, that a function in `traceback` was given."""
    while traceback is not None:
        for value in traceback.tb_frame.f_locals.values():
            if isinstance(value, Command) and value.call == ISSUED:
                return value
        traceback = traceback.tb_next
    return None


def _yielded(traceback: TracebackType | None) -> object:
    """Return what a process yielded that is no event: SimPy only puts its text into the message."""
    value = None
    while traceback is not None:
        value = traceback.tb_frame.f_locals.get("event", value)
        traceback = traceback.tb_next
    return value
