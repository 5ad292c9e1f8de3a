"""A kernel in a file as a bench: its parameters are the bench's, and the bench launches it once.

The file may be written in Triton, or have a function with a parameter `tl`, as kernbench's own kernels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernbench_core.errors import UsageError
from kernbench_core.host.bench import Bench, BenchParam, describe_bench, function_of, open_bench, sources_of
from kernbench_core.host.parameters.docstrings import argument_sentences
from kernbench_core.host.parameters.kernel_argument import constant_of, placed

if TYPE_CHECKING:
    from kernbench_core.frontend.alone import RunTrial
    from kernbench_core.host.parameters.grid import LaunchGrid
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.host.sources import Sources
    from kernbench_core.plugins import BenchEntry, Registry


def open_program(bench: str | Path | Sources | Callable[..., object], registry: Registry[BenchEntry]) -> Bench:
    """Find a bench as `open_bench` does; of a file also a kernel.

    In a file that imports triton it is kernbench's, wherever that is called.
    """
    sources = None if callable(bench) else sources_of(bench)
    if sources is None:
        return open_bench(bench, registry)
    with _triton() if "triton" in sources.imported else nullcontext():
        function: Any = function_of(sources)
    if is_jit(function):
        return _of_jit(function, sources)
    if "tl" in inspect.signature(function).parameters and "rt" not in inspect.signature(function).parameters:
        return _of_kernel(function, sources)
    return describe_bench(sources.title, function, sources)


def is_jit(kernel: object) -> bool:
    """Tell whether it is a function that `triton.jit` decorated, or a wrapper of one; the front end is not imported."""
    return callable(kernel) and hasattr(kernel, "constexprs") and hasattr(kernel, "arg_names")


def _triton() -> Any:
    from kernbench_core.frontend import imports

    return imports.replaced()


def _of_jit(kernel: Any, sources: Sources) -> Bench:
    from kernbench_core.frontend.alone import DEFAULTS, jit_program

    def program(grid: LaunchGrid | None, run_trial: RunTrial) -> Callable[..., None]:
        if grid is None:
            raise UsageError(
                f"kernel {sources.title!r} must be given how many programs it has; add --grid X, --grid X,Y or --grid "
                "X,Y,Z."
            )
        _check_names(grid, kernel.arg_names, sources.title)
        return jit_program(kernel, grid.of, run_trial)

    params = _params(sources.title, kernel.signature, kernel.constexprs, kernel)
    return Bench(sources.title, kernel, _sentence(kernel), params, sources, program=program, defaults=DEFAULTS)


def _of_kernel(kernel: Callable[..., Any], sources: Sources) -> Bench:
    def program(grid: LaunchGrid | None, run_trial: RunTrial) -> Callable[..., None]:
        if grid is not None:
            _check_names(grid, own.parameters, sources.title)

        def launch(rt: Runtime, /, **given: object) -> None:
            arguments = {name: placed(rt, name, constant_of(value)) for name, value in given.items()}
            rt.launch(kernel, grid=None if grid is None else grid.of(given), **arguments)

        return launch

    signature = inspect.signature(kernel)
    own = signature.replace(parameters=[each for name, each in signature.parameters.items() if name != "tl"])
    params = _params(sources.title, own, own.parameters, kernel)
    return Bench(sources.title, kernel, _sentence(kernel), params, sources, program=program)


def _check_names(grid: LaunchGrid, names: Collection[str], kernel: str) -> None:
    for name in grid.names:
        if name not in names:
            raise UsageError(
                f"--grid {grid.text} must be made of parameters of kernel {kernel!r}, which are {', '.join(names)}, "
                f"not of {name!r}; correct the name."
            )


def _sentence(kernel: Any) -> str:
    return (inspect.getdoc(kernel) or "").strip().partition("\n")[0]


def _params(
    kernel: str, signature: inspect.Signature, constants: Collection[str], function: Any
) -> tuple[BenchParam, ...]:
    """Return the parameters of a kernel; UsageError where it takes any number of arguments."""
    told = argument_sentences((inspect.getdoc(function) or "").strip())
    found = []
    for name, each in signature.parameters.items():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise UsageError(
                f"kernel {kernel!r} must have parameters with names to be run alone, not {str(each)!r}; launch it from "
                "a bench."
            )
        required = each.default is each.empty
        default = None if required else each.default
        kind = "constant" if name in constants else "argument"
        found.append(BenchParam(name, kind, not required, required, default, (), told.get(name, "")))
    return tuple(found)
