"""Check a plan before anything runs: every value of every axis, as configurations and parameters are checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from kernbench_core.errors import ConfigError, KernbenchError, UsageError
from kernbench_core.sweeps.axes import TOPOLOGY, Axis, value_text
from kernbench_core.sweeps.constraints import NamedValues
from kernbench_core.sweeps.evaluate import functions_in, objective_of
from kernbench_core.sweeps.expressions import Expression
from kernbench_core.sweeps.objectives import Objective, require_apart
from kernbench_core.sweeps.plan import SweepPlan, params_of, settings_of

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench
    from kernbench_core.plugins import Plugins

_Values = Mapping[str, Any]
#: So many values of one axis are looked at, from both ends.
_MOST_LOOKS: Final = 256


@define
class PlanCheck:
    """Knows what is wrong with a plan; each machine, and the bench, is looked at once."""

    plan: SweepPlan
    plugins: Plugins
    machines: dict[object, tuple[str, ...]] = field(factory=dict, init=False)
    bench: Bench | None = field(default=None, init=False)
    names: NamedValues = field(init=False)

    def __attrs_post_init__(self) -> None:
        from kernbench_core.frontend.kernel_bench import open_program

        if not self.plan.is_script:
            self.bench = open_program(self.plan.bench, self.plugins.benches)
        self.names = NamedValues(self.plan, self.plugins, self.bench)

    def expressions(self) -> tuple[list[Expression], list[str]]:
        """Return the constraints, and all that is wrong with these, with objectives and with the file of figures."""
        problems: list[str] = []
        known = self.names.of({axis.name: axis.looked_at()[0] for axis in self.plan.axes})
        where: list[Expression] = []
        objectives: list[Objective] = []
        functions: Collection[str] = ()
        for text in self.plan.where:
            with _noted(problems):
                where.append(Expression(text, "--where"))
                where[-1].require(known, "a parameter or a key of the configuration")
        with _noted(problems):
            functions = () if self.plan.figures is None else functions_in(self.plan.figures).functions
        for text in self.plan.objectives:
            with _noted(problems):
                objectives.append(objective_of(text))
                objectives[-1].require(known, functions)
        with _noted(problems):
            require_apart(objectives)
        return where, problems

    def values(self, points: Sequence[_Values]) -> list[str]:
        """Return all that is wrong with the values of the axes, whatever is beside them.

        A value is tried where the points first have it, and is refused for what is wrong where they last have it, too;
        what is wrong of a combination only is the error of those points.
        """
        problems = dict.fromkeys(self.of(points[0]) if not self.plan.axes else ())
        left = points
        for axis in sorted(self.plan.axes, key=lambda axis: axis.target != TOPOLOGY):
            refused = set()
            places = _places(axis, left)
            for value in _looks(axis):
                if axis.range is None and _name(value) not in places and self.plan.sample == "grid":
                    continue  # constraints leave it out
                first, last = ({**point, axis.name: value} for point in places.get(_name(value), (left[0], left[-1])))
                found = self.of(first)
                if found and last != first:
                    found = [problem for problem in found if problem in self.of(last)]
                refused |= {_name(value)} if found else set()
                problems |= dict.fromkeys(found)
            if refused:
                left = [point for point in left if _name(point[axis.name]) not in refused] or left
        return list(problems)

    def of(self, values: _Values) -> list[str]:
        """Return all that is wrong with a point, a sentence each."""
        run = self.plan.run_of(values)
        machine = (run["topology"], settings_of(run))
        if machine not in self.machines:
            self.machines[machine] = tuple(self._machine_problems(run))
        return [*self.machines[machine], *self._param_problems(run)]

    def _machine_problems(self, run: Mapping[str, Any]) -> list[str]:
        from kernbench_core.runs.bench_run import configure
        from kernbench_core.topology.compilation import compile_topology

        plugins = self.plugins
        problems: list[str] = []
        with _noted(problems):
            config = configure(plugins, run["topology"], run["components"], settings_of(run))
            compile_topology(config, plugins.components, plugins.networks, plugins.machines)
        return problems

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


def _looks(axis: Axis) -> tuple[Any, ...]:
    values = axis.looked_at()
    half = _MOST_LOOKS // 2
    return values if len(values) <= _MOST_LOOKS else (*values[:half], *values[-half:])


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


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    """Note what is wrong in the block, and go on after it."""
    try:
        yield
    except ConfigError as error:
        problems.extend(error.problems)
    except KernbenchError as error:
        problems.append(str(error))
