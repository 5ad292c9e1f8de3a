"""All-reduce by recursive halving and doubling: few steps, for any number of ranks.

With n = 2^k the largest power of two up to N, members exchange halves at distance n/2, n/4, ..., 1, reducing what they
keep, then give it back at distance 1, ..., n/2. Where N is not a power of two, N - n ranks first send all they have to
the next rank, which is a member for both, and get the result from it at the end.

Closed form: a step at distance d moves d/n of the vector: 2 log2(N) a + 2 (N - 1)/N S/b where partners share no links;
other N: 2 log2(n) a + 2 (n - 1)/n S/b and two more steps of a + S/b.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from kernbench_ccl.algorithms import _forms, _halving
from kernbench_ccl.algorithms._halving import Cube
from kernbench_ccl.algorithms._tiles import Message, Segment, Tile, cut, due_after, exchange, meet, tiles
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "all_reduce"


def halving_doubling_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give every rank the result."""
    start, end = share(count, n_pe, pe)
    members = 1 << (world.bit_length() - 1)
    extra = world - members
    folded = rank < 2 * extra
    member = rank // 2 if folded else rank - extra
    cube = Cube(member, members, partial(_rank_of, extra))
    segments = cut(start, end, members)
    partner = rank ^ 1 if folded else None
    if not tl.collective.pipeline:
        _stepped(tl, cube, partner, in_ptr, out_ptr, segments, rank, pe, n_pe)
        return
    for part in _halving.parts_of(tl, cube, segments):
        if folded and rank % 2 == 0:
            _hand_over(tl, cube, rank + 1, in_ptr, out_ptr, segments, part)
            continue
        outbox = _halving.outbox_of(tl, cube, part)
        own = _halving.own_tiles(tl, cube, in_ptr, segments, part)
        if partner is not None:
            own = _with_partner(tl, cube, partner, own, segments, part)
        finished = _halving.halve(tl, cube, own, segments, part, outbox)
        _halving.double(tl, cube, finished, out_ptr, segments, part, outbox, partner)
        outbox.flush()


kernel = halving_doubling_all_reduce


def _rank_of(extra: int, member: int) -> int:
    """Return the rank of a member, where `extra` members stand for two ranks each."""
    return 2 * member + 1 if member < extra else member + extra


def _with_partner(
    tl: Any, cube: Cube, partner: int, own: Iterator[Any], segments: Sequence[Segment], part: Sequence[Tile]
) -> Iterator[Any]:
    """Yield own tiles with those of the rank that is no member reduced in, in the order of their use."""
    call = tl.collective
    for piece in cube.pieces(segments, range(cube.size - 1, -1, -1), part):
        if piece.length:
            yield call.combine(tl, tl.recv((piece.length,), call.dtype, partner), next(own))


def _hand_over(
    tl: Any, cube: Cube, partner: int, source: Any, target: Any, segments: Sequence[Segment], part: Sequence[Tile]
) -> None:
    """Send all own tiles to the member that stands for this rank, and store the results that come back."""
    outbox = _halving.outbox_of(tl, cube, part)
    for x in _halving.own_tiles(tl, cube, source, segments, part):
        outbox.add(tl.send(x, partner, wait=False))
    for piece in cube.pieces(segments, range(cube.size), part):
        if piece.length:
            tl.store(target + piece.target, tl.recv((piece.length,), tl.collective.dtype, partner))
    outbox.flush()


def _stepped(
    tl: Any,
    cube: Cube,
    partner: int | None,
    source: Any,
    target: Any,
    segments: Sequence[Segment],
    rank: int,
    pe: int,
    n_pe: int,
) -> None:
    """Do each step after all of the step before; partial sums that are not kept wait in the output."""
    call = tl.collective
    whole = [
        Message(partner, p.source, p.length)
        for p in cube.pieces(segments, range(cube.size), tiles(segments, call.tile))
    ]
    due, reads = due_after(call.window(call.tile), whole), source

    def end_step() -> None:
        meet(tl, rank, pe, n_pe)

    if partner is not None and partner > rank:
        for _ in exchange(tl, source, whole, [], due):
            pass
        for message, x in exchange(tl, source, [], whole, due):
            tl.store(target + message.place, x)
        return
    kept = _halving.Kept(tl)
    if partner is not None:
        own = kept.take(source, whole)
        for message, x in exchange(tl, source, [], whole, due):
            kept.leave(target, message, call.combine(tl, x, next(own)))
        reads = target
        end_step()
    _halving.stepped_halve(tl, cube, reads, target, target, segments, kept, end_step)
    _halving.stepped_double(tl, cube, target, segments, kept, end_step)
    if partner is not None:
        for _ in exchange(tl, target, whole, [], due, kept.tiles):
            pass
    kept.settle()


def formula(cost: Cost) -> float | str:
    """Return 2 log2(n) a + 2 (n - 1)/n S/b in ns, and 2(a + S/b) more where N is no power of two, links of their own.

    On a switch there is none for these: members that have nobody to wait for send early, and share the last link with
    what their partners fold.
    """
    steps = cost.world.bit_length() - 1
    members, wire = 1 << steps, cost.nbytes / cost.bandwidth
    extra = cost.world - members
    rank_of = partial(_rank_of, extra)
    pairs = [(rank_of(member), rank_of(member ^ 1 << i)) for i in range(steps) for member in range(members)]
    if not _forms.linked(cost, [*pairs, *((rank, rank ^ 1) for rank in range(2 * extra))]):
        return _forms.SHARED
    if extra and cost.network.switched:
        return "members that wait for nobody share the last link of a switch with what others fold"
    folding = 2 * (cost.hop_of(cost.nbytes) + wire)
    hops = 2 * steps * cost.hop_of(cost.nbytes / members)
    return hops + 2 * (members - 1) / members * wire + (0.0 if members == cost.world else folding)
