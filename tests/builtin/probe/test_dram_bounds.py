"""The bound of a pattern on a DRAM is what its rule says, by hand."""

from __future__ import annotations

import pytest

from kernbench_builtin.probe.dram_bounds import least_time
from kernbench_builtin.probe.dram_workload import READ, WRITE
from kernbench_core.plugins import Plugins
from tests.builtin.probe.driven_banks import CLOCK, driven

#: HBM3-6400 without refresh: (reads, writes) of a bank and row, what binds, and the least time of it in clocks.
BOUNDS: list[tuple[list[tuple[int, list[tuple[int, int]]]], str, float]] = [
    ([(READ, [(bank, 1) for bank in range(16)] * 60)], "data bus, tBL a burst", 960 * 2),
    ([(READ, [(bank, 1) for bank in range(4)] * 60)], "a bank group, tCCD_L a burst", 239 * 4),
    ([(READ, [(bank, row) for row in range(9) for bank in range(16)])], "activations, max(tFAW / 4, tRRD)", 35 * 24),
    ([(READ, [(0, row) for row in range(9)])], "one bank, tRC", 8 * 72),
    ([(READ, [(0, row) for row in range(9) for _ in range(9)])], "one bank, tRCD + tRTP + tRP", 8 * 66 + 72 * 4),
    ([(WRITE, [(0, row) for row in range(9)])], "one bank, tRCD + tCWL + tBL + tWR + tRP", 8 * 86),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "rule", "clocks"), BOUNDS, ids=[case[1] for case in BOUNDS])
def test_the_bound_is_what_its_rule_says(
    plugins: Plugins, asked: list[tuple[int, list[tuple[int, int]]]], rule: str, clocks: float
) -> None:
    bound = least_time({0: asked}, driven(plugins, channels=1).geometry, reopens=False)
    assert (bound.rule, bound.ns) == (rule, clocks * CLOCK)


def test_two_pseudo_channels_are_bound_by_the_row_commands_that_they_share(plugins: Plugins) -> None:
    rows = [(READ, [(bank, row) for row in range(99) for bank in range(16)])]
    geometry = driven(plugins, activate_clocks=4, precharge_clocks=2).geometry
    bound = least_time({0: rows, 1: rows}, geometry, reopens=False)
    number = 2 * 99 * 16
    assert (bound.rule, bound.ns) == ("row commands of 2 pseudo-channels", (number * 4 + (number - 32) * 2) * CLOCK)


def test_row_commands_are_held_up_by_refreshes_which_close_all_banks_at_once(plugins: Plugins) -> None:
    """Each of them takes tRFC and saves a precharge of each bank; more than it takes where banks are many."""
    rows = [(READ, [(bank, row) for row in range(99) for bank in range(16)])]
    shape = {"activate_clocks": 4, "precharge_clocks": 2, "refresh": "all_bank"}
    bound = least_time({0: rows, 1: rows}, driven(plugins, **shape).geometry, reopens=False)
    number, stop = 2 * 99 * 16, 416 - 32 * 2
    assert bound.ns == (number * 4 + (number - 32) * 2 + 3 * stop) * CLOCK
    assert bound.rule == f"row commands of 2 pseudo-channels, refresh {stop / 6240:.1%}"
    bound = least_time({0: rows, 1: rows}, driven(plugins, **shape, banks=256).geometry, reopens=False)
    number, saved = 2 * 99 * 16, 512 * 2 - 416
    assert bound.ns == pytest.approx((number * 4 + (number - 512) * 2) / (1 + saved / 6240) * CLOCK)


def test_a_bound_has_the_refreshes_that_fall_in_it(plugins: Plugins) -> None:
    geometry = driven(plugins, channels=1, refresh="all_bank").geometry
    stream = [(READ, [(bank, 1) for bank in range(16)] * 1000)]
    bound = least_time({0: stream}, geometry, reopens=False)
    stop = 9 + 26 + 416 + 15 - 2  # tRTP + tRP + tRFC + tRCDWR, which is the shorter one, instead of tBL
    assert bound.ns == (32000 + 5 * stop) * CLOCK
    assert bound.rule == f"data bus, tBL a burst, refresh {stop / 6240:.1%}"


def test_rows_that_come_again_count_once_unless_they_come_too_late(plugins: Plugins) -> None:
    geometry = driven(plugins, channels=1).geometry
    again = [(READ, [(0, row) for row in (1, 2, 1, 2)])]
    assert least_time({0: again}, geometry, reopens=False).ns == (31 + 9 + 26 + 2 * 4) * CLOCK
    assert least_time({0: again}, geometry, reopens=True).ns == 3 * 72 * CLOCK
