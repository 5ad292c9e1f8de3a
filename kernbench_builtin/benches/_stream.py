"""How benches stream through their PE: blocks with short ends, each asked for while the ones before it are computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final, TypeVar

from kernbench_builtin.benches._room import halvings, that_fits
from kernbench_core.host import Runtime

_Block = TypeVar("_Block")
_Tile = TypeVar("_Tile")

_CHUNK_BYTES: Final = 4 << 10
#: Blocks of the scratchpad begin at multiples of so many bytes.
LINE: Final = 64
#: Of the time of an op of one cycle an element at most this part is its start-up.
_START_UP: Final = 1 / 24


def in_blocks(first: int, last: int, most: int) -> list[tuple[int, int]]:
    """Cut a range into blocks, each its start and size: even ones of at most `most`, and at either end a quarter.

    Nothing hides the load of the first block and the store of the last one, so these are short.
    """
    end = max(1, most // 4)
    inside = last - first - 2 * end
    if inside <= 0:
        return evenly(first, last, end)
    return [(first, end), *evenly(first + end, last - end, most), (last - end, end)]


def evenly(first: int, last: int, most: int) -> list[tuple[int, int]]:
    """Cut a range into as few blocks of at most `most` as there can be, each its start and size, of nearly one size."""
    count = -(-(last - first) // most)
    edges = [first + (last - first) * number // count for number in range(count + 1)] if count > 0 else []
    return [(start, end - start) for start, end in pairwise(edges)]


def asked_ahead(
    blocks: Iterable[_Block], ask: Callable[[_Block], _Tile], depth: int
) -> Iterator[tuple[_Block, _Tile]]:
    """Yield each block with what `ask` gave for it, which is called `depth` blocks before.

    `ask` starts something and does not wait: a load with `wait=False`, a product. Nothing here keeps a tile's name.
    """
    under_way: deque[tuple[_Block, _Tile]] = deque()
    for block in blocks:
        under_way.append((block, ask(block)))
        if len(under_way) > depth:
            yield under_way.popleft()
    while under_way:
        yield under_way.popleft()


def memory_block(rt: Runtime, itemsize: int, share: int, operands: int, ahead: int) -> int:
    """Choose a block, in elements, for a kernel that memory limits: as many bytes as a DMA keeps under way.

    That is a chunk for each of its servers; a PE with `share` elements gets two blocks at least. It is halved until
    there is room for those of each operand that are asked for, the one that is used and the one before.
    """

    def held(block: int) -> int:
        few = operands * share + block  # where all of a share is there at once
        return itemsize * min(few, operands * (ahead + 2) * max(block, LINE // itemsize))

    most = max(1, min(int(rt.unit("pe_dma").get("servers", 8)) * _CHUNK_BYTES // itemsize, share // 2))
    return that_fits(rt, halvings(most), held, ", or a smaller -p ahead")


def vector_block(rt: Runtime, itemsize: int, row: int, share: int, vectors: int = 0) -> int:
    """Choose a block, in rows of `row` elements, for a kernel that the vector unit limits, and that holds `vectors`.

    An op then takes 24 times its start-up, if the scratchpad has room for 7 copies of each element in f32 and 4 of its
    own, and half of a PE's `share` of rows is as much. A row at a time takes 3 in f32, one of which waits for its
    store, and 3 of its own, with some small results, and a hole for one, beside vectors for two.
    """
    wide, own = 3 + (share > 1) + (vectors > 0), vectors + max(1, min(share - 1, 3))
    least = row * (4 * wide + itemsize * own) + 16 * LINE
    that_fits(rt, (1,), lambda rows: rows * least, ", or a smaller -p cols")
    held = 28 + 4 * itemsize
    unit, cpu = rt.unit("pe_math"), rt.unit("pe_cpu")
    start_up = unit.get("overhead", 10.0) + cpu.get("dispatch_overhead", 10.0)
    enough = unit.get("lanes", 128) * unit.get("clock", 1.0) * start_up / _START_UP
    return max(1, min(int(min(enough, rt.scratchpad_bytes // held) / row), share // 2))


def composite_tile(rt: Runtime, row: int) -> tuple[int, int]:
    """Choose the tile, rows and columns, of an element-wise composite on rows of `row` elements.

    The register file holds 4 of them, of f32 with a result as large: so many are under way at once.
    """
    room = max(1, int(rt.unit("pe_fetch_store").get("register_file", 256 << 10)) // (4 * 8))
    return max(1, room // row), min(row, room)
