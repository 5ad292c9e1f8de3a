"""`kb.run` with the options of all parts of runs that come with kernbench, for editors and type checkers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kernbench_core.errors import KernbenchError
from kernbench_core.plugins import load_plugins
from kernbench_core.runs import bench_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    import attrs

    from kernbench_builtin.cache.part import CacheOptions
    from kernbench_builtin.explain.part import ExplainOptions, TcmMapOptions
    from kernbench_builtin.machines.figures.part import FiguresOptions
    from kernbench_builtin.machines.figures.tables import RunTables
    from kernbench_builtin.native.part import NativeOptions
    from kernbench_builtin.native.recorded import RecordedRun
    from kernbench_builtin.pages.parts import ReportOptions, TimelineOptions, TraceOptions, WatchOptions
    from kernbench_builtin.sweeps.shaken import ShakeOptions
    from kernbench_core.runs.options import RunCall
    from kernbench_core.runs.result import RunResult

    Given = ParamSpec("Given")

    class ResultWithFigures(RunResult, RunTables):
        """A result, with what its figures give it, and its recording, where that was asked for."""

        native: RecordedRun | None

    @attrs.frozen
    class _Call(
        ExplainOptions, TcmMapOptions, TimelineOptions, TraceOptions, ReportOptions, WatchOptions, CacheOptions,
        ShakeOptions, FiguresOptions, NativeOptions, RunCall,
    ):  # fmt: skip
        """The arguments of `kb.run`."""

    def _called_with(record: Callable[Given, object]) -> Callable[Given, ResultWithFigures]: ...

    run = _called_with(_Call)
else:
    run = bench_run.run
    with suppress(KernbenchError):  # which the call will tell
        bench_run.describe_run(load_plugins())
