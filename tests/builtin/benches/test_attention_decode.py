"""attention-decode: right for any split of heads and keys over PEs, the maxima and sums of which are put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.benches.attention_decode import Split, parts_of
from kernbench_core.errors import UsageError

SMALL = {"heads": 4, "kv_heads": 2, "head_dim": 16, "context": 100, "tile_k": 16}


@pytest.mark.parametrize(
    ("topology", "sizes"),
    [
        ("tiny", {}),
        ("tiny", {"dtype": "bf16"}),
        ("tiny", {"context": 1}),
        ("tiny", {"heads": 3, "kv_heads": 1, "context": 5, "tile_k": 1}),
        ("tiny", {"batch": 3, "kv_heads": 4}),
        ("packages", {"kv_heads": 1, "heads": 1}),
        ("default", {"heads": 6, "kv_heads": 3, "batch": 2}),
    ],
)
def test_outputs_are_right(run, topology, sizes) -> None:
    assert run("attention-decode", topology, **{**SMALL, **sizes}).verified


def test_messages_that_fill_no_slot_are_copied(run) -> None:
    small = ("components.pe_ipcq.params.slot_bytes=64 B",)
    assert run("attention-decode", **SMALL, options={"set": small, "verify_data": True}).verified


def test_large_scores_far_apart(run) -> None:
    """The maximum of one part is far above those of the others, whose sums it makes vanish."""
    q = np.full((1, 1, 16), 8, np.float16)
    k = np.zeros((1, 1, 64, 16), np.float16)
    k[0, 0, 60] = 8
    v = np.arange(64 * 16, dtype=np.float16).reshape(1, 1, 64, 16) / 64
    result = run("attention-decode", q=q, k=k, v=v, tile_k=8)
    assert result.verified
    np.testing.assert_allclose(result.outputs["o"][0], v[0, 0, 60], rtol=1e-3)


@given(
    st.integers(1, 9), st.integers(1, 60), st.integers(1, 3), st.sampled_from([1, 2, 3, 4, 8]), st.integers(1, 20),
    st.data(),
)  # fmt: skip
@settings(max_examples=80)
def test_every_key_is_dealt_once(heads, context, groups, pes, tile_k, data) -> None:
    parts = data.draw(st.integers(1, pes))
    split = Split(heads, 1, context, pes, parts, tile_k)
    dealt = []
    for pe in range(groups * pes):
        part, mine, blocks = split.of(pe, groups * pes)
        assert 0 <= part < parts
        assert (pe - part) // pes == pe // pes
        dealt += [(head, start + at) for head in mine for start, count in blocks for at in range(count)]
    assert sorted(dealt) == [(head, key) for head in range(heads) for key in range(context)]


@pytest.mark.parametrize(
    ("pes", "heads", "context", "parts"),
    [(64, 8, 8192, 8), (32, 6, 8192, 5), (64, 64, 1024, 1), (4, 1, 100, 4), (64, 1, 20, 2)],
)
def test_parts(pes, heads, context, parts) -> None:
    """A team for each head as long as there are PEs, and no part without a block of 16 keys."""
    assert parts_of(pes, heads, context, 16, pes) == parts


def test_wrong_parameters(run) -> None:
    with pytest.raises(UsageError) as caught:
        run("attention-decode", **{**SMALL, "kv_heads": 3})
    assert str(caught.value) == "parameter 'kv_heads' must divide 'heads', which is 4, not 3; give a divisor."
