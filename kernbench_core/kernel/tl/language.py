"""`tl`, as a kernel sees it: Triton's names beside `ref`, `composite`, `wait`, `send`, `recv` and `free`.

One object per program. What is eager, what is pending, what blocks and what takes scratchpad space is in
docs/language.md. What became of each name of `triton.language` stands here: it is the same, or different in a stated
way, or refused with a sentence.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.functions import function_of
from kernbench_core.compute.ops import OPS
from kernbench_core.errors import KernelError, ShapeError, UnsupportedError
from kernbench_core.kernel.bridge import Bridge
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pe_state import PeState
from kernbench_core.kernel.pointers import Pointer, Ref, make_ref
from kernbench_core.kernel.tl.math import method_of
from kernbench_core.kernel.tl.memory_calls import MemoryLanguage
from kernbench_core.kernel.tl.queue_calls import QueueLanguage
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.kernel.tl.unit_op import UnitOpLanguage
from kernbench_core.kernel.transfers import direct_transfer
from kernbench_core.messages import Launch
from kernbench_core.params import closest
from kernbench_core.values import dtypes
from kernbench_core.values.dtypes import TRITON, dtype_of

if TYPE_CHECKING:
    from kernbench_core.plugins import OpEntry, Registry

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
    """Give the Markdown table "here | names of Triton | what differs, or what to do" that docs/language.md holds."""
    rows: dict[tuple[str, str], list[str]] = {}
    for status, names in (("same", SAME), ("differs", DIFFERS), ("refused", REFUSED)):
        for name, note in sorted(names.items()):
            said = f"{note[0].upper()}{note[1:]}." if status == "refused" else note
            rows.setdefault((status, said), []).append(f"`{name}`")
    lines = ["| here | names of `triton.language` | what differs, or what to do |", "|---|---|---|"]
    lines += [f"| {status} | {', '.join(names)} | {said} |" for (status, said), names in rows.items()]
    return "\n".join(lines) + "\n"


class constexpr:  # noqa: N801 - Triton's spelling
    """Annotate a parameter that is known at compile time; called, it gives its argument back."""

    def __new__(cls, value: Any) -> Any:
        """Give `value` as it is: everything is known at run time here."""
        return value


class TLContext(MemoryLanguage, UnitOpLanguage, QueueLanguage):
    """The kernel language for one program of a launch. See the module's documentation for the rules."""

    constexpr = constexpr
    static_range: Any = staticmethod(builtins.range)

    def __init__(self, state: PeState, bridge: Bridge, program: tuple[int, int, int], launch: Launch) -> None:
        super().__init__(state, bridge, launch)
        self._program = program
        self._grid = launch.grid

    def __getattr__(self, name: str) -> Any:
        ops, calls = self._state.kernels.ops, self._state.kernels.calls()
        if name in calls:
            return partial(calls.load(name), self)
        op = None if name.startswith("_") else ops.callable_record(name, f"tl.{name}")
        if op is not None:
            return partial(self._math_op, op)
        if name in REFUSED:
            here = f"tl.{name} at {describe_site(call_site())}"
            raise UnsupportedError(f"{here} is a name of Triton's that kernbench refuses: {REFUSED[name]}.")
        hint = f" Did you mean tl.{close}?" if (close := closest(name, [*SAME, *DIFFERS, *OURS, *calls])) else ""
        raise AttributeError(f"tl has no name {name!r}.{hint or calls.left_out}")

    def __repr__(self) -> str:
        return f"<tl of program {self._program} on {self._state.site.prefix}>"

    # Program and indices ------------------------------------------------------------------------------

    def program_id(self, axis: int = 0) -> int:
        """Give this program's position along `axis` (0, 1, 2) of the grid; a plain int."""
        return self._program[axis]

    def num_programs(self, axis: int = 0) -> int:
        """Give the number of programs along `axis` (0, 1, 2) of the grid; a plain int."""
        return self._grid[axis]

    def arange(self, start: int, end: int) -> IndexTensor:
        """Give the integers from `start` to `end`, `end` not included; free. ShapeError when there are none."""
        first, last = int(start), int(end)
        if last <= first:
            raise ShapeError(
                f"tl.arange at {describe_site(call_site())} must be given an end above its start, not "
                f"({first}, {last}); skip the empty tile."
            )
        return IndexTensor((last - first,), first, (1,))

    def range(self, start: int, end: int | None = None, step: int = 1, **hints: Any) -> builtins.range:
        """Give Python's range; Triton's pipelining hints are accepted and change nothing."""
        return builtins.range(0, start, step) if end is None else builtins.range(start, end, step)

    def ref(
        self, pointer: Pointer, shape: Sequence[int], strides: Sequence[int] | None = None, dtype: Any = None
    ) -> Ref:
        """Refer to a tile of a tensor that stays in HBM: an operand of a composite. `strides` count elements.

        OutOfBoundsError when the tile reaches outside its tensor.
        """
        found = make_ref(pointer, shape, strides, None if dtype is None else dtype_of(dtype), "tl.ref")
        direct_transfer(found, "tl.ref")
        return found

    # Hints, checks and prints -------------------------------------------------------------------------

    def multiple_of(self, x: Any, values: Any) -> Any:
        """Give `x`; the hint changes nothing."""
        return x

    max_contiguous = max_constancy = multiple_of

    def assume(self, condition: Any) -> None:
        """Do nothing: the hint is for a compiler."""

    def debug_barrier(self) -> None:
        """Do nothing: a program is one thread of control."""

    def static_assert(self, condition: Any, message: str = "") -> None:
        """Raise KernelError when the condition is false."""
        if not condition:
            raise KernelError(_broken("tl.static_assert", message))

    def device_assert(self, condition: Any, message: str = "", mask: Any = None) -> None:
        """Raise KernelError when any element of a known condition is false where `mask` is true."""
        known = self._known_mask(condition, "tl.device_assert")
        if known is None:
            return
        where = self._known_mask(mask, "tl.device_assert")
        if not np.all(known if where is None else known | ~where):
            raise KernelError(_broken("tl.device_assert", message))

    def static_print(self, *values: Any) -> None:
        """Print at once."""
        print(*values)

    def device_print(self, prefix: str, *values: Any, hex: bool = False) -> None:
        """Print `prefix` and values at once; a pending tensor is printed as such."""
        print(prefix, *[value.numpy() if isinstance(value, IndexTensor) else _shown(value) for value in values])


for _triton, _name in TRITON.items():
    setattr(TLContext, _triton, _name)  # tl.float16 and its like, by the records of the dtypes
for _op in OPS.values():
    if _op.in_language and not hasattr(TLContext, _op.name):
        setattr(TLContext, _op.name, method_of(_op))  # tl.exp and its like, whose calls say no more than their names


def _broken(what: str, message: str) -> str:
    return f"{what} at {describe_site(call_site())} must hold, and does not. {message}".rstrip()


def _shown(value: Any) -> Any:
    """Give what device_print prints of a value."""
    if not isinstance(value, Tensor):
        return value
    value.settle()
    return value._read("tl.device_print") if value.known else repr(value)


def op_functions(ops: Registry[OpEntry]) -> dict[str, str]:
    """Return the "module:attr" of each op; PluginError for one that is called as one of core's, which it would hide."""
    for name in (*ops.taken, *ops):
        if function_of(name) is not None:
            raise ops.fault(name, "must not be called as an op of kernbench's own")
    # what two have is told where a kernel asks for it, and either is asked for as VENDOR:name
    picked = {f"{ops.provider(name).plugin}:{name}": entry.target for name, entry in ops.items() if ":" not in name}
    return {name: entry.target for name, entry in ops.items()} | dict.fromkeys(ops.taken, "") | picked
