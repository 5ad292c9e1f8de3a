"""Check a plan before anything runs: every value of every axis, as configurations and parameters are checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs
from attrs import define, field

from kernbench_builtin.sweeps.axes import TOPOLOGY, Axis, value_text
from kernbench_builtin.sweeps.constraints import NamedValues, with_short_names
from kernbench_builtin.sweeps.evaluate import functions_in, objective_of
from kernbench_builtin.sweeps.expressions import Expression
from kernbench_builtin.sweeps.objectives import Objective, require_apart
from kernbench_builtin.sweeps.plan import SweepPlan, params_of, settings_of
from kernbench_builtin.sweeps.retimed import require_retimable
from kernbench_builtin.sweeps.scripts import require_no_arguments, script_problems
from kernbench_core.errors import ConfigError, KernbenchError, UsageError

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench
    from kernbench_core.plugins import Plugins

_Values = Mapping[str, Any]
#: So many values of one axis are looked at, from both ends.
_MOST_LOOKS: Final = 256


@define
class PlanCheck:
    """Knows what is wrong with a plan; each machine, and the bench, is looked at once.

    A `function` is the bench that the plan only has the name of.
    """

    plan: SweepPlan
    plugins: Plugins
    function: Callable[..., object] | None = None
    machines: dict[object, tuple[str, ...]] = field(factory=dict, init=False)
    opened: dict[str, bool] = field(factory=dict, init=False)
    bench: Bench | None = field(default=None, init=False)
    names: NamedValues = field(init=False)

    def __attrs_post_init__(self) -> None:
        from kernbench_core.host.programs import open_program

        require_no_arguments(self.plan)
        if self.plan.is_script:
            self.plugins.programs["triton"]  # which says what is missing where nobody knows Triton
        else:
            self.bench = open_program(self.function or self.plan.bench, self.plugins)
        self.names = NamedValues(self.plan, self.plugins, self.bench)

    def expressions(self) -> tuple[list[Expression], list[str]]:
        """Return the constraints, and all that is wrong with these, with objectives and with the file of figures."""
        problems: list[str] = []
        values = {axis.name: axis.looked_at()[0] for axis in self.plan.axes}
        known, varied = self.names.of(values), with_short_names(values)
        where: list[Expression] = []
        objectives: list[Objective] = []
        functions: Collection[str] = ()
        for text in self.plan.where:
            with _noted(problems):
                where.append(Expression(text, "--where"))
                where[-1].require(known, "a parameter or a key of the configuration", varied)
        with _noted(problems):
            functions = () if self.plan.figures is None else functions_in(self.plan.figures).functions
        for text in self.plan.objectives:
            with _noted(problems):
                objectives.append(objective_of(text))
                objectives[-1].require(known, functions)
        with _noted(problems):
            require_apart(objectives)
        if self.plan.retime and not problems:
            require_retimable(self.plan, objectives, known)
        return where, problems

    def values(self, points: Sequence[_Values]) -> list[str]:
        """Return all that is wrong with machines, with what is fixed, and with the values of the axes.

        A value is tried where points first have it, with each machine, and where they last have it; it is refused for
        what is wrong at all of these. What is wrong of a combination only is the error of its points.
        """
        problems: list[str] = list(script_problems(self.plan) if self.plan.is_script else self._option_problems())
        usable = [point for point in points if self._opens(self._topology(point), problems)]
        if not usable:
            return list(dict.fromkeys(problems))
        anywhere = self._tried(usable)
        problems += self._everywhere(anywhere)
        for axis in self.plan.axes:
            if axis.target == TOPOLOGY:
                continue
            tried: dict[str, list[_Values]] = {}
            for point in usable if axis.range is None else ():
                tried.setdefault(_name(point[axis.name]), []).append(point)
            for value in _looks(axis):
                if _name(value) in tried:
                    problems += self._everywhere(self._tried(tried[_name(value)]))
                elif axis.range is not None or not self.plan.is_grid:  # constraints leave others out
                    problems += self._everywhere([{**point, axis.name: value} for point in anywhere])
        return list(dict.fromkeys(problems))

    def _option_problems(self) -> list[str]:
        """Return what is wrong with the options of all runs, beside this bench."""
        from kernbench_core.runs.backends import require_backend
        from kernbench_core.runs.options import RunCall
        from kernbench_core.runs.request import with_bench_defaults

        problems: list[str] = []
        with _noted(problems):
            require_backend(self.plugins, self.plan.options.get("backend", "numpy"))
        with _noted(problems):
            if self.bench is not None:
                own = attrs.fields_dict(RunCall)
                options = {name: value for name, value in self.plan.options.items() if name in own}
                with_bench_defaults(RunCall(self.plan.bench, **options), self.bench)
        return problems

    def _topology(self, point: _Values) -> str:
        return str(point.get(TOPOLOGY, self.plan.topology))

    def _opens(self, topology: str, problems: list[str]) -> bool:
        """Whether a machine can be read at all, and runs benches; why not is noted."""
        from kernbench_core.runs.bench_run import configure
        from kernbench_core.topology.machine_kinds import require_kernels

        if topology not in self.opened:
            before = len(problems)
            with _noted(problems):
                config = configure(self.plugins, topology, self.plan.components)
                require_kernels(config, self.plugins.machines, "run a bench")
            self.opened[topology] = len(problems) == before
        return self.opened[topology]

    def _tried(self, points: Sequence[_Values]) -> list[_Values]:
        """Return the points that are tried of those that have something: the first with each machine, and the last."""
        firsts: dict[str, _Values] = {}
        for point in points:
            firsts.setdefault(self._topology(point), point)
        return [*firsts.values(), points[-1]]

    def _everywhere(self, points: Sequence[_Values]) -> list[str]:
        """Return what is wrong at every one of some points."""
        found = self.of(points[0])
        for point in points[1:]:
            found = [problem for problem in found if problem in self.of(point)] if found else found
        return found

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
            compile_topology(config, plugins)
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
