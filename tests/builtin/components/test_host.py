"""The host: copies over PCIe, every chunk once, as fast as the link; launches over several packages."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from kernbench_core.messages import HostRequest, MemoryReadMsg, MemoryWriteMsg
from kernbench_core.values.region import Region

#: PCIe Gen5 x16 in one direction: 32 GT/s on 16 lanes of one bit, of which 128 in 130 are data.
LINK_RATE = 32 * 16 / 8 * 128 / 130
#: PCIe payload rate of the presets: 256 B of payload and 24 B of header in each packet.
PAYLOAD_RATE = LINK_RATE * 256 / (256 + 24)
REQUESTS = {"write": MemoryWriteMsg, "read": MemoryReadMsg}


def copy(sim: Any, op: str, *regions: Region) -> HostRequest:
    request = REQUESTS[op](tuple(regions))
    sim.engine.submit(request)
    return request


@pytest.mark.parametrize("preset", ["tiny", "default"])
@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("nbytes", [1, 100, 4096])
def test_a_copy_of_one_chunk_takes_the_driver_and_one_round_trip(simulate, oracle, preset, op, nbytes) -> None:
    sim = simulate(preset)
    last = sim.sites[-1]
    request = copy(sim, op, Region(sim.own(last.index), nbytes))
    sim.run()
    per_channel = -(-nbytes // 1024) * 256 if nbytes > 256 else -(-nbytes // 32) * 32
    truth = oracle(sim.graph)
    assert request.response.completed_ns == 50 + truth.round_trip("host", last.hbm_ctrl, op, nbytes, per_channel)
    assert (request.response.request, request.response.sent_ns) == (REQUESTS[op].__name__, 0.0)


@pytest.mark.parametrize("preset", ["tiny", "default"])
@pytest.mark.parametrize("op", ["read", "write"])
def test_a_large_copy_takes_little_more_than_its_bytes_over_the_link(simulate, preset, op) -> None:
    sim = simulate(preset)
    nbytes = 4 << 20
    request = copy(sim, op, *[Region(sim.own(pe), nbytes // 4) for pe in range(4)])
    sim.run()
    took = request.response.completed_ns
    assert nbytes / PAYLOAD_RATE < took < 1.02 * nbytes / PAYLOAD_RATE + 2000


@pytest.mark.parametrize("op", ["read", "write"])
def test_every_chunk_goes_once_to_the_memory_that_owns_it(simulate, op) -> None:
    sim = simulate("default")
    regions = [Region(sim.own(pe, 100 * pe), 9000 + pe) for pe in range(len(sim.sites))]
    copy(sim, op, *regions)
    sim.run()
    found = Counter((trip.path[0], trip.regions) for trip in sim.trips)
    assert set(found.values()) == {1}
    assert {trip.op for trip in sim.trips} == {op}
    carried = {site.hbm_ctrl: 0 for site in sim.sites}
    for trip in sim.trips:
        carried[trip.path[0]] += trip.total
    assert carried == {site.hbm_ctrl: 9000 + site.index for site in sim.sites}
    bursts = dict.fromkeys(carried, 0)
    for trip in sim.trips:
        (region,) = trip.regions
        bursts[trip.path[0]] += (-(-region.end // 32) - region.base // 32) * 32
    assert {
        site.hbm_ctrl: sum(wire.bytes_carried for wire in sim[site.hbm_ctrl].channel_wires) for site in sim.sites
    } == bursts
    moved = sorted((r.base, r.nbytes) for trip in sim.trips for r in trip.regions)
    assert sum(nbytes for _, nbytes in moved) == sum(region.nbytes for region in regions)
    assert all(base + nbytes <= following for (base, nbytes), (following, _) in itertools.pairwise(moved))


@pytest.mark.parametrize("op", ["read", "write"])
def test_packages_are_copied_to_in_parallel(simulate, op) -> None:
    nbytes = 1 << 20
    took = []
    for pes in ([0], [0, -1]):
        sim = simulate("default")
        sites = [sim.sites[pe].index for pe in pes]
        request = copy(sim, op, *[Region(sim.own(pe), nbytes // len(sites)) for pe in sites])
        sim.run()
        took.append(request.response.completed_ns)
    assert nbytes / 2 / PAYLOAD_RATE < took[1] < 0.55 * took[0]


def test_the_directions_of_the_link_are_independent(simulate) -> None:
    alone = []
    for pe, op in enumerate(("read", "write")):
        sim = simulate("tiny")
        request = copy(sim, op, Region(sim.own(pe), 1 << 18))
        sim.run()
        alone.append(request.response.completed_ns)
    sim = simulate("tiny")
    both = [copy(sim, op, Region(sim.own(pe), 1 << 18)) for pe, op in enumerate(("read", "write"))]
    sim.run()
    for single, together in zip(alone, both, strict=True):
        assert single <= together.response.completed_ns < 1.05 * single


def test_read_requests_queue_behind_the_writes_that_were_asked_for_before(simulate) -> None:
    sim = simulate("tiny")
    write, read = (copy(sim, op, Region(sim.own(pe), 1 << 18)) for pe, op in enumerate(("write", "read")))
    sim.run()
    assert read.response.completed_ns > write.response.completed_ns + (1 << 18) / PAYLOAD_RATE * 0.9


def test_a_copy_of_nothing_takes_the_driver(simulate) -> None:
    sim = simulate("tiny")
    request = copy(sim, "write")
    sim.run()
    assert request.done.fired
    assert (request.response.sent_ns, request.response.completed_ns) == (0.0, 50.0)


def test_two_requests_at_once_are_both_answered(simulate) -> None:
    sim = simulate("tiny")
    requests = [copy(sim, op, Region(sim.own(pe), 20_000)) for pe, op in enumerate(["read", "write", "read"])]
    sim.run()
    assert all(request.done.fired for request in requests)


def test_a_host_program_sees_its_copies_as_phases(simulate) -> None:
    sim = simulate("tiny")
    sent = []

    def program(rt: Any) -> None:
        tensor = rt.tensor((64, 1024), "f16")
        sent.append(rt.now)
        rt.copy_to_host(tensor)

    sim.engine.run(program)
    phases = sim.engine.get_timing_result().phases
    assert phases["host_to_device"] == sent[0] > 64 * 1024 * 2 / PAYLOAD_RATE
    assert phases["device_to_host"] == sim.env.now - sent[0] > 64 * 1024 * 2 / PAYLOAD_RATE
    assert phases["kernel"] == phases["launch"] == 0


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_faster_link_is_never_slower(simulate, op) -> None:
    took = []
    for rate in (8, 16, 32, 63, 126, 1000):
        sim = simulate("tiny", f"host.pcie.bandwidth={rate} GB/s")
        request = copy(sim, op, *[Region(sim.own(pe), 1 << 16) for pe in range(4)])
        sim.run()
        took.append(request.response.completed_ns)
    assert took == sorted(took, reverse=True)


def test_a_launch_on_several_packages_is_stamped_at_the_host(simulate, oracle) -> None:
    sim = simulate("default")
    request = sim.launch()
    sim.run()
    truth, nbytes = oracle(sim.graph), request.launch.nbytes
    least = 50 + max(
        truth.launch_reach(truth.path("host", site.io_cpu), nbytes)
        + truth.launch_reach(truth.path(site.io_cpu, site.m_cpu), nbytes)
        + truth.launch_reach([site.m_cpu, site.pe_cpu], nbytes)
        for site in sim.sites
    )
    # the launches for a package's four cubes wait for one another on the wires that they share
    slowest = max(truth.slowest(truth.path(site.io_cpu, site.m_cpu), nbytes) for site in sim.sites)
    assert least < request.launch.target_start_ns <= least + 3 * slowest


def test_the_io_cpus_leave_the_stamp_of_the_host(simulate) -> None:
    sim = simulate("default", "components.io_cpu.params.overhead=400 ns")
    stamps = []
    stamp = sim["host"].stamp

    def keep(launch: Any, targets: Any) -> None:
        stamp(launch, targets)
        stamps.append(launch.target_start_ns)

    sim["host"].stamp = keep
    request = sim.launch()
    sim.run()
    assert stamps == [request.launch.target_start_ns]


def test_a_launch_is_complete_when_every_package_has_answered(simulate, answering) -> None:
    slow = answering(lambda cpu: 5000.0 if cpu == "sip1.cube2.pe3.pe_cpu" else 10.0)
    sim = simulate("default", cpu=slow)
    request = sim.launch()
    sim.run()
    assert set(request.launch.ended_ns) == set(request.launch.started_ns) == {site.index for site in sim.sites}
    launch = request.launch
    assert request.response.completed_ns > max(launch.ended_ns.values()) >= launch.target_start_ns + 5000
    assert sim["host"].served == 1
    assert sim["host"].awaiting() == ()


@pytest.mark.parametrize("slow", ["host", "io_cpu"])
def test_an_answer_does_not_wait_behind_a_launch_that_is_still_being_taken_in(simulate, answering, slow) -> None:
    """What comes back shares wires with what goes out, and nothing is booked on them ahead of its time."""
    took = []
    for later in (False, True):
        sim = simulate("tiny", f"components.{slow}.params.overhead=600 ns", cpu=answering(lambda cpu: 100.0))
        first = sim.launch()
        sim.run()
        due = first.response.completed_ns
        if later:
            sim = simulate("tiny", f"components.{slow}.params.overhead=600 ns", cpu=answering(lambda cpu: 100.0))
            first = sim.launch()
            sim.launch(at_ns=due - 300.0 if slow == "host" else due - 1100.0)
            sim.run()
        took.append(first.response.completed_ns)
    assert took[0] == took[1]


def test_a_copy_reaches_the_efficiency_of_its_packets(simulate) -> None:
    """256 B of payload with 24 B of header: 91 %, as in Intel's AN 708."""
    sim = simulate("tiny")
    nbytes = 16 << 20
    request = copy(sim, "write", *[Region(sim.own(pe), nbytes // 4) for pe in range(4)])
    sim.run()
    assert nbytes / request.response.completed_ns / LINK_RATE == pytest.approx(0.914, abs=0.005)


@pytest.mark.parametrize(
    ("generation", "rate"), [(1, 4.0), (2, 8.0), (3, 15.754), (4, 31.508), (5, 63.015), (6, 118.0)]
)
def test_a_copy_goes_at_the_rate_of_its_generation(simulate, generation, rate) -> None:
    sim = simulate("tiny", f"host.pcie.generation={generation}")
    nbytes = 1 << 20
    # dealt to all slices in turn, as the fastest link carries more than one of them takes
    request = copy(sim, "write", *[Region(sim.own(i % 4, i // 4 * 4096), 4096) for i in range(nbytes // 4096)])
    sim.run()
    least = nbytes * 280 / 256 / rate
    assert least * 0.999 < request.response.completed_ns < least + 1500


@pytest.mark.parametrize("op", ["read", "write"])
def test_two_endpoints_of_a_package_carry_twice_as_much(simulate, op) -> None:
    took = {}
    for chiplets in (1, 2):
        sim = simulate("default", "system.sips=1", f"sip.io_chiplets={chiplets}")
        nbytes = 1 << 20
        request = copy(sim, op, *[Region(sim.own(pe), nbytes // 32) for pe in range(32)])
        sim.run()
        took[chiplets] = request.response.completed_ns
        links = [sim["host"].out_ports[f"sip0.io{io}.pcie_ep"] for io in range(chiplets)]
        if op == "write":
            assert {wire.bytes_carried for wire in links} == {nbytes // chiplets}
    assert took[2] - 1500 < took[1] / 2 < took[2]


def test_a_chunk_takes_the_endpoint_nearest_to_its_memory(simulate) -> None:
    sim = simulate("default", "sip.io_chiplets=2")
    used = {cube: sim.hardware.memory_path("host", f"sip1.cube{cube}.hbm_ctrl0")[1] for cube in range(4)}
    assert used == {
        0: "sip1.io0.pcie_ep", 1: "sip1.io0.pcie_ep", 2: "sip1.io1.pcie_ep", 3: "sip1.io1.pcie_ep",
    }  # fmt: skip


def test_the_first_io_chiplet_owns_the_launches_of_its_package(simulate) -> None:
    sim = simulate("default", "sip.io_chiplets=2")
    sim.launch()
    sim.run()
    assert [sim[f"sip{sip}.io{io}.io_cpu"].served for sip in range(2) for io in range(2)] == [5, 0, 5, 0]


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_copy_may_go_through_the_dma_of_the_m_cpu(simulate, oracle, op) -> None:
    sim = simulate("tiny")
    request = REQUESTS[op]((Region(sim.own(3), 512),), through_m_cpu=True)
    sim.engine.submit(request)
    sim.run()
    truth, there = oracle(sim.graph), 512 if op == "write" else 0
    way = truth.path("host", "sip0.cube0.m_cpu")
    inner = truth.round_trip("sip0.cube0.m_cpu", "sip0.cube0.hbm_ctrl3", op, 512, 256) + 5
    outer = truth.fixed(way) + truth.slowest(way, there) + truth.fixed(way[::-1], last=False)
    outer += truth.slowest(way[::-1], 512 - there)
    assert request.response.completed_ns == 50 + outer + inner
    assert [trip.path[-1] for trip in sim.trips] == ["sip0.cube0.m_cpu", "host"]


def test_a_large_copy_through_the_m_cpu_is_slower_as_its_dma_has_one_request_in_flight(simulate) -> None:
    took = []
    for through in (False, True):
        sim = simulate("tiny")
        request = MemoryWriteMsg((Region(sim.own(1), 1 << 18),), through_m_cpu=through)
        sim.engine.submit(request)
        sim.run()
        took.append(request.response.completed_ns)
    assert took[0] < took[1]
