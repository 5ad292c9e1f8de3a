"""The names of `tl.math` and `libdevice`: each is one of `tl`, or an op of the units under its name in C."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kernbench_core.compute.ops import OPS

_ROUNDED = ("rn", "rz", "rd", "ru")

SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in (
            "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "exp10", "expm1",
            "log10", "log1p", "cbrt", "erfc", "lgamma", "tgamma", "rint", "round", "trunc", "llrint",
            "llround", "isnan", "isinf", "signbit", "copysign", "fdim", "pow", "mod",
        )},
        "nearbyint": "rint", "isinfd": "isinf", "isnand": "isnan", "finitef": "isfinite", "isfinited": "isfinite",
        "isfinite": "isfinite", "fmod": "mod", "powi": "pow", "fast_powf": "pow",
        "fast_expf": "exp", "fast_exp10f": "exp10", "fast_logf": "log", "fast_log2f": "log2", "fast_log10f": "log10",
        "fast_sinf": "sin", "fast_cosf": "cos", "fast_tanf": "tan", "fast_tanhf": "tanh", "fast_dividef": "div",
        "rsqrt_rn": "rsqrt", "fabs": "abs", "mulhi": "umulhi",
        **{f"{op}_{way}": op for op in ("add", "sub", "mul", "div", "sqrt") for way in _ROUNDED[:1]},
        **{f"rcp_{way}": "rcp" for way in _ROUNDED[:1]}, "fast_rcpf": "rcp",
    }
)  # fmt: skip
"""Names that `tl` of kernbench's own kernels lacks, and the op that each is."""

BITCASTS: Mapping[str, str] = MappingProxyType(
    {"float_as_int": "int32", "float_as_uint": "uint32", "int_as_float": "f32", "uint_as_float": "f32"}
)
"""Names that keep the bits of an operand, and the dtype that each gives."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **{
            f"{op}_{way}": f"the units round to nearest; use {op}_rn"
            for op in ("add", "sub", "mul", "div", "sqrt", "rcp", "fma")
            for way in _ROUNDED[1:]
        },
        **dict.fromkeys(
            ("j0", "j1", "jn", "y0", "y1", "yn", "erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv", "cyl_bessel_i0",
             "cyl_bessel_i1", "sinpi", "cospi", "nextafter", "ldexp", "scalbn", "ilogb", "logb", "remainder", "rhypot",
             "norm3d", "norm4d", "rcbrt", "ffs", "popc", "clz", "brev", "byte_perm"),
            "the vector unit has no such op; compute it with tl's ops, or register a math op in a plug-in",
        ),
    }
)  # fmt: skip
"""Names of libdevice that no op stands for, and what to do."""

assert set(SPELLINGS.values()) <= set(OPS)
