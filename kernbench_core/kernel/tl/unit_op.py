"""Ops of plug-ins: a kernel asks any unit of its PE, also one that configuration added, to compute one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.commands import MathCmd
from kernbench_core.kernel.tl.family import Family
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.values.dtypes import dtype_of
from kernbench_core.values.value import ResultValue


class UnitCmd(MathCmd):
    """Compute a plug-in's op on the unit of the PE whose kind is `serves`."""

    __slots__ = ("_unit",)

    @property
    def serves(self) -> str:
        """The kind of unit that serves this command."""
        return self._unit

    @serves.setter
    def serves(self, unit: str) -> None:
        self._unit = unit


class UnitOpLanguage(Family):
    """Add `tl.unit_op` to the language."""

    def unit_op(
        self,
        unit: str,
        op: str,
        *inputs: Any,
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        wait: bool = True,
        **params: object,
    ) -> Tensor:
        """Have the PE's unit of kind `unit` compute `op` on `inputs`; a timed, logged command, its result pending.

        `op` is the name that a plug-in registers a function for: fn(params, inputs) -> array of `shape` and `dtype`,
        both by default those of the first input. `params` go into the op record, for that function. The unit sees
        `op`, `elements`, `dtype` and `reads` of the command.
        """
        for thing in inputs:
            self.check_operand(thing, "unit_op")
        like = next((thing for thing in inputs if isinstance(thing, Tensor)), None)
        if like is None:
            raise ShapeError(
                f"tl.unit_op at {describe_site(call_site())} must be given at least one tensor; load it, or make it "
                "with tl.full."
            )
        extents = like.shape if shape is None else tuple(shape)
        name = like.dtype if dtype is None else dtype_of(dtype)
        reads = tuple(self.operand(thing, like.dtype, "unit_op") for thing in inputs)
        site = call_site()
        block = self._allocate("unit_op", extents, name, site)
        op_id = self.op_id()
        value = ResultValue(op_id, extents, name)
        blocks = (*[thing.block for thing in inputs if isinstance(thing, Tensor)], block)
        command = UnitCmd(op_id, op, site, blocks, reads, value, params, reduce=False)
        command.serves = unit
        self.issue(command, wait)
        return Tensor(self, value, block, f"tl.unit_op({op!r})", site, None if wait else command)
