"""`triton.language` as a module: each name is looked up in the `tl` of the kernel that runs where it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from kernbench_builtin.triton.dtype_names import str_to_ty, text_of_dtype
from kernbench_builtin.triton.language.blocks import TensorDescriptor
from kernbench_builtin.triton.scalars import Constant, TypedNumber, constant
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import KernelError, UnsupportedError
from kernbench_core.kernel.bridge import current_language
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pointers import Pointer, PointerType
from kernbench_core.kernel.tl.language import TLContext
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.values.dtypes import REFUSED, TRITON
from kernbench_core.values.element_types import ElementType, as_dtype


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


class _Constants(type):
    def __instancecheck__(cls, given: object) -> bool:
        return isinstance(given, Constant)


class constexpr(metaclass=_Constants):  # noqa: N801 - Triton's spelling
    """Mark a parameter as one of compile time; called, give a constant with `.value`."""

    __module__ = "triton.language"  # as signatures spell it in messages

    def __new__(cls, value: Any = None) -> Any:
        """Give `value` as a constant."""
        return constant(value)


class _Tensors(type):
    def __instancecheck__(cls, given: object) -> bool:
        return isinstance(given, Tensor | IndexTensor | Pointer | TypedNumber)


class tensor(metaclass=_Tensors):  # noqa: N801 - Triton's spelling
    """What `isinstance` asks for: a tile, what `arange` led to, a pointer, a scalar that is no constant."""


class _PointerTypes(type):
    def __instancecheck__(cls, given: object) -> bool:
        return isinstance(given, PointerType)


class pointer_type(metaclass=_PointerTypes):  # noqa: N801 - Triton's spelling
    """A pointer to elements of a dtype: what an annotation or a cast names."""

    def __new__(cls, element_ty: Any, address_space: int = 1, const: bool = False) -> Any:
        """Give the type of a pointer to elements of a dtype."""
        return PointerType(as_dtype(element_ty))


class _Tuples(type):
    def __instancecheck__(cls, given: object) -> bool:
        return isinstance(given, tuple)


class tuple_(metaclass=_Tuples):  # noqa: N801 - Triton's spelling, which Python has too
    """Make a tuple of a kernel, which is Python's."""

    def __new__(cls, values: Iterable[Any], type: Any = None) -> Any:
        """Give the values as a tuple."""
        return tuple(values)


class TritonType(ElementType):
    """A dtype as a file in Triton names it: printed as there, `fp32` and `int1`."""

    __slots__ = ()

    def __str__(self) -> str:
        return text_of_dtype(self)

    def __format__(self, spec: str) -> str:
        return format(text_of_dtype(self), spec)


class RefusedType(str):
    """A dtype of Triton's that no unit has: a text, which says so when it is asked anything."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"tl.{self} is a dtype of Triton's that kernbench refuses: {REFUSED[self]}.")


_DTYPES = {triton: TritonType(own) for triton, own in TRITON.items()}


class LanguageModule(ModuleType):
    """The module `triton.language`, and those below it: `math`, `extra.libdevice`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = RefusedType(name) if name in REFUSED else LanguageFunction(name)
        setattr(self, name, found)
        return found


def _int_dtype(bitwidth: Any, signed: Any = True) -> ElementType:
    return as_dtype(f"{'' if signed else 'u'}int{int(bitwidth)}")


def _log2(value: Any) -> Any:
    return constant(int(value).bit_length() - 1)


#: What libraries take from the modules below `triton.language` that has no name above.
INNER: Mapping[str, Mapping[str, object]] = {
    "core": {"CONSTEXPR_0": constant(0), "get_int_dtype": _int_dtype}, "standard": {"_log2": _log2}, "random": {},
}  # fmt: skip


def language_module(name: str = "triton.language") -> LanguageModule:
    """Make the module of the language."""
    made = LanguageModule(name)
    made.__path__ = []
    vars(made).update(_DTYPES, pi32_t=PointerType(as_dtype("int32")))
    made.constexpr = constexpr  # type: ignore[attr-defined]
    made.tensor, made.pointer_type, made.tuple = tensor, pointer_type, tuple_  # type: ignore[attr-defined]
    made.tensor_descriptor = TensorDescriptor  # type: ignore[attr-defined]
    made.dtype, made.str_to_ty = ElementType, str_to_ty  # type: ignore[attr-defined]
    vars(made).update(INNER.get(name.rpartition(".")[2], {}))
    made.PropagateNan = TLContext.PropagateNan  # type: ignore[attr-defined]
    if name.endswith(("math", "libdevice")):  # there they are of two operands
        made.max, made.min = LanguageFunction("maximum"), LanguageFunction("minimum")  # type: ignore[attr-defined]
    return made
