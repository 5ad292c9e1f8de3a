"""What a kernel holds of a composite: it stands for data in HBM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kernbench_core.callsite import CallSite, call_site, describe_site
from kernbench_core.errors import KernelError
from kernbench_core.kernel.dma_commands import DmaReadCmd
from kernbench_core.kernel.placeholders import Placeholder
from kernbench_core.kernel.pointers import Pointer, Ref, make_ref
from kernbench_core.kernel.tl.tensor import CopiedHandle, Tensor
from kernbench_core.kernel.transfers import direct_transfer
from kernbench_core.values.region import runs
from kernbench_core.values.value import Part, Value

if TYPE_CHECKING:
    from kernbench_core.kernel.commands import KernelCommand
    from kernbench_core.kernel.tl.issuer import Issuer

_READINGS: Final = ("a condition", "an array", "an element", "an index", "float()", "int()")
"""Uses of a placeholder that would read its data."""


class CompositeHandle(Placeholder, CopiedHandle):
    """The result of a composite: in HBM at `place`, pending.

    Wait for it with tl.wait, tl.load what it wrote, or tl.store it to copy that. Its data is known only after phase 2:
    whatever reads it is refused.
    """

    __slots__ = ("place",)

    def __init__(
        self, tl: Issuer, value: Value, site: CallSite, command: KernelCommand | None, place: Ref
    ) -> None:
        super().__init__(tl, value, "tl.composite", site, command)
        self.place = place

    @property
    def words(self) -> str:
        """What it is, as a sentence calls it."""
        return f"the result of {self.op} made at {describe_site(self.site)}, which is in HBM"

    @property
    def advice(self) -> str:
        """What to do for its data."""
        return "tl.load it first"

    def numpy(self) -> NoReturn:
        """Refuse."""
        self._refuse_data("numpy()")

    def item(self) -> NoReturn:
        """Refuse."""
        self._refuse_data("item()")

    @property
    def data(self) -> NoReturn:
        """Refuse."""
        self._refuse_data("data")

    def _refuse(self, use: str) -> NoReturn:
        if use in _READINGS:
            self._refuse_data(use)
        super()._refuse(use)

    def copy_to(self, pointer: Any, mask: Any, shape: Sequence[int] | None, strides: Any) -> None:
        """Read what a composite wrote back to the scratchpad, and store it: at once, or rows by rows where it is large.
        """
        tl: Any = self._tl
        self.settle()
        rows, whole = self.shape[0], mask is not None or (shape is not None and tuple(shape) != self.shape)
        target: Ref | None = None
        if isinstance(pointer, Ref):
            target = pointer if pointer.shape == self.shape else None
        elif isinstance(pointer, Pointer) and isinstance(pointer.offset, int):
            target = make_ref(pointer, self.shape, strides, None, "tl.store")
        if whole or target is None:
            tl.store(pointer, self._output(tl, 0, rows), mask, shape=shape, strides=strides)
            return
        direct_transfer(target, "tl.store")
        step = max(1, tl._state.tcm.room(2 * (self.value.nbytes // rows), rows))  # a cast needs a second tile
        for first in range(0, rows, step):
            count = min(step, rows - first)
            tl.store(target.rows(first, count), self._output(tl, first, count))

    def _output(self, tl: Any, first: int, count: int) -> Tensor:
        """Load some rows of what a composite wrote; KernelError where something else was written over them."""
        site, state = call_site(), tl._state
        transfer = direct_transfer(self.place.rows(first, count), "tl.store")
        block = tl._reserve("tl.store", transfer.shape, transfer.dtype, transfer.nbytes, site)
        tensor = self.place.pointer.tensor
        command = DmaReadCmd(tl.op_id(), "tl.store", site, transfer, tensor, state.memory, block)
        tl.issue(command)
        begin = first * (self.value.nbytes // self.shape[0])
        if state.store.data and not all(self._is_own(part, begin) for part in command.value.parts()):
            raise KernelError(
                f"tl.store at {describe_site(site)} must be given a composite whose output is still in tensor "
                f"{tensor.name!r}, and something overwrote that of {self.op} at {describe_site(self.site)}; store the "
                "handle before that."
            )
        return Tensor(tl, command.value, block, "tl.store", site)

    def _is_own(self, part: Part, begin: int) -> bool:
        """Whether a part of what was loaded, from byte `begin` of the output on, is what the composite wrote there."""
        there = [(start + begin, nbytes) for start, nbytes in runs(part.dst)]
        return part.source is self.value and [*runs(part.src)] == there
