"""The load at which a mesh saturates: the highest at which queues do not grow, found by halving."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from attrs import frozen

from kernbench_builtin.probe.traffic import LoadPoint, TrafficSetup
from kernbench_builtin.probe.traffic_sources import dispersion, most_load
from kernbench_core.errors import UsageError

HALVINGS = 6
PACKETS = 1024
"""Packets made at random that a window must hold: their number then has a standard deviation of 1/32."""

#: What loads that are written and those that halving gives may differ by.
_MORE = 1 + 1e-9

_FILLING = 20
"""Part of the least window, one in so many, in which a mesh fills."""


@frozen
class Saturation:
    """What was found, in flits/node/cycle: queues stay as they are up to `load`, and grow from `beyond` on.

    `beyond` is the ceiling or a load that was measured, or None where sources cannot make more. A network that
    saturates below all that was measured has load 0. `tried` are the loads that were measured for it. It is `vague`
    where the windows of given loads contradict each other: between `load` and `beyond` queues grew at one load and not
    at a higher one.
    """

    load: float
    beyond: float | None
    tried: tuple[LoadPoint, ...]
    vague: bool = False


def check_window(traffic: TrafficSetup) -> None:
    """Raise UsageError where a window holds too few packets, or bursts, to tell loads apart, or begins too early."""
    load = _most(traffic) / 2
    varies = max(1.0, dispersion(load, traffic.flits, traffic.burst))
    least = math.ceil(PACKETS * varies * traffic.flits / (load * traffic.mesh.places) / 100) * 100
    if traffic.window.measured < least:
        burst = "" if traffic.burst is None else f" in bursts of {traffic.burst:g}"
        raise UsageError(
            f"--measure must be at least {least} cycles with --saturation, so that the traffic{burst} comes close to "
            f"the load, not {traffic.window.measured}."
        )
    filling = least // _FILLING
    if traffic.window.warm_up < filling:
        raise UsageError(
            f"--warmup must be at least {filling} cycles with --saturation, so that a filling mesh does not look like "
            f"growing queues, not {traffic.window.warm_up}."
        )


def find_saturation(
    traffic: TrafficSetup,
    known: Iterable[LoadPoint] = (),
    on_point: Callable[[LoadPoint], None] = lambda _: None,
) -> Saturation:
    """Find the load at which queues begin to grow, to 1/64 of the ceiling, which it never exceeds.

    Each load that is tried is simulated for itself, from an empty mesh, with the windows of `traffic`, and given to
    `on_point` when that is done. `known` have been, with the same windows: what was found agrees with each of them.
    """
    points = list(known)
    calm = max((point.load for point in points if point.state != "saturated"), default=0.0)
    grown = min((point.load for point in points if point.state == "saturated"), default=math.inf)
    if calm >= grown:
        below = (point.load for point in points if point.load < grown)
        above = (point.load for point in points if point.load > calm)
        return Saturation(max(below, default=0.0), min([*above, _most(traffic)]), (), vague=True)
    most, load = _most(traffic), 0.0
    beyond = most
    tried = []
    for _ in range(HALVINGS):
        middle = (load + beyond) / 2
        if calm * _MORE < middle < grown / _MORE:
            tried.append(traffic.measure(middle))
            on_point(tried[-1])
            grows = tried[-1].state == "saturated"
        else:
            grows = middle * _MORE >= grown
        load, beyond = (load, middle) if grows else (middle, beyond)
    load, beyond = max(load, calm), min(beyond, grown)
    may_be_more = beyond >= most and most < traffic.ceiling()[0]
    return Saturation(load, None if may_be_more else beyond, tuple(tried))


def _most(traffic: TrafficSetup) -> float:
    """Return the highest load that is worth trying: the ceiling, or what sources can make."""
    ceiling = traffic.ceiling()[0]
    return min(ceiling, 1.0 if traffic.burst is None else most_load(traffic.flits, traffic.burst))
