"""What advice promises of a run, and what another run gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import kernbench as kb
from kernbench_builtin.explain.advice.rule import FACT
from kernbench_builtin.explain.verdict import RunVerdict

Bench = Callable[[Any], None]


def ran(bench: Bench, topology: str = "tiny", **more: Any) -> RunVerdict:
    found = kb.run(bench, topology, data=False, **more).part(RunVerdict)
    assert found is not None and found.kernel_ns is not None
    return found


def promised(found: RunVerdict, rule: str) -> float:
    """Return what a rule says is gained of kernels; 0.0 where it advises nothing."""
    return max((each.gain for each in found.advice if (each.rule, each.about) == (rule, "kernel")), default=0.0)


def gained(before: RunVerdict, after: RunVerdict) -> float:
    assert before.kernel_ns is not None and after.kernel_ns is not None
    return 1 - after.kernel_ns / before.kernel_ns


def rules(found: RunVerdict) -> set[str]:
    return {each.rule for each in found.advice if each.about != FACT}


def over(kernel: Any, shapes: Sequence[tuple[int, ...]], *args: Any, **launch: Any) -> Bench:
    """Return a program that launches a kernel over tensors of some shapes, all of f32."""

    def bench(rt: Any) -> None:
        names = "abc"[: len(shapes)]
        tensors = [rt.tensor(shape, "f32", name=name, resident=True) for name, shape in zip(names, shapes, strict=True)]
        rt.launch(kernel, *tensors, *args, **launch)

    return bench
