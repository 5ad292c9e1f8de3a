"""The room of a PE's register file: which tiles may be between their FETCH and their last use."""

from __future__ import annotations

from kernbench_builtin.components.tiles.plan import StageType
from kernbench_builtin.components.tiles.token import TileStream, TileToken

_STORE = StageType.STORE
_OutputTile = tuple[TileStream, int, int]


class RegisterFile:
    """Give tiles room for their operands, and output tiles room for their sums, in the order in which they ask.

    A tile that continues a sum may pass tiles of other commands that wait, so nobody waits for ever: the sum that was
    begun last had room for its operands beside all others, and when it is stored, so had the one before it.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.waiting: list[TileToken] = []
        self._sums: dict[_OutputTile, int] = {}
        #: The tiles whose operands have room.
        self._held: set[TileToken] = set()

    def ask(self, token: TileToken) -> None:
        """Have a tile wait for room; `admit` says when it has some."""
        self.waiting.append(token)

    def admit(self) -> list[TileToken]:
        """Take the tiles that fit now out of those that wait, make room for them, and return them."""
        let_in: list[TileToken] = []
        blocked: list[TileStream] = []
        for token in self.waiting:
            if token.stream not in blocked and self._fits(token):
                self._take(token)
                let_in.append(token)
            else:
                blocked.append(token.stream)
        if let_in:
            self.waiting = [token for token in self.waiting if token not in let_in]
        return let_in

    def taken_in(self, token: TileToken) -> bool:
        """Take back the room of a tile's operands, if its present stage is their last use; return whether it was."""
        if token not in self._held or token.stage_idx != token.plan.last_use:
            return False
        self._held.remove(token)
        self.used -= token.plan.operand_bytes
        return True

    def stage_ended(self, token: TileToken) -> bool:
        """Take back what a tile does not need behind its present stage; return whether that is anything."""
        freed = self.taken_in(token)
        if token.stage.stage_type is _STORE:
            self.used -= self._sums.pop(_output_of(token))
            freed = True
        return freed

    def _fits(self, token: TileToken) -> bool:
        begun = 0 if _output_of(token) in self._sums else token.plan.sum_bytes
        return self.used + token.plan.operand_bytes + begun <= self.capacity

    def _take(self, token: TileToken) -> None:
        plan, output = token.plan, _output_of(token)
        self.used += plan.operand_bytes
        self._held.add(token)
        if output not in self._sums:
            self._sums[output] = plan.sum_bytes
            self.used += plan.sum_bytes


def _output_of(token: TileToken) -> _OutputTile:
    return token.stream, token.plan.m_tile, token.plan.n_tile
