"""What arithmetic says of a DRAM controller, by pattern: derived in docs/hbm.md, from its times alone."""

from __future__ import annotations

from attrs import frozen

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_bounds import least_time
from kernbench_builtin.probe.dram_workload import DramCase, asked, parts, workload


@frozen
class ClosedForm:
    """Say what a controller should reach, as a part of the peak, or what it can never be above; `rule` is what binds.

    A model without rows has its promise and no bound, one with banks a bound alone.
    """

    share: float | None
    rule: str
    at_most: float | None = None


def closed_form(case: DramCase, g: DramGeometry, peak: float) -> ClosedForm:
    """Return what a controller that has as many requests as it takes can reach of `peak` (B/ns)."""
    if g.locate is None:
        return _rowless(case, g)
    bound = least_time(parts(asked(case, g)), g, reopens=case.pattern == "onebank")
    return ClosedForm(None, bound.rule, case.requests * case.chunk / bound.ns / peak)


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
