"""The load at which a mesh saturates: the highest at which queues do not grow, found by halving."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from kernbench_builtin.probe.traffic import LoadPoint, TrafficSetup
from kernbench_builtin.probe.traffic_sources import most_load
from kernbench_core.engine import ComponentClasses

HALVINGS = 6


@frozen
class Saturation:
    """What was found, in flits/node/cycle: queues stay as they are at `load`, and grow at `beyond`; `tried` says how.

    `beyond` is the ceiling or a load that was tried, or None where sources cannot make more. A network that saturates
    below all that was tried has load 0.
    """

    load: float
    beyond: float | None
    tried: tuple[LoadPoint, ...]


def find_saturation(
    traffic: TrafficSetup, components: ComponentClasses, tell: Callable[[LoadPoint], None] = lambda _: None
) -> Saturation:
    """Find the load at which queues begin to grow, to 1/64 of the ceiling, which it never exceeds.

    Each load that is tried is simulated for itself, from an empty mesh, with the windows of `traffic`, and given to
    `tell` when that is done.
    """
    ceiling = traffic.ceiling()[0]
    most = 1.0 if traffic.burst is None else most_load(traffic.flits, traffic.burst)
    load, beyond = 0.0, min(most, ceiling)
    tried = []
    for _ in range(HALVINGS):
        middle = (load + beyond) / 2
        point = traffic.measure(middle, components)
        tried.append(point)
        tell(point)
        if point.state == "saturated":
            beyond = middle
        else:
            load = middle
    return Saturation(load, beyond if beyond < most or most >= ceiling else None, tuple(tried))
