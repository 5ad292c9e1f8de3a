"""What a step between two PEs costs on the machine itself: each part as often as its form says."""

from __future__ import annotations

import math

import pytest

from tests.ccl.algorithms.measured_forms import B, L, ring, run

WIRE = 1.0
"""ns of a wire inside a PE; control wires have 32 GB/s, data wires 512 GB/s, and a header is 32 B."""
DISPATCH = 10.0
NOTE = WIRE + 32 / 32
MEMORY_ORDER, ORDER, DMA_ORDER = WIRE + (80 + 32) / 32, WIRE + (64 + 32) / 32, WIRE + (32 + 32) / 32
START = 16 + 4
"""ns of a descriptor of the DMA and of its first chunk."""
SCRATCHPAD = 3.0
TO_FIRST_BYTE = WIRE + 32 / 512 + SCRATCHPAD + WIRE
ON_DIE = 2 * (0.5 + 4 + 1 + 4 + 2 + 4 + 1 + 4 + 1 + 10)
"""ns between the DMA and the link, at both ends: router, UCIe port, IO chiplet's UCIe and NoC, link port."""
#: Segments that begin anywhere have their bytes on channels in turn.
IN_TURN = "components.hbm_ctrl.params.channel_hash=off"
NO_WALKS = "components.pe_mmu.params.walk_time=0 ns"


def chunks_of(n):
    return [min(4096, n - at) for at in range(0, n, 4096)]


def hbm(start, n):
    """Return the time of the channel of which most is read: bursts of 32 B, 256 B on one of four, 23.6 GB/s each."""
    share = [0] * 4
    for burst in range(start // 32, -(-(start + n) // 32)):
        share[burst * 32 // 256 % 4] += 32
    return max(share) / (0.923 * 25.6)


def memory(start, n):
    """Return the time of a load from the PE's own slice, its page in the TLB; a store takes one header more."""
    to_and_fro = 2 * (0.5 + 4 + 0.5) + 10 + 31.9 + 32 / 128
    return START + 2 + to_and_fro + hbm(start, n) + WIRE + SCRATCHPAD


def arrival(n):
    """Return the time from a send to the moment when the receiver knows of all of it, link and latency included."""
    headers = sum(32 * -(-chunk // 4096) for chunk in chunks_of(n)[:-1]) + 32 * -(-(chunks_of(n)[-1] + 16) // 4096)
    on_link = L + (n + 16 + headers) / B
    return 4 + DMA_ORDER + START + TO_FIRST_BYTE + ON_DIE + on_link + WIRE + SCRATCHPAD + NOTE + 4


def receipt(n):
    """Return the time to copy a message out of its slot."""
    return DMA_ORDER + START + TO_FIRST_BYTE + (n + 32 * len(chunks_of(n))) / 512 + WIRE + SCRATCHPAD + NOTE + 4


def add(n):
    return 10 + max(math.ceil(n / 2 / 128) / 0.96, n / 512)


def step(start, n, reduces):
    """Return the time of a step: load, send, receive, reduce, store, each with its dispatch, order and completion."""
    took = DISPATCH + MEMORY_ORDER + memory(start, n) + NOTE
    took += DISPATCH + ORDER + arrival(n) + receipt(n) + NOTE
    if reduces:
        took += DISPATCH + ORDER + add(n) + NOTE
    return took + DISPATCH + MEMORY_ORDER + memory(start, n) + WIRE + 32 / 512 + NOTE


def segments(world, nbytes):
    """Return the start and the bytes of each of N nearly equal segments of f16."""
    whole, more = divmod(nbytes // 2, world)
    lengths = [whole + (i < more) for i in range(world)]
    return [(2 * sum(lengths[:i]), 2 * length) for i, length in enumerate(lengths)]


def ring_of_steps(world, nbytes):
    """Return the time of the slowest segment's steps: N - 1 that reduce and N - 1 that do not."""
    return (world - 1) * max(step(*one, True) + step(*one, False) for one in segments(world, nbytes))


@pytest.mark.parametrize("world", range(2, 10))
@pytest.mark.parametrize("nbytes", [2048, 8192, 32768])
def test_a_step_costs_what_its_parts_cost(world, nbytes):
    """One PE a rank, pages in the TLB: the sum of the parts within 1 %, and exactly where all segments lie alike."""
    measured, _, _ = run("ring", "all_reduce", nbytes, world, "cube.pes=1", NO_WALKS, IN_TURN, pes=1)
    right = ring_of_steps(world, nbytes)
    alike = nbytes % (1024 * world) == 0
    assert measured.time_ns == pytest.approx(right, rel=1e-5 if alike else 0.01)
    assert right > 1.1 * ring(world, nbytes)


@pytest.mark.parametrize(("world", "nbytes"), [(2, 2048), (4, 32768), (9, 8192)])
def test_page_walks_come_on_top(world, nbytes):
    """Cold pages: the first load, and at most one store for each segment, wait for a walk of 100 ns."""
    measured, _, _ = run("ring", "all_reduce", nbytes, world, "cube.pes=1", pes=1)
    warm = ring_of_steps(world, nbytes)
    assert 0.99 * warm + 2 * 100 <= measured.time_ns <= 1.01 * warm + (world + 1) * 100


@pytest.fixture(scope="module")
def plain():
    """Four ranks, 8 KiB: what no parameter was changed of."""
    return run("ring", "all_reduce", 8192, 4, "cube.pes=1", NO_WALKS, pes=1)[0]


@pytest.mark.parametrize(
    ("setting", "by"),
    [
        ("components.pe_cpu.params.dispatch_overhead=11 ns", 3 * 4 + 3 * 3),
        ("components.pe_ipcq.params.overhead=5 ns", 6 * 3),
        ("components.pe_dma.params.descriptor_overhead=17 ns", 6 * 4),
        ("components.hbm_ctrl.params.overhead=11 ns", 6 * 2),
        ("components.pe_tcm.params.latency=4 ns", 6 * 6),
        ("components.pe_math.params.overhead=11 ns", 3),
        ("components.link.params.overhead=11 ns", 6 * 2),
        ("system.network.latency=501 ns", 6),
        ("system.network.bandwidth=50 GB/s", 6 * (2048 + 16 + 32) / 100),
        ("system.network.header_bytes=132 B", 6 * 100 / 100),
    ],
)
def test_each_part_counts_as_often_as_the_form_says(plain, setting, by):
    """Four ranks, 8 KiB: one parameter is changed at a time; three steps reduce and three do not."""
    other, _, _ = run("ring", "all_reduce", 8192, 4, "cube.pes=1", NO_WALKS, setting, pes=1)
    assert other.time_ns - plain.time_ns == pytest.approx(by, abs=0.01)
