"""Benches whose blocks are chosen for the machine are right for small sizes drawn at random, beside numpy's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb

SMALL = st.integers(1, 40)
BLOCK = st.one_of(st.just("auto"), st.integers(1, 9))
DTYPE = st.sampled_from(["f32", "f16", "bf16"])
HALF = st.sampled_from(["f16", "bf16"])
HEADS = {"kv_heads": st.integers(1, 3), "head_dim": st.integers(1, 20), "tile_k": BLOCK, "dtype": HALF}
DRAWN: dict[str, dict[str, Any]] = {
    "vector-add": {"n": st.integers(1, 900), "block": BLOCK, "ahead": st.integers(1, 4), "dtype": DTYPE},
    "copy": {"n": st.integers(1, 900), "block": BLOCK, "ahead": st.integers(1, 4), "dtype": DTYPE},
    "softmax": {"rows": SMALL, "cols": SMALL, "block": BLOCK, "dtype": DTYPE},
    "rmsnorm": {"tokens": SMALL, "cols": SMALL, "block": BLOCK, "dtype": DTYPE},
    "layernorm": {"tokens": SMALL, "cols": SMALL, "block": BLOCK, "dtype": DTYPE},
    "attention": {**HEADS, "tokens": SMALL, "tile_q": BLOCK, "causal": st.booleans()},
    "attention-decode": {**HEADS, "context": SMALL, "batch": st.integers(1, 3)},
}


@pytest.mark.parametrize("bench", DRAWN)
@settings(max_examples=6)
@given(data=st.data())
def test_small_sizes(bench: str, plugins: Any, data: st.DataObject) -> None:
    params = data.draw(st.fixed_dictionaries(DRAWN[bench]))
    if "kv_heads" in params:
        params["heads"] = params["kv_heads"] * data.draw(st.integers(1, 3))
    pes = data.draw(st.sampled_from([1, 2, 4]))
    assert kb.run(bench, "tiny", params, set=[f"cube.pes={pes}"], verify_data=True, plugins=plugins).verified
