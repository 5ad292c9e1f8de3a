"""What a collective must move between ranks, in bytes: what its lower bounds follow from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from attrs import frozen

Pairs = Sequence[tuple[int, int]]
"""Ranks of which the second depends on the first."""

Hops = Callable[[int, int], int]
"""Gives the links of a shortest path between two ranks."""


def _no_work(hops: Hops) -> float:
    return 0.0


@frozen
class Traffic:
    """What a collective must move, in bytes, and between whom.

    `send(rank)` and `receive(rank)` are what a rank must, `cross(inside)` what must cross from a set of ranks to the
    others, `work(hops)` what all links together must carry, `everywhere` what all ranks together must send.
    """

    pairs: Pairs
    send: Callable[[int], float]
    receive: Callable[[int], float]
    cross: Callable[[frozenset[int]], float]
    work: Callable[[Hops], float] = _no_work
    everywhere: float = 0.0


def every_pair(world: int) -> Pairs:
    """Return all pairs of two ranks."""
    return tuple((a, b) for a in range(world) for b in range(world) if a != b)


def from_root(world: int, root: int) -> Pairs:
    """Return the pairs of the root and each other rank."""
    return tuple((root, b) for b in range(world) if b != root)


def to_root(world: int, root: int) -> Pairs:
    """Return the pairs of each other rank and the root."""
    return tuple((b, root) for b in range(world) if b != root)


def at(nbytes: float, *ranks: int) -> Callable[[int], float]:
    """Return a function that gives `nbytes` for these ranks (for all, without any) and 0 for others."""
    return lambda rank: nbytes if not ranks or rank in ranks else 0.0


def messages(pairs: Pairs, nbytes: float) -> Traffic:
    """Return the traffic of a message of `nbytes` from the first to the second of each pair."""
    sent, got = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    return Traffic(
        tuple(pairs),
        lambda rank: nbytes * sent[rank],
        lambda rank: nbytes * got[rank],
        lambda inside: nbytes * sum(a in inside and b not in inside for a, b in pairs),
        lambda hops: nbytes * sum(hops(a, b) for a, b in pairs),
    )
