"""Objectives of a sweep: expressions over figures and parameters, each to be made small or large."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import frozen

from kernbench_builtin.sweeps.expressions import Expression
from kernbench_builtin.sweeps.objectives.figures import (
    ALIASES,
    KNOWN,
    figure_of,
    may_be_figure,
    measured,
    named_figures,
)
from kernbench_builtin.sweeps.objectives.functions import FigureFunctions, flat, settings
from kernbench_core.errors import UsageError
from kernbench_core.host.rows import Scalar
from kernbench_core.params import did_you_mean
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.runs.result import RunResult

_OPTION = "--objective"
_HEAD = re.compile(r"\s*(?:(?P<way>min|max)\s*:)?\s*(?:(?P<name>[^\W\d]\w*)\s*=(?!=))?(?P<rest>.*)", re.DOTALL)


@frozen
class Objective:
    """What is to be made small, or large where `maximise`; `name` heads its column.

    >>> [each.text for each in parse_objectives("time, max: gflops, cost = 2 * area + time_ns / 1000")]
    ['time', 'max:gflops', 'cost=2 * area + time_ns / 1000']
    """

    name: str
    expression: Expression
    maximise: bool = False

    @property
    def text(self) -> str:
        """The objective as `parse_objective` reads it."""
        head = "" if self.name == self.expression.text else f"{self.name}="
        return f"{'max:' if self.maximise else ''}{head}{self.expression.text}"

    @property
    def figures(self) -> tuple[str, ...]:
        """The names that it reads, short ones at length."""
        return tuple(ALIASES.get(name, name) for name in self.expression.names)

    def require(self, params: Collection[str], functions: Collection[str]) -> None:
        """Raise UsageError for a name that is no figure, parameter (`params`) or function of `--figures`."""
        owners = {"a figure": KNOWN, "a parameter": params, "a function of --figures": functions}
        for name in self.expression.names:
            known = [what for what, names in owners.items() if name in names]
            if len(known) > 1:
                raise UsageError(
                    f"{_OPTION} {brief(self.text)}: {name!r} is {' and '.join(known)}; write figures.{name} or "
                    f"params.{name}."
                )
            if known or may_be_figure(name) or self._is_qualified(name, params, functions):
                continue
            hint = did_you_mean(name, {*KNOWN, *params, *functions})
            raise UsageError(
                f"{_OPTION} {brief(self.text)}: {name!r} must be a figure, a parameter, or a function of --figures "
                f"FILE.py, and there is none of this name.{hint}"
            )

    @staticmethod
    def _is_qualified(name: str, params: Collection[str], functions: Collection[str]) -> bool:
        """Whether it says what it is of: figures.NAME or params.NAME."""
        kind, _, rest = name.partition(".")
        if kind == "figures":
            return rest in functions or may_be_figure(rest)
        return kind == "params" and rest in params

    def of(self, params: Mapping[str, object], figures: Mapping[str, Scalar]) -> float:
        """Return its value at a point, larger or smaller as it comes; UsageError where it has none there."""
        known: dict[str, object] = {f"params.{name}": value for name, value in params.items()}
        told = measured(figures)
        told.update({short: told[name] for short, name in ALIASES.items() if name in told})
        known |= {f"figures.{name}": value for name, value in told.items()}
        return self.expression.number({**told, **params, **known})


def parse_objective(text: str) -> Objective:
    """Read one objective: an expression, after `max:` where it is to be made large, and after `NAME=` to name it."""
    match = _HEAD.fullmatch(text)
    assert match is not None  # it matches any text
    expression = Expression(match["rest"], _OPTION)
    return Objective(match["name"] or expression.text, expression, match["way"] == "max")


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Read objectives with commas between them; UsageError for one that is none, and for two of one name."""
    found = tuple(map(parse_objective, split_commas(text)))
    require_apart(found)
    return found


def require_apart(objectives: Sequence[Objective]) -> None:
    """Raise UsageError where two objectives would head their columns alike."""
    names = [each.name for each in objectives]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{_OPTION}: two objectives must not both be called {name!r}; name one, as NAME={name}.")


def split_commas(text: str) -> Iterator[str]:
    """Yield what stands between the commas of a text that are in no brackets and no quotes."""
    depth, begin, quote = 0, 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth <= 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def measure(
    result: RunResult,
    objectives: Sequence[Objective],
    functions: FigureFunctions | None = None,
    values: Mapping[str, object] = MappingProxyType({}),
    known: Mapping[str, Scalar] | None = None,
) -> tuple[dict[str, Scalar], dict[str, float]]:
    """Return the figures of a run, those of `functions` too, and its objectives by name, as plain JSON types.

    `values` are those of the point; an objective may also read keys of the configuration, and parameters of the bench.
    `known` are its named figures, where they are known already. UsageError where a figure or an objective has no value.
    """
    figures = named_figures(result) if known is None else dict(known)
    config = result.manifest["configuration"]
    if functions is not None:
        figures |= functions.of(settings(config, result.params), figures)
    params = {**flat(config), **result.params, **values}
    for name in dict.fromkeys(name for each in objectives for name in each.figures):
        name = name.removeprefix("figures.")
        if name not in figures and name not in params and not name.startswith("params."):
            figures[name] = figure_of(result, name, figures)
    return figures, {each.name: each.of(params, figures) for each in objectives}
