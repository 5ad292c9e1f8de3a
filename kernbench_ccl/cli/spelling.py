"""What somebody means who writes a collective otherwise: alltoall, send-recv."""

from __future__ import annotations

from collections.abc import Iterable


def spelt(name: str, known: Iterable[str]) -> str | None:
    """Return which of the known names somebody means who writes it otherwise: alltoall, send-recv."""

    def folded(name: str) -> str:
        return name.replace("_", "").replace("-", "").lower()

    return {folded(one): one for one in known}.get(folded(name))


def collective_named(name: str) -> str:
    """Return the collective that is meant by any spelling; the name itself where there is none."""
    from kernbench_ccl.collectives import COLLECTIVES as KINDS

    return spelt(name, KINDS) or name
