"""A checked view of an algorithm's module: what the contract names, with its defaults, and what is wrong with it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from types import MappingProxyType, ModuleType
from typing import Any, Final

from attrs import frozen

from kernbench_ccl.collectives import COLLECTIVES, CollectiveKind
from kernbench_ccl.contract import (
    CONTRIBUTORS,
    NETWORKS,
    OTHERS,
    PARAMETERS,
    TOPO_NAME_TO_KIND,
    Cost,
    KernelContext,
    Network,
    kernel_args,
)
from kernbench_core.callsite import describe_site, site_of_traceback
from kernbench_core.errors import KernelError, PluginError, UsageError, blamed, in_words
from kernbench_core.params import did_you_mean
from kernbench_core.process import INTERRUPTS
from kernbench_core.wording import with_full_stop

__tracebackhide__ = True

FUNCTIONS: Final = {
    "kernel_args": ("ctx",), "refuses": ("world", "network"), "scratch_count": ("count", "world"), "peers": ("world",),
    "formula": ("cost",),
}  # fmt: skip
"""The functions that a module may publish, with their parameters."""


def _no_refusal(world: int, network: Network) -> str | None:
    return None


def _no_scratch(count: int, world: int) -> int:
    return 0


def _few_peers(world: int) -> int:
    return 0


@frozen
class Algorithm:
    """A checked view of an algorithm module: everything that the contract names, with its defaults.

    `topologies` are the networks of kernbench that it runs on, `elsewhere` is what its kernel knows any other network
    by, None where it runs on these alone. `ways` is how many ways parts of the vector take at the same time, each dealt
    to PEs of its own: with fewer PEs than that some ways stay empty.
    """

    name: str
    module: ModuleType
    kind: CollectiveKind
    topologies: Mapping[str, int]
    elsewhere: int | None
    kernel: Callable[..., None]
    kernel_args: Callable[[KernelContext], Sequence[Any]] = kernel_args
    contributors: tuple[str, ...] = ("sip",)
    ways: int = 1
    refuses: Callable[[int, Network], str | None] = _no_refusal
    scratch_count: Callable[[int, int], int] = _no_scratch
    peers: Callable[[int], int] = _few_peers
    formula: Callable[[Cost], float | str | None] | None = None

    @property
    def collective(self) -> str:
        """The name of the collective that it does."""
        return self.kind.name

    @property
    def file(self) -> str:
        """The module's file, as errors name it."""
        return file_of(self.module)

    @property
    def sentence(self) -> str:
        """What it does: the first line of the module's docstring."""
        return (self.module.__doc__ or "").strip().partition("\n")[0]

    def knows(self, network: str) -> bool:
        """Tell whether it runs on networks of a name, whatever it refuses of them."""
        return network in self.topologies or self.elsewhere is not None

    def refusal(self, network: Network, world: int | None = None, contributors: str = "sip") -> str | None:
        """Return a sentence why it does not do `world` ranks (default: all) of a network, or None if it does."""
        ranks = network.world if world is None else world
        if not self.knows(network.name):
            known = ", ".join(self.topologies)
            return f"{self.name} must run on one of the networks {known}, not {network.name!r}; choose another."
        if contributors not in self.contributors:
            known = " or ".join(self.contributors)
            return f"{self.name} must be given one vector per {known}, not per {contributors}; choose another."
        sentence = self.own_refusal(ranks, network)
        called = self.name.rpartition("/")[2].removesuffix(".py").rpartition(".")[2]
        if sentence is None or called in sentence:
            return sentence
        return f"{self.name} must not be asked for {ranks} ranks on {network.name}: {sentence}"

    def own_refusal(self, world: int, network: Network) -> str | None:
        """Return what the module's `refuses` says; KernelError where that is neither a sentence nor None."""
        sentence = self._call_checked("refuses", world, network)
        if sentence is not None and (not isinstance(sentence, str) or not sentence):
            raise KernelError(
                f"{line_of(self.refuses)}: refuses must return a sentence or None, not {sentence!r}; say why not."
            )
        return sentence

    def scratch(self, count: int, world: int) -> int:
        """Return the elements of scratch memory that each rank needs; KernelError where the module says nonsense."""
        found = self._call_checked("scratch_count", count, world)
        if not hasattr(found, "__index__") or found < 0:
            raise KernelError(
                f"{line_of(self.scratch_count)}: scratch_count must return a number of elements from 0, not {found!r}."
            )
        return int(found)

    def queues(self, world: int) -> int:
        """Return how many queues a PE receives from; 0 for so few that their slots need no thought."""
        found = self._call_checked("peers", world)
        if not hasattr(found, "__index__") or found < 0:
            raise KernelError(f"{line_of(self.peers)}: peers must return a number of ranks from 0, not {found!r}.")
        return int(found)

    def arguments(self, ctx: KernelContext) -> tuple[Any, ...]:
        """Return the nine arguments of one PE's kernel; KernelError where `kernel_args` does not give nine."""
        given = self._call_checked("kernel_args", ctx)
        if not isinstance(given, Sequence) or len(given) != len(PARAMETERS) - 1:
            found = f"{len(given)} of them" if isinstance(given, Sequence) else repr(given)
            raise KernelError(
                f"{line_of(self.kernel_args)}: kernel_args must return the nine arguments "
                f"({', '.join(PARAMETERS[:-1])}), not {found}; leave it out, and all nine are passed on."
            )
        return tuple(given)

    def closed_form(self, cost: Cost) -> float | str:
        """Return the closed form in ns, or why there is none; KernelError where the module says nonsense."""
        if self.formula is None:
            return "its module publishes none"
        found = self._call_checked("formula", cost)
        if found is None or (isinstance(found, str) and " " in found):
            return found or f"its module has none for this on {cost.network.name}"
        if not isinstance(found, Real) or isinstance(found, bool) or not 0 <= float(found) < math.inf:
            raise KernelError(
                f"{line_of(self.formula)}: formula must return a finite time in ns from 0, or None or a "
                f"sentence where it has no closed form, not {found!r}."
            )
        return float(found)

    def _call_checked(self, name: str, *arguments: Any) -> Any:
        """Call a function of the module; KernelError with its line for whatever it raises."""
        try:
            return getattr(self, name)(*arguments)
        except INTERRUPTS:
            raise
        except BaseException as error:
            where = describe_site(site_of_traceback(error.__traceback__))
            told = with_full_stop(f"{where}: {name} of {self.name} raised {in_words(error)}")
            raise blamed(error, KernelError)(told) from error

    def kind_of(self, network: Network) -> int:
        """Return the integer that its kernel knows a network by; UsageError where it does not know it."""
        kind = self.topologies.get(network.name, self.elsewhere)
        if kind is None:
            raise UsageError(self.refusal(network) or "")
        return kind


def _kinds_of(kinds: Mapping[str, int]) -> dict[str, int]:
    """Return the networks that a module runs on: those that it names, and kernbench's where it names the others."""
    named = {name: kind for name, kind in kinds.items() if name != OTHERS}
    if OTHERS not in kinds:
        return named
    return {**named, **{name: kinds[OTHERS] for name in NETWORKS if name not in named}}


def line_of(function: Callable[..., Any]) -> str:
    """Return where a function begins as `file.py:LINE`, or its name where it was not written in Python."""
    code = getattr(function, "__code__", None)
    return repr(function) if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def file_of(module: ModuleType) -> str:
    """Return the file of a module, or its name where it has none."""
    return getattr(module, "__file__", None) or module.__name__


def read_algorithm(
    module: ModuleType,
    name: str,
    collectives: Mapping[str, CollectiveKind] = COLLECTIVES,
    networks: Collection[str] = NETWORKS,
) -> Algorithm:
    """Check a module against the contract and return the view of it; PluginError with a sentence for each fault.

    It may do one of `collectives` and name `networks`, by default those that come with kernbench.
    """
    problems = list(module_faults(module, collectives, networks))
    if problems:
        raise PluginError("\n".join(f"{file_of(module)}: {problem}" for problem in problems))
    kinds = getattr(module, "TOPO_NAME_TO_KIND", TOPO_NAME_TO_KIND)
    optional = {key: getattr(module, key) for key in FUNCTIONS if hasattr(module, key)}
    return Algorithm(
        name,
        module,
        collectives[module.COLLECTIVE],
        MappingProxyType(_kinds_of(kinds)),
        kinds.get(OTHERS),
        module.kernel,
        contributors=tuple(getattr(module, "CONTRIBUTORS", ("sip",))),
        ways=getattr(module, "WAYS", 1),
        **optional,
    )


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
