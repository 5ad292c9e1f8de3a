"""A result that a test can hold to limits: a `RunResult` with `budget`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kernbench_core.runs.result import RunResult

__tracebackhide__ = True  # a failure shows the line of the test


@attrs.frozen(repr=False, eq=False)
class BudgetedRun(RunResult):
    """What the fixture's `run` returns: all that `kb.run` gives, and `budget`.

    A pickled one is without its test, and holds to nothing.
    """

    _hold: Callable[..., None] | None = attrs.field(default=None, kw_only=True)

    def budget(self, limits: Mapping[str, object] | None = None, /, **more: object) -> None:
        """Hold figures to limits: the most that each may be, or a pair of the least and the most, None where open.

        Times are in ns and sizes in bytes, or quantities as "65 us". The test fails when it is over, with every figure
        that is beyond its limit. Raise UsageError for a name that is no figure, and for what is no limit.

        `result.budget({"utilisation.pe_gemm": (0.5, None)}, time_ns="65 us", hbm_bytes=1 << 20, hazards=0)`
        """
        if self._hold is not None:
            self._hold(self, limits, **more)

    def __getstate__(self) -> dict[str, Any]:
        return {**RunResult.__getstate__(self), "_hold": None}


def budgeted(result: RunResult, hold: Callable[..., None]) -> BudgetedRun:
    """Return a result with `budget`, which calls `hold`."""
    own = {str(each.alias): getattr(result, each.name) for each in attrs.fields(RunResult) if each.init}
    return BudgetedRun(**own, hold=hold)
