"""Commands of random traffic with random times keep the rules, by a list of them that shares no code with the model."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernbench_builtin.components.hbm_ctrl_bank import HbmCtrlBank
from kernbench_core.messages import Transaction
from kernbench_core.testing import Rig
from kernbench_core.values import Region
from tests.builtin.dram_rules import Command, bus_violations, late_refreshes, violations

CLOCK = 0.625
PARTS = ("tRCDRD", "tRCDWR", "tRP", "tRTP", "tWR", "tCWL", "tCCD_S", "tRRD_S", "tWTR_S", "tRFCpb", "tRREFD")
#: What is drawn as so many clocks more than another time, and which one.
MORE = {"tCCD_R": "tCCD_S", "tCL": "tCWL", "tCCD_L": "tCCD_S", "tRRD_L": "tRRD_S", "tWTR_L": "tWTR_S", "tRFC": "tRFCpb"}


@st.composite
def controllers(draw: st.DrawFn) -> dict[str, Any]:
    """Draw times that do not contradict each other, most of them short or long beside the others, and the rest."""
    number = st.one_of(st.integers(1, 6), st.integers(1, 40))
    clocks = {name: draw(number) for name in PARTS}
    clocks |= {name: clocks[other] + draw(number) - 1 for name, other in MORE.items()}
    clocks["tRAS"] = max(clocks["tRCDRD"], clocks["tRCDWR"]) + draw(number) - 1
    clocks["tRC"] = clocks["tRAS"] + clocks["tRP"] + draw(number) - 1
    clocks["tFAW"] = 3 * clocks["tRRD_S"] + draw(number)
    banks = draw(st.sampled_from((4, 8, 16)))
    once = clocks["tRTP"] + 2 * clocks["tRP"] + clocks["tRFC"] + clocks["tRCDRD"] + clocks["tRC"]
    each = banks * (clocks["tRREFD"] + clocks["tRAS"] + clocks["tRP"] + 1)
    clocks["tREFI"] = max(once, each) + draw(st.integers(200, 800))
    return {
        **{name: f"{value * CLOCK} ns" for name, value in clocks.items()},
        "banks": banks, "bank_groups": draw(st.sampled_from((1, 2, 4))), "row_bytes": "256 B",
        "stack_ids": draw(st.sampled_from((1, 1, 2 if banks > 4 else 1))),
        "turnaround_clocks": draw(st.integers(0, 15)),
        "channels": draw(st.sampled_from((1, 2))), "refresh": draw(st.sampled_from(("none", "all_bank", "per_bank"))),
        "pseudo_channels": draw(st.sampled_from((1, 2))), "activate_clocks": draw(st.integers(1, 3)),
        "precharge_clocks": draw(st.integers(1, 2)), "queues": draw(st.sampled_from(("per_pseudo_channel", "shared"))),
        "read_queue": draw(st.integers(1, 32)), "write_queue": draw(st.integers(1, 32)),
        "mapping": draw(st.sampled_from(("RoBaCo", "RoCoBa"))), "bank_hash": draw(st.booleans()),
    }  # fmt: skip


#: (clocks after the one before, whether it reads, burst, bytes).
traffic = st.lists(
    st.tuples(st.sampled_from((0, 0, 1, 3, 40)), st.booleans(), st.integers(0, 4095), st.integers(1, 1200)),
    min_size=1, max_size=40,
)  # fmt: skip


def commands(shape: dict[str, Any], asked: list[tuple[int, bool, int, int]]) -> HbmCtrlBank:
    """Simulate what is asked, and return the controller with the commands of each of its pseudo-channels."""
    rig = Rig(HbmCtrlBank, shape, bandwidth=512.0)
    ctrl: Any = rig.under_test
    for place in ctrl.banked:
        place.trace = []
    at = 0
    for gap, read, burst, nbytes in asked:
        at += gap
        msg = Transaction("read" if read else "write", (Region(burst * 32, nbytes),), nbytes, (), lambda _: None)
        rig.ask(at * CLOCK, msg=msg)
    rig.run()
    assert isinstance(ctrl, HbmCtrlBank)
    return ctrl


@settings(max_examples=300)
@given(controllers(), traffic)
def test_no_rule_is_broken(shape: dict[str, Any], asked: list[tuple[int, bool, int, int]]) -> None:
    ctrl = commands(shape, asked)
    times = attrs.asdict(ctrl.timing)
    traces: list[list[Command]] = [place.trace or [] for place in ctrl.banked]
    given_out = sum(what in ("REF", "REFpb") for trace in traces for _, what, _, _ in trace)
    assume(given_out == sum(place.refreshes for place in ctrl.banked))  # those of idle times are counted and not given
    assert sum(what in ("RD", "WR") for trace in traces for _, what, _, _ in trace) >= len(asked)
    for trace in traces:
        assert violations(trace, times, shape["banks"], shape["bank_groups"], shape["stack_ids"]) == []
    together = shape["pseudo_channels"]
    for first in range(0, len(traces), together):
        assert bus_violations(traces[first : first + together], times) == []


@settings(max_examples=60)
@given(controllers(), st.integers(0, 9))
def test_no_refresh_of_a_busy_controller_is_late(shape: dict[str, Any], seed: int) -> None:
    """Reads and writes one after the other, to the end of the third refresh interval."""
    shape |= {"channels": 1, "refresh": "all_bank"}
    every = round(float(shape["tREFI"].split()[0]) / CLOCK)
    asked = [(4, (number * 7 + seed) % 3 > 0, number * 7919 % 4096, 64) for number in range(every * 3 // 4)]
    ctrl = commands(shape, asked)
    trace = ctrl.banked[0].trace or []
    busy = max(time for time, what, _, _ in trace if what in ("RD", "WR"))
    assert late_refreshes(trace, attrs.asdict(ctrl.timing), busy, True) == []
