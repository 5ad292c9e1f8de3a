"""Rows of a table by hand, for tests of how it reads and of comparisons."""

from __future__ import annotations

from kernbench_ccl.measure import SweepRow
from kernbench_ccl.measure.table import Busy, Measured


def measured(us, busbw=10.0, wrong=0, **more):
    return Measured(us * 1000.0, busbw / 2, busbw, wrong, **more)


def row(size, us=12.0, in_place=True, races=0, **more):
    link = Busy("sip0.io0.link_sip1->sip1.io0.link_sip0", "scale_up wire", 0.914)
    out = measured(us, races=races, binds=link, events=1234)
    inside = measured(us) if in_place else None
    return SweepRow(size, size // 2, "f16", "sum", -1, "ccl.ring_all_reduce", out, inside, 6000.0, **more)
