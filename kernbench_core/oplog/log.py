"""The op log: what each logged message did, when, and on which values; the only thing phase 1 hands to phase 2.

A message describes itself (`OpDescription`), the logger adds the times, the log keeps it in columns, and `OpRecord` is
what a reader gets back. Kernbench's own records name the values they read and write; records of other programs may
name addresses only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from attrs import field, frozen

from kernbench_core.oplog.columns import Columns
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.spill import chunks
from kernbench_core.oplog.writing import SPILL_ROWS
from kernbench_core.values.lineage import made_for
from kernbench_core.values.value import OpId

if TYPE_CHECKING:
    from kernbench_core.values.memory_store import MemoryStore


@frozen(eq=False, repr=False)
class OpRecord:
    """One op of the log: the seven fields that describe it, then its identity, its accesses and its function.

    Times are in ns: `t_start` when its service begins, `t_end` when it ends. `dependency_ids` are positions in the log
    of the ops that make what this one reads.
    """

    t_start: float
    t_end: float
    component_id: str
    op_kind: str
    op_name: str
    params: dict[str, Any]
    dependency_ids: list[int] = field(factory=list)
    op_id: OpId | None = None
    stage_of: OpId | None = None
    reads: tuple[Access, ...] = ()
    writes: Access | None = None
    function: str | None = None

    def __str__(self) -> str:
        op = "" if self.op_id is None or self.op_id[0] < 0 else f"op {self.op_id[1]} of PE {self.op_id[0]}, "
        return f"{self.op_name} ({op}{self.component_id}, {self.t_start:.3f} ns)"

    def __repr__(self) -> str:
        op = "" if self.op_id is None or self.op_id[0] < 0 else f", op {self.op_id[1]} of PE {self.op_id[0]}"
        shape = self.params.get("shape")
        what = "" if shape is None else f", {self.params.get('dtype', '')}{list(shape)}"
        return (
            f"<OpRecord {self.op_name} on {self.component_id}, {self.t_start:.3f} to {self.t_end:.3f} ns{op}{what}>"
        )


class OpLog(Sequence[OpRecord]):
    """All op records, in the order (t_start, component, sequence of that component).

    Records may be appended in any order. They are kept in columns: a million of them take about 75 MB, the values
    they name counted apart; each `spill_rows` of them go to temporary files. With `spill_values` (for runs without
    data) the values go too. Indexing rebuilds one record. `store` is the memory of the run that the log is of, None for
    a log that was made by hand.
    """

    store: MemoryStore | None = None

    def __init__(self, spill_rows: int = SPILL_ROWS, spill_values: bool = False) -> None:
        self.columns = Columns(spill_rows, spill_values)
        self._makers: dict[OpId, int] = {}
        self._makers_until = -1

    def append(
        self, t_start: float, t_end: float, component_id: str, description: OpDescription, sequence: int | None = None
    ) -> None:
        """Add one op; `sequence` orders ops of one component that start together (default: as appended)."""
        self.columns.append(t_start, t_end, component_id, description, sequence)

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, index: int) -> OpRecord: ...

    @overload
    def __getitem__(self, index: slice) -> list[OpRecord]: ...

    def __getitem__(self, index: int | slice) -> OpRecord | list[OpRecord]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"An op log of {len(self)} records has no record {index}.")
        return self.at_row(int(self.columns.order()[index]))

    def __iter__(self) -> Iterator[OpRecord]:
        for rows in chunks(self.columns.order()):
            for row in rows.tolist():
                yield self.at_row(row)

    def since(self, count: int) -> Iterator[OpRecord]:
        """Yield the records that were appended after the first `count`, as they came, without their dependencies."""
        for row in range(count, len(self)):
            yield self.at_row(row, dependencies=False)

    def __repr__(self) -> str:
        return f"OpLog({len(self)} records)"

    def sha256(self) -> str:
        """Return the hash of a canonical encoding of every record, in order, without its values.

        It is the same in every process and for every order of appending; paths, wall times and versions are not in it.
        """
        return self.columns.sha256()

    def makers(self) -> Mapping[OpId, int]:
        """Return the position in the log of the record that computes each op."""
        if self._makers_until != len(self):
            self._makers = dict(self.columns.op_positions())
            self._makers_until = len(self)
        return self._makers

    def dependencies(self, record: OpRecord) -> list[int]:
        """Return the positions of the ops that made what a record reads, ascending; never its own.

        These are the ops that computed the data, the loads that brought it, and for a record that reads memory the ops
        that wrote what it found there.
        """
        makers = self.makers()
        found: set[OpId] = set()
        for access in record.reads:
            value = access.value
            if value is None:
                continue
            found.update(made_for(value, record.op_id))
            found.update(result.op_id for result in value.results())
        return sorted(makers[op] for op in found if op in makers and op != record.op_id)

    def at_row(self, row: int, dependencies: bool = True) -> OpRecord:
        """Rebuild the record that was appended as number `row`; `dependencies` need the order of the whole log."""
        t_start, t_end, component, head, params, accesses = self.columns.row(row)
        kind, name, function, op_id, stage_of, writes_last = head
        made = [Access(space, regions, value) for space, regions, value in accesses]
        writes = made.pop() if writes_last else None
        record = OpRecord(
            t_start, t_end, component, kind, name, params, [], op_id, stage_of, tuple(made), writes, function
        )
        if dependencies and made and stage_of is None:
            record.dependency_ids.extend(self.dependencies(record))
        return record
