"""Check a plan before anything runs: every value of every axis, as configurations and parameters are checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from kernbench_core.errors import ConfigError, KernbenchError, UsageError
from kernbench_core.sweep.axes import Axis, value_text
from kernbench_core.sweep.plan import SweepPlan, params_of, settings_of

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench
    from kernbench_core.plugins import Plugins

_Values = Mapping[str, Any]
#: So many values of one axis are looked at, from both ends.
_MOST_LOOKS: Final = 256


def check_plan(plan: SweepPlan, plugins: Plugins, points: Sequence[_Values]) -> None:
    """Raise ConfigError with all that is wrong with the values of the axes, whatever is beside them.

    A value is tried where the points first have it, and is refused for what is wrong where they last have it, too; what
    is wrong of a combination only is the error of those points.
    """
    check = _Check(plan, plugins)
    problems = dict.fromkeys(check.of(points[0] if points else {}) if not plan.axes else ())
    for axis in plan.axes:
        places = _places(axis, points)
        for value in _looks(axis):
            first, last = ({**point, axis.name: value} for point in places.get(_name(value), _ends(points)))
            found = check.of(first)
            if found and last != first:
                found = [problem for problem in found if problem in check.of(last)]
            problems |= dict.fromkeys(found)
    if problems:
        raise ConfigError(*problems)


def _looks(axis: Axis) -> tuple[Any, ...]:
    values = axis.looked_at()
    half = _MOST_LOOKS // 2
    return values if len(values) <= _MOST_LOOKS else (*values[:half], *values[-half:])


def _ends(points: Sequence[_Values]) -> tuple[_Values, _Values]:
    return (points[0], points[-1]) if points else ({}, {})


def _places(axis: Axis, points: Iterable[_Values]) -> dict[str, tuple[_Values, _Values]]:
    """Return the first and the last point that has a value, by the value's name."""
    found: dict[str, tuple[_Values, _Values]] = {}
    if axis.range is None:
        for point in points:
            name = _name(point[axis.name])
            found[name] = (found[name][0] if name in found else point, point)
    return found


def _name(value: object) -> str:
    return f"{type(value).__name__} {value_text(value)}"


@define
class _Check:
    """Knows what is wrong with a machine and with parameters, each looked at once."""

    plan: SweepPlan
    plugins: Plugins
    machines: dict[object, tuple[str, ...]] = field(factory=dict)
    bench: Bench | None = None
    no_bench: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        from kernbench_core.frontend.kernel_bench import open_program

        if self.plan.is_script:
            return
        try:
            self.bench = open_program(self.plan.bench, self.plugins.benches)
        except UsageError as error:
            self.no_bench = (str(error),)

    def of(self, values: _Values) -> list[str]:
        """Return all that is wrong with a point, a sentence each."""
        run = self.plan.run_of(values)
        machine = (run["topology"], settings_of(run))
        if machine not in self.machines:
            self.machines[machine] = tuple(self._machine_problems(run))
        return [*self.no_bench, *self.machines[machine], *self._param_problems(run)]

    def _machine_problems(self, run: Mapping[str, Any]) -> Iterator[str]:
        from kernbench_core.runs.bench_run import configure
        from kernbench_core.topology.compilation import compile_topology

        plugins = self.plugins
        try:
            config = configure(plugins, run["topology"], run["components"], settings_of(run))
            compile_topology(config, plugins.components, plugins.networks, plugins.machines)
        except ConfigError as error:
            yield from error.problems
        except KernbenchError as error:
            yield str(error)

    def _param_problems(self, run: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong with the parameters, each looked at beside those that are right."""
        if self.bench is None:
            return
        given = params_of(run)
        wrong = set()
        for name in given:
            try:
                self.bench.values({name: given[name]})
            except UsageError as error:
                if "needs a value for" not in str(error):
                    wrong.add(name)
                    yield str(error)
        if not wrong:
            try:
                self.bench.values(given)
            except UsageError as error:
                yield str(error)
