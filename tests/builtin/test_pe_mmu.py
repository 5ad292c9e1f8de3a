"""The address translation of a PE: pages are counted once, and everybody pays the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pe_mmu import PeMmu, pages_touched
from kernbench_core.regions import Region
from kernbench_core.testing import Rig, assert_ready_at


def naive_pages(regions: list[Region], page: int) -> int:
    """Count pages byte by byte."""
    return len(
        {
            (region.base + row * region.pitch + column) // page
            for region in regions
            for row in range(region.rows)
            for column in range(region.row_bytes)
        }
    )


@st.composite
def regions(draw: st.DrawFn) -> Region:
    row_bytes = draw(st.integers(1, 300))
    pitch = draw(st.sampled_from([0, row_bytes, 64, 100, 128, 130, 257, 1000, -64, -200, -1000]))
    return Region(20_000 + draw(st.integers(0, 3000)), row_bytes, draw(st.integers(1, 12)), pitch)


@given(st.lists(regions(), max_size=4), st.sampled_from([64, 128, 4096]))
def test_pages_are_those_of_a_byte_by_byte_count(wanted: list[Region], page: int) -> None:
    assert pages_touched(wanted, page) == naive_pages(wanted, page)


def test_two_rows_on_one_page_are_one_look_up() -> None:
    # rows 4100 B apart, of 4090 B: the end of each lies on the page where the next begins
    assert pages_touched([Region(4090, 4090, 2, 4100)], 4096) == 3
    assert pages_touched([Region(0, 16), Region(2048, 16)], 4096) == 1


def test_as_a_component_it_takes_one_look_up() -> None:
    assert_ready_at(Rig(PeMmu, {"tlb_overhead": "3 ns"}).ask(0), 1 + 3 + 1)


@pytest.mark.parametrize(
    ("region", "pages"),
    [
        (Region(0, 4096), 1),
        (Region(2048, 4096), 2),
        (Region(0, 256, 4, 4096), 4),
        (Region(0, 256, 4, 1024), 1),
        (Region(128, 64, 6, 8192), 6),
    ],
)
def test_a_chunk_leaves_later_by_one_look_up_for_each_page(simulate, region, pages) -> None:
    took = []
    for overhead in ("0 ns", "7 ns"):
        sim = simulate("tiny", f"components.pe_mmu.params.tlb_overhead={overhead}")
        move = sim.move("read", region.shifted(sim.own(0)))
        sim.run()
        took.append(move.ended_ns)
    assert took[1] - took[0] == 7 * pages


def test_regions_smaller_than_a_page_are_translated(simulate) -> None:
    sim = simulate("tiny")
    mmu = sim["sip0.cube0.pe0.pe_mmu"]
    assert mmu.translation_ns((Region(sim.own(0, 4095), 1),)) == 2.0
    assert mmu.translation_ns((Region(sim.own(0, 4095), 2),)) == 4.0


def test_commands_and_tile_tokens_are_charged_alike(simulate) -> None:
    ends = []
    for token in (False, True):
        sim = simulate("tiny")
        move = sim.move("read", Region(sim.own(0, 100), 700, 9, 5000), token=token)
        sim.run()
        ends.append(move.ended_ns)
        assert sim["sip0.cube0.pe0.pe_mmu"].served == 2
    assert ends[0] == ends[1]


def test_a_pe_without_an_mmu_translates_for_nothing(simulate) -> None:
    sim = simulate("tiny")
    sim["sip0.cube0.pe0.pe_dma"]._mmu = None
    bare = sim.move("read", Region(sim.own(0), 8192))
    sim.run()
    free = simulate("tiny", "components.pe_mmu.params.tlb_overhead=0 ns")
    move = free.move("read", Region(free.own(0), 8192))
    free.run()
    assert bare.ended_ns == move.ended_ns
