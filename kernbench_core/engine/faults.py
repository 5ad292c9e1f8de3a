"""Turn what a component or its user's code raised into one sentence that names the component and the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import TracebackType

from kernbench_core.callsite import describe_site, site_of_raise, site_of_traceback, user_traceback
from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware, of_provider
from kernbench_core.errors import ComponentError, KernbenchError, KernelError, blamed, in_words
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
    component = component or _component_in(error.__traceback__) or _owner(hardware, error) or _called(callbacks)
    if component is None:
        return blamed(error, ComponentError)(
            f"the simulation raised {in_words(error)} at simulated time {format_time(hardware.env.now)}."
        )
    made = _model_error(component, error, hardware.env.now, event)
    return of_provider(made, hardware.providers.get(component.node.impl))


def _model_error(component: ComponentBase, error: BaseException, now: float, event: object) -> KernbenchError:
    model = f"{component.id}: {type(component).__module__}.{type(component).__qualname__}"
    _, invalid, value = in_words(error).partition("Invalid yield value ")
    if invalid:
        yielded = value.strip('"')
        return ComponentError(
            f"{model}.run must yield SimPy events, not {yielded}; write `yield env.timeout(ns)` to wait."
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
    near = [value for frame, _ in walk_tb(error.__traceback__) for value in frame.f_locals.values()]
    served = [msg for msg, _ in component.serving]
    command = next(filter(None, map(_issued_for, (*near, event, *served))), None)
    if command is not None and command.site is not None:
        sent = f"{type(command).__name__} that {command.call} at {describe_site(command.site)} sent"
        made.add_note(
            f"It was given the {sent} to the {command.serves} of its PE: choose a model that takes it, or send another "
            "command."
        )
    return made


def _last_module(traceback: TracebackType | None) -> str | None:
    frames = [frame for frame, _ in walk_tb(traceback)]
    return frames[-1].f_globals.get("__name__") if frames else None


def _owner(hardware: Hardware, error: BaseException) -> ComponentBase | None:
    """Return the component whose process runs now, or was ended by an error."""
    active = hardware.env.active_process
    for component in hardware.components.values():
        if any(worker.process is active or worker.process._value is error for worker in component._workers):
            return component
    return None


def _called(callbacks: Iterable[object]) -> ComponentBase | None:
    """Return the component of which one of the callbacks of an event is a method, or whose worker goes on."""
    for callback in callbacks:
        owner = getattr(getattr(callback, "func", callback), "__self__", None)  # of a partial, too
        found = owner.component if isinstance(owner, Worker) else owner
        if isinstance(found, ComponentBase):
            return found
    return None


def _issued_for(event: object) -> Command | None:
    """Return the command of a plug-in's own, which a kernel issued, that a message is or works for."""
    while isinstance(event, MsgBase):
        if isinstance(event, Command) and event.call == ISSUED:
            return event
        event = event.origin
    return None


def _component_in(traceback: TracebackType | None) -> ComponentBase | None:
    """Return the component that the innermost function of `traceback` is a method of, or closes over, as a lambda does.

    Where a compiled method raised below the function that is the one: its frame has no local variables.
    """
    found = None
    for frame, _ in walk_tb(traceback):
        names = (*frame.f_code.co_varnames[: min(1, frame.f_code.co_argcount)], *frame.f_code.co_freevars)
        known = (frame.f_locals.get(name) for name in names)
        found = next((each for each in known if isinstance(each, ComponentBase)), found)
    return found
