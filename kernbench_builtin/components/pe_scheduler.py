"""The scheduler of a PE: turns composite commands into tiles and feeds them to the units."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_builtin.components.tiles.plan import PipelinePlan, TilePlan, generate_gemm_plan, generate_math_plan
from kernbench_builtin.components.tiles.token import TileStream, TileToken, spelled
from kernbench_core.component import ComponentBase
from kernbench_core.compute import meet_all
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError, ShapeError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.params import Param
from kernbench_core.topology.naming import pe_prefix
from kernbench_core.units import format_bytes


class PeScheduler(ComponentBase):
    """Serve composite commands: plan the tiles, keep some of them in flight, and end with the last one.

    Models: tiles are fed in plan order and route themselves from unit to unit. A tile is fed when less than \
`tiles_in_flight` of its command are out and its buffers, for operands that are read and a result that is written, fit \
into the command's share of the staging room; they are its own until it is back. What an epilogue step reads from \
HBM is read when its tile comes to the step. A command ends when all of its tiles are back, each counted once. \
Commands are served in the order of issue, `servers` at a time.
    Ignores: Planning takes no time beyond the overhead, and feeding a tile none beyond the wire. The staging room \
comes on top of what kernels allocate from.
    Timing: overhead, then until the last tile has come back over its wire. A long sum of pinned operands, with a \
FETCH of f and a product of g ns, takes f + hop + g for each tile where the register file has room for one, and g \
where it has room for two and f + hop <= g.
    Source: the overhead is an estimate, unverified; depth and staging room are chosen so that four tiles of \
128 x 128 x 128 in f16 fit.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "2 ns", "Time to take a composite command apart.", minimum=0),
        Param("tiles_in_flight", "int", 4, "Tiles of a command between being fed and being complete.", minimum=1,
              maximum=65536),
        Param("staging", "size", "512 KiB", "Scratchpad room for tiles, shared evenly by servers.", positive=True),
        Param("servers", "int", 1, "Composite commands in service at once.", minimum=1, maximum=1024),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead: float = self.params["overhead"]
        self._tiles_in_flight: int = self.params["tiles_in_flight"]
        # a share for each: commands that waited for each other's room could wait in a circle
        self._staging: int = self.params["staging"] // self.servers
        self._prefix = pe_prefix(self.id) or ""
        #: The commands in service, and from when on, in ns, each only waits for its tiles.
        self._streams: dict[TileStream, float] = {}

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Feed the tiles of a composite command and wait until every one is back."""
        if self._overhead:
            yield env.timeout(self._overhead)
        fed_from = env.now
        stream = TileStream(msg, self.id)
        self._streams[stream] = fed_from
        tiles = plan_of(msg, self._prefix).tiles
        msg.tiles = len(tiles)
        for index, tile in enumerate(tiles):
            self._check_room(msg, tile)
            while not self._may_feed(stream, tile):
                yield stream.returned.rearm()  # type: ignore[misc]
                msg.tiles_done = stream.completed
            token = stream.feed(tile, index)
            token.born = env.now
            token.hop_to(token.stage.component, self, env.now, env.now)
        while stream.in_flight:
            yield stream.returned.rearm()  # type: ignore[misc]
            msg.tiles_done = stream.completed
        del self._streams[stream]
        # the units are busy with the tiles, the scheduler is not: it must not look like the bottleneck
        self.note_busy(fed_from - env.now, env.now)

    def busy_by(self, time: float) -> float:
        """Return for how long, in ns, the scheduler itself was busy until `time`."""
        return super().busy_by(time) - sum(max(0.0, time - since) for since in self._streams.values())

    def _may_feed(self, stream: TileStream, tile: TilePlan) -> bool:
        room = stream.staged_bytes + tile.staged_bytes <= self._staging
        return room and len(stream.in_flight) < self._tiles_in_flight

    def _check_room(self, command: Any, tile: TilePlan) -> None:
        if tile.staged_bytes > self._staging:
            raise ShapeError(
                f"{spelled(command)}: the buffers of a tile must fit into the staging room of a command on {self.id}, "
                f"{format_bytes(self._staging)}, and those of this one take {format_bytes(tile.staged_bytes)}; choose "
                "a smaller tile_m, tile_n or tile_k, or raise staging."
            )

    def awaiting(self) -> tuple[TileToken, ...]:
        """Return the tiles that are out, oldest first."""
        return tuple(token for stream in self._streams for token in stream.in_flight.values())


def plan_of(command: Any, prefix: str) -> PipelinePlan:
    """Plan a composite command for the PE whose units share `prefix`; raise ComponentError for an unknown op."""
    dtypes = {name: layout.dtype for name, layout in command.layouts.items()}
    if command.op == "gemm":
        return generate_gemm_plan(
            command.m,
            command.k,
            command.n,
            command.tile_m,
            command.tile_k,
            command.tile_n,
            pe_prefix=prefix,
            a_pinned=command.a_pinned,
            b_pinned=command.b_pinned,
            epilogue_specs=command.epilogue,
            dtype=dtypes["a"],
            dtype_b=dtypes["b"],
            dtype_out=dtypes["out"],
        )
    if command.op == "math":
        operands = [name for name in ("a", "b") if name in dtypes]
        held = {"a": command.a_pinned, "b": command.b_pinned}
        shapes = {name: (command.layouts[name].rows, command.layouts[name].cols) for name in operands[1:]}
        return generate_math_plan(
            command.m,
            command.n,
            command.tile_m,
            command.tile_n,
            math_op=command.math_op,
            pe_prefix=prefix,
            operands=operands,
            pinned=[name for name in operands if held[name]],
            shapes=shapes,
            dtypes=dtypes,
            epilogue_specs=command.epilogue,
            dtype=meet_all([dtypes[name] for name in operands]),
            dtype_out=dtypes["out"],
        )
    raise ComponentError(
        f"op of a composite command must be 'gemm' or 'math', not {command.op!r}; use one of these, or another "
        "implementation of pe_scheduler."
    )
