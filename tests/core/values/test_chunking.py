"""Chunks of transfers: every byte once and in order, one owner each, as large as allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.values.chunking import Chunk, chunks
from kernbench_core.values.region import Region

#: Addresses below this belong to "m0", those below twice this to "m1", and so on.
SLICE = 1 << 20


def owner(address: int) -> str:
    return f"m{address // SLICE}"


def bytes_of(region: Region) -> list[int]:
    """List the addresses of a region's bytes, row by row."""
    return [
        region.base + row * region.pitch + column for row in range(region.rows) for column in range(region.row_bytes)
    ]


@st.composite
def regions(draw: st.DrawFn) -> Region:
    """Draw a region that lies in one slice: contiguous, gapped, overlapping or backwards, seldom empty."""
    slice_number = draw(st.integers(0, 3))
    rows = draw(st.integers(1, 12))
    row_bytes = draw(st.integers(0, 600))
    pitch = draw(st.sampled_from([row_bytes, row_bytes + 7, 1000, 0, -700]))
    return Region(slice_number * SLICE + 20_000 + draw(st.integers(0, 5000)), row_bytes, rows, pitch)


def cut(given_regions: list[Region], chunk_bytes: int) -> list[Chunk]:
    return list(chunks(given_regions, chunk_bytes, owner))


@given(st.lists(regions(), max_size=5), st.sampled_from([1, 2, 16, 100, 256, 4096]))
def test_chunks_hold_every_byte_once_and_each_memorys_in_order(wanted: list[Region], chunk_bytes: int) -> None:
    found = [address for chunk in cut(wanted, chunk_bytes) for region in chunk.regions for address in bytes_of(region)]
    # a stable sort by memory keeps the order within each
    assert sorted(found, key=owner) == sorted((a for region in wanted for a in bytes_of(region)), key=owner)


@given(st.lists(regions(), max_size=5), st.sampled_from([1, 16, 100, 256, 4096]))
def test_a_chunk_has_one_owner_at_least_one_byte_and_at_most_chunk_bytes(
    wanted: list[Region], chunk_bytes: int
) -> None:
    for chunk in cut(wanted, chunk_bytes):
        held = [address for region in chunk.regions for address in bytes_of(region)]
        assert {owner(address) for address in held} == {chunk.node}
        assert chunk.nbytes == len(held)
        assert 1 <= chunk.nbytes <= chunk_bytes


@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.sampled_from([300, 512, 4096]))
def test_short_rows_are_gathered_as_a_greedy_loop_gathers_them(lengths: list[int], chunk_bytes: int) -> None:
    wanted = [Region(1000 * number, length) for number, length in enumerate(lengths)]
    expected, room = [0], chunk_bytes
    for length in lengths:
        if length > room:
            expected.append(0)
            room = chunk_bytes
        expected[-1] += length
        room -= length
        if not room:
            expected.append(0)
            room = chunk_bytes
    assert [chunk.nbytes for chunk in cut(wanted, chunk_bytes)] == [size for size in expected if size]


def test_rows_of_one_descriptor_share_a_chunk() -> None:
    strided = Region(64, row_bytes=128, rows=64, pitch=2048)
    assert cut([strided], 4096) == [
        Chunk("m0", (Region(64, 128, 32, 2048),), 4096),
        Chunk("m0", (Region(64 + 32 * 2048, 128, 32, 2048),), 4096),
    ]


def test_a_region_that_does_not_fit_the_rest_of_a_chunk_gives_it_its_first_rows() -> None:
    first, second = Region(0, 1000), Region(8192, row_bytes=300, rows=4, pitch=512)
    assert cut([first, second], 2048) == [
        Chunk("m0", (first, Region(8192, 300, 3, 512)), 1900),
        Chunk("m0", (Region(8192 + 3 * 512, 300, 1, 512),), 300),
    ]


def test_a_row_longer_than_a_chunk_is_cut() -> None:
    rows = Region(0, row_bytes=5000, rows=2, pitch=8192)
    assert [(chunk.regions[0].base, chunk.nbytes) for chunk in cut([rows], 4096)] == [
        (0, 4096),
        (4096, 904),
        (8192, 4096),
        (12288, 904),
    ]


def test_a_contiguous_transfer_has_as_few_chunks_as_its_size_allows() -> None:
    assert [chunk.nbytes for chunk in cut([Region(0, 10_000)], 4096)] == [4096, 4096, 1808]
    assert len(cut([Region(0, 100, rows=82, pitch=100)], 4096)) == 3


def test_rows_of_one_memory_are_gathered_though_rows_of_another_lie_between() -> None:
    apart = [Region(0, 8), Region(SLICE, 8), Region(64, 8), Region(SLICE + 64, 8), Region(128, 8)]
    assert cut(apart, 4096) == [
        Chunk("m0", (Region(0, 8, 3, 64),), 24),
        Chunk("m1", (Region(SLICE, 8, 2, 64),), 16),
    ]
    assert [(chunk.node, chunk.nbytes) for chunk in cut(apart, 16)] == [("m0", 16), ("m1", 16), ("m0", 8)]


def test_regions_without_bytes_make_no_chunks() -> None:
    assert cut([], 4096) == []
    assert cut([Region(0, 0), Region(SLICE, 0, 3, 8)], 4096) == []
    assert cut([Region(0, 8), Region(SLICE, 0), Region(8, 8)], 4096) == [Chunk("m0", (Region(0, 8, 2, 8),), 16)]


def test_a_tile_over_column_shards_is_regular_again_in_each_memory() -> None:
    """Rows that come shard after shard are one strided, or contiguous, region of each; overlaps stay apart."""
    for pitch in (64, 100):
        rows = [Region(shard * SLICE + row * pitch, 64) for row in range(32) for shard in range(4)]
        expected = [Chunk(f"m{shard}", (Region(shard * SLICE, 64, 32, pitch),), 2048) for shard in range(4)]
        assert cut(rows, 4096) == expected
        assert expected[0].regions[0].contiguous is (pitch == 64)
    uneven = [Region(0, 64), Region(200, 64), Region(300, 64), Region(332, 64)]
    assert cut(uneven, 4096) == [Chunk("m0", (Region(0, 64, 2, 200), *uneven[2:]), 256)]
