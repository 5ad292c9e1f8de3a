"""Every component of a machine, with what it served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kernbench_builtin.machines.figures.columns import ColumnTable, TextColumn
from kernbench_core.oplog.columns import ROWS_AT_ONCE

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.oplog.log import OpLog

#: What may be added up over components, with its type.
_SUMMED: Final = {
    "served": np.int64, "ops": np.int64, "busy_ns": np.float64, "waits": np.int64, "waited_ns": np.float64,
}  # fmt: skip


def components(hardware: Hardware, op_log: OpLog) -> ColumnTable:
    """Return the components, used or not, in the order of the machine; times are ns.

    `served` counts the messages that a component served, `ops` the records of the op log that are its own. `busy_ns` is
    for how long its `servers` were busy, together; it is 0 for a pure latency, which takes up no capacity. `waits` and
    `waited_ns` are of messages that queued at it.
    """
    total, found = hardware.env.now, [*hardware.components.values()]
    logged = np.zeros(len(op_log.columns.components) + 1, np.int64)
    for first in range(0, len(op_log), ROWS_AT_ONCE):
        rows = np.asarray(op_log.columns.component[first : first + ROWS_AT_ONCE], np.int64)
        logged += np.bincount(rows, minlength=len(logged))
    numbers = op_log.columns.components
    return ColumnTable(
        len(found),
        {
            "name": TextColumn.of(each.id for each in found),
            "kind": TextColumn.of(each.node.kind for each in found),
            "impl": TextColumn.of(each.node.impl for each in found),
            "servers": np.array([each.servers for each in found], np.int64),
            "served": np.array([each.served for each in found], np.int64),
            "ops": np.array([logged[numbers.get(each.id, -1)] for each in found], np.int64),
            "busy_ns": np.array([each.busy_by(total) for each in found]),
            "waits": np.array([each.waits for each in found], np.int64),
            "waited_ns": np.array([each.waited_ns for each in found]),
        },
    )


def component_kinds(table: ColumnTable) -> ColumnTable:
    """Return a row for each kind of components: how many there are, and their figures together."""
    kinds = sorted(set(table["kind"])) if len(table) else []
    of = np.array([kinds.index(kind) for kind in table["kind"]] if len(table) else [], np.int64)
    sums = {
        name: np.bincount(of, table[name] if len(table) else None, len(kinds)).astype(kind)
        for name, kind in _SUMMED.items()
    }
    count = np.bincount(of, minlength=len(kinds))
    return ColumnTable(len(kinds), {"kind": TextColumn.of(kinds), "components": count, **sums})
