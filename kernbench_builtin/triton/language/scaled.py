"""`dot_scaled`: products of microscaled numbers, whose elements and scales the vector unit makes floats first.

Elements become f16 where an operand is, else bf16, and are multiplied by their scale in that; then the matrix unit
multiplies them. That is how Triton does it for hardware without scaled products. What comes of NaN, of infinities and
of scales that f16 does not hold is Triton's, too; a scale of 0 is 0, not 2**-127.
"""

from __future__ import annotations

from typing import Any, Final

from kernbench_builtin.triton.language.products import ProductLanguage
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.tl.shapes import kind_of, shape_of
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.values.dtypes import dtype_of

_DTYPES: Final = {"e2m1": "uint8", "e4m3": "f8e4m3", "e5m2": "f8e5m2", "bf16": "bf16", "fp16": "f16"}
_CARRIERS: Final = {"e4m3": "uint8", "e5m2": "uint8", "bf16": "uint16", "fp16": "uint16"}
_GROUP: Final = 32
"""Elements along k that have one scale."""
_NAN: Final = 255
"""The scale that makes its elements NaN."""


class ScaledProductLanguage(ProductLanguage):
    """`dot_scaled`."""

    def dot_scaled(
        self, lhs: Any, lhs_scale: Any, lhs_format: str, rhs: Any, rhs_scale: Any, rhs_format: str, acc: Any = None,
        fast_math: bool = False, lhs_k_pack: bool = True, rhs_k_pack: bool = True, out_dtype: Any = "f32",
    ) -> Tensor:  # fmt: skip
        """Multiply (m, k) by (k, n), or stacks of them; scales are (m, k / 32) and (n, k / 32), or None.

        Elements of e2m1 lie in pairs along k, or with `lhs_k_pack` or `rhs_k_pack` False along m and n. With
        `fast_math` a scale of 255 is infinity, and no NaN.
        """
        formats = str(lhs_format), str(rhs_format)
        sides = (lhs, lhs_scale, lhs_k_pack, -1, "lhs"), (rhs, rhs_scale, rhs_k_pack, -2, "rhs")
        for (x, _, packs, _, side), name in zip(sides, formats, strict=True):
            _check_format(x, name, packs, side)
        if set(formats) == {"fp16", "bf16"}:
            _refuse("fp16 and bf16 not of each other, but of narrower formats and themselves", formats, "cast one")
        meet = "f16" if "fp16" in formats else "bf16"
        a, b = (
            self._scaled(self._elements(x, name, k if packs else -3 - k, meet), scale, k, side, fast_math)
            for (x, scale, packs, k, side), name in zip(sides, formats, strict=True)
        )
        return self._multiplied(a, b, acc, dtype_of(out_dtype))

    def _elements(self, x: Tensor, name: str, axis: int, meet: str) -> Tensor:
        """Make floats of `meet` of what is in a format; pairs of e2m1 lie along `axis`, -1 or -2."""
        if name != "e2m1":
            return self.cast(self.cast(x, _DTYPES[name], bitcast=x.dtype == _CARRIERS[name]), meet)  # type: ignore[no-any-return]
        # e2m1 is e5m2 with fewer bits of exponent: sign, exponent and mantissa move, and 2**14 is what biases differ by
        pairs = self.cast(x, "int8", bitcast=True)
        both = self.join(pairs << 4, pairs)
        if axis == -2:
            rank = len(both.shape)
            both = self.trans(both, *range(rank - 2), rank - 1, rank - 2)
        shape = (*x.shape[:-1], 2 * x.shape[-1]) if axis == -1 else (*x.shape[:-2], 2 * x.shape[-2], x.shape[-1])
        narrow = self.cast((both >> 3) & -114, "f8e5m2", bitcast=True)  # 0b1000_1110
        return self.reshape(self.cast(narrow, meet) * 2.0**14, shape)  # type: ignore[no-any-return]

    def _scaled(self, x: Tensor, scale: Any, k: int, side: str, fast_math: bool) -> Tensor:
        """Multiply each group of elements along axis `k`, -1 or -2, by its scale."""
        if scale is None:
            return x
        rows = x.shape[-3 - k]
        wanted = (*x.shape[:-2], rows, x.shape[k] // _GROUP)
        if x.shape[k] % _GROUP:
            _refuse(
                f"a multiple of {_GROUP} along k of {side}, which has a scale", (str(x.shape[k]),), "fill up with 0"
            )
        if shape_of(scale) != wanted or kind_of(scale) != "uint8":
            _refuse(
                f"a scale of uint8 for each {_GROUP} elements of {side} along k, of shape {wanted}",
                (f"{kind_of(scale)} of shape {shape_of(scale)}",), "correct it",
            )  # fmt: skip
        # the bits of a power of two in bf16, which scales are
        factor = self.cast(self.cast(scale, "uint16") << 7, "bf16", bitcast=True)
        if not fast_math:
            factor = self.where(scale == _NAN, float("nan"), factor)
        factor = self.cast(factor, x.dtype)
        groups = (x.shape[k] // _GROUP, _GROUP)
        if k == -1:
            scaled = self.reshape(x, (*x.shape[:-1], *groups)) * self.expand_dims(factor, -1)
        else:
            scaled = self.reshape(x, (*x.shape[:-2], *groups, x.shape[-1])) * self.expand_dims(self.trans(factor), -2)
        return self.reshape(scaled, x.shape)  # type: ignore[no-any-return]


def _check_format(x: Any, name: str, packs: bool, side: str) -> None:
    if name not in _DTYPES:
        _refuse(f"{side}_format as one of {', '.join(_DTYPES)}", (name,), "cast the operand")
    if not isinstance(x, Tensor) or len(x.shape) not in (2, 3) or x.dtype not in (_DTYPES[name], _CARRIERS.get(name)):
        given = f"{kind_of(x)} of shape {shape_of(x)}"
        _refuse(f"{side} as a matrix of {name} or a stack of them, in {_DTYPES[name]}", (given,), "load it so")
    if not packs and name != "e2m1":
        _refuse(f"{side}_k_pack=False with pairs of e2m1 only", (name,), "leave it out")


def _refuse(wanted: str, given: tuple[str, ...], advice: str) -> None:
    here = f"tl.dot_scaled at {describe_site(call_site())}"
    raise ShapeError(f"{here} must be given {wanted}, not {' and '.join(given)}; {advice}.")
