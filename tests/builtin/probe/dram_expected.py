"""What a saturated controller is expected to reach, and reads at random times to take: by recurrences over bursts.

They share no code with the model but the places of bursts, step no clock, and follow from times, sizes and addresses
alone. Burst i, of row r in bank b of group h, is seen from s on, has a precharge at p and an activation at x if r is
not open, and its column command at c:

    s_i = max(d_i, the (i - Q)th of c + 1 clock of the older ones of the queue, x + 1 of those that opened it, sorted)
    p_i = max(s_i, x_b + tRAS, c_b + tRTP)          in free slots R; of writes c_b + tCWL + tBL + tWR + tRP
    x_i = max(p_i + tRP, x_b + tRC)                 in free slots A, A_h, R
    c_i = max(s_i, x_i + tRCD, c_b + tCCD_L, turn)  in free slots D, D_h

A queue of Q bursts of one kind shows no more than s_i says. d_i is when request j, of which the burst is, has a place
of the front end, one of F for all queues and both kinds. A request keeps its place until the last s of its bursts: d_i
is 0 for the first F, then a clock after the (j - F)th of these times, sorted, or at it for a request of the same queue
alone. So one full queue holds up all others where F is small. x_b and c_b are those of the bank's burst before. "In
free slots" is the first time from then on that lies in a slot which no older burst has: of the data bus D (one every
tCCD_S) and of the group D_h (tCCD_L), of activations A (max(tFAW / 4, tRRD_S)) and of the group's A_h (tRRD_L), and of
the row-command bus R, whose clocks all pseudo-channels that share it take (an activation two, a precharge one). A bank
whose refresh is due before c_i is closed and opened again after tRFC or tRFCpb; with `refresh: per_bank` activations
also keep tRREFD from the refresh of any bank.

A mix has turns, and the bursts of all queues go over the recurrence together, in the order of the times s and c. A
turn of reads lasts until `drain_from` writes are in their queue or no read is, a turn of writes until `drain_to` are
left and a read waits, or no write is; what has no row by then is found anew in the next turn of its kind. A turn
starts with the rows that are open, its columns tRTW after the last read of the turn before, or tCWL + tBL + tWTR_S
(tWTR_L in the group) after the last write. Of requests under way the next one comes `overhead` after a read's last c +
tCL + tBL or a write's last s.

For latencies d_i is not before a read comes; bursts enter the queue and rows are closed in the order of time: one that
wants another row waits for p_i, and those of the open row that have c before go before. A read is answered at its last
c + tCL + tBL; the next one of a chain comes at the clock after. With `queues: shared` the recurrence goes over the
bursts of all pseudo-channels that share a queue, in order of age, with D, A and groups of each, and turns of all. For
latencies each of n sees the n-th part of the queue, which is so on average only (too fast).

What is left out, and which way that errs: an older burst never waits for a command that a younger one got first (too
fast), a burst whose row was opened waits for no turn (too fast), a slot is waited for to its start (too slow), a
saturated queue closes a row though younger bursts of it will come (too slow), and pseudo-channels do not get into each
other's way on the column-command bus (too fast).
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_driver import DramProbe
from kernbench_builtin.probe.dram_workload import DramCase, asked, chain, workload
from tests.builtin.probe.dram_latency import mean_latency
from tests.builtin.probe.dram_loop import served_in


def expected_share(probe: DramProbe, case: DramCase, outstanding: int | None = None) -> float:
    """Return which part of its peak a controller should reach, saturated or with so many requests under way."""
    g: DramGeometry = probe.geometry
    form = probe.closed_form(case)
    assert form is not None and form.at_most is not None
    queued = asked(case, g) if g.queue_of == 1 else asked(case, g, g.queue_of)
    reached = case.requests * case.chunk / served_in(queued, g, outstanding) / probe.peak(case)
    return min(reached, form.at_most)


def expected_ns(probe: DramProbe, case: DramCase, load: float) -> float:
    """Return what reads at random times, or a chain beside them, should take on average."""
    gaps = np.random.default_rng(case.seed + 1).exponential(1.0, case.requests)
    gaps *= case.chunk / (load * probe.peak(case)) / gaps.mean()
    links = (regions for _, regions in chain(case, probe.geometry)) if case.chain else None
    reads = (regions for _, regions in workload(case, probe.geometry))
    return mean_latency(zip(accumulate(gaps.tolist()), reads, strict=True), probe.geometry, links)
