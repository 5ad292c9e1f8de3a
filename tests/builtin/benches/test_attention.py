"""attention: right for any number of heads and tokens, causal or not; the online softmax is a softmax."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.benches.attention import attention, fold
from kernbench_core.errors import UsageError

TINY = {"heads": 4, "kv_heads": 2, "head_dim": 16, "tokens": 40, "tile_q": 16, "tile_k": 16}


@pytest.mark.parametrize(
    ("topology", "dtype", "causal"),
    [
        ("tiny", "f16", False),
        ("tiny", "bf16", True),
        ("packages", "f16", True),
        *(("default", "f16", causal) for causal in (True, False)),
        ("tiny", "f16", True),
        ("tiny", "bf16", False),
    ],
)
def test_outputs_are_right(run, topology, dtype, causal) -> None:
    assert run("attention", topology, **TINY, dtype=dtype, causal=causal).verified


@pytest.mark.parametrize(
    "sizes",
    [
        {"tokens": 1},
        {"tokens": 37, "heads": 3, "kv_heads": 1, "head_dim": 24},
        {"tokens": 33, "tile_q": 7, "tile_k": 50},
        {"heads": 2, "kv_heads": 2},
    ],
)
def test_sizes_that_no_pe_and_no_tile_divides(run, sizes) -> None:
    assert run("attention", **{**TINY, **sizes}).verified


def test_a_causal_mask_saves_the_blocks_above_the_diagonal(run) -> None:
    """Of n x n blocks n (n + 1) / 2 are left: with 4 query tiles of one head, 10 of 16."""
    sizes = {"heads": 4, "kv_heads": 4, "head_dim": 8, "tokens": 32, "tile_q": 8, "tile_k": 8}
    dots = {
        causal: sum(op.op_kind == "gemm" for op in run("attention", **sizes, causal=causal).op_log)
        for causal in (True, False)
    }
    assert dots == {True: 4 * 2 * 10, False: 4 * 2 * 16}


@pytest.mark.parametrize("tokens", [5, 128, 300])
def test_the_reference_is_softmax_of_scores(tokens) -> None:
    """Also where it is computed some rows at a time."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((heads, tokens, 4)) for heads in (4, 2, 2))
    for causal in (True, False):
        for head in range(4):
            scores = q[head] @ k[head // 2].T / 2
            if causal:
                scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
            weights = np.exp(scores)
            expected = weights / weights.sum(axis=1, keepdims=True) @ v[head // 2]
            np.testing.assert_allclose(attention(q, k, v, 0.5, causal)[head], expected, rtol=1e-5, atol=2e-6)


def test_same_time_without_data(run) -> None:
    timed = run("attention", **TINY, options={"verify_data": False, "data": False})
    assert timed.total_ns == run("attention", **TINY).total_ns


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"tile_k": 0}, "parameter 'tile_k' must be a positive integer, not 0; give 1 or more."),
        ({"kv_heads": 3}, "parameter 'kv_heads' must divide 'heads', which is 4, not 3; give a divisor."),
    ],
)
def test_wrong_parameters(run, wrong, told) -> None:
    with pytest.raises(UsageError) as caught:
        run("attention", **{**TINY, **wrong})
    assert str(caught.value) == told


@pytest.mark.parametrize("model", ["llama3-8b", "llama3-70b", "gpt2", "mixtral-8x7b"])
def test_models(run, model) -> None:
    assert run("attention", "default", model=model, tokens=256).verified


@given(st.integers(1, 20), st.integers(1, 200))
def test_folding_exchanges_whole_blocks_from_both_ends(block, tokens) -> None:
    folded = [fold(token, block, tokens) for token in range(tokens)]
    assert sorted(folded) == list(range(tokens))
    whole = tokens // block
    order = [folded[start] // block for start in range(0, whole * block, block)]
    assert [a + b for a, b in zip(order[::2], order[1::2], strict=False)] == [whole - 1] * (whole // 2)
    assert all(folded[at] - folded[at - 1] == 1 for at in range(1, tokens) if at % block)


def test_causal_work_is_dealt_evenly(run) -> None:
    """Two PEs for each head of 32 tokens in blocks of 4: every PE has pairs of blocks that see 9 blocks of keys."""
    sizes = {"heads": 2, "kv_heads": 1, "head_dim": 8, "tokens": 32, "tile_q": 4, "tile_k": 4}
    result = run("attention", **sizes)
    assert result.verified
    dots = Counter(op.component_id for op in result.op_log if op.op_kind == "gemm")
    assert sorted(dots.values()) == [2 * 2 * 9] * 4
