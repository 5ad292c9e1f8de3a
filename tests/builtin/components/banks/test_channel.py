"""Every command of the model is that of a second, slow controller, which looks at every clock; and breaks no rule."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.components.banks import pseudo_channel
from kernbench_builtin.components.hbm_ctrl_bank import HbmCtrlBank
from kernbench_core.messages import Transaction
from kernbench_core.testing import Rig
from kernbench_core.values import Region
from tests.builtin.bank_oracle import Burst, Oracle, Request
from tests.builtin.components.driven_controller import ONE, transaction
from tests.builtin.dram_rules import bus_violations, late_refreshes, violations
from tests.builtin.touched_bursts import bursts_of

GRID = 2.0**16
#: (sevenths of ns, whether it reads, address, bytes).
Ask = tuple[int, bool, int, int]


class Heard(HbmCtrlBank):
    """The model, and what it was asked, when."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.heard: list[tuple[Any, float, float, float]] = []

    def emit(self, msg: Any, head: float, tail: float) -> None:
        self.heard.append((msg, self.env.now, head, tail))
        super().emit(msg, head, tail)


def simulated(asks: list[Ask], shape: dict[str, Any]) -> Any:
    rig = Rig(Heard, {"row_bytes": "256 B", **shape}, bandwidth=512.0)
    ctrl: Any = rig.under_test
    for place in ctrl.banked:
        place.trace = []
    for at, read, base, nbytes in asks:
        msg = Transaction("read" if read else "write", (Region(base, nbytes),), nbytes, (), lambda _: None)
        rig.ask(at / 7, msg=msg)
    rig.run()
    return ctrl


def by_the_oracle(ctrl: Any) -> tuple[Oracle, list[Request]]:
    p, clock = ctrl.params, ctrl.timing.tCK
    times = {name: value / clock for name, value in attrs.asdict(ctrl.timing).items()}
    oracle = Oracle(
        times, p["channels"], p["pseudo_channels"], p["banks"], p["bank_groups"], p["stack_ids"],
        p["queues"] == "shared", p["read_queue"], p["write_queue"],
        max(1, math.ceil(p["drain_from"] * p["write_queue"])), math.floor(p["drain_to"] * p["write_queue"]),
        p["refresh"], p["front_end"],
    )  # fmt: skip
    requests = []
    for msg, now, head, tail in ctrl.heard:
        places = [ctrl.mapping.split(address) for address in bursts_of(msg.regions)]
        step = (tail - head) / len(places)
        comes = [math.ceil((head + (n + 1) * step) * GRID) / GRID for n in range(len(places))]
        bursts = [
            Burst(channel, bank, row, (tail if msg.op == "read" else min(tail, at)) / clock)
            for (channel, bank, row), at in zip(places, comes, strict=True)
        ]
        requests.append(Request(msg.op, now / clock, bursts))
    last = max((command[0] for place in ctrl.banked for command in place.trace), default=0.0)
    oracle.run(requests, round(last / clock) + 1)
    return oracle, requests


MAINTENANCE = ("REF", "REFpb", "PREA", "PREpb")


def check(ctrl: Any, oracle: Oracle, requests: list[Request]) -> None:
    """Compare every command but those of refreshes in idle time, the answers to writes, and the data of reads."""
    t = ctrl.timing
    for place, expected in zip(ctrl.banked, oracle.state, strict=True):
        found = sorted((time / t.tCK, what, bank, row) for time, what, bank, row in place.trace)
        assert [each for each in found if each[1] not in MAINTENANCE] == [
            each for each in sorted(expected.trace) if each[1] not in MAINTENANCE
        ]
        refreshed = {(clock, what, bank) for clock, what, bank, _ in found if what in ("REF", "REFpb")}
        assert refreshed <= {(clock, what, bank) for clock, what, bank, _ in expected.trace}
    reads = any(msg.op == "read" for msg, *_ in ctrl.heard)  # their data may hold up an answer on the wire back
    for (msg, *_), request in zip(ctrl.heard, requests, strict=True):
        back = 1.0  # the wire
        if msg.op == "write":
            taken = request.taken_at * t.tCK + back
            assert msg.tail >= taken if reads else msg.tail == taken
        else:
            data = max(burst.given_at for burst in request.bursts) * t.tCK + t.tCL + t.tBL
            assert msg.tail - back >= data


asks = st.lists(
    st.tuples(st.integers(0, 2000), st.booleans(), st.integers(0, 1 << 14), st.integers(1, 600)),
    min_size=1, max_size=25,
)  # fmt: skip
shapes = st.fixed_dictionaries(
    {
        "standard": st.sampled_from(["hbm2_2000", "hbm3_6400", "hbm4_8000"]),
        "channels": st.sampled_from([1, 2, 3, 4]),
        "pseudo_channels": st.sampled_from([1, 2]),
        "banks": st.sampled_from([8, 16]),
        "bank_groups": st.sampled_from([2, 4]),
        "stack_ids": st.sampled_from([1, 2]),
        "mapping": st.sampled_from(["RoBaCo", "RoCoBa"]),
        "bank_group_interleave": st.booleans(),
        "queues": st.sampled_from(["per_pseudo_channel", "shared"]),
        "read_queue": st.integers(1, 20),
        "write_queue": st.integers(1, 20),
        "front_end": st.sampled_from([1, 2, 256]),
        "overhead": st.sampled_from(["0.1 ns", "10 ns"]),  # nothing comes at a clock edge, where the order decides
        "refresh": st.sampled_from(["none", "all_bank", "per_bank"]),
        "tREFI": st.sampled_from(["1300 ns", "3900 ns"]),
        "interleave_bytes": st.sampled_from(["64 B", "256 B"]),
    }
)


@pytest.mark.parametrize("seed", [23, 7])
def test_a_few_commands_are_those_of_the_slow_controller(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bursts that want several rows of few banks."""
    drawn = random.Random(seed)
    asked = [
        (drawn.randint(0, 700), drawn.random() < 0.5, drawn.randint(0, 1 << 14), drawn.randint(1, 600))
        for _ in range(12)
    ]
    monkeypatch.setattr(pseudo_channel, "LOOKAHEAD", 1)
    ctrl = simulated(
        asked,
        {"standard": "hbm2_2000", "channels": 1, "banks": 8, "bank_groups": 2, "overhead": "0.1 ns", "refresh": "none"},
    )
    oracle, requests = by_the_oracle(ctrl)
    check(ctrl, oracle, requests)


@settings(max_examples=60)
@given(asks, shapes)
def test_commands_are_those_of_the_slow_controller(asked: list[Ask], shape: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pseudo_channel, "LOOKAHEAD", 1)
        ctrl = simulated(asked, shape)
    oracle, requests = by_the_oracle(ctrl)
    check(ctrl, oracle, requests)


@settings(max_examples=30)
@given(asks, shapes, st.booleans())
def test_commands_that_are_settled_ahead_are_those_of_the_slow_controller_too(
    asked: list[Ask], shape: dict[str, Any], read: bool
) -> None:
    """For reads alone and for writes alone; a mix may differ, as a write waits for what is settled."""
    ctrl = simulated([(at, read, base, nbytes) for at, _, base, nbytes in asked], shape)
    oracle, requests = by_the_oracle(ctrl)
    check(ctrl, oracle, requests)


@pytest.mark.parametrize("refresh", ["all_bank", "per_bank"])
@pytest.mark.parametrize("standard", ["hbm2_2000", "hbm3_6400", "hbm4_8000"])
def test_no_refresh_is_late_and_no_rule_is_broken_in_a_busy_time(standard: str, refresh: str) -> None:
    """Random reads and writes for three refresh intervals; every refresh comes within what was under way."""
    shape = {"standard": standard, "refresh": refresh, "channels": 2, "row_bytes": "1 KiB"}
    asked = [(at * 7 * 30, at % 3 > 0, at * 7919 * 32 % (1 << 19), 64) for at in range(400)]
    ctrl = simulated(asked, shape)
    times = attrs.asdict(ctrl.timing)
    for place in ctrl.banked:
        busy = max(time for time, what, _, _ in place.trace if what in ("RD", "WR"))
        assert busy > 2.9 * 3900
        assert late_refreshes(place.trace, times, busy, refresh == "all_bank") == []
        banks, groups = ctrl.params["banks"], ctrl.params["bank_groups"]
        third = sorted(place.trace)[: len(place.trace) // 3]
        assert violations(third, times, banks, groups) == []
    assert bus_violations([place.trace for place in ctrl.banked], times) == []


def test_two_pseudo_channels_wait_for_each_others_row_commands_and_three_are_two_channels() -> None:
    """Activations of both at one clock: the second waits the two clocks of the first; a third has a bus of its own."""
    def activations(channels: int, together: int) -> list[float]:
        shape = {"channels": channels, "pseudo_channels": together, "refresh": "none", "interleave_bytes": "256 B"}
        ctrl = simulated([(0, True, 0, 256 * channels)], shape)
        return [min(time for time, what, _, _ in place.trace if what == "ACT") for place in ctrl.banked]

    alone = activations(1, 1)[0]
    assert activations(2, 1) == [alone, alone]
    assert activations(2, 2) == [alone, alone + 2 * 0.625]
    assert activations(3, 2) == [alone, alone + 2 * 0.625, alone]


def test_streams_of_two_pseudo_channels_share_the_column_bus_at_full_rate() -> None:
    """A command of each at every second clock: the bus is full, and neither waits."""
    ctrl = simulated([(0, True, 0, 8192)], {"channels": 2, "refresh": "none", "row_bytes": "1 KiB"})
    columns = sorted(time for place in ctrl.banked for time, what, _, _ in place.trace if what == "RD")[32:]
    assert min(b - a for a, b in pairwise(columns)) == 0.625
    assert columns[-1] - columns[0] <= (len(columns) + 4) * 0.625  # but for a row or two that opens late


def test_a_full_queue_holds_up_everything_behind_a_front_end_of_one() -> None:
    """Eight reads of one row each of pseudo-channel 0, whose queue takes two bursts; then one of pseudo-channel 1."""
    asked = [(7 * n, True, n * 2 * 4096 * 4, 32) for n in range(8)] + [(7 * 9, True, 256, 32)]

    def answered(front_end: int) -> tuple[float, float]:
        shape = {"channels": 2, "refresh": "none", "read_queue": 2, "front_end": front_end}
        ctrl = simulated(asked, shape)
        return ctrl.heard[-1][0].tail, max(msg.tail for msg, *_ in ctrl.heard[:-1])

    free, all_others = answered(256)
    assert free == pytest.approx(9 + 1 + 10 + 19.375 + 12.5 + 1.25 + 1, abs=0.7)
    held, others = answered(1)
    assert others == all_others
    # it comes in when the last of the eight is in: two are in the queue then, and six have had their row opened
    assert held > 5 * 45
    for some in (2, 3, 5):
        assert free < answered(some)[0] <= held
    assert answered(9)[0] == free


def test_a_place_of_the_front_end_is_free_when_a_read_has_room_though_its_queue_is_not_looked_at() -> None:
    """Of two reads of one bank and a queue of one, the second comes in at 21.25 ns, the clock after the first one's
    column command; its precharge is at 29.375 ns. A third, of another pseudo-channel, is there at 25 ns and goes.
    """
    asked = [(0, True, 0, 32), (7, True, 2 * 4096 * 4, 32), (7 * 24, True, 256, 32)]
    shape = {"channels": 2, "pseudo_channels": 1, "refresh": "none", "read_queue": 1, "front_end": 1}
    first, other = simulated(asked, {**shape, "overhead": "0 ns", "row_bytes": "1 KiB"}).banked
    assert [(time, what) for time, what, _, _ in first.trace[:3]] == [(1.25, "ACT"), (20.625, "RD"), (29.375, "PRE")]
    assert other.trace[0] == (25.0, "ACT", 0, 0)


@pytest.mark.parametrize(("later", "expected"), [(0.6, "AWWWWAR"), (1.3, "AAWWWWR"), (500.0, "AWAWWWR")])
def test_a_queue_whose_last_write_is_gone_turns_to_reads_though_it_is_idle(later: float, expected: str) -> None:
    """The row of a write is opened at 1.25 ns, and it has its place to 1.875 ns. Three writes and a read that come at
    that clock find the turn of writes still, and those that come at any later one do not, though nobody looked at the
    queue between: the row of the read is opened first, which takes it out of the queue.
    """
    shape = {"channels": 1, "refresh": "none", "write_queue": 4, "drain_from": 1.0, "drain_to": 0.0}
    many = [(round(later * 7), False, 128 * column, 32) for column in (1, 2, 3)]
    asked = [(0, False, 0, 32), *many, (round(later * 7), True, 128 * 9, 32)]
    (place,) = simulated(asked, {**shape, "overhead": "0 ns"}).banked
    assert place.trace[0] == (1.25, "ACT", 0, 0)
    assert "".join(what[0] for _, what, _, _ in place.trace) == expected


@pytest.mark.parametrize("nbytes", [1, 300])
def test_a_refresh_at_a_clock_at_which_nobody_looks_at_a_queue_finds_no_bursts_that_are_gone(nbytes: int) -> None:
    """Bank 0 is refreshed at 81.875 ns, when all reads are over but the one of that bank, and a write is on its way."""
    clocks = {"tRCDRD": 1, "tRCDWR": 12, "tRP": 19, "tRTP": 1, "tWR": 1, "tCWL": 1, "tCL": 1, "tCCD_S": 5, "tCCD_L": 5,
              "tRRD_S": 3, "tRRD_L": 3, "tFAW": 37, "tWTR_S": 1, "tWTR_L": 1, "tRFCpb": 4, "tRFC": 4, "tRREFD": 2,
              "tRAS": 12, "tRC": 31, "tREFI": 889}  # fmt: skip
    shape = {
        **{name: f"{value * 0.625} ns" for name, value in clocks.items()}, "banks": 8, "bank_groups": 1, "channels": 1,
        "refresh": "per_bank", "pseudo_channels": 1, "activate_clocks": 1, "read_queue": 3, "write_queue": 1,
        "mapping": "RoCoBa",
    }  # fmt: skip
    ctrl = simulated([(175, True, 0, 225), (350, True, 0, 1), (525, False, 0, nbytes)], shape)
    oracle, requests = by_the_oracle(ctrl)
    check(ctrl, oracle, requests)
    commands = [what for _, what, _, _ in ctrl.banked[0].trace]
    assert (commands.count("RD"), commands.count("WR")) == (9, -(-nbytes // 32))


def test_a_shared_queue_is_filled_by_one_pseudo_channel_for_both() -> None:
    """With four places for both, four conflicts of the first keep a read of the second out until one has gone."""
    asked = [(7 * n, True, n * 2 * 4096 * 4, 32) for n in range(6)] + [(7 * 8, True, 256, 32)]

    def last(queues: str) -> float:
        shape = {"channels": 2, "refresh": "none", "read_queue": 4, "queues": queues}
        return simulated(asked, shape).heard[-1][0].tail

    assert last("per_pseudo_channel") == pytest.approx(8 + 1 + 10 + 19.375 + 12.5 + 1.25 + 1, abs=0.7)
    assert last("shared") > last("per_pseudo_channel") + 45


def test_a_channel_that_has_done_nothing_yet_is_free_in_the_first_clock() -> None:
    """A row is opened at the first clock after the request comes, 2⁻¹⁶ ns from the beginning."""
    rig = Rig(HbmCtrlBank, {**ONE, "overhead": "0 ns"}, latency=1 / GRID)
    ctrl: Any = rig.under_test
    ctrl.banked[0].trace = []
    rig.ask(0, msg=transaction("read", Region(0, 32)))
    rig.run()
    assert ctrl.banked[0].trace == [(0.625, "ACT", 0, 0), (0.625 + 19.375, "RD", 0, 0)]
