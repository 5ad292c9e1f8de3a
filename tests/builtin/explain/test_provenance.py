"""An element is followed back through ops, loads and stores to just the elements that it depends on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_builtin.explain.provenance import Element, Provenance
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpRecord
from kernbench_core.values.region import Region
from kernbench_core.values.value import LoadedValue, Value
from tests.core.compute.recorder import Recorder, host

A = host(np.arange(12, dtype=np.float32).reshape(3, 4) + 100)
ROW = host(np.arange(4, dtype=np.float32) + 1000)
COLUMN = host(np.arange(3, dtype=np.float32).reshape(3, 1) + 5000)


class Moving(Recorder):
    """Log loads and stores, too; each takes a time of its own, one after the other."""

    def load(self, found: Value, where: int, sources: tuple[Any, ...] = ()) -> LoadedValue:
        """Load from `where` in HBM, where the `sources` have written, what is `found` there."""
        loaded = LoadedValue(found.shape, found.dtype, found, (0, self.count), sources)
        self._move("dma_read", (Access("hbm", (Region(where, found.nbytes),), loaded),), None)
        return loaded

    def stored(self, value: Value, where: int) -> tuple[int, int]:
        """Store to `where` in HBM; return the op."""
        self._move("dma_write", (), Access("hbm", (Region(where, value.nbytes),), value))
        return 0, self.count - 1

    def _move(self, name: str, reads: tuple[Access, ...], writes: Access | None) -> None:
        described = OpDescription("dma", name, {}, reads, writes, (0, self.count))
        self.count += 1
        self.log.append(float(self.count), self.count + 0.5, "sip0.cube0.pe0.pe_dma", described)


def made_of(
    record: Recorder, value: Value, at: tuple[int, ...], names: Any = lambda op: True
) -> list[tuple[float | str, list[str]]]:
    """Return what one element of f32 was made of: a number of the host or the op, and the ops on its way."""
    element = Element(value, 4 * int(np.ravel_multi_index(at, value.shape)))
    found = []
    for origin in Provenance(record.log).origins(element, lambda each: names(each.op_name)):
        number = (
            float(origin.element.value.array().reshape(-1)[origin.element.byte // 4])
            if origin.record is None
            else origin.record.op_name
        )
        found.append((number, [each.op_name for each in origin.way]))
    return found


@pytest.mark.parametrize("at", [(0, 0), (1, 3), (2, 1)])
def test_an_element_depends_on_those_that_broadcasting_gives_it(at: tuple[int, int]) -> None:
    """(a + row) * column: one of each, whatever their shapes; what is used twice is told once."""
    record = Moving()
    total = record.op("add", [A, ROW], (3, 4), "f32")
    product = record.op("mul", [total, COLUMN], (3, 4), "f32")
    twice = record.op("add", [product, product], (3, 4), "f32")
    assert made_of(record, twice, at) == [
        (A.array()[at], ["add", "mul", "add"]),
        (ROW.array()[at[1]], ["add", "mul", "add"]),
        (COLUMN.array()[at[0], 0], ["mul", "add"]),
    ]


def test_what_is_not_to_be_followed_ends_the_way() -> None:
    """So does an op of which elements depend on many: a sum over an axis."""
    record = Moving()
    total = record.op("add", [A, ROW], (3, 4), "f32")
    product = record.op("mul", [total, COLUMN], (3, 4), "f32")
    assert made_of(record, product, (1, 2), lambda name: name != "add") == [("add", ["mul"]), (5001.0, ["mul"])]
    assert made_of(record, product, (1, 2), lambda name: False) == [("mul", [])]
    row = record.op("sum", [A], (4,), "f32", {"axis": 0})
    assert made_of(record, record.op("add", [A, row], (3, 4), "f32"), (2, 0)) == [(108.0, ["add"]), ("sum", ["add"])]


def test_loads_and_stores_are_on_the_way() -> None:
    """A store of four rows at an offset, and a load of a part of it: the element that lay there is the one."""
    record = Moving()
    total = record.op("add", [A, ROW], (3, 4), "f32")
    store = record.stored(total, 4096)
    part = record.op("reshape", [total], (12,), "f32", {"shape": (12,)})
    assert made_of(record, part, (0,)) == [("reshape", [])]
    loaded = record.load(total, 4096, sources=(store,))
    doubled = record.op("mul", [loaded, loaded], (3, 4), "f32")
    assert made_of(record, doubled, (2, 3)) == [
        (111.0, ["add", "dma_write", "dma_read", "mul"]),
        (1003.0, ["add", "dma_write", "dma_read", "mul"]),
    ]
    whole = record.load(A, 0)
    assert made_of(record, record.op("exp", [whole], (3, 4), "f32"), (0, 2)) == [(102.0, ["dma_read", "exp"])]


def test_the_maker_of_an_element() -> None:
    """The op, and nobody where the host wrote it."""
    record = Moving()
    total = record.op("add", [A, ROW], (3, 4), "f32")
    provenance = Provenance(record.log)
    maker = provenance.maker(Element(total, 8))
    assert isinstance(maker, OpRecord) and (maker.op_name, maker.op_id) == ("add", (0, 0))
    assert provenance.maker(Element(A, 8)) is None
    assert provenance.record((0, 99)) is None and provenance.record(None) is None
