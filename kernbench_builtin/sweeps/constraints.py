"""What expressions may name at a point, and the constraints that leave points out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field

from kernbench_builtin.sweeps.axes import ends_of, value_text
from kernbench_builtin.sweeps.objectives import flat
from kernbench_builtin.sweeps.objectives.figures import KNOWN
from kernbench_builtin.sweeps.plan import SweepPlan, params_of, settings_of
from kernbench_core.errors import KernbenchError, UsageError

if TYPE_CHECKING:
    from kernbench_builtin.sweeps.expressions import Expression
    from kernbench_builtin.sweeps.points import SweepPoint
    from kernbench_core.host.bench import Bench
    from kernbench_core.plugins import Plugins


def with_short_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name, and by the ends of names that tell them apart, but for names of figures."""
    ends = Counter(end for name in values for end in ends_of(name))
    shorts = {end: values[name] for name in values for end in ends_of(name) if ends[end] == 1 and end not in KNOWN}
    return {**shorts, **values}


@define
class NamedValues:
    """Knows what expressions may name: axes, parameters of the bench, keys of the configuration; defaults too."""

    plan: SweepPlan
    plugins: Plugins
    bench: Bench | None
    machines: dict[str, dict[str, Any]] = field(factory=dict)

    def of(self, values: Mapping[str, Any], wanted: Collection[str] | None = None) -> dict[str, Any]:
        """Return all names at a point, with their values; of `wanted` ones no others are needed."""
        run = self.plan.run_of(values)
        given = with_short_names({**run["set"], **run["params"], **values})
        if wanted is not None and given.keys() >= set(wanted):
            return given
        return {**self._machine(run["topology"]), **self._params(run), **given}

    def _machine(self, topology: str) -> dict[str, Any]:
        """Return the configuration without what is varied; empty where it cannot be read, which is told elsewhere."""
        from kernbench_core.runs.bench_run import configure

        if topology not in self.machines:
            sets = settings_of(self.plan.run_of({}))
            try:
                self.machines[topology] = flat(configure(self.plugins, topology, self.plan.components, sets).data)
            except KernbenchError:
                self.machines[topology] = {}
        return self.machines[topology]

    def _params(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the bench that are numbers or texts; their defaults where they are not given."""
        if self.bench is None:
            return {}
        defaults = {param.name: param.default for param in self.bench.params if not param.required}
        try:
            found = {**defaults, **self.bench.values(params_of(run))}
        except UsageError:
            found = defaults
        return {name: value for name, value in found.items() if isinstance(value, bool | int | float | str)}


def kept_points(points: Iterable[SweepPoint], where: list[Expression], names: NamedValues) -> Iterator[SweepPoint]:
    """Yield the points where all constraints hold; UsageError, with the point, where one has no value."""
    wanted = [name for expression in where for name in expression.names]
    for point in points:
        known = names.of(point.values, wanted) if where else {}
        try:
            if all(expression.truth(known) for expression in where):
                yield point
        except UsageError as error:
            at = ", ".join(f"{name}={value_text(value)}" for name, value in point.values.items())
            raise UsageError(f"{error} This happens at {at}.") from None
