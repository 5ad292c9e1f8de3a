"""`tl`, as a kernel sees it: Triton's names beside `ref`, `composite`, `wait`, `send`, `recv` and `free`.

One object per program. What is eager, what is pending, what blocks and what takes scratchpad space is in
docs/language.md.
"""

from __future__ import annotations

import builtins
from functools import partial
from typing import Any

import numpy as np

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.ops import OPS
from kernbench_core.errors import KernelError, ShapeError, UnsupportedError
from kernbench_core.kernel.bridge import Bridge
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pe_state import PeState
from kernbench_core.kernel.tl.composite_call import CompositeLanguage
from kernbench_core.kernel.tl.dispatch import Dispatcher
from kernbench_core.kernel.tl.flags import check_flags
from kernbench_core.kernel.tl.math import MathLanguage, method_of
from kernbench_core.kernel.tl.memory_calls import MemoryLanguage
from kernbench_core.kernel.tl.queue_calls import QueueLanguage
from kernbench_core.kernel.tl.shapes import ShapeLanguage
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.kernel.tl.triton_names import DIFFERS, OURS, REFUSED, SAME
from kernbench_core.kernel.tl.unit_op import UnitOpLanguage
from kernbench_core.messages import Launch
from kernbench_core.params import closest
from kernbench_core.values.dtypes import TRITON


class constexpr:  # noqa: N801 - Triton's spelling
    """Annotate a parameter that is known at compile time; called, it gives its argument back."""

    def __new__(cls, value: Any) -> Any:
        """Give `value` as it is: everything is known at run time here."""
        return value


class TLContext(
    Dispatcher, MemoryLanguage, MathLanguage, ShapeLanguage, CompositeLanguage, UnitOpLanguage, QueueLanguage
):
    """The kernel language for one program of a launch. See the module's documentation for the rules."""

    constexpr = constexpr
    static_range: Any = staticmethod(builtins.range)

    def __init__(self, state: PeState, bridge: Bridge, program: tuple[int, int, int], launch: Launch) -> None:
        Dispatcher.__init__(self, state, bridge)
        self._launch = launch
        self._program = program
        self._grid = launch.grid

    def __getattr__(self, name: str) -> Any:
        ops = self._state.kernels.ops
        op = None if name.startswith("_") else ops.callable_record(name, f"tl.{name}")
        if op is not None:
            return partial(self._math_op, op)
        if name in REFUSED:
            here = f"tl.{name} at {describe_site(call_site())}"
            raise UnsupportedError(f"{here} is a name of Triton's that kernbench refuses: {REFUSED[name]}.")
        hint = f" Did you mean tl.{close}?" if (close := closest(name, [*SAME, *DIFFERS, *OURS])) else ""
        raise AttributeError(f"tl has no name {name!r}.{hint}")

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

    # Hints, checks and prints -------------------------------------------------------------------------

    def multiple_of(self, x: Any, values: Any) -> Any:
        """Give `x`; the hint changes nothing."""
        return x

    def max_contiguous(self, x: Any, values: Any) -> Any:
        """Give `x`; the hint changes nothing."""
        return x

    def max_constancy(self, x: Any, values: Any) -> Any:
        """Give `x`; the hint changes nothing."""
        return x

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
check_flags(TLContext, [*SAME, *DIFFERS, *OURS])


def _broken(what: str, message: str) -> str:
    return f"{what} at {describe_site(call_site())} must hold, and does not. {message}".rstrip()


def _shown(value: Any) -> Any:
    """Give what device_print prints of a value."""
    if not isinstance(value, Tensor):
        return value
    value.settle()
    return value._read("tl.device_print") if value.known else repr(value)
