"""Have `import triton` give the front end, inside a `with` and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kernbench_core.frontend import autotune, testing
from kernbench_core.frontend.kernel import JitFunction, jit
from kernbench_core.frontend.names import language_module


def modules() -> dict[str, ModuleType]:
    """Make `triton` and the modules below it."""
    triton: Any = ModuleType("triton", "kernbench's front end for kernels written in Triton.")
    triton.__path__ = []
    triton.__version__ = "3.0.0"
    triton.jit, triton.JITFunction = jit, JitFunction
    triton.Config, triton.autotune, triton.heuristics = autotune.Config, autotune.autotune, autotune.heuristics
    triton.cdiv, triton.next_power_of_2 = testing.cdiv, testing.next_power_of_2
    triton.language = language = language_module()
    made: dict[str, ModuleType] = {"triton": triton, "triton.language": language}
    for name in ("math", "extra", "extra.libdevice"):
        below = made[f"triton.language.{name}"] = language_module(f"triton.language.{name}")
        parent, _, last = f"triton.language.{name}".rpartition(".")
        setattr(made[parent], last, below)
    return made


@contextmanager
def replaced() -> Iterator[None]:
    """Put the front end in the way of `import triton`, and what was there back at the end."""
    before = {name: module for name, module in sys.modules.items() if _is_triton(name)}
    for name in before:
        del sys.modules[name]
    sys.modules.update(modules())
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_triton(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_triton(name: str) -> bool:
    return name == "triton" or name.startswith("triton.")
