"""The names of core's own ops, written down: to know what is taken costs no import of numpy."""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
    abs acos acosh add all and any argmax argmin asin asinh atan atan2 atanh atomic_add atomic_and atomic_before
    atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor bitcast broadcast_to cast cat cbrt ceil
    clamp composite_gemm composite_math copy copysign cos cosh cumprod cumsum div eq equal erf erfc exp exp10
    exp2 expand_dims expm1 fdim fdiv flip floor floordiv fma frac full gather ge gelu gelu_erf gelu_tanh gt
    histogram interleave invert isfinite isinf isnan join le lgamma llrint llround log log10 log1p log2
    logical_and logical_not logical_or lshift lt masked_store max maximum min minimum mod mul ne neg not
    not_equal or permute philox pow prod ravel rcp reduce_or relu reshape rint round rshift rsqrt shl shr
    sigmoid signbit silu sin sinh softmax split sqrt sub sum tan tanh tgamma to trans truediv trunc umulhi view
    where xor xor_sum zeros
"""
_NAMES: Final = frozenset(_WORDS.split())
_PRODUCTS: Final = "gemm_"


def is_own(name: str) -> bool:
    """Whether kernbench computes an op of this name itself."""
    return name in _NAMES or name.startswith(_PRODUCTS)
