"""The time of whole messages that wait for each other: closed forms of trees, step by step.

A message leaves when those that it waits for are there. On a switch all messages of a rank share its link up and its
link down; elsewhere every pair of ranks that has a message must have a link for itself. A message of s bytes that meets
nobody takes a + s/b. First ready is first served.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from attrs import frozen

from kernbench_ccl.algorithms import _forms
from kernbench_ccl.algorithms._tree import Tree, double_binary_from
from kernbench_ccl.contract import Cost

TreeAt = Callable[[int], Tree]
"""The place in a tree of a rank."""
UP, DOWN = "up", "down"


@frozen
class TimedMessage:
    """One whole message, and the numbers of those that it waits for; `turn` decides between those ready together."""

    source: int
    target: int
    after: tuple[int, ...]
    turn: int = 0


def tree_time(cost: Cost, trees: Sequence[TreeAt], ways: Sequence[str]) -> float | str:
    """Return the time in ns of equal parts of a vector that go up trees, or down, or `UP` and then `DOWN`.

    A sentence where messages share links, or would with another root, and where those of several trees share the links
    of a rank: they come from several ranks at once then, and take turns packet by packet.
    """
    if len(trees) > 1 and cost.network.switched and cost.world > 2:
        return _forms.SHARED
    messages: list[TimedMessage] = []
    for place in trees:
        messages += _along(place, cost.world, ways, len(messages))
    if not _forms.around(cost) or not _forms.linked(cost, ((m.source, m.target) for m in messages)):
        return _forms.SHARED
    return time_of(cost, messages, cost.nbytes / len(trees))


def time_of(cost: Cost, messages: Sequence[TimedMessage], nbytes: float) -> float:
    """Return when the last of these messages of `nbytes` is there, in ns."""
    wire, shared, hop = nbytes / cost.bandwidth, cost.network.switched, cost.hop_of(cost.nbytes)
    missing = [len(message.after) for message in messages]
    followers: list[list[int]] = [[] for _ in messages]
    for number, message in enumerate(messages):
        for earlier in message.after:
            followers[earlier].append(number)
    free: dict[object, float] = {}
    ready = [(0.0, messages[number].turn, number) for number, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    last = 0.0
    while ready:
        at, _, number = heapq.heappop(ready)
        source, target = messages[number].source, messages[number].target
        up, down = ((UP, source), (DOWN, target)) if shared else ((source, target), (source, target, DOWN))
        start = max(at, free.get(up, 0.0))
        there = max(start + hop, free.get(down, 0.0)) + wire
        free[up], free[down], last = start + wire, there, max(last, there)
        for following in followers[number]:
            missing[following] -= 1
            if not missing[following]:
                heapq.heappush(ready, (there, messages[following].turn, following))
    return last


def streamed(cost: Cost, levels: int, nbytes: float) -> float:
    """Return what tiles of halves of a vector take at most down so many levels, in ns: `nbytes` pass the busiest link.

    On each level a tile is sent on when it is there as a whole.
    """
    tile = min(cost.message, cost.nbytes / 2)
    return levels * (cost.hop_of(cost.nbytes) + tile / cost.bandwidth) + nbytes / cost.bandwidth


def rooted_pair_time(cost: Cost, way: str) -> float | str:
    """Return the time in ns of the halves of a vector that go `UP` or `DOWN` the two binary trees of a root.

    That is d(a + t/b) + S/b, d levels, t bytes a message; step by step, and at most, what `tree_time` gives.
    """
    trees = [partial(double_binary_from, cost.world, 0, which=which) for which in (0, 1)]
    stepped = tree_time(cost, trees, [way])
    if isinstance(stepped, str) or not cost.pipeline:
        return stepped
    return min(stepped, streamed(cost, (cost.world - 1).bit_length(), cost.nbytes))


def _along(place: TreeAt, world: int, ways: Sequence[str], first: int) -> Iterator[TimedMessage]:
    """Yield the messages of one tree, numbered from `first`: every rank's upwards, then every rank's downwards."""
    below = [rank for rank in range(world) if place(rank).parent is not None]
    number = {(way, rank): first + i for i, (way, rank) in enumerate((way, rank) for way in ways for rank in below)}
    for way, rank in number:
        parent = place(rank).parent
        assert parent is not None
        if way == UP:
            yield TimedMessage(rank, parent, tuple(number[UP, child] for child in place(rank).children))
            continue
        before = [number[DOWN, parent]] if place(parent).parent is not None else []
        if not before and UP in ways:
            before = [number[UP, child] for child in place(parent).children]
        yield TimedMessage(parent, rank, tuple(before), place(parent).children.index(rank))
