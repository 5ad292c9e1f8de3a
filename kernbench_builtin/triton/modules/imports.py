"""Have `import triton` give the front end, inside a `with` and nowhere else."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from kernbench_builtin.triton.dtype_names import SHORT_NAMES
from kernbench_builtin.triton.kernel import CompiledKernel, JitFunction, Launchable, jit
from kernbench_builtin.triton.language.blocks import TensorDescriptor
from kernbench_builtin.triton.modules import autotune, driver, testing
from kernbench_builtin.triton.modules.mxfp import MXFP4Tensor, MXScaleTensor
from kernbench_builtin.triton.names import INNER, language_module
from kernbench_builtin.triton.scalars import constant
from kernbench_builtin.triton.storage import ReinterpretedArray, reinterpret
from kernbench_core.errors import KernbenchError, KernelError, TcmOverflowError, UnsupportedError

_ERRORS = {
    "OutOfResources": TcmOverflowError, "CompilationError": KernelError, "CompileTimeAssertionFailure": KernelError,
    "InterpreterError": KernelError, "TritonError": KernbenchError,
}  # fmt: skip


def _constexpr_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function be called at compile time: with Python's values, and for a constant."""

    @functools.wraps(fn)
    def call(*args: Any, **named: Any) -> Any:
        values = {name: getattr(value, "value", value) for name, value in named.items()}
        return constant(fn(*(getattr(value, "value", value) for value in args), **values))

    return call


def _refused(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*args: Any, **named: Any) -> Any:
        raise UnsupportedError(f"{name} is a name of Triton's that kernbench refuses; {instead}.")

    return refuse


def _ignored(*args: Any, **named: Any) -> None:
    pass


class _Knobs(SimpleNamespace):
    """Settings of a compiler: each may be given, none changes anything, and those that were not given are None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


@contextmanager
def _scope(*args: Any, **named: Any) -> Iterator[None]:
    yield


_DRIVER = driver.TritonDriver()
_KNOBS = ("compilation", "runtime", "cache", "nvidia", "amd", "language", "build", "autotuning", "redis", "proton")
_VIEWER = dict.fromkeys(
    ("parse", "print_tree"), _refused("triton.profiler.viewer", "see `kernbench report`, or `kernbench run --json`")
)
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
    "constexpr_function": _constexpr_function, "compile": _refused("triton.compile", "launch the kernel"),
    "aggregate": _refused("triton.aggregate", "pass the values of the class one by one, or as a tuple"),
}  # fmt: skip
_BELOW: Mapping[str, Mapping[str, object]] = {
    "testing": _TESTING,
    "knobs": {name: _Knobs() for name in _KNOBS},
    "profiler": {"scope": _scope, **dict.fromkeys(("start", "finalize", "activate", "deactivate"), _ignored)},
    "profiler.viewer": _VIEWER,
    "runtime": {**_JIT, **_AUTOTUNE},
    "runtime.jit": {
        **_JIT, "TensorWrapper": ReinterpretedArray, "reinterpret": reinterpret,
        "type_canonicalisation_dict": SHORT_NAMES,
    },
    "runtime._allocation": {"NullAllocator": type("NullAllocator", (), {})},
    "runtime.autotuner": {**_AUTOTUNE, **_ERRORS},
    "runtime.errors": _ERRORS,
    "runtime.driver": {"driver": _DRIVER},
    "runtime.cache": {"triton_key": lambda: "kernbench"},
    "compiler": {"CompiledKernel": CompiledKernel},
    "compiler.compiler": {"CompiledKernel": CompiledKernel, "triton_key": lambda: "kernbench"},
    "compiler.errors": _ERRORS,
    "tools": {},
    "tools.mxfp": {"MXFP4Tensor": MXFP4Tensor, "MXScaleTensor": MXScaleTensor},
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
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, module)
    made["triton.runtime"].driver = _DRIVER  # in place of the module of that name
    return made


def _module(name: str, names: Mapping[str, object]) -> ModuleType:
    made = ModuleType(name, "kernbench's front end for kernels written in Triton.")
    made.__path__ = []
    vars(made).update(names)
    return made


def _look_again() -> None:
    """Have torch look for Triton again: it may have done so outside of the `with`, or inside, and keeps the answer."""
    asked = getattr(sys.modules.get("torch.utils._triton"), "has_triton_package", None)
    if asked is not None:
        asked.cache_clear()


@contextmanager
def replaced() -> Iterator[None]:
    """Put the front end in the way of `import triton`, and what was there back at the end."""
    before = {name: module for name, module in sys.modules.items() if _is_triton(name)}
    for name in before:
        del sys.modules[name]
    sys.modules.update(modules())
    _look_again()
    try:
        yield
    finally:
        _look_again()
        for name in [name for name in sys.modules if _is_triton(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_triton(name: str) -> bool:
    return name == "triton" or name.startswith("triton.")
