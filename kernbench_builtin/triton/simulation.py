"""The run that launches of jit functions go to, one at a time, between `enter` and `leave`; what it hears of trials."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from attrs import frozen

from kernbench_core.errors import UsageError
from kernbench_core.spread import Contest
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_core.callsite import CallSite
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.spread import TimeSpread


@frozen(eq=False)
class JitLaunch:
    """A launch that the host's code asks for; arrays among `arguments` are the host's own.

    `kernel` is a function as `rt.launch` takes it, `name` what messages call it, `site` the line that asks. `reachable`
    are arrays whose addresses may be among the elements of the arguments; `stages` are those of its loops where the
    run pipelines them; `constants` name the arguments that are constants of compile time.
    """

    kernel: Callable[..., Any]
    name: str
    arguments: Mapping[str, object]
    grid: tuple[int, int, int]
    site: CallSite | None = None
    reachable: Sequence[object] = ()
    stages: int | None = None
    constants: Collection[str] = ()

    @property
    def of_compile_time(self) -> dict[str, object]:
        """The arguments that are constants."""
        return {name: self.arguments[name] for name in self.constants}

    @property
    def likeness(self) -> object:
        """What two launches have in common of which one is like the other."""
        given = ((name, type(value), _known_by(value)) for name, value in self.arguments.items())
        return self.grid, self.stages, *given


@frozen
class MachineFacts:
    """What a script may ask of the machine: how many PEs it has, and bytes of a scratchpad and of all HBM."""

    pes: int
    scratchpad_bytes: int
    hbm_bytes: int


def _known_by(value: object) -> object:
    return value if isinstance(value, int | float | str) else id(value)


def facts_of(rt: Runtime) -> MachineFacts:
    """Return what the machine of a host program has."""
    design, pes = rt.design, len(rt.pes)
    return MachineFacts(pes, design.tcm_bytes, design.hbm_slice_bytes * pes)


class Simulation(Protocol):
    """What jit functions ask of a run that is held open."""

    @property
    def machine(self) -> MachineFacts:
        """The machine that kernels run on."""

    @property
    def pipelines(self) -> bool:
        """Whether loops load ahead, as deep as `num_stages` says."""

    @property
    def launches(self) -> Sequence[LaunchFigures]:
        """The figures of the launches that are over, without trials."""

    @property
    def points(self) -> int | None:
        """How many points of a benchmark `perf_report` runs, the first ones; None for all."""

    def launch(self, asked: JitLaunch) -> LaunchFigures:
        """Run a kernel on the device, write what it wrote to the host's arrays, and return its figures."""

    def looked_at(self) -> None:
        """Take note that what launches looks at the figures of a launch."""

    @property
    def shakes(self) -> bool:
        """Whether trials that are near each other run again on machines that are the same but for a thousandth."""

    def trying(
        self, arguments: Iterable[object], hooked: bool, spreads: list[TimeSpread] | None = None
    ) -> AbstractContextManager[None]:
        """Have launches run beside the run while a block runs, and leave the arrays among `arguments` as they were.

        A launch like one before takes as long; where hooks may change arrays, each is simulated. With `spreads` it is
        shaken, too, and its spread is added there.
        """

    def tuned(self, tuning: JitTuning) -> None:
        """Note what came of trying the configurations of a kernel."""

    def took_address(self, address: int, array: object) -> None:
        """Keep in mind at which address a script knows an array to begin."""

    def note(self, sentence: str) -> None:
        """Note what a script is to be told of, once."""


_OPEN: list[tuple[Simulation, int]] = []
"""The simulation that is open, and the thread that opened it: its run goes on in that one only."""


def enter(simulation: Simulation) -> None:
    """Have launches go to `simulation` from now on; UsageError inside another one."""
    if _OPEN:
        raise UsageError("kb.triton must not be nested; end the open 'with' first.")
    _OPEN.append((simulation, threading.get_ident()))


def leave() -> None:
    """Have launches go nowhere again."""
    _OPEN.clear()


def current(call: str) -> Simulation:
    """Return the simulation that is open; UsageError, that names the `call` that asks, where none is or in a thread."""
    if not _OPEN:
        raise UsageError(
            f"{call} must be called inside 'with kb.triton(topology):', or in a script that 'kernbench triton' runs; "
            "there is no machine to launch it on. In a file that is imported, launch below if __name__ == '__main__'."
        )
    simulation, thread = _OPEN[-1]
    if threading.get_ident() != thread:
        raise UsageError(
            f"{call} must be called in the thread that entered kb.triton, or that the script began in, not in thread "
            f"{threading.current_thread().name!r}; launch there, one kernel after the other."
        )
    return simulation


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
    contest: Contest | None = None
    """How the fastest did on machines that are the same but for a thousandth; None where single times are compared."""

    @cached_property
    def best(self) -> Trial | None:
        """The fastest, the first of several; None where no configuration runs."""
        if self.contest is not None:
            name = next(iter(self.contest.spreads))
            return next(trial for trial in self.trials if trial.config == name)
        ran = [trial for trial in self.trials if trial.time_ns is not None]
        return min(ran, key=lambda trial: trial.time_ns or 0.0, default=None)

    @property
    def line(self) -> str:
        """What was chosen, in a line."""
        best = self.best
        found = "none" if best is None else f"{best.config} ({format_time(best.time_ns or 0.0)})"
        count = f"fastest of {len(self.trials)}"
        left = sum(trial.time_ns is None for trial in self.trials)
        line = f"autotune {self._kernel}: {found}, {count}{f', of which {left} do not run' if left else ''}"
        return line if self.contest is None else f"{line}\n  shaken {self.contest.against}"

    @property
    def table(self) -> str:
        """Every configuration with its time or why it does not run, in lines; the fastest is starred."""
        best, width = self.best, max(len(trial.config) for trial in self.trials)
        lines = [f"autotune {self._kernel}"]
        for trial in self.trials:
            first = trial.reason.partition("\n")[0]
            told = f"does not run: {first}" if trial.time_ns is None else format_time(trial.time_ns)
            lines.append(f"{'*' if trial is best else ' '} {trial.config:{width}}  {told}")
        return "\n".join([*lines, *([] if self.contest is None else [f"  shaken {self.contest.against}"])])

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
        spreads = {} if self.contest is None else self.contest.spreads
        return {
            "kernel": self.kernel,
            "key": {name: value if isinstance(value, int | float | str) else str(value) for name, value in self.key},
            "best": None if self.best is None else self.best.config,
            "trials": [
                {"config": trial.config, "time_ns": trial.time_ns, "reason": trial.reason or None,
                 **({"spread": spreads[trial.config].to_json()} if trial.config in spreads else {})}
                for trial in self.trials
            ],
        }

    @property
    def _kernel(self) -> str:
        return f"{self.kernel}({', '.join(f'{name}={value}' for name, value in self.key)})" if self.key else self.kernel
