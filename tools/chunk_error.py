"""Measure what the size of chunks does to contention, and write the tables of docs/timing_model.md.

    python tools/chunk_error.py [--update]

Contention interleaves chunk by chunk, so large chunks err where transfers meet. Here everything that a chunk costs by
itself is taken away (headers, set-up, look-ups), and each DMA has `WINDOW` bytes under way, whatever the chunks: what
is left is the grain. The reference is the finest, 64 B. All times are simulated, so each run gives the same tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import attrs

from kernbench_core.topology.design import Machine, design_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_core.graph import Graph
from kernbench_core.host.bench import open_bench
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import Command
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology import naming
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.units import format_bytes, format_time
from kernbench_core.values.region import Region

PAGE = Path(__file__).resolve().parent.parent / "docs" / "timing_model.md"
BEGIN, END = "<!-- tools/chunk_error.py writes from here -->", "<!-- to here -->"
SIZES = (64, 256, 1024, 2048, 4096, 8192, 16384, 65536)
#: Bytes that a DMA has under way: two of the largest chunks, so that bandwidth x latency never limits it; four of them
#: over the long way to another package.
WINDOW, FAR_WINDOW = 128 << 10, 256 << 10
#: Loads that a bystander may have under way: it must not wait for itself.
OWN_LOADS = 1024
GEMM_SIZE = 256
FREE = (
    *(f"{link}.header_bytes=0 B" for link in ("host.pcie", "sip.ucie")),
    "components.pe_dma.params.descriptor_overhead=0 ns",
    "components.pe_dma.params.overhead=0 ns",
    "components.pe_mmu.params.tlb_overhead=0 ns",
    "components.pe_mmu.params.walk_time=0 ns",
)
"""Settings under which a chunk costs nothing by itself; headers of on-die wires are taken off the graph."""

Transfer = tuple[int, int, int, int, float]
"""A read: by PE, from the slice of PE, at this offset, of so many bytes, asked for at so many ns."""


class Move(Command):
    """Ask a pe_dma to read `regions`, from outside: nobody runs a kernel."""

    __slots__ = ("dma_op", "regions")

    serves: ClassVar[str] = "pe_dma"
    data_op: ClassVar[bool] = False

    def __init__(self, regions: tuple[Region, ...], path: tuple[str, ...]) -> None:
        super().__init__((0, 0))
        self.dma_op = "read"
        self.regions = regions
        self.path = path


@attrs.frozen
class Outcome:
    """What one workload took with chunks of one size, in ns: the end of each PE, or the bystander's mean; the last end.

    `events` is what it cost to simulate.
    """

    watched: tuple[float, ...]
    makespan: float
    events: int


@attrs.frozen
class Workload:
    """Transfers that are asked for on `default`; of those of the `bystander`, a PE, only the mean latency is shown."""

    name: str
    transfers: tuple[Transfer, ...]
    window: int = WINDOW
    bystander: int | None = None


def workloads(size: int = 512 << 10) -> tuple[Workload, ...]:
    """Return what is measured with reads of `size` bytes; PEs 0 to 7 share a cube, 32 to 63 are the other package."""
    part = size // 8
    everyone = tuple((pe, (pe + step) % 8, part * pe, part, 0.0) for step in range(1, 8) for pe in range(8))
    # PE 1 loads 64 B now and then, at a pace that no chunk size divides
    beside = tuple((1, 2, size + 64 * index, 64, 300.0 + 97.0 * index) for index in range(size // 11000))
    return (
        Workload("lone read, own slice", ((0, 0, 0, size, 0.0),)),
        Workload("lone read, another package", ((0, 32, 0, size, 0.0),), FAR_WINDOW),
        Workload("8 PEs read one slice", tuple((pe, 0, pe * size, size, 0.0) for pe in range(8))),
        Workload("8 PEs read the 7 other slices each", everyone),
        Workload("8 PEs read over a scale-up link", tuple((pe, 32 + pe, 0, size, 0.0) for pe in range(8)), FAR_WINDOW),
        Workload("64 B loads beside a stream on one of their links", ((0, 3, 0, size, 0.0), *beside), bystander=1),
        Workload("64 B loads beside a stream from the same slice", ((0, 2, 0, size, 0.0), *beside), bystander=1),
    )


def machine(
    plugins: Plugins, chunk: int, preset: str = "default", window: int = WINDOW, bystander: int | None = None
) -> Graph:
    """Compile a preset for chunks of so many bytes that cost nothing by themselves, a window of bytes under way."""
    sets = (*FREE, f"system.chunk_bytes={chunk} B", f"components.pe_dma.params.servers={max(1, window // chunk)}")
    graph = compile_topology(configure(plugins, preset, None, sets), plugins)
    nodes, design = dict(graph.nodes), design_of(graph)
    if bystander is not None:
        own = naming.pe_unit(design.pes[bystander].prefix, "pe_dma")
        nodes[own] = attrs.evolve(nodes[own], params={**nodes[own].params, "servers": OWN_LOADS})
    bare = [attrs.evolve(edge, header_bytes=0) for edge in graph.edges.values()]
    return Machine.of_graph(Graph.of(nodes.values(), bare), design)


def simulate(plugins: Plugins, chunk: int, work: Workload) -> Outcome:
    """Run the transfers of a workload, cut into chunks of so many bytes."""
    return move(plugins, machine(plugins, chunk, window=work.window, bystander=work.bystander), work)


def move(plugins: Plugins, graph: Graph, work: Workload) -> Outcome:
    """Run the transfers of a workload on one machine."""
    engine = GraphEngine(graph, plugins.components, data=False, log=False)
    design, space = design_of(graph), design_of(graph).address_map
    asked = []
    for pe, owner, offset, nbytes, at in work.transfers:
        site, there = design.pes[pe], design.pes[owner]
        base = space.encode(there.sip, there.cube, f"hbm{there.hbm_ctrl.rpartition('hbm_ctrl')[2]}") + offset
        dma = naming.pe_unit(site.prefix, "pe_dma")
        asking = Move((Region(base, nbytes),), (dma,))
        engine.env.inject(asking, engine.hardware.components[dma].arrive, at)
        asked.append((pe, asking))
    engine.advance()
    if work.bystander is None:
        ends = {pe: max(done.tail for of, done in asked if of == pe) for pe, _ in asked}
        return Outcome(tuple(ends.values()), max(ends.values()), engine.env.events)
    loads = [done.elapsed for pe, done in asked if pe == work.bystander]
    return Outcome((sum(loads) / len(loads),), max(done.tail for _, done in asked), engine.env.events)


def gemm(plugins: Plugins, chunk: int, size: int = GEMM_SIZE) -> Outcome:
    """Run the bench gemm, whose kernels load, multiply and store, on `tiny`."""
    engine = GraphEngine(machine(plugins, chunk, "tiny"), plugins.components, data=False, log=False)
    bench = open_bench("gemm-naive", plugins.benches)
    engine.run(bench.function, bench.values({"M": size, "N": size, "K": size}))
    launch = engine.shared.launches[0].launch
    spans = tuple(launch.ended_ns[pe] - launch.started_ns[pe] for pe in sorted(launch.ended_ns))
    return Outcome(spans, max(spans), engine.env.events)


def stream(plugins: Plugins, chunk: int, owner: int, size: int = 512 << 10) -> float:
    """Return the GB/s at which PE 0 of `default`, as it is, reads from the slice of a PE."""
    sets = (f"system.chunk_bytes={chunk} B",)
    graph = compile_topology(configure(plugins, "default", None, sets), plugins)
    return size / move(plugins, graph, Workload("", ((0, owner, 0, size, 0.0),))).makespan


# The tables ---------------------------------------------------------------------------------------------


def worst(found: Outcome, reference: Outcome) -> float:
    """Return the largest relative error of what is watched, with its sign."""
    errors = (a / b - 1 for a, b in zip(found.watched, reference.watched, strict=True))
    return max(errors, key=abs)


def error_rows(name: str, outcomes: Sequence[Outcome], *, bystander: bool = False) -> list[list[str]]:
    """Return the rows of one workload: what it took with the finest chunks, and the error of each coarser size."""
    reference, *others = outcomes
    if bystander:
        mean = reference.watched[0]
        return [[f"{name}: mean latency", format_time(mean), *(percent(worst(o, reference)) for o in others)]]
    took, ends = reference.makespan, (percent(o.makespan / reference.makespan - 1) for o in others)
    found = [[f"{name}: time" if len(reference.watched) == 1 else f"{name}: last end", format_time(took), *ends]]
    if len(reference.watched) > 1:
        found.append([f"{name}: worst PE", "", *(percent(worst(o, reference)) for o in others)])
    return found


def percent(share: float) -> str:
    """Write a relative error in percent: one decimal, none from 10 % on."""
    rounded = f"{100 * share:+.0f} %" if abs(share) >= 0.0995 else f"{100 * share:+.1f} %"
    return "0" if float(rounded[:-2]) == 0 else rounded


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of the page."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def report(plugins: Plugins, sizes: Sequence[int] = SIZES, say: Callable[[str], None] = print) -> str:
    """Measure everything and return both tables; `say` is told how far it is."""
    rows, events = [], [0] * len(sizes)
    measured: list[tuple[str, bool, Callable[[int], Outcome]]] = [
        (work.name, work.bystander is not None, partial(_simulated, plugins, work)) for work in workloads()
    ]
    measured.append((f"`gemm` of {GEMM_SIZE}³ on `tiny`, kernel", False, partial(gemm, plugins)))
    for name, bystander, run in measured:
        say(name)
        outcomes = [run(size) for size in sizes]
        events = [before + outcome.events for before, outcome in zip(events, outcomes, strict=True)]
        rows += error_rows(name, outcomes, bystander=bystander)
    names = [format_bytes(size) for size in sizes]
    costs = [
        ["events, all of the above", *(f"{number / 1000:,.0f} k" for number in events)],
        ["PE 0 reads its own slice, GB/s", *(f"{stream(plugins, size, 0):.1f}" for size in sizes)],
        ["PE 0 reads from another package, GB/s", *(f"{stream(plugins, size, 32):.1f}" for size in sizes)],
    ]
    return f"{table(['chunks of', *names], rows)}\n\n{table(['chunks of', *names], costs)}"


def _simulated(plugins: Plugins, work: Workload, chunk: int) -> Outcome:
    return simulate(plugins, chunk, work)


def shown(page: Path = PAGE) -> str:
    """Return the tables that the page shows."""
    return page.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the tables into docs/timing_model.md")
    options = parser.parse_args(argv)
    found = report(load_plugins(), say=lambda name: print(f"{name} …", file=sys.stderr))
    if not options.update:
        print(found)
        return 0
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{found}\n\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
