"""What `--shake` is asked with, and what it answers."""

from collections.abc import Mapping
from typing import Annotated, Any

import attrs

from kernbench_core.runs.options import ANALYSIS, Option, OptionRecord, RunOptions
from kernbench_core.spread import TimeSpread
from kernbench_core.units import format_time


def _number(given: Any) -> Any:
    """Take True for the usual number of runs."""
    return 8 if given is True else int(given) if given is False else given


_Runs = Annotated[
    int,
    Option(
        "Run N more times (8 if no N is given), latencies and bandwidths varied by 0.1 %; show median and spread.",
        "[N]", least=0, bare=8, kept=True, group=ANALYSIS,
    ),
]  # fmt: skip
_Seed = Annotated[int, Option("Seed of --shake.", "N", least=0, kept=True, group=ANALYSIS)]


@attrs.frozen(kw_only=True)
class ShakeOptions(OptionRecord):
    """The options: how many runs, 0 for none and True for 8, and the seed of what differs in them."""

    shake: _Runs = attrs.field(default=0, converter=_number)
    shake_seed: _Seed = 0


@attrs.frozen(kw_only=True)
class PointOptions(RunOptions):
    """The options of a run, and those of this part: what every point of a sweep may have, where it is kept."""

    shake: _Runs = attrs.field(default=0, converter=_number)
    shake_seed: _Seed = 0


@attrs.frozen
class Shaken:
    """The total time and that of each phase on machines that are the same `within` a share, drawn by `seed`.

    `run_ns` is the total time of the run itself, which may be beyond all of them: the machine as it is written down has
    exact ties, which no hardware has.
    """

    total: TimeSpread
    phases: Mapping[str, TimeSpread]
    run_ns: float
    seed: int
    within: float

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types, times in ns."""
        phases = {name: spread.to_json() for name, spread in self.phases.items()}
        total = self.total.to_json()
        return {"seed": self.seed, "within": self.within, "run_ns": self.run_ns, "total": total, "phases": phases}

    @property
    def in_short(self) -> str:
        """Say the median and the spread of the total time, for the one line of a run."""
        return f"shaken {self.total.runs} times within {self.within:.1%}: median {self.total}"

    @property
    def beyond(self) -> str:
        """Say that the run itself is beyond all of the others; "" where it is not."""
        if self.total.low_ns <= self.run_ns <= self.total.high_ns:
            return ""
        how = "shorter" if self.run_ns < self.total.low_ns else "longer"
        return f"the run itself, {format_time(self.run_ns)}, is {how} than all of them; the median says more"
