"""HBM by its commands, against Ramulator 2.1 and against the timing rules in closed form.

`compare` returns a row for each case: what it is, kernbench's figure, the reference's, their unit, and the relative
error. Ramulator's figures were simulated once, at its commit c5b1c3a, and stand here; kernbench's are simulated anew.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from attrs import frozen

from kernbench_builtin.components.dram import DramPlace
from kernbench_builtin.probe.dram_driver import DramProbe
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.units import grid_ceil
from kernbench_core.values import Region
from tools.accuracy.hbm_patterns import COLUMNS, PATTERNS, ROWS, Asked, Shape

Row = tuple[str, float, float, str, float]

ROOT = Path(__file__).resolve().parent.parent.parent


def costs(page: str) -> str:
    """Return what the page of HBM says of costs, in sentences: its rows of simulation, and of the model before."""
    table = page.partition("| pattern | times as long |\n|---|---|\n")[2].partition("\n\n")[0]
    before = [" ".join(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines()]
    fast = page.partition("| simulation on `default` | 1 | ")[2].partition(" |")[0]
    return (
        f"Processor time against the model before, whose turns lost rows that were open: {'; '.join(before)}. Against "
        f"`builtin.hbm_ctrl`, the default, which is as it was: {fast}."
    )


ABOUT = SimpleNamespace(
    title="HBM by its commands",
    reference="Ramulator 2.1 (commit c5b1c3a; HBM12 and HBM34 controllers, FRFCFS-RowHit, open rows), fed with the "
    "same bursts in the same order as fast as it takes them, 100,000 of each pattern; its own generator for dependent "
    "reads beside a stream; latencies of lone bursts in closed form. The copy that was built has one change beside its "
    "build file: the trace reader gives each request an address of its own. Left unset, all were the same to the "
    "controller, which answers a read from a write to its address that waits, and joins such writes. Compared is "
    "`builtin.hbm_ctrl_bank`; [the default model](hbm.md#the-efficiency-of-the-fast-model) is held against that one.",
    equal="Organisation and times of each standard; two pseudo-channels on one pair of command buses; places of the "
    "bursts; one read queue (64, of HBM3 and HBM4 128) and one write queue (64) for both, drained from 80 to 20 %; a "
    "front end that stops at the first full queue.",
    differs="Ramulator activates HBM3 and HBM4 in 1.5 clocks and precharges in half a one, on falling edges too, and "
    "refreshes the two pseudo-channels one after the other.",
    direction="Streams either way within 1 %, with refresh too fast; random bursts of HBM3 up to 4 % too slow where "
    "they are mixed; turns of reads and writes within 2 % either way; a dependent read 10 % too slow beside HBM3's "
    "stream at 94 % of the peak, within 2 % elsewhere.",
    cost=costs((ROOT / "docs" / "hbm.md").read_text(encoding="utf-8")),
    within=0.12,
)
"""What the page says of it."""

#: By the name of a standard: its organisation, the reads that a queue holds, and clocks of a lone burst.
STANDARDS: dict[str, tuple[Shape, int, tuple[float, float, float, float]]] = {
    # ns: tCL, tRCDRD, tRP, tBL
    "hbm2_2000": (Shape(1, 4, 4), 64, (14, 14, 14, 2)),
    "hbm3_6400_8hi": (Shape(2, 4, 4), 128, (12.5, 19.375, 16.25, 1.25)),
    "hbm4_8000_8hi": (Shape(2, 2, 8), 128, (10, 19.5, 16.5, 1)),
}


@frozen
class HbmCase:
    """Bursts, and the GB/s that Ramulator has of them for each standard."""

    name: str
    bursts: Callable[[Shape], Iterator[Asked]]
    number: int
    refresh: bool
    ramulator: tuple[float, float, float]


#: GB/s of each pattern, by standard.
_SIMULATED: tuple[tuple[float, float, float], ...] = (
    (31.99, 51.13, 63.97), (31.99, 51.19, 63.99), (30.23, 46.73, 57.01), (26.92, 39.36, 45.81),
    (24.89, 35.63, 41.37), (30.22, 46.96, 55.9), (23.56, 32.57, 35.78), (16.0, 25.57, 31.99), (6.52, 8.58, 9.8),
    (0.67, 0.71, 0.71), (10.67, 16.71, 16.77), (10.67, 16.79, 16.81), (10.58, 16.25, 16.39), (10.52, 16.09, 16.19),
    (10.67, 17.06, 17.06), (21.24, 33.72, 33.57), (27.52, 45.76, 58.08), (20.54, 36.39, 48.4), (17.02, 21.6, 24.41),
    (18.32, 23.56, 27.19), (20.04, 26.04, 31.83), (27.89, 39.94, 49.41),
)  # fmt: skip
CASES: tuple[HbmCase, ...] = tuple(
    HbmCase(*pattern, simulated) for pattern, simulated in zip(PATTERNS, _SIMULATED, strict=True)
)
#: The stream beside dependent reads, as a part of the peak, and the mean ns that Ramulator has of these.
DEPENDENT: tuple[tuple[str, float, float], ...] = (
    ("hbm2_2000", 0.1, 46.3), ("hbm2_2000", 0.471, 47.6), ("hbm3_6400_8hi", 0.8, 53.8), ("hbm3_6400_8hi", 0.941, 57.7),
    ("hbm4_8000_8hi", 0.8, 50.3), ("hbm4_8000_8hi", 0.941, 51.2),
)  # fmt: skip


def compare(
    plugins: Plugins | None = None, cases: Sequence[HbmCase] = CASES,
    dependent: Sequence[tuple[str, float, float]] = DEPENDENT,
) -> list[Row]:  # fmt: skip
    """Simulate every case for every standard."""
    found = load_plugins() if plugins is None else plugins
    rows: list[Row] = []
    for case in cases:
        for standard, reference in zip(STANDARDS, case.ramulator, strict=True):
            rows.append(_row(f"{standard}: {case.name}", reached(found, standard, case), reference, "GB/s"))
    for standard, load, reference in dependent:
        name = f"{standard}: dependent read, stream of {load:.0%}"
        rows.append(_row(name, dependent_read(found, standard, load), reference, "ns"))
    for standard, (_, _, (data, opening, closing, burst)) in STANDARDS.items():
        probe = _probe(found, standard)
        rows.append(_row(f"{standard}: lone read, row open", _lone(probe, 1), data + burst, "ns"))
        other = closing + opening + data + burst
        rows.append(_row(f"{standard}: lone read, another row open", _lone(probe, 2), other, "ns"))
    return rows


def reached(plugins: Plugins, standard: str, case: HbmCase) -> float:
    """Return the GB/s of a case, as many bursts under way as the queues take."""
    shape = STANDARDS[standard][0]
    probe = _probe(plugins, standard, refresh="all_bank" if case.refresh else "none")
    bursts = islice(case.bursts(shape), case.number)
    return probe.replay([shape.request(burst, probe.geometry) for burst in bursts], case.number).achieved


def dependent_read(plugins: Plugins, standard: str, load: float) -> float:
    """Return the mean ns of reads of random places, one after the other, beside a stream of so much of the peak."""
    shape, rng = STANDARDS[standard][0], random.Random(5)
    probe = _probe(plugins, standard)
    g = probe.geometry

    def links() -> Iterator[tuple[str, tuple[Region, ...]]]:
        sizes = (2, shape.stacks, shape.groups, shape.banks, ROWS, COLUMNS)
        while True:
            channel, stack, group, bank, row, column = (rng.randrange(size) for size in sizes)
            yield shape.request((False, channel, stack, group, bank, row, column), g)

    gap = g.burst_bytes / (load * g.peak)
    stream = [shape.request(burst, g) for burst in islice(shape.staggered(), 40_000)]
    return probe.beside([(grid_ceil(n * gap), *request) for n, request in enumerate(stream)], links())


def _lone(probe: DramProbe, among: int) -> float:
    """Return the median of bursts long after each other, just before a clock edge, to so many rows in turn."""
    g = probe.geometry
    assert g.address is not None
    rows = [Region(g.address(DramPlace(0, 0, number % among, 0)), g.burst_bytes) for number in range(9)]
    apart = 256 * g.timing["tCK"]
    return median(probe.latencies([(n * apart + apart - 2**-12, "read", (row,)) for n, row in enumerate(rows)]))


def _row(case: str, value: float, reference: float, unit: str) -> Row:
    return case, value, reference, unit, value / reference - 1


def _probe(plugins: Plugins, standard: str, **given: object) -> DramProbe:
    impl = "builtin.hbm_ctrl_bank"
    params = {
        "standard": standard, "channels": 2, "channel_hash": "off", "queues": "shared", "front_end": 1,
        "refresh": "none", "overhead": "0 ns", "read_queue": STANDARDS[standard][1], "interleave_bytes": "32 B",
        **given,
    }  # fmt: skip
    values, problems = resolve_params(plugins.components.declared(impl), params, str)
    assert not problems, problems
    return DramProbe(Node("hbm_ctrl0", "hbm_ctrl", impl, values), plugins.components)


if __name__ == "__main__":
    for row in compare():
        print(f"{row[0]:60} {row[1]:10.4f} {row[2]:10.4f} {row[3]:8} {row[4]:+.1%}")
