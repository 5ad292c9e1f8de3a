"""Other parameters than a model is given: each varied, so that what they change shows in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kernbench_core.params import Param, resolve_params

#: Parameters as they are written in YAML.
Written: TypeAlias = Mapping[str, object]
#: What times follow at once; a model that refuses the rest varied takes these.
_RATES: Final = ("time", "frequency", "bandwidth")
#: What is varied by half of itself and not by twice: most are shares of a whole.
_HALVED: Final = 0.5
_DOUBLED: Final = 2


def variations(params: Sequence[Param], given: Written) -> Iterator[dict[str, object]]:
    """Yield sets of parameters for a model to be driven with besides those that it is `given`, the widest first.

    Numbers are doubled (fractions halved, zeros are 1), and choices are the next ones; then numbers alone, then times
    and rates alone. It takes the first set that it does not refuse.
    """
    values, _ = resolve_params(params, given, lambda *names: ".".join(names))
    found = {param.name: new for param in params if (new := _other(param, values[param.name])) is not None}
    numbers = {param.name for param in params if not (param.choices or param.dimension == "bool")}
    rates = {param.name for param in params if param.dimension in _RATES}
    tried: list[dict[str, object]] = []
    for names in (set(found), numbers, rates):
        chosen = {name: value for name, value in found.items() if name in names}
        if chosen and chosen not in tried:
            tried.append(chosen)
            yield chosen


def _other(param: Param, value: object) -> object:
    """Return another value of a parameter, as YAML has it; None where its declaration allows none that is near."""
    if param.choices:
        choices = (*param.choices, *param.choices)
        return choices[choices.index(value) + 1] if len(param.choices) > 1 and value in choices else None
    if isinstance(value, bool):
        return not value
    if isinstance(value, dict):
        return {name: number * _DOUBLED for name, number in value.items()} or None
    if not isinstance(value, int | float):
        return None
    first = _HALVED if param.dimension == "float" else _DOUBLED
    for number in (value * first or type(value)(1), value // 2 if isinstance(value, int) else value / 2):
        written = f"{number!r} {param.unit}" if param.unit else number
        try:
            if param.convert(written) != value:
                return written
        except ValueError:
            continue
    return None
