"""Messages of the reference interpreter: whom a PE names, and bytes that are received as another dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.tiles import Tile, as_operand

if TYPE_CHECKING:
    from tests.reference.posts import Post

#: Columns and rows of the cubes of a package, and of the PEs of a cube, by the PEs of the machine.
LAYOUTS = {4: ((1, 1), (2, 2)), 64: ((2, 2), (4, 2))}
STEPS_TO = {"n": (0, -1), "s": (0, 1), "e": (1, 0), "w": (-1, 0)}


def next_in(direction: str, pe: int, pes: int) -> int:
    """Give the next PE of its package in a direction."""
    (wide, high), (across, down) = LAYOUTS[pes]
    places = {}
    for number in range(pes):
        cube, within = divmod(number, across * down)
        package, cube = divmod(cube, wide * high)
        column, row = cube % wide * across + within % across, cube // wide * down + within // across
        places[package, column, row] = number
    ((package, column, row),) = (place for place, number in places.items() if number == pe)
    east, south = STEPS_TO[direction]
    return places[package, column + east, row + south]


class Messages:
    """The calls of `tl` that send and receive, for program `me` of `world` in a row."""

    def __init__(self, post: Post, me: int, world: int) -> None:
        self._post, self._me, self._world = post, me, world

    def send(self, tile: Tile, to: int | str, wait: bool = True) -> None:
        self._post.send(self._me, self._peer(to), as_operand(tile))

    def recv(self, shape: Sequence[int], dtype: Any, source: int | str, copy: bool = True, wait: bool = True) -> Tile:
        return self._as(self._post.take([self._peer(source)], self._me)[0], shape, dtype)

    def recv_any(
        self, shape: Sequence[int], dtype: Any, sources: Sequence[int | str] | None = None, copy: bool = True
    ) -> tuple[Tile, int | str]:
        me = self._me
        given = [n for n in range(self._world) if n != me] if sources is None else list(sources)
        peers = [self._peer(source) for source in given]
        sent, source = self._post.take(peers, me)
        return self._as(sent, shape, dtype), given[peers.index(source)]

    def _peer(self, name: int | str) -> int:
        return name if isinstance(name, int) else next_in(name, self._me, self._world)

    @staticmethod
    def _as(sent: Tile, shape: Sequence[int], dtype: Any) -> Tile:
        kind, size = num.dtype_of(dtype), int(np.prod(shape))
        if sent.data.nbytes != size * kind.itemsize:
            raise ValueError("a message of another size")
        if kind == sent.data.dtype:
            return sent.view(lambda array: array.reshape(shape))
        bits = np.ascontiguousarray(sent.exact()).reshape(-1).view(kind).reshape(shape)
        return Tile(bits, pending=sent.pending)
