"""What a model says of itself, without being driven: its docstring, its parameters, its repr."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kernbench_builtin.checks.components.component_under_test import ComponentUnderTest
from kernbench_builtin.checks.components.testbench import first_line
from kernbench_core.errors import ConfigError, SanityError
from kernbench_core.host.timing import docstring_section
from kernbench_core.params import Param, resolve_params
from kernbench_core.testing.kit import CheckFailed

_SECTIONS: Final = ("Models", "Ignores", "Timing", "Source")
_UNKNOWN: Final = "no_such_parameter"
_LONGEST_REPR: Final = 2000
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]{6,}\b")


def documents_itself(under_test: ComponentUnderTest) -> None:
    """Its docstring has the sections Models, Ignores, Timing and Source, each with something in it."""
    missing = [name for name in _SECTIONS if not docstring_section(under_test.cls, name)]
    if missing:
        raise CheckFailed(
            f"the docstring of {under_test.cls.__qualname__} must have the sections {', '.join(_SECTIONS)}, and has no "
            f"{' and no '.join(missing)}"
        )


def refuses_wrong_parameters(under_test: ComponentUnderTest) -> None:
    """Unknown parameters are refused in a sentence; so is what the declarations allow and the model cannot take."""
    _, told = resolve_params(under_test.cls.PARAMS, {_UNKNOWN: 1}, lambda *names: ".".join(names))
    if not any(sentence.startswith(f"{_UNKNOWN} must be a declared parameter") for sentence in told):
        raise CheckFailed(f"parameter {_UNKNOWN!r} must be refused in a sentence, not by {told!r}")
    under_test.drives_for("refuses_wrong_parameters")
    for param in under_test.cls.PARAMS:
        for value in _edges(param):
            error = under_test.drive(under_test.drivers[0], {param.name: value}).error
            if error is not None and not isinstance(error, ConfigError | SanityError):
                raise CheckFailed(
                    f"with {param.name}={value!r}, which its PARAMS allow, it must serve, or refuse that by a "
                    f"ConfigError, and raises {first_line(error)}; declare what it takes"
                )


def has_a_short_repr(under_test: ComponentUnderTest) -> None:
    """Its repr is shorter than 2 kB, before and after it has served, and has no address of memory in it."""
    drives = under_test.drives_for("has_a_short_repr")
    for component in [each for drive in drives for each in drive.monitor.components]:
        told = repr(component)
        if len(told) > _LONGEST_REPR:
            raise CheckFailed(f"its repr must have at most {_LONGEST_REPR} characters, not {len(told)}: {told[:60]}…")
        if address := _ADDRESS.search(told):
            raise CheckFailed(f"its repr must be the same in every run, and has the address {address[0]}: {told[:60]}")


def _edges(param: Param) -> Iterator[object]:
    """Yield values at the ends of what a declaration allows."""
    if param.dimension in ("bool", "text", "table") or param.choices:
        yield from (*param.choices, *((True, False) if param.dimension == "bool" else ()))
        return
    least = param.minimum if param.minimum is not None else 0
    if not (param.positive and least <= 0):
        yield f"{least:g} {param.unit}" if param.unit else least
    if param.dimension == "int" and (param.positive or least < 1):
        yield 1
