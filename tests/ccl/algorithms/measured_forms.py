"""Shipped algorithms on machines, measured beside their closed forms, and which there are, for tests of times."""

from __future__ import annotations

from functools import cache

from attrs import evolve

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Setup, machine_of
from kernbench_ccl.measure.measurement import formula_ns, measure
from kernbench_ccl.measure.sweep import counts_of, size_of
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.plan import load_ccl
from kernbench_core.plugins import load_plugins

PLUGINS = load_plugins()
CCL = load_ccl(catalogue=Catalogue.of(PLUGINS))
B, L = 100.0, 500.0
"""GB/s and ns of a link and direction."""


@cache
def machine(world, *sets, idealised=False, topology="tiny"):
    return machine_of(Setup(topology, None, (f"system.sips={world}", *sets), idealised, checked=False), PLUGINS)


def case(name, collective, nbytes, world, *, pipeline=False, pes=None):
    kind = COLLECTIVES[collective]
    (count,) = counts_of([nbytes], kind, "f16", world) if collective != "barrier" else (1,)
    how = evolve(CCL.settings(f"ccl.{name}_{collective}"), pipeline=pipeline, pes=pes)
    redop = "sum" if kind.reduces else None
    nbytes = size_of(count, kind, "f16", world)
    return TimedCase(collective, f"ccl.{name}_{collective}", "f16", count, nbytes, redop, 0, False, how)


def run(name, collective, nbytes, world, *sets, idealised=False, pipeline=False, pes=None, topology="tiny"):
    """Return what was measured, the closed form and the lower bound, in ns."""
    on = machine(world, *sets, idealised=idealised, topology=topology)
    asked = case(name, collective, nbytes, world, pipeline=pipeline, pes=pes)
    algorithm = Catalogue.of(PLUGINS).open(asked.algorithm, collective)
    measured = measure(asked, on, PLUGINS, checked=False)
    form = formula_ns(asked, on, algorithm, measured.used.pes)
    return measured, form, on.bound(algorithm.kind, asked.nbytes, asked.root).ns


def ideal(name, collective, nbytes, world, network, *sets, **how):
    return run(name, collective, nbytes, world, f"system.network.topology={network}", *sets, idealised=True, **how)


def ring(world, nbytes):
    return 2 * (world - 1) * (nbytes / (world * B) + L)


RINGS = [(name, what, "ring") for name in ("ring", "ring_bidirectional") for what in ("all_gather", "reduce_scatter")]
RINGS += [("ring_bidirectional", "all_reduce", "ring"), ("ring", "broadcast", "ring"), ("ring", "reduce", "ring")]
PAIRS = [("direct", what, network)
         for what in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "broadcast",
                      "reduce", "send_recv")
         for network in ("fully_connected", "switch")]  # fmt: skip
PAIRS += [("pairwise", "all_to_all", network) for network in ("fully_connected", "switch")]
TREES = [("binomial_tree", what, network)
         for network in ("fully_connected", "switch")
         for what in ("broadcast", "reduce")]  # fmt: skip
TREES += [("double_binary_tree", what, "fully_connected") for what in ("all_reduce", "broadcast", "reduce")]
HALVES = [("halving_doubling", what, network)
          for what in ("all_reduce", "all_gather", "reduce_scatter")
          for network in ("fully_connected", "switch")]  # fmt: skip
GRIDS = [(name, what, network)
         for name, network in (("mesh", "mesh_2d"), ("torus", "torus_2d"))
         for what in ("all_reduce", "all_gather", "reduce_scatter")]  # fmt: skip
EVERY = [("ring", "all_reduce", "ring"), *RINGS, *PAIRS, *TREES, *HALVES, *GRIDS]
METHODS = sorted({(name, what) for name, what, _ in EVERY})
NETWORKS = ("ring", "mesh_2d", "torus_2d", "fully_connected", "switch")
