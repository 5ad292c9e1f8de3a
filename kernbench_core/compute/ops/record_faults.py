"""What the record of a math op of a plug-in must be, and what its rules and functions must answer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from math import inf
from numbers import Real
from typing import Any

import numpy as np
from attrs import evolve, fields, frozen
from attrs import field as attribute

from kernbench_core.compute.ops.plugin_faults import Blame, blaming
from kernbench_core.compute.ops.record import Again, Form, LaneCost, MathOp, Operands, Params, TypeRule
from kernbench_core.compute.ops.second_way import Anew
from kernbench_core.compute.promotion import WeakType
from kernbench_core.errors import KernelError, LimitError, in_words
from kernbench_core.values.arrays import Shape
from kernbench_core.values.dtypes import NAMES

_TAKEN = ("addr_space", "dst_addr", "dst_space", "dtype", "dtype_out", "in_dtypes", "mask", "op", "shape_out")
"""What records of math ops hold under names of their own, beside `input_…` and `immediate…`."""


@frozen(eq=False)
class PluginOp(MathOp):
    """A math op of a plug-in, whose rules and functions raise PluginError where they will not do."""

    fault: Blame = attribute(kw_only=True)
    written: TypeRule = attribute(kw_only=True)

    @property
    def rule(self) -> TypeRule:
        """The rule of types without its check."""
        return self.written


def record_faults(op: MathOp) -> Iterator[str]:
    """Yield which fields of a record are not what they must be, in words that follow its name."""
    for name, of in (
        ("function", "params and operands"), ("types", "the op, dtypes and params"),
        ("shapes", "the op, shapes and params"),
    ):  # fmt: skip
        if not callable(getattr(op, name)):
            yield f"must have as {name} a function of {of}, not {getattr(op, name)!r}"
    for name, kind in (("form", Form), ("operands", Operands)):
        if not isinstance(getattr(op, name), kind):
            yield f"must have as {name} a member of {kind.__name__}, not {getattr(op, name)!r}"
    arity: object = op.arity
    if not isinstance(arity, int) or isinstance(arity, bool) or arity < 0:
        yield f"must have as arity a number of operands, 0 where that differs, not {arity!r}"
    for name in ("dividing", "keeps_sign"):
        if not isinstance(getattr(op, name), bool):
            yield f"must have True or False as {name}, not {getattr(op, name)!r}"
    yield from _keyword_faults(op.keywords)
    yield from _cost_faults(op.cost)
    yield from _again_faults(op)


def _keyword_faults(keywords: object) -> Iterator[str]:
    if not isinstance(keywords, tuple) or not all(isinstance(name, str) and name.isidentifier() for name in keywords):
        yield f"must have as keywords a tuple of names, as ('scale',), not {keywords!r}"
        return
    for name in keywords:
        if name in _TAKEN or name.startswith(("input_", "immediate")):
            yield f"must have other keywords than {name!r}, which is kernbench's own in records of the log"


def _cost_faults(cost: object) -> Iterator[str]:
    if not isinstance(cost, LaneCost):
        yield f"must have as cost a LaneCost of kernbench_core.compute.ops, not {cost!r}"
        return
    for name, given in (("steps", cost.steps), ("lookups", cost.lookups)):
        if not isinstance(given, Real) or isinstance(given, bool) or not 0 <= float(given) < inf:
            yield f"must have as {name} of its cost a finite number of at least 0, not {given!r}"


def _again_faults(op: MathOp) -> Iterator[str]:
    again: object = op.again
    if again is None:
        return
    if not isinstance(again, Again):
        yield f"must have as again an Again of kernbench_core.compute.ops, or None, not {again!r}"
        return
    for name, way in (("floats", again.floats), ("integers", again.integers)):
        if way is not None and not callable(way):
            yield f"must have as {name} of its again a function of params and operands, or None, not {way!r}"
    if again.floats is None and (again.integers is None or op.operands is not Operands.COMPUTED):
        yield "must have a function as floats of its again, not None"


def with_rules_checked(op: MathOp, fault: Blame) -> PluginOp:
    """Return the record with rules that raise PluginError for an answer that is no dtype or shape.

    So do they and its functions for what they raise that is not of a kernel's errors, as ShapeError is.
    """

    def types(asked: MathOp, dtypes: Sequence[str | WeakType], params: Params) -> str:
        answer = _answer(op.types, asked, dtypes, params, "type", fault)
        if not isinstance(answer, str) or answer not in NAMES:
            raise fault(f"must have a type rule that gives one of {', '.join(NAMES)}, not {answer!r}")
        return answer

    def shapes(asked: MathOp, extents: Sequence[Shape], params: Params) -> Shape:
        answer = _answer(op.shapes, asked, extents, params, "shape", fault)
        try:
            shape = tuple(map(operator.index, answer))
        except TypeError:
            shape = (-1,)
        if any(extent < 0 for extent in shape):
            raise fault(f"must have a shape rule that gives a tuple of whole numbers of at least 0, not {answer!r}")
        return shape

    given = {each.name: getattr(op, each.name) for each in fields(MathOp)}
    given.update(types=types, shapes=shapes, function=blaming(fault, "a function", op.function))
    if op.again is not None:
        ways = {each.name: _checked_way(getattr(op.again, each.name), fault) for each in fields(Again)}
        given["again"] = evolve(op.again, **ways)
    return PluginOp(**given, fault=fault, written=op.rule)


def _checked_way(way: Callable[..., Any] | None, fault: Blame) -> Callable[..., Any] | None:
    """Return a second way that raises PluginError for an answer that could not be a result's."""
    if way is None:
        return None
    called = blaming(fault, "a second way", way)

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


def _answer(
    rule: Callable[..., Any], op: MathOp, given: Sequence[Any], params: Params, what: str, fault: Blame
) -> Any:
    """Return what a rule says; PluginError for what it raises itself."""
    try:
        return rule(op, given, params)
    except (KernelError, LimitError, MemoryError):
        raise
    except Exception as error:
        raise fault(
            f"must have a {what} rule that answers or raises ShapeError, but it raised {in_words(error)}"
        ) from error
