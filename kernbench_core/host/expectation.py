"""What a host program says that a tensor must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs
import numpy as np

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.values.arrays import Array
from kernbench_core.values.masks import NO_MASK, has_mask
from kernbench_core.values.value import Value


class Checker(Protocol):
    """The host program that asks for a check: its place among those of the run, and what messages call it."""

    number: int
    name: str


@attrs.frozen
class Expectation:
    """Keep what a tensor must be: the value it held when checked, and the array or its maker.

    `rtol` and `atol` None mean the dtype's own tolerance; `atol` may be a function, too, for `absolute` to call.
    `program` checked it, at the line `site`.
    """

    name: str
    value: Value
    expected: Array | Callable[[], Array]
    rtol: float | None
    atol: float | Callable[[], float] | None
    program: Checker | None = None
    site: CallSite | None = None

    def absolute(self) -> float | None:
        """Return the absolute tolerance, computing it when it was given as a function."""
        return self.atol() if callable(self.atol) else self.atol

    def array(self) -> Array:
        """Return the expected array, computing it when it was given as a function.

        ShapeError when the function gives something that the tensor cannot be compared with.
        """
        if not callable(self.expected):
            return self.expected
        at = "" if self.site is None else f", checked at {describe_site(self.site)},"
        which = f"the reference of tensor {self.name!r}{at}"
        given = self.expected()
        if has_mask(given):
            raise ShapeError(f"{which} must be {NO_MASK}.")
        made = np.asarray(given)
        require_like(which, made, self.value.shape)
        return made


def require_like(which: str, expected: Array, shape: tuple[int, ...]) -> None:
    """Raise ShapeError when an array cannot be what a tensor of `shape` must be; `which` begins the sentence."""
    if expected.shape != shape:
        raise ShapeError(f"{which} must have the tensor's shape {shape}, not {expected.shape}.")
    require_numbers(which, expected)


def require_numbers(which: str, array: Array) -> None:
    """Raise ShapeError for an array of anything but real numbers; `which` begins the sentence."""
    if array.dtype.kind in "cOSUMm" or array.dtype.type is np.void:  # bf16 and the like are of kind V, too
        raise ShapeError(f"{which} must be of real numbers, not of dtype {array.dtype}; cast it first.")
