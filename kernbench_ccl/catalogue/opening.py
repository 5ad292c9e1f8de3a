"""Open an algorithm by what a user calls it: a registered name, a method ("ring"), or the path of a `.py` file."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from kernbench_ccl.catalogue.algorithm import Algorithm, read_algorithm
from kernbench_ccl.catalogue.names import Algorithms, collective_of, full_name, named, spellings
from kernbench_core.errors import KernbenchError, PluginError, UsageError
from kernbench_core.host.sources import read_sources
from kernbench_core.params import did_you_mean

__tracebackhide__ = True  # what a file raises is told with its own lines


def is_file(name: str) -> bool:
    """Whether a name is meant as the path of a file."""
    return name.endswith(".py")


def open_algorithm(registry: Algorithms, name: str, collective: str) -> Algorithm:
    """Return the algorithm of a collective that `name` is: a registered name, a method, or the path of a file.

    Raises:
        UsageError: nobody registered the name, there is no such file, or it does another collective.
        KernelError: the file cannot be executed.
        PluginError: its module cannot be imported or does not keep the contract; it says everything at once.
    """
    if is_file(name):
        found = read_file(name)
        if found.collective != collective:
            raise UsageError(f"algorithm {name!r} must do {collective}, not {found.collective}; choose another.")
        return found
    full = full_name(registry, name, collective)
    kernel = registry.load(full)
    target = registry[full].target.partition(":")[0]
    algorithm = read_algorithm(sys.modules.get(target) or importlib.import_module(target), full)
    if algorithm.kernel is not kernel and registry[full].target.partition(":")[2] != "kernel":
        raise PluginError(f"algorithm {full!r} must be registered as '{target}:kernel', not {registry[full].target!r}.")
    if algorithm.collective != collective:
        does = f"{algorithm.collective}, as {algorithm.file} says"
        raise UsageError(f"algorithm {full!r} must do {collective}, not {does}; choose another.")
    return algorithm


def open_algorithms(registry: Algorithms, name: str) -> list[Algorithm]:
    """Return every algorithm that `name` is, whatever collective it does; "all" is every registered one.

    A method ("ring") is that of each collective. Raises as `open_algorithm`.
    """
    if is_file(name):
        return [read_file(name)]
    chosen = list(registry) if name == "all" else named(registry, name)
    found = [(full, collective_of(registry[full])) for full in chosen]
    if not found:
        known = {spelling for full in registry for spelling in spellings(full, collective_of(registry[full]))}
        file = Path(f"{name}.py")
        hint = f" Did you mean './{file}'?" if file.is_file() else did_you_mean(name, known)
        raise UsageError(
            f"algorithm must be a registered name, a method, the path of a .py file, or 'all', not {name!r}.{hint}"
        )
    return [_load(registry, full, collective) for full, collective in found]


def open_every(registry: Algorithms) -> tuple[list[Algorithm], dict[str, str]]:
    """Return every registered algorithm that can be opened, and for the others, by name, what is wrong with them."""
    opened: list[Algorithm] = []
    broken: dict[str, str] = {}
    for full in registry:
        try:
            opened += open_algorithms(registry, full)
        except KernbenchError as error:
            broken[full] = str(error)
    return opened, broken


def _load(registry: Algorithms, full: str, collective: str) -> Algorithm:
    """Load a registered algorithm; where neither its entry nor its name says which collective it does, its module."""
    if not collective:
        module = sys.modules[registry.load(full).__module__]
        collective = getattr(module, "COLLECTIVE", "")
    return open_algorithm(registry, full, collective)


def read_file(path: str | Path) -> Algorithm:
    """Execute the file of an algorithm and check it against the contract; its path is its name.

    Raises:
        UsageError: there is no such file.
        KernelError: the file cannot be executed.
        PluginError: it does not keep the contract; it says everything at once.
    """
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"algorithm {str(path)!r} must be a Python file, and there is none; correct the path.")
    return read_algorithm(read_sources(file).execute("algorithm"), str(path))
