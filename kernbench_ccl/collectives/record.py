"""The record of a collective: what a rank brings, what it ends with, how nccl-tests rates it, what a call names.

One statement of who ends with what (`ends`) serves the proof, the data check in numpy, and the bounds of a collective
that states none. `count` is nccl's: the unit in which sizes are asked for, to which those of inputs and outputs are in
proportion.

Source: nccl-tests, doc/PERFORMANCE.md, for sizes and bus bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from kernbench_ccl.collectives.traffic import Traffic

__tracebackhide__ = True  # what a record raises is told with its own lines

Splits = Sequence[Sequence[int]]
"""Uneven splits: `splits[i][j]` elements go from rank i to rank j."""


@frozen
class CallShape:
    """What decides where the data of a call goes: ranks, nccl's count, reduction, root, and uneven splits."""

    world: int
    count: int
    redop: str | None = None
    root: int = 0
    counts: Splits | None = None


@frozen
class Piece:
    """The next `count` elements of a rank's output: those from number `first` on of what each of `ranks` brings.

    `reduced`: the elements of these ranks are reduced to one; else there is one rank, and its elements are moved.
    """

    count: int
    first: int
    ranks: tuple[int, ...]
    reduced: bool


def moved(rank: int, first: int, count: int) -> Piece:
    """Return `count` elements of what a rank brings, from number `first` on, as they are."""
    return Piece(count, first, (rank,), False)


def combined(ranks: Iterable[int], first: int, count: int) -> Piece:
    """Return the reduction of `count` elements of what each of these ranks brings, from number `first` on.

    An average is their sum over the number of all ranks, as `finish` of `tl.collective` makes it.
    """
    if not isinstance(ranks, Iterable):
        raise TypeError(f"combined must be given several ranks, as range(call.world), not {ranks!r}")
    return Piece(count, first, tuple(ranks), True)


Brings = Callable[[CallShape, int], int | None]
"""Gives the elements of a rank's input; None where it has none."""

Ends = Callable[[CallShape, int], Sequence[Piece] | None]
"""Gives what a rank's output must hold, piece behind piece; None where it has none."""


def whole(world: int) -> float:
    """Return the bus bandwidth over the algorithm's where every element crosses a rank's link once."""
    return 1.0


def once(world: int) -> float:
    """Return that factor where all parts but a rank's own cross its link once."""
    return (world - 1) / world


def twice(world: int) -> float:
    """Return that factor where all parts but a rank's own cross its link twice."""
    return 2 * (world - 1) / world


@frozen
class CollectiveKind:
    """One collective. `factor(world)` is bus bandwidth over algorithm bandwidth.

    `reduces`: a call names a reduction; `rooted`: a root; `takes_counts`: it may name uneven splits. `in_place`: it has
    the in-place form of nccl-tests: the output is, holds, or is the rank's own part of the input. `per_pe`: every PE
    may bring a vector of its own. `barrier`: it moves no data, and no rank ends before it has heard of all.
    """

    name: str
    brings: Brings
    ends: Ends
    factor: Callable[[int], float] = whole
    traffic: Callable[[CallShape, float], Traffic] | None = None
    """What must be moved for a size in bytes; without it, what follows from `ends`."""
    reduces: bool = False
    rooted: bool = False
    takes_counts: bool = False
    in_place: bool = False
    per_pe: bool = False
    barrier: bool = False
    spelling: str = ""
    """What nccl-tests calls it, where that is another name."""
    function: str = ""
    """What ranks of a bench call it by, as a function of `dist`; without it they have `dist.collective` alone."""
    template: str = ""
    """Where the text of a new algorithm lies, as "package:file.py"; without it none can be begun."""

    @property
    def command(self) -> str:
        """What its command is called."""
        return self.spelling or self.name

    def in_count(self, call: CallShape, rank: int) -> int:
        """Return the elements of a rank's input; 0 where it has none."""
        return self.brings(call, rank) or 0

    def out_count(self, call: CallShape, rank: int) -> int:
        """Return the elements of a rank's output; 0 where it has none."""
        return sum(piece.count for piece in self.ends(call, rank) or ())

    def size_count(self, count: int, world: int) -> int:
        """Return the elements that nccl-tests reports as the size: the larger of input and output of the root."""
        call = CallShape(world, count, "sum" if self.reduces else None)
        return max(self.in_count(call, 0), self.out_count(call, 0))

    def count_of(self, size_count: int, world: int) -> int:
        """Return the `count` that makes a size of at most `size_count` elements."""
        return size_count // max(1, self.size_count(1, world))

    def busbw(self, nbytes: float, ns: float, world: int) -> float:
        """Return the bus bandwidth in GB/s of a collective of the size `nbytes` that took `ns`; 0 for no time."""
        return nbytes / ns * self.factor(world) if ns else 0.0


def own(call: CallShape, rank: int) -> int:
    """Return `count`: of a collective to which every rank brings one vector."""
    return call.count


def of_the_root(call: CallShape, rank: int) -> int | None:
    """Return `count` for the root, which alone brings a vector."""
    return call.count if rank == call.root else None
