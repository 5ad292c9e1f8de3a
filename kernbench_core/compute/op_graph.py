"""The ops of a log as a graph: an op can be computed once the results that it reads are there.

Ready ops are taken in windows of the log: products and large ops first and in groups (see `batches`), the others one by
one, each followed by what waited for it, while its data is in the processor's caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from kernbench_core.compute.calculation import Calculation
from kernbench_core.compute.lifetimes import Lifetimes
from kernbench_core.compute.planned_op import PlannedOp
from kernbench_core.errors import ExecutionError
from kernbench_core.oplog.log import OpRecord
from kernbench_core.process.collection import no_automatic_collection
from kernbench_core.values.value import OpId, ResultValue, Value

_WINDOW_OPS = 1024
_WINDOW_BYTES = 64 << 20
#: Results of so many bytes are computed in threads; the data of smaller ones is better left in a core's cache.
_LARGE_BYTES = 1 << 20

Seen = Callable[[PlannedOp], None]
"""Is called with an op that is computed, before anything that it reads is dropped."""


class OpGraph:
    """The ops by their names, and what computes them.

    `record` gives the record of an op; `on_computed` is called with 1 after each op that had been computed before.
    """

    def __init__(
        self,
        calculation: Calculation,
        lifetimes: Lifetimes,
        record: Callable[[PlannedOp], OpRecord],
        on_computed: Callable[[int], object],
    ) -> None:
        self.ops: dict[OpId, PlannedOp] = {}
        self.calculation = calculation
        self.lifetimes = lifetimes
        self.record = record
        self.on_computed = on_computed
        self._walks = 0

    def add(self, op: PlannedOp) -> None:
        """Take in an op of the log."""
        op.done = op.result.computed
        self.ops[op.result.op_id] = op
        if not op.done:
            self.lifetimes.expect(op)

    def add_all(
        self, made: Iterable[tuple[int, float, ResultValue, tuple[Value, ...]]], numbers: Iterable[int]
    ) -> None:
        """Take in ops of the log: row, start, result and inputs of each, and the number of its kind."""
        ops, lifetimes = self.ops, self.lifetimes
        for (row, t_start, result, inputs), number in zip(made, numbers, strict=True):
            op = PlannedOp(row, t_start, result, inputs, None, result.computed, number)
            ops[result.op_id] = op
            if not op.done:
                lifetimes.expect(op)

    def maker(self, result: ResultValue) -> PlannedOp:
        """Return the op that computes a result; ExecutionError where the log has none."""
        op = self.ops.get(result.op_id)
        if op is None or op.result is not result:
            pe, issue = result.op_id
            raise ExecutionError(
                f"The result of op {issue} of PE {pe} must be made by a record of the log, and none makes it; "
                "let the run end before computing."
            )
        return op

    def plan(self, targets: Iterable[PlannedOp]) -> tuple[list[PlannedOp], dict[ResultValue, list[PlannedOp]]]:
        """Return the ops to compute, each with how many results it waits for, and who waits for each of these."""
        self._walks += 1
        walk = self._walks
        ops: list[PlannedOp] = []
        dependents: dict[ResultValue, list[PlannedOp]] = {}
        stack = list(targets)
        while stack:
            op = stack.pop()
            if op.walk == walk:
                continue
            op.walk = walk
            count = 0
            for result in op.needs:
                if result.data is None:
                    count += 1
                    others = dependents.get(result)
                    if others is None:
                        dependents[result] = [op]
                        stack.append(self.maker(result))
                    else:
                        others.append(op)
            op.waits = count
            ops.append(op)
        return ops, dependents

    def execute(
        self,
        targets: Sequence[PlannedOp],
        wanted: set[ResultValue],
        kept: set[ResultValue] | None,
        seen: Seen | None = None,
    ) -> None:
        """Compute `targets` and what they need; keep what memory or an op of the log to come still reads.

        `kept` are the results that stay. When it is None, results that nobody reads are set aside until they are worth
        a walk over all that memory holds. With `seen`, only what is pending is computed.
        """
        with no_automatic_collection(), np.errstate(all="ignore"):  # infinities and NaNs are results like any other
            walk = _Walk(self, targets, wanted, kept, seen)
            while walk.ready:
                walk.window()
        if walk.left:
            stuck = self.record(next(op for op in walk.ops if op.waits))
            raise ExecutionError(f"{stuck} must not read its own result, through other ops or directly.")


class _Walk:
    """One walk over ops of a graph in the order of their data, see `OpGraph.execute`."""

    __slots__ = ("dependents", "graph", "kept", "left", "ops", "ready", "seen", "wanted")

    def __init__(
        self,
        graph: OpGraph,
        targets: Sequence[PlannedOp],
        wanted: set[ResultValue],
        kept: set[ResultValue] | None,
        seen: Seen | None,
    ) -> None:
        self.graph = graph
        self.wanted = wanted
        self.kept = kept
        self.seen = seen
        self.ops, self.dependents = graph.plan(targets)
        #: The ops that wait for nothing, in the order of the log, as a heap.
        self.ready = [(op.t_start, op.row, op) for op in self.ops if not op.waits]
        heapify(self.ready)
        #: How many ops are not computed.
        self.left = len(self.ops)

    def window(self) -> None:
        """Compute the next ready ops, and what waits for these alone as long as that is not much."""
        graph, calculation, dependents, seen = self.graph, self.graph.calculation, self.dependents, self.seen
        lifetimes = graph.lifetimes
        stack, fresh = self._begun()
        room = _WINDOW_BYTES
        while stack:
            op = stack.pop()
            self.left -= 1
            if op.result.data is None:
                calculation.one(op)
            elif op not in fresh:
                graph.on_computed(1)
            if seen is not None:
                seen(op)
            if self.kept is None and lifetimes.loose_bytes > _WINDOW_BYTES:
                self.kept = lifetimes.sweep(self.wanted)
            lifetimes.finish(op, self.wanted, self.kept)
            for later in reversed(dependents.pop(op.result, ())):
                later.waits -= 1
                if later.waits:
                    continue
                if room > 0 and not self._is_grouped(later):
                    room -= later.nbytes
                    stack.append(later)
                else:
                    heappush(self.ready, (later.t_start, later.row, later))
        calculation.report_progress()

    def _begun(self) -> tuple[list[PlannedOp], set[PlannedOp]]:
        """Take a window of ready ops, and compute its products and large ops; return its ops, these last, and these."""
        ops = self._taken()
        grouped = [op for op in ops if self._is_grouped(op)]
        self.graph.calculation.many(grouped)
        fresh = set(grouped)
        others = [op for op in reversed(ops) if op not in fresh] if fresh else ops[::-1]
        return others + grouped[::-1], fresh

    def _taken(self) -> list[PlannedOp]:
        """Take ready ops in log order, up to a number of them and of result bytes, and at least one."""
        ops: list[PlannedOp] = []
        nbytes = 0
        while self.ready and (not ops or (len(ops) < _WINDOW_OPS and nbytes < _WINDOW_BYTES)):
            op = heappop(self.ready)[2]
            ops.append(op)
            nbytes += op.nbytes
        return ops

    def _is_grouped(self, op: PlannedOp) -> bool:
        """Whether an op is to be computed, and not by itself: one of core's GEMMs, or a large one of core's."""
        if op.result.data is not None:
            return False
        kind = op.kind or self.graph.calculation.kind_of(op)
        return kind.is_product or (kind.alike and op.nbytes >= _LARGE_BYTES)
