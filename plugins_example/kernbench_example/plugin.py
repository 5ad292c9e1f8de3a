"""What this distribution offers. kernbench imports this module at start-up: keep it light."""

from __future__ import annotations

from kernbench_core.registry import ComponentEntry


def kernbench_components() -> list[ComponentEntry]:
    """Return the hardware models; each is imported when a configuration names it."""
    return [
        ComponentEntry(
            "example.slow_gemm",
            "kernbench_example.slow_gemm:SlowGemm",
            kind="pe_gemm",
            sentence="A small systolic array that fills and drains for every product.",
        )
    ]
