"""A trace is Chrome JSON: dies, units, numeric times, nothing nested that is not contained, the same bytes."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.exporters.chrome_trace import die_of, export
from kernbench_core.oplog.log import OpRecord

GRID_NS = 2.0**-16


def record(component: str, start: float, end: float, name: str = "op", **fields: Any) -> OpRecord:
    return OpRecord(start, end, component, "memory", name, fields.pop("params", {}), **fields)


def exported(records: list[OpRecord]) -> list[dict[str, Any]]:
    """Export and read back, with times as exact decimals."""
    out = io.BytesIO()
    export(records, out)
    found = json.loads(out.getvalue(), parse_float=Decimal)
    assert found["displayTimeUnit"] == "ns"
    events: list[dict[str, Any]] = found["traceEvents"]
    return events


def names(events: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[str, str]]:
    """Return (process name, thread name) by (pid, tid)."""
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    return {
        (e["pid"], e["tid"]): (processes[e["pid"]], e["args"]["name"]) for e in events if e["name"] == "thread_name"
    }


def test_processes_are_dies_and_threads_are_units() -> None:
    """Names are those of the nodes, in natural order, numbered from 1."""
    units = ["sip0.cube10.pe0.pe_dma", "sip0.cube2.pe0.pe_gemm", "sip0.cube2.hbm_ctrl1", "sip0.io0.io_cpu", "host"]
    events = exported([record(unit, 0.0, 1.0) for unit in units])
    assert names(events) == {
        (1, 1): ("host", "host"),
        (2, 1): ("sip0.cube2", "hbm_ctrl1"),
        (2, 2): ("sip0.cube2", "pe0.pe_gemm"),
        (3, 1): ("sip0.cube10", "pe0.pe_dma"),
        (4, 1): ("sip0.io0", "io_cpu"),
    }
    assert [(e["name"], e["pid"], e["args"]["sort_index"]) for e in events if e["name"] == "process_sort_index"] == [
        ("process_sort_index", pid, pid) for pid in (1, 2, 3, 4)
    ]


def test_an_op_is_a_complete_event_in_microseconds() -> None:
    """Times are numbers to the picosecond; params that JSON can hold are kept."""
    params = {"M": 64, "shape": (2, 3), "scale": 0.5, "value": object(), "bad": float("nan")}
    op = record("sip0.cube0.pe0.pe_gemm", 1500.25, 2750.5, "gemm_f16", params=params, op_id=(3, 7))
    assert [e for e in exported([op]) if e["ph"] == "X"] == [
        {
            "name": "gemm_f16",
            "cat": "memory",
            "ph": "X",
            "pid": 1,
            "tid": 1,
            "ts": Decimal("1.500250"),
            "dur": Decimal("1.250250"),
            "args": {"M": 64, "shape": [2, 3], "scale": Decimal("0.5"), "bad": "nan", "op_id": [3, 7]},
        }
    ]


def test_overlapping_ops_of_one_unit_go_to_further_threads() -> None:
    """Several servers are several threads; a thread is used again when it is free."""
    unit = "sip0.cube0.pe0.pe_dma"
    events = exported([record(unit, 0, 10), record(unit, 2, 5), record(unit, 5, 12), record(unit, 10, 11)])
    assert [e["tid"] for e in events if e["ph"] == "X"] == [1, 2, 2, 1]
    assert sorted(thread for _, thread in names(events).values()) == ["pe0.pe_dma", "pe0.pe_dma (2)"]


def test_a_stage_is_drawn_inside_its_op() -> None:
    """Only what is a stage of an op, on the same unit and within its time, is nested in it."""
    unit = "sip0.cube0.pe0.pe_scheduler"
    whole = record(unit, 0, 10, op_id=(0, 1))
    inside = record(unit, 2, 5, stage_of=(0, 1))
    other = record(unit, 5, 6, stage_of=(0, 2))
    beyond = record(unit, 7, 11, stage_of=(0, 1))
    events = exported([whole, inside, other, beyond])
    assert [e["tid"] for e in events if e["ph"] == "X"] == [1, 1, 2, 2]


grid_times = st.integers(0, 200).map(lambda n: n * 1000 * GRID_NS)
ops = st.lists(
    st.tuples(st.sampled_from(["sip0.cube0.pe0.pe_dma", "sip0.cube0.pe1.pe_dma"]), grid_times, grid_times,
              st.sampled_from([None, 1, 2])),
    max_size=30,
)  # fmt: skip


@given(ops)
def test_events_of_a_thread_are_apart_or_contained(drawn: list[tuple[str, float, float, int | None]]) -> None:
    """Whatever the log, two events of a thread do not overlap unless one is the other's stage, and bytes are stable."""
    records = [
        record(unit, start, start + length, op_id=None if stage else (0, 1), stage_of=(0, stage) if stage else None)
        for unit, start, length, stage in sorted(drawn, key=lambda op: (op[1], op[0]))
    ]
    first, second = io.BytesIO(), io.BytesIO()
    export(records, first)
    export(iter(records), second)
    assert first.getvalue() == second.getvalue()
    threads = defaultdict(list)
    for event in exported(records):
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append(event)
    assert sum(len(events) for events in threads.values()) == len(records)
    for events in threads.values():
        for i, early in enumerate(events):
            for late in events[i + 1 :]:
                apart = late["ts"] >= early["ts"] + early["dur"]
                contained = late["ts"] + late["dur"] <= early["ts"] + early["dur"]
                assert apart or (contained and late["args"]["stage_of"] == early["args"]["op_id"])


def test_die_of() -> None:
    """A die is a cube or an IO chiplet; anything else stands for itself."""
    assert die_of("sip0.cube3.pe5.pe_gemm") == "sip0.cube3"
    assert die_of("sip1.io0.pcie_ep") == "sip1.io0"
    assert die_of("fabric.switch0") == "fabric"
    assert die_of("host") == "host"
