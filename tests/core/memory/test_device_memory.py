"""Tensors are dealt, freed and refused as documented."""

from __future__ import annotations

import sys
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import KernelError, PageFaultError
from kernbench_core.values.region import Region
from tests.core.kernel_rig import Rig, design
from tests.core.memory.addresses import bytes_of


@given(st.lists(st.integers(1, 9), max_size=3), st.integers(1, 4))
def test_rows_are_dealt_in_equal_contiguous_blocks(dims: list[int], pes: int) -> None:
    """Every PE but the last ones holds the same number of whole rows, in order, in its own slice."""
    rig = Rig(pes=4)
    shape = tuple(dims)
    sites = rig.design.pes[:pes]
    tensor = rig.memory.allocate(shape, "f16", "a", sites)
    rows = shape[0] if shape else 1
    row_bytes = 2 * prod(shape) // rows
    share = -(-rows // pes)
    wanted = [min(share, rows - first) * row_bytes for first in range(0, rows, share)]
    assert [segment.nbytes for segment in tensor.segments] == wanted
    assert [segment.pe for segment in tensor.segments] == list(range(len(wanted)))
    starts = [tensor.va + share * row_bytes * i for i in range(len(wanted))]
    assert [segment.va for segment in tensor.segments] == starts
    for segment in tensor.segments:
        assert rig.design.address_map.decode(segment.pa).unit == f"hbm{segment.pe}"
    whole = rig.memory.translate((Region(tensor.va, tensor.nbytes),))
    assert bytes_of(whole) == bytes_of(tensor.regions)


def test_the_name_of_a_dtype_is_plain_text() -> None:
    """Where numpy's was given, too, as an array of names has it: what is kept of it by its class finds it so."""
    rig = Rig()
    assert type(rig.memory.allocate((2,), np.str_("f16"), "a", rig.design.pes).dtype) is str


def test_a_full_slice_says_what_is_allocated_there() -> None:
    """The error names the PE, what is needed, what is free, and every tensor that lives there; nothing is kept."""
    memory = Rig(pes=1, hbm=16384).memory
    site = design(1).pes[0]
    held = memory.allocate((2048,), "f32", "weights", (site,))
    born = sys._getframe().f_lineno - 1
    before = memory.unit_of(site, "hbm").free_bytes
    with pytest.raises(KernelError) as caught:
        memory.allocate((4096,), "f32", "activations", (site,))
    assert str(caught.value) == (
        "the HBM slice of sip0.cube0.pe0 must have 16 KiB free for tensor 'activations', and has 8 KiB of 16 KiB "
        "(largest hole 8 KiB); free a tensor or place it on more PEs. Allocated there:\n"
        f"  {held.segments[0].pa:#x}      8 KiB  weights, made at {__file__}:{born}"
    )
    assert memory.unit_of(site, "hbm").free_bytes == before
    memory.free(held)
    assert memory.unit_of(site, "hbm").free_bytes == 16384
    line = sys._getframe().f_lineno - 2
    with pytest.raises(KernelError) as caught:
        memory.free(held)
    assert str(caught.value) == (
        f"tensor 'weights' must be live, and was freed at {__file__}:{line}; free it after its last use, or make a new "
        "tensor."
    )
    with pytest.raises(PageFaultError):
        memory.translate((Region(held.va, 4),))


def test_a_slice_full_of_many_tensors_lists_the_largest() -> None:
    """The twelve largest blocks, and one line for all the others."""
    memory = Rig(pes=1, hbm=1 << 20).memory
    site = design(1).pes[0]
    for number in range(14):
        memory.allocate((1024,), "f32", f"small{number}", (site,))
    memory.allocate((8192,), "f32", "large", (site,))
    with pytest.raises(KernelError) as caught:
        memory.allocate((1 << 20,), "f32", "huge", (site,))
    first, *rows = str(caught.value).split("\n")
    assert first.endswith("Allocated there:")
    assert "     32 KiB  large, made at " in rows[0]
    assert [row.split()[3] for row in rows[1:12]] == [f"small{number}," for number in range(11)]
    assert rows[12:] == ["  and 3 more, 12 KiB together"]


def test_tensors_do_not_share_pages_or_addresses() -> None:
    """Allocations are page aligned, virtually and physically."""
    rig = Rig(pes=2)
    tensors = [rig.empty((5, 3), "f16") for _ in range(3)]
    assert len({segment.pa // 4096 for tensor in tensors for segment in tensor.segments}) == 6
    assert all(tensor.va % 4096 == 0 for tensor in tensors)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3000)), max_size=20))
def test_virtual_addresses_are_never_used_again(steps: list[tuple[bool, int]]) -> None:
    """Whatever is freed, each tensor's range is its own; physical memory is used again, from the lowest hole."""
    memory = Rig(pes=1, hbm=1 << 20).memory
    site = design(1).pes[0]
    lowest = design(1).address_map.encode(0, 0, "hbm0", 0)
    ranges: list[tuple[int, int]] = []
    live = []
    for free_one, elements in steps:
        if free_one and live:
            memory.free(live.pop(0))
        tensor = memory.allocate((elements,), "f32", "a", (site,))
        assert all(end <= tensor.va or tensor.end <= start for start, end in ranges)
        ranges.append((tensor.va, tensor.end))
        live.append(tensor)
    for tensor in live:
        memory.require_live(tensor)
        memory.free(tensor)
    assert memory.allocate((1,), "f32", "b", (site,)).segments[0].pa == lowest


def test_pes_are_found_by_their_pe_cpu() -> None:
    """All of them are indexed once."""
    rig = Rig(pes=3)
    assert [rig.memory.site_of(site.pe_cpu) for site in rig.design.pes] == list(rig.design.pes)
    assert rig.memory.site_of("sip9.cube0.pe0.pe_cpu") is None
