"""What a collective algorithm's module must publish, and everything that is wrong with one."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Final

from kernbench_ccl.contract import CONTRIBUTORS, OTHERS, PARAMETERS, TOPO_NAME_TO_KIND
from kernbench_core.params import did_you_mean

FUNCTIONS: Final = {
    "kernel_args": ("ctx",), "refuses": ("world", "network"), "scratch_count": ("count", "world"), "peers": ("world",),
    "formula": ("cost",),
}  # fmt: skip
"""The functions that a module may publish, with their parameters."""


def module_faults(module: ModuleType, collectives: Collection[str], networks: Collection[str]) -> Iterator[str]:
    """Yield a sentence for everything that a module publishes wrongly, or not.

    It may do one of `collectives`, and name `networks`.
    """
    collective = getattr(module, "COLLECTIVE", None)
    if not isinstance(collective, str) or collective not in collectives:
        known = ", ".join(collectives)
        yield f"COLLECTIVE must be one of {known}, {_not(module, 'COLLECTIVE')}; say which one it does."
    yield from _kind_problems(module, networks)
    contributors = getattr(module, "CONTRIBUTORS", ("sip",))
    if not isinstance(contributors, tuple | list) or not contributors or set(contributors) - set(CONTRIBUTORS):
        yield f"CONTRIBUTORS must be a tuple of {' and '.join(map(repr, CONTRIBUTORS))}, not {contributors!r}."
    ways = getattr(module, "WAYS", 1)
    if type(ways) is not int or ways < 1:
        yield f"WAYS must be a number of PEs from 1, not {ways!r}; or leave it out."
    yield from _signature_problems(module, "kernel", PARAMETERS, "write def algorithm(…) and kernel = algorithm")
    for name, parameters in FUNCTIONS.items():
        if hasattr(module, name):
            yield from _signature_problems(module, name, parameters, "or leave it out")
    for name in ("TOPO_NAME_TO_KIND", "kernel_args"):
        for other in [] if hasattr(module, name) else get_close_matches(name, vars(module), 1, 0.8):
            yield f"{other} must be called {name}, which the module has not; or leave it out."


def _kind_problems(module: ModuleType, networks: Collection[str]) -> Iterator[str]:
    kinds = getattr(module, "TOPO_NAME_TO_KIND", TOPO_NAME_TO_KIND)
    if not isinstance(kinds, Mapping) or not kinds:
        must = "must be a dict of network names with an integer each"
        yield f"TOPO_NAME_TO_KIND {must}, not {kinds!r}; or leave it out, where it runs on every network."
        return
    for name, kind in kinds.items():
        if name != OTHERS and name not in networks:
            hint = did_you_mean(str(name), networks)
            must = f"must have the names of networks as its keys, or {OTHERS!r} for any other"
            yield f"TOPO_NAME_TO_KIND {must}, not {name!r}.{hint}"
        if type(kind) is not int:
            yield f"TOPO_NAME_TO_KIND[{name!r}] must be an integer, not {kind!r}; define a constant for it."
    if len(set(map(repr, kinds.values()))) < len(kinds):
        yield f"TOPO_NAME_TO_KIND must give every network an integer of its own, not {dict(kinds)!r}."


def _signature_problems(module: ModuleType, name: str, expected: tuple[str, ...], advice: str) -> Iterator[str]:
    """Yield a problem unless `name` is a function of the expected parameters; names count for the kernel's only."""
    spelt = ", ".join(expected)
    found = getattr(module, name, None)
    if not callable(found):
        yield f"{name} must be a function {name}({spelt}), {_not(module, name)}; {advice}."
        return
    parameters = tuple(inspect.signature(found).parameters)
    right = parameters == expected if name == "kernel" else len(parameters) == len(expected)
    if not right:
        yield f"{name} must take the parameters ({spelt}), not ({', '.join(parameters)}); {advice}."


def _not(module: ModuleType, name: str) -> str:
    return f"not {getattr(module, name)!r}" if hasattr(module, name) else "and the module has no such name"
