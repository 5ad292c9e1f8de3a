"""What is checked of an op that is a plain function, which kernels reach by `tl.unit_op` alone.

It has no rules. A kernel promises the shape and dtype of what it gives before there are any numbers, so that those of
its operands must decide them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from attrs import frozen

from kernbench_builtin.checks.op_operands import common
from kernbench_core.compute.ops.plugin_faults import keywords_of
from kernbench_core.errors import KernelError, in_words
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.testing.kit import CheckFailed, NotApplicable
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array

_SHAPE: Final = (6, 6)
_MOST: Final = 3
_SEED: Final = 21


@frozen
class FunctionUnderTest:
    """An op that is a function, called with one to three square operands that are alike."""

    name: str
    function: Callable[..., object]

    def answers(self) -> Iterator[tuple[str, list[Array], Array]]:
        """Yield dtypes in words, operands, and what it gave of copies of them.

        Raise CheckFailed where that is nothing; NotApplicable where it refuses whatever it is given, or needs keywords.
        """
        _, needed = keywords_of(self.function)
        if needed:
            raise NotApplicable(f"kernels must give it {min(needed)!r}, of which the kit knows no example")
        random, answered, raised = np.random.default_rng(_SEED), False, list[Exception]()
        for dtype in dtypes.NAMES:
            for count in range(1, _MOST + 1):
                operands = [common(random, dtype, _SHAPE) for _ in range(count)]
                told = " and ".join([dtype] * count)
                try:
                    found = self.computed(told, dtype, [x.copy() for x in operands])
                except (CheckFailed, MemoryError, *INTERRUPTS):
                    raise
                except Exception as error:
                    raised.append(error)
                    continue
                answered = True
                yield told, operands, found
        if answered:
            return
        wrong = next((error for error in raised if not isinstance(error, KernelError)), None)
        if wrong is None:
            raise NotApplicable(f"it refuses one to {_MOST} operands of shape {_SHAPE}: {raised[0]}")
        raise CheckFailed(f"it must compute something of one to {_MOST} arrays, and raised {in_words(wrong)}")

    def computed(self, told: str, dtype: str, operands: Sequence[Array]) -> Array:
        """Return the numbers that it gives; CheckFailed where it ends the process, or gives no numbers."""
        params: dict[str, Any] = {"op": self.name, "dtype": dtype, "shape_out": operands[0].shape}
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.function(params, operands))
        except (*INTERRUPTS, Exception):
            raise
        except BaseException as error:
            raise CheckFailed(f"of {told} it must return an array, and raised {in_words(error)}") from None
        if found.dtype.kind not in "fiub" and not dtypes.is_known(found.dtype):
            raise CheckFailed(f"of {told} it must return an array of numbers, not of {found.dtype.name}")
        return found

    def gives_what_can_be_promised(self) -> None:
        """Try other numbers, zeros among them: what has another shape, or is of another kind, is told."""
        random = np.random.default_rng(_SEED + 1)
        for told, operands, found in self.answers():
            dtype = dtypes.dtype_name(operands[0].dtype)
            for others in ([common(random, dtype, _SHAPE) for _ in operands], [np.zeros_like(x) for x in operands]):
                other = self.computed(told, dtype, others)
                if (other.shape, other.dtype) != (found.shape, found.dtype):
                    raise CheckFailed(
                        f"of {told} it must give one shape and dtype, which kernels promise beforehand, not "
                        f"{found.dtype} {found.shape} and {other.dtype} {other.shape}"
                    )

    def leaves_operands_alone(self) -> None:
        """Tell operands that have changed."""
        for told, operands, _ in self.answers():
            given = [x.copy() for x in operands]
            self.computed(told, dtypes.dtype_name(operands[0].dtype), given)
            for number, (before, after) in enumerate(zip(operands, given, strict=True), 1):
                if before.tobytes() != after.tobytes():
                    raise CheckFailed(f"it must leave operands alone, and of {told} writes into number {number}")

    def computes_the_same_twice(self) -> None:
        """Tell results that differ."""
        for told, operands, found in self.answers():
            again = self.computed(told, dtypes.dtype_name(operands[0].dtype), [x.copy() for x in operands])
            if found.tobytes() != again.tobytes():
                raise CheckFailed(f"it must give the same of the same {told}, and does not")
