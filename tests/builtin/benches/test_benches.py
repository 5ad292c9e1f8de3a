"""What every bench has: one sentence, typed parameters, and a reference that its result is compared with."""

from __future__ import annotations

import pytest

from kernbench_core.host.bench import open_bench
from kernbench_core.plugins import Plugins

SMALL = {
    "vector-add": {"n": 100},
    "copy": {"n": 100},
    "gemm": {"M": 8, "N": 8, "K": 8},
    "gemm-naive": {"M": 8, "N": 8, "K": 8},
    "gemv": {"N": 8, "K": 8},
    "gemm-composite": {"M": 8, "N": 8, "K": 8},
    "gemm-stream": {"products": "2", "m": 8, "n": 8, "k": 8},
    "gemm-sweep": {"shapes": "8x8x8", "tiles": "8", "pin": "a"},
    "softmax": {"rows": 8, "cols": 8},
    "sparse-gemm": {"M": 8, "N": 8, "K": 8},
    "attention": {"tokens": 8, "heads": 2, "kv_heads": 1, "head_dim": 8},
    "attention-decode": {"context": 8, "heads": 2, "kv_heads": 1, "head_dim": 8},
    "qkv-gemm": {"model": "gpt2", "layer": "out", "tokens": 2},
    "mlp": {"tokens": 4, "hidden": 8, "ffn": 16},
    "rmsnorm": {"tokens": 4, "cols": 8},
    "layernorm": {"tokens": 4, "cols": 8},
}


def test_there_is_a_small_size_of_every_bench(plugins: Plugins) -> None:
    own = [entry.name for entry in plugins.benches.values() if entry.target.startswith("kernbench_builtin.")]
    assert sorted(SMALL) == sorted(own)


@pytest.mark.parametrize("name", SMALL)
def test_it_says_in_one_sentence_what_it_does(plugins: Plugins, name: str) -> None:
    sentence = open_bench(name, plugins.benches).sentence
    assert sentence.endswith(".") and sentence.count(". ") == 0
    assert len(sentence) <= 100


@pytest.mark.parametrize("name", SMALL)
def test_every_parameter_is_typed_and_has_a_default(plugins: Plugins, name: str) -> None:
    params = open_bench(name, plugins.benches).params
    assert {param.kind for param in params} <= {"int", "float", "bool", "str", "choice", "npy"}
    assert not any(param.required for param in params)


@pytest.mark.parametrize("name", SMALL)
def test_its_result_is_checked(run, name: str) -> None:
    assert run(name, **SMALL[name]).verification.checked == 1


@pytest.mark.parametrize("name", sorted({*SMALL} - {"copy"}))  # which computes nothing
def test_wrong_data_is_found(run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phase 2 is made to compute everything a little wrong."""
    from kernbench_core.compute import executor

    right = executor.DataExecutor.materialize
    monkeypatch.setattr(executor.DataExecutor, "materialize", lambda self, value: right(self, value) + 1)
    assert run(name, **SMALL[name]).verified is False
