"""What benches there are: one line for each."""

from __future__ import annotations

from kernbench_core.plugins import BenchEntry

HERE = "kernbench_builtin.benches"

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_benches() -> list[BenchEntry]:
    """Return the benches."""
    return [
        BenchEntry("vector-add", f"{HERE}.vector_add:bench"),
        BenchEntry("copy", f"{HERE}.vector_add:copy"),
        BenchEntry("gemm", f"{HERE}.gemm:bench"),
        BenchEntry("gemm-naive", f"{HERE}.gemm_naive:bench"),
        BenchEntry("gemm-composite", f"{HERE}.gemm_composite:bench"),
        BenchEntry("gemv", f"{HERE}.gemv:bench"),
        BenchEntry("gemm-stream", f"{HERE}.gemm_stream:bench"),
        BenchEntry("gemm-sweep", f"{HERE}.gemm_sweep:bench"),
        BenchEntry("softmax", f"{HERE}.softmax:bench"),
        BenchEntry("sparse-gemm", f"{HERE}.sparse_gemm:bench"),
        BenchEntry("qkv-gemm", f"{HERE}.qkv_gemm:bench"),
        BenchEntry("mlp", f"{HERE}.mlp:bench"),
        BenchEntry("attention", f"{HERE}.attention:bench"),
        BenchEntry("attention-decode", f"{HERE}.attention_decode:bench"),
        BenchEntry("rmsnorm", f"{HERE}.rmsnorm:bench"),
        BenchEntry("layernorm", f"{HERE}.layernorm:bench"),
    ]
