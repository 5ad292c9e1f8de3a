"""Records that name addresses only: turn them into ops on values, by replaying their accesses on a memory store.

Each record reads what the store holds at its turn and leaves a pending result where it writes; values are immutable,
so write-after-read and write-after-write hazards are gone once that is done, and read-after-write ones are edges.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from attrs import evolve

from kernbench_core.errors import ExecutionError
from kernbench_core.oplog.description import Access
from kernbench_core.oplog.log import OpRecord
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array, Shape
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region, total_bytes
from kernbench_core.values.value import ArrayValue, OpId, ResultValue, Value

_Typed = tuple[Shape, str]


def names_only_addresses(record: OpRecord) -> bool:
    """Tell whether a record must be bound to values before it can be executed."""
    if record.stage_of is not None or record.op_kind == "unknown":
        return False
    if record.writes is not None:
        return record.writes.value is None
    return any(record.params.get(key, -1) != -1 for key in ("dst_addr", "out_addr"))  # -1: it writes no memory


def in_execution_order(records: Sequence[OpRecord]) -> Iterator[int]:
    """Yield positions by t_start, memory ops before others that start together, after all of their dependencies."""
    waits = [len(set(r.dependency_ids)) for r in records]
    dependents: dict[int, list[int]] = {}
    for at, record in enumerate(records):
        for needed in set(record.dependency_ids):
            if not 0 <= needed < len(records):
                raise ExecutionError(f"{record} must depend on records of its log, not on number {needed}.")
            dependents.setdefault(needed, []).append(at)
    ready = [(_priority(records[at]), at) for at, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    done = 0
    while ready:
        _, at = heapq.heappop(ready)
        done += 1
        yield at
        for later in dependents.get(at, ()):
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, (_priority(records[later]), later))
    if done < len(records):
        stuck = records[next(at for at, count in enumerate(waits) if count)]
        raise ExecutionError(f"{stuck} must not depend on itself through other ops; break the cycle.")


def bind(record: OpRecord, op_id: OpId, store: MemoryStore) -> OpRecord:
    """Return the record with values for its accesses, and let `store` hold what it writes.

    A record that has values already only leaves what it writes in the store. `op_id` names the result.
    """
    if not names_only_addresses(record):
        if record.writes is not None and record.writes.value is not None and record.writes.regions:
            store.write(record.writes.space, record.writes.regions, record.writes.value, writer=record.op_id)
        return record
    try:
        return _bound(record, op_id, store)
    except KeyError as missing:
        raise ExecutionError(
            f"{record} must give the parameter {missing.args[0]!r}, or name the values it reads and writes."
        ) from None


def _bound(record: OpRecord, op_id: OpId, store: MemoryStore) -> OpRecord:
    params = record.params
    if record.op_kind == "memory" and record.op_name != "masked_store":
        return _bound_copy(record, store)
    reads, typed, out = (_gemm_accesses if record.op_kind == "gemm" else _math_accesses)(params)
    reads = _stated(record.reads, reads)
    writes = record.writes or _access(_space(params, "dst_space"), params.get("dst_addr", params.get("out_addr")), out)
    snapshots = params.get("input_snapshots") or [None] * len(reads)
    bound = tuple(
        _holding(access, _value(store, access, shape, dtype, snapshot))
        for access, (shape, dtype), snapshot in zip(reads, typed, snapshots, strict=True)
    )
    result = ResultValue(op_id, *out)
    store.write(writes.space, writes.regions, result, writer=op_id)
    named = {"op": record.op_name, "dtype_out": out[1], **params}
    return evolve(record, params=named, op_id=op_id, reads=bound, writes=_holding(writes, result))


def _holding(access: Access, value: Value) -> Access:
    return Access(access.space, access.regions, value)


def _bound_copy(record: OpRecord, store: MemoryStore) -> OpRecord:
    params = record.params
    if "shape" in params and "dtype" in params:
        shape, dtype = tuple(params["shape"]), str(params["dtype"])
    else:
        nbytes = total_bytes(record.writes.regions) if record.writes is not None else int(params["nbytes"])
        shape, dtype = (nbytes,), "int8"
    typed = (shape, dtype)
    writes = record.writes or _access(_space(params, "dst_space"), params["dst_addr"], typed)
    reads = record.reads or (_access(_space(params, "src_space"), params["src_addr"], typed),)
    value = _value(store, reads[0], shape, dtype, params.get("snapshot"))
    store.write(writes.space, writes.regions, value, writer=record.op_id)
    return evolve(record, reads=(_holding(reads[0], value),), writes=_holding(writes, value))


def _gemm_accesses(params: Mapping[str, Any]) -> tuple[tuple[Access, ...], list[_Typed], _Typed]:
    a = (tuple(params["shape_a"]), params["dtype_in"])
    b = (tuple(params["shape_b"]), params.get("dtype_b", params["dtype_in"]))
    shape_out = params.get("shape_out") or (a[0][0], b[0][-1])
    out = (tuple(shape_out), params.get("dtype_out", params["dtype_in"]))
    reads = [
        _access(_space(params, f"src_{which}_space"), params.get(f"src_{which}_addr"), typed)
        for which, typed in (("a", a), ("b", b))
    ]
    return tuple(reads), [a, b], out


def _math_accesses(params: Mapping[str, Any]) -> tuple[tuple[Access, ...], list[_Typed], _Typed]:
    shapes = [tuple(s) for s in params["input_shapes"]]
    kinds = params.get("in_dtypes") or params.get("input_dtypes") or [params["dtype"]] * len(shapes)
    spaces = params.get("input_spaces") or [_space(params, "addr_space")] * len(shapes)
    typed = list(zip(shapes, kinds, strict=True))
    reads = tuple(_access(s, a, t) for s, a, t in zip(spaces, params["input_addrs"], typed, strict=True))
    return reads, typed, (tuple(params["shape_out"]), params["dtype"])


def _priority(record: OpRecord) -> tuple[float, bool]:
    return record.t_start, record.op_kind != "memory"


def _stated(given: tuple[Access, ...], inferred: tuple[Access, ...]) -> tuple[Access, ...]:
    return given if len(given) == len(inferred) else inferred


def _access(space: str, address: int | None, typed: _Typed) -> Access:
    if address is None:
        raise KeyError("dst_addr")
    return Access(space, (Region(address, prod(typed[0]) * dtypes.itemsize(typed[1])),))


def _space(params: Mapping[str, object], key: str) -> str:
    return str(params.get(key) or params.get("addr_space") or "tcm")


def _value(store: MemoryStore, access: Access, shape: Shape, dtype: str, snapshot: Array | Value | None) -> Value:
    if access.value is not None:
        return access.value
    if snapshot is not None:
        return (snapshot if isinstance(snapshot, Value) else ArrayValue(snapshot)).reshape(shape)
    return store.value(access.space, access.regions, shape, dtype)
