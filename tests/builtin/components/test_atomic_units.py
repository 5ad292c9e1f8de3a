"""Atomic units: what a read-modify-write takes, what meets in an element, a burst or a channel, and the turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_builtin.components.hbm_ctrl import HbmCtrl
from kernbench_builtin.components.hbm_ctrl_bank import HbmCtrlBank
from kernbench_builtin.components.sram import Sram
from kernbench_core.component import ComponentBase
from kernbench_core.engine.bound import formula_latency
from kernbench_core.errors import ComponentError
from kernbench_core.memory.atomic_access import AtomicTransaction
from kernbench_core.messages import Transaction
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.values.region import Region

#: Figures that make sums easy, on wires of 10 B/ns and 1 ns without headers.
EASY = {
    "overhead": "8 ns", "channels": 2, "channel_bandwidth": "4 GB/s", "efficiency": 1.0, "channel_latency": "30 ns",
    "interleave_bytes": "256 B", "burst_bytes": "32 B", "atomic_step": "2 ns",
}  # fmt: skip
#: Request and answer of 10 B each, the controller, and a burst of 32 B from its channel.
THERE, FETCH, BACK = 2 + 8, 30 + 8, 2
MODELS: list[tuple[type[ComponentBase], dict[str, object]]] = [
    (HbmCtrl, EASY),
    (HbmCtrlBank, {"atomic_step": "2 ns", "refresh": "none"}),
    (Sram, {"atomic_step": "2 ns"}),
]
all_models = pytest.mark.parametrize(("model", "params"), MODELS, ids=lambda each: getattr(each, "__name__", ""))


def change(turns: dict[int, int], served: list[str] | None = None, name: str = "") -> AtomicTransaction:
    """Make a request that has so many lanes at each address, of 4 B elements."""
    regions = tuple(Region(address, 4) for address in turns)
    addresses, lanes = np.array(list(turns), np.int64), np.array(list(turns.values()), np.int64)
    sent = 10 - 8 * (len(regions) - 1) if len(regions) < 3 else 0
    return AtomicTransaction(
        regions, (), lambda _: None, addresses=addresses, turns=lanes, sent=sent, returned=10,
        turn=lambda now: None if served is None else served.append(name),
    )  # fmt: skip


def ends(model: type[ComponentBase], params: dict[str, object], *asked: AtomicTransaction) -> list[float]:
    """Send requests together; return when they are answered, as they come."""
    rig = Rig(model, params, bandwidth=1000.0)
    for msg in asked:
        rig.ask(0, msg=msg)
    return [arrival.time for arrival in rig.run().arrivals]


def test_one_takes_a_read_of_its_burst_and_a_step() -> None:
    msg = change({64: 1})
    machine = Rig(HbmCtrl, EASY, bandwidth=10.0).ask(0, msg=msg)
    assert_ready_at(machine, THERE + FETCH + 2 + BACK)
    assert machine.arrivals[0].nbytes == 10
    parts = (msg.propagation, msg.serialisation, msg.overhead, msg.queueing, msg.service)
    assert parts == (1 + 30 + 1, 1 + 8 + 1, 8, 0, 2)
    assert sum(parts) == msg.elapsed


@all_models
def test_those_at_one_element_take_a_step_each(model: type[ComponentBase], params: dict[str, object]) -> None:
    """All of them: the last of n comes n - 1 steps after the first, whatever the burst took to come."""
    alone = ends(model, params, change({64: 1}))[0]
    together = ends(model, params, *[change({64: 1}) for _ in range(9)])
    assert together == [alone + 2 * number for number in range(9)]


@all_models
def test_those_of_other_channels_overlap(model: type[ComponentBase], params: dict[str, object]) -> None:
    channels = [change({address: 40}) for address in ((64, 256 + 64) if model is not Sram else (0, 16))]
    same = [change({64: 40}), change({64: 40})]
    apart, together = ends(model, params, *channels), ends(model, params, *same)
    assert apart[1] - apart[0] < 2
    assert together[1] - together[0] == 80


def test_lanes_that_meet_in_an_element_take_turns_and_others_of_the_burst_go_with_them() -> None:
    alone = ends(HbmCtrl, EASY, change({64: 1}))[0]
    assert ends(HbmCtrl, EASY, change({64: 5})) == [alone + 2 * 4]
    assert ends(HbmCtrl, EASY, change({64: 5, 68: 3}))[0] == pytest.approx(alone + 2 * 4, abs=0.05)
    # another burst of the channel is fetched after the first, and takes its own steps
    assert ends(HbmCtrl, EASY, change({64: 5, 96: 3}))[0] == pytest.approx(alone + 8 + 2 * 7, abs=0.05)


def test_a_burst_stays_as_long_as_somebody_waits_for_it() -> None:
    """The first is over at the controller at 50: what is there before finds the burst, and what comes then does not."""
    machine = Rig(HbmCtrl, EASY, bandwidth=10.0).ask(0, msg=change({64: 1})).ask(39.5, msg=change({68: 1}))
    assert_ready_at(machine, THERE + FETCH + 2 + 2 + BACK, arrival=2)
    machine = Rig(HbmCtrl, EASY, bandwidth=10.0).ask(0, msg=change({64: 1})).ask(40, msg=change({68: 1}))
    assert_ready_at(machine, 40 + THERE + FETCH + 2 + BACK, arrival=2)


def test_the_write_back_takes_its_channel() -> None:
    """Four bursts are written back from 81.4 to 113.4; a read of the channel that is there at 91 waits for that."""
    came = []
    for address in (0, 256):
        machine = Rig(HbmCtrl, EASY, bandwidth=10.0).ask(0, msg=change({64 + 32 * n: 1 for n in range(4)}))
        machine.ask(82, msg=Transaction("read", (Region(address, 32),), 32, (), lambda _: None))
        came.append(machine.run().arrivals[1].time)
    assert came[0] - came[1] == pytest.approx(113.4 - 91, abs=0.001)


def test_banks_read_a_burst_and_write_it_back() -> None:
    """Once for all requests that wait for it: two column commands, and the write finds the row open."""
    rig = Rig(HbmCtrlBank, {"refresh": "none"}, bandwidth=1000.0)
    for _ in range(5):
        rig.ask(0, msg=change({64: 1}))
    banks: Any = rig.run().under_test
    assert (banks.row_misses, banks.row_hits, banks.row_conflicts) == (1, 1, 0)


@all_models
def test_turns_are_in_order_of_arrival(model: type[ComponentBase], params: dict[str, object]) -> None:
    """Also where a later one has its burst sooner; and each is answered after its own end."""
    served: list[str] = []
    requests = [change({64 + 4096 * n: 1, 64: 1}, served, str(n)) for n in (3, 1, 2)]
    assert len(ends(model, params, *requests)) == 3
    assert served == ["3", "1", "2"]


@all_models
def test_many_bursts_are_forgotten(model: type[ComponentBase], params: dict[str, object]) -> None:
    """What is over keeps no place: a thousand bursts, one after the other, each fetched again."""
    rig = Rig(model, params, bandwidth=1000.0)
    for number in range(300):
        rig.ask(1000.0 * number, msg=change({32 * (number % 150): 1}))
    first, *_, last = [arrival.time % 1000.0 for arrival in rig.run().arrivals]
    assert first == pytest.approx(last, abs=30.0)
    component: Any = rig.under_test
    units = component.atomic_units if model is not HbmCtrlBank else component.atomics._units
    assert len(units._holders) <= 64


def test_the_bound_holds_and_is_no_read() -> None:
    """A burst may be in its unit already, so that no channel is in the bound."""
    machine = Rig(HbmCtrl, EASY, bandwidth=10.0)
    asked = change({64: 1})
    machine.ask(0, msg=asked)
    machine.run()
    alone = change({64: 1})
    alone.path = ("in0", "under_test")
    assert formula_latency(machine.hardware.graph, machine.hardware.components, alone) == THERE + BACK
    assert asked.elapsed >= THERE + BACK


def test_a_second_turn_is_refused() -> None:
    msg = change({64: 1})
    msg.path = ("in0", "mem")
    msg.change(1.0)
    with pytest.raises(ComponentError) as error:
        msg.change(2.0)
    assert str(error.value) == (
        "mem must change elements for each AtomicTransaction once, not twice; call change once."
    )
