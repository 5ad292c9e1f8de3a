"""Benches that are given arrays, or tensors that are on the device: sizes, results, time, and layers of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_builtin.benches.attention import bench as attention
from kernbench_builtin.benches.attention_decode import bench as attention_decode
from kernbench_builtin.benches.gemm import bench as gemm
from kernbench_builtin.benches.gemm_composite import bench as gemm_composite
from kernbench_builtin.benches.gemm_naive import bench as gemm_naive
from kernbench_builtin.benches.gemv import bench as gemv
from kernbench_builtin.benches.layernorm import bench as layernorm
from kernbench_builtin.benches.mlp import bench as mlp
from kernbench_builtin.benches.qkv_gemm import bench as qkv_gemm
from kernbench_builtin.benches.rmsnorm import bench as rmsnorm
from kernbench_builtin.benches.softmax import bench as softmax
from kernbench_builtin.benches.sparse_gemm import bench as sparse_gemm
from kernbench_builtin.benches.vector_add import bench as vector_add
from kernbench_builtin.benches.vector_add import copy
from kernbench_core.errors import UsageError
from kernbench_core.host.bench import describe_bench

RNG = np.random.default_rng(11)


def normal(*shape: int, dtype: Any = np.float16, scale: float = 1.0) -> Any:
    return (RNG.standard_normal(shape) * scale).astype(dtype)


def sparse(rows: int, columns: int) -> Any:
    a = normal(rows, columns)
    a[:, 8:24] = 0
    return a


# What each computes, in f64, from formulas of textbooks --------------------------------------------------


def norm(x, axis=-1):
    return x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + 1e-5)


def centred(x):
    return x - x.mean(axis=-1, keepdims=True)


def soft(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


def attend(q, k, v):
    scores = np.einsum("htd,hsd->hts", q, k.repeat(len(q) // len(k), axis=0)) / np.sqrt(q.shape[-1])
    scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    return np.einsum("hts,hsd->htd", soft(scores), v.repeat(len(q) // len(k), axis=0)).reshape(-1, q.shape[-1])


def decode(q, k, v):
    rows = q.shape[1] // k.shape[1]
    scores = np.einsum("bhd,bhsd->bhs", q, k.repeat(rows, axis=1)) / np.sqrt(q.shape[-1])
    return np.einsum("bhs,bhsd->bhd", soft(scores), v.repeat(rows, axis=1)).reshape(-1, q.shape[-1])


CASES: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[..., Any], dict[str, Any]]] = {
    "vector-add": (vector_add, {"x": normal(70), "y": normal(70)}, np.add, {"n": 70, "dtype": "f16"}),
    "copy": (copy, {"x": normal(70)}, lambda x: x, {"n": 70, "dtype": "f16"}),
    "gemm": (gemm, {"a": normal(9, 7), "b": normal(7, 5)}, np.matmul, {"M": 9, "N": 5, "K": 7, "dtype": "f16"}),
    "gemm-naive": (gemm_naive, {"a": normal(9, 7), "b": normal(7, 5)}, np.matmul, {"M": 9, "N": 5, "K": 7}),
    "gemv": (gemv, {"x": normal(2, 7), "w": normal(7, 5)}, np.matmul, {"M": 2, "N": 5, "K": 7, "dtype": "f16"}),
    "gemm-composite": (
        gemm_composite,
        {"a": normal(9, 7, dtype=ml_dtypes.bfloat16), "b": normal(7, 5, dtype=ml_dtypes.bfloat16)},
        np.matmul,
        {"M": 9, "N": 5, "K": 7, "dtype": "bf16"},
    ),
    "sparse-gemm": (
        sparse_gemm,
        {"a": sparse(9, 40), "b": normal(40, 5)},
        np.matmul,
        {"M": 9, "N": 5, "K": 40, "dtype": "f16"},
    ),
    "softmax": (softmax, {"x": normal(6, 11)}, soft, {"rows": 6, "cols": 11, "dtype": "f16"}),
    "rmsnorm": (
        rmsnorm, {"x": normal(6, 12), "w": normal(12)}, lambda x, w: norm(x) * w, {"tokens": 6, "cols": 12},
    ),
    "layernorm": (
        layernorm,
        {"x": normal(6, 12, dtype=np.float32), "w": normal(12, dtype=np.float32), "b": normal(12, dtype=np.float32)},
        lambda x, w, b: norm(centred(x)) * w + b,
        {"tokens": 6, "cols": 12, "dtype": "f32"},
    ),
    "qkv-gemm": (qkv_gemm, {"x": normal(4, 12), "w": normal(12, 20)}, np.matmul, {"tokens": 4, "dtype": "f16"}),
    "mlp": (
        mlp,
        {"x": normal(4, 8), "gate": normal(8, 12), "up": normal(8, 12), "down": normal(12, 8)},
        lambda x, gate, up, down: (silu(x @ gate) * (x @ up)) @ down,
        {"tokens": 4, "hidden": 8, "ffn": 12},
    ),
    "attention": (
        attention,
        {"q": normal(4, 6, 8), "k": normal(2, 6, 8), "v": normal(2, 6, 8)},
        attend,
        {"heads": 4, "kv_heads": 2, "tokens": 6, "head_dim": 8},
    ),
    "attention-decode": (
        attention_decode,
        {"q": normal(2, 4, 8), "k": normal(2, 2, 6, 8), "v": normal(2, 2, 6, 8)},
        decode,
        {"batch": 2, "heads": 4, "kv_heads": 2, "context": 6, "head_dim": 8},
    ),
}  # fmt: skip
TABLES = {"gemm-stream", "gemm-sweep"}
"""Benches of several products, which take no arrays."""
PRELOADED = {"copy", "attention-decode"}
"""Benches whose random data is on the device before the run, and whose arrays are copied."""
ROUNDED = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5}


def test_every_bench_but_tables_takes_arrays(plugins) -> None:
    own = [entry.name for entry in plugins.benches.values() if entry.target.startswith("kernbench_builtin.")]
    assert sorted(own) == sorted({*CASES, *TABLES})
    for function, arrays, _, _ in CASES.values():
        assert {param.name for param in describe_bench("it", function).params if param.kind == "npy"} == set(arrays)


def near(found: Any, arrays: dict[str, Any], formula: Callable[..., Any]) -> None:
    """Compare with the formula in f64; the scale of errors is that of the largest element."""
    right = formula(*(array.astype(np.float64) for array in arrays.values()))
    kind = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}[found.dtype.name]
    assert np.abs(found.astype(np.float64) - right).max() <= ROUNDED[kind] * max(1.0, np.abs(right).max())


@pytest.mark.parametrize("name", CASES)
def test_arrays_say_all_sizes_and_the_dtype(run, tmp_path, name) -> None:
    _, arrays, _, said = CASES[name]
    files = {}
    for param, array in arrays.items():
        files[param] = str(tmp_path / f"{param}.npy")
        np.save(files[param], array)
    result = run(name, **files)
    assert result.verified
    assert {param: result.params[param] for param in said} == said


@pytest.mark.parametrize("name", sorted(set(CASES) - {"attention-decode"}))  # whose tensors must lie as rows
def test_tensors_of_the_device_give_what_numpy_gives(run, name) -> None:
    """Whatever lies where, the result is right; it stays on the device, and no size had to be told."""
    function, arrays, formula, _ = CASES[name]

    def whole(rt) -> None:
        outputs.append(function(rt, **{param: rt.tensor(array) for param, array in arrays.items()}).numpy())

    outputs: list[Any] = []
    result = run(whole)
    assert result.verified
    assert result.phases["device_to_host"] == 0
    near(outputs[0], arrays, formula)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"sparse-gemm", *PRELOADED}))
def test_given_arrays_take_the_time_of_random_ones(run, name) -> None:
    """The op log has no data in it, so it is the same, and so is the time of the copies."""
    _, arrays, _, _ = CASES[name]
    if name == "qkv-gemm":
        arrays = {"x": normal(2, 768), "w": normal(768, 768)}
    with_arrays = run(name, **arrays, options={"verify_data": False})
    sizes = {param: value for param, value in with_arrays.params.items() if param not in arrays}
    if name == "qkv-gemm":
        sizes |= {"model": "gpt2", "layer": "out"}
    drawn = run(name, **sizes, options={"verify_data": False})
    assert with_arrays.op_log_sha256 == drawn.op_log_sha256
    assert with_arrays.phases == drawn.phases


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_random_chains_of_products(plugins, m, k, n, last, composite) -> None:
    x, w, v = normal(m, k, dtype=np.float32), normal(k, n, dtype=np.float32), normal(n, last, dtype=np.float32)
    outputs = []

    def chain(rt) -> None:
        second = gemm_composite if composite else gemm
        outputs.append(second(rt, a=gemm(rt, a=rt.tensor(x), b=w), b=v).numpy())

    assert kb.run(chain, "tiny", plugins=plugins, verify_data=True).verified
    right = x.astype(np.float64) @ w @ v
    np.testing.assert_allclose(outputs[0], right, rtol=1e-4, atol=1e-4 * max(1, np.abs(right).max()))


def test_the_blocks_of_a_given_sparse_matrix_are_skipped(run) -> None:
    """A zero block is not read, one with a single element is; 2 PEs of 4 have rows."""
    a = np.zeros((8, 64), np.float16)
    a[:, :16] = 1
    a[5, 63] = 1
    reads = []
    for matrix in (a, np.ones_like(a)):
        log = run("sparse-gemm", a=matrix, b=normal(64, 8), tile_k=16).op_log
        reads.append(sum(op.params["nbytes"] for op in log if op.op_name == "dma_read" and op.params["dtype"] == "f16"))
    assert reads[0] / reads[1] == 5 / 16, "4 blocks of 2 x 16 in the first column, and one of the last"


def test_a_result_is_compared_with_what_the_operands_held_then(run) -> None:
    """What is written into them after the call is nobody's error."""

    def clear(x_ptr, n, tl):
        first = tl.program_id(0) * n
        tl.store(x_ptr + first, tl.zeros((n,), tl.float16))

    def bench(rt) -> None:
        x = rt.tensor(normal(rt.n_pes, 16), name="x")
        y = softmax(rt, x=x)
        z = vector_add(rt, x=rt.tensor(normal(64)), y=rt.tensor(normal(64)))
        for tensor in (x, y, z):
            rt.launch(clear, tensor, 16)

    result = run(bench)
    assert result.verification.checked == 2
    assert result.verified


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda rt: gemm(rt, a=rt.zeros((4, 6), "f16"), b=rt.zeros((5, 3), "f16")),
            "arrays 'a' and 'b' of bench 'gemm' must agree on 'K', not be 'a' of shape (M, K) = (4, 6) and 'b' of "
            "shape (K, N) = (5, 3); give another array.",
        ),
        (
            lambda rt: gemm(rt, a=rt.zeros((4, 6), "f16"), b=rt.zeros((6, 3), "bf16")),
            "arrays 'a' and 'b' of bench 'gemm' must agree on 'dtype', not be 'a' of dtype f16 and 'b' of dtype bf16; "
            "give another array.",
        ),
        (lambda rt: gemm(rt, tile=3), "bench 'gemm' has no parameter 'tile'; its parameters are: M, N, K, tile_m, "
         "tile_n, tile_k, dtype, a, b. Did you mean 'tile_n'?"),
        (lambda rt: gemm(rt, a=[[1.0]]), "parameter 'a' of bench 'gemm' must be an array, or a tensor of this run, not "
         "[[1.0]]."),
        (lambda rt: softmax(rt, x=rt.zeros((4, 4), "int8")), "parameter 'x' of bench 'softmax' must be an array of "
         "dtype f32 or f16 or bf16, not of int8; cast it."),
        (lambda rt: mlp(rt, model="gpt2", gate=normal(8, 8)), "parameter 'gate' must be left out, as model 'gpt2' has "
         "no gate; choose another model."),
        (lambda rt: attention(rt, q=normal(8, 8), tokens=3), "array 'q' of shape (heads*tokens, head_dim) = (8, 8) of "
         "bench 'attention' must have heads*tokens = heads * 3 in place of 8; give other sizes, or another array."),
        (lambda rt: attention(rt, q=normal(8, 8)), "operand 'q' must be an array of shape (4096, 8), not (8, 8); give "
         "another array, or other sizes."),
    ],
)  # fmt: skip
def test_what_a_bench_gives_another_must_fit(run, call, message) -> None:
    def bench(rt) -> None:
        call(rt)

    with pytest.raises(UsageError) as caught:
        run(bench)
    assert str(caught.value).partition("\n")[0] == message


def test_only_a_tensor_that_is_there_can_be_given(run) -> None:
    def bench(rt) -> None:
        x = rt.zeros((4, 4), "f16", name="x")
        rt.free(x)
        softmax(rt, x=x)

    with pytest.raises(Exception, match="tensor 'x' "):
        run(bench)


def test_matrices_are_added_as_vectors_are(run) -> None:
    """Of any shape, which the result has, too; shapes of as many elements are not the same."""
    x, y = normal(6, 10), normal(6, 10)
    outputs = []

    def bench(rt) -> None:
        outputs.append(vector_add(rt, x=rt.tensor(x), y=y).numpy())

    assert run(bench).verified
    assert (outputs[0] == x + y).all()
    assert run("vector-add", x=x).params["n"] == 60
    with pytest.raises(UsageError) as caught:
        run("vector-add", x=x, y=y.T)
    assert str(caught.value).partition("\n")[0] == (
        "operand 'y' must be an array of shape (6, 10), not (10, 6); give another array, or other sizes."
    )


def test_two_and_three_dimensions_of_heads_are_the_same(run) -> None:
    """A tensor of the device may hold the rows of all heads below each other, as the result does."""
    q, k, v = normal(2, 6, 8), normal(1, 6, 8), normal(1, 6, 8)
    outputs = []

    def bench(rt) -> None:
        for flat in (False, True):
            rows = [rt.tensor(x.reshape(-1, 8) if flat else x) for x in (q, k, v)]
            outputs.append(attention(rt, q=rows[0], k=rows[1], v=rows[2], heads=2, kv_heads=1).numpy())

    assert run(bench).verified
    assert (outputs[0] == outputs[1]).all()
