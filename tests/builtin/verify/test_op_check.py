"""Ops are computed a second time, each by itself: what is right passes, and any wrong element is found and named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.saved.saved_run import load_run, save_run
from kernbench_builtin.verify.comparison import differs
from kernbench_builtin.verify.op_check import verify_ops
from kernbench_builtin.verify.recomputation import anew
from kernbench_core.compute import batches, functions
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.ops import ALIASES, OPS
from kernbench_core.compute.ops.atomics import HOWS
from kernbench_core.compute.ops.second_way import Anew
from kernbench_core.compute.result_types import result_shape, result_type
from kernbench_core.errors import ExecutionError, NoDataError, ShapeError
from kernbench_core.values.dtypes import numpy_dtype
from kernbench_core.values.memory_store import MemoryStore
from tests.core.compute.recorder import Recorder, host
from tests.core.kernel_rig import Rig

DTYPES = ("bool", "int8", "int32", "uint8", "uint32", "f8e4m3", "f16", "bf16", "f32")
FLOATS = ("f8e4m3", "f16", "bf16", "f32")
REDUCTIONS = ("sum", "prod", "max", "min", "xor_sum", "reduce_or", "argmax", "argmin", "any", "all")
#: Shapes of the operands, and parameters, of ops that are not elementwise on one, two or three operands.
SHAPED: dict[str, tuple[tuple[tuple[int, ...], ...], dict[str, Any]]] = {
    **dict.fromkeys(REDUCTIONS, (((5, 7),), {"axis": 1})),
    **dict.fromkeys(("cumsum", "cumprod"), (((5, 7),), {"axis": 1, "reverse": True})),
    "softmax": (((5, 7),), {"axis": 1}),
    "reshape": (((5, 7),), {"shape": (7, 5)}),
    "trans": (((5, 7),), {}),
    "broadcast_to": (((1, 7),), {"shape": (5, 7)}),
    "expand_dims": (((5, 7),), {"axis": 1}),
    "cat": (((5, 7), (2, 7)), {"axis": 0}),
    "flip": (((5, 7),), {"axis": 0}),
    "join": (((5, 7), (5, 7)), {}),
    "split": (((5, 2),), {"part": 1}),
    "interleave": (((5, 7), (5, 7)), {}),
    "full": (((),), {"shape": (5, 7)}),
    "zeros": ((), {"shape": (5, 7)}),
    "masked_store": (((5, 7), (5, 7), (5, 7)), {}),
    "gather": (((5, 7), (3, 7)), {"axis": 0}),
    "histogram": (((35,),), {"num_bins": 9}),
    "where": (((5, 7), (5, 1), (7,)), {}),
    **dict.fromkeys([f"atomic_{how}" for how in HOWS if how != "cas"], (((9,), (5, 7), (5, 7)), {})),
    "atomic_cas": (((9,), (5, 7), (5, 7), (5, 7)), {}),
    "atomic_before": (((9,), (5, 7), (5, 7)), {"how": "add"}),
    "philox": (((), (), (5, 7), (7,), (), ()), {"part": 2}),
    "fma": (((5, 7), (5, 1), (7,)), {}),
    "clamp": (((5, 7), (), ()), {}),
}  # fmt: skip
BINARY = ("add", "sub", "mul", "floordiv", "mod", "pow", "minimum", "maximum", "div", "and", "or", "xor", "shl", "shr",
          "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "umulhi", "atan2", "copysign",
          "fdim")  # fmt: skip


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, op: str) -> np.ndarray:
    """Draw operands that the op is defined for."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        small = op in ("pow", "shl", "shr", "histogram", "gather") or op.startswith("atomic_")
        low, high = (0, 5) if small else (-90, 90)
        return rng.integers(max(low, 0 if dtype[0] == "u" else low), high, shape).astype(numpy_dtype(dtype))
    found = rng.standard_normal(shape) * 3
    return (np.abs(found) + 0.1 if op in ("log", "log2", "sqrt", "rsqrt", "pow") else found).astype(numpy_dtype(dtype))


def recorded(op: str, dtype: str, seed: int) -> Recorder | None:
    """Log one op on random operands; None where the op does not exist for the dtype."""
    rng, record = np.random.default_rng(seed), Recorder()
    shapes, params = SHAPED.get(op, (((5, 7), (5, 7)) if op in BINARY else ((5, 7),), {}))
    kinds = [dtype] * len(shapes)
    if op.startswith("atomic_"):
        kinds[2] = "int32"
        if dtype == "bool" or (op in ("atomic_and", "atomic_or", "atomic_xor") and dtype in FLOATS):
            return None
    if op in ("masked_store", "gather"):
        kinds[-1] = "bool" if op == "masked_store" else "int32"
    if op == "where":
        kinds[0] = "bool"
    if op in ("cast", "full", "zeros", "bitcast"):
        params = {**params, "dtype": {"cast": "f16"}.get(op, dtype)}
    if op in ("histogram", "philox") and dtype not in ("int8", "int32", "uint8", "uint32"):
        return None
    try:
        out, shape = result_type(op, kinds, params), result_shape(op, shapes, params)
    except ShapeError:
        return None
    if op == "pow" and out.startswith(("int", "uint", "bool")) and dtype == "bool":
        return None
    inputs = [host(drawn(rng, s, kind, op)) for s, kind in zip(shapes, kinds, strict=True)]
    made = record.op(op, inputs, shape, out, params)
    record.store.write("hbm", 0, made)
    return record


@pytest.mark.parametrize("start", range(3))
def test_every_op_is_computed_a_second_way(start: int) -> None:
    """Each third one: a landing has three cases of a test, and these are all ops."""
    for op in sorted(OPS)[start::3]:
        try:
            is_computed_a_second_way(op)
        except Exception as error:
            error.add_note(f"of op {op}")
            raise


def is_computed_a_second_way(op: str) -> None:
    """For each dtype that it exists for: the right result passes, and an element that is changed is found."""
    tried = 0
    for seed, dtype in enumerate(DTYPES):
        record = recorded(op, dtype, seed)
        if record is None:
            continue
        tried += 1
        executor = record.executor(keep_all=True)
        assert verify_ops(executor).failures == (), dtype
        ((_, result),) = executor.results()
        wrong = np.array(result.array())
        at = tuple(extent // 2 for extent in wrong.shape)
        if wrong.dtype.kind == "b":
            wrong[at] = ~wrong[at]
        elif wrong.dtype.kind in "iu":
            wrong[at] += wrong.dtype.type(2)
        else:
            wrong[at] = wrong.dtype.type(float(wrong[at]) + 100 if abs(float(wrong[at])) < 50 else -1)
        result.fill(wrong)
        (failure,) = verify_ops(executor).failures
        assert f", which gives {result.dtype}, must give what it gives by itself, but 1 of {wrong.size} el" in failure
        assert f"the worst is {list(at)}: got " in failure
    assert tried


def test_no_op_is_left_out() -> None:
    """Every op, by all of its names, is one of the above."""
    assert set(ALIASES.values()) <= set(OPS)


@settings(max_examples=40)
@given(
    st.sampled_from(["f32", "f16", "bf16", "int8", "uint8"]), st.integers(1, 300), st.integers(0, 9),
    st.booleans(), st.booleans(), st.sampled_from(["row_major", "col_major"]), st.booleans(),
)  # fmt: skip
def test_products_in_groups_pass(dtype, k, seed, transpose_a, transpose_b, layout, accumulate) -> None:
    """Alike, sharing an operand, or alone, in all layouts: no false alarm."""
    rng, record = np.random.default_rng(seed), Recorder()

    def operand(*shape):
        wide = rng.integers(0, 100, shape) if dtype[0] in "iu" else rng.standard_normal(shape)
        return host(wide.astype(numpy_dtype(dtype)))

    m, n = 6, 5
    more = [operand(m, n)] if accumulate else []
    shared = operand(*((n, k) if transpose_b else (k, n)))
    for number in range(5):
        a = operand(*((k, m) if transpose_a else (m, k)))
        b = shared if number < 3 else operand(*shared.shape)
        record.dot(
            a, b, "int32" if dtype[0] in "iu" else dtype, transpose_a=transpose_a, transpose_b=transpose_b,
            layout_a=layout, layout_out=layout, accumulate=accumulate, more=more,
        )  # fmt: skip
    assert verify_ops(record.executor(keep_all=True)).failures == ()


@pytest.mark.parametrize("dtype", ["f16", "int8"])
@pytest.mark.parametrize("scope", ["k_tile", "output_tile"])
def test_composites_with_epilogues_pass_and_their_faults_are_found(dtype, scope) -> None:
    """Every step that an epilogue may have, alone and after one another."""
    rng, record = np.random.default_rng(5), Recorder()

    def operand(shape, kind=dtype):
        return host(
            (rng.integers(-5, 5, shape) if kind == "int8" else rng.standard_normal(shape)).astype(numpy_dtype(kind))
        )

    a, b, row, factor = operand((8, 32)), operand((32, 6)), operand((6,), "f32"), operand((1,), "f32")
    parts = operand((4, 1), "f32")
    chains = [
        (("bias", scope, (2,)), ("gelu", scope, ())), (("dequant", scope, (3,)), ("relu", scope, ())),
        (("scale", scope, (3,)), ("silu", scope, ()), ("add", scope, (2,)), ("sigmoid", scope, ())),
        (("dequant", scope, (4,), scope == "k_tile"),) if scope == "k_tile" else (("mul", scope, (3,)),),
    ]  # fmt: skip
    for out in ("f16", "f32", "int8"):
        for chain in chains:
            params = {"tile_k": 8, "epilogue": chain, "dtype_out": out}
            record.op("composite_gemm", [a, b, row, factor, parts], (8, 6), out, params, "gemm")
    x = operand((8, 6), "f16")
    params = {"math_op": "mul", "epilogue": (("bias", "output_tile", (2,)), ("gelu", "output_tile", ()))}
    record.op("composite_math", [x, x, row], (8, 6), "f16", params)
    executor = record.executor(keep_all=True)
    assert verify_ops(executor).failures == ()
    for _, result in executor.results():
        result.fill(np.array(result.array()) + result.array().dtype.type(1))
    found = verify_ops(executor)
    assert (found.checked, found.wrong, len(found.failures)) == (13, 13, 9)
    assert found.failures[-1] == "(5 more ops differ.)"


def stack(record: Recorder) -> list[Any]:
    """Log three alike small products, a fourth that is not, and what comes of the second."""
    rng = np.random.default_rng(7)
    pairs = [[host(rng.integers(-4, 5, (4, 4)).astype(np.float16)) for _ in "ab"] for _ in range(3)]
    made = [record.dot(a, b, "f16") for a, b in pairs]
    later = record.op("neg", [made[1]], (4, 4), "f16")
    record.store.write("hbm", 0, later)
    return made


def off_by_one_in_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    product = functions.product

    def wrong(a: np.ndarray, b: np.ndarray, *by: object) -> np.ndarray:
        found = product(a, b)
        if found.ndim == 3:
            found[1, 2, 3] += 1
        return found

    monkeypatch.setattr(functions, "product", wrong)


def test_a_fault_in_the_stacked_path_is_found_with_its_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """The op, its unit, dtype and element; not the ones that read its result, which are right by themselves."""
    record = Recorder()
    made = stack(record)
    off_by_one_in_stacks(monkeypatch)
    executor = record.executor(keep_all=True)
    found = verify_ops(executor, where=lambda op: f" at kernel.py:{op.op_id[1]}")
    got = float(made[1].array()[2, 3])
    assert found.failures == (
        "gemm_f16 (op 1 of PE 0, sip0.cube0.pe0.unit, 2.000 ns) at kernel.py:1, which gives f16, must give what it "
        f"gives by itself, but 1 of 16 elements differ; the worst is [2, 3]: got {got}, expected {got - 1}.",
    )
    assert (found.ok, found.checked, found.wrong, found.max_abs_error) == (False, 4, 1, 1.0)


def test_what_was_dropped_is_computed_again_and_dropped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a run without keep_all the same op is found, and results are as they were: only what memory holds stays."""
    record = Recorder()
    made = stack(record)
    off_by_one_in_stacks(monkeypatch)
    executor = record.executor()
    executor.run()
    assert [result.pending for result in made] == [True, True, True]
    held = np.array(executor.store.read("hbm", 0, (4, 4), "f16"))
    for _ in range(2):
        found = verify_ops(executor)
        assert (found.checked, found.wrong) == (4, 1)
        assert [result.pending for result in made] == [True, True, True]
    np.testing.assert_array_equal(executor.store.read("hbm", 0, (4, 4), "f16"), held)


def test_what_a_run_gave_is_checked_itself_and_not_computed_again() -> None:
    """A result that memory holds and that is wrong, for whatever reason, is found."""
    record = Recorder()
    stack(record)
    executor = record.executor()
    executor.run()
    (held,) = [result for _, result in executor.results() if not result.pending]
    held.fill(np.array(held.array()) * np.float16(2))
    (failure,) = verify_ops(executor).failures
    assert failure.startswith("neg (op 3 of PE 0, sip0.cube0.pe0.unit, 4.000 ns), which gives f16, must give what")


def test_a_saved_log_can_be_verified(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """In a process that knows nothing of the run, the same fault is found."""
    record = Recorder()
    stack(record)
    save_run(tmp_path, record.log, record.store)
    assert verify_ops(load_run(tmp_path).executor()).ok
    off_by_one_in_stacks(monkeypatch)
    found = verify_ops(load_run(tmp_path).executor())
    assert (found.checked, found.wrong) == (4, 1)


def test_an_op_of_a_plug_in_is_computed_by_its_function_alone(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second way is the registered function, on the snapshot; one that raises is its plug-in's fault."""
    (tmp_path / "acme_verify.py").write_text("def scale(params, inputs):\n    return inputs[0] * params['factor']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    record = Recorder()
    made = record.op(
        "acme_scale", [host(np.ones(3, np.float32))], (3,), "f32", {"factor": 3}, function="acme_verify:scale"
    )
    record.store.write("hbm", 0, made)
    executor = record.executor()
    assert verify_ops(executor).ok
    made.fill(np.array([3, 4, 3], np.float32))
    assert (
        verify_ops(executor).failures[0].endswith("1 of 3 elements differ; the worst is [1]: got 4.0, expected 3.0.")
    )
    import acme_verify

    def scale(params: object, inputs: object) -> float:
        return 1 / 0

    line = scale.__code__.co_firstlineno + 1
    monkeypatch.setattr(acme_verify, "scale", scale)
    executor._functions._imported.clear()
    with pytest.raises(ExecutionError) as caught:
        verify_ops(executor)
    package = "acme_verify (source tree)"
    assert str(caught.value) == (
        "acme_scale (op 0 of PE 0, sip0.cube0.pe0.unit, 1.000 ns) could not be computed again: op 'acme_scale' of "
        f"{package} must have a function that computes, but it raised ZeroDivisionError: division by zero at "
        f"{__file__}:{line}; repair or reinstall {package}."
    )


def test_without_data_there_is_nothing_to_verify() -> None:
    """A run that kept shapes only is refused in the words of phase 2."""
    with pytest.raises(NoDataError) as caught:
        verify_ops(DataExecutor(Recorder().log, MemoryStore(data=False)))
    assert str(caught.value) == "Phase 2 must have data, and this run kept shapes only; run with data to compute."


@pytest.mark.parametrize(
    ("error", "dtype", "wrong"),
    [(0.9e-5, "f32", False), (2.1e-5, "f32", True), (0.9e-3, "f16", False), (3e-3, "f16", True), (1, "int32", True)],
)
def test_a_difference_passes_up_to_the_tolerance_of_the_dtype(error: float, dtype: str, wrong: bool) -> None:
    """rtol = atol, both counted at 1: up to twice the tolerance; integers exactly."""
    wanted = Anew(np.ones(1) if dtype[0] == "f" else np.ones(1, np.int64))
    found = (np.ones(1) + error).astype(numpy_dtype(dtype))
    assert differs(found, wanted, dtype)[0].tolist() == [wrong]


def test_sums_that_cancel_may_be_as_wrong_as_f32_makes_them() -> None:
    """The error of an f32 sum follows the size of what is added; one that passes it is found."""
    big = np.array([3e6, 1e-3, -3e6, 4e-3], np.float32)
    again = anew(functions.MATH, None, {"op": "sum", "axis": 0}, [big])
    assert not differs(np.array(0.004, np.float32), again, "f32")[0]
    assert differs(np.array(5.0, np.float32), again, "f32")[0]


def test_a_result_of_no_dimension_is_checked() -> None:
    """One element, which has no index: right as it was computed, and wrong as a caller's array says."""
    record = Recorder()
    total = record.op("sum", [host(np.arange(5, dtype=np.float32))], (), "f32", {"axis": 0})
    record.store.write("hbm", 0, total)
    executor = record.executor(keep_all=True)
    assert verify_ops(executor).ok
    assert verify_ops(executor, {total.op_id: np.array(11, np.float32)}).failures == (
        "sum (op 0 of PE 0, sip0.cube0.pe0.unit, 1.000 ns), which gives f32, must give what it gives by itself, but 1 "
        "of 1 elements differ; the worst is []: got 10.0, expected 11.0.",
    )


def test_the_worst_of_large_integers_is_told() -> None:
    """Although as floats they would be equal."""
    record = Recorder()
    made = record.op("add", [host(np.array([5, 1 << 60])), host(np.array([0, 1]))], (2,), "int64")
    record.store.write("hbm", 0, made)
    failures = verify_ops(record.executor(keep_all=True), {made.op_id: np.array([5, 1 << 60])}).failures
    assert failures[0].endswith(f"the worst is [1]: got {(1 << 60) + 1}, expected {1 << 60}.")


def test_groups_are_really_used() -> None:
    """The tests above break a path that three alike products take."""
    record = Recorder()
    stack(record)
    seen: list[int] = []
    product = functions.product
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches.functions, "product", lambda a, b, *by: seen.append(a.ndim) or product(a, b))
        record.executor().run()
    assert 3 in seen


def test_ops_can_be_compared_with_arrays_of_the_caller() -> None:
    """Only the ops that are named; the worst element, and what was expected of it."""
    record = Recorder()
    made = record.op("exp", [host(np.zeros(2, np.float32))], (2,), "f32")
    record.op("neg", [made], (2,), "f32")
    bad = verify_ops(record.executor(), {(0, 1): np.array([-1, 5], np.float32)})
    assert (bad.checked, bad.failures) == (
        1,
        (
            "neg (op 1 of PE 0, sip0.cube0.pe0.unit, 2.000 ns), which gives f32, must give what it gives by itself, "
            "but 1 of 2 elements differ; the worst is [1]: got -1.0, expected 5.0.",
        ),
    )


def test_what_was_computed_while_a_kernel_ran_is_checked_as_an_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers that index and branch are no less data than what phase 2 computes."""
    right = functions.evaluate

    def wrong(op: str, params: Any, inputs: Any) -> Any:
        found = np.array(right(op, params, inputs))
        found[2] += op == "add"
        return found

    def kernel(x: Any, y: Any, tl: Any) -> None:
        at = tl.load(x + tl.arange(0, 4))
        tl.store(y + (at + 1) % 4, at * 2)

    monkeypatch.setattr(functions, "evaluate", wrong)
    rig = Rig()
    x, y = rig.tensor(np.arange(4, dtype=np.int32)), rig.empty((4,), "int32")
    rig.run(kernel, x, y)
    (failure,) = verify_ops(DataExecutor(rig.log, rig.store)).failures
    assert failure.startswith("add (op 1 of PE 0, sip0.cube0.pe0.pe_math, ")
    assert failure.endswith(
        "), which gives int32, must give what it gives by itself, but 1 of 4 elements differ; the worst is [2]: got 4, "
        "expected 3."
    )
