"""The checks of a math op: what its record promises of types and shapes, and what it computes of random operands.

An op that is a plain function, which kernels reach by `tl.unit_op` alone, has no rules to be held to: `op_functions`
has what is checked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
from attrs import frozen

from kernbench_builtin.checks.op_functions import FunctionUnderTest
from kernbench_builtin.checks.op_operands import COLUMNS, ROWS, common, more
from kernbench_builtin.verify.comparison import differs
from kernbench_builtin.verify.recomputation import math_anew, way_of
from kernbench_core.compute.functions import compute
from kernbench_core.compute.ops import OPS, Form, MathOp, Operands
from kernbench_core.compute.ops.record_faults import with_rules_checked
from kernbench_core.compute.ops.second_way import Anew
from kernbench_core.errors import PluginError, ShapeError, in_words
from kernbench_core.plugins import Plugins
from kernbench_core.testing.kit import CheckFailed, NotApplicable, kit_of
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array

_SEED: Final = 20


@frozen
class OpUnderTest:
    """An op by its name: its record, or its function; the dtypes of operands that its rule takes, and what it needs.

    `needed` is a keyword that a kernel must give; "" where there is none.
    """

    name: str
    op: MathOp | Callable[..., object]
    taken: tuple[tuple[str, ...], ...] = ()
    needed: str = ""

    def record_and_params(self) -> tuple[MathOp, list[dict[str, Any]]]:
        """Return the record, and with which params it is tried; NotApplicable for an op that is not asked like this."""
        op = self.op
        if not isinstance(op, MathOp):
            raise NotApplicable("it is a function, not the record of a math op")
        if op.form is Form.MOVE:
            raise NotApplicable("it moves elements, as its own params say")
        if self.needed:
            raise NotApplicable(f"kernels must give it {self.needed!r}, of which the kit knows no example")
        if op.form is Form.REDUCTION:
            return op, [{"axis": axis, "keepdims": keep} for axis in (0, 1) for keep in (False, True)]
        return op, [{"axis": 0}, {"axis": 1}] if op.form in (Form.SCAN, Form.NORMALISING) else [{}]

    @property
    def as_function(self) -> FunctionUnderTest | None:
        """The function, of an op that is one."""
        return None if isinstance(self.op, MathOp) else FunctionUnderTest(self.name, self.op)

    @property
    def record(self) -> MathOp:
        """The record."""
        return self.record_and_params()[0]

    def trials(self) -> Iterator[tuple[tuple[str, ...], dict[str, Any], list[Array]]]:
        """Yield dtypes, params and operands: two-dimensional, random, the same ones each time."""
        (_, param_sets), random = self.record_and_params(), np.random.default_rng(_SEED)
        for given in self.taken:
            for params in param_sets:
                yield given, params, [common(random, dtype) for dtype in given]

    def more_trials(self) -> Iterator[tuple[tuple[str, ...], dict[str, Any], list[Array]]]:
        """Yield those of `trials`, then others, of shapes that the rule takes: long ones, and of special numbers."""
        yield from self.trials()
        (op, param_sets), random = self.record_and_params(), np.random.default_rng(_SEED)
        for given in self.taken:
            for operands in more(random, op, given):
                yield from ((given, params, operands) for params in param_sets if _takes(op, operands, params))


def op_under_test(name: str, op: object) -> OpUnderTest:
    """Make an op what the checks take; raise CheckFailed for what is neither record nor function."""
    if not isinstance(op, MathOp):
        if not callable(op) or isinstance(op, type):
            raise CheckFailed(f"its target must be a MathOp or a function, not {op!r}")
        return OpUnderTest(name, op)
    found = OpUnderTest(name, op, needed=_needed(op))
    if op.form is Form.MOVE or found.needed:
        return found
    wanted = [given for given in product(dtypes.NAMES, repeat=op.arity or 2) if _type_of(found, given) is not None]
    if not wanted:
        raise CheckFailed("its rule of types must take operands of some dtype, and takes none")
    alike = [given for given in wanted if len(set(given)) == 1] or wanted[:3]
    return OpUnderTest(name, op, tuple(alike))


def _open(plugins: Plugins, name: str) -> OpUnderTest:
    return op_under_test(name, plugins.ops.load(name))


def refuses_in_words(under_test: OpUnderTest) -> None:
    """Dtypes and shapes that do not fit are refused by a ShapeError that is a sentence, and by nothing else."""
    op, params = under_test.record_and_params()
    for given in product(dtypes.NAMES, repeat=op.arity or 2):
        _must_refuse_well("dtypes", given, partial(op.types, op, given, params[0]))
    for shapes in product([(), (1,), (5,), (6, 5), (2, 6, 5), (6, 4), (0, 5)], repeat=op.arity or 2):
        _must_refuse_well("shapes", shapes, partial(op.shapes, op, shapes, params[0]))


def gives_the_promised_type(under_test: OpUnderTest) -> None:
    """The rule of types names a dtype, and what is computed has it."""
    for given, params, operands in under_test.trials():
        promised = _type_of(under_test, given)
        if promised not in dtypes.NAMES:
            raise CheckFailed(f"of {_names(given)} its rule must give the name of a dtype, not {promised!r}")
        found = _name(_computed(under_test, params, operands))
        if found != promised:
            raise CheckFailed(f"of {_names(given)} it must give {promised}, and gives {found}")


def gives_numbers_of_the_promised_kind(under_test: OpUnderTest) -> None:
    """What its function returns, before it is rounded, is of the promised kind: floats, or integers and bools."""
    op = under_test.record
    for given, params, operands in under_test.trials():
        promised = _type_of(under_test, given)
        with np.errstate(all="ignore"):
            raw = np.asarray(op.function(_record(op, params, operands), *_widened(op, operands)))
        floats = raw.dtype.kind == "f" or (dtypes.is_known(raw.dtype) and dtypes.is_float(_name(raw)))
        if dtypes.is_float(str(promised)) != floats:
            raise CheckFailed(f"of {_names(given)} it must give numbers of the kind of {promised}, not of {raw.dtype}")


def gives_the_promised_shape(under_test: OpUnderTest) -> None:
    """What is computed has the shape that the rule of shapes says."""
    for _, params, operands in under_test.more_trials():
        promised = tuple(under_test.record.shapes(under_test.record, [x.shape for x in operands], params))
        found = _computed(under_test, params, operands).shape
        if found != promised:
            shapes = _names(x.shape for x in operands)
            raise CheckFailed(f"of shapes {shapes} it must give {promised}, and gives {found}")


def gives_what_can_be_promised(under_test: OpUnderTest) -> None:
    """A function gives an array of numbers, of a shape and dtype that those of its operands decide."""
    function = under_test.as_function
    if function is None:
        raise NotApplicable("it is the record of a math op, which promises by its rules")
    function.gives_what_can_be_promised()


def leaves_operands_alone(under_test: OpUnderTest) -> None:
    """Its function writes into no operand."""
    if (function := under_test.as_function) is not None:
        function.leaves_operands_alone()
        return
    op = under_test.record
    for given, params, operands in under_test.more_trials():
        wide = _widened(op, operands)
        kept = [x.copy() for x in wide]
        with np.errstate(all="ignore"):
            op.function(_record(op, params, operands), *wide)
        for number, (before, after) in enumerate(zip(kept, wide, strict=True), 1):
            if before.tobytes() != after.tobytes():
                raise CheckFailed(f"it must leave operands alone, and writes into number {number}, {given[number - 1]}")


def computes_the_same_twice(under_test: OpUnderTest) -> None:
    """The same operands give the same result, bit for bit."""
    if (function := under_test.as_function) is not None:
        function.computes_the_same_twice()
        return
    for given, params, operands in under_test.trials():
        first, second = (_computed(under_test, params, operands) for _ in range(2))
        if first.tobytes() != second.tobytes():
            raise CheckFailed(f"it must give the same of the same {_names(given)}, and does not")


def agrees_with_its_second_way(under_test: OpUnderTest) -> None:
    """What it computes is, rounded, what `again` computes in f64, or in int64."""
    op = under_test.record
    if way_of(op) is None:
        raise NotApplicable("its record has no `again`")
    for given, params, operands in under_test.more_trials():
        found = _computed(under_test, params, operands)
        record = {**_record(op, params, operands), "dtype": _name(found)}
        with np.errstate(all="ignore"):
            wanted = math_anew(op, record, [Anew(x) for x in operands])
            wrong, expected = differs(found, wanted, _name(found))
        if wrong.any():
            at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            raise CheckFailed(
                f"of {_names(given)} it must give {np.asarray(expected)[at]!s} at {tuple(map(int, at))}, as its second "
                f"way does, and gives {found[at]!s}"
            )


def keeps_to_its_form(under_test: OpUnderTest) -> None:
    """Elements come from where the form says: rows of a result from those rows of the operands alone."""
    op = under_test.record
    order = np.random.default_rng(_SEED).permutation(ROWS)
    for given, params, operands in under_test.trials():
        if op.form is not Form.ELEMENTWISE and params.get("axis") != 1:
            continue
        whole = _computed(under_test, params, operands)
        moved = _computed(under_test, params, [np.ascontiguousarray(x[order]) for x in operands])
        alone = _computed(under_test, params, [np.ascontiguousarray(x[:1]) for x in operands])
        if not (_alike(whole[order], moved) and _alike(whole[:1], alone)):
            raise CheckFailed(
                f"its form is {op.form}, so each row of a result must come from that row of the operands alone, and of "
                f"{_names(given)} it does not"
            )


KIT = kit_of(
    _open, refuses_in_words, gives_the_promised_type, gives_numbers_of_the_promised_kind, gives_the_promised_shape,
    gives_what_can_be_promised, leaves_operands_alone, computes_the_same_twice, agrees_with_its_second_way,
    keeps_to_its_form,
)  # fmt: skip


def _needed(op: MathOp) -> str:
    """Return the keyword without which an op cannot be asked; "" where there is none."""
    given = ["f32"] * (op.arity or 2)
    shapes = [(ROWS, COLUMNS)] * len(given)
    operands = [np.ones((ROWS, COLUMNS), np.float32) for _ in given]
    attempts: tuple[Callable[..., object], ...] = (
        partial(op.types, op, given), partial(op.shapes, op, shapes), lambda params: op.function(params, *operands)
    )  # fmt: skip
    for ask in attempts:
        try:
            with np.errstate(all="ignore"):
                ask({"axis": 1, "keepdims": False})
        except KeyError as missing:
            if missing.args and missing.args[0] in op.keywords:
                return str(missing.args[0])
        except Exception:
            continue
    return ""


def _widened(op: MathOp, operands: Sequence[Array]) -> list[Array]:
    """Return operands as an op's function gets them, by a way of its own: floats in f32 at least, bools in bytes."""
    if op.operands in (Operands.GIVEN, Operands.MET):
        return [x.copy() for x in operands]
    wide: dict[str, Any] = {"float": np.float32, "bool": np.uint8}
    return [x.astype(x.dtype if x.itemsize == 8 else wide.get(dtypes.info(_name(x)).kind, x.dtype)) for x in operands]


def _record(op: MathOp, params: Mapping[str, Any], operands: Sequence[Array]) -> dict[str, Any]:
    """Return what a run gives a function as `params`: the record of the op, without places and values.

    What a rule fails to say is not in it: that is told by a check of its own.
    """
    given, shapes = [_name(x) for x in operands], [x.shape for x in operands]
    record: dict[str, Any] = {"op": op.name, "input_shapes": shapes, "input_dtypes": given, "in_dtypes": given}
    record |= {"axis": None, "keepdims": False, **params}
    with suppress(Exception):
        record["dtype"] = op.types(op, given, params)
    with suppress(Exception):
        record["shape_out"] = op.shapes(op, shapes, params)
    return record


def _computed(under_test: OpUnderTest, params: Mapping[str, Any], operands: Sequence[Array]) -> Array:
    """Compute as a run does: by a record whose answers are checked, where it is not core's own."""
    op = under_test.record
    if OPS.get(op.name) is not op:
        op = with_rules_checked(op, lambda told: PluginError(f"it {told}"))
    try:
        with np.errstate(all="ignore"):
            return compute(op, _record(op, params, operands), [x.copy() for x in operands])
    except PluginError as fault:
        raise CheckFailed(str(fault)) from None


def _takes(op: MathOp, operands: Sequence[Array], params: Mapping[str, Any]) -> bool:
    """Whether a rule takes operands of these shapes; one that fails is told by a check of its own."""
    try:
        op.shapes(op, [x.shape for x in operands], params)
    except ShapeError:
        return False
    return True


def _type_of(under_test: OpUnderTest, given: tuple[str, ...]) -> str | None:
    """Return what a rule of types gives; None where it refuses, or fails, which a check of its own tells."""
    op, params = under_test.record_and_params()
    try:
        return op.types(op, given, params[0])
    except Exception:
        return None


def _must_refuse_well(what: str, given: object, rule: Callable[[], object]) -> None:
    try:
        rule()
    except ShapeError as refusal:
        if " must " not in str(refusal) or not str(refusal).rstrip().endswith("."):
            told = f"its refusal of {what} {given} must be a sentence that says what must be, not {str(refusal)!r}"
            raise CheckFailed(told) from None
    except Exception as error:
        raise CheckFailed(f"its rule must refuse {what} {given} by a ShapeError, not by {in_words(error)}") from None


def _alike(a: Array, b: Array) -> bool:
    wide = np.float64 if dtypes.is_float(_name(a)) else a.dtype
    return a.shape == b.shape and np.array_equal(a.astype(wide), b.astype(wide), equal_nan=wide is np.float64)


def _name(array: Array) -> str:
    return dtypes.dtype_name(array.dtype)


def _names(given: Any) -> str:
    return " and ".join(map(str, given))
