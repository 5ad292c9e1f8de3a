"""The unit that moves tiles between a PE's scratchpad and its register file."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_builtin.components.pe_tcm import TcmRequest
from kernbench_builtin.components.tiles.plan import StageType
from kernbench_builtin.components.tiles.register_file import RegisterFile
from kernbench_builtin.components.tiles.token import TileToken, spelled
from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator, Signal
from kernbench_core.errors import ShapeError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.params import Param
from kernbench_core.topology.naming import pe_prefix, pe_unit
from kernbench_core.units import format_bytes

_FETCH, _STORE = StageType.FETCH, StageType.STORE


class PeFetchStore(ComponentBase):
    """Serve the FETCH and STORE stages of tiles through the channels of the scratchpad.

    Models: FETCH reads a tile's operands from the scratchpad into the register file, STORE writes the accumulator \
back; each waits for the scratchpad's answer. `servers` moves are under way at once, so a fetch overlaps a store. The \
register file has a size: a FETCH begins when there is room for the tile's operands, and for the sum that it begins; \
operands take room until the tile's product (and its k_tile steps) is made, a sum until it is stored.
    Ignores: The register file has no ports and no banks: units read and write it for free.
    Timing: room, then overhead, then the round trip to pe_tcm: request wire, access, bytes over the narrower of \
channel and wire.
    Source: register file: 256 KiB, as that of a Hopper SM (NVIDIA H100 architecture white paper); the overhead is an \
assumption of two cycles at 1 GHz.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "2 ns", "Set-up time of a move.", minimum=0),
        Param("register_file", "size", "256 KiB", "Room for operands and sums of tiles.", positive=True),
        Param("servers", "int", 2, "Moves under way at once.", minimum=1, maximum=1024),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead: float = self.params["overhead"]
        self._tcm = pe_unit(pe_prefix(self.id) or "", "pe_tcm")
        self._out: dict[Transaction, Signal] = {}
        self._registers = RegisterFile(self.params["register_file"])

    def receive(self, msg: Any) -> None:
        """Let a FETCH queue once its tile has room in the register file."""
        if not isinstance(msg, TileToken) or msg.stage.stage_type is not _FETCH:
            self.serve(msg)
            return
        self._check_room(msg)
        msg.on_stage_end, msg.on_taken_in = self._stage_ended, self._taken_in
        self._registers.ask(msg)
        for token in self._registers.admit():
            self.serve(token)

    def _stage_ended(self, token: TileToken) -> None:
        """Let tiles in that a tile has made room for; called where it has ended a stage, inside that unit's worker."""
        if self._registers.stage_ended(token):
            self._admit()

    def _taken_in(self, token: TileToken) -> None:
        """Let tiles in that take the room of a tile's operands; called where a unit has taken those in."""
        if self._registers.taken_in(token):
            self._admit()

    def _admit(self) -> None:
        for fits in self._registers.admit():
            fits.queue_at(self, self.serve, self.env.now)

    def _check_room(self, token: TileToken) -> None:
        plan, room = token.plan, self._registers.capacity
        if plan.operand_bytes + plan.sum_bytes > room:
            raise ShapeError(
                f"{spelled(token.command)}: a tile must fit into the register file of {self.id}, "
                f"{format_bytes(room)}, and this one takes {format_bytes(plan.operand_bytes)} for its operands and "
                f"{format_bytes(plan.sum_bytes)} for its result; choose a smaller tile_m, tile_n or tile_k."
            )

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Move the bytes of a FETCH or STORE stage."""
        if self._overhead:
            yield env.timeout(self._overhead)
        op = "write" if msg.stage.stage_type is _STORE else "read"
        request = TcmRequest(op, msg.operand_bytes, self.id, self._tcm, self._answered)
        answer = self._out[request] = Signal()
        request.born = env.now
        self.emit(request, env.now, env.now)
        yield answer  # type: ignore[misc]

    def min_service_ns(self, msg: Any) -> float:
        """Return the set-up time; the bytes are on wires that count them."""
        return self._overhead

    @property
    def waiting(self) -> tuple[MsgBase, ...]:
        """The tiles that wait for room, then the moves that wait for a worker."""
        return (*self._registers.waiting, *super().waiting)

    def awaiting(self) -> tuple[Transaction, ...]:
        """Return the accesses that the scratchpad has not answered yet."""
        return tuple(self._out)

    def _answered(self, request: Transaction) -> None:
        self._out.pop(request).fire()
