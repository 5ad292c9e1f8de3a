"""Kernels that send and receive, and runs of them, for tests of queues and of what these refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernbench_core as kb


def slots(**params: object) -> list[str]:
    """Spell parameters of every pe_ipcq as --set does."""
    return [f"components.pe_ipcq.params.{name}={value}" for name, value in params.items()]


def run(kernel: Callable[..., Any], *given: str, topology: str = "tiny", **options: Any) -> kb.RunResult:
    """Run a kernel without arguments on every PE."""
    return kb.run(lambda rt: rt.launch(kernel), topology, set=given, **options)


LAUNCH = f"{__file__}:{run.__code__.co_firstlineno + 2}"
"""The line that launches the kernel of `run`."""


def pass_on(count: int) -> Callable[..., Any]:
    """Make a kernel in which PE 0 sends `count` elements to PE 1."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((count,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            tl.recv((count,), "f32", 0)

    return kernel
