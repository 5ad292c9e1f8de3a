"""The messages that PEs send each other in a run: figures that its advice is read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernbench_core.oplog.spill import take

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_core.host.session import GraphEngine


def collector(session: GraphEngine, launch: LaunchFigures) -> tuple[str, int, int]:
    """Return the PE that sends and receives most messages of a launch: its name, how many, and how many there are.

    "" and 0 where it has less than twice the mean, as in a ring.
    """
    columns, pes = session.op_log.columns, session.hardware.layout.pes
    names = np.array([template.sig[1] for template in columns.templates])
    start, template = np.asarray(columns.t_start[:]), np.asarray(columns.template[:])
    during = (start >= launch.started_ns) & (start <= launch.ended_ns)
    sends, receives = (np.flatnonzero(during & (names == name)[template]) for name in ("ipcq_send", "ipcq_recv"))
    if not len(sends):
        return "", 0, 0
    each = np.bincount(np.concatenate([take(columns.op_pe, rows) for rows in (sends, receives)]), minlength=len(pes))
    most = int(each.argmax())
    if each[most] < 2 * each[each > 0].mean():
        return "", 0, len(sends)
    return pes[most].prefix, int(each[most]), len(sends)


def message_bytes(session: GraphEngine) -> float:
    """Return the mean size of messages between PEs, in bytes; 0.0 where there are none."""
    columns = session.op_log.columns
    times = np.bincount(np.asarray(columns.template[:]), minlength=len(columns.templates))
    total, sent = 0, 0
    for number in range(len(columns.templates)):
        form = columns.form(number)
        if form.op_name == "ipcq_send" and form.geometry[0][2] is not None:
            total += int(times[number]) * form.geometry[0][2] * form.geometry[0][3]
            sent += int(times[number])
    return total / sent if sent else 0.0
