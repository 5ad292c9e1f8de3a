"""One call of a collective that is proved, and what comes out: a proof, or faults."""

from __future__ import annotations

from attrs import frozen

from kernbench_ccl.collectives import CallShape, CollectiveKind
from kernbench_ccl.contract import Network

WRONG, DEADLOCK, RAISED, ENDLESS = "wrong", "deadlock", "raised", "endless"
"""Kinds of faults: wrong data, kernels that wait for ever, one that did what it must not, one without end."""

LOST, SURPLUS, RACE, CHANGED, UNRECEIVED, UNHEARD = "lost", "surplus", "race", "changed", "unreceived", "unheard"
"""What wrong data is about: an output lacks something, or holds what it must not or too often; two uses of memory that
nothing orders; an input that was written to; a message that nobody received; a rank that a barrier did not wait for."""

Sides = tuple[int | None, int | None]


@frozen
class ProofCase:
    """One call of a collective that is proved.

    `counts` are the splits of an uneven all_to_all, `tile` the elements of a message, `held` the tiles that may be in a
    scratchpad at once, `slots` those of each queue (each holds one tile), `order` who runs first (see `Untimed`).
    """

    network: Network
    n_pe: int
    count: int
    redop: str | None = None
    root: int = 0
    counts: tuple[tuple[int, ...], ...] | None = None
    in_place: bool = False
    pipeline: bool = True
    tile: int = 4
    held: int = 32
    slots: int = 1
    dtype: str = "f16"
    order: int = 0
    contributors: str = "sip"
    cubes: tuple[int, int] = (1, 1)

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return self.network.world

    @property
    def call(self) -> CallShape:
        """What decides where its data goes."""
        return CallShape(self.world, self.count, self.redop, self.root, self.counts)

    def __str__(self) -> str:
        words = [
            f"{counted(self.world, 'rank')} on {self.network.name}",
            f"{counted(self.n_pe, 'PE')} each" if self.world > 1 else counted(self.n_pe, "PE"),
            counted(self.count, "element") if self.counts is None else "uneven splits",
            f"tiles of {self.tile}",
        ]
        words += [self.dtype] if self.dtype != "f16" else []
        words += [f"redop {self.redop}"] if self.redop else []
        words += ["a vector of each PE"] if self.contributors == "pe" else []
        words += [f"root {self.root}"] if self.root else []
        words += ["in place" if self.in_place else "out of place"]
        words += [] if self.pipeline else ["pipeline off"]
        words += [f"queues of {counted(self.slots, 'slot')}"]
        return ", ".join(words)


@frozen
class Fault:
    """What is wrong in a case: on which rank and PE, in which step, which elements, at which kernel lines.

    `sentence` says all of it. `pe` is the place in the rank; `start` and `end` are None where no elements are meant,
    `rank` and `pe` where no kernel was running.
    """

    kind: str
    case: ProofCase
    rank: int | None
    pe: int | None
    step: int
    start: int | None
    end: int | None
    lines: tuple[str, ...]
    sentence: str
    about: frozenset[str] = frozenset()
    """What wrong data is about; nothing of other kinds of faults."""


@frozen
class Proof:
    """What came out of one case: no faults if it is proved; how many messages were sent, and in how many steps."""

    case: ProofCase
    faults: tuple[Fault, ...]
    messages: int
    steps: int
    chose: bool = False
    """Whether a kernel received from whoever was first: then another order may have another outcome."""
    any_network: bool = False
    """Whether no kernel asked for the network: then the same holds on every other."""


def sides(kind: CollectiveKind, case: ProofCase, rank: int) -> Sides:
    """Return how many elements a rank's input and output have; None where it has none."""
    vectors = case.n_pe if case.contributors == "pe" else 1
    given, ends = kind.brings(case.call, rank), kind.ends(case.call, rank)
    return (
        None if given is None else given * vectors,
        None if ends is None else sum(piece.count for piece in ends) * vectors,
    )


def counted(count: int, noun: str, plural: str = "s") -> str:
    """Spell a number of things: `1 rank`, `3 ranks`."""
    return f"{count} {noun}{'' if count == 1 else plural}"
