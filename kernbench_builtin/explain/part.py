"""`--explain` and `--tcm-map`: what runs answer when they are asked why, and what their scratchpads held."""

from typing import TYPE_CHECKING, Annotated

import attrs

from kernbench_core.runs.options import Option, OptionRecord
from kernbench_core.runs.parts import RunPart

if TYPE_CHECKING:
    from rich.console import Console

    from kernbench_builtin.explain.explanation import Explanation, Recorder
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.memory.scratchpad_map import TcmMap


@attrs.frozen(kw_only=True)
class ExplainOptions(OptionRecord):
    """The option of an explanation."""

    explain: Annotated[bool, Option("Tell where the time went: critical path, queueing, use, peaks.")] = False


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
        return self._recorder.explanation(session.shared.requests, session.meter.point)

    @classmethod
    def show(cls, answer: "Explanation", console: "Console", *, verbose: bool = False) -> None:
        """Print it as tables."""
        from kernbench_builtin.explain.text import print_explanation

        print_explanation(answer, console, verbose=verbose)


@attrs.frozen(kw_only=True)
class TcmMapOptions(OptionRecord):
    """The option of a map of the scratchpads."""

    tcm_map: Annotated[bool, Option("Show what the scratchpads held over time, and at the peak.")] = False


class TcmMapPart(RunPart):
    """Says what the scratchpads held over time."""

    NAME, OPTIONS, EXAMPLE = "tcm_map", TcmMapOptions, {"tcm_map": True}
    RECORDS_SCRATCHPADS = True

    def answer(self, session: "GraphEngine") -> "TcmMap | None":
        """Return the map until now."""
        recorder = session.device.recorder
        return None if recorder is None else recorder.result(session.hardware.env.now)

    @classmethod
    def show(cls, answer: "TcmMap", console: "Console", *, verbose: bool = False) -> None:
        """Print it as a chart and a table."""
        from kernbench_builtin.explain.scratchpad_text import print_tcm_map

        print_tcm_map(answer, console)
