"""The catalogue: the algorithms and collectives that plug-ins offer, found by what a user calls them, and opened."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from attrs import field, frozen

from kernbench_ccl import plugin
from kernbench_ccl.catalogue.algorithm import Algorithm, read_algorithm
from kernbench_ccl.catalogue.collectives import Collectives
from kernbench_ccl.catalogue.names import ending, spellings
from kernbench_ccl.collectives import COLLECTIVES, CollectiveKind
from kernbench_ccl.contract import NETWORKS
from kernbench_ccl.network import installed_networks
from kernbench_core.errors import KernbenchError, PluginError, UsageError
from kernbench_core.host import read_sources
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import AlgorithmEntry, NetworkRegistry, Plugins, Registry

__tracebackhide__ = True  # what a file raises is told with its own lines


def is_file(name: str) -> bool:
    """Whether a name is meant as the path of a file."""
    return name.endswith(".py")


def read_file(
    path: str | Path,
    collectives: Mapping[str, CollectiveKind] = COLLECTIVES,
    networks: Collection[str] = NETWORKS,
) -> Algorithm:
    """Execute the file of an algorithm and check it against the contract; its path is its name.

    It may do one of `collectives` and name `networks`, by default those that come with kernbench.

    Raises:
        UsageError: there is no such file.
        KernelError: the file cannot be executed.
        PluginError: it does not keep the contract; it says everything at once.
    """
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"algorithm {str(path)!r} must be a Python file, and there is none; correct the path.")
    return read_algorithm(read_sources(file).execute("algorithm"), str(path), collectives, networks)


@frozen(eq=False)
class Catalogue:
    """The registered algorithms, the collectives that they and files may do, and the networks that these may name."""

    algorithms: Registry[AlgorithmEntry] = field(factory=lambda: Registry[AlgorithmEntry]("algorithm", ()))
    collectives: Mapping[str, CollectiveKind] = COLLECTIVES
    networks: NetworkRegistry = field(factory=installed_networks)

    @classmethod
    def of(cls, plugins: Plugins) -> Catalogue:
        """Return what the loaded plug-ins offer."""
        return cls(plugins.of(plugin.ALGORITHMS), Collectives(plugins.of(plugin.COLLECTIVES)), plugins.networks)

    # Names ------------------------------------------------------------------------------------------

    def collective_of(self, full: str) -> str:
        """Return which collective a name does: what its entry says, else what it ends with, "" where neither tells."""
        said = self.algorithms[full].collective if full in self.algorithms else ""
        seen = self._seen_by(full)
        found = said or ending(full, {name.rpartition(":")[2]: None for name in seen})
        return seen.whole_name(found) if isinstance(seen, Collectives) else found

    def spellings(self, full: str) -> tuple[str, ...]:
        """Return what a user may write for a registered name: the name, and it without vendor, or collective."""
        return spellings(full, self.collective_of(full))

    def named(self, name: str, collective: str | None = None) -> list[str]:
        """Return the registered names that a user may mean by `name`: of one collective, or (None) of any."""
        if name in self.algorithms:
            known = name in tuple(self.algorithms) or name in self.algorithms.taken
            return [name if known else self.algorithms[name].name]  # without its vendor, where nobody else has it
        does = {full: self.collective_of(full) for full in self.algorithms}
        written = {name, name.replace(":", ".", 1)}  # as every name, a method may stand behind its vendor and a colon
        return [
            full
            for full in self.algorithms
            if collective is None or does[full] in (collective, "")
            if not written.isdisjoint(spellings(full, does[full] or collective or ""))
        ]

    def full_name(self, name: str, collective: str) -> str:
        """Return the registered name of the algorithm of a collective that a user means by `name`.

        UsageError where several vendors have the method, and where nobody has it; UnknownName for a full name that
        nobody registered.
        """
        if is_file(name):
            return name
        found = self.named(name, collective)
        if len(found) > 1:
            several = " and ".join(found)
            raise UsageError(f"algorithm {name!r} must name one algorithm, not {several}; write its full name.")
        if found:
            return found[0]
        methods = self.methods_of(collective)
        known = ", ".join(methods) or "(none is registered)"
        must = f"algorithm of {collective} must be one of {known}, or a registered name, not {name!r}"
        others = dict.fromkeys(self.collective_of(full) for full in self.named(name))
        if others:
            raise UsageError(f"{must}, which does {' and '.join(others)}.")
        if "." in name:
            return self.algorithms[name].name
        raise UsageError(f"{must}.{did_you_mean(name, methods).partition(' Known: ')[0]}")

    def methods_of(self, collective: str) -> dict[str, str]:
        """Return the algorithms that do a collective: short name (the full one where two share it) to full name."""
        full = [name for name in self.algorithms if self.collective_of(name) == collective]
        bare = collective.rpartition(":")[2]
        short = {name: name.partition(".")[2].removesuffix(f"_{bare}") for name in full}
        shared = [method for method in short.values() if list(short.values()).count(method) > 1]
        return {name if short[name] in shared else short[name]: name for name in full}

    # Opening ----------------------------------------------------------------------------------------

    def open(self, name: str, collective: str) -> Algorithm:
        """Return the algorithm of a collective that `name` is: a registered name, a method, or the path of a file.

        Raises:
            UsageError: nobody registered the name, there is no such file, or it does another collective.
            KernelError: the file cannot be executed.
            PluginError: its module cannot be imported or does not keep the contract; it says everything at once.
        """
        if is_file(name):
            found = self.read_file(name)
            if found.collective != collective:
                raise UsageError(f"algorithm {name!r} must do {collective}, not {found.collective}; choose another.")
            return found
        full, registry = self.full_name(name, collective), self.algorithms
        kernel = registry.load(full)
        target = registry[full].target.partition(":")[0]
        module = sys.modules.get(target) or importlib.import_module(target)
        algorithm = read_algorithm(module, full, self._seen_by(full), self.networks)
        if algorithm.kernel is not kernel and registry[full].target.partition(":")[2] != "kernel":
            must = f"must be registered as '{target}:kernel', not {registry[full].target!r}"
            raise PluginError(f"algorithm {full!r} {must}.")
        if algorithm.collective != collective:
            does = f"{algorithm.collective}, as {algorithm.file} says"
            raise UsageError(f"algorithm {full!r} must do {collective}, not {does}; choose another.")
        return algorithm

    def open_all(self, name: str) -> list[Algorithm]:
        """Return every algorithm that `name` is, whatever collective it does; "all" is every registered one.

        A method ("ring") is that of each collective. Raises as `open`.
        """
        if is_file(name):
            return [self.read_file(name)]
        chosen = list(self.algorithms) if name == "all" else self.named(name)
        if not chosen:
            known = {spelling for full in self.algorithms for spelling in self.spellings(full)}
            file = Path(f"{name}.py")
            hint = f" Did you mean './{file}'?" if file.is_file() else did_you_mean(name, known)
            raise UsageError(
                f"algorithm must be a registered name, a method, the path of a .py file, or 'all', not {name!r}.{hint}"
            )
        return [self.open(full, self.collective_of(full) or self._published(full)) for full in chosen]

    def open_every(self) -> tuple[list[Algorithm], dict[str, str]]:
        """Return every registered algorithm that can be opened, and for the others, by name, what is wrong."""
        opened: list[Algorithm] = []
        broken: dict[str, str] = {}
        for full in self.algorithms:
            try:
                opened += self.open_all(full)
            except KernbenchError as error:
                broken[full] = str(error)
        return opened, broken

    def read_file(self, path: str | Path) -> Algorithm:
        """Execute the file of an algorithm; see `read_file` of this module."""
        return read_file(path, self.collectives, self.networks)

    def _published(self, full: str) -> str:
        """Return the collective of an algorithm of which neither entry nor name says it: what its module does."""
        module = sys.modules[self.algorithms.load(full).__module__]
        said, seen = str(getattr(module, "COLLECTIVE", "")), self._seen_by(full)
        return seen.whole_name(said) if isinstance(seen, Collectives) else said

    def _seen_by(self, full: str) -> Mapping[str, CollectiveKind]:
        """Return the collectives as the plug-in of an algorithm names them."""
        if isinstance(self.collectives, Collectives) and full in self.algorithms:
            return self.collectives.seen_by(self.algorithms.provider(full))
        return self.collectives
