"""What the rules and functions of a math op of a plug-in must answer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import evolve, fields, frozen
from attrs import field as attribute

from kernbench_core.compute.ops.plugin_faults import Blame, blaming
from kernbench_core.compute.ops.record import Again, MathOp, Params, TypeRule
from kernbench_core.compute.ops.second_way import Anew
from kernbench_core.compute.promotion import WeakType
from kernbench_core.values.arrays import Shape
from kernbench_core.values.dtypes import NAMES


@frozen(eq=False)
class PluginOp(MathOp):
    """A math op of a plug-in, whose rules and functions raise PluginError where they will not do."""

    fault: Blame = attribute(kw_only=True)
    written: TypeRule = attribute(kw_only=True)

    @property
    def rule(self) -> TypeRule:
        """The rule of types without its check."""
        return self.written


def with_rules_checked(op: MathOp, fault: Blame) -> PluginOp:
    """Return the record with rules that raise PluginError for an answer that is no dtype or shape.

    So do they and its functions for what they raise that is not of a kernel's errors, as ShapeError is.
    """
    type_rule = blaming(fault, "a type rule that answers or raises ShapeError", op.types)
    shape_rule = blaming(fault, "a shape rule that answers or raises ShapeError", op.shapes)

    def types(asked: MathOp, dtypes: Sequence[str | WeakType], params: Params) -> str:
        answer = type_rule(asked, dtypes, params)
        if not isinstance(answer, str) or answer not in NAMES:
            raise fault(f"must have a type rule that gives one of {', '.join(NAMES)}, not {answer!r}")
        return answer

    def shapes(asked: MathOp, extents: Sequence[Shape], params: Params) -> Shape:
        answer = shape_rule(asked, extents, params)
        try:
            shape = tuple(map(operator.index, answer))
        except TypeError:
            shape = (-1,)
        if any(extent < 0 for extent in shape):
            raise fault(f"must have a shape rule that gives a tuple of whole numbers of at least 0, not {answer!r}")
        return shape

    given = {each.name: getattr(op, each.name) for each in fields(MathOp)}
    given.update(types=types, shapes=shapes, function=blaming(fault, "a function that computes", op.function))
    if op.again is not None:
        ways = {each.name: _checked_way(getattr(op.again, each.name), fault) for each in fields(Again)}
        given["again"] = evolve(op.again, **ways)
    return PluginOp(**given, fault=fault, written=op.rule)


def _checked_way(way: Callable[..., Any] | None, fault: Blame) -> Callable[..., Any] | None:
    """Return a second way that raises PluginError for an answer that could not be a result's."""
    if way is None:
        return None
    called = blaming(fault, "a second way that computes", way)

    def checked(params: Params, *operands: Any) -> Any:
        answer = called(params, *operands)
        found = np.asarray(answer.value if isinstance(answer, Anew) else answer)
        if found.dtype.kind not in "fiub":
            raise fault(f"must have a second way that gives real numbers, not {found.dtype.name}")
        shape = params.get("shape_out", found.shape)
        if found.shape != shape:
            raise fault(f"must have a second way that gives shape {shape}, not {found.shape}")
        return answer

    return checked
