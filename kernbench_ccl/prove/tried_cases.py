"""What the cases of a check had: what an algorithm was tried with, and so what it was not."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.prove.proof_case import ProofCase


@frozen
class TriedCases:
    """What cases had: numbers of elements and of PEs of a rank, dtypes, and roots: first, middle or last.

    In `some_orders` of running a kernel was tried that takes what comes first: that is a test, and no proof.
    """

    counts: frozenset[int] = frozenset()
    pes: frozenset[int] = frozenset()
    dtypes: frozenset[str] = frozenset()
    roots: frozenset[str] = frozenset()
    some_orders: bool = False

    @classmethod
    def of(cls, kind: CollectiveKind, done: Sequence[ProofCase]) -> TriedCases:
        """Return what some cases of a collective had; nothing where it has none of it."""
        if kind.barrier:
            return cls(pes=frozenset(case.n_pe for case in done))
        roots = {"first" if not case.root else "last" if case.root == case.world - 1 else "middle" for case in done}
        return cls(
            frozenset(case.count for case in done), frozenset(case.n_pe for case in done),
            frozenset(case.dtype for case in done), frozenset(roots if kind.rooted else ()),
        )  # fmt: skip

    def __or__(self, other: TriedCases) -> TriedCases:
        """Return what either had."""
        return TriedCases(
            self.counts | other.counts, self.pes | other.pes, self.dtypes | other.dtypes, self.roots | other.roots,
            self.some_orders or other.some_orders,
        )  # fmt: skip


NOTHING = TriedCases()
"""What no case has."""
