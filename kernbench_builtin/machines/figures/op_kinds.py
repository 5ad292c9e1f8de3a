"""The op log by name of op: how many there were, how long they took, and what they moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernbench_builtin.machines.figures.columns import ColumnTable, TextColumn
from kernbench_core.oplog.columns import ROWS_AT_ONCE

if TYPE_CHECKING:
    from kernbench_core.oplog.log import OpLog


def op_kinds(op_log: OpLog) -> ColumnTable:
    """Return a row for each `kind` and `name` of ops: how many (`ops`), for how long (`ns`, together), and `bytes`.

    The stages of composites are ops of their own here, as in the log. Bytes are those of copies, as they say it.
    """
    columns = op_log.columns
    signatures = [(str(template.sig[0]), str(template.sig[1])) for template in columns.templates]
    known = sorted(set(signatures))
    kind_of = np.array([known.index(each) for each in signatures], np.int64)
    sums = np.zeros((3, len(known)))
    moved = columns.integers("nbytes")
    for first in range(0, len(op_log), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        kinds = kind_of[np.asarray(columns.template[rows], np.int64)]
        took = np.asarray(columns.t_end[rows]) - np.asarray(columns.t_start[rows])
        for number, weights in enumerate((None, took, moved[rows])):
            sums[number] += np.bincount(kinds, weights, len(known))
    return ColumnTable(
        len(known),
        {
            "kind": TextColumn.of(kind for kind, _ in known),
            "name": TextColumn.of(name for _, name in known),
            "ops": sums[0].astype(np.int64),
            "ns": sums[1],
            "bytes": sums[2].astype(np.int64),
        },
    )
