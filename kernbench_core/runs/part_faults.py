"""Whose fault it is that a part of a run raises, or gives what nothing can be made of: its distribution's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from traceback import walk_tb
from typing import TYPE_CHECKING, cast

from kernbench_core.errors import KernbenchError
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.engine.engine import RunObserver
    from kernbench_core.plugins import Registry, RunPartEntry
    from kernbench_core.runs.parts import RunPart
    from kernbench_core.runs.result import RunResult


@contextmanager
def part_blamed(
    part: type[RunPart] | RunPart, parts: Registry[RunPartEntry], *passed: type[BaseException]
) -> Iterator[None]:
    """Make what a plug-in's part raises, other than errors that kernbench has words for, its distribution's fault.

    What is `passed` goes on as it is.
    """
    told: tuple[type[BaseException], ...] = (KernbenchError, *INTERRUPTS, MemoryError, *passed)
    try:
        yield
    except told:
        raise
    except BaseException as error:
        if part.NAME not in parts or parts.provider(part.NAME).is_ours:
            raise
        raise parts.raised(part.NAME, error) from error


def surround(part: RunPart, make: Callable[[], RunResult], parts: Registry[RunPartEntry]) -> RunResult:
    """Make a run with a part around it; PluginError where that returns something else."""
    result: object = part.around(make)
    if not hasattr(result, "to_json"):
        raise parts.fault(part.NAME, f"must return what make() does from around, not {brief(result)}")
    return cast("RunResult", result)


def observers_of(parts: Iterable[RunPart], registry: Registry[RunPartEntry]) -> Iterator[tuple[RunObserver, RunPart]]:
    """Ask the parts of a run who looks on; PluginError for what cannot."""
    for part in parts:
        with part_blamed(part, registry):
            observer = part.observer()
        lacks = [name for name in ("env", "begin", "attach", "submitted") if not hasattr(observer, name)]
        if observer is not None and lacks:
            raise registry.fault(
                part.NAME, f"must give a RunObserver, not {brief(observer)}, which has no {lacks[0]!r}"
            )
        if observer is not None:
            yield observer, part


@contextmanager
def observers_blamed(owners: Sequence[tuple[RunObserver, RunPart]], registry: Registry[RunPartEntry]) -> Iterator[None]:
    """Make what an observer raised, wherever it was called, the fault of its part's distribution."""
    try:
        yield
    except Exception as error:
        raised: BaseException | None = error
        while raised is not None:
            for frame, _ in walk_tb(raised.__traceback__):
                first = frame.f_locals.get(next(iter(frame.f_code.co_varnames), ""))
                for part in (part for observer, part in owners if observer is first):
                    with part_blamed(part, registry):
                        raise raised from None
            raised = raised.__cause__
        raise
