"""Phase 2: compute what the op log says, outside the simulation, and check the results.

The executor follows the values (see `op_graph`). Nothing here knows the engine or a component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import define, field

from kernbench_core.compute.backends import Backend, ComputedBy
from kernbench_core.compute.calculation import Calculation
from kernbench_core.compute.foreign_records import bind, in_execution_order, names_only_addresses
from kernbench_core.compute.kinds import KindNumbers
from kernbench_core.compute.lifetimes import Lifetimes
from kernbench_core.compute.named_functions import NamedFunctions
from kernbench_core.compute.op_graph import OpGraph
from kernbench_core.compute.planned_op import PlannedOp
from kernbench_core.compute.substitution import Substitution
from kernbench_core.compute.verification import Expected, Verification, verify_regions
from kernbench_core.errors import ExecutionError, NoDataError, UsageError
from kernbench_core.oplog.log import OpLog, OpRecord
from kernbench_core.process.collection import no_automatic_collection
from kernbench_core.values.arrays import Array
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.value import ArrayValue, OpId, ResultValue, Value
from kernbench_core.wording import brief

__all__ = ["DataExecutor", "Expected", "Verification"]

Where = Callable[[OpRecord], str]
"""Says where in a kernel an op was issued: " at file:line", or ""."""

#: The PE that is written for what moves data and makes none.
_COPIED = -2


class OpVisitor(Protocol):
    """What is shown the ops of a log one by one, while all that they read is there."""

    def result(self, row: int, record: OpRecord, result: ResultValue, inputs: tuple[Value, ...]) -> None:
        """Look at an op that has just been computed, or that was."""

    def copy(self, row: int, record: OpRecord, read: Value, written: Value) -> None:
        """Look at what moved data."""


def _check_backend(executor: object, attribute: object, given: object) -> None:
    if not isinstance(given, Backend):
        raise UsageError(
            f"backend of DataExecutor must be a Backend, not {brief(given)}; open_backend(plugins, 'torch') of "
            "kernbench_core.runs returns one by its name."
        )


@define(eq=False)
class DataExecutor:
    """Execute an op log on a memory store.

    `op_log` is an `OpLog`, or any sequence of `OpRecord`s (of another program, say); `memory` is that of phase 1, which
    is left as it is (default: the log's own, for that of a run). `functions` maps the op names of plug-ins to the
    "module:attr" that computes them. With `keep_all` no result is dropped: that is the debug mode. With `inputs` the
    same ops are computed on other data than the host wrote (see `substitution`), in results of their own: what other
    executors of this log computed stays. `backend` computes floats, numpy where none is given.
    `on_computed(number)` is called when so many ops more are computed. ExecutionError where an op cannot be computed,
    NoDataError after a run that kept shapes only, UsageError without a memory.

    >>> result = kb.run("vector-add", "tiny", {"n": 64, "block": 16})
    >>> executor = kb.DataExecutor(result.op_log)
    >>> executor.run()
    >>> [f"{record.op_name} -> {value.array().size}" for record, value in executor.results()]
    ['add -> 16', 'add -> 16', 'add -> 16', 'add -> 16']
    """

    op_log: OpLog | Sequence[OpRecord]
    memory: MemoryStore = field()
    functions: Mapping[str, str] | None = None
    keep_all: bool = False
    inputs: Mapping[ArrayValue, Array] | None = None
    backend: Backend = field(factory=Backend, validator=_check_backend)
    on_computed: Callable[[int], object] = field(default=lambda number: None, init=False)
    _other: Substitution | None = field(default=None, init=False)
    _lifetimes: Lifetimes = field(init=False)
    _calculation: Calculation = field(init=False)
    _graph: OpGraph = field(init=False)
    _kinds: KindNumbers = field(init=False)
    _fork: MemoryStore | None = field(default=None, init=False)
    _seen: int = field(default=0, init=False)
    _functions: NamedFunctions = field(init=False)

    @memory.default
    def _memory_of_log(self) -> MemoryStore:
        store = self.op_log.store if isinstance(self.op_log, OpLog) else None
        if store is None:
            raise UsageError(
                "DataExecutor must be given the memory of phase 1 for an op log that is no run's own; give it as the "
                "second argument: of a result it is `result.store`."
            )
        return store

    def __attrs_post_init__(self) -> None:
        self._functions = NamedFunctions(self.functions)
        self._lifetimes = Lifetimes(self._held, self.keep_all)
        computed: Callable[[int], object] = lambda number: self.on_computed(number)  # noqa: E731
        self._calculation = Calculation(self.backend, self._record, self.function, computed)
        self._graph = OpGraph(self._calculation, self._lifetimes, self._record, computed)
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
        self._graph.execute([op for op in self._graph.ops.values() if not op.done], set(), self._lifetimes.sweep(set()))

    def materialize(self, value: Value) -> Array:
        """Return the data of a value, computing just the ops that it needs; what is computed stays computed."""
        value = self._own(value)
        if value.pending:
            self._need_data()
            self._sync()
            wanted = value.results()
            self._graph.execute([self._graph.maker(r) for r in wanted if r.pending], set(wanted), None)
        return value.array()

    def makers(self, value: Value) -> tuple[OpId, ...]:
        """Return the ops that the data of a value needs and that are not computed, as far as the log has them."""
        self._sync()
        found, stack = dict[OpId, None](), [self._own(value)]
        while stack:
            for result in stack.pop().results():
                if result.pending and result.op_id not in found:
                    found[result.op_id] = None
                    stack += self._graph.ops[result.op_id].inputs if result.op_id in self._graph.ops else ()
        return tuple(found)

    def pending_ops(self, values: Iterable[Value]) -> int:
        """Count the ops that the data of these values need and that are not computed yet."""
        self._sync()
        wanted = dict.fromkeys(r for value in values for r in self._own(value).results() if r.pending)
        return len(self._graph.plan([self._graph.maker(result) for result in wanted])[0])

    def verify(self, expected: Mapping[str, Expected | Sequence[Any]]) -> Verification:
        """Compare regions of memory with arrays, after computing what they need; ExecutionError when that fails.

        `expected` gives, by the name that failures are reported under, an `Expected` or a sequence (access, array,
        rtol, atol) whose access is an `Access` or (space, where). Tolerances may be left out: the dtype has some.
        """
        return verify_regions(self, expected)

    def visit(self, visitor: OpVisitor, *, copies: bool = True) -> None:
        """Show every op of the log, and copies, while all that it reads is there; compute what is not.

        What was dropped is computed once more, and dropped again.
        """
        if self.inputs is not None:
            raise ExecutionError("Comparing single ops must be done on the data of the run; leave inputs out.")
        self._need_data()
        self._sync()
        ready = list(self._ready())
        moved = list(self._copies()) if copies else []
        for op in (*self._graph.ops.values(), *ready, *moved):
            if op.done:
                op.done = False
                self._lifetimes.expect(op)

        def seen(op: PlannedOp) -> None:
            record = self._record(op)
            if op.result.op_id[0] == _COPIED:
                visitor.copy(op.row, record, op.inputs[0], op.inputs[-1])
            else:
                visitor.result(op.row, record, op.result, op.inputs)

        self._graph.execute([*self._graph.ops.values(), *ready, *moved], set(), self._lifetimes.sweep(set()), seen)

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
        op = self._graph.ops.get(result.op_id)
        return None if op is None else self._record(op, dependencies=True)

    def results(self) -> Iterable[tuple[OpRecord, ResultValue]]:
        """Yield every op with the value that it computes, in no particular order."""
        self._sync()
        for op in self._graph.ops.values():
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
                    if self.inputs is not None:
                        made = [(row, at, *self._own_op(result, inputs)) for row, at, result, inputs in made]
                    self._graph.add_all(made, numbers)
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
                self._graph.add(PlannedOp(row, bound.t_start, *self._own_op(result, inputs), bound))

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

    def _own_op(self, result: ResultValue, inputs: tuple[Value, ...]) -> tuple[ResultValue, tuple[Value, ...]]:
        if self.inputs is None:
            return result, inputs
        return self._own_result(result), tuple(map(self._own, inputs))

    def _record(self, op: PlannedOp, dependencies: bool = False) -> OpRecord:
        if op.record is not None:
            return op.record
        assert isinstance(self.op_log, OpLog)
        return self.op_log.at_row(op.row, dependencies)

    def _held(self) -> Iterable[ResultValue]:
        self.memory.compact()
        return map(self._own_result, self.store.results())
