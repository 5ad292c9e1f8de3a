"""The op log as plain columns: when, where, what and how many bytes, without rebuilding a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

if TYPE_CHECKING:
    from kernbench_core.oplog.log import OpLog

_Column = np.ndarray[Any, Any]


@frozen(eq=False)
class Outline:
    """One row for each record, in the order in which they were appended.

    `component` and `name` are numbers of `components` and `names`; times are ns. Ops are given as PE index and issue
    number (-1: none), once for what a record computes and once for what it is a stage of. `nbytes` is the parameter of
    that name, 0 where there is none.
    """

    components: tuple[str, ...]
    names: tuple[str, ...]
    start_ns: _Column
    end_ns: _Column
    component: _Column
    name: _Column
    op_pe: _Column
    op_issue: _Column
    stage_pe: _Column
    stage_issue: _Column
    nbytes: _Column


def outline(log: OpLog) -> Outline:
    """Return the columns of a log."""
    columns = log.columns
    templates = columns.templates
    names = tuple(dict.fromkeys(str(each.sig[1]) for each in templates))
    number = {name: at for at, name in enumerate(names)}
    template = np.array(columns.template[:], np.int64)
    name = np.array([number[str(each.sig[1])] for each in templates], np.int64)
    return Outline(
        tuple(columns.components),
        names,
        np.array(columns.t_start[:], np.float64),
        np.array(columns.t_end[:], np.float64),
        np.array(columns.component[:], np.int64),
        name[template] if len(template) else np.empty(0, np.int64),
        np.array(columns.op_pe[:], np.int64),
        np.array(columns.op_issue[:], np.int64),
        np.array(columns.stage_pe[:], np.int64),
        np.array(columns.stage_issue[:], np.int64),
        columns.integers("nbytes"),
    )
