"""Where one element of a tensor came from: back through the ops of the log, to what other launches and the host wrote.

Elementwise ops, loads, stores and messages are followed; of any other op (a GEMM, a reduction) it is only known that it
made the element. This follows what is there, byte by byte. `causes` follows what came when, whatever it carried; a
proof of a collective has no log, and looks for what ought to be there and is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from attrs import field, frozen

from kernbench_core.compute.ops import ALIASES, OPS, Form
from kernbench_core.memory.elements import first_common
from kernbench_core.oplog.log import OpLog, OpRecord
from kernbench_core.values import dtypes
from kernbench_core.values.lineage import Element
from kernbench_core.values.region import Region, linear_at
from kernbench_core.values.value import LoadedValue, OpId, Value
from kernbench_core.values.views import FillValue

_ELEMENTWISE: Final = frozenset(op.name for op in OPS.values() if op.form is Form.ELEMENTWISE)
#: Ops of one element that are looked at; beyond these what is left is told as it is.
_MOST_OPS: Final = 4096


@frozen
class Origin:
    """What one element was made of: an element that something else than the ops followed has made.

    `record` is the op that made it, None for what the host wrote. `way` are the ops that it went through from there,
    the first one first: loads, stores, messages and arithmetic.
    """

    element: Element
    record: OpRecord | None
    way: tuple[OpRecord, ...] = field(default=())


class Provenance:
    """Look for where elements came from, in one op log."""

    def __init__(self, log: OpLog) -> None:
        self._log = log
        self._positions: Mapping[OpId, int] = log.makers()

    def record(self, op_id: OpId | None) -> OpRecord | None:
        """Return the record of an op, None where the log has none."""
        position = None if op_id is None else self._positions.get(op_id)
        return None if position is None else self._log[position]

    def maker(self, element: Element) -> OpRecord | None:
        """Return the op that made an element; None where the host wrote it."""
        source = element.source()
        return None if source is None else self.record(source.value.writer)

    def origins(self, element: Element, follow: Callable[[OpRecord], bool]) -> Iterator[Origin]:
        """Yield what an element was made of, each op and each element of the host's once.

        Of the ops that made it, and what it was made of, those that `follow` holds for are followed to their operands.
        """
        todo: list[tuple[Element, tuple[OpRecord, ...]]] = [(element, ())]
        seen: dict[tuple[int, int], None] = {}
        alive: list[Value] = []
        while todo:
            at, way = todo.pop()
            source, passed = self._back(at)
            if source is None or isinstance(source.value, FillValue) or (id(source.value), source.byte) in seen:
                continue
            seen[id(source.value), source.byte] = None
            alive.append(source.value)
            way = (*passed, *way)
            record = self.record(source.value.writer)
            operands = None if record is None or not follow(record) else _operands(record, source)
            if record is None or not operands or len(seen) > _MOST_OPS:
                yield Origin(source, record, way)
                continue
            todo.extend((operand, (record, *way)) for operand in reversed(operands))

    def _back(self, element: Element) -> tuple[Element | None, tuple[OpRecord, ...]]:
        """Return the element that one is a copy of, and the ops that copied it, as far as they are known."""
        source = element.source()
        passed: list[OpRecord] = []
        at: Element | None = element
        while at is not None and isinstance(at.value, LoadedValue):
            at, ops = self._hop(at, at.value)
            if at is not None and not _same(at.source(), source):
                break
            passed.extend(ops)
        return source, tuple(reversed(passed))

    def _hop(self, at: Element, loaded: LoadedValue) -> tuple[Element | None, tuple[OpRecord, ...]]:
        """Return what a load or a receive has copied, None where that ends, and the ops that did, the last first."""
        record = self.record(loaded.op_id)
        if record is None or not record.reads or record.reads[0].value is None:
            return None, ()
        read = record.reads[0].value
        if read is not loaded:
            return (Element(read, at.byte), (record,)) if read.nbytes == loaded.nbytes else (None, ())
        place = Region(linear_at(record.reads[0].regions, at.byte), at.size)
        stores = [store for store in map(self.record, loaded.sources) if store is not None]
        for store in sorted(stores, key=lambda store: store.t_end, reverse=True):
            written = store.writes
            if written is not None and written.value is not None:
                common = first_common(written.regions, (place,))
                if common is not None:
                    return Element(written.value, common[0]), (record, store)
        return None, (record,)


def _same(a: Element | None, b: Element | None) -> bool:
    return a is not None and b is not None and a.value is b.value and a.byte == b.byte


def _operands(record: OpRecord, result: Element) -> list[Element]:
    """Return the elements that one of an elementwise op's result was computed from; none for any other op."""
    name = ALIASES.get(record.op_name, record.op_name)
    if record.op_kind != "math" or name not in _ELEMENTWISE or record.params.get("axis") is not None:
        return []
    number, index = result.byte // result.size, []
    for extent in reversed(result.value.shape):
        number, at = divmod(number, extent)
        index.append(at)
    found = []
    for access in record.reads:
        value = access.value
        if value is None or len(value.shape) > len(index):
            return []
        if access.space == "immediate":
            continue
        place, pitch = 0, dtypes.itemsize(value.dtype)
        for extent, full, at in zip(reversed(value.shape), reversed(result.value.shape), index, strict=False):
            if extent not in (1, full):
                return []
            place += (at if extent > 1 else 0) * pitch
            pitch *= extent
        found.append(Element(value, place))
    return found

