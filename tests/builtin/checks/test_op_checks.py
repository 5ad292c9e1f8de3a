"""The kit for math ops: core's own pass it, and each planted fault is found by the check for it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from kernbench_builtin.checks.op_checks import KIT, op_under_test
from kernbench_core.compute.ops import OPS, Again, Form, MathOp, Operands
from kernbench_core.compute.ops.record import both, plain
from kernbench_core.compute.ops.shape_rules import elementwise, reduced
from kernbench_core.compute.ops.type_rules import always, floats, same
from kernbench_core.errors import ShapeError
from kernbench_core.testing import CheckFailed, CheckOutcome

#: Those whose params say what they are, the number of bins, the dtype, the word; and those whose floats are cut later.
ASKED_OTHERWISE = ("histogram", "cast", "philox", "llrint", "llround", "pow")
CALLS = itertools.count()
CUBE = MathOp("cube", lambda params, x: x**3, types=floats, shapes=elementwise, again=both(lambda params, x: x * x * x))
TOTAL = MathOp(
    "total", lambda params, x: np.sum(x, axis=params["axis"], keepdims=params["keepdims"]), types=floats,
    shapes=reduced, form=Form.REDUCTION,
)  # fmt: skip


def failed(op: Any) -> dict[str, str]:
    under_test = op_under_test(getattr(op, "name", "function"), op)
    found = [check.result("ops", under_test.name, under_test, {}) for check in KIT.checks]
    return {each.check: each.reason for each in found if each.outcome is CheckOutcome.FAILED}


@pytest.mark.parametrize("name", [name for name in OPS if name not in ASKED_OTHERWISE])
def test_our_ops_pass(name: str) -> None:
    """Every record of core's, but those above."""
    assert failed(OPS[name]) == {}


@pytest.mark.parametrize("op", [CUBE, TOTAL], ids=str)
def test_ops_of_a_plugin_pass(op: MathOp) -> None:
    """What the faults below are planted in."""
    assert failed(op) == {}


def scribbling(params: Any, x: Any) -> Any:
    cubed = x**3
    x[0] = 0
    return cubed


def drifting(params: Any, x: Any) -> Any:
    return x**3 + next(CALLS) % 2


def over_rows(params: Any, x: Any) -> Any:
    return x**3 - x.mean()


def wordless(op: MathOp, shapes: Any, params: Any) -> Any:
    if len(set(shapes)) > 1:
        raise ShapeError("no")
    return shapes[0]


def falling_over(op: MathOp, given: Any, params: Any) -> str:
    return {"f16": "f16", "f32": "f32"}[given[0]]


@pytest.mark.parametrize(
    ("op", "check", "reason"),
    [
        (evolve(CUBE, types=falling_over, again=None), "refuses_in_words",
         "its rule must refuse dtypes ('bool',) by a ShapeError, not by KeyError: 'bool'"),
        (evolve(CUBE, arity=2, function=plain(np.hypot), again=None, shapes=wordless), "refuses_in_words",
         "its refusal of shapes ((), (1,)) must be a sentence that says what must be, not 'no'"),
        (evolve(CUBE, types=always("int32"), again=None), "gives_numbers_of_the_promised_kind",
         "of f8e4m3 it must give numbers of the kind of int32, not of float32"),
        (evolve(CUBE, shapes=reduced), "gives_the_promised_shape",
         "of shapes (6, 5) it must give (), and gives (6, 5)"),
        (evolve(TOTAL, function=lambda params, x: np.sum(x, axis=params["axis"])), "gives_the_promised_shape",
         "of shapes (6, 5) it must give (1, 5), and gives (5,)"),
        (evolve(CUBE, function=scribbling), "leaves_operands_alone",
         "it must leave operands alone, and writes into number 1, f8e4m3"),
        (evolve(CUBE, function=drifting, again=None), "computes_the_same_twice",
         "it must give the same of the same f8e4m3, and does not"),
        (evolve(CUBE, again=Again(lambda params, x: x * x)), "agrees_with_its_second_way", None),
        (evolve(CUBE, function=over_rows, again=both(over_rows)), "keeps_to_its_form", None),
        (evolve(CUBE, function=lambda params, x: np.where(x > 0, x**3, np.nan)), "agrees_with_its_second_way", None),
    ],
)  # fmt: skip
def test_a_planted_fault_is_found_by_the_check_for_it(op: MathOp, check: str, reason: str | None) -> None:
    """And says in a sentence what it is."""
    found = failed(op)
    assert check in found
    assert reason is None or found[check] == reason


def doubled(params: Any, inputs: Any, *, by: int = 2) -> Any:
    return inputs[0] * inputs[0].dtype.type(by)


def of_three(params: Any, inputs: Any) -> Any:
    a, b, c = inputs
    return a @ b + c


def needy(params: Any, inputs: Any, *, by: int) -> Any:
    return inputs[0] * by


def choosy(params: Any, inputs: Any) -> Any:
    raise ShapeError("The operands of choosy must be seven.")


@pytest.mark.parametrize("function", [doubled, of_three, needy, choosy])
def test_functions_that_are_right_pass(function: Any) -> None:
    """Also those that refuse what the kit gives, and those that it cannot ask."""
    assert failed(function) == {}
    if function in (doubled, of_three):
        under_test = op_under_test("function", function)
        for name in ("gives_what_can_be_promised", "leaves_operands_alone", "computes_the_same_twice"):
            check = next(each for each in KIT.checks if each.name == name)
            assert check.result("ops", "function", under_test, {}).outcome is CheckOutcome.PASSED


def leaving(params: Any, inputs: Any) -> Any:
    raise SystemExit(3)


def mute(params: Any, inputs: Any) -> Any:
    return None


def lost(params: Any, inputs: Any) -> Any:
    return inputs[0] * params["gain"]


def in_place(params: Any, inputs: Any) -> Any:
    inputs[-1][0] = 0
    return inputs[0] * 1


def only_some(params: Any, inputs: Any) -> Any:
    return inputs[0][inputs[0] != 0]


def unsteady(params: Any, inputs: Any) -> Any:
    return inputs[0].astype(np.float32) * (1 + next(CALLS) % 2)


ALL = {"gives_what_can_be_promised", "leaves_operands_alone", "computes_the_same_twice"}


@pytest.mark.parametrize(
    ("function", "checks", "reason"),
    [
        (leaving, ALL, "of bool it must return an array, and raised SystemExit: 3"),
        (mute, ALL, "of bool it must return an array of numbers, not of object"),
        (lost, ALL, "it must compute something of one to 3 arrays, and raised KeyError: 'gain'"),
        (in_place, {"leaves_operands_alone"}, "it must leave operands alone, and of bool writes into number 1"),
        (only_some, {"gives_what_can_be_promised"},
         "of bool it must give one shape and dtype, which kernels promise beforehand, not bool (21,) and bool (13,)"),
        (unsteady, {"computes_the_same_twice"}, "it must give the same of the same bool, and does not"),
    ],
)
def test_a_fault_of_a_function_is_found(function: Any, checks: set[str], reason: str | None) -> None:
    """By the check for it; what gives nothing at all, by each."""
    found = failed(function)
    assert set(found) == checks
    assert reason is None or set(found.values()) == {reason}


@pytest.mark.parametrize("name", ["pow"])
def test_what_no_integers_have_is_told(name: str) -> None:
    """A negative power of an integer is none, of which numpy says so; a plug-in's op must compute something."""
    told = "it raised ValueError: Integers to negative integer powers are not allowed."
    checks = ("gives_the_promised_shape", "leaves_operands_alone", "agrees_with_its_second_way")
    assert failed(OPS[name]) == dict.fromkeys(checks, told)


def spoilt(where: Any) -> Any:
    return lambda params, x: np.where(where(x), 7, x + x).astype(x.dtype)


@pytest.mark.parametrize(
    "function",
    [
        spoilt(np.isnan),
        spoilt(lambda x: x == np.inf),
        spoilt(lambda x: x == -np.inf),
        spoilt(lambda x: np.abs(x.astype(np.float64)) > 1e4),
        spoilt(lambda x: (x != 0) & (np.abs(x.astype(np.float64)) < 1e-3)),
        spoilt(lambda x: x == 0),
        spoilt(lambda x: np.full(x.shape, x.size % 7 == 0)),
        spoilt(lambda x: np.full(x.shape, x.size >= 5000)),
        spoilt(lambda x: np.full(x.shape, x.size == 1)),
        spoilt(lambda x: np.full(x.shape, x.ndim > 2)),
        spoilt(lambda x: np.full(x.shape, x.dtype.kind == "i") & (x < 0)),
        spoilt(lambda x: np.full(x.shape, x.dtype == np.int16) & (x.astype(np.int64) == -(2**15))),
        spoilt(lambda x: np.full(x.shape, x.dtype == np.uint32) & (x.astype(np.int64) == 2**32 - 1)),
        spoilt(lambda x: np.full(x.shape, x.dtype == np.int64) & (x.astype(np.int64) == 2**63 - 1)),
    ],
    ids=["nan", "inf", "-inf", "large", "small", "zero", "sevens", "many", "one", "3d", "negative", "least", "greatest",
         "int64"],
)  # fmt: skip
def test_what_is_wrong_for_some_operands_alone_is_found(function: Any) -> None:
    """Numbers at the ends of what a dtype holds, and shapes other than the first."""
    twice = MathOp("twice", function, types=same, shapes=elementwise, again=both(lambda params, x: 2 * x))
    assert set(failed(twice)) >= {"agrees_with_its_second_way"}
    right = evolve(twice, function=spoilt(lambda x: np.zeros(x.shape, bool)))
    assert failed(right) == {}


def test_a_sum_that_is_wrong_for_long_lines_or_nan_is_found() -> None:
    """Reductions are tried on such, too."""
    way = Again(lambda params, x: np.sum(x, axis=params["axis"], keepdims=params["keepdims"]))

    def short(params: Any, x: Any) -> Any:
        return np.sum(np.where(np.arange(x.shape[-1]) < 1000, x, 0), axis=params["axis"], keepdims=params["keepdims"])

    def deaf(params: Any, x: Any) -> Any:
        return np.nansum(x, axis=params["axis"], keepdims=params["keepdims"])

    assert failed(evolve(TOTAL, again=way)) == {}
    assert "agrees_with_its_second_way" in failed(evolve(TOTAL, function=deaf, again=way))
    assert set(failed(evolve(TOTAL, function=short, again=way))) == {"agrees_with_its_second_way"}


def scribbling_on_doubles(params: Any, x: Any) -> Any:
    cubed = x**3
    if x.dtype == np.float64:
        x[0] = 0
    return cubed


def test_what_is_wrong_of_one_dtype_alone_is_found() -> None:
    """Doubles come as doubles, and a function may ask the record what the dtype is."""
    assert failed(evolve(CUBE, function=scribbling_on_doubles)) == {
        "leaves_operands_alone": "it must leave operands alone, and writes into number 1, f64"
    }
    twice = evolve(CUBE, function=lambda params, x: x**3 * (2 if params["dtype"] == "bf16" else 1))
    assert set(failed(twice)) == {"agrees_with_its_second_way"}
    for key in ("dtype", "in_dtypes", "input_dtypes", "input_shapes", "shape_out", "op", "axis", "keepdims"):
        assert failed(evolve(CUBE, function=lambda params, x, key=key: (params[key], x**3)[1])) == {}


def test_what_is_given_by_name_is_not_made_up() -> None:
    """An op that needs a keyword is not asked without it."""
    needy = evolve(CUBE, function=lambda params, x: x ** params["power"], keywords=("power",), again=None)
    under_test = op_under_test("needy", needy)
    of_records = [check for check in KIT.checks if check.name != "gives_what_can_be_promised"]
    found = {check.result("ops", "needy", under_test, {}).reason for check in of_records}
    assert found == {"kernels must give it 'power', of which the kit knows no example"}


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (5, "its target must be a MathOp or a function, not 5"),
        (evolve(CUBE, types=falling_over, operands=Operands.COMPUTED, arity=3), None),
        (evolve(CUBE, types=lambda op, given, params: 1 / 0),
         "its rule of types must take operands of some dtype, and takes none"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_fails_as_it_is_opened(op: Any, reason: str | None) -> None:
    """In a sentence; a rule that takes something can."""
    if reason is None:
        assert op_under_test("cube", op).taken
        return
    with pytest.raises(CheckFailed) as caught:
        op_under_test("cube", op)
    assert str(caught.value) == reason
