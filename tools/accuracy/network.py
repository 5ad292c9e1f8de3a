"""Networks: lone packets and ceilings beside closed forms, loaded meshes beside a simulator that goes cycle by cycle.

That one (`tests.builtin.probe.credit_simulator`) shares no code with the package, and is given the same packets.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from kernbench_builtin.machines import Mesh
from kernbench_builtin.probe.traffic import TrafficSetup
from kernbench_builtin.probe.traffic_patterns import make_pattern
from tests.builtin.probe.credit_rig import CATALOGUE, SentPacket, draw, latencies, make_mesh
from tests.builtin.probe.credit_simulator import CreditSimulator, Network

Row = tuple[str, float, float, str, float]

ABOUT = SimpleNamespace(
    title="Networks",
    reference="Closed forms of lone packets and ceilings (Dally and Towles). Under load a simulator that goes cycle by "
    "cycle, flit by flit, with virtual channels, buffers and credits, and shares no code with the models; once more "
    "with arbiters that draw lots instead of going round.",
    equal="Routers, links, channels (4 of 8 flits), the cycle of each decision and of each credit, and the packets: "
    "the same ones at the same cycles.",
    differs="Nothing for `builtin.router_vc` and the first reference. Arbiters, for the second. `builtin.forwarding` "
    "has no buffers, no channels and no credits.",
    direction="`builtin.router_vc` is exact, each packet of it, beyond saturation too; a router with other arbiters is "
    "a few per cent off near saturation, either way. `builtin.forwarding` is optimistic: by 3 % at 30 % and 10 % at "
    "60 % of the ceiling of a mesh, 20 % at 80 %, and without bound where the other saturates, at 81 to 98 % of it. A "
    "torus with four channels, in two classes, saturates at about half: there it is 5 % too fast at 30 %.",
    cost="`builtin.router_vc` takes 1.3 to 7 times the events of `builtin.forwarding`, 9 to 16 times where all cubes "
    "of a machine have it.",
    within=0.1,
)
"""What the page says of it."""
SIZE = 6
CYCLES = 400
SHARES = (0.3, 0.6, 0.8)
"""Routers in a row, cycles in which packets are made, and loads as parts of the ceiling."""
HOLDS = 0.6
"""The part of the ceiling up to which the router without credits is compared, too."""


def compare() -> list[Row]:
    """Return case, kernbench's value, the reference's, unit and relative error of each; the same ones every time."""
    return [*_closed_forms(), *_loaded(wrap=False), *_loaded(wrap=True), *_full()]


def _row(case: str, ours: float, reference: float, unit: str) -> Row:
    return case, ours, reference, unit, ours / reference - 1.0


def _closed_forms() -> Iterator[Row]:
    """Compare with the forms of PARAMETERS: lone packets, ceilings, hops."""
    for flits in (1, 8):
        hops = 2 * (SIZE - 1)
        form = 2 * 4 + 2 * 1 + (hops + 1) * 4 + hops * 1 + flits
        for impl in ("builtin.forwarding", "builtin.router_vc"):
            mesh = make_mesh(SIZE, SIZE, impl=impl, overhead="4 ns")
            (ours,) = _came(mesh, [(0, 0, SIZE * SIZE - 1, flits)])
            yield _row(f"lone packet of {flits}, corner to corner, {impl}", ours, form, "ns")
    mesh = make_mesh(SIZE, SIZE, impl="builtin.forwarding")
    for pattern, form in (("uniform", 4 / SIZE), ("transpose", 1 / (SIZE - 1)), ("bitcomp", 2 / SIZE)):
        ceiling = TrafficSetup(mesh, CATALOGUE, make_pattern(pattern, mesh)).ceiling()[0]
        yield _row(f"ceiling of {pattern}, mesh {SIZE} x {SIZE}", ceiling, form, "flits/node/cycle")


def _loaded(*, wrap: bool) -> Iterator[Row]:
    """Compare mean latencies under uniform load, of both routers, with the reference that has credits."""
    name = "torus" if wrap else "mesh"
    ours = make_mesh(SIZE, SIZE, wrap=wrap, overhead="4 ns", in_order=False)
    ceiling = min(1.0, TrafficSetup(ours, CATALOGUE, make_pattern("uniform", ours)).ceiling()[0])
    for share in SHARES:
        packets = draw(ours, "uniform", share * ceiling, 1, CYCLES)
        case = f"{name} {SIZE} x {SIZE}, uniform at {share:.0%} of the ceiling, mean latency"
        true = statistics.mean(_reference(wrap, packets))
        drawn = statistics.mean(_reference(wrap, packets, lottery=True))
        mean = statistics.mean(_came(ours, packets))
        yield _row(f"{case}, router_vc", mean, true, "cycles")
        yield _row(f"{case}, router_vc, reference drawing lots", mean, drawn, "cycles")
        if wrap or share > HOLDS:
            continue
        cheap = make_mesh(SIZE, SIZE, impl="builtin.forwarding", overhead="4 ns")
        yield _row(f"{case}, forwarding", statistics.mean(_came(cheap, packets)), true, "cycles")


def _full() -> Iterator[Row]:
    """Compare what gets through when every source always sends, from a third of the time on."""
    for wrap in (False, True):
        for pattern in ("uniform", "transpose", "bitcomp", "hotspot"):
            mesh = make_mesh(SIZE, SIZE, wrap=wrap, overhead="4 ns", in_order=False)
            packets = draw(mesh, pattern, 0.9, 1, CYCLES)
            ours, true = _throughput(_came(mesh, packets), packets), _throughput(_reference(wrap, packets), packets)
            name = "torus" if wrap else "mesh"
            yield _row(f"{name} {SIZE} x {SIZE}, {pattern} at load 0.9, delivered", ours, true, "flits/node/cycle")


def _throughput(took: Sequence[float], packets: Sequence[SentPacket]) -> float:
    """Return flits per node and cycle that arrived in the last two thirds of the time in which packets were made."""
    ends = [packet[0] + latency for packet, latency in zip(packets, took, strict=True)]
    return sum(CYCLES / 3 <= end < CYCLES for end in ends) / (2 * CYCLES / 3) / SIZE**2


def _came(mesh: Mesh, packets: Sequence[SentPacket]) -> list[float]:
    return _all(latencies(mesh, packets))


def _reference(wrap: bool, packets: Sequence[SentPacket], *, lottery: bool = False) -> list[float]:
    return _all(CreditSimulator(Network(SIZE, SIZE, wrap, lottery=lottery)).latencies(packets))


def _all(took: Sequence[float | None]) -> list[float]:
    found = [each for each in took if each is not None]
    if len(found) < len(took):
        raise RuntimeError(f"all {len(took)} packets must arrive, not {len(found)}")
    return found
