"""First fit never overlaps and always coalesces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.memory.allocator import FirstFit

ALIGN, SIZE = 16, 1024


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 7)), max_size=60))
def test_first_fit_equals_a_byte_map(steps: list[tuple[int, int]]) -> None:
    """Each block is the lowest aligned range that is free in a map of single bytes; freeing joins holes."""
    fit = FirstFit(64, SIZE, ALIGN)
    taken = bytearray(SIZE)
    live: list[tuple[int, int]] = []
    for nbytes, choice in steps:
        if choice < 3 and live:
            address, need = live.pop(choice % len(live))
            fit.free(address)
            taken[address - 64 : address - 64 + need] = bytes(need)
            continue
        need = max(ALIGN, -(-nbytes // ALIGN) * ALIGN)
        free = [at for at in range(0, SIZE - need + 1, ALIGN) if not any(taken[at : at + need])]
        got = fit.alloc(nbytes, "x")
        assert got == (64 + free[0] if free else None)
        if got is not None:
            taken[got - 64 : got - 64 + need] = b"\1" * need
            live.append((got, need))
    assert fit.used == sum(taken) == SIZE - fit.free_bytes
    holes = [piece for piece in bytes(taken).split(b"\1") if piece]
    assert fit.largest_hole == max(map(len, holes), default=0)
    assert [end - start for start, end in fit.holes] == [len(hole) for hole in holes]
    assert [block.address for block in fit.table()] == sorted(address for address, _ in live)


def test_first_fit_refuses_a_foreign_address() -> None:
    """Freeing what is not allocated is a KeyError; a base off the alignment a ValueError."""
    with pytest.raises(KeyError):
        FirstFit(0, 64).free(3)
    with pytest.raises(ValueError, match=r"^base must be a multiple of the alignment 16, not 3; align it\.$"):
        FirstFit(3, 64, 16)
