"""Symbolic payloads: follow what every value of a collective holds through the ops that it runs.

Values that move (loads, stores, messages, casts, views) keep their payload; one step of the collective's reduction
joins the terms of its operands; anything else that is done to a payload is a `PayloadError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kernbench_ccl.prove.payloads import (
    NOWHERE,
    SHIFT,
    Contributor,
    Payload,
    Stretch,
    Terms,
    aligned,
    between,
    contributed,
    contribution,
    gathered,
    joined,
    length,
    linked_runs,
    painted,
    spread,
    together,
)
from kernbench_ccl.prove.payloads import PayloadError as PayloadError
from kernbench_core.compute import evaluate
from kernbench_core.compute.ops import op_of
from kernbench_core.oplog import Access
from kernbench_core.values import ArrayValue, FillValue, Part, Value, runs
from kernbench_core.values.dtypes import info, is_float, itemsize, tolerance

__tracebackhide__ = True  # errors name the kernel's line, not one of these


class Op(Protocol):
    """What is needed of an op: an OpDescription or an OpRecord."""

    @property
    def op_kind(self) -> str: ...
    @property
    def op_name(self) -> str: ...
    @property
    def params(self) -> Mapping[str, Any]: ...
    @property
    def reads(self) -> tuple[Access, ...]: ...
    @property
    def writes(self) -> Access | None: ...


_REDUCING: Mapping[str, tuple[tuple[str, ...], float]] = {
    "sum": (("add", "sum"), 0.0),
    "avg": (("add", "sum"), 0.0),
    "product": (("mul", "prod"), 1.0),
    "max": (("maximum", "max"), -np.inf),
    "min": (("minimum", "min"), np.inf),
}
"""The ops that make one step of each reduction, elementwise and along an axis, and its neutral number."""

_MOVES = (
    "copy", "reshape", "trans", "broadcast_to", "expand_dims", "cat", "flip", "join", "split", "interleave", "where",
    "masked_store", "gather", "full", "zeros",
)  # fmt: skip
_CONTROL = {"where": 0, "masked_store": 2, "gather": 1}
"""The operand that says what is moved, of the moves that have one."""


class Symbols:
    """Follow the payloads of one collective.

    `redop` is what is reduced, or None; `dtype` that of its vectors; `contributors` how many vectors are reduced. Name
    the vectors first (`contribute`), then tell every op in an order in which no op comes before one that makes what it
    reads (`tell`); `of` gives the payload of any value.
    """

    def __init__(self, redop: str | None, dtype: str, contributors: int) -> None:
        self._redop = redop
        self._dtype = dtype
        self._contributors = contributors
        self._leaves: dict[Value, Payload] = {}

    def contribute(self, value: Value, origin: Contributor, first: int = 0) -> None:
        """Let `value` hold the elements from `first` on of what `origin` contributes."""
        if value.nbytes:
            self._leaves[value] = (contribution(origin, first, 0, value.nbytes // itemsize(value.dtype)),)

    def tell(self, op: Op, where: str) -> Payload | None:
        """Take note of an op and return the payload that it made, None for one that makes nothing new.

        PayloadError, which names the op and `where` (its kernel line), for what must not be done to a payload.
        """
        if op.op_kind == "memory" or op.writes is None or op.writes.value is None:
            return None
        made = op.writes.value
        found = self._made(op, where)
        if made.nbytes:
            self._leaves[made] = found
        return found

    def of(self, value: Value) -> Payload:
        """Return the payload of a value; PayloadError where its bytes are not whole elements of what it holds."""
        whole = value.content()
        known = self._leaves.get(whole)
        if known is not None:
            return known
        parts = whole.parts()
        size = itemsize(value.dtype)
        if len(parts) == 1 and parts[0].source is whole:
            return self._constant(whole)
        return painted([s for part in parts for s in self._moved(part, value.dtype, size)])

    # Moves ------------------------------------------------------------------------------------------

    def _moved(self, part: Part, dtype: str, size: int) -> Iterator[Stretch]:
        """Yield the segments that one part brings, where it brings them."""
        held = part.source.dtype
        payload = self.of(part.source)
        if isinstance(part.source, FillValue):
            terms = payload[0].terms
            yield from (Stretch(at // size, (at + nbytes) // size, terms) for at, nbytes in runs(part.dst))
            return
        if held != dtype and any(contributed(segment) for segment in payload):
            raise PayloadError(f"payload must keep its dtype, and {held} is read as {dtype}; cast it instead.")
        for to, come, nbytes in linked_runs(part.dst, part.src):
            if to % size or come % size or nbytes % size:
                raise PayloadError(f"payload must be moved in whole elements of {size} B, not in parts of them.")
            yield from between(payload, come // size, (come + nbytes) // size, to // size)

    def _constant(self, value: Value) -> Payload:
        """Return the payload of a value that no contributor has a part in."""
        count = value.nbytes // itemsize(value.dtype)
        if not count:
            return ()
        if isinstance(value, ArrayValue):
            flat = value.array().reshape(-1)
            if bool((flat == flat[0]).all()):
                return (Stretch(0, count, self._number(flat[0].item())),)
        return (contribution("a number of the kernel's own", 0, 0, count),)

    def _number(self, number: Any) -> Terms:
        if self._redop is not None and float(number) == self._neutral():
            return {}
        return {(f"the number {number}", NOWHERE): 1}

    def _neutral(self) -> float:
        return _REDUCING[self._redop][1] if self._redop is not None else np.nan

    # Ops --------------------------------------------------------------------------------------------

    def _made(self, op: Op, where: str) -> Payload:
        """Return the payload of an op's result."""
        assert op.writes is not None and op.writes.value is not None
        made = op.writes.value
        values = [access.value for access in op.reads if access.value is not None]
        call = f"tl.{op.op_name}" if op.op_kind == "math" else "tl.dot"
        try:
            operands = [self.of(value) for value in values]
            if op.op_kind != "math":
                return self._without_payload(call, where, operands, made)
            return self._math(op_of(op.op_name).name, call, where, op, values, operands)
        except PayloadError as error:
            told = str(error)
            named = error if where in told else PayloadError(f"{call} at {where}: {told}")
            named.line = where
            raise named from None

    def _math(
        self, name: str, call: str, where: str, op: Op, values: Sequence[Value], operands: Sequence[Payload]
    ) -> Payload:
        assert op.writes is not None and op.writes.value is not None
        made = op.writes.value
        if name == "cast":
            self._check_cast(values[0].dtype, made.dtype, operands[0])
            return operands[0]
        if name in _MOVES:
            return self._rearranged(name, call, where, op, values, operands)
        elementwise, along = ("", "") if self._redop is None else _REDUCING[self._redop][0]
        if name == elementwise:
            return self._combined([spread(p, v.shape, made.shape) for p, v in zip(operands, values, strict=True)])
        if name == along:
            return self._reduced(op, values[0], operands[0])
        if self._redop == "avg" and name in ("mul", "div", "floordiv"):
            scaled = self._averaged(name, values, operands)
            if scaled is not None:
                return scaled
        return self._without_payload(call, where, operands, made)

    def _without_payload(self, call: str, where: str, operands: Sequence[Payload], made: Value) -> Payload:
        """Return the payload of an op that computes with the kernel's own numbers; PayloadError for any other."""
        if any(contributed(segment) for payload in operands for segment in payload):
            allowed = "moved and cast" if self._redop is None else f"moved, cast and reduced by {self._redop}"
            raise PayloadError(f"{call} at {where} must not be done to payload, which may only be {allowed}.")
        return self._constant(made)

    def _check_cast(self, held: str, dtype: str, payload: Payload) -> None:
        """Refuse a cast of payload that loses more than rounding does."""
        if not any(contributed(segment) for segment in payload):
            return
        whole = not is_float(self._dtype)
        fits = is_float(dtype) if not whole else (
            itemsize(dtype) >= itemsize(self._dtype) if not is_float(dtype) else _exact_in(self._dtype, dtype)
        )
        if not fits:
            raise PayloadError(f"payload of {self._dtype} must be cast to a dtype that holds it, not to {dtype}.")

    def _combined(self, operands: Sequence[Payload]) -> Payload:
        """Join the terms of payloads of one length: one step of the reduction."""
        found = operands[0]
        for other in operands[1:]:
            found = tuple(together(a, b) for a, b in aligned(found, other))
        return joined(found)

    def _reduced(self, op: Op, value: Value, payload: Payload) -> Payload:
        """Reduce along axes."""
        axis = op.params.get("axis")
        places = np.arange(length(payload)).reshape(value.shape)
        axes = tuple(range(places.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        axes = tuple(a % places.ndim for a in axes)
        rows = np.moveaxis(places, axes, range(len(axes)))
        rows = rows.reshape(int(np.prod([value.shape[a] for a in axes])), -1)
        return self._combined([gathered([payload], row) for row in rows])

    def _averaged(self, name: str, values: Sequence[Value], operands: Sequence[Payload]) -> Payload | None:
        """Divide by the number of contributors; None where that is not what is done."""
        which = 1 if isinstance(values[1].content(), ArrayValue) else 0
        number = values[which].content()
        if not isinstance(number, ArrayValue) or number.shape or (which == 0 and name != "mul"):
            return None
        factor = float(number.array())
        factor = factor if name == "mul" else 1.0 / factor if factor else 0.0
        close = max(tolerance(values[1 - which].dtype), 1e-6)
        if abs(factor * self._contributors - 1.0) > close:
            return None
        return tuple(Stretch(s.start, s.end, s.terms, s.scaled + 1) for s in operands[1 - which])

    def _rearranged(
        self, name: str, call: str, where: str, op: Op, values: Sequence[Value], operands: Sequence[Payload]
    ) -> Payload:
        """Move numbers that stand for the elements, and see where they come out."""
        assert op.writes is not None and op.writes.value is not None
        made = op.writes.value
        shape = made.shape
        if name in ("copy", "reshape", "expand_dims"):
            return operands[0]
        if name in ("broadcast_to", "full", "zeros") and values:
            return spread(operands[0], values[0].shape, shape)
        inputs: list[Any] = []
        for number, value in enumerate(values):
            if number == _CONTROL.get(name):
                inputs.append(self._known(call, where, value, operands[number]))
            else:
                count = length(operands[number])
                inputs.append((np.arange(count, dtype=np.int64) + (number << SHIFT)).reshape(value.shape))
        if not inputs:
            return self._constant(ArrayValue(np.full(shape, op.params.get("value", 0))))
        known = {k: v for k, v in op.params.items() if k != "dtype"}
        places = evaluate(name, {**known, "shape_out": shape, "dtype": "int64"}, inputs)
        return gathered(operands, places.reshape(-1))

    def _known(self, call: str, where: str, value: Value, payload: Payload) -> Any:
        """Return what decides where payload goes; PayloadError when that is payload itself."""
        if value.pending or any(contributed(segment) for segment in payload):
            raise PayloadError(f"{call} at {where} must not choose by payload, which a proof cannot know.")
        return value.array()


def _exact_in(whole: str, dtype: str) -> bool:
    """Whether every integer of a dtype is a number of a float dtype."""
    return info(dtype).digits >= 8 * info(whole).itemsize - info(whole).signed
