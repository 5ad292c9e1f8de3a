"""Placements equal a naive element-by-element reference; translation of any region equals a byte map."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import KernelError, ShapeError, UsageError
from kernbench_core.graph import PeSite
from kernbench_core.memory import page_table
from kernbench_core.memory.device_memory import DeviceMemory, TensorAllocation
from kernbench_core.memory.placement import Interleave, Layout, Replicate, Shard, resolve
from kernbench_core.topology.address import AddressMap
from kernbench_core.topology.design import Design
from kernbench_core.values.region import Region
from tests.core.memory.addresses import bytes_of

DIMS = ("sip", "cube", "pe")


def machine(mesh: tuple[int, int, int], hbm: int = 1 << 20) -> Design:
    """Describe a machine of so many SIPs, cubes and PEs."""
    sips, cubes, pes = mesh
    sites = []
    for index in range(sips * cubes * pes):
        sip, cube, pe = index // (cubes * pes), index // pes % cubes, index % pes
        prefix = f"sip{sip}.cube{cube}.pe{pe}"
        sites.append(PeSite(index, sip, cube, pe, prefix, f"cpu{index}", f"hbm{index}", "m", "io"))
    address_map = AddressMap(sips, cubes, pes, hbm, 4096, 4096)
    return Design(sips, cubes, pes, 4096, 64, tuple(sites), address_map, mesh_width=cubes)


def coordinates(mesh: tuple[int, ...]) -> list[tuple[int, ...]]:
    """List mesh coordinates, the last fastest."""
    return list(np.ndindex(mesh))


def reference(shape: tuple[int, ...], item: int, chosen: Any, mesh: tuple[int, ...]) -> list[list[int]]:
    """List, for each PE, the bytes of the tensor that it holds, in order: DTensor's rules by cutting index arrays."""
    held = []
    for where in coordinates(mesh):
        part = np.arange(math.prod(shape)).reshape(shape)
        turn, over, block = 0, 1, 0
        for placement, extent, index in zip(chosen, mesh, where, strict=True):
            if isinstance(placement, Shard):
                part = np.split(part, extent, axis=placement.dim)[index]
            elif isinstance(placement, Interleave):
                turn, over, block = turn * extent + index, over * extent, placement.nbytes
        flat = [element * item + byte for element in part.ravel().tolist() for byte in range(item)]
        if block:
            flat = [at for number, at in enumerate(flat) if number // block % over == turn]
        held.append(flat)
    return held


@st.composite
def placed(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Any, ...], tuple[int, int, int]]:
    """Draw a mesh, a shape that divides, and a placement for each mesh dimension."""
    mesh = draw(st.tuples(*[st.integers(1, 3)] * 3))
    rank = draw(st.integers(1, 3))
    extents = [draw(st.integers(1, 4)) for _ in range(rank)]
    kind = draw(st.sampled_from(["shards", "shards", "interleaved", "both", "rows"]))
    chosen: list[Any] = []
    block = 2 * draw(st.integers(1, 5))
    for extent in mesh:
        # interleaving bytes deals shards that lie together: they cut the first dimension only
        cut = st.builds(Shard, st.just(0) if kind == "both" else st.integers(0, rank - 1))
        other = st.just(Interleave(block)) if kind == "interleaved" else cut
        one = draw(st.just(Replicate()) | other)
        if isinstance(one, Shard):
            extents[one.dim] *= extent
        chosen.append(one)
    if kind == "both":
        chosen[2] = Interleave(block)
        extents[-1] *= block * mesh[2]
    if kind == "rows":
        # interleaving whole rows deals any shards
        chosen[2] = Replicate()
        parts = [math.prod(m for m, one in zip(mesh, chosen, strict=True) if one == Shard(d)) for d in range(rank)]
        extents = [draw(st.integers(1, 4)) * part for part in parts]
        rows = draw(st.integers(1, 2))
        extents[0] *= rows * mesh[2]
        row = math.prod(extent // part for extent, part in zip(extents[1:], parts[1:], strict=True)) * 2
        chosen[2] = Interleave(rows * row)
    return tuple(extents), tuple(chosen), mesh


@given(placed())
def test_each_pe_holds_what_the_reference_says(drawn: Any) -> None:
    """The cell of every PE, its size, its regions, its slices and its shape equal the reference."""
    shape, chosen, mesh = drawn
    layout = resolve("x", shape, 2, chosen, mesh, DIMS)
    elements = np.arange(math.prod(shape)).reshape(shape)
    for cell, wanted in zip(layout.cell_of, reference(shape, 2, chosen, mesh), strict=True):
        assert bytes_of(layout.regions(cell)) == wanted
        assert layout.size(cell) == len(wanted)
        index = layout.index(cell, shape)
        own = layout.shape_of(cell, shape)
        assert math.prod(own) * 2 == len(wanted)
        if index is not None:
            assert elements[index].shape == own
            assert elements[index].ravel().tolist() == [at // 2 for at in wanted[::2]]
        for local, at in enumerate(wanted):
            assert layout.locate(at) == (cell, local)
    assert index is not None or any(isinstance(one, Interleave) for one in chosen)


def allocated(drawn: Any) -> tuple[DeviceMemory, TensorAllocation, list[dict[int, int]]]:
    """Place a tensor, and give for each PE where the reference puts each byte that it holds."""
    shape, chosen, mesh = drawn
    design = machine(mesh)
    memory = DeviceMemory(design)
    memory.allocate((5,), "f16", "other", design.pes)
    tensor = memory.allocate(shape, "f16", "x", design.pes, chosen)
    starts = {segment.pe: segment.pa for segment in tensor.segments}
    held = reference(shape, 2, chosen, mesh)
    where = [{tensor.va + at: starts[pe] + i for i, at in enumerate(own)} if own else {} for pe, own in enumerate(held)]
    return memory, tensor, where


def strided(data: Any, tensor: TensorAllocation) -> Region:
    """Draw a strided region of a tensor, its pitch often a multiple of a row."""
    rows = data.draw(st.integers(1, 6))
    width = data.draw(st.integers(1, tensor.nbytes))
    room = tensor.nbytes - width
    pitch = data.draw(st.integers(-(room // max(1, rows - 1)), room // max(1, rows - 1))) if rows > 1 else 0
    if data.draw(st.booleans()) and rows > 1:
        row = tensor.nbytes // tensor.shape[0]
        pitch = abs(pitch) // row * row
    low = max(0, -pitch * (rows - 1))
    start = data.draw(st.integers(low, tensor.nbytes - width - max(0, pitch * (rows - 1))))
    return Region(tensor.va + start, width, rows, pitch)


@given(placed(), st.data(), st.sampled_from([1, 2, 3, page_table.MOST_KNOWN]))
def test_translation_equals_a_byte_map_of_the_nearest_copy(drawn: Any, data: Any, most: int) -> None:
    """Any strided region is translated byte for byte, in order, and each byte to the copy that lies nearest.

    So it is for whoever asks, whatever was asked before by whom, and however much of that is remembered.
    """
    memory, tensor, where = allocated(drawn)
    places = coordinates(drawn[2])
    regions = [strided(data, tensor) for _ in range(data.draw(st.integers(1, 3)))]
    one = st.tuples(st.sampled_from(regions), st.integers(0, len(places) - 1))
    with mock.patch.object(page_table, "MOST_KNOWN", most):
        for region, pe in data.draw(st.lists(one, min_size=1, max_size=8)):
            own = places[pe]
            wanted = []
            for va in bytes_of((region,)):
                apart = {}
                for other, held in enumerate(where):
                    if va in held:
                        sip, cube, place = places[other]
                        apart[other] = (sip != own[0], abs(cube - own[1]), place != own[2])
                wanted.append(where[min(apart, key=apart.__getitem__)][va])
            found = memory.translate((region,), pe)
            assert bytes_of(found) == wanted
            assert (hash(found), found) == (hash(tuple(found)), tuple(found))


@given(placed())
def test_local_shards_are_contiguous_tensors_of_their_own(drawn: Any) -> None:
    """A PE's own cell, addressed from its start on, is what the reference says it holds; freeing unmaps everything."""
    memory, tensor, where = allocated(drawn)
    for pe, held in enumerate(where):
        local = memory.local(tensor, pe)
        if not held:
            assert local is None
            continue
        assert local is not None
        assert memory.local(tensor, pe) is local
        assert local.nbytes == len(held)
        assert bytes_of(memory.translate((Region(local.va, local.nbytes),), pe)) == list(held.values())
    memory.free(tensor)
    again = memory.allocate(tensor.shape, "f16", "y", machine(drawn[2]).pes, drawn[1])
    assert [segment.pa for segment in again.segments] == [segment.pa for segment in tensor.segments]


def test_a_tile_inside_one_shard_is_one_descriptor() -> None:
    """Translation is arithmetic: thousands of row pieces are one strided region, whichever dimension is cut."""
    design = machine((1, 1, 8))
    memory = DeviceMemory(machine((1, 1, 8), 1 << 26))
    tensor = memory.allocate((4096, 4096), "f16", "x", design.pes, Shard(1))
    row, own = 4096 * 2, 512 * 2
    tile = Region(tensor.va + 3 * own + 64, 256, 4000, row)
    pa = tensor.segments[3].pa
    assert memory.translate((tile,), 0) == (Region(pa + 64, 256, 4000, own),)
    assert memory.translate((Region(tensor.va + 3 * own, own, 4000, row),), 0) == (Region(pa, own, 4000, own),)
    assert memory.translate((Region(tensor.va, row),), 0) == tuple(
        Region(segment.pa, own) for segment in tensor.segments
    )


def fits(*args: Any, **options: Any) -> Layout:
    """Resolve the placement of a tensor `x` of 4 B elements on a mesh of 2 SIPs, 2 cubes and 4 PEs."""
    shape, placement = args
    return resolve("x", shape, 4, placement, (2, 2, 4), DIMS, **options)


def test_the_forms_of_a_placement_agree() -> None:
    """One for the flattened mesh is that one thrice; dimensions that a mapping leaves out replicate; -1 is the last."""
    assert fits((16, 16), Shard(0)).cell_of == fits((16, 16), (Shard(0),) * 3).cell_of == tuple(range(16))
    assert fits((16, 16), {"pe": Shard(-1)}).placements == (Replicate(), Replicate(), Shard(1))
    assert fits((16, 16), {"pe": Shard(-1)}).cell_of == (0, 1, 2, 3) * 4
    assert fits((16, 16), Replicate()).replicas == 16
    assert fits((16, 16), [Replicate(), Shard(0), Shard(1)]).local_shape == (8, 4)
    assert fits((16, 16), {"sip": Shard(1), "cube": Shard(0), "pe": Shard(0)}).local_shape == (2, 8)


@pytest.mark.parametrize(
    ("shape", "placement", "error", "sentence"),
    [
        (
            (16, 10),
            (Replicate(), Replicate(), Shard(1)),
            ShapeError,
            "tensor 'x' of shape (16, 10) must have a dimension 1 that divides into the 4 parts of Shard(1) over pe, "
            "not one of 10; pad it to 12, or shard another dimension.",
        ),
        (
            (20, 4),
            (Shard(0), Replicate(), Shard(-2)),
            ShapeError,
            "tensor 'x' of shape (20, 4) must have a dimension 0 that divides into the 8 parts of Shard(0) over sip "
            "and pe, not one of 20; pad it to 24, or shard another dimension.",
        ),
        (
            (20, 4),
            Shard(0),
            ShapeError,
            "tensor 'x' of shape (20, 4) must have a dimension 0 that divides into the 16 parts of Shard(0) over the "
            "whole mesh, not one of 20; pad it to 32, or shard another dimension.",
        ),
        (
            (4, 4),
            Shard(2),
            ShapeError,
            "tensor 'x' of shape (4, 4) must be sharded along one of its dimensions, not Shard(dim=2); give a dim from "
            "-2 to 1.",
        ),
        (
            (),
            Shard(0),
            ShapeError,
            "tensor 'x' of shape () must be sharded along one of its dimensions, not Shard(dim=0); replicate a tensor "
            "without dimensions.",
        ),
        (
            (4, 4),
            (Shard(0), Shard(1)),
            UsageError,
            "tensor 'x': placement must be Shard(dim), Replicate() or Interleave(nbytes), a tuple of one for each of "
            "sip, cube, pe, or a mapping from these names, not (Shard(dim=0), Shard(dim=1)); correct it.",
        ),
        (
            (4, 4),
            {"core": Shard(0)},
            UsageError,
            "tensor 'x': placement must be Shard(dim), Replicate() or Interleave(nbytes), a tuple of one for each of "
            "sip, cube, pe, or a mapping from these names, not {'core': Shard(dim=0)}; correct it.",
        ),
        (
            (16, 16),
            (Interleave(64), Shard(0), Replicate()),
            UsageError,
            "tensor 'x': Shard(dim=0) over cube must come before Interleave, not inside it; swap them.",
        ),
        (
            (16, 16),
            (Interleave(64), Interleave(32), Replicate()),
            UsageError,
            "tensor 'x': Interleave over several mesh dimensions must have one block size, not 64 and 32 B; choose "
            "one.",
        ),
        (
            (16, 16),
            Interleave(6),
            UsageError,
            "tensor 'x': Interleave must deal blocks of a positive multiple of 4 B, its element, not 6; correct it.",
        ),
        (
            (16, 16),
            (Shard(1), Replicate(), Interleave(48)),
            UsageError,
            "tensor 'x': Interleave must deal whole rows of its shards, of 32 B, as a shard is not contiguous, not "
            "blocks of 48 B; give a multiple of 32, shard the first dimension only, or interleave alone.",
        ),
        (
            (16, 16),
            (Shard(0), Replicate(), Interleave(256)),
            ShapeError,
            "tensor 'x' must have shards that divide into rounds of 4 blocks of 256 B, not shards of 512 B; choose "
            "another block size, or interleave it alone.",
        ),
    ],
)
def test_placements_that_do_not_fit_are_refused(
    shape: tuple[int, ...], placement: Any, error: type[Exception], sentence: str
) -> None:
    """The sentence names the tensor, the dimension, its extent, the count, and what to do."""
    with pytest.raises(error) as caught:
        fits(shape, placement)
    assert str(caught.value) == sentence


def test_copies_that_do_not_fit_leave_nothing_behind() -> None:
    """A slice that is full refuses the whole tensor; what other PEs had reserved is free again."""
    design = machine((1, 1, 2), 4096)
    memory = DeviceMemory(design)
    memory.allocate((768,), "f32", "a", design.pes[1:])
    with pytest.raises(KernelError) as caught:
        memory.allocate((512,), "f32", "b", design.pes, Replicate())
    assert str(caught.value).startswith(
        "the HBM slice of sip0.cube0.pe1 must have 2 KiB free for tensor 'b', and has 1 KiB of 4 KiB (largest hole "
        "1 KiB); free a tensor or place it on more PEs. Allocated there:\n"
    )
    assert memory.unit_of(design.pes[0], "hbm").free_bytes == 4096
