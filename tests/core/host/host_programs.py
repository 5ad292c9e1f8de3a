"""Host programs on the machine of toys, and a kernel for them, for tests of what they may do and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernbench_core as kb
from tests.core.working_machine import on_machine


def copy_kernel(x_ptr: Any, y_ptr: Any, n: int, tl: Any) -> None:
    """Copy one PE's share, plus one."""
    offsets = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets) + 1.0)


def run(bench: Callable[..., None], **options: Any) -> kb.RunResult:
    """Run a host program on the smallest machine."""
    return kb.run(bench, **on_machine(**options))
