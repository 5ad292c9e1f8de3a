"""The op log by column: what a notebook sorts and sums."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernbench_builtin.machines.figures.columns import ColumnTable, TextColumn

if TYPE_CHECKING:
    from kernbench_core.oplog.log import OpLog


def op_columns(op_log: OpLog) -> ColumnTable:
    """Return a row for each record of a log, in its order; nothing is read before a column is looked at.

    `pe` and `issue` are the op's id, -1 where it has none; of a stage of a composite, `stage_of` is the composite's
    issue number, -1 elsewhere. `read_bytes` and `written_bytes` are those of the regions that a record names.
    """
    log = _Log(op_log)
    return ColumnTable(
        len(op_log),
        {
            "t_start": lambda: log.taken(op_log.columns.t_start),
            "t_end": lambda: log.taken(op_log.columns.t_end),
            "component": lambda: TextColumn(log.taken(op_log.columns.component), tuple(op_log.columns.components)),
            "kind": lambda: log.of_template(0),
            "name": lambda: log.of_template(1),
            "pe": lambda: log.taken(op_log.columns.op_pe),
            "issue": lambda: log.taken(op_log.columns.op_issue),
            "stage_of": lambda: log.taken(op_log.columns.stage_issue),
            "read_bytes": lambda: log.nbytes(written=False),
            "written_bytes": lambda: log.nbytes(written=True),
        },
    )


def masked_share(ops: ColumnTable) -> float:
    """Return which share of the blocks of DMAs masks left out: one side of a DMA is in HBM, the other is the block."""
    moves = np.isin(ops["name"], ("dma_read", "dma_write"))
    read, written = ops["read_bytes"][moves], ops["written_bytes"][moves]
    blocks = int(np.maximum(read, written).sum())
    return 1.0 - int(np.minimum(read, written).sum()) / blocks if blocks else 0.0


class _Log:
    """Take columns of a log in the order of its records."""

    def __init__(self, op_log: OpLog) -> None:
        self._op_log = op_log

    @cached_property
    def _rows(self) -> npt.NDArray[np.intp]:
        return np.asarray(self._op_log.columns.order()[:])

    def taken(self, column: Any) -> npt.NDArray[Any]:
        """Return a column in order."""
        return np.asarray(column[:])[self._rows]

    def of_template(self, part: int) -> TextColumn:
        """Return what stands at a place of each record's template."""
        texts = tuple(str(template.sig[part]) for template in self._op_log.columns.templates)
        return TextColumn(self.taken(self._op_log.columns.template), texts)

    def nbytes(self, written: bool) -> npt.NDArray[np.int64]:
        """Return the bytes of the regions that each record reads, or writes; alike records have alike regions."""
        columns = self._op_log.columns
        found = np.zeros(len(columns.templates), np.int64)
        varies = np.zeros(len(columns.templates), bool)
        for number, template in enumerate(columns.templates):
            writes, accesses = template.sig[3], template.sig[4]
            regions = [template.sig[5 + 5 * at : 10 + 5 * at] for at in range(accesses)]
            wanted = regions[-1:] if written and writes else [] if written else regions[: accesses - bool(writes)]
            varies[number] = any(region[2] is None for region in wanted)
            found[number] = sum(region[2] * region[3] for region in wanted if region[2] is not None)
        numbers = np.asarray(columns.template[:])
        nbytes = found[numbers]
        for row in np.flatnonzero(varies[numbers]).tolist():
            record = self._op_log.at_row(row, dependencies=False)
            reads = sum(access.nbytes for access in record.reads)
            nbytes[row] = (0 if record.writes is None else record.writes.nbytes) if written else reads
        in_order: npt.NDArray[np.int64] = nbytes[self._rows]
        return in_order
