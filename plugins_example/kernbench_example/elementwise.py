"""A kind of program: a function of single elements, which is run over whole arrays, a block for each program.

    from kernbench_example.elementwise import elementwise

    @elementwise
    def blend(x, y, share: float = 0.5):
        return x * share + y * (1 - share)

`kernbench run blend.py:blend -p x=x.npy -p y=y.npy --verify-data` runs it; so does `kb.launch(blend, x, y)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernbench_core import UsageError
from kernbench_core.host import DeviceTensor, ProgramKind, on_device, program_bench

if TYPE_CHECKING:
    from kernbench_core.host import Bench, Runtime

BLOCK = 256


def elementwise(function: Any) -> Any:
    """Mark a function of elements, written in what kernels and numpy have in common."""
    function.is_elementwise = True
    return function


class Elementwise(ProgramKind):
    """Functions that `elementwise` marks: arrays among the parameters have one shape, the answer is called `out`."""

    def is_one(self, function: Callable[..., Any]) -> bool:
        """Tell it by the mark."""
        return hasattr(function, "is_elementwise")

    def open(self, name: str, function: Any, sources: Any) -> Bench:
        """Return the bench that runs it; the grid follows from the arrays."""

        def program(grid: object, run_trial: object) -> Callable[..., None]:
            def run_it(rt: Runtime, /, **given: object) -> None:
                _run(rt, function, on_device(rt, given))

            return run_it

        return program_bench(name, function, sources, program)


def _run(rt: Runtime, function: Callable[..., Any], given: dict[str, Any]) -> None:
    arrays = {name: value for name, value in given.items() if isinstance(value, DeviceTensor)}
    if not arrays:
        raise UsageError(f"{function.__name__!r} must be given an array to be run over; give one by -p NAME=FILE.npy.")
    first = next(iter(arrays.values()))
    n = math.prod(first.shape)

    def kernel(out, *pointers, tl):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        loaded = {name: tl.load(each + at, mask=at < n) for name, each in zip(arrays, pointers, strict=True)}
        tl.store(out + at, function(**{**given, **loaded}), mask=at < n)

    out = rt.empty(first.shape, first.dtype, name="out")
    rt.launch(kernel, out, *arrays.values(), grid=(-(-n // BLOCK),))
    rt.copy_to_host(out)
    rt.check(out, lambda: function(**{**given, **{name: array.numpy() for name, array in arrays.items()}}))


ELEMENTWISE = Elementwise()
