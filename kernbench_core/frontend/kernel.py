"""Functions that `triton.jit` decorates: launched by the host with `kernel[grid](…)`, called by other kernels."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernbench_core.errors import UsageError
from kernbench_core.frontend.dialect import TritonLanguage
from kernbench_core.frontend.names import constexpr
from kernbench_core.frontend.scalars import argument, constant
from kernbench_core.frontend.simulation import JitLaunch, current
from kernbench_core.host.launch_arguments import full_grid, name_of
from kernbench_core.kernel.bridge import in_kernel

HINTS = (
    "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid", "waves_per_eu",
)  # fmt: skip
"""Options of a launch that speak to a compiler, and change nothing here."""

Grid = Sequence[int] | int | Callable[[Mapping[str, Any]], Any]


class JitFunction:
    """A kernel or a helper of one. `fn` is the Python function."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.__name__ = name_of(fn)
        self.fn = fn
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self.constexprs = frozenset(
            name for name, each in self.signature.parameters.items() if _is_constexpr(each.annotation)
        )

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        """Return what launches the kernel on a grid."""
        return functools.partial(self.run, grid=grid, warmup=False)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function inside a kernel; UsageError elsewhere."""
        if not in_kernel():
            raise UsageError(
                f"kernel {self.__name__!r} must be launched with a grid, not called; write {self.__name__}[grid](…)."
            )
        for name, value in named.items():
            if name in self.constexprs:
                named[name] = constant(value)
        return self.fn(*args, **named)

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **named: Any) -> Any:
        """Launch the kernel; `grid` is one to three extents, or a function of the arguments that gives them."""
        arguments = self.bound(args, named)
        extents = grid(arguments) if callable(grid) else grid
        whole = (extents,) if isinstance(extents, int) else tuple(extents)
        if warmup:
            return None
        shape = full_grid(tuple(map(int, whole)), f"kernel {self.__name__!r}")
        return current(f"kernel {self.__name__!r}").launch(JitLaunch(JitKernel(self), self.__name__, arguments, shape))

    def bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Match arguments to parameters, hints left out; UsageError where they do not fit."""
        own = {name: value for name, value in named.items() if name not in HINTS or name in self.arg_names}
        try:
            found = self.signature.bind(*args, **own)
        except TypeError as error:
            raise UsageError(
                f"the arguments must fit kernel {self.__name__!r}{self.signature}: {error}; correct the launch."
            ) from None
        found.apply_defaults()
        return dict(found.arguments)


class JitKernel:
    """A jit function as `rt.launch` takes it: with a parameter `tl`, written in Triton's language."""

    language = TritonLanguage

    def __init__(self, function: JitFunction) -> None:
        functools.update_wrapper(self, function.fn)
        self.function = function
        parameters = [
            each.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD, default=inspect.Parameter.empty)
            for each in function.signature.parameters.values()
        ]
        tl = inspect.Parameter("tl", inspect.Parameter.KEYWORD_ONLY)
        self.__signature__ = inspect.Signature([*parameters, tl])

    def __call__(self, *, tl: TritonLanguage, **arguments: Any) -> None:
        """Run one program."""
        constexprs = self.function.constexprs
        given = {
            name: constant(value) if name in constexprs else argument(value) for name, value in arguments.items()
        }
        self.function.fn(**given)


def _is_constexpr(annotation: Any) -> bool:
    return annotation is constexpr or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "constexpr")


def jit(fn: Callable[..., Any] | None = None, **hints: Any) -> Any:
    """Make a kernel, or a helper of one, of a Python function; hints to a compiler change nothing."""
    return jit if fn is None else JitFunction(fn)
