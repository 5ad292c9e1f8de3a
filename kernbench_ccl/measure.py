"""Run one collective on a machine of its own: place the ranks' data, launch it once, check it, say what bound it.

Every measurement is a simulation by itself, out of place or in place: none sees warm TLBs or a log of another, they can
run in other processes, and each gives the same numbers wherever and whenever it runs. Inputs are on the device when it
begins. The time is that of the device: from the common start of all PEs to the end of the last one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, field, frozen

from kernbench_ccl.backend import Part, Place, Planned, elapsed_ns, plan_collective
from kernbench_ccl.bounds import Bound, Fabric, fabric_of, lower_bound
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.config import Settings
from kernbench_ccl.contract import Algorithm, Cost, Network, load_algorithm
from kernbench_ccl.data_check import Data, Kept, Verdict, check
from kernbench_ccl.expected import right_payload
from kernbench_ccl.groups import CHOSEN_BY, make_group
from kernbench_ccl.idealised import OVERLAY
from kernbench_ccl.selection import machine_network, make_collective
from kernbench_ccl.symbolic import PayloadError, Symbols
from kernbench_ccl.table import LINK, Busy, Measured, Used
from kernbench_ccl.wrong_step import WrongStep, first_wrong_step
from kernbench_core.callsite import describe_site
from kernbench_core.dtypes import itemsize, numpy_dtype
from kernbench_core.engine import GraphEngine
from kernbench_core.errors import ConfigError, SanityError, UninitializedReadError
from kernbench_core.executor import DataExecutor
from kernbench_core.mesh import is_mesh
from kernbench_core.naming import pe_unit
from kernbench_core.peers import Channel
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.queues import UNIT
from kernbench_core.regions import Region
from kernbench_core.runs import configure
from kernbench_core.timing import resource_uses
from kernbench_core.topology import compile_topology
from kernbench_core.units import format_time
from kernbench_core.values import AssemblyValue, Value, sub_parts

if TYPE_CHECKING:
    from kernbench_core.device_tensor import DeviceTensor
    from kernbench_core.graph import Graph
    from kernbench_core.runtime import LaunchHandle, Runtime
    from kernbench_core.watchdog import Limits, Progress

__tracebackhide__ = True

IN_PLACE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter")
"""The collectives that have an in-place form in nccl-tests."""
_HOST = ("pcie wire", "command wire", "host", "pcie_ep", "io_cpu", "m_cpu")
"""Kinds of resources that launches use; a collective does not."""
_SHOWN_HAZARDS = 3
_SHOWN_RANKS = 4
_MOST_EXPLAINED = 200_000
"""Ops of a log in which the first wrong step is looked for."""
_ALLOCATIONS = 100_000
"""New containers after which a worker process looks for cycles between simulations: 5 % less time than with 700."""


@frozen
class Setup:
    """The machine and the way of running, as texts that can be sent to another process.

    `sets` are merged last over topology, components and the overlay of `idealised`.
    """

    topology: str = "default"
    components: str | None = None
    sets: tuple[str, ...] = ()
    idealised: bool = False
    checked: bool = True


@frozen
class Case:
    """One collective to run: `count` is nccl's, `algorithm` a registered name.

    With `contributors` "pe" every PE brings a vector of `count` elements, else every rank one.
    """

    collective: str
    algorithm: str
    dtype: str
    count: int
    redop: str | None
    root: int
    in_place: bool
    settings: Settings
    contributors: str = "sip"

    def nbytes(self, world: int) -> int:
        """Return the size as nccl-tests counts it."""
        return COLLECTIVES[self.collective].size_count(self.count, world) * itemsize(self.dtype)


@frozen
class Machine:
    """A compiled machine, with what is asked of it for every case."""

    graph: Graph = field(repr=False)
    fabric: Fabric = field(repr=False)
    network: Network

    @property
    def world(self) -> int:
        """How many ranks there are: one for each SIP."""
        return self.network.world

    def vectors(self, contributors: str) -> int:
        """Return how many vectors a collective reduces or moves: one of each rank, or of each PE."""
        return len(self.graph.checked_design.pes) if contributors == "pe" else self.world

    def link(self) -> tuple[float, float]:
        """Return the bandwidth (GB/s) and latency (ns) of a scale-up link: the slowest of each; zeros without links."""
        links = self.fabric.links
        if not links:
            return 0.0, 0.0
        return min(link.bandwidth for link in links), max(link.latency for link in links)

    def bound(self, case: Case) -> Bound:
        """Return the time that no algorithm can beat."""
        return lower_bound(case.collective, self.fabric, case.nbytes(self.world), case.root)


def machine_of(setup: Setup, plugins: Plugins) -> Machine:
    """Compile the machine; raise ConfigError with everything that is wrong."""
    overlays = [path for path in (setup.components, OVERLAY if setup.idealised else None) if path is not None]
    config = configure(plugins, setup.topology, overlays, setup.sets)
    if is_mesh(config):
        raise ConfigError(
            f"{config.at(('mesh',))} is a mesh on its own, which has no PEs to run a collective on; choose another "
            "--topology."
        )
    graph = compile_topology(config, plugins.components)
    return Machine(graph, fabric_of(graph), machine_network(graph.checked_design))


def formula_ns(case: Case, machine: Machine, algorithm: Algorithm) -> float | None:
    """Return the algorithm's own closed form in ns; None where it has none.

    It has none for links that differ, for another network laid over the ranks than theirs, and for fewer PEs than ways.
    """
    design, settings = machine.graph.checked_design, case.settings
    alike = len({(link.bandwidth, link.latency) for link in machine.fabric.links}) == 1
    network = machine_network(design, settings.topology)
    most = design.cubes_per_sip * design.pes_per_cube
    if not alike or network != machine.network or min(settings.pes or most, most) < algorithm.ways:
        return None
    cost = Cost(machine.world, case.nbytes(machine.world), *machine.link(), network, settings.pipeline)
    return algorithm.closed_form(cost)


@lru_cache(maxsize=2)
def _prepared(setup: Setup) -> tuple[Plugins, Machine]:
    """Load the plug-ins and compile the machine once in a worker process, and have no collection look at them again."""
    plugins = load_plugins()
    machine = machine_of(setup, plugins)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    return plugins, machine


def measure_remotely(setup: Setup, case: Case, limits: Limits | None = None) -> Measured:
    """Measure in another process, which has the installed plug-ins."""
    plugins, machine = _prepared(setup)
    return measure(case, machine, plugins, checked=setup.checked, limits=limits)


def measure(
    case: Case,
    machine: Machine,
    plugins: Plugins,
    *,
    checked: bool = True,
    limits: Limits | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Measured:
    """Run a case and check it; without `checked` only shapes are kept, and nothing is checked.

    Raise the KernbenchError of whatever goes wrong in the run, and SanityError for a time below the lower bound.
    """
    began = time.perf_counter()
    engine, ran = _simulated(case, machine, plugins, data=checked, limits=limits, on_progress=on_progress)
    assert ran.handle is not None
    ns = elapsed_ns(ran.handle)
    _check_bound(case, machine, ns)
    verdict = ran.check(engine) if checked else None
    if verdict is not None and verdict.wrong and len(engine.op_log) <= _MOST_EXPLAINED:
        verdict = evolve(verdict, failures=(*verdict.failures, *_explained(case, machine, plugins)))
    binds, link = _busiest(engine, ns)
    nbytes = case.nbytes(machine.world)
    return Measured(
        ns,
        nbytes / ns if ns else 0.0,
        COLLECTIVES[case.collective].busbw(nbytes, ns, machine.vectors(case.contributors)),
        None if verdict is None else verdict.wrong,
        binds,
        link,
        engine.env.events,
        time.perf_counter() - began,
        () if verdict is None else verdict.failures,
        tuple(_hazard_lines(engine)),
        ran.used,
    )


def _simulated(
    case: Case, machine: Machine, plugins: Plugins, *, sites: bool = False, **options: Any
) -> tuple[GraphEngine, _Run]:
    """Simulate a case; with `sites` the op logger keeps the kernel line of every op."""
    functions = {name: entry.target for name, entry in plugins.ops.items()}
    engine = GraphEngine(machine.graph, plugins.components, functions=functions, **options)
    if sites and engine.ctx.op_logger is not None:
        engine.ctx.op_logger.sites = {}
    ran = _Run(case, machine, load_algorithm(plugins.algorithms, case.algorithm, case.collective))
    engine.run(ran.bench, name=f"{case.collective} by {case.algorithm}")
    return engine, ran


def _explained(case: Case, machine: Machine, plugins: Plugins) -> Iterable[str]:
    """Yield the step whose output was wrong first, from a second run that keeps kernel lines."""
    engine, ran = _simulated(case, machine, plugins, sites=True)
    try:
        found = ran.first_wrong_step(engine)
    except PayloadError as error:
        yield str(error)
        return
    if found is not None:
        yield found.sentence


def _check_bound(case: Case, machine: Machine, ns: float) -> None:
    bound = machine.bound(case)
    if ns < bound.ns * (1 - 1e-12):
        raise SanityError(
            f"{case.collective} of {case.nbytes(machine.world)} B by {case.algorithm} must take at least the lower "
            f"bound of {format_time(bound.ns)} ({bound.reason}), and took {format_time(ns)}; do not use the result."
        )


class _Run:
    """One case as a host program: `bench` is what the engine runs."""

    def __init__(self, case: Case, machine: Machine, algorithm: Algorithm) -> None:
        self.case, self.machine, self.algorithm = case, machine, algorithm
        self.handle: LaunchHandle | None = None
        self.used: Used | None = None
        vectors = machine.vectors(case.contributors)
        self._each = vectors // machine.world
        self._data = Data(case.collective, case.dtype, case.redop, case.root, case.count, vectors, self._each)
        self._integers: list[Any] = []
        self._before: dict[int, Value] = {}
        self._after: dict[int, Value] = {}
        self._unwritten: dict[int, int] = {}
        self._changed: list[Kept] = []

    def bench(self, rt: Runtime) -> None:
        """Place the tensors, launch the collective over all ranks, and keep what its tensors held and hold."""
        case, settings = self.case, self.case.settings
        design = self.machine.graph.checked_design
        channel = Channel("ccl", settings.slots, settings.slot_bytes, settings.tier, CHOSEN_BY)
        group = make_group(rt.pes, channel=channel)
        collective = make_collective(
            case.collective, group, self.algorithm, settings, design, case.dtype, redop=case.redop, root=case.root,
            contributors=case.contributors, vectors=self._each,
        )  # fmt: skip
        self._integers = self._data.integers() if rt.data else [None] * self._data.world
        given, made = self._places(rt)
        pes = "auto" if settings.pes is None else settings.pes
        planned = plan_collective(rt, group, collective, self.algorithm, given, made, case.count, pes=pes)
        self.used = _used(rt, planned)
        if rt.data:
            self._before = {rank: self._held(given[rank], n) for rank, n in enumerate(self._in_counts()) if n}
        self.handle = planned.launch(rt)
        if rt.data:
            self._look(made)
            self._look_back(given)

    def _look(self, made: dict[int, Place]) -> None:
        """Keep what every rank's output holds, and note those that were not written as a whole."""
        for rank, count in enumerate(self._out_counts()):
            if not count:
                continue
            try:
                self._after[rank] = self._held(made[rank], count)
            except UninitializedReadError:
                self._unwritten[rank] = count

    def _look_back(self, given: dict[int, Place]) -> None:
        """Note what was written to of the inputs, but for what is output in place."""
        outputs = self._out_counts()
        for rank, before in self._before.items():
            count, n_out = before.shape[0], outputs[rank]
            left = [(0, count)]
            if self.case.in_place and n_out:
                left = [(0, rank * n_out), ((rank + 1) * n_out, count)] if n_out < count else []
            after = self._held(given[rank], count) if left else before
            if _pieces(after) == _pieces(before):
                continue
            for start, end in left:
                each = count // self._each
                for at in range(start, end, each):
                    vector, first = rank * self._each + at // each, at % each
                    self._changed.append(Kept(vector, first, self._cut(after, at, min(each, end - at))))

    def _places(self, rt: Runtime) -> tuple[dict[int, Place], dict[int, Place]]:
        """Make the tensors of every rank; in place they share memory as nccl-tests has it."""
        case = self.case
        given: dict[int, Place] = {}
        made: dict[int, Place] = {}
        for rank, (n_in, n_out) in enumerate(zip(self._in_counts(), self._out_counts(), strict=True)):
            array = self._brought(rank)
            if not case.in_place or not n_in or not n_out:
                given[rank] = self._tensor(rt, array, n_in, rank, "in")
                made[rank] = self._tensor(rt, None, n_out, rank, "out")
                continue
            whole = self._tensor(rt, array, max(n_in, n_out), rank, "buffer", at=rank * n_in if n_out > n_in else 0)
            assert whole is not None
            given[rank] = Part(whole, rank * n_in) if n_out > n_in else whole
            made[rank] = Part(whole, rank * n_out) if n_in > n_out else whole
        return given, made

    def _brought(self, rank: int) -> Any:
        """Return the integers that a rank brings, of all its vectors; None where it brings none, or without data."""
        own = [array for array in self._integers[rank * self._each : (rank + 1) * self._each] if array is not None]
        if not own:
            return None
        return own[0] if len(own) == 1 else np.concatenate(own)

    def _tensor(
        self, rt: Runtime, array: Any, count: int, rank: int, what: str, at: int = 0
    ) -> DeviceTensor | None:
        """Place an array at the element `at` of a new tensor of `count` elements on a rank; None for no elements."""
        if not count:
            return None
        name = f"{what} of rank {rank}"
        if array is None:
            return rt.empty((count,), self.case.dtype, name=name, device=rank)
        if len(array) < count:
            whole = np.zeros(count, numpy_dtype(self.case.dtype))
            whole[at : at + len(array)] = array
            array = whole
        return rt.tensor(array, self.case.dtype, name=name, device=rank, preloaded=True)

    def _in_counts(self) -> list[int]:
        case, world = self.case, self.machine.world
        kind = COLLECTIVES[case.collective]
        return [self._each * kind.in_count(case.count, world, rank, case.root) for rank in range(world)]

    def _out_counts(self) -> list[int]:
        case, world = self.case, self.machine.world
        kind = COLLECTIVES[case.collective]
        return [self._each * kind.out_count(case.count, world, rank, case.root) for rank in range(world)]

    def _held(self, place: Place, count: int) -> Value:
        """Return what `count` elements of a tensor, from where a part of it begins, hold now."""
        assert place is not None
        part = place if isinstance(place, Part) else Part(place)
        return self._cut(part.tensor.value(), part.start, count)

    def _cut(self, value: Value, start: int, count: int) -> Value:
        """Return `count` elements of a value, from number `start` on."""
        if value.shape == (count,):
            return value
        size = itemsize(self.case.dtype)
        to = Region(0, count * size)
        return AssemblyValue((count,), self.case.dtype, tuple(sub_parts(value, to.shifted(start * size), to)))

    def _vectors(self, held: dict[int, Value]) -> dict[int, Value]:
        """Return, by vector, what ranks hold: the rows of each where every PE has a vector."""
        each = self._each
        if each == 1:
            return held
        return {
            rank * each + row: self._cut(value, row * (value.shape[0] // each), value.shape[0] // each)
            for rank, value in held.items()
            for row in range(each)
        }

    def first_wrong_step(self, engine: GraphEngine) -> WrongStep | None:
        """Follow every rank's elements through the op log; None where all of them came where they belong.

        None too where some were not written, which has no step.
        """
        if self._unwritten:
            return None
        case, world = self.case, self.machine.world
        design, size = self.machine.graph.checked_design, itemsize(case.dtype)
        symbols = Symbols(case.redop, case.dtype, self._data.world)
        for rank, value in self._before.items():
            for part in value.parts():
                symbols.contribute(part.source, rank, (part.dst.base - part.src.base) // size)
        sites = (engine.ctx.op_logger.sites if engine.ctx.op_logger is not None else None) or {}
        each = len(design.pes) // world
        return first_wrong_step(
            engine.op_log,
            symbols,
            self._after,
            {
                rank: right_payload(
                    case.collective, rank, world, case.count, redop=case.redop, root=case.root, places=self._each
                )
                for rank in range(world)
            },
            lambda pe: divmod(pe, each),
            lambda op_id: describe_site(sites.get(op_id)),
            case.redop,
        )

    def check(self, engine: GraphEngine) -> Verdict:
        """Check the data by phase 2, on integers and on reals; what was not written as a whole is wrong."""
        if self._unwritten:
            told = [f"rank {rank}: its output of {count} elements was not written as a whole."
                    for rank, count in self._unwritten.items()]  # fmt: skip
            more = [f"and {len(told) - _SHOWN_RANKS} more ranks."] if len(told) > _SHOWN_RANKS else []
            advice = "kernbench ccl check says which elements nobody stores."
            return Verdict(sum(self._unwritten.values()), (*told[:_SHOWN_RANKS], *more, advice))
        executor = partial(DataExecutor, engine.op_log, engine.store, engine.functions)
        return check(self._data, executor, self._vectors(self._before), self._vectors(self._after), self._integers,
                     self._changed)  # fmt: skip


def _used(rt: Runtime, planned: Planned) -> Used:
    """Return the queues and PEs of a planned collective; what the channel leaves open is what the PEs have."""
    channel = planned.peers.channel
    keeper = rt.components.get(pe_unit(rt.design.pes[planned.peers.ranks[0][0]].prefix, UNIT))
    own = {} if keeper is None else keeper.params
    return Used(
        channel.slots or own.get("slots"), channel.slot_bytes or own.get("slot_bytes"), channel.tier or own.get("tier"),
        planned.n_pe,
    )  # fmt: skip


def _pieces(value: Value) -> list[tuple[Region, int, Region]]:
    """Return what a value is put together from, as far as it is the same while nobody writes."""
    return [(part.dst, id(part.source), part.src) for part in value.parts()]


def _busiest(engine: GraphEngine, ns: float) -> tuple[Busy | None, Busy | None]:
    """Return what was busy the longest during the collective, and the busiest scale-up link."""
    uses = [use for use in resource_uses(engine.ctx, engine.env.now) if use.kind not in _HOST]
    ranked = sorted(uses, key=lambda use: (-use.utilisation, use.name))

    def of(found: Iterable[Any]) -> Busy | None:
        first = next(iter(found), None)
        scale = engine.env.now / ns if ns else 0.0
        return None if first is None else Busy(first.name, first.kind, min(1.0, first.utilisation * scale))

    return of(ranked), of(use for use in ranked if use.kind == LINK)


def _hazard_lines(engine: GraphEngine) -> Iterable[str]:
    hazards = engine.ctx.hazards.found()
    for hazard in hazards[:_SHOWN_HAZARDS]:
        yield from hazard.lines(folders=False)
    if len(hazards) > _SHOWN_HAZARDS:
        yield f"and {len(hazards) - _SHOWN_HAZARDS} more hazards."
