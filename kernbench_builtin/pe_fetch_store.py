"""The unit that moves tiles between a PE's scratchpad and its register file."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_builtin.pe_tcm import TcmRequest
from kernbench_builtin.tiling import StageType
from kernbench_core.component import ComponentBase
from kernbench_core.context import RunContext
from kernbench_core.environment import Environment, ProcessGenerator, Signal
from kernbench_core.graph import Node
from kernbench_core.messages import Transaction
from kernbench_core.naming import pe_prefix, pe_unit
from kernbench_core.params import Param


class PeFetchStore(ComponentBase):
    """Serve the FETCH and STORE stages of tiles through the channels of the scratchpad.

    Models: FETCH reads a tile's operands from the scratchpad into the register file, STORE writes the accumulator \
back; each waits for the scratchpad's answer. `servers` moves are under way at once, so a fetch overlaps a store.
    Ignores: The register file has no size and no ports of its own: every tile fits, and units read it for free.
    Timing: overhead, then the round trip to pe_tcm: request wire, access, bytes over the narrower of channel and wire.
    Source: the overhead is an assumption of two \
cycles at 1 GHz.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "2 ns", "Set-up time of a move.", minimum=0),
        Param("servers", "int", 2, "Moves under way at once.", minimum=1),
    )

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._overhead: float = self.params["overhead"]
        self._tcm = pe_unit(pe_prefix(self.id) or "", "pe_tcm")
        self._out: dict[Transaction, Signal] = {}

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Move the bytes of a FETCH or STORE stage."""
        if self._overhead:
            yield env.timeout(self._overhead)
        op = "write" if msg.stage.stage_type is StageType.STORE else "read"
        request = TcmRequest(op, msg.operand_bytes, self.id, self._tcm, self._answered)
        answer = self._out[request] = Signal()
        request.born = env.now
        self.emit(request, env.now, env.now)
        yield answer  # type: ignore[misc]

    def min_service_ns(self, msg: Any) -> float:
        """Return the set-up time; the bytes are on wires that count them."""
        return self._overhead

    def awaiting(self) -> tuple[Transaction, ...]:
        """Return the accesses that the scratchpad has not answered yet."""
        return tuple(self._out)

    def _answered(self, request: Transaction) -> None:
        self._out.pop(request).fire()
