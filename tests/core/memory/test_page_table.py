"""The page table translates byte for byte, and says what is near where nothing is mapped."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import PageFaultError
from kernbench_core.memory import page_table
from kernbench_core.memory.page_table import Mapping, PageTable
from kernbench_core.memory.placement import dealt_rows
from kernbench_core.values.region import Region
from tests.core.memory.addresses import bytes_of


def linear(va: int, pa: int, nbytes: int, tensor: str) -> Mapping:
    """Map one contiguous range to another."""
    return Mapping(va, dealt_rows((nbytes,), nbytes, 1), (pa,), tensor)


@st.composite
def mapped(draw: st.DrawFn) -> tuple[PageTable, dict[int, int]]:
    """Map a few ranges of any size, some adjacent, and give a byte-by-byte oracle beside the table."""
    table, oracle = PageTable(), {}
    va = 1000
    for index in range(draw(st.integers(1, 5))):
        va += draw(st.sampled_from([0, 0, 0, 7]))
        nbytes = draw(st.integers(1, 40))
        pa = 10_000 * (index + 1) + draw(st.integers(0, 9))
        table.map(linear(va, pa, nbytes, f"t{index}"))
        oracle.update({va + i: pa + i for i in range(nbytes)})
        va += nbytes
    return table, oracle


@given(mapped(), st.integers(990, 1100), st.integers(1, 30), st.integers(1, 5), st.integers(-40, 40))
def test_translation_equals_a_byte_map(
    drawn: tuple[PageTable, dict[int, int]], base: int, row_bytes: int, rows: int, pitch: int
) -> None:
    """The translated regions hold the same bytes in the same order; what is not all of one tensor is a fault."""
    table, oracle = drawn
    region = Region(base, row_bytes, rows, pitch)
    wanted = bytes_of((region,))
    if len({oracle.get(va, va) // 10_000 for va in wanted}) == 1 and wanted[0] in oracle:
        assert bytes_of(tuple(table.translate(region))) == [oracle[va] for va in wanted]
    else:
        with pytest.raises(PageFaultError):
            table.translate(region)


def test_page_faults_name_the_nearest_tensor() -> None:
    """The sentence says how far past which tensor the access is, or that only its first bytes are mapped."""
    table = PageTable()
    table.map(linear(4096, 0, 100, "a"))
    with pytest.raises(PageFaultError) as caught:
        table.translate(Region(4200, 4))
    assert str(caught.value) == (
        "virtual address 0x1068 must be mapped, and is 4 B past the end of tensor 'a'; was the tensor that lived there "
        "freed?"
    )
    with pytest.raises(PageFaultError) as caught:
        table.translate(Region(4192, 8))
    assert str(caught.value) == (
        "a region from virtual address 0x1060 on must lie in tensor 'a' as a whole, and reaches out of it; correct the "
        "access."
    )
    with pytest.raises(PageFaultError) as caught:
        table.translate(Region(0, 4))
    assert str(caught.value) == (
        "virtual address 0x0 must be mapped, and no tensor lies at or below it; was the tensor freed?"
    )
    table.unmap(4096)
    with pytest.raises(PageFaultError):
        table.translate(Region(4096, 4))


def test_few_translations_are_kept_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tiles are read by however many PEs, translations do not pile up, with copies or without."""
    monkeypatch.setattr(page_table, "MOST_KNOWN", 8)
    layout = dealt_rows((64, 16), 64 * 16, 16)
    for nearest in (None, lambda pe, cell: 1 << 20 | pe << 12 | cell << 7):
        mapping = Mapping(0, layout, [cell << 7 for cell in range(layout.cells)], "t", nearest)
        made = [mapping.translate(Region(at, 8, 3, 70), pe) for at in range(100) for pe in range(5)]
        assert len(made[0]) > 1
        distinct = list({id(pieces): pieces for pieces in made}.values())
        del made
        held = [sys.getrefcount(pieces) for pieces in distinct]
        alone = min(held)
        assert 0 < sum(count > alone for count in held) <= 8


def test_rows_are_taken_together_as_far_as_they_lie_in_one_cell() -> None:
    """Rows that end with the cell still do, one that crosses into the next is cut, and rows behind it begin anew."""
    mapping = Mapping(0, dealt_rows((4, 64), 256, 4), [0x1000, 0x2000, 0x3000, 0x4000], "t")
    assert mapping.translate(Region(0, 16, 5, 20), None) == (
        Region(0x1000, 16, 3, 20), Region(0x1000 + 60, 4), Region(0x2000, 12), Region(0x2000 + 16, 16),
    )  # fmt: skip
    assert mapping.translate(Region(0, 24, 3, 40), None) == (
        Region(0x1000, 24, 2, 40), Region(0x2000 + 16, 24),
    )  # fmt: skip
    assert mapping.translate(Region(0, 16, 2, 49), None) == (
        Region(0x1000, 16), Region(0x1000 + 49, 15), Region(0x2000, 1),
    )  # fmt: skip
    assert mapping.translate(Region(48, 16, 2, 16), None) == (Region(0x1000 + 48, 16), Region(0x2000, 16))
    assert mapping.translate(Region(0, 16, 4, 64), None) == tuple(Region(0x1000 * cell, 16) for cell in range(1, 5))
