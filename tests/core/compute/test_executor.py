"""Phase 2 computes what the log says, in any grouping, and drops what nobody reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import ExecutionError, NoDataError, PendingDataError, UsageError
from kernbench_core.oplog.columns import Columns
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog, OpRecord
from kernbench_core.values.dtypes import numpy_dtype
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, LoadedValue, Part
from kernbench_core.values.views import FillValue, ground
from tests.core.compute.recorder import TCM, Recorder, host
from tests.core.toy_machine import toy_engine


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "int8"])
@pytest.mark.parametrize("case", ["shared_b", "alike", "single"])
def test_gemms_equal_a_naive_sum(dtype, case) -> None:
    """Grouped or single, a product equals the f64 sum of products, rounded once."""
    rng = np.random.default_rng(3)
    record = Recorder()
    count = 1 if case == "single" else 7

    def operand(*shape):
        if dtype == "int8":
            return host(rng.integers(-128, 127, shape).astype(np.int8))
        return host(rng.standard_normal(shape).astype(numpy_dtype(dtype)))

    b = operand(96, 40)
    pairs = [
        (operand(16 + (i if case == "shared_b" else 0), 96), b if case == "shared_b" else operand(96, 40))
        for i in range(count)
    ]
    out = "int32" if dtype == "int8" else dtype
    results = [record.dot(a, w, out) for a, w in pairs]
    executor = record.executor(keep_all=True)
    executor.run()
    for (a, w), result in zip(pairs, results, strict=True):
        exact = a.array().astype(np.float64) @ w.array().astype(np.float64)
        if dtype == "int8":
            np.testing.assert_array_equal(result.array(), exact.astype(np.int32))
        else:
            tolerance = {"f32": 1e-5, "f16": 1e-3, "bf16": 1e-2}[dtype]
            np.testing.assert_allclose(result.array().astype(np.float64), exact, rtol=tolerance, atol=tolerance)


def test_low_precision_is_accumulated_in_f32() -> None:
    """4096 ones times 1/2 give 2048 in bf16, where a bf16 accumulator would stop at 128."""
    record = Recorder()
    dtype = numpy_dtype("bf16")
    product = record.dot(host(np.ones((1, 4096), dtype)), host(np.full((4096, 1), 0.5, dtype)), "bf16")
    total = record.op("sum", [host(np.ones(4096, dtype))], (), "bf16", {"axis": None})
    executor = record.executor(keep_all=True)
    executor.run()
    assert float(product.array()[0, 0]) == 2048.0
    assert float(total.array()) == 4096.0


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_transposed_operands(transpose_a, transpose_b) -> None:
    """Transposition flags apply in every grouping."""
    rng = np.random.default_rng(5)
    record = Recorder()
    a = [host(rng.standard_normal((5, 3) if transpose_a else (3, 5)).astype(np.float32)) for _ in range(4)]
    b = [host(rng.standard_normal((4, 5) if transpose_b else (5, 4)).astype(np.float32)) for _ in range(2)]
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    pairs = [(a[0], b[0]), (a[1], b[0]), (a[2], b[1]), (a[3], host(b[1].array() * 2))]
    results = [record.dot(x, y, "f32", **flags) for x, y in pairs]
    executor = record.executor(keep_all=True)
    executor.run()
    for (x, y), result in zip(pairs, results, strict=True):
        left = x.array().T if transpose_a else x.array()
        right = y.array().T if transpose_b else y.array()
        np.testing.assert_allclose(result.array(), left @ right, rtol=1e-5, atol=1e-6)


def test_accumulating_chain() -> None:
    """A K loop of dot with an accumulator gives the whole product."""
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((8, 64)).astype(np.float32), rng.standard_normal((64, 8)).astype(np.float32)
    record = Recorder()
    acc = host(np.zeros((8, 8), np.float32))
    for k in range(0, 64, 16):
        acc = record.dot(host(a[:, k : k + 16]), host(b[k : k + 16]), "f32", more=[acc], accumulate=True)
    record.store.write("hbm", 0, acc)
    executor = record.executor()
    executor.run()
    np.testing.assert_allclose(executor.store.read("hbm", 0, (8, 8), "f32"), a @ b, rtol=1e-5, atol=1e-5)


def test_composite_epilogue() -> None:
    """Output-tile steps see the finished sum in f32; k-tile steps see each k tile's own product."""
    rng = np.random.default_rng(9)
    a, b = rng.integers(-9, 9, (4, 6)).astype(np.int8), rng.integers(-9, 9, (6, 5)).astype(np.int8)
    scale, bias = np.array([0.5, 0.25, 2.0], np.float32), rng.standard_normal(5).astype(np.float32)
    record = Recorder()
    result = record.op(
        "composite_gemm",
        [host(a), host(b), host(scale), host(bias)],
        (4, 5),
        "f32",
        {
            "op": "gemm",
            "tile_k": 2,
            "dtype_out": "f32",
            "epilogue": (("dequant", "k_tile", (2,), True), ("bias", "output_tile", (3,)), ("relu", "output_tile", ())),
        },
        "gemm",
    )
    gelu = record.op(
        "composite_math",
        [result, host(bias)],
        (4, 5),
        "f16",
        {"op": "math", "math_op": "tanh", "epilogue": (("scale", "output_tile", (1,)), ("gelu", "output_tile", ()))},
    )
    executor = record.executor(keep_all=True)
    executor.run()
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    want = sum(scale[t] * (wide_a[:, 2 * t : 2 * t + 2] @ wide_b[2 * t : 2 * t + 2]) for t in range(3)) + bias
    want = np.maximum(want, 0)
    np.testing.assert_allclose(result.array(), want, rtol=1e-5, atol=1e-5)
    x = (np.tanh(want) * bias).ravel()
    want = [0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) for v in x]
    np.testing.assert_allclose(gelu.array().ravel(), want, rtol=1e-3, atol=1e-3)


def test_results_are_dropped_after_their_last_reader() -> None:
    """Only what memory holds is left after a run."""
    record = Recorder()
    first = record.op("exp", [host(np.zeros(4, np.float32))], (4,), "f32")
    second = record.op("add", [first, first], (4,), "f32")
    third = record.op("neg", [second], (4,), "f32")
    record.store.write("hbm", 0, second)
    record.store.write("hbm", 64, host(np.zeros(4, np.float32)))
    record.store.write("hbm", 64, third)
    record.store.write("hbm", 64, host(np.ones(4, np.float32)))
    executor = record.executor()
    executor.run()
    assert (first.pending, second.pending, third.pending) == (True, False, True)
    assert executor.computed == 3
    np.testing.assert_array_equal(executor.store.read("hbm", 0, (4,), "f32"), [2, 2, 2, 2])
    with pytest.raises(PendingDataError) as caught:
        first.array()
    assert str(caught.value) == "The result of op 0 of PE 0 exists only after phase 2; do not read it before."


def test_materialize_computes_just_what_is_needed_and_once() -> None:
    """A host read between launches computes its own inputs; a run afterwards computes the rest only."""
    record = Recorder()
    one = record.op("exp", [host(np.zeros(4, np.float32))], (4,), "f32")
    two = record.op("add", [one, one], (4,), "f32")
    other = record.op("neg", [one], (4,), "f32")
    executor = record.executor()
    np.testing.assert_array_equal(executor.materialize(two), [2, 2, 2, 2])
    assert executor.computed == 2
    later = record.op("mul", [two, other], (4,), "f32")
    record.store.write("hbm", 0, later)
    np.testing.assert_array_equal(executor.materialize(two), [2, 2, 2, 2])
    assert executor.computed == 2
    executor.run()
    assert executor.computed == 4
    np.testing.assert_array_equal(executor.store.read("hbm", 0, (4,), "f32"), [-2, -2, -2, -2])


def test_a_host_loop_looks_only_at_what_is_new(monkeypatch) -> None:
    """Reading a small result again and again walks neither all of memory nor the order of the whole log."""
    record = Recorder()
    executor = record.executor()
    one = host(np.ones(4, np.float32))
    for at in range(50):
        record.store.write("hbm", 64 * at, record.op("neg", [one], (4,), "f32"))
    executor.run()
    walks: list[str] = []
    monkeypatch.setattr(executor._lifetimes, "held", lambda: walks.append("memory") or ())
    monkeypatch.setattr(Columns, "order", lambda self: walks.append("order"))
    state = one
    for at in range(20):
        state = record.op("add", [state, one], (4,), "f32")
        record.store.write("hbm", 1 << 20, state)
        np.testing.assert_array_equal(executor.materialize(state), np.full(4, at + 2))
    assert walks == []


@pytest.mark.parametrize("limit", ["_WINDOW_BYTES", "_WINDOW_OPS"])
def test_a_window_has_an_op_however_low_its_limits(monkeypatch, limit: str) -> None:
    """With ops ready there is one in it: an empty one would be asked for again without end."""
    monkeypatch.setattr(f"kernbench_core.compute.op_graph.{limit}", 0)
    record = Recorder()
    first = host(np.ones(4, np.float32))
    found = [record.op("add", [first, host(np.full(4, each, np.float32))], (4,), "f32") for each in range(3)]
    last = record.op("add", [found[1], found[2]], (4,), "f32")
    record.executor(keep_all=True).run()
    assert [each.array()[0] for each in (*found, last)] == [1, 2, 3, 5]


def test_a_host_loop_drops_old_results_now_and_then(monkeypatch) -> None:
    """Results that memory no longer holds are dropped once there are enough of them; the present one is not."""
    monkeypatch.setattr("kernbench_core.compute.op_graph._WINDOW_BYTES", 64)
    record = Recorder()
    executor = record.executor()
    states = [host(np.ones(4, np.float32))]
    for _ in range(20):
        states.append(record.op("add", [states[-1], states[0]], (4,), "f32"))
        record.store.write("hbm", 0, states[-1])
        executor.materialize(states[-1])
    assert sum(not state.pending for state in states[1:]) <= 6
    np.testing.assert_array_equal(executor.store.read("hbm", 0, (4,), "f32"), np.full(4, 21))


def test_loads_and_assemblies_carry_dependencies() -> None:
    """A load that was bound after it was logged, inside an assembly, still names its producer."""
    record = Recorder()
    made = record.op("exp", [host(np.zeros(4, np.float32))], (4,), "f32")
    load = LoadedValue((4,), "f32")
    under = ground(FillValue(np.full((), 5, np.float32)), 32)
    whole = AssemblyValue((2, 4), "f32", (under, Part(Region(0, 16), load, Region(0, 16))))
    result = record.op("add", [whole, whole], (2, 4), "f32")
    assert record.log[1].dependency_ids == []
    load.bind(made)
    assert record.log[1].dependency_ids == [0]
    record.store.write("hbm", 0, result)
    executor = record.executor()
    executor.run()
    np.testing.assert_array_equal(executor.store.read("hbm", 0, (2, 4), "f32"), [[2] * 4, [10] * 4])


def test_masked_store_merges() -> None:
    """A store under a pending mask is a read-modify-write."""
    record = Recorder()
    old, new = host(np.arange(4, dtype=np.float32)), host(np.full(4, 9, np.float32))
    mask = record.op("gt", [old, host(np.array(1.5, np.float32))], (4,), "bool")
    merged = record.op("masked_store", [old, new, mask], (4,), "f32")
    record.store.write("hbm", 0, merged)
    executor = record.executor()
    executor.run()
    np.testing.assert_array_equal(executor.store.read("hbm", 0, (4,), "f32"), [0, 1, 9, 9])


def plugin_function(params, inputs):
    """Compute what a plug-in's op does; named by the test below as a plug-in names its own."""
    return inputs[0] * params["factor"] + 1


def test_plugin_functions_by_name_and_by_record(tmp_path, monkeypatch) -> None:
    """An op is computed by the function that its record names, or that is registered for its name."""
    (tmp_path / "acme_ops.py").write_text("def scale(params, inputs):\n    return inputs[0] * params['factor']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    record = Recorder()
    x = host(np.ones(3, np.float32))
    named = record.op("acme_scale", [x], (3,), "f32", {"factor": 3}, function="acme_ops:scale")
    listed = record.op("acme_other", [x], (3,), "f16", {"factor": 4})
    executor = record.executor(functions={"acme_other": "acme_ops:scale"}, keep_all=True)
    executor.run()
    assert (named.array().tolist(), listed.array().tolist(), listed.array().dtype) == ([3] * 3, [4] * 3, np.float16)


def test_a_function_that_cannot_be_imported_is_told_with_one_full_stop(tmp_path, monkeypatch) -> None:
    """Whatever the module that should have it says at its end."""
    (tmp_path / "acme_gpu.py").write_text("raise ImportError('There must be a GPU.')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    record = Recorder()
    record.op("acme_scale", [host(np.ones(3, np.float32))], (3,), "f32", function="acme_gpu:scale")
    with pytest.raises(ExecutionError) as caught:
        record.executor().run()
    assert str(caught.value) == (
        "acme_scale (op 0 of PE 0, sip0.cube0.pe0.unit, 1.000 ns) must be computed by 'acme_gpu:scale', which cannot "
        "be had: There must be a GPU."
    )


def test_failures_are_sentences() -> None:
    """No function, a function that raises, a wrong shape, a run without data, an open load."""
    x = host(np.ones(3, np.float32))
    where = "(op 0 of PE 0, sip0.cube0.pe0.unit, 1.000 ns)"
    record = Recorder()
    record.op("acme", [x], (3,), "f32")
    with pytest.raises(ExecutionError) as caught:
        record.executor().run()
    assert str(caught.value) == (
        f"acme {where} must be computed by some function, and none is registered for 'acme'; "
        "let the plug-in register one."
    )
    record = Recorder()
    record.op("sum", [x], (3,), "f32", {"axis": 0})
    with pytest.raises(ExecutionError) as caught:
        record.executor().run()
    assert str(caught.value) == (
        f"sum {where} must give a result of shape (3,), not (); mend 'kernbench_core.compute.functions:math_op'."
    )
    record = Recorder()
    record.op("add", [x, host(np.ones(4, np.float32))], (3,), "f32")
    with pytest.raises(ExecutionError) as caught:
        record.executor().run()
    assert str(caught.value) == (
        f"add {where} could not be computed: The operands of add must broadcast to one shape, not (3,) and (4,); "
        "reshape one of them."
    )
    record = Recorder()
    record.op("neg", [LoadedValue((3,), "f32")], (3,), "f32")
    with pytest.raises(ExecutionError) as caught:
        record.executor().run()
    assert str(caught.value) == f"neg {where} must read loads that have completed; let the run end before computing."
    with pytest.raises(NoDataError):
        DataExecutor(record.log, MemoryStore(data=False)).run()


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from(["add", "maximum", "neg", "dot"])),
        max_size=20,
    )
)
def test_any_graph_equals_eager_evaluation(script) -> None:
    """Whatever graph of ops is logged, the values are those of computing them one by one."""
    rng = np.random.default_rng(13)
    record = Recorder()
    base = rng.integers(-3, 4, (4, 4)).astype(np.float32)
    values, eager = [host(base)], [base]
    for left, right, name in script:
        i, j = left % len(values), right % len(values)
        if name == "dot":
            values.append(record.dot(values[i], values[j], "f32"))
            eager.append(np.clip(eager[i] @ eager[j], None, None))
        elif name == "neg":
            values.append(record.op("neg", [values[i]], (4, 4), "f32"))
            eager.append(-eager[i])
        else:
            values.append(record.op(name, [values[i], values[j]], (4, 4), "f32"))
            eager.append({"add": np.add, "maximum": np.maximum}[name](eager[i], eager[j]))
    executor = record.executor(keep_all=True)
    executor.run()
    for value, want in zip(values, eager, strict=True):
        np.testing.assert_allclose(value.array(), want, rtol=1e-5)


def test_an_op_that_writes_no_memory_does_not_have_the_log_replayed():
    """A message that leaves for another PE has no destination (-1): its record is complete as it is."""
    recorder = Recorder()
    value = host(np.ones(2, np.float32))
    recorder.op("relu", [value], (2,), "f32")
    sent = {"src_addr": TCM, "src_space": "tcm", "dst_addr": -1, "dst_space": "", "nbytes": 8}
    described = OpDescription("memory", "sent", sent, (Access("tcm", (), value),), None, (0, 9))
    recorder.log.append(9.0, 9.5, "unit", described)
    executor = recorder.executor()
    executor.run()
    assert executor.store is recorder.store
    assert executor.computed == 1


def test_the_log_of_a_run_brings_its_memory() -> None:
    """A log that was made by hand has none, and nor has a list of records: it is asked for."""
    engine = toy_engine()
    assert DataExecutor(engine.op_log).memory is DataExecutor(engine.op_log).store is engine.store
    store = MemoryStore()
    assert DataExecutor(engine.op_log, store).memory is store
    for log in (OpLog(), list[OpRecord]()):
        with pytest.raises(UsageError) as caught:
            DataExecutor(log)
        assert str(caught.value) == (
            "DataExecutor must be given the memory of phase 1 for an op log that is no run's own; give it as the "
            "second argument: of a result it is `result.store`."
        )
