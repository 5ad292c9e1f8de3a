"""What a handle asks of the program that it is of: the least that tensors and the families of the language need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kernbench_core.compute.ops import MathOp
    from kernbench_core.kernel.commands import KernelCommand
    from kernbench_core.kernel.compute_commands import Operand
    from kernbench_core.messages import Command
    from kernbench_core.values.arrays import Array
    from kernbench_core.values.value import Value


class Issuer(Protocol):
    """Issues commands for one program; `Dispatcher` and the families of the language say what each method does."""

    # Commands and data, in `Dispatcher`

    def op_id(self) -> tuple[int, int]:
        """Give the identity of the next command."""

    def issue(self, command: Command, wait: bool = True) -> None:
        """Send a command to the unit that serves it."""

    def wait_for(self, commands: Sequence[KernelCommand]) -> None:
        """Come back when all of `commands` are complete."""

    def known(self, value: Value) -> bool:
        """Tell whether the data of a value is determined."""

    def made_before(self, value: Value) -> bool:
        """Tell whether all of a value was made by launches before this one."""

    def data_of(self, value: Value, why: str) -> Array:
        """Give the data of a known value."""

    def note_read(self, elements: int) -> None:
        """Take note that the kernel's Python read elements of a tile."""

    def operand(self, thing: object, dtype: str, op: str | MathOp) -> Operand:
        """Make an operand of a tensor, an index tensor or a number."""

    def check_operand(self, thing: object, op: str | MathOp) -> None:
        """Raise a sentence when `thing` cannot be an operand."""

    # What a tensor has as operators and methods, in the families

    def unary(self, op: str, x: Any) -> Any:
        """Run an op of one operand."""

    def operator(self, op: str, left: Any, right: Any) -> Any:
        """Run a Python operator on a tensor."""

    def cast(self, x: Any, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Any:
        """Convert to a dtype."""

    def reshape(self, x: Any, *shape: Any) -> Any:
        """Give the elements under another shape."""

    def expand_dims(self, x: Any, axis: int | Sequence[int]) -> Any:
        """Insert dimensions of extent 1."""

    def broadcast_to(self, x: Any, *shape: Any) -> Any:
        """Repeat along dimensions."""

    def trans(self, x: Any, *order: Any) -> Any:
        """Reorder dimensions."""
