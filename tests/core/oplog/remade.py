"""A log that is made of the records of another."""

from __future__ import annotations

from collections.abc import Iterable

from kernbench_core.oplog.description import OpDescription
from kernbench_core.oplog.log import OpLog, OpRecord


def op_log_of(records: Iterable[OpRecord]) -> OpLog:
    """Log what records say of themselves."""
    log = OpLog()
    for r in records:
        described = OpDescription(r.op_kind, r.op_name, r.params, r.reads, r.writes, r.op_id, r.stage_of, r.function)
        log.append(r.t_start, r.t_end, r.component_id, described)
    return log
