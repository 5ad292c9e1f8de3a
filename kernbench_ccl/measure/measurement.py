"""Run one collective on a machine of its own: place the ranks' data, launch it once, check it, say what bound it.

Every measurement is a simulation by itself, out of place or in place: none sees warm TLBs or a log of another, they can
run in other processes, and each gives the same numbers wherever and whenever it runs. Inputs are on the device when it
begins. The time is that of the device: from the common start of all PEs to the end of the last one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attrs import evolve

from kernbench_ccl.catalogue import Algorithm, Catalogue
from kernbench_ccl.contract import Cost
from kernbench_ccl.measure.machine import Setup, TimedMachine, machine_of
from kernbench_ccl.measure.table import LINK, Busy, Measured
from kernbench_ccl.measure.timed_run import TimedCase, TimedRun
from kernbench_ccl.plan import machine_network
from kernbench_ccl.plan.backend import elapsed_ns
from kernbench_ccl.prove.symbols import PayloadError
from kernbench_core.errors import SanityError
from kernbench_core.host import GraphEngine, resource_uses
from kernbench_core.kernel import op_functions
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs import open_backend
from kernbench_core.topology import design_of
from kernbench_core.units import format_time
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_core.engine import Limits, Progress

__tracebackhide__ = True

OF_LAUNCHES = ("pcie wire", "command wire", "host", "pcie_ep", "io_cpu", "m_cpu")
"""Kinds of resources that launches use; a collective does not."""
_SHOWN_HAZARDS = 3
_MOST_EXPLAINED = 200_000
"""Ops of a log in which the first wrong step is looked for."""
_ALLOCATIONS = 100_000
"""New containers after which a worker process looks for cycles between simulations: 5 % less time than with 700."""


def closed_form(
    case: TimedCase, machine: TimedMachine, algorithm: Algorithm, pes: int | None = None
) -> float | str:
    """Return the algorithm's own closed form in ns, or why it has none, without a full stop.

    `pes` are those of a rank that took part; None: as many as settings say, or all.
    """
    design, settings = design_of(machine.graph), case.settings
    network = machine_network(design, settings.topology, machine.networks)
    if len({(link.bandwidth, link.latency) for link in machine.fabric.links}) != 1:
        return "links differ, or there are none"
    if network != machine.network:
        return f"it is laid over a {network.name}, and the links make a {machine.network.name}"
    if min(settings.pes or machine.pes, machine.pes) < algorithm.ways:
        return f"it takes {algorithm.ways} ways at the same time, and a rank has fewer PEs for them"
    cost = Cost(
        machine.world, case.nbytes, *machine.link(), network, settings.pipeline,
        machine.message(settings, algorithm, itemsize(case.dtype)), machine.packet(settings),
        pes or settings.pes or machine.pes,
    )  # fmt: skip
    return algorithm.closed_form(cost)


def formula_ns(
    case: TimedCase, machine: TimedMachine, algorithm: Algorithm, pes: int | None = None
) -> float | None:
    """Return the algorithm's own closed form in ns; None where it has none."""
    found = closed_form(case, machine, algorithm, pes)
    return None if isinstance(found, str) else found


@lru_cache(maxsize=2)
def _prepared(setup: Setup) -> tuple[Plugins, TimedMachine]:
    """Load the plug-ins and compile the machine once in a worker process, and have no collection look at them again."""
    plugins = load_plugins()
    machine = machine_of(setup, plugins)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    return plugins, machine


def measure_remotely(setup: Setup, case: TimedCase, limits: Limits | None = None) -> Measured:
    """Measure in another process, which has the installed plug-ins."""
    plugins, machine = _prepared(setup)
    return measure(case, machine, plugins, checked=setup.checked, backend=setup.backend, limits=limits)


def measure(
    case: TimedCase,
    machine: TimedMachine,
    plugins: Plugins,
    *,
    checked: bool = True,
    backend: str = "numpy",
    limits: Limits | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Measured:
    """Run a case and check its data, which `backend` computes; without `checked` only shapes are kept.

    Raise the KernbenchError of whatever goes wrong in the run, and SanityError for a time below the lower bound.
    """
    began = time.perf_counter()
    engine, ran = simulated(case, machine, plugins, data=checked, limits=limits, on_progress=on_progress)
    assert ran.handle is not None
    ns = elapsed_ns(ran.handle)
    _check_bound(case, machine, ran.algorithm, ns)
    verdict = ran.check(engine, open_backend(plugins, backend)) if checked else None
    binds, link = _busiest(engine, ns)
    if verdict is not None and verdict.wrong and len(engine.op_log) <= _MOST_EXPLAINED:
        verdict = evolve(verdict, failures=(*verdict.failures, *_explained(case, machine, plugins)))
    return Measured(
        ns,
        case.nbytes / ns if ns else 0.0,
        ran.algorithm.kind.busbw(case.nbytes, ns, machine.vectors(case.contributors)),
        None if verdict is None else verdict.wrong,
        binds,
        link,
        engine.env.events,
        time.perf_counter() - began,
        () if verdict is None else verdict.failures,
        tuple(_hazard_lines(engine)),
        ran.used,
        len(engine.device.hazards.found()),
    )


def simulated(
    case: TimedCase, machine: TimedMachine, plugins: Plugins, *, sites: bool = False, **options: Any
) -> tuple[GraphEngine, TimedRun]:
    """Simulate a case; with `sites` the op logger keeps the kernel line of every op."""
    functions = op_functions(plugins.ops)
    engine = GraphEngine(machine.graph, plugins.components, functions=functions, plugins=plugins, **options)
    if sites and engine.hardware.op_logger is not None:
        engine.hardware.op_logger.sites = {}
    ran = TimedRun(case, machine, Catalogue.of(plugins).open(case.algorithm, case.collective))
    engine.run(ran.bench, name=f"{case.collective} by {case.algorithm}")
    return engine, ran


def _explained(case: TimedCase, machine: TimedMachine, plugins: Plugins) -> Iterable[str]:
    """Yield the step whose output was wrong first, from a second run that keeps kernel lines."""
    engine, ran = simulated(case, machine, plugins, sites=True)
    try:
        found = ran.first_wrong_step(engine)
    except PayloadError as error:
        yield str(error)
        return
    if found is not None:
        yield found.sentence


def _check_bound(case: TimedCase, machine: TimedMachine, algorithm: Algorithm, ns: float) -> None:
    bound = machine.bound(algorithm.kind, case.nbytes, case.root)
    if ns < bound.ns * (1 - 1e-12):
        raise SanityError(
            f"{case.collective} of {case.nbytes} B by {case.algorithm} must take at least the lower "
            f"bound of {format_time(bound.ns)} ({bound.reason}), and took {format_time(ns)}; do not use the result."
        )


def _busiest(engine: GraphEngine, ns: float) -> tuple[Busy | None, Busy | None]:
    """Return what was busy the longest during the collective, and the busiest scale-up link."""
    uses = [use for use in resource_uses(engine.hardware, engine.env.now) if use.kind not in OF_LAUNCHES]

    def of(found: Iterable[Any]) -> Busy | None:
        first = min(found, key=lambda use: (-use.utilisation, use.name), default=None)
        scale = engine.env.now / ns if ns else 0.0
        return None if first is None else Busy(first.name, first.kind, min(1.0, first.utilisation * scale))

    return of(uses), of(use for use in uses if use.kind == LINK)


def _hazard_lines(engine: GraphEngine) -> Iterable[str]:
    hazards = engine.device.hazards.found()
    for hazard in hazards[:_SHOWN_HAZARDS]:
        yield from hazard.lines(folders=False)
    if len(hazards) > _SHOWN_HAZARDS:
        yield f"and {len(hazards) - _SHOWN_HAZARDS} more hazards."
