"""Any workload keeps the rules of the commands, which an independent reading of them checks, and loses nothing."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.components.hbm_ctrl_bank import HbmCtrlBank
from kernbench_builtin.memory_standards import STANDARDS
from kernbench_core.engine.bound import formula_latency
from kernbench_core.messages import Transaction
from kernbench_core.testing import Rig
from kernbench_core.values.region import Region
from tests.builtin.components.driven_controller import Driven, transaction
from tests.builtin.dram_rules import bus_violations, late_refreshes, violations
from tests.builtin.touched_bursts import bursts_of

requests = st.lists(
    st.tuples(
        st.integers(0, 400), st.booleans(), st.integers(0, 1 << 16), st.integers(1, 600), st.integers(1, 3),
        st.integers(-700, 2000),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip
shapes = st.fixed_dictionaries(
    {
        "channels": st.sampled_from([1, 2, 4]),
        "banks": st.sampled_from([8, 16]),
        "bank_groups": st.sampled_from([1, 2, 4]),
        "mapping": st.sampled_from(["RoBaCo", "RoCoBa"]),
        "bank_group_interleave": st.booleans(),
        "bank_hash": st.booleans(),
        "channel_hash": st.sampled_from(["auto", "on", "off"]),
        "read_queue": st.integers(1, 20),
        "write_queue": st.integers(1, 20),
        "standard": st.sampled_from(sorted(STANDARDS)),
        "pseudo_channels": st.sampled_from([1, 2]),
        "queues": st.sampled_from(["per_pseudo_channel", "shared"]),
        "refresh": st.sampled_from(["none", "all_bank", "per_bank"]),
        "front_end": st.sampled_from([1, 3, 256]),
        "tFAW": st.sampled_from(["15 ns", "40 ns"]),
        "tRTP": st.sampled_from(["0 ns", "6 ns", "30 ns"]),
        "tCCD_L": st.sampled_from(["2.5 ns", "5 ns"]),
        "tREFI": st.sampled_from(["1200 ns", "3900 ns"]),
    }
)


@settings(max_examples=60)
@given(requests, shapes)
def test_no_workload_breaks_a_rule_loses_a_byte_or_an_answer(
    asks: list[tuple[int, bool, int, int, int, int]], shape: dict[str, object]
) -> None:
    rig = Rig(HbmCtrlBank, {"row_bytes": "256 B", **shape}, bandwidth=64.0)
    ctrl: Any = rig.under_test
    for channel in ctrl.banked:
        channel.trace = []
    sent, bounds = [], []
    for at, read, base, nbytes, rows, pitch in asks:
        region = Region(base + 4000, nbytes, rows, pitch if rows > 1 else 0)
        op = "read" if read else "write"
        sent.append(transaction(op, region))
        rig.ask(at, msg=sent[-1])
        copy = Transaction(op, (region,), region.nbytes, ("in0", "under_test"), lambda _: None)
        moved = len(bursts_of((region,)))
        bounds.append((formula_latency(rig.hardware.graph, rig.hardware.components, copy), moved))
    rig.run()
    assert len(rig.arrivals) == len(sent)
    times = attrs.asdict(ctrl.timing)
    for channel in ctrl.banked:
        columns = [entry for entry in channel.trace if entry[1] in ("RD", "WR")]
        layout = [ctrl.params[name] for name in ("banks", "bank_groups", "stack_ids")]
        assert violations(channel.trace, times, *layout) == []
        assert channel.wire.bytes_carried == 32 * len(columns)
        assert channel.wire.busy_ns == pytest.approx(ctrl.timing.tBL * len(columns))
        assert channel.hits + channel.misses + channel.conflicts == len(columns)
    assert sum(channel.wire.bytes_carried for channel in ctrl.banked) == 32 * sum(bursts for _, bursts in bounds)
    together = ctrl.params["pseudo_channels"]
    for first in range(0, len(ctrl.banked), together):
        assert bus_violations([place.trace for place in ctrl.banked[first : first + together]], times) == []
    for msg, (bound, _) in zip(sent, bounds, strict=True):
        assert msg.elapsed >= bound
        parts = (msg.propagation, msg.serialisation, msg.overhead, msg.queueing, msg.service)
        assert sum(parts) == msg.elapsed
        assert min(parts) >= 0


@pytest.mark.parametrize("refresh", ["all_bank", "per_bank"])
@pytest.mark.parametrize("later", [2000, 9000, 9150])
def test_what_idle_refreshes_close_is_in_the_trace(refresh: str, later: int) -> None:
    """Rows that were left open are closed before their bank is refreshed, however long nobody asks for anything."""
    params = {"banks": 8, "bank_groups": 1, "channels": 1, "standard": "hbm2_2000", "tREFI": "1200 ns"}
    rig = Rig(HbmCtrlBank, {"row_bytes": "256 B", **params, "refresh": refresh}, bandwidth=64.0)
    ctrl: Any = rig.under_test
    (channel,) = ctrl.banked
    channel.trace = []
    for at in (0, later):
        rig.ask(at, msg=transaction("write", Region(4000, 321)))
    rig.run()
    assert violations(channel.trace, attrs.asdict(ctrl.timing), 8, 1) == []
    assert channel.refreshes == (later + 30) // (1200 if refresh == "all_bank" else 150)


def test_the_rules_of_the_reference_can_fail() -> None:
    times = attrs.asdict(Driven().ctrl.timing)
    good = [(0.0, "ACT", 0, 5), (19.375, "RD", 0, 5), (28.125, "PRE", 0, 5), (45.0, "ACT", 0, 6)]
    assert violations(good, times, 16, 4) == []
    assert len(violations([*good[:3], (43.75, "ACT", 0, 6)], times, 16, 4)) == 2
    assert len(violations([good[0], (18.75, "RD", 0, 5)], times, 16, 4)) == 1
    assert len(violations([good[0], (19.5, "RD", 0, 5)], times, 16, 4)) == 1
    assert len(violations([good[0], (19.375, "RD", 0, 4)], times, 16, 4)) == 1
    five = [(3.125 * n, "ACT", n, 0) for n in range(5)]
    assert len(violations(five, times, 16, 4)) == 1
    assert bus_violations([good, [(1.25, "ACT", 0, 0), (20.0, "RD", 0, 0)]], times) == []
    assert len(bus_violations([good, [(0.625, "ACT", 0, 0), (19.375, "RD", 0, 0)]], times)) == 2
    single = [(0.0, "REFpb", 0, -1), (7.5, "ACT", 1, 0), (199.375, "ACT", 0, 0)]
    assert len(violations(single, times, 16, 4)) == 2
    every = {**times, "tREFI": 3900.0}
    assert late_refreshes([(3900.0, "REF", 0, -1)], every, 7900.0, True) != []
    assert late_refreshes([(3900.0, "REF", 0, -1), (7801.0, "REF", 0, -1)], every, 7950.0, True) == []


def test_the_same_requests_give_the_same_times_to_the_last_bit() -> None:
    def once() -> list[tuple[float, str, int, int]]:
        rig = Driven()
        for number in range(60):
            op = "write" if number % 3 == 0 else "read"
            rig.rig.ask(number, msg=transaction(op, Region(number * 7919 % 65536, 300)))
        return rig.trace()

    assert once() == once()
