"""What arithmetic promises for a DRAM controller, by pattern: derived in docs/hbm.md, from its times alone."""

from __future__ import annotations

from attrs import frozen

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_bounds import least_time
from kernbench_builtin.probe.dram_loop import served_in
from kernbench_builtin.probe.dram_workload import DramCase, asked, parts, workload


@frozen
class ClosedForm:
    """Say what arithmetic expects of a controller, as a part of the peak, and what it can never be above.

    `rule` is what binds; a model without rows has its promise and no bound.
    """

    share: float
    rule: str
    at_most: float | None = None


def closed_form(case: DramCase, g: DramGeometry, peak: float, outstanding: int | None = None) -> ClosedForm | None:
    """Return what a controller should reach of `peak` (B/ns) with so many requests under way, or None if it is unknown.

    Without a number of requests they are as many as make it saturated.
    """
    if g.locate is None:
        return _rowless(case, g)
    if g.window is None or g.drain is None:
        return None
    requests = asked(case, g)
    nbytes = case.requests * case.chunk
    bound = least_time(parts(requests), g, reopens=case.pattern == "onebank")
    queued = requests if g.queue_of == 1 else asked(case, g, g.queue_of)
    took = max(bound.ns, served_in(queued, g, outstanding))
    return ClosedForm(nbytes / took / peak, bound.rule, nbytes / bound.ns / peak)


def _rowless(case: DramCase, g: DramGeometry) -> ClosedForm:
    """Return the promise of a model without rows, for the channels that a case uses, in whole bursts."""
    moved: dict[int, int] = {}
    if g.shares is None:
        return ClosedForm(g.sustained, "efficiency x peak")
    for _, regions in workload(case, g):
        for channel, nbytes in g.shares(regions):
            moved[channel] = moved.get(channel, 0) + nbytes
    useful = case.requests * case.chunk / sum(moved.values())
    rule = "efficiency x peak"
    if len(moved) < g.channels:
        rule += f", {len(moved)} of {g.channels} channels"
    if useful < 1.0:
        rule += f", {useful:.0%} of the bursts' bytes"
    return ClosedForm(g.sustained * useful * len(moved) / g.channels, rule)
