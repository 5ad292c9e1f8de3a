"""What a part of a run must give, for its distribution to be blamed where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

from kernbench_core.runs.parts import part_blamed
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.engine.engine import RunObserver
    from kernbench_core.plugins import Registry, RunPartEntry
    from kernbench_core.runs.parts import RunPart
    from kernbench_core.runs.result import RunResult


def surround(part: RunPart, make: Callable[[], RunResult], parts: Registry[RunPartEntry]) -> RunResult:
    """Make a run with a part around it; PluginError where that returns something else."""
    result: object = part.around(make)
    if not hasattr(result, "to_json"):
        raise parts.fault(part.NAME, f"must return what make() does from around, not {brief(result)}")
    return cast("RunResult", result)


def observers_of(parts: Iterable[RunPart], registry: Registry[RunPartEntry]) -> Iterator[RunObserver]:
    """Ask the parts of a run who looks on; PluginError for what cannot."""
    for part in parts:
        with part_blamed(part, registry):
            observer = part.observer()
        if observer is not None:
            if not all(hasattr(observer, name) for name in ("env", "begin", "attach", "submitted")):
                raise registry.fault(part.NAME, f"must give a RunObserver as its observer, not {brief(observer)}")
            yield observer
