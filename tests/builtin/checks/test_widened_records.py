"""Rules of types say how operands are widened, of a plug-in's record, whose answers are checked, as of core's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_builtin.checks.op_checks import KIT, op_under_test
from kernbench_core.compute.functions import PluginFunction
from kernbench_core.compute.ops import OPS, Again, Form, MathOp
from kernbench_core.compute.ops.shape_rules import elementwise, reduced
from kernbench_core.compute.ops.type_rules import integers, quotient, same, widened

BYTES = np.random.default_rng(3).integers(-128, 128, 40).astype(np.int8)
OTHERS = np.where(BYTES[::-1] == 0, 1, BYTES[::-1]).astype(np.int8)
BITS = BYTES > 0
MORE = OTHERS % 3 == 0
WHOLE = BYTES.astype(np.int64)


def added(params: Any, x: Any, y: Any) -> Any:
    return x + y


def two(name: str, function: Any, types: Any, again: Again | None = None) -> MathOp:
    return MathOp(name, function, types=types, shapes=elementwise, arity=2, again=again)


SUMSQ = MathOp(
    "sumsq", lambda params, x: (x * x).sum(params.get("axis"), keepdims=params.get("keepdims", False)),
    types=widened, shapes=reduced, form=Form.REDUCTION,
)  # fmt: skip
RATIO = two("ratio", lambda params, x, y: x * x / y, quotient)
SAME = two("plus", added, same, Again(added))


def computed(op: MathOp, *operands: Any) -> Any:
    """Compute as a run does."""
    return PluginFunction.of(op.name, "acme:OP", op)({}, operands)


@pytest.mark.parametrize(
    ("op", "operands", "wanted"),
    [
        (SUMSQ, (BYTES,), np.int32(np.sum(WHOLE * WHOLE))),
        (RATIO, (BYTES, OTHERS), (WHOLE * WHOLE / OTHERS).astype(np.float32)),
        (SAME, (BITS, MORE), np.logical_xor(BITS, MORE)),
        (two("plus", added, integers), (BITS, MORE), np.logical_xor(BITS, MORE)),
    ],
    ids=["widened", "quotient", "same", "integers"],
)  # fmt: skip
def test_operands_are_widened_as_the_rule_says(op: MathOp, operands: Any, wanted: Any) -> None:
    """Against whole numbers of numpy: sums in int32, quotients in f32, bits that wrap."""
    found = computed(op, *operands)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_bits_are_added_as_ours_are() -> None:
    """By a record of a plug-in that says the same as core's."""
    np.testing.assert_array_equal(computed(SAME, BITS, MORE), computed(OPS["add"], BITS, MORE))


@pytest.mark.parametrize("op", [SUMSQ, RATIO, SAME], ids=str)
def test_the_kit_passes_what_is_right(op: MathOp) -> None:
    """A second way that is the first, in floats, agrees on bits."""
    under_test = op_under_test(op.name, op)
    found = [check.result("ops", op.name, under_test, {}) for check in KIT.checks]
    assert [each for each in found if not each.outcome.right] == []
