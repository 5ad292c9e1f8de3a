"""What a collective must move at least, as follows from what its ranks end with; for one that states no traffic."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece
from kernbench_ccl.collectives.traffic import Traffic


def derived_traffic(kind: CollectiveKind, call: CallShape, size: float) -> Traffic:
    """Return what must cross between ranks for `size` bytes, as nccl-tests counts them, of a call of this shape.

    What a set of ranks brings must cross to the others once where these end with it moved, and at least one element
    must cross where they end with a reduction of it. How far it goes is left out.
    """
    ranks = range(call.world)
    each = size / (kind.size_count(call.count, call.world) or 1)
    ends = {rank: tuple(kind.ends(call, rank) or ()) for rank in ranks}
    pairs = {(source, rank): None for rank in ranks for piece in ends[rank] if piece.count for source in piece.ranks}

    def cross(inside: frozenset[int]) -> float:
        wanted = [piece for rank in ranks if rank not in inside for piece in ends[rank]]
        return each * _least_elements(inside, wanted)

    return Traffic(
        tuple(pair for pair in pairs if pair[0] != pair[1]),
        lambda rank: cross(frozenset({rank})),
        lambda rank: cross(frozenset(ranks) - {rank}),
        cross,
    )


def _least_elements(inside: frozenset[int], wanted: Iterable[Piece]) -> int:
    """Return how many elements must leave a set of ranks at least, for others to end with these pieces."""
    kept = {piece for piece in wanted if piece.count and inside.intersection(piece.ranks)}
    edges = sorted({edge for piece in kept for edge in (piece.first, piece.first + piece.count)})
    return sum((end - start) * _at_element(start, kept) for start, end in pairwise(edges))


def _at_element(element: int, pieces: Iterable[Piece]) -> int:
    """Return how many elements of a number must leave: one of each rank whose is moved, or one of a reduction."""
    here = [piece for piece in pieces if piece.first <= element < piece.first + piece.count]
    return max(len({piece.ranks for piece in here if not piece.reduced}), min(1, len(here)))
