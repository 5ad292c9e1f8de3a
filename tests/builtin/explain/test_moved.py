"""What programs move, and how often, against counts of what they ask for."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernbench_builtin.explain.accesses import hbm_accesses
from kernbench_builtin.explain.advice.moved import _burst, moved_by
from kernbench_builtin.machines.figures.launch import FiguresMeter
from kernbench_core.host.session import GraphEngine
from kernbench_core.memory import Interleave
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology

RANGES = st.lists(st.tuples(st.integers(0, 120), st.integers(1, 100)), min_size=1, max_size=4)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(RANGES, min_size=4, max_size=4))
def test_bytes_in_other_places_are_counted(plugins: Plugins, asked: list[list[tuple[int, int]]]) -> None:
    """Of rows in pages that are dealt to 8 PEs, 2 in each cube and 4 in each package, several pages at once."""

    def loads(a: Any, tl: Any) -> None:
        for first, rows in asked[tl.program_id(0) % 4]:
            tl.load(a + first * 64, shape=(rows, 64))

    def bench(rt: Any) -> None:
        rt.launch(loads, rt.tensor((256, 64), "f16", name="a", placement=Interleave(4096), resident=True))

    machine = configure(plugins, "tiny", None, ["system.sips=2", "sip.mesh.width=2", "cube.pes=2"])
    engine = GraphEngine(compile_topology(machine, plugins), plugins.components, meter=FiguresMeter())
    engine.run(bench)
    found = moved_by(engine, 0, hbm_accesses(engine), np.ones(8, np.int64))
    pairs = [
        (pe, row * 128 // 4096 % 8)
        for pe in range(8) for first, rows in asked[pe % 4] for row in range(first, first + rows)
    ]  # fmt: skip
    package = sum(128 for pe, at in pairs if pe // 4 != at // 4)
    cube = sum(128 for pe, at in pairs if pe // 4 == at // 4 and pe // 2 != at // 2)
    assert (found.nbytes, found.package, found.cube) == (128 * len(pairs), package, cube)


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=5)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=4, max_size=4), st.integers(1, 2))
def test_what_a_pe_loads_again_is_counted(plugins: Plugins, asked: list[list[tuple[bool, int]]], each: int) -> None:
    """Against a count of the tiles that each program asks for, of those that nobody stores.

    And of what a PE had stored itself, in its programs' order, as far as that is told by the ends of stores.
    """

    def moves(a: Any, c: Any, tl: Any) -> None:
        for stores, tile in asked[tl.program_id(0) % 4]:
            if stores:
                tl.store(a + tile * 1024, tl.zeros((1024,), "f16"))
            else:
                tl.load(a + tile * 1024, shape=(1024,))

    def bench(rt: Any) -> None:
        rt.launch(moves, *(rt.tensor((8192,), "f16", name=name, resident=True) for name in "ac"), grid=(4 * each,))

    engine = GraphEngine(compile_topology(configure(plugins, "tiny", None, ()), plugins), plugins.components,
                         meter=FiguresMeter())
    engine.run(bench)
    found = moved_by(engine, 0, hbm_accesses(engine), np.full(4, each))
    stored = {tile for steps in asked for stores, tile in steps if stores}
    loads = [[tile for stores, tile in steps if not stores] for steps in asked]
    again = sum(count - 1 for own in loads for tile, count in Counter(own).items() if tile not in stored)
    assert (found.loaded, found.again) == (each * sum(map(len, loads)) * 2048, each * again * 2048)
    back = 0
    for steps in asked:
        had = set[int]()
        for stores, tile in steps * each:
            back += not stores and tile in had
            had |= {tile} if stores else set()
    assert found.back == back * 2048


def test_a_model_of_somebody_else_may_call_anything_geometry() -> None:
    """A burst is one of HBM that kernbench knows; of others a byte counts by itself."""
    node = SimpleNamespace(impl="acme.router")
    components = {"r0": SimpleNamespace(node=node, geometry=(2, 3))}
    session: Any = SimpleNamespace(hardware=SimpleNamespace(components=components))
    assert _burst(session) == 1
