"""What came of trying the configurations of a kernel: the time of each, the fastest, and why some do not run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from attrs import frozen

from kernbench_core.units import format_time


@frozen
class Trial:
    """A configuration in words, and the time of its launch in ns; None, and the `reason`, where it does not run."""

    config: str
    time_ns: float | None
    reason: str = ""


@frozen(slots=False)
class JitTuning:
    """The trials of a kernel for one value of its key."""

    kernel: str
    key: Sequence[tuple[str, object]]
    trials: tuple[Trial, ...]

    @cached_property
    def best(self) -> Trial | None:
        """The fastest, the first of several; None where no configuration runs."""
        ran = [trial for trial in self.trials if trial.time_ns is not None]
        return min(ran, key=lambda trial: trial.time_ns or 0.0, default=None)

    @property
    def line(self) -> str:
        """What was chosen, in a line."""
        best = self.best
        found = "none" if best is None else f"{best.config} ({format_time(best.time_ns or 0.0)})"
        count = f"fastest of {len(self.trials)}"
        left = sum(trial.time_ns is None for trial in self.trials)
        return f"autotune {self._kernel}: {found}, {count}{f', of which {left} do not run' if left else ''}"

    @property
    def table(self) -> str:
        """Every configuration with its time or why it does not run, in lines; the fastest is starred."""
        best, width = self.best, max(len(trial.config) for trial in self.trials)
        lines = [f"autotune {self._kernel}"]
        for trial in self.trials:
            first = trial.reason.partition("\n")[0]
            told = f"does not run: {first}" if trial.time_ns is None else format_time(trial.time_ns)
            lines.append(f"{'*' if trial is best else ' '} {trial.config:{width}}  {told}")
        return "\n".join(lines)

    @property
    def nothing_runs(self) -> str:
        """Say that no configuration runs, and why."""
        reasons = "\n".join(f"  {trial.config}: {trial.reason}" for trial in self.trials)
        return (
            f"autotune of kernel {self.kernel!r} must have a configuration that runs, and none of {len(self.trials)} "
            f"does; add a smaller one.\n{reasons}"
        )

    def to_json(self) -> dict[str, object]:
        """Return plain JSON types."""
        return {
            "kernel": self.kernel,
            "key": {name: value if isinstance(value, int | float | str) else str(value) for name, value in self.key},
            "best": None if self.best is None else self.best.config,
            "trials": [
                {"config": trial.config, "time_ns": trial.time_ns, "reason": trial.reason or None}
                for trial in self.trials
            ],
        }

    @property
    def _kernel(self) -> str:
        return f"{self.kernel}({', '.join(f'{name}={value}' for name, value in self.key)})" if self.key else self.kernel
