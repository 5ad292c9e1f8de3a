"""Compute values while a run goes on: what the host reads between launches, and kernels of what earlier ones wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernbench_core.values import Array, Value

if TYPE_CHECKING:
    from kernbench_core.executor import DataExecutor
    from kernbench_core.oplog import OpLog
    from kernbench_core.store import MemoryStore


class OnDemand:
    """Phase 2 of just what is asked for, at no simulated time; nothing is made before something is."""

    def __init__(self, log: OpLog, store: MemoryStore, functions: Mapping[str, str]) -> None:
        self._log = log
        self._store = store
        self._functions = functions
        self._executor: DataExecutor | None = None

    def array(self, value: Value) -> Array:
        """Return the data of a value, computing the ops that it needs; ExecutionError where one has not ended yet."""
        if self._executor is None:
            from kernbench_core.executor import DataExecutor

            self._executor = DataExecutor(self._log, self._store, self._functions)
        return self._executor.materialize(value)
