"""Compute values while a run goes on: what the host reads between launches, and kernels of what earlier ones wrote.

What was read in this way may have been branched on, so it is kept, and phase 2 confirms it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from kernbench_core.callsite import CallSite, describe_site, site_of_frame
from kernbench_core.errors import PendingDataError, SanityError
from kernbench_core.values.arrays import Array
from kernbench_core.values.value import AssemblyValue, LoadedValue, OpId, Value

if TYPE_CHECKING:
    from kernbench_core.compute.executor import DataExecutor
    from kernbench_core.compute.verification import Failure
    from kernbench_core.oplog.log import OpLog
    from kernbench_core.values.memory_store import MemoryStore

#: How much of what was read is kept to be confirmed, in bytes: the first reads.
_KEPT_BYTES: Final = 1 << 30


@attrs.frozen(eq=False)
class Read:
    """What was read while a run went on: its data then, the call that read it, and the user's line."""

    array: Array
    why: str
    site: CallSite | None


@attrs.frozen
class BranchValues:
    """Values that kernels `read` although only phase 2 knows them, and how many of them it `confirmed`, if asked."""

    kind: ClassVar[str] = "branch values"
    read: int = 0
    confirmed: int | None = None

    @property
    def words(self) -> str:
        """Say how many there are, and whether they are right."""
        if self.confirmed is None:
            return f"{self.kind}: {self.read}, not confirmed (--verify-data does)"
        return f"{self.kind}: {self.confirmed} of {self.read} confirmed"


@attrs.frozen
class HostReads(BranchValues):
    """Values that the host `read` while the run went on, and how many of them phase 2 `confirmed`, if asked."""

    kind: ClassVar[str] = "host reads"


class OnDemand:
    """Phase 2 of just what is asked for, at no simulated time; nothing is made before something is."""

    def __init__(self, log: OpLog, store: MemoryStore, functions: Mapping[str, str]) -> None:
        self._log = log
        self._store = store
        self._functions = functions
        self._executor: DataExecutor | None = None
        #: Computes what is only shown, apart from what the run knows.
        self._viewer: DataExecutor | None = None
        self._reads: dict[Value, Read] = {}
        self._room = _KEPT_BYTES
        self._branched: dict[Value, None] = {}
        self._by_host: dict[Value, None] = {}
        self._confirmed: tuple[int, int] | None = None

    @property
    def branch_values(self) -> BranchValues:
        """How many values kernels read that only phase 2 knows, and how many of them were confirmed so far."""
        return BranchValues(len(self._branched), self._confirmed and self._confirmed[0])

    @property
    def host_reads(self) -> HostReads:
        """How many values the host read that only phase 2 knows, and how many of them were confirmed so far."""
        return HostReads(len(self._by_host), self._confirmed and self._confirmed[1])

    def array(self, value: Value, why: str, *, branch: bool = False, host: bool = False) -> Array:
        """Return the data of a value, computing the ops that it needs; ExecutionError where one has not ended yet.

        `why` names the call that reads; a `branch` value is one that a kernel reads while its own launch goes on, a
        `host` value one that the host program reads.
        """
        found = self._computing.materialize(value)
        content = value.content()
        if branch:
            self._branched[content] = None
        if host and content.results():
            self._by_host[content] = None
        if content not in self._reads and found.nbytes <= self._room and content.results():
            self._room -= found.nbytes
            self._reads[content] = Read(found, why, site_of_frame(sys._getframe()))
        return found

    def shown(self, value: Value) -> Array:
        """Return the data of a value to whom only looks at it: the run stays as it is, and nothing is confirmed.

        ExecutionError where an op has not ended yet, PendingDataError where a load has not.
        """
        if not value.pending:
            return value.array()
        if any(isinstance(part.source, LoadedValue) for part in value.parts()):
            raise PendingDataError(f"A load of {value} must have completed to be shown; wait for it first.")
        if self._viewer is None:
            from kernbench_core.compute.executor import DataExecutor

            self._viewer = DataExecutor(self._log, self._store, self._functions, inputs={})
        return self._viewer.materialize(value)

    def makers(self, value: Value) -> tuple[OpId, ...]:
        """Return the ops that are to be computed for the data of a value."""
        return self._computing.makers(value)

    @property
    def _computing(self) -> DataExecutor:
        if self._executor is None:
            from kernbench_core.compute.executor import DataExecutor

            self._executor = DataExecutor(self._log, self._store, self._functions)
        return self._executor

    def confirm(self, executor: DataExecutor, maker: Callable[[Failure], str]) -> None:
        """Raise SanityError where phase 2 gives other data than was read: what a run did with it was timed wrongly.

        Values that kernels branched on are computed anew, from the data of the host on.
        `maker` says what made a wrong element.
        """
        from kernbench_core.compute.executor import DataExecutor
        from kernbench_core.compute.verification import Expected
        from kernbench_core.oplog.description import Access

        anew = DataExecutor(self._log, self._store, self._functions, inputs={})
        branch_values = host_reads = 0
        for value, read in self._reads.items():
            branched = value in self._branched
            by, now = (anew if branched else executor), _uncached(value)
            if by.materialize(now) is not read.array:
                name = f"what {read.why} at {describe_site(read.site)} read while the run went on, computed again,"
                for failure in by.verify({name: Expected(Access("", ()), read.array, value=now)}).found:
                    raise SanityError(f"do not use this result: {failure.name} {failure.words}{maker(failure)}")
            branch_values += branched
            host_reads += value in self._by_host
        self._confirmed = branch_values, host_reads


def _uncached(value: Value) -> Value:
    """Return the value such that its parts are put together again."""
    if not isinstance(value, AssemblyValue):
        return value
    return AssemblyValue(value.shape, value.dtype, value.parts(), value.makers())
