"""What a test's runs gave, in plain values: they go from the processes that run tests to the one that sums up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kernbench_core.testing.budgets.limits import Budget, Figures

#: What became of a golden.
SAME, DIFFERS, ABSENT, DAMAGED, NEW, REWRITTEN = "same", "differs", "absent", "damaged", "new", "rewritten"


@attrs.define
class GoldenRecord:
    """A golden that was asked for: its file as it is shown, what became of it, and the figures that it held before."""

    file: str
    state: str
    before: Figures | None = None
    said: str = ""


@attrs.define
class RunRecord:
    """One run of a test: what it was, its figures, its limits, and its goldens, of which it has one as a rule."""

    bench: str
    topology: str
    figures: Figures
    name: str = ""
    budgets: list[Budget] = attrs.field(factory=list)
    goldens: list[GoldenRecord] = attrs.field(factory=list)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> RunRecord:
        """Return what `CaseRecord.to_json` made plain."""
        goldens = [GoldenRecord(**each) for each in found["goldens"]]
        return cls(**{**found, "budgets": [Budget(**each) for each in found["budgets"]], "goldens": goldens})


@attrs.define
class CaseRecord:
    """What a test did: its node id, how it went, and its runs in the order in which they were first looked at."""

    test: str
    outcome: str = ""
    runs: list[RunRecord] = attrs.field(factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, which xdist carries."""
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> CaseRecord:
        """Return what `to_json` made plain."""
        return cls(**{**found, "runs": [RunRecord.from_json(each) for each in found["runs"]]})
