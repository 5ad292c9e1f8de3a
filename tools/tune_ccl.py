"""Measure which collective algorithm is best for each network, number of ranks and size; write what `auto` goes by.

    python tools/tune_ccl.py --update            # measure everything, write plan/tuning.json: about an hour
    python tools/tune_ccl.py --update --only all_reduce:ring:8
    python tools/tune_ccl.py --machines          # write anew which machines the table is of, where no time has changed
    python tools/tune_ccl.py                     # measure again what the table says and compare: auto against the best
    python tools/tune_ccl.py --sample 12 --seed 3    # compare at sizes drawn at random, between those of the table too

Machines are those of the preset `default` with as many SIPs as there are ranks. Every algorithm that does these ranks
runs out of place, in f16, without data (times do not depend on data). Sizes go up by sixteen, then by four; where the
best changes from one size to the next, sizes between them are measured too, as far as factors of two. An algorithm
that takes three times as long as the best is not run at larger sizes. The exit code is 1 when `auto` is more than 5 %
slower than the best somewhere; in a sample, when it is more than 10 % slower.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Chooser, Question, Setup, Sweep, machine_of
from kernbench_ccl.measure.sweep import Failed, counts_of, size_of
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.plan.machine_key import machine_key
from kernbench_ccl.plan.tuning import FILE, SCHEMA, shipped
from kernbench_core.plugins import load_plugins

TUNED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter")
NETWORKS = ("ring", "mesh_2d", "torus_2d", "fully_connected", "switch")
WORLDS = (2, 4, 8, 3, 6)
"""In the order of measurement: powers of two, then what is none; others take the nearest of their kind."""
SIZES = (1 << 10, 16 << 10, 256 << 10, 1 << 20)
LARGEST = 4 << 20
"""Measured too for `all_reduce` of a power of two; elsewhere the best at 1 MiB is the best above."""
DTYPE = "f16"
TOLERANCE = 1.05
BETWEEN = 1.10
"""How much slower than the best `auto` may be at sizes that were not measured."""
FAR = 3.0
"""How much slower than the best an algorithm is that is not run at larger sizes."""
STEADY = 1.02
"""How much slower than the best the best of the size before may be and still stand."""


@frozen
class Cell:
    """One collective on one machine."""

    collective: str
    network: str
    world: int

    @classmethod
    def parse(cls, text: str) -> Cell:
        """Read "all_reduce:ring:8"."""
        collective, network, world = text.split(":")
        return cls(collective, network, int(world))

    def __str__(self) -> str:
        return f"{self.collective}:{self.network}:{self.world}"


def cells() -> list[Cell]:
    """Return every cell; two ranks are joined alike in all networks but the switch."""
    return [
        Cell(collective, network, world)
        for collective in TUNED
        for world in WORLDS
        for network in NETWORKS
        if world > 2 or network in ("ring", "switch")
    ]


def chooser_of(cell: Cell) -> tuple[Sweep, Chooser]:
    """Return what runs the algorithms of a cell, and what knows them."""
    plugins = load_plugins()
    sets = (f"system.sips={cell.world}", f"system.network.topology={cell.network}")
    setup = Setup("default", None, sets, checked=False)
    machine = machine_of(setup, plugins)
    redop = "sum" if COLLECTIVES[cell.collective].reduces else None
    question = Question(COLLECTIVES[cell.collective], DTYPE, redop, 0)
    chooser = Chooser(question, machine, load_ccl(catalogue=Catalogue.of(plugins)), plugins)
    return Sweep(question, setup, machine, plugins, workers=1), chooser


Times = dict[str, float]
"""Times in ns by the registered name of an algorithm."""
Row = tuple[int, Times]
"""A size in bytes, and the times there."""


def times(sweep: Sweep, chooser: Chooser, size: int, names: Collection[str] | None = None) -> Row:
    """Return the real size, and the time of every algorithm, or of those that are named."""
    kind, world = sweep.question.kind, sweep.machine.world
    counts = counts_of([size], kind, DTYPE, world)
    able = {name: choice for name, choice in chooser.able().items() if names is None or name in names}
    found: Times = {}
    for row in next(sweep.comparison(counts, able)):
        if isinstance(row, Failed):
            raise row.error
        found[row.algorithm] = row.out_of_place.time_ns
    return size_of(counts[0], kind, DTYPE, world), found


def measure(cell: Cell) -> list[Row]:
    """Return the times of algorithms at every size, those between sizes with different winners included."""
    sweep, chooser = chooser_of(cell)
    if len(chooser.able()) == 1:
        return [(SIZES[-1], dict.fromkeys(chooser.able(), 1.0))]
    largest = (LARGEST,) if cell.collective == "all_reduce" and cell.world not in (3, 6) else ()
    found: list[Row] = []
    for size in (*SIZES, *largest):
        before = found[-1][1] if found else {}
        near = [name for name, time in before.items() if time <= FAR * min(before.values())]
        found.append(times(sweep, chooser, size, near or None))
    for low, high in list(pairwise(found)):
        found += _between(sweep, chooser, low, high)
    return sorted(found, key=lambda pair: pair[0])


def _between(sweep: Sweep, chooser: Chooser, low: Row, high: Row) -> list[Row]:
    """Return times at the sizes between two whose winners differ, down to a factor of two."""
    if best(low[1]) == best(high[1]) or high[0] < 3 * low[0]:
        return []
    middle = times(sweep, chooser, math.isqrt(low[0] * high[0]), low[1])
    return [middle, *_between(sweep, chooser, low, middle), *_between(sweep, chooser, middle, high)]


def best(measured: Times) -> str:
    """Return the fastest algorithm, by name among equals."""
    return min(sorted(measured), key=lambda name: measured[name])


def entry(cell: Cell, measured: list[Row]) -> dict[str, object]:
    """Return the entry of the table: neighbours with the same winner are one."""
    winners: list[tuple[int, str]] = []
    for size, found in measured:
        name = best(found)
        if winners and found.get(winners[-1][1], math.inf) <= STEADY * found[name]:
            name = winners.pop()[1]
        winners.append((size, name))
    return {
        "collective": cell.collective,
        "network": cell.network,
        "world": cell.world,
        "best": [list(winner) for winner in winners],
    }


def written() -> dict[str, dict[str, object]]:
    """Return the entries of the table by their cell."""
    if not FILE.is_file():
        return {}
    entries = json.loads(FILE.read_text(encoding="utf-8"))["entries"]
    return {f"{e['collective']}:{e['network']}:{e['world']}": e for e in entries}


def machines() -> list[str]:
    """Return the keys of the machines that are measured."""
    plugins = load_plugins()
    sets = (("system.sips=4", f"system.network.topology={name}") for name in NETWORKS)
    graphs = (machine_of(Setup("default", None, each, checked=False), plugins).graph for each in sets)
    return sorted({machine_key(graph) for graph in graphs})


def algorithms() -> list[str]:
    """Return the algorithms that are measured."""
    catalogue = Catalogue.of(load_plugins())
    names = (name for collective in TUNED for name in catalogue.methods_of(collective).values())
    return sorted(name for name in names if name.startswith("ccl."))


def write(entries: dict[str, dict[str, object]], measured: Collection[str]) -> None:
    """Write the table, as one of today's machines."""
    head = {"schema": SCHEMA, "machines": machines(), "measured": sorted(measured)}
    lines = ",\n".join("  " + json.dumps(entries[name]) for name in sorted(entries))
    FILE.write_text(f'{json.dumps(head)[:-1]}, "entries": [\n{lines}\n]}}\n', encoding="utf-8")


def update(asked: list[Cell], workers: int) -> None:
    """Measure cells and write each into the table as it is done; of all cells, also which algorithms were measured."""
    entries, measured_before = written(), shipped().measured
    for cell, measured in _measured(asked, workers):
        entries[str(cell)] = entry(cell, measured)
        write(entries, algorithms() if asked == cells() else measured_before)
        shown = ", ".join(f"{size} B {name}" for size, name in entries[str(cell)]["best"])  # type: ignore[attr-defined]
        print(f"{cell}: up to {shown}", flush=True)


def compare(asked: list[Cell], workers: int) -> int:
    """Compare what `auto` takes with the best, at every measured size; return the exit code."""
    worst = 1.0
    for cell, measured in _measured(asked, workers):
        _, chooser = chooser_of(cell)
        for size, found in measured:
            worst = max(worst, told(cell, size, chooser.best(size).algorithm.name, found, TOLERANCE))
    print(f"auto takes at most {worst:.3f} x the best")
    return 0 if worst <= TOLERANCE else 1


def sample(number: int, seed: int, workers: int) -> int:
    """Compare what `auto` takes with the best for cells with a choice and sizes, both drawn; return the exit code."""
    drawn, points, worst = Random(seed), list[tuple[Cell, int]](), 1.0
    while len(points) < number:
        cell, size = drawn.choice(cells()), int(SIZES[0] * (SIZES[-1] / SIZES[0]) ** drawn.random())
        if len(chooser_of(cell)[1].able()) > 1:
            points.append((cell, size))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for (cell, _), (auto, size, found) in zip(points, pool.map(at_a_point, points), strict=True):
            worst = max(worst, told(cell, size, auto, found, BETWEEN))
    print(f"auto takes at most {worst:.3f} x the best")
    return 0 if worst <= BETWEEN else 1


def at_a_point(point: tuple[Cell, int]) -> tuple[str, int, Times]:
    """Return what `auto` is for a cell and a size, the real size, and the times there."""
    sweep, chooser = chooser_of(point[0])
    size, found = times(sweep, chooser, point[1])
    return chooser.best(size).algorithm.name, size, found


def told(cell: Cell, size: int, auto: str, found: Times, most: float) -> float:
    """Print how `auto` compares with the best, and return its time over that."""
    ratio = found.get(auto, math.inf) / min(found.values())
    mark = "" if ratio <= most else "  TOO SLOW"
    print(f"{cell} {size:>9} B  auto {auto}  {ratio:.3f} x {best(found)}{mark}", flush=True)
    return ratio


def _measured(asked: list[Cell], workers: int) -> Iterator[tuple[Cell, list[Row]]]:
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from zip(asked, pool.map(measure, asked), strict=True)


def main() -> int:
    """Measure, and update or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--update", action="store_true", help="write the table instead of comparing with it")
    parser.add_argument("--machines", action="store_true", help="write only which machines the table is of")
    parser.add_argument("--only", action="append", type=Cell.parse, metavar="COLLECTIVE:NETWORK:RANKS")
    parser.add_argument("--missing", action="store_true", help="leave out what the table has")
    parser.add_argument("--sample", type=int, metavar="N", help="compare at N points that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("-j", type=int, default=2, help="processes (2)")
    given = parser.parse_args()
    if given.sample:
        return sample(given.sample, given.seed, given.j)
    asked = given.only or cells()
    if given.missing:
        asked = [cell for cell in asked if str(cell) not in written()]
    if given.machines:
        write(written(), shipped().measured)
        return 0
    if given.update:
        update(asked, given.j)
        return 0
    return compare(asked, given.j)


if __name__ == "__main__":
    raise SystemExit(main())
