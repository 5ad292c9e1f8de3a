"""What kernels written in Triton have that kernbench's own `tl` has not, or otherwise: the table of docs/triton.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kernbench_builtin.triton.language.libdevice import BITCASTS, SPELLINGS
from kernbench_core.compute.ops.atomics import HOWS

_TREE = "A function that is one op (`+`, `*`, `maximum`, …) is that reduction; any other is a tree of timed commands, "
_TREE += "along an axis whose extent is a power of two."

_ATOMIC = "Served by the memory that owns the elements, in the order in which requests come there; of a tile, a "
_ATOMIC += "command for each memory. Lanes and programs that meet in an element wait for each other. What was there "
_ATOMIC += "comes back where it is used, 0 in lanes that the mask turns off. `sem` says what it "
_ATOMIC += "orders for hazards, `scope` changes nothing."

_DESCRIPTOR = "Any strides, and extents of blocks that are no powers of two. `gather` and `scatter` read the row "
_DESCRIPTOR += "indices when they are called, and are DMA commands of those rows; of rows that `scatter` brings to one "
_DESCRIPTOR += "place the last stays. Atomics of the dtypes that Triton has for capability 8.0."

_DOT = "Operands that are index arithmetic become tiles by a timed command. Of stacks a product each. f64 is "
_DOT += "multiplied by the vector unit, as matrix units have none: a command of m * n multiply-adds for each k, from "
_DOT += "scratchpad to scratchpad."

_DOT_SCALED = "The vector unit makes f16 of elements where an operand is fp16, else bf16, and multiplies them by "
_DOT_SCALED += "their scales, each step a timed command; then the matrix unit multiplies. Scales are uint8, of 32 "
_DOT_SCALED += "elements along k each; 0 is 0, as in Triton. fp16 and bf16 do not meet."

HERE: Mapping[str, str] = MappingProxyType(
    {
        **{f"atomic_{how}": _ATOMIC for how in HOWS},
        "advance": "",
        "arange": "Extents need not be powers of two, nor constants. Of int32, and so is what follows from it, free as "
        "long as it is integers.",
        "associative_scan": _TREE,
        "atomic_poll": "An atomic op for each look, without a timeout or with one of 0.",
        "cast": "Also of numbers, which become typed scalars, and with `bitcast`.",
        "cdiv": "Of tiles two timed commands.",
        "constexpr": "A class whose objects have `.value` and are numbers, in arithmetic too; not of bools.",
        "cumprod": "",
        "cumsum": "",
        "dot": _DOT,
        "dot_scaled": _DOT_SCALED,
        "hypot": "Of `math`: two products, a sum and a root, each a timed command.",
        "load": "As in the table of the kernel language, and by block pointers.",
        "load_tensor_descriptor": "",
        "max": "f32 or int32 of what has less than 32 bits, as in Triton. `return_indices` is a second command.",
        "min": "As `max`.",
        "maximum": "",
        "minimum": "",
        "make_block_ptr": "`order` changes nothing.",
        "make_tensor_descriptor": _DESCRIPTOR,
        "num_programs": "",
        "philox": "Words of 32 bits: one timed command each.",
        "pointer_type": "Of pointers, and of integers that are addresses of the host's arrays, had by `data_ptr()`.",
        "program_id": "",
        "rand": "Bit for bit: one timed command for the bits, and those that make a float of them.",
        "rand4x": "As `rand`.",
        "randint": "One timed command.",
        "randint4x": "Four timed commands.",
        "randn": "The bits are Triton's; log, sqrt and cos are the vector unit's.",
        "randn4x": "As `randn`.",
        "range": "Gives int32 scalars, int64 ones where a bound is, and so does Python's `range` in a `for`.",
        "reduce": _TREE,
        "static_range": "",
        "sort": "A bitonic network of timed commands; NaN is not ordered.",
        "store": "As in the table of the kernel language, and by block pointers.",
        "store_tensor_descriptor": "",
        "swizzle2d": "",
        "tensor": "For `isinstance`: tiles, index arithmetic, pointers and typed scalars.",
        "tensor_descriptor": "",
        "to_tensor": "",
        "topk": "As `sort`, and a gather of the first.",
        "tuple": "Python's: arguments, and what is given a name, may be tuples, those with names too.",
    }
)
"""Names that the language of files in Triton has, and how each differs, "" if it does not."""


def table() -> str:
    """Give the Markdown table "names | here | what differs"."""
    rows: dict[str, list[str]] = {}
    for name, note in sorted(HERE.items()):
        rows.setdefault(note, []).append(f"`{name}`")
    lines = ["| `triton.language` | here | what differs |", "|---|---|---|"]
    lines += [f"| {', '.join(names)} | {'differs' if note else 'same'} | {note} |" for note, names in rows.items()]
    spelled = ", ".join(f"`{name}`" for name in sorted({*SPELLINGS, *BITCASTS}))
    note = f"The names of `tl`, and {spelled}; all round to nearest."
    lines.append(f"| `math`, `extra.libdevice`, `extra.cuda.libdevice` | differs | {note} |")
    return "\n".join(lines) + "\n"
