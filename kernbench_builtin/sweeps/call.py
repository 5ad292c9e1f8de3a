"""`kb.sweep`: a sweep in a line of Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kernbench_builtin.sweeps.axes import PARAM, SET, TOPOLOGY, Axis, axis_of
from kernbench_builtin.sweeps.executors.base import PATIENCE_S
from kernbench_builtin.sweeps.objectives import split_commas
from kernbench_builtin.sweeps.plan import OPTIONS, SweepPlan
from kernbench_builtin.sweeps.results import SweepResult
from kernbench_builtin.sweeps.shaken import PointOptions
from kernbench_builtin.sweeps.sweeping import planned, run_planned
from kernbench_core.errors import ConfigError, KernbenchWarning, UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import load_plugins
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins


def sweep(
    bench: str | Path | Callable[..., object],
    topology: str | Path | Iterable[str | Path] = "default",
    params: Mapping[str, object] | None = None,
    *,
    set: Mapping[str, object] | None = None,
    arguments: Iterable[str] = (),
    components: str | Path | None = None,
    where: str | Iterable[str] = (),
    objectives: str | Iterable[str] = (),
    figures: str | Path | None = None,
    sample: str = "grid",
    sample_seed: int = 0,
    search: str | None = None,
    fidelity: str | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    patience_s: float = PATIENCE_S,
    out: str | Path | None = None,
    retry_failed: bool = False,
    retry_changed: bool = False,
    cached: bool = False,
    retime: bool = False,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
    plugins: Plugins | None = None,
    **options: Any,
) -> SweepResult:
    """Run `bench` at every point of a space of machines and parameters, and return the result of each.

    `bench` is a registered name, the path of a `.py` file (`FILE.py:FUNCTION` for another function than `bench`), a
    function, or `triton:FILE.py`, a script with its `arguments`, where `{NAME}` is the value of a parameter.
    What is a list is varied, and so is a text that is a range: `{"M": [64, 128]}`, `{"M": "64..512:pow2"}`,
    `{"system.network.bandwidth": "100..800GB/s:log:4"}`. `topology` may be a list of machines, `set` maps keys of the
    configuration, `params` parameters of the bench. `where` are expressions that must hold of a point, `objectives`
    figures of a run or expressions of them, `figures` a file of functions that they may name. `sample` is "grid",
    "random:N" or "lhs:N"; `search`, as "nsga2:200", has Optuna choose points instead, and `fidelity="auto"` screens all
    of them coarsely and runs the best in full. `options` are those of `kb.run` that every point may have, as
    `verify_data` or `timeout_s`.

    Points run in `processes` of this machine, one for each core by default, or on the workers of a Dask `scheduler`;
    the sweep waits `patience_s` for it and for workers.
    A point that fails is recorded with its error, and the others go on. With `out` each record is kept in that folder
    as it ends, and a sweep that is there goes on: with `retry_failed` the points that failed are run again, with
    `retry_changed` those whose files or code were changed since, which else is an error; `on_record` is
    called with each. With `cached` runs that the user's cache has are not made again, as `kb.run` says. With `retime`
    points that differ in `set` alone are timed again from one recorded run, in the same times in every bit; the first
    of each recording and one in twenty are simulated, too. They have the figures of `sweeps.retimed.FIGURES` only.

    Raise ConfigError with all that is wrong with the plan, before anything runs.

    >>> done = kb.sweep("gemm", ["tiny"], {"M": [64, 128], "N": 64, "K": 64}, set={"cube.pes": [1, 2]})
    >>> done
    <SweepResult gemm: 4 points, 4 ok>
    """
    options = _checked(options)
    axes = _axes(topology, set or {}, params or {})
    if processes is not None and processes < 1:
        raise UsageError(f"processes must be an integer of at least 1, not {brief(processes)}.")
    plan = SweepPlan(
        bench=_name(bench, elsewhere=out is not None or scheduler is not None), topology=_topology(axes),
        components=None if components is None else str(components),
        set=_fixed(axes, SET), params=_fixed(axes, PARAM), axes=[axis for axis in axes if len(axis.values) != 1],
        where=_texts(where), objectives=_objectives(objectives), figures=None if figures is None else str(figures),
        arguments=_texts(arguments), sample=sample, seed=sample_seed, search=search, fidelity=fidelity, options=options,
        cached=cached, retime=retime,
    )  # fmt: skip
    how: dict[str, Any] = {"folder": out, "processes": processes, "scheduler": scheduler, "patience_s": patience_s,
                           "retry_failed": retry_failed, "retry_changed": retry_changed}  # fmt: skip
    return _carried_out(plan, bench if callable(bench) else None, plugins, on_record, **how)


def _carried_out(
    plan: SweepPlan,
    function: Callable[..., object] | None,
    plugins: Plugins | None,
    on_record: Callable[[Mapping[str, Any]], None] | None,
    **how: Any,
) -> SweepResult:
    """Carry a plan out as `run_planned` does, and warn of what its runs warned of, each once."""
    known = load_plugins() if plugins is None else plugins
    told: dict[str, None] = {}

    def record_ended(record: Mapping[str, Any]) -> None:
        told.update(dict.fromkeys(record["warnings"]))
        if on_record is not None:
            on_record(record)

    done = run_planned(planned(plan, known, function), known, function=function, on_record=record_ended, **how)
    for sentence in told:
        warnings.warn(sentence, KernbenchWarning, stacklevel=3)
    return done


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as a plan has them; UsageError for one that no point has, and for a value that none can be."""
    for name in options:
        if name not in OPTIONS:
            hint = did_you_mean(name, OPTIONS)
            raise UsageError(f"kb.sweep: {name!r} must be an option that every point may have.{hint}")
    made = PointOptions(**options)
    return {name: getattr(made, name) for name in options}


def _axes(topology: object, sets: object, params: object) -> list[Axis]:
    """Return an axis for each thing that is given, of one value where it is fixed; ConfigError with all faults."""
    problems: list[str] = []
    if isinstance(topology, Mapping):
        raise UsageError("topology of a sweep must be presets or files, not a mapping; write it to a file.")
    topologies = [topology] if isinstance(topology, str | Path) else list(cast("Iterable[object]", topology))
    given: list[tuple[str, str, object]] = [(TOPOLOGY, TOPOLOGY, [str(each) for each in topologies])]
    for target, found in ((SET, sets), (PARAM, params)):
        if not isinstance(found, Mapping):
            what = "set" if target == SET else "params"
            raise UsageError(f"{what} of a sweep must be a mapping of names to values, not {brief(found)}.")
        given += [(target, str(name), value) for name, value in found.items()]
    axes = [_axis(target, name, value, problems) for target, name, value in given]
    if problems:
        raise ConfigError(*problems)
    return axes


def _topology(axes: Iterable[Axis]) -> str:
    """Return the machine of a plan, or the first of those that are varied."""
    return next(str(axis.values[0]) for axis in axes if axis.target == TOPOLOGY)


def _name(bench: object, elsewhere: bool) -> str:
    """Return what a plan calls the bench; `elsewhere` says whether other processes must find it."""
    if not callable(bench) and not isinstance(bench, str | Path):
        raise UsageError(
            f"bench must be a registered name, the path of a .py file, or a function, not {brief(bench)}."
        )
    if callable(bench) and elsewhere:
        raise UsageError(
            f"bench must be a registered name or the path of a .py file where out or a scheduler is given, not the "
            f"function {brief(bench)}: others cannot find it; write it to a file, and give 'FILE.py:FUNCTION'."
        )
    return str(getattr(bench, "__name__", bench)) if callable(bench) else str(bench)


def _axis(target: str, name: str, value: object, problems: list[str]) -> Axis:
    try:
        return axis_of(name, target, value)
    except ValueError as fault:
        problems.append(f"{target} {name} {fault}" if target != TOPOLOGY else f"topology {fault}")
    except ConfigError as error:
        problems.extend(error.problems)
    return Axis(name, target, (None,))


def _fixed(axes: Iterable[Axis], target: str) -> dict[str, Any]:
    return {axis.name: axis.values[0] for axis in axes if axis.target == target and len(axis.values) == 1}


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _objectives(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return objectives; in one text they stand between commas, as on the command line."""
    return tuple(text.strip() for text in split_commas(given)) if isinstance(given, str) and given else tuple(given)
