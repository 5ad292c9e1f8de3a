"""What a family of the language is written over: an issuer, and the calls that families make of each other.

Each family is a class in a file of its own, and `TLContext` puts them together over `Dispatcher`. So no family knows
how a command reaches its unit, nor another family but by what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kernbench_core.kernel.tl.issuer import Issuer

if TYPE_CHECKING:
    from kernbench_core.callsite import CallSite
    from kernbench_core.compute.ops import MathOp
    from kernbench_core.kernel.commands import KernelCommand
    from kernbench_core.kernel.pe_state import PeState
    from kernbench_core.kernel.tl.tensor import Tensor, Tile
    from kernbench_core.memory.scratchpad import TcmBlock
    from kernbench_core.messages import Launch
    from kernbench_core.values.value import ArrayValue


class Family(Issuer, Protocol):
    """Some calls of the language, over what the others and the dispatcher give them."""

    _state: PeState
    _launch: Launch

    # In `Dispatcher`

    @property
    def in_flight(self) -> tuple[KernelCommand, ...]:
        """The commands that nobody has waited for."""

    def math(
        self, op: str | MathOp, things: Sequence[Any], shape: tuple[int, ...], dtype: str, *,
        operand_dtype: str | None = None, extra: Mapping[str, object] | None = None, reduce: bool = False,
    ) -> Tensor:  # fmt: skip
        """Run one math command and give its result."""

    def gemm(self, things: Sequence[object], shape: tuple[int, ...], dtype: str, wait: bool = True) -> Tensor:
        """Run one GEMM command and give its result."""

    def _immediate(self, number: object, dtype: str) -> ArrayValue: ...

    def _allocate(self, op: str | MathOp, shape: tuple[int, ...], dtype: str, site: CallSite) -> TcmBlock: ...

    def _next_id(self) -> tuple[int, int]: ...

    def _issue(self, command: KernelCommand, wait: bool) -> None: ...

    def _have(self, tile: Tile, op: str | MathOp) -> None: ...

    # In families

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Choose between two."""

    def full(self, shape: Sequence[int], value: object, dtype: object) -> Tensor:
        """Make a tensor of one repeated number."""

    def _axis(self, axis: int, shape: tuple[int, ...], op: str) -> int: ...

    def _give_back(self, block: TcmBlock, site: CallSite) -> None: ...
