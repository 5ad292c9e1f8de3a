"""Phase 2: compute what the op log says, outside the simulation, and check the results.

The executor follows the values: an op can be computed once the results it reads are there. It takes ready ops in
windows of the log, products first and in groups (see `batches`), the others one by one, each followed by what waited
for it, while its data is in the processor's caches. Nothing here knows the engine or a component.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from kernbench_core.compute.backends import Backend, ComputedBy, backend_of
from kernbench_core.compute.calculation import Calculation
from kernbench_core.compute.foreign_records import bind, in_execution_order, names_only_addresses
from kernbench_core.compute.kinds import KindNumbers
from kernbench_core.compute.lifetimes import Lifetimes
from kernbench_core.compute.named_functions import NamedFunctions
from kernbench_core.compute.op_verification import OpCheck, Where
from kernbench_core.compute.planned_op import PlannedOp
from kernbench_core.compute.substitution import Substitution
from kernbench_core.compute.verification import Expected, Verification, verify_regions
from kernbench_core.errors import ExecutionError, NoDataError
from kernbench_core.oplog.log import OpLog, OpRecord
from kernbench_core.process.collection import no_automatic_collection
from kernbench_core.values.arrays import Array
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.value import ArrayValue, OpId, ResultValue, Value

__all__ = ["DataExecutor", "Expected", "Verification"]

_WINDOW_OPS = 1024
_WINDOW_BYTES = 64 << 20
#: Results of so many bytes are computed in threads; the data of smaller ones is better left in a core's cache.
_LARGE_BYTES = 1 << 20
#: The PE that is written for what moves data and makes none.
_COPIED = -2


@define(eq=False)
class DataExecutor:
    """Execute an op log on a memory store.

    `op_log` is an `OpLog`, or any sequence of `OpRecord`s (of another program, say); `store` is phase 1's memory, which
    is left as it is. `functions` maps the op names of plug-ins to the "module:attr" that computes them. With
    `keep_all` no result is dropped: that is the debug mode. With `inputs` the same ops are computed
    on other data than the host wrote (see `substitution`), in results of their own: what other executors of this log
    computed stays. `backend` names what computes floats: "numpy", "torch", "torch:cuda". `on_computed(number)` is
    called when so many ops more are computed. ExecutionError where an op cannot be computed, NoDataError after a run
    that kept shapes only.

    >>> result = kb.run("vector-add", "tiny", {"n": 64, "block": 16})
    >>> executor = kb.DataExecutor(result.op_log, result.store)
    >>> executor.run()
    >>> [f"{record.op_name} -> {value.array().size}" for record, value in executor.results()]
    ['add -> 16', 'add -> 16', 'add -> 16', 'add -> 16']
    """

    op_log: OpLog | Sequence[OpRecord]
    memory: MemoryStore
    functions: Mapping[str, str] | None = None
    keep_all: bool = False
    inputs: Mapping[ArrayValue, Array] | None = None
    backend: Backend = field(factory=Backend, converter=backend_of)
    on_computed: Callable[[int], object] = field(default=lambda number: None, init=False)
    _other: Substitution | None = field(default=None, init=False)
    _ops: dict[OpId, PlannedOp] = field(factory=dict, init=False)
    _lifetimes: Lifetimes = field(init=False)
    _calculation: Calculation = field(init=False)
    _kinds: KindNumbers = field(init=False)
    _fork: MemoryStore | None = field(default=None, init=False)
    _seen: int = field(default=0, init=False)
    _functions: NamedFunctions = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._functions = NamedFunctions(self.functions)
        self._lifetimes = Lifetimes(self._held, self.keep_all)
        self._calculation = Calculation(
            self.backend, self._record, self.function, lambda number: self.on_computed(number)
        )
        self._kinds = KindNumbers(self._functions.is_core)

    @property
    def computed(self) -> int:
        """How many ops were computed."""
        return self._calculation.count

    @property
    def computed_by(self) -> ComputedBy | None:
        """What computed them; None where nothing was computed."""
        return self.backend.computed_by(self.computed, self._calculation.own) if self.computed else None

    @property
    def store(self) -> MemoryStore:
        """Memory after the log: phase 1's own, or a fork of it where records that name only addresses wrote to it."""
        self._sync()
        return self.memory if self._fork is None else self._fork

    def run(self) -> None:
        """Compute every op of the log that has not been computed yet."""
        self._need_data()
        self._sync()
        self._execute([op for op in self._ops.values() if not op.done], set(), self._lifetimes.sweep(set()))

    def materialize(self, value: Value) -> Array:
        """Return the data of a value, computing just the ops that it needs; what is computed stays computed."""
        value = self._own(value)
        if value.pending:
            self._need_data()
            self._sync()
            wanted = value.results()
            self._execute([self._maker(r) for r in wanted if r.pending], set(wanted), None)
        return value.array()

    def makers(self, value: Value) -> tuple[OpId, ...]:
        """Return the ops that the data of a value needs and that are not computed, as far as the log has them."""
        self._sync()
        found, stack = dict[OpId, None](), [self._own(value)]
        while stack:
            for result in stack.pop().results():
                if result.pending and result.op_id not in found:
                    found[result.op_id] = None
                    stack += self._ops[result.op_id].inputs if result.op_id in self._ops else ()
        return tuple(found)

    def pending_ops(self, values: Iterable[Value]) -> int:
        """Count the ops that the data of these values need and that are not computed yet."""
        self._sync()
        wanted = dict.fromkeys(r for value in values for r in self._own(value).results() if r.pending)
        return len(self._plan([self._maker(result) for result in wanted])[0])

    def verify(self, expected: Mapping[str, Expected | Sequence[Any]]) -> Verification:
        """Compare regions of memory with arrays, after computing what they need; ExecutionError when that fails.

        `expected` gives, by the name that failures are reported under, an `Expected` or a sequence (access, array,
        rtol, atol) whose access is an `Access` or (space, where). Tolerances may be left out: the dtype has some.
        """
        return verify_regions(self, expected)

    def verify_ops(
        self, expected: Mapping[OpId, Array] | None = None, where: Where | None = None
    ) -> Verification:
        """Compare every op's result with `expected`, or else every op with itself computed anew (see `OpCheck`).

        What was dropped is computed once more, and dropped again. `where` says where in a kernel an op was issued.
        """
        if self.inputs is not None:
            raise ExecutionError("Comparing single ops must be done on the data of the run; leave inputs out.")
        self._need_data()
        self._sync()
        check = OpCheck(self.function, expected, where or (lambda record: ""))
        self._visit(check)
        return check.verdict()

    def _visit(self, check: OpCheck) -> None:
        """Have every op of the log checked while all that it reads is there; compute what is not."""
        ready = list(self._ready())
        copies = list(self._copies()) if check.expected is None else []
        for op in (*self._ops.values(), *ready, *copies):
            if op.done:
                op.done = False
                self._lifetimes.expect(op)

        def seen(op: PlannedOp) -> None:
            record = self._record(op)
            if op.result.op_id[0] == _COPIED:
                check.copy(op.row, record, op.inputs[0], op.inputs[-1])
            else:
                check.result(op.row, record, op.result, op.inputs)

        self._execute([*self._ops.values(), *ready, *copies], set(), self._lifetimes.sweep(set()), seen)

    def _ready(self) -> Iterable[PlannedOp]:
        """Yield the ops whose results kernels had while they ran."""
        if isinstance(self.op_log, OpLog):
            for row, t_start, made, inputs in self.op_log.columns.makers(0, ArrayValue):
                assert made.writer is not None
                result = ResultValue(made.writer, made.shape, made.dtype)
                result.fill(made.array())
                yield PlannedOp(row, t_start, result, inputs, done=True)

    def _copies(self) -> Iterable[PlannedOp]:
        """Yield what moved data as ops whose results are there and of no use; none where records name addresses."""
        if not isinstance(self.op_log, OpLog) or self._fork is not None:
            return
        for row, t_start, inputs in self.op_log.columns.copies():
            nothing = ResultValue((_COPIED, row), (0,), "int8")
            nothing.fill(np.empty(0, np.int8))
            yield PlannedOp(row, t_start, nothing, inputs, done=True)

    def record_of(self, result: ResultValue) -> OpRecord | None:
        """Return the record that computes a result, if the log has it."""
        self._sync()
        op = self._ops.get(result.op_id)
        return None if op is None else self._record(op, dependencies=True)

    def results(self) -> Iterable[tuple[OpRecord, ResultValue]]:
        """Yield every op with the value that it computes, in no particular order."""
        self._sync()
        for op in self._ops.values():
            yield self._record(op, dependencies=True), op.result

    def function(self, record: OpRecord) -> tuple[str, Any]:
        """Return the name and the function that computes a record."""
        return self._functions.of(record)

    def _need_data(self) -> None:
        if not self.memory.data:
            raise NoDataError("Phase 2 must have data, and this run kept shapes only; run with data to compute.")

    def _sync(self) -> None:
        """Take in the records that the log got since the last time."""
        if self._seen == len(self.op_log):
            return
        first, self._seen = self._seen, len(self.op_log)
        if isinstance(self.op_log, OpLog):
            columns = self.op_log.columns
            if self._fork is None and not any(
                names_only_addresses(self.op_log.at_row(row, dependencies=False)) for row in columns.example_rows(first)
            ):
                with no_automatic_collection():
                    made = list(columns.makers(first, ResultValue))
                    numbers = self._kinds.of(columns, [each[0] for each in made])
                    for (row, t_start, result, inputs), number in zip(made, numbers, strict=True):
                        self._add(self._op(row, t_start, result, inputs, number=number))
                return
            rows = [row for row in np.asarray(columns.order()).tolist() if row >= first]
            records = [self.op_log.at_row(row) for row in rows]
            order: Iterable[int] = range(len(rows))
        else:
            rows = list(range(first, len(self.op_log)))
            records = list(self.op_log[first:])
            order = in_execution_order(records)
        self._bind(rows, records, order)

    def _bind(self, rows: Sequence[int], records: Sequence[OpRecord], order: Iterable[int]) -> None:
        """Replay records on a fork of memory, so that those that name only addresses get values."""
        if self._fork is None:
            self._fork = self.memory.snapshot()
        for at in order:
            row, record = rows[at], records[at]
            if record.stage_of is not None:
                continue
            bound = bind(record, record.op_id or (-1, row), self._fork)
            result = None if bound.writes is None else bound.writes.value
            if isinstance(result, ResultValue) and result.op_id == bound.op_id:
                inputs = tuple(a.value for a in bound.reads if a.value is not None)
                self._add(self._op(row, bound.t_start, result, inputs, bound))

    def _own(self, value: Value) -> Value:
        """Return what stands for a value of the log here: itself, unless the inputs are others."""
        if self.inputs is None:
            return value
        if self._other is None:
            self._other = Substitution(self.inputs)
        return self._other.of(value)

    def _own_result(self, result: ResultValue) -> ResultValue:
        own = self._own(result)
        assert isinstance(own, ResultValue), "a result is made anew as a result"
        return own

    def _op(
        self,
        row: int,
        t_start: float,
        result: ResultValue,
        inputs: tuple[Value, ...],
        record: OpRecord | None = None,
        number: int = -1,
    ) -> PlannedOp:
        if self.inputs is not None:
            result, inputs = self._own_result(result), tuple(map(self._own, inputs))
        return PlannedOp(row, t_start, result, inputs, record, number=number)

    def _add(self, op: PlannedOp) -> None:
        op.done = op.result.computed
        self._ops[op.result.op_id] = op
        if not op.done:
            self._lifetimes.expect(op)

    def _record(self, op: PlannedOp, dependencies: bool = False) -> OpRecord:
        if op.record is not None:
            return op.record
        assert isinstance(self.op_log, OpLog)
        return self.op_log.at_row(op.row, dependencies)

    def _maker(self, result: ResultValue) -> PlannedOp:
        op = self._ops.get(result.op_id)
        if op is None or op.result is not result:
            pe, issue = result.op_id
            raise ExecutionError(
                f"The result of op {issue} of PE {pe} must be made by a record of the log, and none makes it; "
                "let the run end before computing."
            )
        return op

    def _execute(
        self,
        targets: Sequence[PlannedOp],
        wanted: set[ResultValue],
        kept: set[ResultValue] | None,
        seen: Callable[[PlannedOp], None] | None = None,
    ) -> None:
        """Compute `targets` and what they need; keep what memory or an op of the log to come still reads.

        `kept` are the results that stay. When it is None, results that nobody reads are set aside until they are worth
        a walk over all that memory holds. `seen` is called with each op before anything that it reads is dropped; then
        only what is pending is computed.
        """
        with no_automatic_collection(), np.errstate(all="ignore"):  # infinities and NaNs are results like any other
            waits, dependents = self._plan(targets)
            ready = [(op.t_start, op.row, op) for op, count in waits.items() if not count]
            heapq.heapify(ready)
            left = len(waits)
            while ready:
                stack, fresh = self._begun(self._window(ready))
                room = _WINDOW_BYTES
                while stack:
                    op = stack.pop()
                    left -= 1
                    if op.result.pending:
                        self._calculation.one(op)
                    elif op not in fresh:
                        self.on_computed(1)
                    if seen is not None:
                        seen(op)
                    if kept is None and self._lifetimes.loose_bytes > _WINDOW_BYTES:
                        kept = self._lifetimes.sweep(wanted)
                    self._lifetimes.finish(op, wanted, kept)
                    for later in reversed(dependents.pop(op.result, ())):
                        waits[later] -= 1
                        if waits[later]:
                            continue
                        if room > 0 and not self._is_grouped(later):
                            room -= later.result.nbytes
                            stack.append(later)
                        else:
                            heapq.heappush(ready, (later.t_start, later.row, later))
        if left:
            stuck = self._record(next(op for op, count in waits.items() if count))
            raise ExecutionError(f"{stuck} must not read its own result, through other ops or directly.")

    def _plan(self, targets: Sequence[PlannedOp]) -> tuple[dict[PlannedOp, int], dict[ResultValue, list[PlannedOp]]]:
        """Return, for the ops to compute, how many pending results each waits for, and who waits for each result."""
        waits: dict[PlannedOp, int] = {}
        dependents: dict[ResultValue, list[PlannedOp]] = {}
        stack = list(targets)
        while stack:
            op = stack.pop()
            if op in waits:
                continue
            count = 0
            for result in op.reads():
                if result.pending:
                    count += 1
                    others = dependents.get(result)
                    if others is None:
                        dependents[result] = [op]
                        stack.append(self._maker(result))
                    else:
                        others.append(op)
            waits[op] = count
        return waits, dependents

    def _window(self, ready: list[tuple[float, int, PlannedOp]]) -> list[PlannedOp]:
        """Take ready ops in log order, up to a number of them and of result bytes, and at least one."""
        window: list[PlannedOp] = []
        nbytes = 0
        while ready and (not window or (len(window) < _WINDOW_OPS and nbytes < _WINDOW_BYTES)):
            window.append(heapq.heappop(ready)[2])
            nbytes += window[-1].result.nbytes
        return window

    def _begun(self, window: Sequence[PlannedOp]) -> tuple[list[PlannedOp], set[PlannedOp]]:
        """Compute the products and large ops of a window; return its ops, these on top, and these by themselves."""
        grouped = [op for op in window if self._is_grouped(op)]
        self._calculation.many(grouped)
        fresh = set(grouped)
        stack = [op for op in reversed(window) if op not in fresh] if fresh else list(reversed(window))
        return stack + grouped[::-1], fresh

    def _is_grouped(self, op: PlannedOp) -> bool:
        """Whether an op is to be computed, and not by itself: one of core's GEMMs, or a large one of core's."""
        if not op.result.pending:
            return False
        kind = op.kind or self._calculation.kind_of(op)
        return kind.is_product or (kind.alike and op.result.nbytes >= _LARGE_BYTES)

    def _held(self) -> Iterable[ResultValue]:
        self.memory.compact()
        return map(self._own_result, self.store.results())
