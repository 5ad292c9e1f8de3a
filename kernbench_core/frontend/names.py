"""`triton.language` as a module: each name is looked up in the `tl` of the kernel that runs where it is called."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import KernelError
from kernbench_core.frontend.scalars import constant
from kernbench_core.frontend.types import TritonType, as_dtype
from kernbench_core.kernel.bridge import current_language
from kernbench_core.kernel.tl.language import TLContext
from kernbench_core.values.dtypes import TRITON


def running(name: str) -> TLContext:
    """Return the `tl` of the kernel that runs; KernelError outside of kernels."""
    found: TLContext | None = current_language()
    if found is None:
        raise KernelError(
            f"tl.{name} at {describe_site(call_site())} must be called in a kernel that runs; launch the kernel with "
            "kernel[grid](…)."
        )
    return found


class LanguageFunction:
    """A function of `triton.language`: called, it is that of the kernel that runs."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function of this name of the kernel that runs."""
        language = current_language() or running(self.__name__)
        return getattr(language, self.__name__)(*args, **named)

    def __repr__(self) -> str:
        return f"<function triton.language.{self.__name__}>"


class constexpr:  # noqa: N801 - Triton's spelling
    """Mark a parameter as one of compile time; called, give a constant with `.value`."""

    def __new__(cls, value: Any = None) -> Any:
        """Give `value` as a constant."""
        return constant(value)


class LanguageModule(ModuleType):
    """The module `triton.language`, and those below it: `math`, `extra.libdevice`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = LanguageFunction(name)
        setattr(self, name, found)
        return found


def language_module(name: str = "triton.language") -> LanguageModule:
    """Make the module of the language."""
    made = LanguageModule(name)
    made.__path__ = []
    for triton, own in TRITON.items():
        setattr(made, triton, as_dtype(own))
    made.constexpr = constexpr  # type: ignore[attr-defined]
    made.dtype = TritonType  # type: ignore[attr-defined]
    made.PropagateNan = TLContext.PropagateNan  # type: ignore[attr-defined]
    return made
