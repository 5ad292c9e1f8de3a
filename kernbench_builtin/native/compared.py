"""The times of the native engine beside those of the Python engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernbench_builtin.native.recording import UNITS, Recording
from kernbench_builtin.native.timing import NativeTimes, hardware_of, refusals, time_recording
from kernbench_core.errors import UsageError

if TYPE_CHECKING:
    from kernbench_core.host.session import GraphEngine

_MOST = 8


def compare(session: GraphEngine, recording: Recording) -> NativeTimes:
    """Time a run anew, on its own machine; UsageError where that cannot be done, with every cause."""
    hardware = hardware_of(session.machine, session.shared.loaded_plugins())
    found = refusals(recording, session.machine, hardware, as_it_was=True)
    if found:
        told = "\n".join(f"  {cause}" for cause in found)
        raise UsageError(f"--engine both must be given a run that the native engine can time, not one with:\n{told}")
    return time_recording(recording, hardware)


def differences(session: GraphEngine, recording: Recording, timed: NativeTimes) -> list[str]:
    """Say what differs: ops first, then launches, requests and wires; nothing where all is equal."""
    found = [*_ops(session, recording, timed), *_launches(session, timed)]
    return [*found, *_requests(session, timed), *_wires(session, timed)]


def _ops(session: GraphEngine, recording: Recording, timed: NativeTimes) -> list[str]:
    columns = session.op_log.columns
    pes, numbers = np.asarray(columns.op_pe[:]), np.asarray(columns.op_issue[:])
    starts, ends = np.asarray(columns.t_start[:]), np.asarray(columns.t_end[:])
    keys = {(int(pe), int(number)): row for row, (pe, number) in enumerate(zip(pes, numbers, strict=True)) if pe >= 0}
    found, count = [], 0
    for command, native in zip(recording.commands, timed.commands.tolist(), strict=True):
        row = keys.pop((command[0], command[1]), None)
        python = [-1.0, -1.0] if row is None else [float(starts[row]), float(ends[row])]
        if python != native:
            count += 1
            unit = f"{session.machine.design.pes[command[0]].prefix}.{UNITS[command[3]]}"
            if count <= _MOST:
                told = f"{_span(python)} and natively {_span(native)}"
                found.append(f"  op {command[1]} of PE {command[0]} at {unit}: {told}")
    if keys:
        found.append(f"  {len(keys):,} ops of the log were not recorded")
    return [*found, f"  {count - _MOST:,} more ops"] if count > _MOST else found


def _span(times: list[float]) -> str:
    return f"{times[0]!r} to {times[1]!r} ns"


def _launches(session: GraphEngine, timed: NativeTimes) -> list[str]:
    found: list[str] = []
    for number, handle in enumerate(session.shared.launches):
        launch = handle.launch
        for pe, start in launch.started_ns.items():
            python, native = [start, launch.ended_ns[pe]], timed.launches[pe, number].tolist()
            if python != native and len(found) < _MOST:
                found.append(f"  launch {number} on PE {pe}: {_span(python)} and natively {_span(native)}")
    return found


def _requests(session: GraphEngine, timed: NativeTimes) -> list[str]:
    found: list[str] = []
    for request, native in zip(session.shared.requests, timed.requests.tolist(), strict=True):
        answer = request.response
        python = [request.born, -1.0 if answer is None else answer.completed_ns]
        if python != native and len(found) < _MOST:
            found.append(f"  {type(request).__name__} of the host: {_span(python)} and natively {_span(native)}")
    total = session.hardware.env.now
    if total != timed.total_ns:
        found.append(f"  the total: {total!r} ns and natively {timed.total_ns!r} ns")
    return found


def _wires(session: GraphEngine, timed: NativeTimes) -> list[str]:
    found, count = [], 0
    names = ("busy_ns", "bytes_carried", "deliveries", "waits", "waited_ns", "longest_wait_ns", "available_at")
    wires = sorted(session.hardware.wires, key=lambda wire: wire.number)
    for wire, native in zip(wires, timed.wires.tolist(), strict=True):
        for name, there in zip(names, native, strict=True):
            here = float(getattr(wire, name))
            if here != there:
                count += 1
                if count <= _MOST:
                    found.append(f"  {name} of {wire.name}: {here!r} and natively {there!r}")
    return [*found, f"  {count - _MOST:,} more of wires"] if count > _MOST else found
