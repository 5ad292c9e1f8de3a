"""Tile tokens: one tile of a composite command, on its way through the units of a PE by itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, Protocol

from kernbench_builtin.components.tiles.plan import Stage, StageType, TilePlan
from kernbench_core.callsite import describe_site
from kernbench_core.environment import Signal
from kernbench_core.errors import ComponentError
from kernbench_core.messages import Emitter, MsgBase
from kernbench_core.oplog import OpDescription, OpPattern, Patterns
from kernbench_core.values import Region

_PATTERNS = Patterns()
# members of an enum by names of the module: in Python 3.11 each look-up in the class is a call
_DMA_READ, _FETCH, _STORE = StageType.DMA_READ, StageType.FETCH, StageType.STORE
_GEMM, _MATH = StageType.GEMM, StageType.MATH


class TiledCommand(Protocol):
    """What a composite command must offer to its tiles."""

    op_id: tuple[int, int]

    def tile_regions(self, operand: str, row0: int, rows: int, col0: int, cols: int) -> tuple[Region, ...]:
        """Return the physical ranges of a block of `operand` ("a", "b", "out" or a step's), row by row."""


class TileStream:
    """Follow the tiles of one composite command between being fed and being complete.

    Tiles leave the DMA for the register file in plan order, whatever order memory answers in, and so they leave each
    stage that adds to a sum of several tiles, whichever of a unit's servers ends first: a tile that stores an
    accumulator comes after all tiles that it sums up. `returned` fires each time a tile is complete. `staged_bytes` is
    the scratchpad room of the tiles in flight.
    """

    __slots__ = (
        "_gates", "_known", "_summed", "command", "completed", "home", "in_flight", "returned", "staged_bytes",
    )  # fmt: skip

    def __init__(self, command: TiledCommand, home: str) -> None:
        self.command = command
        self.home = home
        self.in_flight: dict[int, TileToken] = {}
        self.completed = 0
        self.staged_bytes = 0
        self.returned = Signal()
        self._gates: dict[int, StageGate] = {}
        self._summed = 0
        #: By its identity, what is known of a stage, which stands in the plans of many tiles.
        self._known: dict[int, StageFacts] = {}

    def facts(self, stage: Stage) -> StageFacts:
        """Return what all tokens share that come to a stage; worked out once."""
        found = self._known.get(id(stage))
        if found is None:
            found = self._known[id(stage)] = StageFacts(stage, self.command)
        return found

    def feed(self, plan: TilePlan, index: int) -> TileToken:
        """Return the token of the tile with this index in the plan; count it as in flight."""
        if not index:
            # a first tile that stores nothing does just what every tile does before it joins a sum
            stores = _STORE in [stage.stage_type for stage in plan.stages]
            self._summed = 0 if stores else len(plan.stages)
        self.staged_bytes += plan.staged_bytes
        token = self.in_flight[index] = TileToken(plan, self, index)
        return token

    def in_order(self, token: TileToken) -> bool:
        """Tell whether tiles leave the stage that `token` is at in plan order."""
        kind = token.stage.stage_type
        if kind is _DMA_READ:  # the last one of a tile's operands; what a step reads later stops nobody
            return token.plan.stages[token.stage_idx + 1].stage_type is _FETCH
        return token.stage_idx < self._summed and (kind is _GEMM or kind is _MATH)

    def leave(self, token: TileToken, component: Emitter, head: float, tail: float) -> None:
        """Send `token` on from its present stage at (`head`, `tail`) ns, once all tiles before it have gone."""
        gate = self._gates.setdefault(token.stage_idx, StageGate())
        gate.held[token.index] = (token, head, tail)
        while gate.next in gate.held:
            ready, own_head, own_tail = gate.held.pop(gate.next)
            gate.next += 1
            head = max(own_head, head)
            tail = max(own_tail, head)
            if tail > own_tail:
                ready.queueing += tail - own_tail
                component.note_wait(tail - own_tail, tail)
            ready.go_on(component, head, tail)

    def complete(self, token: TileToken) -> None:
        """Count a tile that is back; called once per tile, inside its delivery.

        Raise ComponentError when its command has been answered without it.
        """
        done = getattr(self.command, "done", None)
        if done is not None and done.fired:
            raise ComponentError(
                f"{self.home} must answer {spelled(self.command)} when its last tile is back, but tile {token.index} "
                "came after the answer; wait for every tile."
            )
        del self.in_flight[token.index]
        self.staged_bytes -= token.plan.staged_bytes
        self.completed += 1
        self.returned.fire()


def spelled(command: Any) -> str:
    """Name a composite command in a sentence: its call and kernel line where it has them."""
    site = getattr(command, "site", None)
    return f"composite {command.op_id}" if site is None else f"{command.call} at {describe_site(site)}"


class StageFacts:
    """Keep what a stage of a command's tiles is beside its parameters: where its data lies, and how it is logged.

    `regions` are the physical ranges that a DMA moves; `stage` is kept, as its identity is its name.
    """

    __slots__ = ("numbers", "pattern", "regions", "stage")

    def __init__(self, stage: Stage, command: TiledCommand) -> None:
        self.stage = stage
        params = stage.params
        self.regions: tuple[Region, ...] = ()
        kind = stage.stage_type
        if kind.dma_op:
            block = params["row0"], params["rows"], params["col0"], params["cols"]
            self.regions = command.tile_regions(params["operand"], *block)
        told = {"stage_type": kind.name, **params}
        open_ = tuple([name for name, value in told.items() if type(value) is int])
        self.numbers: tuple[int, ...] = tuple([told[name] for name in open_])
        looks = tuple([(name, None if name in open_ else value) for name, value in told.items()])
        found = _PATTERNS.find(looks)
        if found is None:
            found = _PATTERNS.add(looks, OpPattern(kind.op_kind, f"TileToken/{kind.name}", told, open_))
        self.pattern: OpPattern = found


class StageGate:
    """Hold the tiles that have ended one stage before tiles that come earlier in the plan."""

    __slots__ = ("held", "next")

    def __init__(self) -> None:
        self.next = 0
        self.held: dict[int, tuple[TileToken, float, float]] = {}


class TileToken(MsgBase):
    """Carry one tile through the stages of its plan; each unit that has served it sends it on to the next.

    It looks to a unit like the command of its present stage: `dma_op` and `regions` for a DMA, `m`, `k`, `n` and
    `dtype_in` for a GEMM, `op`, `elements`, `dtype` and `beside_bytes` for math. It moves no bytes on the wires between
    the units: the tile's data moves through the scratchpad. Each stage is logged, with timing only. `on_stage_end`,
    where a unit has set it, is called with the token at the end of each stage, `on_taken_in` when a unit has taken in
    what it needs of the tile's operands.
    """

    __slots__ = (
        "command", "facts", "index", "on_stage_end", "on_taken_in", "params", "plan", "stage", "stage_idx", "stream",
    )  # fmt: skip

    data_op: ClassVar[bool] = True
    captured_at_start: ClassVar[bool] = True

    def __init__(self, plan: TilePlan, stream: TileStream, index: int) -> None:
        super().__init__()
        self.plan = plan
        self.stream = stream
        self.command = stream.command
        self.index = index
        self.stage_idx = -1
        #: The stage that the token is at, or on its way to.
        self.stage: Stage = plan.stages[0]
        self.on_stage_end: Callable[[TileToken], None] | None = None
        self.on_taken_in: Callable[[TileToken], None] | None = None
        self.params: Mapping[str, Any] = {}
        self.facts: StageFacts = stream.facts(self.stage)
        self.advance()

    @property
    def regions(self) -> tuple[Region, ...]:
        """The physical ranges that the present stage moves, if it is a DMA's."""
        return self.facts.regions

    @property
    def origin(self) -> Any:
        """The composite command that this is a tile of."""
        return self.command

    @property
    def dma_op(self) -> str:
        """Which way the present DMA stage moves data, "read" or "write"; "" at any other stage."""
        return self.stage.stage_type.dma_op

    @property
    def m(self) -> int:
        """Rows of the present GEMM."""
        return int(self.params["m"])

    @property
    def k(self) -> int:
        """Depth of the present GEMM."""
        return int(self.params["k"])

    @property
    def n(self) -> int:
        """Columns of the present GEMM."""
        return int(self.params["n"])

    @property
    def dtype_in(self) -> str:
        """The dtype of the operands of the present GEMM."""
        return str(self.params["dtype_in"])

    @property
    def part_of_sum(self) -> bool:
        """Whether nobody needs the product of the present GEMM by itself: a later tile completes its sum."""
        return self.stage_idx + 1 == len(self.plan.stages)

    @property
    def sum_before(self) -> Hashable:
        """What tells the sum that the present GEMM is added to; None where each product goes through a step first."""
        return self.sum_after if self.plan.k_tile else None

    @property
    def sum_after(self) -> Hashable:
        """What tells the sum that the present GEMM leaves; None where its product goes through a step first."""
        plan = self.plan
        return (self.stream, plan.m_tile, plan.n_tile) if self.stage_idx == plan.last_use else None

    def operand_key(self, operand: str) -> Hashable:
        """Return what tells the block of "a" or "b" that the present GEMM multiplies from others."""
        plan = self.plan
        return (self.stream, plan.m_tile if operand == "a" else plan.n_tile, plan.k_tile)

    @property
    def op(self) -> str:
        """The op of the present math stage."""
        return str(self.params["op_kind"])

    @property
    def dtype(self) -> str:
        """The dtype that the present math stage computes in."""
        return str(self.params["dtype"])

    @property
    def beside_bytes(self) -> int:
        """Bytes that the present math stage reads from the scratchpad beside the tile."""
        return int(self.params.get("beside_bytes", 0))

    @property
    def elements(self) -> int:
        """Work items of the present math stage."""
        return int(self.params["elements"])

    @property
    def operand_bytes(self) -> int:
        """Bytes that the present FETCH, STORE or DMA stage moves."""
        return int(self.params["nbytes"])

    def advance(self) -> bool:
        """Go to the next stage and keep its params and facts at hand; return whether there is one."""
        stages, index = self.plan.stages, self.stage_idx + 1
        if index == len(stages):
            return False
        self.stage_idx = index
        self.stage = stages[index]
        self.params = self.stage.params
        self.facts = self.stream.facts(self.stage)
        return True

    def taken_in(self) -> None:
        """Note that the unit of the present stage has the operands, and no more use for their place."""
        if self.on_taken_in is not None:
            self.on_taken_in(self)

    def at_end(self, component: Emitter, head: float, tail: float) -> None:
        """Route to the next stage, or home after the last one; called by the unit that served the present one."""
        if self.on_stage_end is not None:
            self.on_stage_end(self)
        if self.stream.in_order(self):
            self.stream.leave(self, component, head, tail)
        else:
            self.go_on(component, head, tail)

    def go_on(self, component: Emitter, head: float, tail: float) -> None:
        """Go to the next stage, or home after the last one, from (`head`, `tail`) ns."""
        if not self.advance():
            self.reply = True
            self.hop_to(self.stream.home, component, head, tail)
        elif self.stage.component == component.id:
            self.queue_at(component, component.arrive, head, tail)
        else:
            self.hop_to(self.stage.component, component, head, tail)

    def hop_to(self, destination: str, component: Emitter, head: float, tail: float) -> None:
        """Leave `component` for the unit `destination` at (`head`, `tail`) ns."""
        self.path = (component.id, destination)
        self.hop = 1
        component.out_ports[destination].send(self, head, tail)

    def queue_at(
        self, component: Emitter, arrive: Callable[[Any], None], head: float, tail: float | None = None
    ) -> None:
        """Come to `arrive` of a component at `head` ns without a hop; the last byte is there at `tail`, or was before.

        As a delivery of its own, since a running worker may not wake another one.
        """
        self.path = (component.id,)
        self.hop = 0
        born, there = self.born, self.tail if tail is None else tail
        component.env.inject(self, arrive, head)
        self.born, self.tail = born, there

    def answered(self) -> None:
        """Report home that the tile is complete."""
        self.stream.complete(self)

    def describe(self) -> OpDescription:
        """Describe the present stage for the op log."""
        found = self.facts.pattern.described(self.facts.numbers, (), None, None)
        found.stage_of = self.command.op_id
        return found

    def __repr__(self) -> str:
        where = self.path[self.hop] if self.path else "nowhere"
        return f"<TileToken {self.index} of op {self.command.op_id}, {self.stage.stage_type.name} at {where}>"
