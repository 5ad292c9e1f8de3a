"""Blocks cover a range once, and what is asked for ahead comes in order, no further ahead than was said."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.benches._stream import (
    asked_ahead,
    composite_tile,
    evenly,
    in_blocks,
    memory_block,
    vector_block,
)


def machine(**units):
    return SimpleNamespace(scratchpad_bytes=1 << 20, unit=lambda kind: units.get(kind, {}))


@given(st.integers(0, 50), st.integers(-5, 200), st.integers(1, 40))
def test_blocks_cover_a_range_once(first, count, most) -> None:
    for cut in (evenly, in_blocks):
        blocks = cut(first, first + count, most)
        assert [at for start, size in blocks for at in range(start, start + size)] == [*range(first, first + count)]
        assert all(0 < size <= most for _, size in blocks)


@given(st.integers(2, 200), st.integers(4, 40))
def test_blocks_are_even_and_short_at_the_ends(count, most) -> None:
    sizes = [size for _, size in evenly(0, count, most)]
    assert len(sizes) == -(-count // most)
    assert max(sizes) - min(sizes) <= 1
    ends = [size for _, size in in_blocks(0, count, most)]
    assert max(ends[0], ends[-1]) <= most // 4


@given(st.lists(st.integers(), max_size=9), st.integers(0, 4))
def test_things_are_asked_for_ahead(blocks, depth) -> None:
    asked = []
    for number, (block, answer) in enumerate(asked_ahead(blocks, lambda block: asked.append(block) or -block, depth)):
        assert (block, answer) == (blocks[number], -blocks[number])
        assert asked == blocks[: number + depth + 1]
    assert asked == blocks


def test_blocks_fit_the_machine() -> None:
    """A chunk of 4 KiB for each server; 24 start-ups of 2 + 3 ns on 8 lanes of 2 GHz; the scratchpad; a share."""
    rt = machine(pe_dma={"servers": 3}, pe_math={"lanes": 8, "clock": 2.0, "overhead": 2.0},
                 pe_cpu={"dispatch_overhead": 3.0}, pe_fetch_store={"register_file": 4096})  # fmt: skip
    assert memory_block(rt, 2, 1 << 20, 2, 3) == 3 * 4096 // 2
    assert memory_block(rt, 2, 100, 2, 3) == 50
    assert vector_block(rt, 2, 10, 1 << 20) == 24 * 5 * 16 // 10
    rt.scratchpad_bytes = 36000
    assert vector_block(rt, 2, 10, 1 << 20) == 1000 // 10
    assert vector_block(rt, 2, 10, 40) == 20
    assert vector_block(rt, 2, 1500, 40) == 1
    assert composite_tile(rt, 16) == (8, 16)
    assert composite_tile(rt, 1000) == (1, 128)


@pytest.mark.parametrize("bench", ["vector-add", "softmax", "layernorm"])
def test_a_block_of_the_machine_is_no_other_result(run, bench) -> None:
    """The block that `auto` takes changes times only: on a PE with few lanes and little room, too."""
    small = ("pe.tcm.capacity=128 KiB", "components.pe_math.params.lanes=16", "cube.pes=2")
    sizes = {"n": 5000} if bench == "vector-add" else {"cols": 300}
    assert run(bench, options={"set": small, "verify_data": True}, **sizes).verified
