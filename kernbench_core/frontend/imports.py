"""Have `import triton` give the front end, inside a `with` and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kernbench_core.errors import KernelError, TcmOverflowError
from kernbench_core.frontend import autotune, driver, testing
from kernbench_core.frontend.kernel import CompiledKernel, JitFunction, Launchable, jit
from kernbench_core.frontend.language.blocks import TensorDescriptor
from kernbench_core.frontend.names import INNER, language_module
from kernbench_core.frontend.storage import reinterpret

_ERRORS = {
    "OutOfResources": TcmOverflowError, "CompilationError": KernelError, "CompileTimeAssertionFailure": KernelError,
}  # fmt: skip
_JIT = {"JITFunction": JitFunction, "KernelInterface": Launchable, "jit": jit}
_AUTOTUNE = {
    "Autotuner": autotune.Autotuner, "Config": autotune.JitConfig, "Heuristics": autotune.Heuristics,
    "autotune": autotune.autotune, "heuristics": autotune.heuristics,
}  # fmt: skip
_TESTING = {
    "Benchmark": testing.Benchmark, "Mark": testing.Mark, "assert_close": testing.assert_close,
    "do_bench": testing.do_bench, "do_bench_cudagraph": testing.do_bench, "perf_report": testing.perf_report,
}  # fmt: skip
_NAMES = {
    **_ERRORS, **_JIT, **_AUTOTUNE, "cdiv": testing.cdiv, "next_power_of_2": testing.next_power_of_2,
    "set_allocator": driver.set_allocator, "reinterpret": reinterpret,
}  # fmt: skip
_BELOW: Mapping[str, Mapping[str, object]] = {
    "testing": _TESTING,
    "runtime": {**_JIT, **_AUTOTUNE},
    "runtime.jit": _JIT,
    "runtime.autotuner": {**_AUTOTUNE, **_ERRORS},
    "runtime.errors": _ERRORS,
    "runtime.cache": {"triton_key": lambda: "kernbench"},
    "compiler": {"CompiledKernel": CompiledKernel},
    "compiler.errors": _ERRORS,
    "tools": {},
    "tools.tensor_descriptor": {"TensorDescriptor": TensorDescriptor},
    "backends": {},
    "backends.compiler": {"GPUTarget": driver.GPUTarget},
}


def modules() -> dict[str, ModuleType]:
    """Make `triton` and the modules below it."""
    made: dict[str, Any] = {"triton": _module("triton", _NAMES)}
    made["triton"].__version__ = "3.4.0"
    made["triton"].language = made["triton.language"] = language_module()
    for name in ("math", "extra", "extra.libdevice", "extra.cuda", "extra.cuda.libdevice", *INNER):
        made[f"triton.language.{name}"] = language_module(f"triton.language.{name}")
    for name, names in _BELOW.items():
        made[f"triton.{name}"] = _module(f"triton.{name}", names)
    for name, module in made.items():
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, module)
    made["triton.runtime"].driver = driver.TritonDriver()
    return made


def _module(name: str, names: Mapping[str, object]) -> ModuleType:
    made = ModuleType(name, "kernbench's front end for kernels written in Triton.")
    made.__path__ = []
    vars(made).update(names)
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
