"""How a call of the kernel language becomes a command of a unit, and its result a handle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kernbench_core.callsite import CallSite, call_site, describe_site
from kernbench_core.compute import functions
from kernbench_core.errors import KernelError, ShapeError
from kernbench_core.kernel.compute_commands import GemmCmd, MathCmd, Operand, PluginMathCmd, called
from kernbench_core.kernel.index import IndexTensor, number_as
from kernbench_core.kernel.placeholders import Placeholder, describe_given
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.tl.issuer import Issuer
from kernbench_core.kernel.tl.tensor import Handle, Tensor, Tile
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.messages import Command
from kernbench_core.oplog.parameters import OF_READS
from kernbench_core.values.dtypes import cast, is_float, itemsize
from kernbench_core.values.value import ArrayValue, ResultValue, Value
from kernbench_core.values.views import AbstractValue

if TYPE_CHECKING:
    from kernbench_core.compute.ops import MathOp

_LOGGED: Final = (Handle, IndexTensor)
_OPERANDS: Final = (Tensor, IndexTensor, int, float, np.number, np.bool_)


class Dispatcher(Issuer):
    """Make commands of the PE's units, and handles of their results; the families of the language build on it."""

    __slots__ = ()

    def wait(self, *handles: Handle | Command) -> None:
        """Wait, in simulated time, for the given handles, or without any for everything in flight.

        A command of a plug-in's own, which was issued, is its own handle.

        This synchronises time only: a pending result stays pending.
        """
        if not handles:
            if self._in_flight:
                self.wait_for(tuple(self._in_flight))
            if self._state.hazards is not None:
                self._state.hazards.waited_for_all(self._state.pe)
            return
        for handle in handles:
            if isinstance(handle, Command) and handle.site is not None:
                self.wait_for(tuple(issued for issued in self._in_flight if issued.message is handle))
                continue
            if not isinstance(handle, Handle):
                raise KernelError(
                    f"tl.wait at {describe_site(call_site())} must be given handles of this kernel, not "
                    f"{type(handle).__name__}; pass what tl.load(…, wait=False) or tl.composite returned."
                )
            handle.settle()

    # Operands ---------------------------------------------------------------------------------------

    def operand(self, thing: Any, dtype: str, op: str | MathOp) -> Operand:
        """Make an operand of a tensor, an index tensor or a number; a number takes `dtype`."""
        if type(thing) is Tensor:
            tile: Tile = thing
            self._have(tile, op)
            return Operand(tile.value, tile.block.region)
        if isinstance(thing, IndexTensor):
            return Operand(ArrayValue(cast(thing.numpy(), thing.dtype)), None)
        return Operand(self._immediate(thing, dtype), None)

    def _have(self, tile: Tile, op: str | MathOp) -> None:
        """Come back when a tile that `op` reads is there; KernelError where this program may not use it."""
        if tile.command is not None:
            tile.check_own(self, f"tl.{op}")
            tile.settle()
        tile.check_use(self, op)

    def _immediate(self, number: Any, dtype: str) -> ArrayValue:
        """Make a 0-d value of a number, once per number; ShapeError for an int that the dtype does not hold."""
        key = (type(number), repr(number), dtype)  # equal numbers are not always the same: -0.0 and 0.0
        found = self._immediates.get(key)
        if found is None:
            found = self._immediates[key] = ArrayValue(number_as(number, dtype))
        return found

    def check_operand(self, thing: Any, op: str | MathOp) -> None:
        """Raise a sentence when `thing` cannot be an operand of `op`."""
        if type(thing) is Tensor or isinstance(thing, _OPERANDS):
            return
        if isinstance(thing, Pointer):
            hint = "a pointer; load it first"
        elif isinstance(thing, Placeholder):
            hint = f"{thing.words}; {thing.advice}"
        else:
            hint = f"{describe_given(thing)}; load it, or make it with tl.arange or tl.full"
        raise ShapeError(f"tl.{op} at {describe_site(call_site())} must be given tensors and numbers, not {hint}.")

    # Unit commands ----------------------------------------------------------------------------------

    def math(
        self,
        op: str | MathOp,
        things: Sequence[Any],
        shape: tuple[int, ...],
        dtype: str,
        *,
        operand_dtype: str | None = None,
        extra: Mapping[str, object] | None = None,
        reduce: bool = False,
    ) -> Tensor:
        """Run one math command and give its result: ready if every operand is a ready integer, else pending.

        `operand_dtype` is what numbers among `things` become, the result's dtype by default.
        """
        # of a tensor the dtype is more than a text, which no log and no function of a plug-in asks for
        shape, dtype = tuple(shape), str(dtype)
        numbers = operand_dtype or dtype
        reads = tuple([self.operand(thing, numbers, op) for thing in things])
        site = call_site()
        call = called(op)
        block = self._reserve(call, shape, dtype, _size(shape, dtype), site)
        op_id = self.op_id()
        params = dict(extra) if extra else {}
        for position, thing in enumerate(things):
            if type(thing) is not Tensor and not isinstance(thing, _LOGGED):
                params[f"immediate{position}"] = OF_READS
        value = self._result(op, reads, op_id, shape, dtype, params)
        blocks = _blocks(things, block)
        if isinstance(op, str):
            self._issue(MathCmd(op_id, op, site, blocks, reads, value, params, reduce), True)
        else:
            self._issue(PluginMathCmd(op_id, op, site, blocks, reads, value, params, reduce), True)
        return Tensor(self, value, block, call, site)

    def gemm(self, things: Sequence[Any], shape: tuple[int, ...], dtype: str, wait: bool = True) -> Tensor:
        """Run one GEMM command on (a, b[, accumulator]); its result is pending, and on its way unless waited for.

        An accumulator that is the result of a product on its way is not waited for: the unit adds to it there.
        """
        dtype = str(dtype)
        reads = (
            *[self.operand(thing, dtype, "dot") for thing in things[:2]],
            *[self._accumulator(thing) for thing in things[2:]],
        )
        site = call_site()
        block = self._allocate("dot", shape, dtype, site)
        op_id = self.op_id()
        value = ResultValue(op_id, shape, dtype)
        command = GemmCmd(op_id, site, _blocks(things, block), reads, value)
        self.issue(command, wait)
        return Tensor(self, value, block, "tl.dot", site, None if wait else command)

    def _accumulator(self, thing: Tensor) -> Operand:
        """Make the third operand of a product, which may be on its way where another product makes it."""
        command = thing.command
        if type(command) is not GemmCmd or command.value is not thing.value:
            return self.operand(thing, thing.dtype, "dot")
        thing.check_own(self, "tl.dot")
        thing.check_live("tl.dot")
        return Operand(thing.value, thing.block.region)

    def _behind(self, op: str, tile: Tensor, shape: tuple[int, ...], dtype: str) -> Tensor:
        """Run a math command on a tile that is on its way: it waits for it in the unit's queue, and the kernel goes on.
        """
        site = call_site()
        block = self._allocate(op, shape, dtype, site)
        op_id = self.op_id()
        value = ResultValue(op_id, shape, dtype)
        reads = (Operand(tile.value, tile.block.region),)
        command = MathCmd(op_id, op, site, _blocks((tile,), block), reads, value, {}, False)
        command.needs = tile.command
        self.issue(command, False)
        return Tensor(self, value, block, called(op), site, command)

    def _allocate(self, op: str | MathOp, shape: tuple[int, ...], dtype: str, site: CallSite) -> TcmBlock:
        return self._reserve(called(op), shape, dtype, _size(shape, dtype), site)

    def _result(
        self,
        op: str | MathOp,
        reads: Sequence[Operand],
        op_id: tuple[int, int],
        shape: tuple[int, ...],
        dtype: str,
        params: Mapping[str, object],
    ) -> Value:
        """Compute integer results at once, so that they can index and branch; leave all others to phase 2.

        Those of integers that are known but not computed are computed when they are asked for.
        """
        if is_float(dtype) or not all(self._determines(read.value) for read in reads):
            return ResultValue(op_id, shape, dtype)
        if any(read.value.pending for read in reads):
            return ResultValue(op_id, shape, dtype, on_demand=True)
        if not self._state.store.data:
            return AbstractValue(shape, dtype)
        known = {"shape_out": shape, "dtype": dtype, **params}
        return ArrayValue(functions.evaluate(op, known, [read.value.array() for read in reads]), writer=op_id)


def _size(shape: tuple[int, ...], dtype: str) -> int:
    """Give the bytes of a tensor."""
    nbytes = itemsize(dtype)
    for extent in shape:
        nbytes *= extent
    return nbytes


def _blocks(things: Sequence[Any], out: TcmBlock) -> tuple[TcmBlock, ...]:
    """Give the scratchpad blocks that a command uses, the one that it writes last."""
    return (*[thing.block for thing in things if type(thing) is Tensor], out)
