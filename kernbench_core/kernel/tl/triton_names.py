"""What became of each name of `triton.language`: the same, different in a stated way, or refused with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kernbench_core.compute.ops import OPS
from kernbench_core.values import dtypes

SAME: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        (
            "cdiv", "constexpr", "static_range", "range", "static_assert", "static_print", "device_print",
            "PropagateNan", "sqrt_rn", "unsqueeze", "squeeze", "broadcast", "view", "ravel", "permute", "multiple_of",
            "max_contiguous", "max_constancy", "assume", "debug_barrier", *dtypes.TRITON,
            *(op.name for op in OPS.values() if op.triton == ""),
        ),
        "",
    )
)  # fmt: skip
"""Names that mean what Triton means; where data lives and what time they take is in the text. Ops say it themselves."""

DIFFERS: Mapping[str, str] = MappingProxyType(
    {
        "load": "Extents need not be powers of two. Also `shape=`, `strides=`, `dtype=` from one pointer, and "
        "`wait=False`. Elements that the mask turns off hold `other`, or 0. A single pointer takes a single mask. "
        "Cache hints change nothing.",
        "store": "Also `shape=`, `strides=` from one pointer, and a composite's handle. Visible at once; its time is "
        "simulated after.",
        "dot": "Any extents; two matrices. Operands must have one dtype, or be 8-bit floats. Precision hints change "
        "nothing. Also `wait=False`.",
        "arange": "Extents need not be powers of two; computed in 64 bits, int32 as an operand where it fits.",
        **dict.fromkeys(
            ("program_id", "num_programs"), "A Python number, which takes the dtype of a tensor that it meets."
        ),
        **dict.fromkeys(("fdiv", "div_rn"), "As `/`: of f16 and bf16 too, which become f32."),
        "zeros_like": "A timed command that takes scratchpad space.",
        "device_assert": "Checked always, on data that is known while the kernel runs.",
        **{op.name: op.triton for op in OPS.values() if op.triton},
    }
)
"""Names that exist with a difference, and the difference."""

_ATOMIC = "kernels of triton.jit have it; here let each program write its own place, and combine in a second launch"
_RANDOM = "kernels of triton.jit have it; here make the numbers on the host and load them"
_BLOCK = "use tl.load(ptr, shape=…, strides=…), which is the same tile"
_COMBINE = "kernels of triton.jit have it; here use sum, max, min, cumsum or cumprod"
_SORT = "kernels of triton.jit have it; here sort on the host"

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **{f"atomic_{op}": _ATOMIC for op in ("add", "and", "cas", "max", "min", "or", "xchg", "xor")},
        **dict.fromkeys(("rand", "randn", "randint", "randint4x", "rand4x", "randn4x", "philox"), _RANDOM),
        **dict.fromkeys(("make_block_ptr", "advance", "make_tensor_descriptor", "tensor_descriptor"), _BLOCK),
        **dict.fromkeys(("load_tensor_descriptor", "store_tensor_descriptor"), _BLOCK),
        **dict.fromkeys(("sort", "topk"), _SORT),
        **dict.fromkeys(("reduce", "associative_scan"), _COMBINE),
        "bitonic_merge": "it is a step of a sort; use tl.sort in a kernel of triton.jit, or sort on the host",
        "map_elementwise": "a function of elements is not an op of a unit; write it with tl.where and arithmetic",
        **dtypes.REFUSED,
        "inline_asm_elementwise": "there is no assembly language; write the computation with tl's ops",
        "dot_scaled": "kernels of triton.jit have it; here dequantise first, or use a composite's epilogue",
        "swizzle2d": "compute the program's tile with // and %",
        "pointer_type": "pointers come from the tensors that a launch passes",
        "tensor": "tensors come from tl.load, tl.full and arithmetic",
        "dtype": "spell a dtype as tl.float16 or 'f16'",
        "condition": "write the loop in Python",
        "to_tensor": "numbers are operands as they are",
        "tuple": "use Python's tuples",
        "const": "leave the annotation out; a kernel may only be careful",
        "target_info": "branch on the kernel's own arguments",
    }
)
"""Names that are refused, and what to do instead."""

OURS: Mapping[str, str] = MappingProxyType(
    {
        "ref": "A tile of a tensor that stays in HBM, as an operand of a composite.",
        "composite": "A tiled GEMM or elementwise pipeline with an epilogue, run by the PE's scheduler.",
        "epilogue": "One step of a composite's epilogue.",
        "wait": "Wait, in simulated time, for handles, or for everything in flight.",
        "free": "Give a tile's scratchpad space back before its last name is gone.",
        "send": "Send a tile to another PE, through a queue.",
        "recv": "Receive the next tile that another PE sent here.",
        "recv_any": "Receive the next tile of whichever PE sent one, fairly.",
        "collective": "What the kernel of a collective knows of the call: reduction, root, network, options.",
        "unit_op": "A plug-in's op on a unit of the PE, also on one that configuration added.",
        "issue": "Send a command that a plug-in defines.",
        **{op.name: op.ours for op in OPS.values() if op.ours},
    }
)
"""Names that Triton does not have."""


def table() -> str:
    """Give the Markdown table "Triton name | here | what differs, or what to do" that docs/language.md holds."""
    rows = [("same", name, note) for name, note in SAME.items()]
    rows += [("differs", name, note) for name, note in DIFFERS.items()]
    rows += [("refused", name, note[0].upper() + note[1:] + ".") for name, note in REFUSED.items()]
    lines = ["| `triton.language` | here | what differs, or what to do |", "|---|---|---|"]
    lines += [f"| `{name}` | {status} | {note} |" for status, name, note in sorted(rows, key=lambda row: row[1])]
    return "\n".join(lines) + "\n"
