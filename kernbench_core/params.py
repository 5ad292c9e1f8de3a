"""Parameters of components: declared once, with type, unit, default and a sentence, and read nowhere else."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import field, frozen

from kernbench_core.units import DIMENSIONS, parse_quantity
from kernbench_core.wording import MOST_TOLD


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name that this may be a slip for, "" where none is: it has two of three of the letters."""
    for near in difflib.get_close_matches(name, sorted(known), cutoff=0.6):
        if (Counter(name) - Counter(near)).total() <= max(1, len(name) // 3):
            return near
    return ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the closest known name, ` Known: …` for a few without one, or nothing."""
    names = sorted(known)
    if close := closest(name, names):
        return f" Did you mean {close!r}?"
    return f" Known: {', '.join(names)}." if 0 < len(names) <= 20 else ""


def _check_dimension(instance: Param, attribute: object, value: str) -> None:
    if value not in DIMENSIONS:
        raise ValueError(f"dimension of parameter {instance.name!r} must be one of {sorted(DIMENSIONS)}, not {value!r}")


@frozen
class Param:
    """One parameter of a component class.

    `dimension` is a name of `units.DIMENSIONS`; `default` is written as in YAML, with its unit ("8 ns"), and None
    makes the parameter required. A value must be above zero when `positive`, at least `minimum` and at most `maximum`
    when they are given (in kernbench's own unit), and one of `choices` when there are any. `doc` is one sentence. A
    count of things that a component makes one by one needs a `maximum`, so that a slip of the pen is told at once.

    A parameter of dimension "table" maps names to numbers. Its default has every name that there is; a configuration
    gives those that it changes.

    `follows` names a parameter that is declared before, and the default for each of its values where that differs from
    `default`: choosing a whole set of figures by one name leaves each of them open to be given alone.

    `entries` is a sort of entries of plug-ins whose names are choices, too, as "memory_standards": what one points at
    has `defaults`, by name, of the parameters that follow this one. `hint` says more of a name that is no choice.

    >>> clock = kb.Param("clock", "frequency", "1 GHz", "Clock of the unit.", positive=True)
    >>> clock.default_value, clock.convert("500 MHz")
    (1.0, 0.5)
    >>> kb.Param("clock", "speed", "1 GHz", "Clock of the unit.")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: dimension of parameter 'clock' must be one of [...], not 'speed'
    """

    name: str
    dimension: str = field(validator=_check_dimension)
    default: object
    doc: str
    minimum: float | None = None
    positive: bool = False
    choices: tuple[object, ...] = ()
    maximum: float | None = None
    follows: tuple[str, Mapping[object, object]] | None = None
    entries: str = ""
    hint: Callable[[str], str] | None = field(default=None, repr=False)

    def default_beside(self, values: Mapping[str, Any]) -> object:
        """Return the default, as written in YAML, beside the `values` of parameters that are declared before."""
        if self.follows is None:
            return self.default
        name, defaults = self.follows
        return defaults.get(values.get(name), self.default)

    def __attrs_post_init__(self) -> None:
        if self.dimension == "table" and not isinstance(self.default, Mapping):
            raise ValueError(f"default of parameter {self.name!r} must be a table of numbers, not {self.default!r}.")
        try:
            if self.default is not None:
                self.convert(self.default)
        except ValueError as fault:
            raise ValueError(f"default of parameter {self.name!r} {fault}") from None

    @property
    def unit(self) -> str:
        """The unit that this parameter is usually written with, "" for plain numbers."""
        return DIMENSIONS[self.dimension].example_unit

    @property
    def required(self) -> bool:
        """Whether a configuration must give this parameter."""
        return self.default is None

    @property
    def default_value(self) -> object:
        """The default in kernbench's own unit, or None when the parameter is required."""
        return None if self.default is None else self.convert(self.default)

    def convert(self, value: object) -> object:
        """Return the value in kernbench's own unit; raise ValueError("must be …") when it does not fit."""
        if self.dimension == "table":
            return self._table(value)
        converted = parse_quantity(
            value, self.dimension, positive=self.positive, minimum=self.minimum, maximum=self.maximum
        )
        if self.choices and converted not in self.choices:
            listed = ", ".join(repr(choice) for choice in self.choices)
            hint = "" if self.hint is None else self.hint(str(value))
            raise ValueError(f"must be one of {listed}, not {value!r}.{hint}")
        return converted

    def _table(self, given: object) -> dict[str, float]:
        """Complete the numbers that are given by those of the default."""
        assert isinstance(self.default, Mapping), "checked when the parameter was declared"
        if not isinstance(given, Mapping):
            raise ValueError(f"must be a table of numbers, not {given!r}; write {{name: number, …}}.")
        table = dict(self.default)
        for name, value in given.items():
            if name not in table:
                raise EntryFault(name, f"must be an entry of the table.{did_you_mean(str(name), table)}")
            try:
                table[name] = parse_quantity(
                    value, "float", positive=self.positive, minimum=self.minimum, maximum=self.maximum
                )
            except ValueError as fault:
                raise EntryFault(name, str(fault)) from None
        return table


class EntryFault(ValueError):
    """A fault of one entry of a table, in words that follow its place."""

    def __init__(self, entry: str, text: str) -> None:
        super().__init__(text)
        self.entry = entry


def resolve_params(
    declared: Iterable[Param], given: Mapping[str, object], where: Callable[..., str]
) -> tuple[dict[str, Any], list[str]]:
    """Complete and convert the parameters of one node.

    Returns every declared parameter in kernbench's own unit, defaults filled in, in declaration order, and a sentence
    for each fault. `where(name)`, or `where(name, entry)` inside a table, gives the place and dotted path that such a
    sentence starts with.
    """
    known = {param.name: param for param in declared}
    slips = [name for name in given if name not in known]
    hints = [did_you_mean(name, known) if number <= MOST_TOLD else "" for number, name in enumerate(slips)]
    problems = [f"{where(name)} must be a declared parameter.{hint}" for name, hint in zip(slips, hints, strict=True)]
    values: dict[str, Any] = {}
    for name, param in known.items():
        value = given[name] if name in given else param.default_beside(values)
        if value is None:
            problems.append(f"{where(name)} must be given: {param.doc}")
            continue
        try:
            values[name] = param.convert(value)
        except ValueError as fault:
            entry = (fault.entry,) if isinstance(fault, EntryFault) else ()
            taken = param.follows is not None and name not in given and f"{where(param.follows[0])} gives {name}, which"
            problems.append(f"{taken or where(name, *entry)} {fault}")
    return values, problems
