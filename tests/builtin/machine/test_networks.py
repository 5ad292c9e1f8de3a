"""Other packages' memory over every shape of the scale-up network: the right data, at the time of the closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_core.engine.bound import formula_latency
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import Transaction
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.values.region import Region

SHAPES = ("ring", "mesh_2d", "torus_2d", "fully_connected", "switch")
PORT, NOC, LINK, SWITCH = 10.0, 4.0, 500.0, 100.0


def steps(shape: str, sips: int, to: int) -> int:
    """Return the links between package 0 and another one, counted by hand for the shapes used here."""
    return {
        "ring": min(to, sips - to),
        "mesh_2d": {6: to % 3 + to // 3, 5: to}.get(sips, to),
        "torus_2d": {6: min(to % 3, 1) + to // 3, 5: min(to, sips - to)}.get(sips, to),
        "fully_connected": 1,
        "switch": 1,
    }[shape]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sips", [5, 6])
@pytest.mark.parametrize("op", ["read", "write"])
def test_each_step_costs_a_link_two_ports_and_the_nocs_between(simulate, shape, sips, op) -> None:
    """A chunk's round trip grows by 2 x (link + 2 ports) and an IO NoC's passage for each further step."""
    sim = simulate("tiny", f"system.sips={sips}", f"system.network.topology={shape}")
    for to in range(1, sips):
        sim.move(op, Region(sim.address("hbm1", sip=to), 1024), at_ns=100_000.0 * to)
    sim.run()
    assert [int(trip.born // 100_000) for trip in sim.trips] == list(range(1, sips)), "one after the other"
    took = {}
    for to, trip in enumerate(sim.trips, start=1):
        took[to] = trip.tail - trip.born
        sent = Transaction(op, trip.regions, trip.total, trip.path[::-1], lambda _: None)
        assert formula_latency(sim.graph, sim.hardware.components, sent) == took[to], "a lone chunk meets its bound"
    noc_wire = 1.0
    further = 2 * (LINK + 2 * PORT + NOC + 2 * noc_wire)
    for to, ns in took.items():
        assert ns == pytest.approx(took[1] + (steps(shape, sips, to) - 1) * further, abs=1e-3)


def test_a_switched_step_costs_two_links_and_the_switch(simulate) -> None:
    took = {}
    for shape in ("fully_connected", "switch"):
        sim = simulate("tiny", "system.sips=3", f"system.network.topology={shape}")
        sim.move("read", Region(sim.address("hbm1", sip=2), 1024))
        sim.run()
        took[shape] = sim.trips[0].tail - sim.trips[0].born
    assert took["switch"] - took["fully_connected"] == 2 * (LINK + SWITCH)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_is_as_fast_as_its_link(simulate, shape) -> None:
    sim = simulate("tiny", "system.sips=4", f"system.network.topology={shape}", "components.pe_dma.params.servers=64")
    nbytes = 1 << 20
    move = sim.move("write", Region(sim.address("hbm0", sip=1), nbytes))
    sim.run()
    assert move.ended_ns is not None
    least = nbytes * (4096 + 32) / 4096 / 100
    assert least < move.ended_ns < 1.15 * least + 2500


def exchange(a_ptr: Any, b_ptr: Any, n: int, tl: Any) -> None:
    """Add one to the block of the PE half the machine away, and store it at the block that mirrors the own one."""
    pe, pes = tl.program_id(0), tl.num_programs(0)
    block = tl.load(a_ptr + ((pe + pes // 2) % pes) * n + tl.arange(0, n))
    tl.store(b_ptr + (pes - 1 - pe) * n + tl.arange(0, n), block + 1.0)


ALL = [(shape, sips, chiplets) for shape in SHAPES for sips, chiplets in ((2, 1), (3, 2), (6, 4), (8, 1))]


@pytest.mark.parametrize(
    ("shape", "sips", "chiplets"),
    ALL,
)
def test_kernels_load_from_and_store_to_other_packages(
    plugins: Plugins, shape: str, sips: int, chiplets: int
) -> None:
    sets = [f"system.sips={sips}", f"system.network.topology={shape}", f"sip.io_chiplets={chiplets}"]
    graph = compile_topology(configure(plugins, "tiny", sets=sets), plugins)
    assert graph.warnings == ()
    engine, n, got = GraphEngine(graph, plugins.components), 256, []
    a = np.random.default_rng(1).standard_normal((4 * sips, n)).astype(np.float32)

    def bench(rt: Any) -> None:
        x, y = rt.tensor(a), rt.empty(a.shape)
        rt.launch(exchange, x, y, n)
        got.append(y.numpy())

    engine.run(bench)
    np.testing.assert_array_equal(got[0][::-1], np.roll(a, -2 * sips, axis=0) + np.float32(1))
    assert engine.get_timing_result().late_starts == ()
