"""Write a graph of values as plain lists, and read it back: what a saved run keeps of what its ops read and made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernbench_core.values.arrays import Array
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, AssemblyValue, LoadedValue, OpId, Part, ResultValue, Value
from kernbench_core.values.views import AbstractValue, FillValue, view_of

_Node = list[Any]


class ValueWriter:
    """Number values and arrays; each is written once. `put` writes an array and returns what finds it again.

    A result is written as pending, computed or not: it is phase 2 that computes it, in the other process too.
    """

    def __init__(self, put: Callable[[Array], list[Any]]) -> None:
        self.nodes: list[_Node] = []
        self.arrays: list[list[Any]] = []
        self._put = put
        self._numbers: dict[int, int] = {}
        self._alive: list[Value] = []

    def add(self, value: Value) -> int:
        """Return the number of a value, written before it is needed by others."""
        known = self._numbers.get(id(value))
        if known is None:
            node = self._node(value)
            known = self._numbers[id(value)] = len(self.nodes)
            self.nodes.append(node)
            self._alive.append(value)
        return known

    def add_array(self, array: Array) -> int:
        """Return the number of an array."""
        self.arrays.append(self._put(array))
        return len(self.arrays) - 1

    def _node(self, value: Value) -> _Node:
        head: _Node = [list(value.shape), value.dtype]
        if isinstance(value, ResultValue):
            return ["result", *head, *value.op_id]
        if isinstance(value, LoadedValue):
            return ["loaded", *head, self.add(value.content()) if value.bound else None, value.op_id, value.sources]
        if isinstance(value, AssemblyValue):
            parts = [[self.add(p.source), *_numbers(p.dst), *_numbers(p.src)] for p in value.parts()]
            return ["assembly", *head, parts, value.makers()]
        if isinstance(value, AbstractValue):
            return ["abstract", *head]
        if isinstance(value, ArrayValue) and value.origin is not None and value.src is not None:
            return ["view", *head, self.add(value.origin), *_numbers(value.src)]
        if isinstance(value, FillValue):
            return ["fill", *head, self.add_array(value.array())]
        return ["array", *head, self.add_array(value.array()), value.writer]


class ValueReader:
    """Make the values again, each when it is first asked for."""

    def __init__(self, nodes: Sequence[_Node], arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self._nodes = nodes
        self._made: list[Value | None] = [None] * len(nodes)

    def get(self, number: int) -> Value:
        """Return value `number`, the same object each time."""
        made = self._made[number]
        if made is None:
            made = self._made[number] = self._make(self._nodes[number])
        return made

    def _make(self, node: _Node) -> Value:
        kind, extents, dtype, *rest = node
        shape = tuple(extents)
        if kind == "result":
            return ResultValue((rest[0], rest[1]), shape, dtype)
        if kind == "loaded":
            content = None if rest[0] is None else self.get(rest[0])
            return LoadedValue(shape, dtype, content, _op(rest[1]), tuple(map(tuple, rest[2])))
        if kind == "assembly":
            parts = tuple(Part(Region(*p[1:5]), self.get(p[0]), Region(*p[5:9])) for p in rest[0])
            return AssemblyValue(shape, dtype, parts, tuple(map(tuple, rest[1])))
        if kind == "abstract":
            return AbstractValue(shape, dtype)
        if kind == "view":
            origin = self.get(rest[0])
            assert isinstance(origin, ArrayValue)
            view = view_of(origin, Region(*rest[1:]), shape, dtype)
            assert view is not None
            return view
        if kind == "fill":
            return FillValue(self.arrays[rest[0]])
        return ArrayValue(self.arrays[rest[0]], writer=_op(rest[1]))


def _op(numbers: list[int] | None) -> OpId | None:
    return None if numbers is None else (numbers[0], numbers[1])


def _numbers(region: Region) -> list[int]:
    return [region.base, region.row_bytes, region.rows, region.pitch]
