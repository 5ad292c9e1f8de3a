"""Functions that `triton.jit` decorates: launched by the host with `kernel[grid](…)`, called by other kernels."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from kernbench_builtin.triton.language.dialect import TritonLanguage
from kernbench_builtin.triton.language.pipeline import DEFAULT_STAGES
from kernbench_builtin.triton.logic import read_as_triton_does
from kernbench_builtin.triton.names import constexpr
from kernbench_builtin.triton.scalars import argument, constant
from kernbench_builtin.triton.simulation import JitLaunch, current
from kernbench_core.callsite import site_of_frame
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.host.launch_arguments import full_grid, name_of
from kernbench_core.kernel.bridge import in_kernel
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures

HINTS = (
    "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid", "waves_per_eu",
    "extern_libs", "launch_pdl", "debug", "sanitize_overflow",
)  # fmt: skip
"""Options of a launch that speak to a compiler, and change nothing here."""

#: What Python counts as numbers or sequences, and no kernel takes but as a constant.
_NO_ARGUMENTS = (list, dict, set, bytes, bytearray, complex)
Grid = Sequence[int] | int | Callable[[Mapping[str, Any]], Any]


class Launchable(ABC):
    """What is launched with `kernel[grid](…)`: a jit function, or a wrapper of one. `fn` is what it wraps.

    `signature` is what a launch is to give, of which `constexprs` are constants of compile time.
    """

    fn: Any
    arg_names: Sequence[str]
    signature: inspect.Signature
    constexprs: frozenset[str]

    def __init__(self, fn: Any) -> None:
        functools.update_wrapper(self, fn)
        self.__name__ = name_of(fn)
        self.fn = fn
        if isinstance(fn, Launchable):
            self.arg_names, self.signature, self.constexprs = fn.arg_names, fn.signature, fn.constexprs

    def _supply(self, names: Collection[str]) -> None:
        """Have parameters be given by this wrapper, not by who launches."""
        left = [each for name, each in self.signature.parameters.items() if name not in names]
        self.signature = inspect.Signature(left)

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        """Return what launches the kernel on a grid; KernelError inside a kernel."""
        if in_kernel():
            raise KernelError(
                f"kernel {self.__name__!r} must be launched by the host, not in a kernel; write {self.__name__}(…), "
                "without a grid, to call it there."
            )
        return functools.partial(self.run, grid=grid, warmup=False)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function inside a kernel; UsageError elsewhere."""
        return self.fn(*args, **named)

    def warmup(self, *args: Any, grid: Grid, **named: Any) -> Any:
        """Return the kernel as compiled for these arguments; nothing runs."""
        return self.run(*args, grid=grid, warmup=True, **named)

    @abstractmethod
    def run(self, *args: Any, grid: Grid, warmup: bool = False, **named: Any) -> Any:
        """Launch the kernel on a grid, or only prepare for that: `warmup`."""


@frozen
class KernelParameter:
    """A parameter as libraries ask for it that cache launches: its number, its default, whether it is fixed."""

    num: int
    name: str
    default: Any
    annotation: Any
    is_constexpr: bool
    do_not_specialize: bool

    @property
    def has_default(self) -> bool:
        """Whether a launch may leave it out."""
        return self.default is not inspect.Parameter.empty


class JitFunction(Launchable):
    """A kernel or a helper of one. `fn` is the Python function."""

    def __init__(self, fn: Callable[..., Any], do_not_specialize: Sequence[int | str] = ()) -> None:
        read = read_as_triton_does(fn)
        self._is_read = read is not None
        fn = read or fn
        super().__init__(fn)
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self.constexprs = frozenset(
            name for name, each in self.signature.parameters.items() if _is_constexpr(each.annotation)
        )
        self.annotations = {name: each.annotation for name, each in self.signature.parameters.items()}
        self.do_not_specialize = list(do_not_specialize)
        self.__globals__ = getattr(fn, "__globals__", {})

    @property
    def params(self) -> list[KernelParameter]:
        """The parameters, in order."""
        return [
            KernelParameter(
                at, name, each.default, each.annotation, name in self.constexprs,
                at in self.do_not_specialize or name in self.do_not_specialize,
            )
            for at, (name, each) in enumerate(self.signature.parameters.items())
        ]  # fmt: skip

    @functools.cached_property
    def src(self) -> str:
        """The kernel's source, from its `def` on, without decorators; of a lambda its line."""
        lines = inspect.getsource(self.fn)
        found = re.search(r"^[ \t]*(?=def\s)", lines, re.MULTILINE)
        return textwrap.dedent(lines[found.start() :] if found else lines)

    @functools.cached_property
    def cache_key(self) -> str:
        """What tells this kernel from others: a digest of its file's name, line and source."""
        code = self.fn.__code__
        return hashlib.sha256(f"{code.co_filename}:{code.co_firstlineno}\n{self.src}".encode()).hexdigest()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function inside a kernel; UsageError elsewhere."""
        if not in_kernel():
            raise UsageError(
                f"kernel {self.__name__!r} must be launched with a grid, not called; write {self.__name__}[grid](…)."
            )
        for name, value in named.items():
            if name in self.constexprs:
                named[name] = constant(value)
        self._note_source()
        return self.fn(*args, **named)

    def _note_source(self) -> None:
        """Have the result say it where the function was not read as Triton reads it."""
        if not self._is_read:
            why, advice = (
                f"the source of {self.__name__!r} is not to be had, as of a function that was made of a text",
                "put it into a file",
            )
            if self.__name__ == "<lambda>":
                why, advice = "a kernel that is a lambda is not read as Triton reads functions", "write it with def"
            current(f"kernel {self.__name__!r}").note(
                f"{why}: numbers that it names stay Python's, and are not typed; {advice}."
            )

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **named: Any) -> Any:
        """Launch the kernel; `grid` is one to three extents, or a function of the arguments that gives them."""
        arguments = self.bound(args, named)
        if warmup:
            return CompiledKernel(self)
        extents = grid(arguments) if callable(grid) else grid
        whole = tuple(extents) if isinstance(extents, tuple | list) else (extents,)
        shape = full_grid(tuple(int(n) if hasattr(n, "__index__") else n for n in whole), f"kernel {self.__name__!r}")
        site = site_of_frame(sys._getframe())
        hints = {name: value for name, value in named.items() if name in HINTS and name not in self.arg_names}
        simulation = current(f"kernel {self.__name__!r}")
        self._note_source()
        kernel = JitKernel(self, hints)
        stages = kernel.stages if simulation.pipelines else None
        asked = JitLaunch(kernel, self.__name__, arguments, shape, site, stages=stages, constants=self.constexprs)
        return CompiledKernel(self, simulation.launch(asked), simulation.looked_at)

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
        given = found.arguments.items()
        for name, value in given:
            if isinstance(value, _NO_ARGUMENTS) and name not in self.constexprs:
                raise UsageError(
                    f"argument {name!r} of kernel {self.__name__!r} must be an array, a number, None or a tuple of "
                    f"these, not {brief(value)} of type {type(value).__name__}; make it an array."
                )
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in given}


class CompiledKernel:
    """A kernel as a launch and `warmup` give it: launched with `compiled[grid](…)`, asked what it needs of a PE.

    One program at a time is on a PE, so it needs all of the scratchpad. Registers are not modelled. That of a launch
    has the names of its `figures`, too.
    """

    n_regs, n_spills, n_max_threads = 32, 0, 1024

    def __init__(
        self, function: JitFunction, figures: LaunchFigures | None = None, looked_at: Callable[[], None] | None = None
    ) -> None:
        self.function = function
        self._figures, self._looked_at = figures, looked_at
        self.name = function.__name__
        self.asm: dict[str, str] = {}

    @property
    def figures(self) -> LaunchFigures | None:
        """The figures of the launch, which a recording of the run does not hold for."""
        if self._looked_at is not None:
            self._looked_at()
        return self._figures

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or self._figures is None:
            raise AttributeError(f"compiled kernel {self.name!r} has no attribute {name!r}")
        return getattr(self.figures, name)

    @property
    def metadata(self) -> SimpleNamespace:
        """What Triton's compiler would say of it."""
        shared = current(f"kernel {self.name!r}").machine.scratchpad_bytes
        return SimpleNamespace(name=self.name, shared=shared, num_warps=4, num_stages=3, num_ctas=1)

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        """Return what launches the kernel on a grid."""
        return self.function[grid]

    def _init_handles(self) -> None:
        """Load the kernel on the device: it is there."""


class JitKernel:
    """A jit function as `rt.launch` takes it: with a parameter `tl`, written in Triton's language.

    `hints` are those that the launch gives to a compiler: of these, loops that are pipelined take `num_stages`.
    """

    language = TritonLanguage

    def __init__(self, function: JitFunction, hints: Mapping[str, Any] | None = None) -> None:
        functools.update_wrapper(self, function.fn)
        self.function = function
        self.hints = hints or {}
        self.stages = int(self.hints.get("num_stages") or DEFAULT_STAGES)
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY, default=inspect.Parameter.empty)
            for each in function.signature.parameters.values()
        ]
        tl = inspect.Parameter("tl", inspect.Parameter.KEYWORD_ONLY)
        self.__signature__ = inspect.Signature([*parameters, tl])

    def __call__(self, *, tl: TritonLanguage, **arguments: Any) -> None:
        """Run one program."""
        tl.stages = self.stages
        if self.hints and not any(tl.program_id(axis) for axis in range(3)):
            tl.ignore(f"{name} of a launch" for name in self.hints if not tl.takes(name))
        constexprs = self.function.constexprs
        types = self.function.annotations
        given = {
            name: constant(value) if name in constexprs else argument(value, types.get(name))
            for name, value in arguments.items()
        }
        self.function.fn(**given)


def _is_constexpr(annotation: Any) -> bool:
    return annotation is constexpr or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "constexpr")


def jit(fn: Callable[..., Any] | None = None, **hints: Any) -> Any:
    """Make a kernel, or a helper of one, of a Python function; hints to a compiler change nothing."""
    if fn is None:
        return functools.partial(jit, **hints)
    return JitFunction(fn, hints.get("do_not_specialize") or ())
