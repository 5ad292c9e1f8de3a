"""Save an op log with its memory, and load it in a process that knows nothing of the run.

A saved run is a folder of three files: `run.json` (templates, names, the value graph), `columns.npz` (numbers) and
`arrays.bin` (the data, each array once, 64-byte aligned). There is no pickle and no code in it: ops are named by
"module:attr". Loading maps the data instead of reading it, and imports no engine and no component.

What no data can give back (an enum, an object of a model) is kept as its canonical encoding, which its records are
hashed by: the hash of a log stays, whatever its records hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from attrs import frozen

from kernbench_builtin.saved.value_graph import ValueReader, ValueWriter
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.functions import function_of
from kernbench_core.errors import UsageError
from kernbench_core.oplog.encoding import Encoded, canonical
from kernbench_core.oplog.log import OpLog
from kernbench_core.oplog.writing import Template
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import Value
from kernbench_core.wording import brief, schema_hint

SCHEMA: Final = "kernbench.oplog/3"
_ALIGN: Final = 64
_NUMBERS: Final = {
    name: code
    for code, names in (
        ("d", ("t_start", "t_end", "floats")),
        ("i", ("component", "template", "sequence", "op_pe", "op_issue", "stage_pe", "stage_issue")),
        ("q", ("ints", "side_rows", "side_numbers")),
    )
    for name in names
}
_TYPES: Final = {t.__name__: t for t in (int, str, bool, type(None))}


@frozen(eq=False)
class SavedRun:
    """What `load_run` gives: the log, the memory at its end, and the function of each op name."""

    op_log: OpLog
    store: MemoryStore
    functions: Mapping[str, str]

    def executor(self) -> DataExecutor:
        """Return an executor of this run."""
        return DataExecutor(self.op_log, self.store, self.functions)


def save_run(
    path: str | Path, op_log: OpLog, store: MemoryStore, functions: Mapping[str, str] | None = None
) -> None:
    """Write a run to the folder `path`, which is made. `functions` are those of plug-ins, by op name."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "arrays.bin").open("wb") as file:
        values = ValueWriter(_ArrayWriter(file).add)
        logged = [values.add(value) for value in op_log.columns.values]
        entries = {space: _entries(store, space, values) for space in store.spaces()}
        objects: dict[int, tuple[int, Any]] = {}
        sides = [[_shared(thing, objects, values) for thing in things] for things in op_log.columns.sides]
    columns = op_log.columns
    numbers = {name: np.array(getattr(columns, name), code) for name, code in _NUMBERS.items()}
    named = {t.sig[1]: t.sig[2] or function_of(t.sig[1], functions) for t in columns.templates}
    head = {
        "schema": SCHEMA,
        "data": store.data,
        "components": list(columns.components),
        "templates": [[_pack(t.sig, values), t.ints, t.floats, t.values, t.side] for t in columns.templates],
        "functions": {name: function for name, function in sorted(named.items()) if function is not None},
        "sides": sides,
        "objects": [packed for _, packed in objects.values()],
        "arrays": values.arrays,
        "values": values.nodes,
        "logged": logged,
        "memory": entries,
    }
    with (folder / "columns.npz").open("wb") as file:
        np.savez(file, allow_pickle=False, **numbers)
    (folder / "run.json").write_text(json.dumps(head, separators=(",", ":")), encoding="utf-8")


def load_run(path: str | Path) -> SavedRun:
    """Read a run that `save_run` wrote; UsageError when the folder does not hold one."""
    folder = Path(path)
    try:
        head = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        with np.load(folder / "columns.npz", allow_pickle=False) as file:
            numbers = {name: file[name] for name in _NUMBERS}
        data = _mapped(folder / "arrays.bin")
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{str(folder)!r} must be the folder of a saved run: {error}") from None
    if head.get("schema") != SCHEMA:
        hint = schema_hint(head.get("schema"), SCHEMA, "run it again")
        raise UsageError(
            f"{str(folder)!r} must hold a run of schema {SCHEMA!r}, not {brief(head.get('schema'))}; {hint}."
        )
    values = ValueReader(head["values"], [_array(data, *described) for described in head["arrays"]])
    log = OpLog()
    columns = log.columns
    columns.load(numbers)
    columns.components.update({name: at for at, name in enumerate(head["components"])})
    columns.values.extend(values.get(at) for at in head["logged"])
    objects = [_unpack(packed, values) for packed in head["objects"]]
    columns.sides += [tuple(objects[at] for at in ats) for ats in head["sides"]]
    for sig, *counts in head["templates"]:
        columns.add_template(Template(_unpack(sig, values), *counts))
    store = log.store = _memory(head, values)
    return SavedRun(log, store, head["functions"])


class _ArrayWriter:
    """Append arrays to a file and tell where they are."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, data: Array) -> list[Any]:
        """Write an array; return its offset, shape and dtype."""
        self._file.write(b"\0" * (-self._file.tell() % _ALIGN))
        at = self._file.tell()
        self._file.write(np.ascontiguousarray(data).reshape(-1).view(np.uint8).data)
        return [at, list(data.shape), dtypes.dtype_name(data.dtype)]


def _mapped(path: Path) -> Array:
    if not path.stat().st_size:
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


def _array(data: Array, at: int, shape: Sequence[int], dtype: str) -> Array:
    kind = dtypes.numpy_dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    found: Array = np.asarray(data[at : at + nbytes]).view(kind).reshape(tuple(shape))
    return found


def _entries(store: MemoryStore, space: str, values: ValueWriter) -> list[object]:
    """Return the writes of a space, oldest first; each entry is a region, a value and an offset in it."""
    out: list[object] = []
    for entry in store.entries(space):
        writer = list(entry.write.writer or ())
        out.append([*_region(entry.region), values.add(entry.write.value), entry.offset, writer])
    return out


def _memory(head: Mapping[str, Any], values: ValueReader) -> MemoryStore:
    store = MemoryStore(head["data"])
    for space, entries in head["memory"].items():
        for base, row_bytes, rows, pitch, value, offset, writer in entries:
            region = Region(base, row_bytes, rows, pitch)
            store.write_part(space, region, values.get(value), offset, tuple(writer) or None)
    return store


def _shared(thing: object, objects: dict[int, tuple[int, object]], values: ValueWriter) -> int:
    """Return the number of an object of the side table, packed once however many records share it."""
    if id(thing) not in objects:
        objects[id(thing)] = (len(objects), _pack(thing, values))
    return objects[id(thing)][0]


def _region(region: Region) -> list[int]:
    return [region.base, region.row_bytes, region.rows, region.pitch]


def _pack(thing: object, values: ValueWriter) -> Any:
    """Turn what a template or the side table holds into JSON: scalars as they are, the rest as {tag: content}.

    The tags of what comes back: f float, t tuple, l list, y type, r region, d mapping, a array, v value, b bytes; c is
    the encoding of anything else.
    """
    if thing is None or type(thing) in (bool, int, str):
        return thing
    if type(thing) is float:
        return {"f": thing.hex()}
    if type(thing) is tuple:
        return {"t": [_pack(item, values) for item in thing]}
    if type(thing) is list:
        return {"l": [_pack(item, values) for item in thing]}
    if type(thing) is bytes:
        return {"b": thing.hex()}
    if isinstance(thing, type) and thing in _TYPES.values():
        return {"y": thing.__name__}
    if isinstance(thing, Region):
        return {"r": _region(thing)}
    if isinstance(thing, Mapping):
        return {"d": [[_pack(k, values), _pack(v, values)] for k, v in thing.items()]}
    if isinstance(thing, np.ndarray | np.generic) and dtypes.is_known(np.asarray(thing).dtype):
        return {"a": values.add_array(np.asarray(thing)), "s": isinstance(thing, np.generic)}
    if isinstance(thing, Value):
        return {"v": values.add(thing)}
    return {"c": canonical(thing).hex()}


def _unpack(packed: Any, values: ValueReader) -> Any:
    if not isinstance(packed, dict):
        return packed
    (tag, content), *more = packed.items()
    if tag == "f":
        return float.fromhex(content)
    if tag in ("t", "l"):
        items = [_unpack(item, values) for item in content]
        return tuple(items) if tag == "t" else items
    if tag == "b":
        return bytes.fromhex(content)
    if tag == "v":
        return values.get(content)
    if tag == "c":
        return Encoded(bytes.fromhex(content))
    if tag == "y":
        return _TYPES[content]
    if tag == "r":
        return Region(*content)
    if tag == "d":
        return {_unpack(k, values): _unpack(v, values) for k, v in content}
    if tag == "a":
        found = values.arrays[content]
        return found[()] if more[0][1] else found
    return content  # of a log that was saved when only the type's name was kept
