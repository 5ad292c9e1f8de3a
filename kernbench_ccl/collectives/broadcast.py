"""Broadcast: every rank gets the root's vector; `count` are its elements."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, moved, of_the_root
from kernbench_ccl.collectives.traffic import Traffic, at, from_root


def _ends(call: CallShape, rank: int) -> Sequence[Piece]:
    return [moved(call.root, 0, call.count)]


def _traffic(call: CallShape, size: float) -> Traffic:
    root, pairs = call.root, from_root(call.world, call.root)
    rest = at(size, *(b for _, b in pairs))
    return Traffic(pairs, at(size, root), rest, lambda inside: size if root in inside else 0.0)


BROADCAST = CollectiveKind(
    "broadcast",
    of_the_root,
    _ends,
    traffic=_traffic,
    rooted=True,
    in_place=True,
    template="kernbench_ccl.templates:broadcast.py",
)
