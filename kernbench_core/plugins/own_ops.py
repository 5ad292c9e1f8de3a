"""The names of core's own ops and of `tl`, written down: to know what is taken costs no import of numpy."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
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
_CALL_WORDS: Final = """
    PropagateNan arange assume bfloat16 binary broadcast cdiv check_operand collective constexpr data_of
    debug_barrier determined device_assert device_print div_rn dot float16 float32 float64 float8e4nv float8e5
    free gemm in_flight int1 int16 int32 int64 int8 issue known load made_before math max_constancy
    max_contiguous multiple_of note_read num_programs op_id operand operator program_id range recv recv_any
    reduction ref scan send shown sqrt_rn squeeze static_assert static_print static_range store uint16 uint32
    uint64 uint8 unary unit_op unsqueeze wait wait_for wait_for_any zeros_like
"""
_REFUSED_WORDS: Final = """
    advance associative_scan bitonic_merge condition const dot_scaled dtype float8e4b15 float8e4b8 float8e5b16
    inline_asm_elementwise load_tensor_descriptor make_block_ptr make_tensor_descriptor map_elementwise
    pointer_type rand rand4x randint randint4x randn randn4x reduce sort store_tensor_descriptor swizzle2d
    target_info tensor tensor_descriptor to_tensor topk tuple void
"""
#: What else `tl` has, and what of Triton's it refuses.
CALLS: Final = frozenset(_CALL_WORDS.split())
REFUSED: Final = frozenset(_REFUSED_WORDS.split())
_NAMES: Final = frozenset(_WORDS.split())
_PRODUCTS: Final = "gemm_"


def is_own(name: str) -> bool:
    """Whether kernbench computes an op of this name itself."""
    return name in _NAMES or name.startswith(_PRODUCTS)


def is_record(target: str) -> bool:
    """Whether "module:attr" is the record of a math op; it is imported, so this is for few names."""
    module, _, path = target.partition(":")
    try:
        return hasattr(attrgetter(path)(import_module(module)), "again")
    except Exception:  # who uses it says so
        return False
