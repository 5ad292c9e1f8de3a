"""Broadcast, reduce and all-reduce along a tree of ranks: what the chain, binomial and double binary trees run.

Pipelined, every tile goes on as soon as it is there (and reduced). In an all-reduce the root sends each tile down at
once, and a rank on level d has sent d times some tiles more up than it has received from above, so that no level waits
for the answer to one tile before it sends the next: up and down take the two directions of the links. Ranks below have
always sent at least as many as the one above waits for, so that no cycle of waits can form.

Step by step (`pipeline` off), a rank has all of a message, in memory, before it sends the first tile of it on, and
sends to one child after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import frozen

from kernbench_ccl.algorithms._tiles import LOADS_AHEAD, Outbox, Segment, TilePiece, ahead, tiles


@frozen
class Tree:
    """A rank's place in a tree: the rank above (None for the root), those below as they are served, and its level.

    The level counts from the root, 0. Only trees of an all-reduce know it.
    """

    parent: int | None
    children: tuple[int, ...]
    level: int = 0


def chain(order: Sequence[int], root: int, rank: int) -> Tree:
    """Return the place in the chain that follows `order` around from the root, and ends before the root again."""
    first = order.index(root)
    from_root = (*order[first:], *order[:first])
    place = from_root.index(rank)
    return Tree(from_root[place - 1] if place else None, from_root[place + 1 : place + 2])


def binomial(world: int, root: int, rank: int) -> Tree:
    """Return the place in a binomial tree: with v counted from the root, v's parent is v without its lowest bit."""
    v = (rank - root) % world
    lowest = v & -v if v else 1 << (world - 1).bit_length()
    below = [1 << bit for bit in reversed(range(lowest.bit_length() - 1)) if v + (1 << bit) < world]
    return Tree(None if not v else (v - lowest + root) % world, tuple((v + b + root) % world for b in below))


def double_binary(world: int, rank: int, which: int) -> Tree:
    """Return the place in one of two binary trees of all ranks; a rank has children in one of them at most.

    Both are in-order trees of the labels 1 to N, where odd labels are leaves. Rank r has label r + 1 in the first, and
    the following one in the second.
    """
    place = _in_order(world, (rank + which) % world + 1)
    return _relabelled(place, lambda label: (label - 1 - which) % world)


def double_binary_from(world: int, root: int, rank: int, which: int) -> Tree:
    """Return the place in one of two binary trees that all ranks but the root make, with the root above both."""
    others = world - 1

    def rank_of(label: int) -> int:
        return ((label - 1 - which) % others + 1 + root) % world

    v = (rank - root) % world
    if not v:
        return Tree(None, (rank_of(_top(1, others)),) if others else ())
    found = _relabelled(_in_order(others, (v - 1 + which) % others + 1), rank_of)
    return Tree(root if found.parent is None else found.parent, found.children)


def _relabelled(tree: Tree, name: Callable[[int], int]) -> Tree:
    return Tree(None if tree.parent is None else name(tree.parent), tuple(map(name, tree.children)), tree.level)


def _in_order(count: int, label: int) -> Tree:
    """Return the place of a label in the in-order tree of the labels 1 to `count`."""
    low, high, parent, level = 1, count, None, 0
    while (top := _top(low, high)) != label:
        parent, low, high = (top, low, top - 1) if label < top else (top, top + 1, high)
        level += 1
    return Tree(parent, tuple(_top(a, b) for a, b in ((low, label - 1), (label + 1, high)) if a <= b), level)


def _top(low: int, high: int) -> int:
    """Return the number from low to high that the highest power of two divides."""
    step = 1
    while (high // (2 * step)) * 2 * step >= low:
        step *= 2
    return high // step * step


# What goes along it ------------------------------------------------------------------------------------


def _pieces(tl: Any, start: int, end: int) -> list[TilePiece]:
    segment = Segment(start, start, end - start)
    return [segment.piece(tile) for tile in tiles([segment], tl.collective.tile)]


def _loads(tl: Any, memory: Any, pieces: Sequence[TilePiece]) -> Iterator[Any]:
    return ahead(LOADS_AHEAD, (tl.load(memory + p.source, shape=(p.length,), wait=False) for p in pieces))


def _outbox(tl: Any, tree: Tree) -> Outbox:
    return Outbox(tl, max(2, tl.collective.window(tl.collective.tile)) * max(1, len(tree.children)))


def broadcast(
    tl: Any, tree: Tree, source: Any, target: Any, start: int, end: int, end_step: Callable[[], None]
) -> None:
    """Send elements down from the root's source; every rank stores them."""
    pieces, outbox = _pieces(tl, start, end), _outbox(tl, tree)
    tiles_here = _loads(tl, source, pieces) if tree.parent is None else _received(tl, tree.parent, pieces)
    for piece, x in zip(pieces, tiles_here, strict=True):
        if tl.collective.pipeline:
            for child in tree.children:
                outbox.add(tl.send(x, child, wait=False))
        tl.store(target + piece.target, x)
    if not tl.collective.pipeline:
        end_step()
        _send_whole(tl, tree.children, target, pieces, outbox)
    outbox.flush()


def reduce(
    tl: Any, tree: Tree, source: Any, target: Any, scratch: Any, start: int, end: int, end_step: Callable[[], None]
) -> None:
    """Reduce elements up to the root, which stores them. Step by step, partial sums wait in `scratch`."""
    call, pieces, outbox = tl.collective, _pieces(tl, start, end), _outbox(tl, tree)
    partial = None if call.pipeline or tree.parent is None else scratch
    for piece, x in zip(pieces, _reduced(tl, tree, source, pieces), strict=True):
        if tree.parent is None:
            tl.store(target + piece.target, call.finish(tl, x))
        elif partial is None or not tree.children:
            outbox.add(tl.send(x, tree.parent, wait=False))
        else:
            tl.store(partial + piece.target, x)
    if not call.pipeline:
        end_step()
        if tree.parent is not None and tree.children:
            _send_whole(tl, [tree.parent], partial, pieces, outbox)
    outbox.flush()


def all_reduce(
    tl: Any, tree: Tree, source: Any, target: Any, start: int, end: int, end_step: Callable[[], None]
) -> None:
    """Reduce elements up to the root and send the result down; every rank stores it."""
    call, pieces = tl.collective, _pieces(tl, start, end)
    if not call.pipeline:
        reduce(tl, tree, source, target, target, start, end, end_step)
        broadcast(tl, tree, target, target, start, end, end_step)
        return
    slack = call.window(call.tile)
    lag = slack * tree.level
    outbox = Outbox(tl, (slack + 1) * (1 + len(tree.children)))
    rising = _reduced(tl, tree, source, pieces)
    falling = iter(()) if tree.parent is None else _received(tl, tree.parent, pieces)
    for beat in range(len(pieces) + lag):
        x = next(rising) if beat < len(pieces) else None
        if tree.parent is not None and beat < len(pieces):
            outbox.add(tl.send(x, tree.parent, wait=False))
        if beat >= lag:
            down = call.finish(tl, x) if tree.parent is None else next(falling)
            for child in tree.children:
                outbox.add(tl.send(down, child, wait=False))
            tl.store(target + pieces[beat - lag].target, down)
    outbox.flush()


def _received(tl: Any, source: int, pieces: Sequence[TilePiece]) -> Iterator[Any]:
    dtype = tl.collective.dtype
    return ahead(1, (tl.recv((p.length,), dtype, source, wait=False) for p in pieces))


def _reduced(tl: Any, tree: Tree, source: Any, pieces: Sequence[TilePiece]) -> Iterator[Any]:
    """Yield own tiles with those from below reduced in."""
    call, own = tl.collective, _loads(tl, source, pieces)
    for piece in pieces:
        x = next(own)
        for child in tree.children:
            x = call.combine(tl, tl.recv((piece.length,), call.dtype, child), x)
        yield x


def _send_whole(tl: Any, peers: Sequence[int], memory: Any, pieces: Sequence[TilePiece], outbox: Outbox) -> None:
    """Send a message from memory to one peer after the other."""
    for peer in peers:
        for x in _loads(tl, memory, pieces):
            outbox.add(tl.send(x, peer, wait=False))
