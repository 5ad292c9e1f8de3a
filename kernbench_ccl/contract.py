"""The contract of a collective algorithm: what its module publishes, what its kernel is told, and how it is found.

A module publishes `COLLECTIVE` (which collective it does), `TOPO_NAME_TO_KIND` (the networks it knows, each with an
integer of its own that the kernel is given), `kernel` (the algorithm function) and `kernel_args(ctx)` (the nine values
that the kernel gets). It may publish `CONTRIBUTORS`, `WAYS`, `refuses`, `scratch_count`, `peers` and `formula`.
`load_algorithm` imports it and says everything that is wrong with it at once. docs/collectives_algorithms.md shows how
one is written.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType, ModuleType
from typing import Any, Final

from attrs import field, frozen

from kernbench_ccl.algorithm_names import collective_of as collective_of
from kernbench_ccl.algorithm_names import full_name as full_name
from kernbench_ccl.algorithm_names import methods_of as methods_of
from kernbench_ccl.collectives.collective import COLLECTIVES, refuse_redop
from kernbench_ccl.module_faults import CONTRIBUTORS as CONTRIBUTORS
from kernbench_ccl.module_faults import FUNCTIONS, module_faults
from kernbench_ccl.module_faults import PARAMETERS as PARAMETERS
from kernbench_core.callsite import describe_site, site_of_traceback
from kernbench_core.errors import KernelError, PluginError, UsageError, blamed, in_words
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.registry import AlgorithmEntry, Registry
from kernbench_core.topology.networks import NETWORKS
from kernbench_core.values.dtypes import itemsize

__tracebackhide__ = True  # what combines tiles for a kernel has the kernel's line

HELD_BYTES: Final = 512 * 1024
"""What an algorithm keeps in a PE's scratchpad at once by default, in bytes: a quarter of the presets' 2 MiB."""


def share(count: int, parts: int, index: int) -> tuple[int, int]:
    """Return where part `index` of `count` elements starts and ends (not included), cut into `parts`.

    Parts differ by at most one element, the larger ones first; with fewer elements than parts the last are empty.
    """
    size, larger = divmod(count, parts)
    start = index * size + min(index, larger)
    return start, start + size + (index < larger)


@frozen
class Network:
    """The scale-up network of the machine: its shape, how many SIPs it joins, and its columns and rows.

    `name` is a name of `system.network.topology`. A shape without columns and rows has `width` = `world`, `height` = 1.
    """

    name: str
    world: int
    width: int
    height: int = 1

    def grid(self, world: int) -> tuple[int, int]:
        """Return columns and rows that hold `world` ranks: the network's where it joins just these.

        Elsewhere, as for a group of some of the SIPs, the most square grid, not higher than wide.
        """
        if world == self.world and self.width * self.height == world and NETWORKS[self.name].flat:
            return self.width, self.height
        height = next(rows for rows in range(int(world**0.5), 0, -1) if world % rows == 0)
        return world // height, height


@frozen
class Collective:
    """What a kernel of a collective finds in `tl.collective`: the call, and how its data is to move.

    `redop` is None where nothing is reduced; `root` is a rank of the group. `counts[i][j]` are the elements that rank i
    sends to rank j in an uneven all_to_all. `tile` is the largest number of elements of one message. Without
    `pipeline` each step of an algorithm begins after all of the step before. `sequence` numbers the calls of the group,
    `group[r]` is the SIP of rank r. With `contributors` "pe" every PE brings a vector of its own, `vectors` on each
    SIP. `cubes` are the columns and rows of the cubes of a SIP. `held_bytes` is what the algorithm may keep in a PE's
    scratchpad at once, queues not counted.
    """

    name: str
    dtype: str
    network: Network
    group: tuple[int, ...]
    redop: str | None = None
    root: int = 0
    counts: tuple[tuple[int, ...], ...] | None = None
    tile: int = 4096
    pipeline: bool = True
    sequence: int = 0
    algorithm: str = ""
    contributors: str = "sip"
    vectors: int = 1
    cubes: tuple[int, int] = (1, 1)
    held_bytes: int = HELD_BYTES
    options: Mapping[str, Any] = field(factory=lambda: MappingProxyType({}), hash=False)

    def __attrs_post_init__(self) -> None:
        problem = self._problem()
        if problem is not None:
            raise UsageError(problem)

    @property
    def world(self) -> int:
        """How many ranks take part."""
        return len(self.group)

    @property
    def held_tiles(self) -> int:
        """How many tiles of `tile` elements may be in a PE's scratchpad at once; at least one."""
        return max(1, self.held_bytes // (self.tile * itemsize(self.dtype)))

    def combine(self, tl: Any, a: Any, b: Any) -> Any:
        """Reduce two tiles to one of the same dtype: one timed command.

        Of bool, a sum is "any" and a product is "all", as in torch.distributed.
        """
        redop = self.redop
        if redop == "max" or (self.dtype == "bool" and redop == "sum"):
            return tl.maximum(a, b)
        if redop == "min" or (self.dtype == "bool" and redop == "product"):
            return tl.minimum(a, b)
        return a * b if redop == "product" else a + b

    def finish(self, tl: Any, x: Any) -> Any:
        """Make a result of a tile that everyone's data is in: for avg, divide by the number of vectors."""
        if self.redop != "avg":
            return x
        return tl.cast(x / (self.world * self.vectors), self.dtype)

    def _problem(self) -> str | None:
        """Say what does not fit together, or return None."""
        kind = COLLECTIVES.get(self.name)
        if kind is None:
            return f"a collective must be one of {', '.join(COLLECTIVES)}, not {self.name!r}."
        if kind.reduces != (self.redop is not None):
            needs = "have a reduction" if kind.reduces else "have no reduction"
            return f"{self.name} must {needs}, not {self.redop!r}; {'choose one' if kind.reduces else 'leave it out'}."
        if self.redop is not None and (refusal := refuse_redop(self.redop, self.dtype)):
            return refusal
        if not 0 <= self.root < max(1, self.world):
            return f"the root of {self.name} must be a rank from 0 to {self.world - 1}, not {self.root!r}."
        if self.tile < 1:
            return f"tile of {self.name} must be at least 1 element, not {self.tile!r}."
        if self.contributors not in CONTRIBUTORS:
            return f"contributors of {self.name} must be one of {', '.join(CONTRIBUTORS)}, not {self.contributors!r}."
        return None


@frozen
class KernelContext:
    """What one PE's kernel is called with; `kernel_args` makes the nine arguments of it.

    Pointers are None where the rank has no such tensor. `pe` of `n_pe` is the place of the PE among those of its rank.
    """

    in_ptr: Any
    out_ptr: Any
    scratch_ptr: Any
    count: int
    rank: int
    world: int
    pe: int
    n_pe: int
    topo_kind: int
    collective: Collective


def kernel_args(ctx: KernelContext) -> tuple[Any, ...]:
    """Return the nine arguments as they are; a module that changes nothing publishes this function."""
    return (
        ctx.in_ptr, ctx.out_ptr, ctx.scratch_ptr, ctx.count, ctx.rank, ctx.world, ctx.pe, ctx.n_pe, ctx.topo_kind,
    )  # fmt: skip


@frozen
class Cost:
    """What a closed form is computed from: ranks, bytes as nccl counts them, GB/s and ns of one link and direction.

    `pipeline` is as in `Collective`: False asks for the time of whole steps, where a form tells the two apart.
    """

    world: int
    nbytes: float
    bandwidth: float
    latency: float
    network: Network
    pipeline: bool = True

    @property
    def hop(self) -> float:
        """The latency between neighbours in ns: of one link, or of the two that lead over a switch."""
        return self.latency * (2 if self.network.name == "switch" else 1)


def _no_refusal(world: int, network: Network) -> str | None:
    return None


def _no_scratch(count: int, world: int) -> int:
    return 0


def _few_peers(world: int) -> int:
    return 0


@frozen
class Algorithm:
    """A checked view of an algorithm module: everything that the contract names, with its defaults.

    `ways` is how many ways parts of the vector take at the same time, each dealt to PEs of its own: with fewer PEs than
    that some ways stay empty.
    """

    name: str
    module: ModuleType
    collective: str
    topologies: Mapping[str, int]
    kernel: Callable[..., None]
    kernel_args: Callable[[KernelContext], Sequence[Any]]
    contributors: tuple[str, ...] = ("sip",)
    ways: int = 1
    refuses: Callable[[int, Network], str | None] = _no_refusal
    scratch_count: Callable[[int, int], int] = _no_scratch
    peers: Callable[[int], int] = _few_peers
    formula: Callable[[Cost], float | None] | None = None

    @property
    def file(self) -> str:
        """The module's file, as errors name it."""
        return file_of(self.module)

    @property
    def sentence(self) -> str:
        """What it does: the first line of the module's docstring."""
        return (self.module.__doc__ or "").strip().partition("\n")[0]

    def refusal(self, network: Network, world: int | None = None, contributors: str = "sip") -> str | None:
        """Return a sentence why it does not do `world` ranks (default: all) of a network, or None if it does."""
        ranks = network.world if world is None else world
        if network.name not in self.topologies:
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
        sentence = self._asked("refuses", world, network)
        if sentence is not None and (not isinstance(sentence, str) or not sentence):
            raise KernelError(
                f"{line_of(self.refuses)}: refuses must return a sentence or None, not {sentence!r}; say why not."
            )
        return sentence

    def scratch(self, count: int, world: int) -> int:
        """Return the elements of scratch memory that each rank needs; KernelError where the module says nonsense."""
        found = self._asked("scratch_count", count, world)
        if not hasattr(found, "__index__") or found < 0:
            raise KernelError(
                f"{line_of(self.scratch_count)}: scratch_count must return a number of elements from 0, not {found!r}."
            )
        return int(found)

    def queues(self, world: int) -> int:
        """Return how many queues a PE receives from; 0 for so few that their slots need no thought."""
        found = self._asked("peers", world)
        if not hasattr(found, "__index__") or found < 0:
            raise KernelError(f"{line_of(self.peers)}: peers must return a number of ranks from 0, not {found!r}.")
        return int(found)

    def arguments(self, ctx: KernelContext) -> tuple[Any, ...]:
        """Return the nine arguments of one PE's kernel; KernelError where `kernel_args` does not give nine."""
        given = self._asked("kernel_args", ctx)
        if not isinstance(given, Sequence) or len(given) != len(PARAMETERS) - 1:
            found = f"{len(given)} of them" if isinstance(given, Sequence) else repr(given)
            raise KernelError(
                f"{line_of(self.kernel_args)}: kernel_args must return the nine arguments "
                f"({', '.join(PARAMETERS[:-1])}), not {found}; import kernel_args from kernbench_ccl.contract to pass "
                "all nine on."
            )
        return tuple(given)

    def closed_form(self, cost: Cost) -> float | None:
        """Return the closed form in ns, None where there is none; KernelError where the module says nonsense."""
        if self.formula is None:
            return None
        found = self._asked("formula", cost)
        if found is None:
            return None
        if not isinstance(found, Real) or isinstance(found, bool) or not 0 <= float(found) < math.inf:
            raise KernelError(
                f"{line_of(self.formula)}: formula must return a finite time in ns from 0, or None where it has no "
                f"closed form, not {found!r}."
            )
        return float(found)

    def _asked(self, name: str, *arguments: Any) -> Any:
        """Call a function of the module; KernelError with its line for whatever it raises."""
        try:
            return getattr(self, name)(*arguments)
        except INTERRUPTS:
            raise
        except BaseException as error:
            where = describe_site(site_of_traceback(error.__traceback__))
            raise blamed(error, KernelError)(f"{where}: {name} of {self.name} raised {in_words(error)}.") from error

    def kind_of(self, network: Network) -> int:
        """Return the integer that its kernel knows a network by; UsageError where it does not know it."""
        if network.name not in self.topologies:
            raise UsageError(self.refusal(network) or "")
        return self.topologies[network.name]


def line_of(function: Callable[..., Any]) -> str:
    """Return where a function begins as `file.py:LINE`, or its name where it was not written in Python."""
    code = getattr(function, "__code__", None)
    return repr(function) if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def file_of(module: ModuleType) -> str:
    """Return the file of a module, or its name where it has none."""
    return getattr(module, "__file__", None) or module.__name__


def load_algorithm(registry: Registry[AlgorithmEntry], name: str, collective: str) -> Algorithm:
    """Import the algorithm `name` (or execute the .py file of that path) and check it against the contract.

    Raises:
        UsageError: nobody registered the name, or it does another collective.
        PluginError: its module cannot be imported or does not keep the contract; it says everything at once.
    """
    if name.endswith(".py"):
        from kernbench_ccl.algorithm_file import open_algorithm

        return open_algorithm(registry, name, collective)
    full = full_name(registry, name, collective)
    kernel = registry.load(full)
    target = registry[full].target.partition(":")[0]
    module = sys.modules.get(target) or importlib.import_module(target)
    algorithm = read_algorithm(module, full)
    if algorithm.kernel is not kernel and registry[full].target.partition(":")[2] != "kernel":
        raise PluginError(f"algorithm {full!r} must be registered as '{target}:kernel', not {registry[full].target!r}.")
    if algorithm.collective != collective:
        does = f"{algorithm.collective}, as {algorithm.file} says"
        raise UsageError(f"algorithm {full!r} must do {collective}, not {does}; choose another.")
    return algorithm


def read_algorithm(module: ModuleType, name: str) -> Algorithm:
    """Check a module against the contract and return the view of it; PluginError with a sentence for each fault."""
    problems = list(module_faults(module))
    if problems:
        raise PluginError("\n".join(f"{file_of(module)}: {problem}" for problem in problems))
    optional = {key: getattr(module, key) for key in FUNCTIONS if hasattr(module, key)}
    return Algorithm(
        name,
        module,
        module.COLLECTIVE,
        MappingProxyType(dict(module.TOPO_NAME_TO_KIND)),
        module.kernel,
        module.kernel_args,
        tuple(getattr(module, "CONTRIBUTORS", ("sip",))),
        getattr(module, "WAYS", 1),
        **optional,
    )
