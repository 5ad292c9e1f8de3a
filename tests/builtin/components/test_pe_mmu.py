"""The address translation of a PE: a TLB against a naive one, pages by bytes, and everybody pays the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.components.pe_mmu import PeMmu
from kernbench_core.errors import ConfigError
from kernbench_core.memory.allocator import FirstFit
from kernbench_core.messages import MapUpdate, MapUpdateMsg
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.values.region import Region

PAGE = 4096
MMU = "sip0.cube0.pe0.pe_mmu"


def mmu(page: int = PAGE, memory: FirstFit | None = None, **params: object) -> PeMmu:
    """Return an MMU with a page size and, if wanted, a memory that tensors are allocated in."""
    found = Rig(PeMmu, params).under_test
    assert isinstance(found, PeMmu)
    found.page_bytes = page
    found._memory = memory  # type: ignore[assignment]  # it asks for blocks only
    return found


def naive_pages(regions: list[Region], small: int, large: int, blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """List the pages (start, size) byte by byte, each once: a large one where all of it is in one block."""
    found = {}
    for region in regions:
        for row in range(region.rows):
            for column in range(region.row_bytes):
                at = region.base + row * region.pitch + column
                page = at // large * large
                inside = any(start <= page and page + large <= end for start, end in blocks if start <= at < end)
                size = large if inside else small
                found[at // size * size, size] = None
    return sorted(found)


@st.composite
def regions(draw: st.DrawFn) -> Region:
    row_bytes = draw(st.integers(1, 300))
    pitch = draw(st.sampled_from([0, row_bytes, 64, 100, 128, 130, 257, 1000, -64, -200, -1000]))
    return Region(20_000 + draw(st.integers(0, 3000)), row_bytes, draw(st.integers(1, 12)), pitch)


@given(st.lists(regions(), max_size=4), st.sampled_from([64, 128, 4096]))
def test_pages_of_memory_without_tensors_are_those_of_a_byte_by_byte_count(wanted: list[Region], page: int) -> None:
    found = [each[:2] for each in mmu(page).pages(wanted)]
    assert sorted(found) == naive_pages(wanted, page, 1 << 40, [])


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=6), st.data())
def test_pages_are_large_where_a_tensor_holds_all_of_one(sizes: list[int], data: st.DataObject) -> None:
    memory = FirstFit(1 << 14, 1 << 15, 64)
    starts = [memory.alloc(size, "tensor") for size in sizes]
    chosen = data.draw(st.integers(0, len(sizes) - 1))
    start, end, _ = memory.block_at(starts[chosen])
    at = data.draw(st.integers(start, end - 1))
    pitch = data.draw(st.sampled_from([0, 64, 70, 200, 512]))
    row_bytes = data.draw(st.integers(1, min(300, end - at)))
    rows = min(data.draw(st.integers(1, 8)), (end - at - row_bytes) // pitch + 1) if pitch else 1
    wanted = [Region(at, row_bytes, rows, pitch)]
    found = mmu(64, memory, large_page_bytes="512 B").pages(wanted)
    blocks = [(block.address, block.address + block.nbytes) for block in memory.table()]
    assert sorted(page[:2] for page in found) == naive_pages(wanted, 64, 512, blocks)


def test_two_rows_on_one_page_are_one_look_up() -> None:
    # rows 4100 B apart, of 4090 B: the end of each lies on the page where the next begins
    assert len(mmu().pages([Region(4090, 4090, 2, 4100)])) == 3
    assert len(mmu().pages([Region(0, 16), Region(2048, 16)])) == 1


def test_as_a_component_it_takes_one_look_up() -> None:
    assert_ready_at(Rig(PeMmu, {"tlb_overhead": "3 ns"}).ask(0), 1 + 3 + 1)


class NaiveTlb:
    """A TLB written out: sets of (page, when known), the least recently used one last in line to stay."""

    def __init__(self, entries: int, ways: int, walkers: int, hit: float, walk: float) -> None:
        self.lines: list[list[list[float]]] = [[] for _ in range(entries // ways)]
        self.ways, self.hit, self.walk = ways, hit, walk
        self.busy = [0.0] * walkers

    def translate(self, pages: list[int], now: float) -> float:
        ends = [now]
        for number, page in enumerate(pages, 1):
            at = now + number * self.hit
            line = self.lines[page % len(self.lines)]
            entry = next((entry for entry in line if entry[0] == page), None)
            if entry is None:
                first = self.busy.index(min(self.busy))
                self.busy[first] = max(self.busy[first], at) + self.walk
                entry = [page, self.busy[first]]
                if len(line) == self.ways:
                    line.pop(0)
            else:
                line.remove(entry)
            line.append(entry)
            ends.append(max(at, entry[1]))
        return max(ends) - now


@given(
    st.sampled_from([(1, 1), (4, 1), (4, 2), (4, 4), (8, 2)]),
    st.integers(1, 3),
    st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True), max_size=30),
    st.sampled_from([1.0, 10.0, 200.0]),
)
def test_it_takes_as_long_as_a_naive_tlb(
    shape: tuple[int, int], walkers: int, chunks: list[list[int]], apart: float
) -> None:
    entries, ways = shape
    params = {"tlb_overhead": "2 ns", "walk_time": "50 ns", "walkers": walkers}
    found = mmu(tlb_entries=entries, tlb_ways=0 if ways == entries else ways, **params)
    naive = NaiveTlb(entries, ways, walkers, 2.0, 50.0)
    for number, pages in enumerate(chunks):
        now = number * apart
        took = found.translation_ns([Region(page * PAGE + 5, 9) for page in pages], now)
        assert took == naive.translate(pages, now)
    assert found.hits + found.misses == sum(map(len, chunks))


def test_a_miss_takes_a_walk_and_a_hit_a_look_up() -> None:
    found = mmu(walk_time="100 ns")
    assert found.translation_ns((Region(0, PAGE),), 0.0) == 2.0 + 100.0
    assert found.translation_ns((Region(64, 32),), 500.0) == 2.0
    assert found.translation_ns((Region(PAGE, 32),), 500.0) == 2.0 + 100.0
    assert (found.hits, found.misses) == (1, 2)


def test_a_page_whose_walk_is_under_way_is_waited_for_and_not_walked_again() -> None:
    found = mmu(walk_time="100 ns")
    assert found.translation_ns((Region(0, 8),), 0.0) == 102.0
    assert found.translation_ns((Region(8, 8),), 40.0) == 62.0
    assert found.misses == 1


@pytest.mark.parametrize(("walkers", "took"), [(1, 2 + 400), (2, 4 + 200), (4, 8 + 100), (8, 8 + 100)])
def test_walks_of_a_chunk_overlap_as_far_as_there_are_walkers(walkers: int, took: float) -> None:
    found = mmu(walk_time="100 ns", walkers=walkers)
    assert found.translation_ns((Region(0, 64, 4, 2 * PAGE),), 0.0) == took


@pytest.mark.parametrize(("entries", "pages", "misses"), [(8, 8, 8), (8, 9, 18), (300, 300, 300), (300, 301, 602)])
def test_a_second_pass_hits_what_the_tlb_could_hold(entries: int, pages: int, misses: int) -> None:
    """Least recently used: a loop over one page more than it holds misses every time."""
    found = mmu(tlb_entries=entries, tlb_ways=0)
    for number in range(2 * pages):
        found.translation_ns((Region(number % pages * PAGE, 8),), 1000.0 * number)
    assert found.misses == misses


def test_pages_of_one_set_put_each_other_out_while_others_are_free() -> None:
    found = mmu(tlb_entries=8, tlb_ways=2)
    for number in range(6):
        found.translation_ns((Region(number % 3 * 4 * PAGE, 8),), 1000.0 * number)
    assert found.misses == 6


def test_large_pages_reach_farther() -> None:
    memory = FirstFit(0, 1 << 20, PAGE)
    memory.alloc(1 << 19, "tensor")
    small = mmu(memory=memory, large_page_bytes="4 KiB")
    large = mmu(memory=memory, large_page_bytes="64 KiB")
    for found in (small, large):
        for base in range(0, 1 << 19, PAGE):
            found.translation_ns((Region(base, PAGE),), float(base))
    assert (small.misses, large.misses) == (128, 8)


def test_no_page_is_smaller_than_a_system_page() -> None:
    memory = FirstFit(0, 1 << 20, 1 << 18)
    memory.alloc(1 << 19, "tensor")
    found = mmu(1 << 18, memory, large_page_bytes="64 KiB").pages([Region(0, 1 << 19)])
    assert [page[:2] for page in found] == [(0, 1 << 18), (1 << 18, 1 << 18)]


def test_what_is_forgotten_is_walked_to_again() -> None:
    found = mmu()
    region = (Region(0, 4 * PAGE),)
    found.translation_ns(region, 0.0)
    assert found.forget([(PAGE + 100, 2 * PAGE + 100)]) == 2
    assert found.forget([(PAGE, 3 * PAGE)]) == 0
    found.translation_ns(region, 1000.0)
    assert found.misses == 4 + 2
    assert found.forget([(0, 1 << 40)]) == 4


@pytest.mark.parametrize(("unmap", "misses"), [(False, 3), (True, 4)])
def test_an_update_of_the_page_table_takes_its_ranges_and_unmaps_them(unmap: bool, misses: int) -> None:
    """Two ranges, two look-ups; mapping leaves the TLB alone."""
    rig = Rig(PeMmu, {"tlb_overhead": "3 ns"}, bandwidth=64)
    found = rig.under_test
    assert isinstance(found, PeMmu)
    found.page_bytes = PAGE
    used = [Region(page * PAGE, 8) for page in (0, 3, 9)]
    found.translation_ns(used, 0.0)
    update = MapUpdate((Region(8 * PAGE, 2 * PAGE), Region(PAGE, 2 * PAGE)), unmap)
    rig.ask(10.0, msg=MapUpdateMsg(update, (0,), (), lambda _: None))
    assert_ready_at(rig, 10 + update.nbytes / 64 + 1 + 2 * 3 + 1)
    found.translation_ns(used, 1000.0)
    assert found.misses == misses


def test_memory_that_is_given_to_another_tensor_misses() -> None:
    memory = FirstFit(0, 1 << 20, PAGE)
    found = mmu(memory=memory)
    for _ in range(2):
        start = memory.alloc(PAGE, "tensor")
        found.translation_ns((Region(start, PAGE),), 0.0)
        memory.free(start)
    assert (start, found.misses) == (0, 2)


def test_entries_must_fill_the_ways() -> None:
    with pytest.raises(ConfigError) as caught:
        Rig(PeMmu, {"tlb_entries": 12, "tlb_ways": 8})
    assert str(caught.value) == "under_test: tlb_entries must be a multiple of tlb_ways, not 12 of 8; correct one."


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
@pytest.mark.parametrize("token", [False, True])
def test_a_chunk_leaves_later_by_one_look_up_for_each_page(simulate, region, pages, token) -> None:
    took = []
    for overhead in ("0 ns", "7 ns"):
        sim = simulate(
            "tiny", f"components.pe_mmu.params.tlb_overhead={overhead}", "components.pe_mmu.params.walk_time=0 ns"
        )
        move = sim.move("read", region.shifted(sim.own(0)), token=token)
        sim.run()
        took.append(move.ended_ns)
    assert took[1] - took[0] == 7 * pages


@pytest.mark.parametrize("token", [False, True])
def test_a_first_touch_costs_a_walk_and_the_next_one_none(simulate, token) -> None:
    sim = simulate("tiny")
    moves = [sim.move("read", Region(sim.own(0), 4096), at_ns=at, token=token) for at in (0.0, 1000.0)]
    sim.run()
    cold, warm = (move.tail - move.born for move in moves)
    assert cold - warm == 100.0


def test_each_pe_has_a_tlb_of_its_own(simulate) -> None:
    sim = simulate("tiny")
    for pe in (0, 1, 0):
        sim.move("read", Region(sim.own(0), 64), pe=pe, at_ns=1000.0 * sim[MMU].served)
    sim.run()
    assert (sim[MMU].hits, sim[MMU].misses) == (1, 1)
    assert sim["sip0.cube0.pe1.pe_mmu"].misses == 1


def test_regions_smaller_than_a_page_are_translated(simulate) -> None:
    sim = simulate("tiny", "components.pe_mmu.params.walk_time=0 ns")
    found = sim[MMU]
    assert found.translation_ns((Region(sim.own(0, 4095), 1),)) == 2.0
    assert found.translation_ns((Region(sim.own(0, 4095), 2),)) == 4.0


def test_tensors_of_a_run_have_large_pages(simulate) -> None:
    """A tensor of 200 KiB at the start of a slice: three large pages and the rest in small ones."""
    sim = simulate("tiny")
    sim.engine.device.memory.allocate((200 * 1024,), "int8", "x", [sim.sites[0]])
    sim.move("read", Region(sim.own(0), 200 * 1024))
    sim.run()
    assert sim[MMU].misses == 3 + 2


def test_commands_and_tile_tokens_are_charged_alike(simulate) -> None:
    ends = []
    for token in (False, True):
        sim = simulate("tiny")
        move = sim.move("read", Region(sim.own(0, 100), 700, 9, 5000), token=token)
        again = sim.move("write", Region(sim.own(0, 100), 700, 9, 5000), token=token, at_ns=2000.0)
        sim.run()
        ends.append((move.ended_ns, again.ended_ns))
        assert sim[MMU].served == 4
    assert ends[0] == ends[1]


def test_a_pe_without_an_mmu_translates_for_nothing(simulate) -> None:
    sim = simulate("tiny")
    sim["sip0.cube0.pe0.pe_dma"]._mmu = None
    bare = sim.move("read", Region(sim.own(0), 8192))
    sim.run()
    free = simulate("tiny", "components.pe_mmu.params.tlb_overhead=0 ns", "components.pe_mmu.params.walk_time=0 ns")
    move = free.move("read", Region(free.own(0), 8192))
    free.run()
    assert bare.ended_ns == move.ended_ns
