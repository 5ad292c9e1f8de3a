"""Kinds of ops: what ops of one sort have in common, decoded once instead of with every record.

Two ops are of one kind where they differ only in what core's functions do not read: where operands lie, which they are,
and when. Ops of plug-ins, and of records that were bound to values by hand, are kinds of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from kernbench_core.compute import functions
from kernbench_core.compute.backends import Backend
from kernbench_core.compute.prepared import Compute, prepared
from kernbench_core.oplog.columns import Columns
from kernbench_core.oplog.forms import RecordForm
from kernbench_core.oplog.log import OpRecord
from kernbench_core.oplog.spill import take
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array, Shape
from kernbench_core.values.value import Value

#: Parameters that say where and when, which none of core's functions read; so do all whose names end in `_addr`.
_PLACES: Final = frozenset(("nbytes", "out_nbytes", "turn", "turn_ns"))
_GEMM_KEYS: Final = ("transpose_a", "transpose_b", "layout_a", "layout_b")

Getting = Callable[[OpRecord], tuple[str, Any]]
"""Returns by what name and function a record is computed."""


class Kind:
    """What ops of one sort share: `name` and `function` that compute them, their parameters, and how products group.

    With `alike` the parameters of one op do for all of them.
    """

    __slots__ = (
        "_backend", "_last", "_prepared", "alike", "dtype", "floats", "function", "is_product", "layout",
        "multiplications", "name", "own", "params", "target",
    )  # fmt: skip

    def __init__(
        self, record: OpRecord, name: str, function: Any, inputs: Sequence[Value], result: Value, alike: bool,
        backend: Backend,
    ) -> None:  # fmt: skip
        self._backend = backend
        self.name = name
        self.function = function
        #: Whether all ops of the kind are computed alike.
        self.alike = alike
        self.params = params_of(record)
        #: What results are, by its name and as numpy has it.
        self.dtype = result.dtype
        self.target = dtypes.numpy_dtype(result.dtype)
        #: Whether they are core's GEMMs without steps inside the product.
        self.is_product = name == functions.GEMM or (
            name == functions.COMPOSITE_GEMM
            and all(step.scope != functions.Scope.K_TILE for step in functions.epilogue_of(record.params))
        )
        #: Whether they are products of floats.
        self.floats = any(dtypes.is_float(value.dtype) for value in inputs[:2])
        #: How many multiplications each takes; 0 of what is no product.
        self.multiplications = _multiplications(inputs, result) if self.is_product else 0.0
        #: Whether the backend computes them.
        self.own = self.is_product and self.floats and self.multiplications >= backend.worth_multiplications
        #: How the operands of a product lie.
        self.layout = tuple(record.params.get(key) for key in _GEMM_KEYS)
        self._prepared: dict[tuple[object, ...], Compute] = {}
        #: What operands were the last time, and what computed the op.
        self._last: tuple[list[tuple[str, Shape]] | None, Compute | None] = None, None

    def computing(self, inputs: Sequence[Value], arrays: Sequence[Array]) -> Compute:
        """Return what computes an op of a kind whose ops are `alike` from operands like these."""
        like = [(value.dtype, value.shape) for value in inputs]
        last, found = self._last
        if found is not None and like == last:
            return found
        key = tuple(like)
        found = self._prepared.get(key)
        if found is None:
            made = prepared(self.name, self.function, self.params, arrays, self._backend)
            self.own = made.own
            found = self._prepared[key] = made.compute
        self._last = like, found
        return found


class KindNumbers:
    """Which rows of a log are of one kind, by numbers that are given to kinds as they are met."""

    def __init__(self, is_core: Callable[[RecordForm], bool]) -> None:
        self._is_core = is_core
        self._open: dict[int, tuple[int, ...] | None] = {}
        self._numbers: dict[tuple[int, ...], int] = {}

    def of(self, columns: Columns, rows: Sequence[int]) -> list[int]:
        """Return the number of the kind of each row; -1 of those that are like no others."""
        numbered = np.asarray(rows, np.int64)
        templates, starts = take(columns.template, numbered), take(columns.row_starts()[0], numbered)
        found = np.empty(len(numbered), np.int64)
        for template in np.unique(templates).tolist():
            at = np.flatnonzero(templates == template)
            places = self._open_places(template, columns.form(template))
            if places is None:
                found[at] = -1
            elif not places:
                found[at] = self._number((template,))
            else:
                given = np.stack([take(columns.ints, starts[at] + place) for place in places], axis=1)
                each, which = np.unique(given, axis=0, return_inverse=True)
                numbers = [self._number((template, *row)) for row in each.tolist()]
                found[at] = np.array(numbers, np.int64)[which.reshape(-1)]
        return found.tolist()

    def _open_places(self, template: int, form: RecordForm) -> tuple[int, ...] | None:
        """Return where the integers are that tell the ops of a template apart; None where there is more than these."""
        if template not in self._open:
            places = tuple(place for name, place in form.int_places.items() if not _is_place(name))
            plain = self._is_core(form) and not form.in_side and all(map(_is_place, form.float_places))
            self._open[template] = places if plain else None
        return self._open[template]

    def _number(self, key: tuple[int, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def params_of(record: OpRecord) -> dict[str, Any]:
    """Return the parameters of a record, with the op's name where they leave it out."""
    return record.params if "op" in record.params else {"op": record.op_name, **record.params}


def _multiplications(inputs: Sequence[Value], result: Value) -> float:
    """Return how many a product takes: that of its sizes is the root of that of the sizes of its three matrices."""
    return math.sqrt(math.prod(math.prod(value.shape) for value in (*inputs[:2], result)))


def _is_place(name: str) -> bool:
    return name.endswith("_addr") or name in _PLACES
