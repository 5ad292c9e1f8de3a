"""A plan from what the command line says, all that is wrong with it told at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from kernbench_builtin.sweeps.axes import PARAM, SET, TOPOLOGY, Axis, read_axis
from kernbench_builtin.sweeps.objectives import split_commas
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_core.errors import ConfigError, KernbenchError
from kernbench_core.wording import brief, in_a_line

_FLAGS = {SET: "--set", PARAM: "-p"}
_FORMS = {SET: "KEY=VALUES with a dotted key", PARAM: "NAME=VALUES"}


def plan_of(
    plan: SweepPlan,
    *,
    sets: Iterable[str] = (),
    params: Iterable[str] = (),
    topology: str | None = None,
    objectives: Iterable[str] = (),
    **changes: Any,
) -> SweepPlan:
    """Lay what a command line says over a plan: an axis of the same name is replaced, what is None changes nothing.

    Raise ConfigError with every text that is no axis.
    """
    problems: list[str] = []
    axes = {axis.name: axis for axis in plan.axes}
    fixed: dict[str, dict[str, Any]] = {SET: dict(plan.set), PARAM: dict(plan.params)}
    given = [*_texts(sets, SET, problems), *_texts(params, PARAM, problems)]
    given += [] if topology is None else [(TOPOLOGY, "topology", topology, f"--topology {topology}")]
    seen: dict[str, str] = {}
    for target, name, text, place in given:
        if name in seen:
            problems.append(f"{place}: {name} must be given once, with all of its values, and is also in {seen[name]}.")
            continue
        seen[name] = place
        axes.pop(name, None)
        axis = _axis(name, target, text, place, problems)
        if axis is None:
            continue
        if len(axis.values) != 1:
            axes[name] = axis
            fixed.get(target, {}).pop(name, None)
        elif target == TOPOLOGY:
            changes["topology"] = axis.values[0]
        else:
            fixed[target][name] = axis.values[0]
    if problems:
        raise ConfigError(*problems)
    if named := tuple(text.strip() for given in objectives for text in split_commas(given)):
        changes["objectives"] = named
    changes = {name: value for name, value in changes.items() if value is not None}
    return attrs.evolve(plan, axes=tuple(axes.values()), set=fixed[SET], params=fixed[PARAM], **changes)


def _texts(given: Iterable[str], target: str, problems: list[str]) -> list[tuple[str, str, str, str]]:
    found = []
    for text in given:
        name, equals, values = text.partition("=")
        place = getattr(text, "place", "") or f"{_FLAGS[target]} {in_a_line(text)}"
        if not equals or not name.strip():
            problems.append(f"{place}: must be {_FORMS[target]}, not {brief(text)}.")
        else:
            found.append((target, name.strip(), values.strip(), place))
    return found


def _axis(name: str, target: str, text: str, place: str, problems: list[str]) -> Axis | None:
    try:
        return read_axis(name, target, text)
    except ValueError as fault:
        problems.append(f"{place}: {name} {fault}")
    except KernbenchError as fault:
        problems.extend(f"{place}: {each}" for each in getattr(fault, "problems", (str(fault),)))
    return None
