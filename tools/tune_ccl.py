"""Measure which collective algorithm is best for each network, number of ranks and size; write what `auto` goes by.

    python tools/tune_ccl.py --update            # measure everything, write plan/tuning.json: about an hour
    python tools/tune_ccl.py --update --only all_reduce:ring:8
    python tools/tune_ccl.py                     # measure again what the table says and compare: auto against the best

Machines are those of the preset `default` with as many SIPs as there are ranks. Every algorithm that does these ranks
runs out of place, in f16, without data (times do not depend on data). Sizes go up by four; where the best changes from
one size to the next, the size between them is measured too. The exit code is 1 when `auto` is more than 5 % slower
than the best somewhere.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Chooser, Question, Setup, Sweep, machine_of
from kernbench_ccl.measure.sweep import counts_of, size_of
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.plan.tuning import FILE, SCHEMA
from kernbench_core.plugins import load_plugins

TUNED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter")
NETWORKS = ("ring", "mesh_2d", "torus_2d", "fully_connected", "switch")
WORLDS = (2, 4, 8, 3, 6)
"""In the order of measurement: powers of two, then what is none; others take the nearest of their kind."""
SIZES = tuple(1024 * 4**power for power in range(6))
LARGEST = 4 << 20
"""Measured too for `all_reduce` of a power of two; elsewhere the best at 1 MiB is the best above."""
DTYPE = "f16"
TOLERANCE = 1.05
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


def times(sweep: Sweep, chooser: Chooser, size: int) -> tuple[int, dict[str, float]]:
    """Return the real size, and the time in ns of every algorithm."""
    kind, world = sweep.question.kind, sweep.machine.world
    counts = counts_of([size], kind, DTYPE, world)
    [rows] = sweep.comparison(counts, chooser.able())
    return size_of(counts[0], kind, DTYPE, world), {row.algorithm: row.out_of_place.time_ns for row in rows}


def measure(cell: Cell) -> list[tuple[int, dict[str, float]]]:
    """Return the times of every algorithm at every size, those between sizes with different winners included."""
    sweep, chooser = chooser_of(cell)
    if len(chooser.able()) == 1:
        return [(SIZES[-1], dict.fromkeys(chooser.able(), 1.0))]
    largest = (LARGEST,) if cell.collective == "all_reduce" and cell.world not in (3, 6) else ()
    sizes = (*SIZES, *largest)
    found = [times(sweep, chooser, size) for size in sizes]
    for (low, first), (high, second) in zip(list(found), found[1:], strict=False):
        if best(first) != best(second):
            found.append(times(sweep, chooser, math.isqrt(low * high)))
    return sorted(found, key=lambda pair: pair[0])


def best(measured: dict[str, float]) -> str:
    """Return the fastest algorithm, by name among equals."""
    return min(sorted(measured), key=lambda name: measured[name])


def entry(cell: Cell, measured: list[tuple[int, dict[str, float]]]) -> dict[str, object]:
    """Return the entry of the table: neighbours with the same winner are one."""
    winners: list[tuple[int, str]] = []
    for size, found in measured:
        name = best(found)
        if winners and found[winners[-1][1]] <= STEADY * found[name]:
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


def update(asked: list[Cell], workers: int) -> None:
    """Measure cells and write each into the table as it is done."""
    entries = written()
    for cell, measured in _measured(asked, workers):
        entries[str(cell)] = entry(cell, measured)
        lines = ",\n".join("  " + json.dumps(entries[name]) for name in sorted(entries))
        FILE.write_text(f'{{"schema": "{SCHEMA}", "entries": [\n{lines}\n]}}\n', encoding="utf-8")
        shown = ", ".join(f"{size} B {name}" for size, name in entries[str(cell)]["best"])  # type: ignore[attr-defined]
        print(f"{cell}: up to {shown}", flush=True)


def compare(asked: list[Cell], workers: int) -> int:
    """Compare what `auto` takes with the best, at every measured size; return the exit code."""
    worst = 1.0
    for cell, measured in _measured(asked, workers):
        _, chooser = chooser_of(cell)
        for size, found in measured:
            auto = chooser.best(size).algorithm.name
            ratio = found[auto] / min(found.values())
            worst = max(worst, ratio)
            mark = "" if ratio <= TOLERANCE else "  TOO SLOW"
            print(f"{cell} {size:>9} B  auto {auto}  {ratio:.3f} x {best(found)}{mark}", flush=True)
    print(f"auto takes at most {worst:.3f} x the best")
    return 0 if worst <= TOLERANCE else 1


def _measured(asked: list[Cell], workers: int) -> Iterator[tuple[Cell, list[tuple[int, dict[str, float]]]]]:
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from zip(asked, pool.map(measure, asked), strict=True)


def main() -> int:
    """Measure, and update or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--update", action="store_true", help="write the table instead of comparing with it")
    parser.add_argument("--only", action="append", type=Cell.parse, metavar="COLLECTIVE:NETWORK:RANKS")
    parser.add_argument("--missing", action="store_true", help="leave out what the table has")
    parser.add_argument("-j", type=int, default=2, help="processes (2)")
    given = parser.parse_args()
    asked = given.only or cells()
    if given.missing:
        asked = [cell for cell in asked if str(cell) not in written()]
    if given.update:
        update(asked, given.j)
        return 0
    return compare(asked, given.j)


if __name__ == "__main__":
    raise SystemExit(main())
