"""What a composite takes in closed form on a PE of simple units, for tests of the scheduler."""

from __future__ import annotations

import math

from tests.builtin.pe_rig import HOP, Composite

DECODE, TRANSFER, SET_UP, ACCESS, CHANNEL, START = 2.0, 8.0, 3.0, 6.0, 64.0, 5.0
PARAMS: dict[str, dict[str, object]] = {
    "pe_scheduler": {"overhead": "2 ns", "tiles_in_flight": 1},
    "pe_dma": {"time": "8 ns"},
    "pe_fetch_store": {"overhead": "3 ns", "servers": 2},
    "pe_tcm": {"overhead": "0 ns", "latency": "6 ns", "read_bandwidth": "64 GB/s", "write_bandwidth": "64 GB/s"},
    "pe_gemm": {"overhead": "5 ns", "clock": "1 GHz", "rows": 8, "columns": 8},
    "pe_math": {"overhead": "5 ns", "clock": "1 GHz", "lanes": 16},
}


def params(**changes: dict[str, object]) -> dict[str, dict[str, object]]:
    """The parameters above with some units changed."""
    return {unit: {**values, **changes.get(unit, {})} for unit, values in PARAMS.items()}


def gemm(tiles: int, *, t: int = 16, pinned: bool = False, issue: int = 0, **fields: object) -> Composite:
    """A GEMM of `tiles` tiles of t x t x t along K."""
    size = {"m": t, "n": t, "k": t * tiles, "tile_m": t, "tile_n": t, "tile_k": t}
    return Composite(issue, **{**size, "a_pinned": pinned, "b_pinned": pinned, **fields})


def move_ns(nbytes: int) -> float:
    """A fetch or a store: set-up, round trip, access, bytes over the channel."""
    return SET_UP + HOP + ACCESS + nbytes / CHANNEL + HOP


def enter_ns(t: int) -> float:
    """The operands of whole blocks of 8 x 8 enter the array."""
    return math.ceil(t / 8) ** 2 * t


AROUND = (8 + 8 - 2) + 8
"""Cycles in which the array fills and drains, behind the last operand."""


def product_ns(t: int) -> float:
    """A product that nobody follows: started, streamed, filled and drained once."""
    return START + enter_ns(t) + AROUND


def read_ns(t: int = 16, last: bool = True) -> float:
    """From the scheduler to the end of a tile's GEMM: two transfers, fetch, product, and the hops between.

    A tile that is not the last of its sum is done when its operands are in.
    """
    product = product_ns(t) if last else START + enter_ns(t)
    return HOP + 2 * TRANSFER + HOP + move_ns(2 * t * t * 2) + HOP + product
