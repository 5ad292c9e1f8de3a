"""The PCIe endpoint: a thin latency on either side of the link."""

from __future__ import annotations

import pytest

from kernbench_builtin.components.pcie_ep import PcieEp
from kernbench_core.messages import MemoryReadMsg, MemoryWriteMsg
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.values.region import Region


def test_it_adds_its_overhead_to_head_and_tail() -> None:
    rig = Rig(PcieEp, {"overhead": "50 ns"}, bandwidth=10, latency=2).feed(0, 100)
    assert_ready_at(rig, 2 + 50 + 2 + 10)


def test_it_does_not_limit_the_rate() -> None:
    rig = Rig(PcieEp, {"overhead": "50 ns"}, bandwidth=10, latency=2)
    for _ in range(4):
        rig.feed(0, 100)
    rig.run()
    assert [arrival.tail for arrival in rig.arrivals] == [64, 74, 84, 94]


@pytest.mark.parametrize("request_type", [MemoryWriteMsg, MemoryReadMsg])
def test_its_overhead_is_paid_once_each_way(simulate, request_type) -> None:
    took = []
    for overhead in (0, 50, 75):
        sim = simulate("tiny", f"components.pcie_ep.params.overhead={overhead} ns")
        request = request_type((Region(sim.own(0), 64),))
        sim.engine.submit(request)
        sim.run()
        took.append(request.response.completed_ns)
    assert took == [took[0], took[0] + 100, took[0] + 150]


def test_the_link_carries_the_payload_in_packets_with_a_header_each(simulate, grid) -> None:
    sim = simulate("tiny")
    sim.engine.submit(MemoryWriteMsg((Region(sim.own(0), 1000),)))
    sim.run()
    wire = sim["host"].out_ports["sip0.io0.pcie_ep"]
    assert wire.busy_ns == grid((1000 + 4 * 24) / (64 * 128 / 130))
    back = sim["sip0.io0.pcie_ep"].out_ports["host"]
    assert back.busy_ns == grid(24 / (64 * 128 / 130))
