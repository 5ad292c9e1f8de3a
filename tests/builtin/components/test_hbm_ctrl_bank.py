"""The HBM controller with banks: every time between commands, the order of requests, queues, refresh, rates."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from typing import Any

import pytest

from kernbench_builtin.components.banks import pseudo_channel
from kernbench_builtin.components.dram import DramPlace
from kernbench_builtin.components.hbm_ctrl_bank import HbmCtrlBank
from kernbench_core.cli import main
from kernbench_core.errors import ConfigError
from kernbench_core.plugins import Plugins
from kernbench_core.testing import Harness, Probe, Rig, assert_ready_at, line, place
from kernbench_core.values.region import Region
from tests.builtin.components.driven_controller import ONE, Ask, Driven, transaction

#: From a request's entry to its controller's queue: the wire, the overhead, and a write's data.
IN = 1.0 + 9.0
STEP = 2.0**-16
CLOCK = 0.625


# Each time between commands ------------------------------------------------------------------------

#: Rows 0 of bank 0 and 1 (group 0) and of bank 4 (group 1) are open long before 200 ns.
OPEN: list[Ask] = [(0, "read", 0, 0, 0), (0, "read", 1, 0, 0), (0, "read", 4, 0, 0)]
CASES: dict[str, tuple[list[Ask], tuple[str, int], tuple[str, int], float]] = {
    # parameter: requests, from the n-th command of a kind, to the m-th of a kind, ns between them
    "tRCDRD": ([(0, "read", 0, 0, 0)], ("ACT", 0), ("RD", 0), 19.375),
    "tRCDWR": ([(0, "write", 0, 0, 0)], ("ACT", 0), ("WR", 0), 9.375),
    "tRP": ([(0, "read", 0, 0, 0), (200, "read", 0, 1, 0)], ("PRE", 0), ("ACT", 1), 16.25),
    "tRAS": ([(0, "read", 0, 0, 0), (0, "read", 0, 1, 0)], ("ACT", 0), ("PRE", 0), 28.125),
    "tRC": ([(0, "read", 0, 0, 0), (0, "read", 0, 1, 0)], ("ACT", 0), ("ACT", 1), 45.0),
    "tRTP": ([*OPEN, (200, "read", 0, 0, 1), (200, "read", 0, 1, 0)], ("RD", 3), ("PRE", 0), 5.625),
    "tCCD_S": ([*OPEN, (200, "read", 0, 0, 1), (200, "read", 4, 0, 1)], ("RD", 3), ("RD", 4), 1.25),
    "tCCD_L": ([*OPEN, (200, "read", 0, 0, 1), (200, "read", 1, 0, 1)], ("RD", 3), ("RD", 4), 2.5),
    "tRRD_S": ([(0, "read", 0, 0, 0), (0, "read", 4, 0, 0)], ("ACT", 0), ("ACT", 1), 2.5),
    "tRRD_L": ([(0, "read", 0, 0, 0), (0, "read", 1, 0, 0)], ("ACT", 0), ("ACT", 1), 3.125),
    "tFAW": ([(0, "read", bank, 0, 0) for bank in (0, 4, 8, 12, 1)], ("ACT", 0), ("ACT", 4), 15.0),
    "tWR": ([(0, "write", 0, 0, 0), (0, "write", 0, 1, 0)], ("WR", 0), ("PRE", 0), 6.25 + 1.25 + 20.625),
    "tWTR_S": ([*OPEN, (200, "write", 0, 0, 1), (200, "read", 4, 0, 1)], ("WR", 0), ("RD", 3), 6.25 + 1.25 + 4.375),
    "tWTR_L": ([*OPEN, (200, "write", 0, 0, 1), (200, "read", 1, 0, 1)], ("WR", 0), ("RD", 3), 6.25 + 1.25 + 6.25),
    "tCWL": ([*OPEN, (200, "write", 0, 0, 1), (200, "read", 1, 0, 1)], ("WR", 0), ("RD", 3), 6.25 + 1.25 + 6.25),
    "tRTW": ([*OPEN, (200, "read", 0, 0, 1), (200, "write", 4, 0, 1)], ("RD", 3), ("WR", 0), 12.5),
}  # fmt: skip


def between(name: str, **params: object) -> float:
    asks, (first, n), (second, m), _ = CASES[name]
    if name in ("tWTR_S", "tWTR_L", "tCWL"):  # the write goes before the read because the read comes just after it
        asks = [(at + 1 if at == 200 and op == "read" else at, op, *rest) for at, op, *rest in asks]  # type: ignore[misc]
    driven = Driven(asks, **params)
    return driven.times(second)[m] - driven.times(first)[n]


@pytest.mark.parametrize("name", CASES)
def test_each_time_between_commands_decides_where_it_should_to_the_last_grid_step(name: str) -> None:
    """The interval is the closed form; a grid step more of just this parameter moves the command by a clock."""
    expected = CASES[name][3]
    assert between(name) == expected
    default = {param.name: param.default_value for param in HbmCtrlBank.PARAMS}.get(name, 0.0)
    if name == "tRTW":  # no parameter, but tCL + burst + 8 clocks - tCWL
        assert between(name, turnaround_clocks=9) == expected + CLOCK
        return
    longer = default + STEP
    assert between(name, **{name: f"{longer:.20f} ns"}) == expected + CLOCK


@pytest.mark.parametrize(
    ("asks", "number", "expected"),
    [
        ([(0, "read", 0, 0, 0)], 1, 19.375 + 12.5 + 1.25),
        ([(0, "read", 0, 0, 0), (200, "read", 0, 0, 1)], 2, 12.5 + 1.25),
        ([(0, "read", 0, 0, 0), (200, "read", 0, 1, 0)], 2, 16.25 + 19.375 + 12.5 + 1.25),
    ],
    ids=["closed row", "row hit", "conflict"],
)
def test_a_lone_burst_takes_the_closed_form(asks: list[Ask], number: int, expected: float) -> None:
    entered = asks[-1][0]
    wire_home = 1.0  # the answer is on the wire while its burst comes
    assert_ready_at(Driven(asks).rig, entered + IN + expected + wire_home, arrival=number)


def test_a_chunk_opens_a_row_in_each_group_and_then_streams() -> None:
    """32 bursts of one channel in 4 banks: the first waits for its row, the next three for theirs, tRRD_S apart."""
    driven = Driven()
    driven.rig.ask(0, msg=transaction("read", Region(0, 1024)))
    driven.rig.run()
    reads = driven.times("RD")
    assert driven.times("ACT") == [IN + n * 2.5 for n in range(4)]
    assert len(reads) == 32
    assert reads[0] == IN + 19.375
    # bank 3 opens last; all bursts but the few that came before follow each other without a gap
    assert reads[-1] == pytest.approx(IN + 19.375 + 31 * 1.25, abs=2 * 1.25)
    gaps = {round(b - a, 6) for a, b in pairwise(reads[8:])}
    assert gaps == {1.25}
    assert driven.rig.arrivals[0].tail == reads[-1] + 12.5 + 1.25 + 1


def test_the_data_of_a_read_leaves_as_it_comes() -> None:
    class HeadProbe(Probe):
        ON_HEAD = True

    machine = Harness({"unit": HeadProbe, "ctrl": place(HbmCtrlBank, **ONE)}, line("unit", "ctrl"))
    machine.send(("unit", "ctrl"), 0, msg=transaction("read", Region(0, 1024)))
    first = IN + 19.375 + 12.5 + 1
    assert_ready_at(machine, first)
    assert machine.arrivals[0].head == first
    assert machine.arrivals[0].tail > first + 31 * 1.25


def test_refresh_closes_all_rows_and_holds_everything_for_trfc() -> None:
    driven = Driven([(0, "read", 0, 0, 0), (3900 - IN + 1, "read", 0, 0, 1)], refresh="all_bank")
    trace = driven.trace()
    assert [entry[1] for entry in trace] == ["ACT", "RD", "PREA", "REF", "ACT", "RD"]
    assert [entry[0] for entry in trace[2:]] == [
        3900.0, 3900 + 16.25, 3900 + 16.25 + 260, 3900 + 16.25 + 260 + 19.375
    ]  # fmt: skip


def test_a_burst_at_the_clock_before_the_refresh_goes_and_one_after_it_waits() -> None:
    before = Driven([(0, "read", 0, 0, 0), (3900 - IN - CLOCK, "read", 0, 0, 1)], refresh="all_bank")
    assert before.times("RD")[1] == 3900 - CLOCK
    late = Driven([(0, "read", 0, 0, 0), (3900 - IN - CLOCK + STEP, "read", 0, 0, 1)], refresh="all_bank")
    assert late.times("RD")[1] == 3900 + 16.25 + 260 + 19.375
    at = Driven([(0, "read", 0, 0, 0), (3900 - IN, "read", 0, 0, 1)], refresh="all_bank")
    assert at.times("RD")[1] == 3900 + 16.25 + 260 + 19.375


def test_a_refresh_is_not_put_off_while_a_read_waits_for_the_bus_to_turn_around() -> None:
    """Its row is closed at once and opened again when the refresh is over, long before the read may go."""
    driven = Driven(
        [(0, "read", 4, 0, 0), (3800, "write", 0, 0, 0), (3850, "read", 4, 0, 1)],
        refresh="all_bank", tWTR_S="1000 ns", tWTR_L="1000 ns",
    )  # fmt: skip
    assert driven.times("REF") == [3900.0 + 16.25]
    assert driven.times("ACT")[-1] == 3900 + 16.25 + 260
    assert driven.times("RD")[-1] == driven.times("WR")[0] + 6.25 + 1.25 + 1000


def test_refreshes_of_an_idle_channel_have_happened_when_the_next_request_comes() -> None:
    late = Driven([(0, "read", 0, 0, 0), (3900 * 7 + 1000, "read", 0, 0, 1)], refresh="all_bank")
    late.rig.run()
    assert late.ctrl.banked[0].refreshes == 7
    assert late.times("ACT")[1] == 3900 * 7 + 1000 + IN
    during = Driven([(3900 * 7 + 100, "read", 0, 0, 1)], refresh="all_bank")
    assert during.times("ACT") == [3900 * 7 + 260]


def test_without_refresh_there_is_none() -> None:
    driven = Driven([(0, "read", 0, 0, 0), (100_000, "read", 0, 0, 1)])
    assert driven.times("REF") == []
    assert len(driven.times("ACT")) == 1


# Order ----------------------------------------------------------------------------------------------


def test_a_younger_row_hit_passes_an_older_conflict() -> None:
    driven = Driven([(0, "read", 0, 0, 0), (200, "read", 0, 1, 0), (200, "read", 0, 0, 1)])
    assert driven.order("RD", "PRE") == [("RD", 0, 0), ("RD", 0, 0), ("PRE", 0, 0), ("RD", 0, 1)]
    _, conflict, hit = driven.sent
    assert hit.tail < conflict.tail


def test_of_two_row_hits_the_older_goes_first_and_of_two_closed_rows_too() -> None:
    driven = Driven([*OPEN, (200, "read", 4, 0, 1), (200, "read", 0, 0, 1), (200, "read", 1, 0, 1)])
    assert [bank for _, bank, _ in driven.order("RD")][3:] == [4, 0, 1]
    closed = Driven([(0, "read", 9, 0, 0), (0, "read", 2, 0, 0)])
    assert [bank for _, bank, _ in closed.order("ACT")] == [9, 2]


def test_a_request_beyond_the_read_queue_is_not_seen() -> None:
    asks: list[Ask] = [(0, "read", 0, 0, 0), (200, "read", 0, 1, 0), (200, "read", 0, 2, 0), (200, "read", 0, 0, 1)]
    assert [row for _, _, row in Driven(asks, read_queue=2).order("RD")] == [0, 1, 2, 0]
    assert [row for _, _, row in Driven(asks, read_queue=3).order("RD")] == [0, 0, 1, 2]


QUEUE = {"write_queue": 10, "drain_from": 0.8, "drain_to": 0.2}


@pytest.mark.parametrize(("writes", "expected"), [(7, "R" * 20 + "W" * 7), (8, "R" + "W" * 6 + "R" * 19 + "W" * 2)])
def test_writes_drain_from_the_upper_mark_to_the_lower_one(writes: int, expected: str) -> None:
    """The reads are of one group, tCCD_L apart; all writes are there after the first of them."""
    asks: list[Ask] = [*OPEN]
    asks += [(200, "read", 0, 0, 1 + column) for column in range(20)]
    asks += [(200, "write", 4, 0, column) for column in range(writes)]
    kinds = "".join(what[0] for what, _, _ in Driven(asks, **QUEUE).order("RD", "WR"))
    assert kinds == "RRR" + expected


def test_settling_bursts_ahead_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of reads that were settled many at a time are those of one at a time, to the last bit."""

    def trace(ahead: int, seed: int) -> list[list[tuple[float, str, int, int]]]:
        monkeypatch.setattr(pseudo_channel, "LOOKAHEAD", ahead)
        rng = random.Random(seed)
        rig = Rig(HbmCtrlBank, {"read_queue": 4096, "tREFI": "900 ns"})
        ctrl: Any = rig.under_test
        for channel in ctrl.banked:
            channel.trace = []
        for _ in range(40):
            region = Region(rng.randrange(1 << 14), rng.choice([32, 300, 4096]))
            rig.ask(rng.randrange(3000), msg=transaction("read", region))
        rig.run()
        return [sorted(channel.trace) for channel in ctrl.banked]

    for seed in range(5):
        assert trace(32, seed) == trace(1, seed)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5])
def test_settling_ahead_leaves_full_queues_and_the_turns_of_writes_as_they_are(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A burst that is settled ahead keeps its place in the queue until its command: mixes run no faster for it."""

    def trace(ahead: int) -> tuple[list[list[tuple[float, str, int, int]]], list[float]]:
        monkeypatch.setattr(pseudo_channel, "LOOKAHEAD", ahead)
        rng = random.Random(seed)
        rig = Rig(HbmCtrlBank, {"read_queue": rng.choice([8, 64]), "tREFI": "900 ns"}, bandwidth=rng.choice([20, 500]))
        ctrl: Any = rig.under_test
        for channel in ctrl.banked:
            channel.trace = []
        share = seed % 3 / 2
        sent = [
            transaction(
                "read" if rng.random() < share else "write", Region(rng.randrange(1 << 15), rng.choice([32, 300, 4096]))
            )
            for _ in range(120)
        ]
        for each in sent:
            rig.ask(rng.randrange(4000), msg=each)
        rig.run()
        acknowledged = [each.tail for each in sent if share == 0]
        return [sorted(channel.trace) for channel in ctrl.banked], acknowledged

    assert trace(32) == trace(1)


def test_a_write_is_acknowledged_when_its_last_burst_is_in_the_queue() -> None:
    """At the clock after its last byte, and the wire back."""
    driven = Driven([(0, "write", 0, 0, 0)])
    assert_ready_at(driven.rig, IN + CLOCK + 1.0)


def test_a_write_waits_for_room_in_the_queue() -> None:
    driven = Driven([(0, "write", 0, row, 0) for row in range(3)], write_queue=2, drain_from=0.5, drain_to=0.0)
    driven.rig.run()
    acked = [msg.tail for msg in driven.sent]
    assert acked[0] == IN + CLOCK + 1.0
    # the first leaves the queue when its row is opened, and the third comes in at the next clock
    assert acked[2] == driven.times("ACT")[0] + CLOCK + 1.0
    assert driven.sent[2].queueing == pytest.approx(acked[2] - 1.0 - IN, abs=4 * STEP)


def test_bursts_of_a_write_are_taken_as_they_come() -> None:
    """1 KiB at 1 B/ns: the first burst is written while the last is still on the wire."""
    rig = Rig(HbmCtrlBank, ONE, bandwidth=1.0)
    ctrl: Any = rig.under_test
    ctrl.banked[0].trace = []
    rig.ask(0, msg=transaction("write", Region(0, 1024)))
    rig.run()
    first = min(time for time, what, _, _ in ctrl.banked[0].trace if what == "WR")
    assert first == 42.5 + 9.375  # the first clock after its 32 bytes, at IN + 32
    assert rig.arrivals[0].tail == 1034.375 + 1


def test_a_burst_of_a_write_closes_the_row_in_its_way_when_it_comes() -> None:
    """Of four bursts the second needs bank 0, whose open row it closes at once, also while the first one waits.

    Neither the first one's column command, 9.375 ns after its activation, nor the last burst is waited for.
    """
    rig = Rig(HbmCtrlBank, ONE, bandwidth=8.0)
    ctrl: Any = rig.under_test
    trace = ctrl.banked[0].trace = []
    places = [(4, 0), (0, 1), (8, 0), (12, 0)]
    bursts = [Region(ctrl.mapping.address(DramPlace(0, bank, row, 0)), 32) for bank, row in places]
    rig.ask(0, msg=transaction("read", Region(ctrl.mapping.address(DramPlace(0, 0, 0, 0)), 32)))
    rig.ask(200, msg=transaction("write", *bursts))
    rig.run()
    pace = (4 * 32 + 3 * 8) / 8.0 / 4  # three places more than one take 8 B each on the wire
    clocks = [math.ceil((200 + IN + number * pace) / CLOCK) * CLOCK for number in (1, 2, 3)]
    assert [command for command in trace if command[1] in ("ACT", "PRE")][1:4] == [
        (clocks[0], "ACT", 4, 0), (clocks[1], "PRE", 0, 0), (clocks[2], "ACT", 8, 0),
    ]  # fmt: skip


# The whole ------------------------------------------------------------------------------------------


def test_a_request_without_data_is_answered_at_once_and_touches_no_channel() -> None:
    driven = Driven()
    driven.rig.ask(0, msg=transaction("read"))
    assert_ready_at(driven.rig, IN + 1)
    assert driven.trace() == []
    assert driven.ctrl.internal_wires[0].busy_ns == 0.0


def test_wrong_figures_are_all_named() -> None:
    wrong = {"row_bytes": "1000 B", "banks": 6, "bank_hash": True, "drain_to": 0.9, "tREFI": "300 ns"}
    with pytest.raises(ConfigError) as caught:
        Rig(HbmCtrlBank, wrong)
    assert caught.value.problems == (
        "under_test: row_bytes must be a multiple of burst_bytes, not 1000 of 32; correct one.",
        "under_test: banks must be a multiple of bank_groups, not 6 of 4; correct one.",
        "under_test: banks must be a power of two with bank_hash, not 6; correct one.",
        "under_test: drain_to must be below drain_from and both from 0 to 1, not 0.9 and 0.8; correct one.",
        "under_test: tREFI must be longer than a refresh with what surrounds it, 362.5 ns, not 300 ns; correct one, or "
        "give refresh: none.",
    )


def test_swapping_the_model_is_one_line_and_takes_the_row_buffers_out_of_what_is_not_modelled(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for model in ("hbm_ctrl", "hbm_ctrl_bank"):
        run = ["run", "vector-add", "-p", "n=4096", "--topology", "tiny", "--verify-data", "--json", "--set"]
        assert main([*run, f"components.hbm_ctrl.impl=builtin.{model}"], plugins) == 0
        found = json.loads(capsys.readouterr().out)
        said.append(" ".join(entry["sentence"] for entry in found["not_modelled"]))
    assert "Row buffers, banks and bank groups are not modelled" in said[0]
    assert "Row buffers" not in said[1]
    assert "activations of 1.5 clocks (HBM3, HBM4) are not modelled" in said[1]


@pytest.mark.parametrize("mapping", ["RoBaCo", "RoCoBa"])
def test_tools_drive_it_over_4096_rows_of_every_bank(mapping: str) -> None:
    """Neither more nor less: the last byte lies in the last of these rows, and the next one in the row after it."""
    geometry = Driven(mapping=mapping, channels=2).ctrl.geometry()
    assert [geometry.locate(at).row for at in (0, geometry.span_bytes - 1, geometry.span_bytes)] == [0, 4095, 4096]
