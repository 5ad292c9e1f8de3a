"""Write an op log as Chrome trace JSON, which Perfetto and chrome://tracing open.

A process is a die (`sip0.cube0`), a thread is a unit on it (`pe0.pe_gemm`), an op is a complete event.
Ops of one unit that overlap in time go to further threads of that unit; an event is drawn inside another
one only when it is a stage of it. Times are microseconds since the run began, to the picosecond.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import IO, Any

import attrs

PS_PER_NS = 1000
PS_PER_US = 1_000_000
_DIE = re.compile(r"(?:sip\d+\.(?:cube|io)\d+|[^.]+)")


@attrs.define
class _Lane:
    """One thread of the trace: the ops that are still open on it, outermost first."""

    number: int
    open: list[tuple[int, object]] = attrs.field(factory=list)

    def takes(self, start: int, owner: object) -> bool:
        """Say whether an op that starts at `start` ps may be drawn here: on free ground, or inside its owner."""
        while self.open and self.open[-1][0] <= start:
            self.open.pop()
        return not self.open or (owner is not None and self.open[-1][1] == owner)


def export(op_log: Iterable[Any], out: IO[bytes]) -> None:
    """Write every record of `op_log` to `out`; the bytes depend on the log alone."""
    lanes: dict[str, list[_Lane]] = {}
    placed = [(record, _place(lanes.setdefault(record.component_id, [_Lane(0)]), record)) for record in op_log]
    threads = _threads(lanes)
    out.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    separator = b""
    for event in _names(threads):
        out.write(separator + _line(event))
        separator = b",\n"
    for record, lane in placed:
        pid, tid, _, _ = threads[record.component_id, lane]
        out.write(separator + _event(record, pid, tid))
        separator = b",\n"
    out.write(b"\n]}\n")


def _place(lanes: list[_Lane], record: Any) -> int:
    """Return the number of the first lane of a unit that can hold `record`, opening a new one if none can."""
    start, end = _picoseconds(record.t_start), _picoseconds(record.t_end)
    for lane in lanes:
        if lane.takes(start, record.stage_of) and not (lane.open and end > lane.open[-1][0]):
            break
    else:
        lane = _Lane(len(lanes))
        lanes.append(lane)
    lane.open.append((end, record.op_id))
    return lane.number


def _threads(lanes: Mapping[str, list[_Lane]]) -> dict[tuple[str, int], tuple[int, int, str, str]]:
    """Number dies and units in natural order: (unit, lane) -> (pid, tid, die name, thread name)."""
    numbered: dict[tuple[str, int], tuple[int, int, str, str]] = {}
    pids: dict[str, int] = {}
    tids: dict[str, int] = {}
    for component in sorted(lanes, key=_natural):
        die = die_of(component)
        pid = pids.setdefault(die, len(pids) + 1)
        unit = component[len(die) + 1 :] or component
        for lane in lanes[component]:
            tids[die] = tids.get(die, 0) + 1
            name = unit if lane.number == 0 else f"{unit} ({lane.number + 1})"
            numbered[component, lane.number] = (pid, tids[die], die, name)
    return numbered


def _names(threads: Mapping[tuple[str, int], tuple[int, int, str, str]]) -> Iterable[dict[str, object]]:
    """Yield the metadata events: each die's name and place once, then each of its threads'."""
    seen: set[int] = set()
    for pid, tid, die, name in threads.values():
        if pid not in seen:
            seen.add(pid)
            yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": die}}
            yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}


def _event(record: Any, pid: int, tid: int) -> bytes:
    start, end = _picoseconds(record.t_start), _picoseconds(record.t_end)
    plain = ((key, _plain(value)) for key, value in record.params.items())
    args: dict[str, object] = {key: value for key, value in plain if value is not None}
    for key in ("op_id", "stage_of"):
        if getattr(record, key) is not None:
            args[key] = list(getattr(record, key))
    head = _line({"name": record.op_name, "cat": record.op_kind, "ph": "X", "pid": pid, "tid": tid})
    # Times are written digit by digit: a quotient of floats would make touching ops overlap by a rounding error.
    times = f',"ts":{_microseconds(start)},"dur":{_microseconds(end - start)},"args":'
    return head[:-1] + times.encode() + _line(args) + b"}"


def die_of(component: str) -> str:
    """Return the die that a node is on: `sip0.cube3` or `sip0.io0`; a node on no die is its own first name."""
    match = _DIE.match(component)
    return match.group() if match else component


def _picoseconds(ns: float) -> int:
    return round(ns * PS_PER_NS)


def _microseconds(ps: int) -> str:
    return f"{ps // PS_PER_US}.{ps % PS_PER_US:06d}"


def _plain(value: object) -> object:
    """Return `value` if JSON can hold it in little space (scalars, short tuples of scalars), else None."""
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, tuple | list) and len(value) <= 8:
        items = [_plain(item) for item in value]
        return None if None in items else items
    return None


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key under which cube2 comes before cube10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _line(event: Mapping[str, object]) -> bytes:
    return json.dumps(event, separators=(",", ":"), sort_keys=False, allow_nan=False).encode()
