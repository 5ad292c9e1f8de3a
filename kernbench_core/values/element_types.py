"""Element types as kernels have them: texts, equal to kernbench's names, that answer what Triton's dtypes answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from kernbench_core.values.dtypes import DTYPES, dtype_of, info


class ElementType(str):
    """A dtype of elements: equal to its name in kernbench, printed as in Triton."""

    __slots__ = ()

    SINT_TYPES: ClassVar[list[str]] = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: ClassVar[list[str]] = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES: ClassVar[list[str]] = ["fp8e4nv", "fp8e5", "fp16", "bf16", "fp32", "fp64"]
    STANDARD_FP_TYPES: ClassVar[list[str]] = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES: ClassVar[list[str]] = ["void"]

    @property
    def name(self) -> str:
        """Its name in Triton's IR, such as "fp16"."""
        record = info(self)
        return record.aliases[0] if record.kind == "float" and record.aliases else record.triton

    @property
    def primitive_bitwidth(self) -> int:
        """Bits of an element; 1 of a bool."""
        record = info(self)
        return 1 if record.kind == "bool" else 8 * record.itemsize

    @property
    def int_bitwidth(self) -> int:
        """Bits of an integer."""
        return self.primitive_bitwidth

    @property
    def value(self) -> ElementType:
        """The dtype itself: as a constant of a kernel has its own."""
        return self

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return info(self).itemsize

    @property
    def scalar(self) -> ElementType:
        """The dtype itself: that of one element."""
        return self

    @property
    def element_ty(self) -> ElementType:
        """The dtype itself: that of one element."""
        return self

    def is_floating(self) -> bool:
        """Tell whether it is a float."""
        return info(self).kind == "float"

    def is_int(self) -> bool:
        """Tell whether it is an integer, bool among them."""
        return info(self).kind != "float"

    def is_int_signed(self) -> bool:
        """Tell whether it is a signed integer."""
        return self.is_int() and info(self).signed

    def is_int_unsigned(self) -> bool:
        """Tell whether it is an unsigned integer, bool among them."""
        return self.is_int() and not info(self).signed

    def is_bool(self) -> bool:
        """Tell whether it is a bool."""
        return self == "bool"

    def is_ptr(self) -> bool:
        """Tell whether it is a pointer: no."""
        return False

    def is_block(self) -> bool:
        """Tell whether it is a block: no."""
        return False

    @property
    def fp_mantissa_width(self) -> int:
        """Bits of the fraction of a float; AttributeError of an integer."""
        record = info(self)
        if record.kind != "float":
            raise AttributeError(f"dtype {record.triton} has no fp_mantissa_width, as it is no float")
        return record.digits - 1

    @property
    def exponent_bias(self) -> int:
        """What the exponent of a float is stored with, added; AttributeError of an integer."""
        record = info(self)
        if record.kind != "float":
            raise AttributeError(f"dtype {record.triton} has no exponent_bias, as it is no float")
        return (1 << (self.primitive_bitwidth - self.fp_mantissa_width - 2)) - 1

    def is_fp8(self) -> bool:
        """Tell whether it is a float of 8 bits."""
        return self.is_floating() and self.itemsize == 1

    def __repr__(self) -> str:
        return info(self).triton


def _is(name: str) -> object:
    def ask(self: ElementType) -> bool:
        return self == name

    ask.__doc__ = f"Tell whether it is {name}."
    return ask


for _record in DTYPES.values():
    for _alias in {_record.name, _record.triton, *_record.aliases}:
        setattr(ElementType, f"is_{_alias}", _is(_record.name))


TYPES: Mapping[str, ElementType] = MappingProxyType({name: ElementType(name) for name in DTYPES})
"""The element types by their names."""


def as_dtype(given: object) -> ElementType:
    """Return the element type of any spelling; UnsupportedError for one that is not known."""
    return TYPES[dtype_of(given)]
