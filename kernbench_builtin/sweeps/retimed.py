"""Points that differ from a recorded run in their hardware alone: they are timed again from it, and not simulated.

In: a job that names the run to record, and a function that simulates. Out: what the point's record has. Times are those
of the native engine, which are those of a run in every bit. Some points are simulated, too: the first of each recording
that is not the recorded run itself, four corners (the first axis at an end, all others at an end together), and one in
twenty. Where one differs, none of that recording is to be used.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.sweeps.axes import SET
from kernbench_builtin.sweeps.expressions.quantities import UnitNumber, as_known
from kernbench_builtin.sweeps.objectives import Objective, named_figures
from kernbench_builtin.sweeps.plan import SweepPlan, canonical, settings_of
from kernbench_builtin.sweeps.results import DIFFERS, RETIMED, points_in_words
from kernbench_builtin.sweeps.scripts import named_in
from kernbench_core.errors import KernbenchError, SanityError, UsageError

if TYPE_CHECKING:
    from kernbench_builtin.native.prepared import PreparedStream
    from kernbench_builtin.native.recording import Recording
    from kernbench_builtin.native.timing import NativeTimes
    from kernbench_builtin.sweeps.points import SweepPoint
    from kernbench_core.host.rows import Scalar
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.result import RunResult
    from kernbench_core.topology.configuration import Config

    SimulatePoint = Callable[..., RunResult]

FULL: Final = "in full"
#: One of so many points is simulated, too, besides the first of each recording in a process and ends.
_CHECK_EVERY: Final = 20
#: Figures that are those of the recorded run, whatever the times are.
_KEPT: Final = (
    "flop", "hbm_bytes", "intensity", "launches", "ops", "hazards", "outside", "elements_read", "verified",
    "max_abs_error", "reported_rows",
)  # fmt: skip
FIGURES: Final = (
    "time_ns", "host_to_device_ns", "launch_ns", "kernel_ns", "device_to_host_ns", "kernel_time_ns", "gflops", *_KEPT,
)  # fmt: skip
"""The figures of a point that is timed again."""
#: Runs that are kept in a process.
_MOST_BASES: Final = 4


def require_retimable(plan: SweepPlan, objectives: list[Objective], params: Mapping[str, object]) -> None:
    """Raise UsageError for a sweep with `retime` whose points cannot be timed again."""
    refused = {
        "--fidelity": plan.fidelity is not None,
        "--cached": plan.cached,
        "--shake": bool(plan.options.get("shake")),
        "--max-events": plan.options.get("max_events") is not None,
        "--max-sim-time": plan.options.get("max_sim_ns") is not None,
    }
    for option in (name for name, given in refused.items() if given):
        raise UsageError(f"--retime cannot be used with {option}; leave out one of them.")
    varied = [axis.name for axis in plan.axes if axis.target == SET]
    told = [f"{{{name}}}" for name in varied if name in named_in(plan.arguments)]
    if told:
        raise UsageError(
            "--retime must have a script that is not told what is varied in the machine, and its arguments have "
            f"{', '.join(told)}; leave out --retime."
        )
    if not varied:
        raise UsageError("--retime must have a machine that is varied, as --set cube.noc.bandwidth=64GB/s,128GB/s.")
    for each in objectives:
        for name in each.figures:
            plain = name.removeprefix("figures.")
            if plain not in FIGURES and plain not in params and not name.startswith("params.") and plan.figures is None:
                raise UsageError(
                    f"re-timed points have no {plain}, which --objective {each.text} reads, but {', '.join(FIGURES)}; "
                    "choose another objective, or leave out --retime."
                )


def to_retime(plan: SweepPlan, point: SweepPoint) -> dict[str, Any]:
    """Return what a job says of a point that is timed again: the run to record, which has the first of all hardware."""
    varied = [axis for axis in plan.axes if axis.target == SET]
    first = {axis.name: axis.looked_at()[0] for axis in varied}
    at = [_end_at(axis.looked_at(), point.values[axis.name]) for axis in varied]
    corner = None not in at and len({*at[1:]}) <= 1
    return {
        "run": plan.run_of({**point.values, **first}),
        "check": corner or int(point.key[:8], 16) % _CHECK_EVERY == 0,
    }


def _end_at(values: Sequence[Any], value: Any) -> int | None:
    """Return 0 where a value is the smallest of an axis, 1 where it is the largest, None else."""
    ends = _ends(values)
    return ends.index(value) if value in ends else None


def _ends(values: Sequence[Any]) -> tuple[Any, Any]:
    """Return the smallest and the largest of an axis; of what is no number the first and the last."""
    known = [as_known(value) for value in values]
    numbers = [each.value if isinstance(each, UnitNumber) else each for each in known]
    if not all(isinstance(each, int | float) for each in numbers):
        return values[0], values[-1]
    return values[numbers.index(min(numbers))], values[numbers.index(max(numbers))]


class RecordingDiffers(SanityError):
    """A point that was timed again has other times than its run."""


@attrs.define(eq=False)
class _Base:
    """A recorded run, or why there is none; `checked` once a point of it was simulated, too."""

    result: RunResult | None = None
    why_not: str = ""
    checked: bool = False
    prepared: list[PreparedStream] = attrs.field(factory=list)

    @property
    def recording(self) -> Recording:
        assert self.result is not None, "asked of recorded runs only"
        found: Recording = self.result.native.recording
        return found


@functools.cache
def _bases() -> dict[bytes, _Base]:
    """Return the recorded runs of this process, by what they ran."""
    return {}


def result_of(
    job: Mapping[str, Any], plugins: Plugins, simulate: SimulatePoint
) -> tuple[RunResult, dict[str, Any], dict[str, Any]]:
    """Return a result, the figures of the point that a job asks for, and what its record says of how it was timed.

    The result is the recorded one where the point was timed again: its data, parameters and sources are the point's.
    RecordingDiffers where its run has other times.
    """
    base = _base_of(job["retime"]["run"], plugins, simulate)
    config = None if base.why_not else _config_of(job["run"], plugins)
    found = base.why_not if config is None else _figures(base, config, plugins)
    if config is None or isinstance(found, str):
        result = simulate(job["run"])
        return result, named_figures(result), {"timed": f"{FULL}: {found}"}
    assert base.result is not None, "it was recorded"
    manifest = {**base.result.manifest, "configuration": dict(config.data)}
    result = attrs.evolve(base.result, manifest=manifest)
    first = not base.checked and job["run"] != job["retime"]["run"]
    checked = first or job["retime"]["check"]
    if checked:
        figures = named_figures(simulate(job["run"]))
        other = [f"{name} {value!r} and {figures[name]!r}" for name, value in found.items() if figures[name] != value]
        if other:
            raise RecordingDiffers(
                f"a re-timed point must have the figures of its run, and has others: {', '.join(other)}; run the sweep "
                "without --retime. What its program does depends on times in a way that no recording can see, as where "
                "programs share values in Python."
            )
        base.checked = base.checked or first
    return result, found, {"timed": RETIMED, "checked": checked, "op_log_sha256": None}


def _base_of(run: Mapping[str, Any], plugins: Plugins, simulate: SimulatePoint) -> _Base:
    known, name = _bases(), canonical(run)
    if name not in known:
        while len(known) >= _MOST_BASES:
            del known[next(iter(known))]
        known[name] = _recorded(run, plugins, simulate)
    return known[name]


def _recorded(run: Mapping[str, Any], plugins: Plugins, simulate: SimulatePoint) -> _Base:
    if "native" not in plugins.run_parts:
        return _Base(why_not=f"no plug-in records runs{plugins.run_parts.left_out}")
    try:
        result = simulate(run, record=True)
    except KernbenchError as error:
        return _Base(why_not=f"the recorded run failed: {str(error).partition(chr(10))[0]}")
    if result.native is None:
        return _Base(why_not="nothing was recorded")
    why_not = result.native.recording.why_not
    return _Base(why_not=why_not[0]) if why_not else _Base(result)


def _config_of(run: Mapping[str, Any], plugins: Plugins) -> Config:
    from kernbench_core.runs.bench_run import configure

    return configure(plugins, run["topology"], run["components"], settings_of(run))


def _figures(base: _Base, config: Config, plugins: Plugins) -> dict[str, Scalar] | str:
    """Return the figures of a run that is timed again on the machine of a configuration, or why it cannot be."""
    from kernbench_core.process import garbage_left

    with garbage_left():  # of its machine
        times = _times(base, config, plugins)
    if isinstance(times, str):
        return times
    assert base.result is not None, "it was recorded"
    return _named(times, base.recording, named_figures(base.result))


def _times(base: _Base, config: Config, plugins: Plugins) -> NativeTimes | str:
    from kernbench_builtin.native.timing import hardware_of, refusals, timed_on
    from kernbench_core.topology.compilation import compile_topology
    from kernbench_core.topology.design import machine_of

    machine = machine_of(compile_topology(config, plugins))
    hardware = hardware_of(machine, plugins)
    why_not = refusals(base.recording, machine, hardware)
    if why_not:
        return why_not[0]
    try:
        return timed_on(base.recording, hardware, base.prepared)
    except UsageError as error:
        return str(error)


def _named(times: NativeTimes, recording: Recording, known: Mapping[str, Scalar]) -> dict[str, Scalar]:
    phases = times.phases(recording)
    kernel_ns = phases["kernel"]
    flop: Any = known["flop"]
    found: dict[str, Scalar] = {name: known[name] for name in _KEPT}
    found |= {"time_ns": times.total_ns, **{f"{name}_ns": value for name, value in phases.items()}}
    found |= {"kernel_time_ns": kernel_ns, "gflops": flop / kernel_ns if kernel_ns else 0}
    return {name: found[name] for name in FIGURES}


def how_timed(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say how many points of a sweep were timed again, and why others were not, a line each."""
    known = list(records)
    counts = Counter(record["timed"] for record in known if "timed" in record)
    again, differ = counts.pop(RETIMED, 0), counts.pop(DIFFERS, 0)
    checked = sum(record.get("checked", False) for record in known)
    runs = len({record["recording"] for record in known if record.get("timed") == RETIMED})
    told = []
    if differ:
        told.append(f"{points_in_words(differ)} with other times than their runs: nothing re-timed beside them counts")
    if again:
        more = f"; {checked:,} of them simulated, too: equal times" if checked and not differ else ""
        told.append(f"{points_in_words(again)} re-timed from {runs:,} recorded run{'' if runs == 1 else 's'}{more}")
    return told + [f"{points_in_words(count)} {how}" for how, count in counts.most_common()]
