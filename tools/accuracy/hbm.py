"""HBM by its commands, against Ramulator 2.1 and against the timing rules in closed form.

`compare` returns a row for each case: what it is, kernbench's figure, the reference's, their unit, and the relative
error. Ramulator's figures were simulated once, at its commit c5b1c3a, and stand here; kernbench's are simulated anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from attrs import frozen

from kernbench_builtin.components.dram import DramPlace
from kernbench_builtin.probe.dram_driver import DramCase, DramProbe
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.values import Region

Row = tuple[str, float, float, str, float]

ROOT = Path(__file__).resolve().parent.parent.parent


def costs(page: str) -> str:
    """Return what the page of HBM says of costs, in sentences: its rows of simulation, and of the model before."""
    table = page.partition("| pattern | times as long |\n|---|---|\n")[2].partition("\n\n")[0]
    before = [" ".join(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines()]
    fast = page.partition("| simulation on `default` | 1 | ")[2].partition(" |")[0]
    return (
        f"Processor time against the model before, without buses and clocks: {'; '.join(before)}. Against "
        f"`builtin.hbm_ctrl`, the default, which is as it was: {fast}."
    )


ABOUT = SimpleNamespace(
    title="HBM by its commands",
    reference="Ramulator 2.1 (commit c5b1c3a; HBM12 and HBM34 controllers, FRFCFS-RowHit, open rows), fed with the "
    "same bursts in the same order as fast as it takes them; latencies of lone bursts in closed form. The copy "
    "that was built has one change beside its build file and what its own generator writes: the trace reader gives "
    "each request an address of its own. Left unset, all were the same to the controller, which answers a read from a "
    "write to its address that waits, and joins such writes.",
    equal="Times of each standard but the read-to-write time of HBM3 and HBM4, which is tCL + tBL + 2 clocks - tCWL in "
    "both here; two pseudo-channels on one pair of command buses; places of the bursts; one read and one write queue "
    "of 64 for both, drained from 80 to 20 %; a front end that stops at the first full queue; no refresh.",
    differs="Ramulator activates HBM3 and HBM4 in 1.5 clocks and precharges in half a one, on falling edges too; with "
    "2 and 1 its random traffic is up to 1 % slower. It takes a burst whose row it opens out of its queue, which makes "
    "room for another one, and gives its column command also when the other kind has its turn.",
    direction="Reads alone and writes alone: up to 5 % too slow where most bursts open a row, as the queue shows fewer "
    "of them; exact to 0.3 % where they do not. Mixes of random bursts 4 to 11 % too slow for the same reason; mixed "
    "streams from 7 % too slow (in turns) to 11 % too fast (at random), as rows that were opened are not lost when the "
    "bus turns. That its buffer of opened rows is the cause is read from its source; no experiment isolated it.",
    cost=costs((ROOT / "docs" / "hbm.md").read_text(encoding="utf-8")),
    within=0.12,
)
"""What the page says of it."""

_SEQUENTIAL, _RANDOM = 40_000, 20_000


@frozen
class HbmCase:
    """A workload of bursts, and the part of the peak that Ramulator has of it for each standard."""

    name: str
    case: DramCase
    ramulator: dict[str, float]


CASES: tuple[HbmCase, ...] = tuple(
    HbmCase(name, case, dict(zip(("hbm2_2000", "hbm3_6400", "hbm4_8000"), shares, strict=True)))
    for name, case, shares in (
        ("stream of reads", DramCase("sequential", 32, _SEQUENTIAL), (0.9991, 0.9953, 0.8966)),
        ("stream of writes", DramCase("sequential", 32, _SEQUENTIAL, 0.0), (0.9992, 0.9995, 0.9994)),
        ("random reads, 32 B", DramCase("random", 32, _RANDOM), (0.3336, 0.3226, 0.2591)),
        ("random writes, 32 B", DramCase("random", 32, _RANDOM, 0.0), (0.3337, 0.2941, 0.2394)),
        ("random reads, 256 B", DramCase("random", 256, 4000), (0.6505, 0.5290, 0.5766)),
        ("one bank, a row each", DramCase("onebank", 32, 4000), (0.0417, 0.0278, 0.0222)),
        ("stream, half reads", DramCase("sequential", 32, _SEQUENTIAL, 0.5), (0.8696, 0.7530, 0.7127)),
        ("stream, 64 reads and 64 writes in turn", DramCase("sequential", 32, _SEQUENTIAL, turns=(64, 64)),
         (0.8528, 0.8146, 0.7800)),
        ("random, half reads", DramCase("random", 32, _RANDOM, 0.5), (0.3288, 0.2591, 0.2081)),
        ("random, 80 % reads", DramCase("random", 32, _RANDOM, 0.8), (0.3313, 0.2922, 0.2359)),
    )
)  # fmt: skip

#: ns of each standard: tCL, tRCDRD, tRP, tBL.
_LONE = {
    "hbm2_2000": (14, 14, 14, 2), "hbm3_6400": (12.5, 19.375, 16.25, 1.25), "hbm4_8000": (10, 19.5, 16.5, 1),
}  # fmt: skip


def compare(plugins: Plugins | None = None, cases: Sequence[HbmCase] = CASES) -> list[Row]:
    """Simulate every case for every standard."""
    found = load_plugins() if plugins is None else plugins
    rows: list[Row] = []
    for each in cases:
        for standard, share in each.ramulator.items():
            case = f"{standard}: {each.name}"
            rows.append(_row(case, _probe(found, standard).closed_loop(each.case, 100_000).share, share, "of peak"))
    for standard, (data, opening, closing, burst) in _LONE.items():
        probe = _probe(found, standard, overhead="0 ns")
        rows.append(_row(f"{standard}: lone read, row open", _lone(probe, 1), data + burst, "ns"))
        other = closing + opening + data + burst
        rows.append(_row(f"{standard}: lone read, another row open", _lone(probe, 2), other, "ns"))
    return rows


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
    alike = {"channels": 2, "channel_hash": "off", "queues": "shared", "front_end": 1, "refresh": "none"}
    params = {"standard": standard, **alike, **given}
    values, problems = resolve_params(plugins.components.declared(impl), params, str)
    assert not problems, problems
    return DramProbe(Node("hbm_ctrl0", "hbm_ctrl", impl, values), plugins.components)


if __name__ == "__main__":
    for row in compare():
        print(f"{row[0]:60} {row[1]:10.4f} {row[2]:10.4f} {row[3]:8} {row[4]:+.1%}")
