"""What carries out jobs: one small interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias

PointJob: TypeAlias = Mapping[str, Any]
"""What `evaluate` takes: plain data that any process can carry out."""
PointRecord: TypeAlias = dict[str, Any]
"""What `evaluate` gives: plain data."""


#: How long a scheduler that is not there, or one without workers, is waited for, in s.
PATIENCE_S: Final = 60.0


class Executor(Protocol):
    """Carries out jobs, several at once; a context manager that ends what it started."""

    def run(self, jobs: Iterable[PointJob]) -> Iterator[PointRecord]:
        """Yield the record of each job as it finishes, in any order, one for each.

        Jobs are taken from the iterable when there is room for them. What a job's own process does (raise, end, never
        come back) is in its record and raises nothing here.
        """
        ...

    def close(self) -> None:
        """End everything that was started, at once; records that were yielded are all there is."""
        ...
