"""The verdict of every run, `--explain` and `--tcm-map`: what limits it, why, and what its scratchpads held."""

from typing import TYPE_CHECKING, Annotated

import attrs

from kernbench_core.runs.options import ANALYSIS, Option, OptionRecord
from kernbench_core.runs.parts import RunPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from kernbench_builtin.explain.explanation import Explanation, Recorder
    from kernbench_builtin.explain.scratchpad_map import TcmMap, TcmRecorder
    from kernbench_builtin.explain.verdict import RunVerdict
    from kernbench_core.compute.executor import DataExecutor
    from kernbench_core.compute.verification import Failure
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.runs.result import RunResult


class VerdictPart(RunPart):
    """Says what limits a run, and what to try; every run has it, and it is shown below all else."""

    NAME, ORDER, ALWAYS = "verdict", 100, True

    @classmethod
    def makers(cls, session: "GraphEngine", executor: "DataExecutor") -> "Callable[[Failure, str], str]":
        """Say what made a wrong element, at which line, and of what."""
        from kernbench_builtin.explain.wrong_elements import WrongElements
        from kernbench_core.runs.verdicts import kernel_lines

        return WrongElements(session.op_log, executor, session.shared.launches, kernel_lines(session)).maker

    @classmethod
    def show_result(cls, result: "RunResult", console: "Console", *, verbose: bool = False) -> bool:
        """Print the table of a result that has its figures."""
        if result.parts.get("figures") is None:
            return False
        from kernbench_builtin.explain.result_text import print_result

        print_result(result, console, verbose=verbose)
        return True

    def answer(self, session: "GraphEngine") -> "RunVerdict":
        """Return the verdict on what has run so far; of what kernels did, where launches are measured."""
        from kernbench_builtin.explain.verdict import verdict_of

        return verdict_of(session)

    def cut_short(self, session: "GraphEngine") -> "Iterator[str]":
        """Say what limited the run until then."""
        from kernbench_builtin.explain.verdict import cut_short

        return cut_short(session)

    def conclude(self, answer: "RunVerdict", result: "RunResult") -> "RunVerdict":
        """Add whether the data is right."""
        from kernbench_builtin.explain.verdict import with_data

        return with_data(answer, result)

    @classmethod
    def show(cls, answer: "RunVerdict", console: "Console", *, verbose: bool = False) -> None:
        """Print its lines; all advice where everything is to be said."""
        from rich.console import Group
        from rich.text import Text

        from kernbench_core.runs.text_report import show

        told = answer.told(100 if verbose else 2)
        lines = (Text(line, "bold red" if line in answer.wrong else "") for line in told)
        show(Group(Text(""), *lines), console)


@attrs.frozen(kw_only=True)
class ExplainOptions(OptionRecord):
    """The option of an explanation."""

    explain: Annotated[
        bool, Option("Show where the time went: critical path, queueing, utilisation, peaks.", group=ANALYSIS)
    ] = False


class ExplainPart(RunPart):
    """Says why a run took as long as it did."""

    NAME, OPTIONS, EXAMPLE = "explain", ExplainOptions, {"explain": True}

    def observer(self) -> "Recorder":
        """Return a recorder, of which there is one."""
        from kernbench_builtin.explain.explanation import Recorder

        self._recorder = Recorder()
        return self._recorder

    def answer(self, session: "GraphEngine") -> "Explanation":
        """Explain what has happened so far."""
        from kernbench_builtin.machines.figures.tables import meter_of

        meter = meter_of(session)
        return self._recorder.explanation(session.shared.requests, (lambda _: None) if meter is None else meter.point)

    @classmethod
    def show(cls, answer: "Explanation", console: "Console", *, verbose: bool = False) -> None:
        """Print it as tables."""
        from kernbench_builtin.explain.text import print_explanation

        print_explanation(answer, console, verbose=verbose)


@attrs.frozen(kw_only=True)
class TcmMapOptions(OptionRecord):
    """The option of a map of the scratchpads."""

    tcm_map: Annotated[bool, Option("Show what the scratchpads held over time and at the peak.", group=ANALYSIS)] = (
        False
    )


class TcmMapPart(RunPart):
    """Says what the scratchpads held over time."""

    NAME, OPTIONS, EXAMPLE = "tcm_map", TcmMapOptions, {"tcm_map": True}

    def scratchpads(self) -> "type[TcmRecorder]":
        """Return what notes what they hold."""
        from kernbench_builtin.explain.scratchpad_map import TcmRecorder

        return TcmRecorder

    def answer(self, session: "GraphEngine") -> "TcmMap | None":
        """Return the map until now."""
        recorder = session.device.recorder
        return None if recorder is None else recorder.result(session.hardware.env.now)

    @classmethod
    def show(cls, answer: "TcmMap", console: "Console", *, verbose: bool = False) -> None:
        """Print it as a chart and a table."""
        from kernbench_builtin.explain.scratchpad_text import print_tcm_map

        print_tcm_map(answer, console)
