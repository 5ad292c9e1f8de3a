"""The kernel language as a file written in Triton has it: what differs from `tl` of kernbench's own kernels."""

from __future__ import annotations

from typing import Any

from kernbench_core.frontend.scalars import scalar
from kernbench_core.kernel.tl.language import TLContext
from kernbench_core.values.value import Value


class TritonLanguage(TLContext):
    """`triton.language` for one program: positions are typed scalars, and computed data may be read and branched on."""

    def known(self, value: Value) -> bool:
        """Tell that the data of a value that has landed may be read: what it needs is computed then, at no time."""
        return True

    def program_id(self, axis: int = 0) -> Any:
        """Give this program's position along `axis` of the grid, an int32 scalar."""
        return scalar(self._program[axis], "int32")

    def num_programs(self, axis: int = 0) -> Any:
        """Give the number of programs along `axis` of the grid, an int32 scalar."""
        return scalar(self._grid[axis], "int32")
