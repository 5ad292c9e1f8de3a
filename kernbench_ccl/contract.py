"""The contract of a collective algorithm: what its module publishes, and what its kernel is told.

A module publishes `COLLECTIVE` (which collective it does), `kernel` (the algorithm function), `TOPO_NAME_TO_KIND` (the
networks it knows, each with an integer of its own that the kernel is given; "*" is any other) and `kernel_args(ctx)`
(the nine values that the kernel gets). The last two are those of this file where it leaves them out. It may publish
`CONTRIBUTORS`, `WAYS`, `refuses`, `scratch_count`, `peers` and `formula`. The room `catalogue` opens it and says
everything that is wrong with it at once. docs/collectives_algorithms.md shows how one is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import field, frozen

from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.network import Network as Network
from kernbench_ccl.reductions import refuse_redop
from kernbench_core.errors import UsageError
from kernbench_core.values.dtypes import itemsize

__tracebackhide__ = True  # what combines tiles for a kernel has the kernel's line

PARAMETERS: Final = ("in_ptr", "out_ptr", "scratch_ptr", "count", "rank", "world", "pe", "n_pe", "topo_kind", "tl")
"""The parameters of every algorithm's kernel, in this order."""

CONTRIBUTORS: Final = ("sip", "pe")
"""Who may bring a vector: every SIP one, or every PE one of its own."""

OTHERS: Final = "*"
"""What stands in `TOPO_NAME_TO_KIND` for every network that is not named, those of plug-ins among them."""

RING, MESH_2D, TORUS_2D, FULLY_CONNECTED, SWITCH, ELSEWHERE = range(6)
"""What a kernel is given as `topo_kind`, where its module gives networks no integers of its own."""

TOPO_NAME_TO_KIND: Final[Mapping[str, int]] = MappingProxyType({
    "ring": RING, "mesh_2d": MESH_2D, "torus_2d": TORUS_2D, "fully_connected": FULLY_CONNECTED, "switch": SWITCH,
    OTHERS: ELSEWHERE,
})  # fmt: skip
"""Every network: what a module runs on that names none, as messages are routed where ranks are no neighbours."""

NETWORKS: Final = tuple(name for name in TOPO_NAME_TO_KIND if name != OTHERS)
"""The networks that come with kernbench."""

HELD_BYTES: Final = 512 * 1024
"""What an algorithm keeps in a PE's scratchpad at once by default, in bytes: a quarter of the presets' 2 MiB."""


def share(count: int, parts: int, index: int) -> tuple[int, int]:
    """Return where part `index` of `count` elements starts and ends (not included), cut into `parts`.

    Parts differ by at most one element, the larger ones first; with fewer elements than parts the last are empty.
    """
    size, larger = divmod(count, parts)
    start = index * size + min(index, larger)
    return start, start + size + (index < larger)


@frozen
class Collective:
    """What a kernel of a collective finds in `tl.collective`: the call, and how its data is to move.

    `kind` is the record of the collective. `redop` is None where nothing is reduced; `root` is a rank of the group.
    `counts[i][j]` are the elements that rank i sends to rank j where parts are uneven. `tile` is the largest number of
    elements of one message. Without `pipeline` each step of an algorithm begins after all of the step before.
    `sequence` numbers the calls of the group, `group[r]` is the SIP of rank r. With `contributors` "pe" every PE brings
    a vector of its own, `vectors` on each SIP. `cubes` are the columns and rows of the cubes of a SIP. `held_bytes` is
    what the algorithm may keep in a PE's scratchpad at once, queues not counted; `window_bytes` is what of it should be
    under way to others for links not to stand idle, None where nobody knows: half of it then.
    """

    kind: CollectiveKind
    dtype: str
    network: Network
    group: tuple[int, ...]
    redop: str | None = None
    root: int = 0
    counts: tuple[tuple[int, ...], ...] | None = None
    tile: int = 4096
    pipeline: bool = True
    sequence: int = 0
    algorithm: str = ""
    contributors: str = "sip"
    vectors: int = 1
    cubes: tuple[int, int] = (1, 1)
    held_bytes: int = HELD_BYTES
    window_bytes: int | None = None
    options: Mapping[str, Any] = field(factory=lambda: MappingProxyType({}), hash=False)

    def __attrs_post_init__(self) -> None:
        problem = self._problem()
        if problem is not None:
            raise UsageError(problem)

    @property
    def name(self) -> str:
        """Which collective it is."""
        return self.kind.name

    @property
    def world(self) -> int:
        """How many ranks take part."""
        return len(self.group)

    @property
    def held_tiles(self) -> int:
        """How many tiles of `tile` elements may be in a PE's scratchpad at once; at least one."""
        return max(1, self.held_bytes // (self.tile * itemsize(self.dtype)))

    @property
    def window_elements(self) -> int:
        """How many elements of a PE should be under way at once."""
        under_way = self.held_bytes // 2 if self.window_bytes is None else self.window_bytes
        return under_way // itemsize(self.dtype)

    def window(self, elements: int) -> int:
        """How many messages of so many elements should be under way at once, at most `tile`; at least one."""
        return max(1, self.window_elements // max(1, min(elements, self.tile)))

    def combine(self, tl: Any, a: Any, b: Any) -> Any:
        """Reduce two tiles to one of the same dtype: one timed command.

        Of bool, a sum is "any" and a product is "all", as in torch.distributed.
        """
        redop = self.redop
        if redop == "max" or (self.dtype == "bool" and redop == "sum"):
            return tl.maximum(a, b)
        if redop == "min" or (self.dtype == "bool" and redop == "product"):
            return tl.minimum(a, b)
        return a * b if redop == "product" else a + b

    def finish(self, tl: Any, x: Any) -> Any:
        """Make a result of a tile that everyone's data is in: for avg, divide by the number of vectors."""
        if self.redop != "avg":
            return x
        return tl.cast(x / (self.world * self.vectors), self.dtype)

    def _problem(self) -> str | None:
        """Say what does not fit together, or return None."""
        kind = self.kind
        if kind.reduces != (self.redop is not None):
            needs = "have a reduction" if kind.reduces else "have no reduction"
            return f"{self.name} must {needs}, not {self.redop!r}; {'choose one' if kind.reduces else 'leave it out'}."
        if self.redop is not None and (refusal := refuse_redop(self.redop, self.dtype)):
            return refusal
        if not 0 <= self.root < max(1, self.world):
            return f"the root of {self.name} must be a rank from 0 to {self.world - 1}, not {self.root!r}."
        if self.tile < 1:
            return f"tile of {self.name} must be at least 1 element, not {self.tile!r}."
        if self.contributors not in CONTRIBUTORS:
            return f"contributors of {self.name} must be one of {', '.join(CONTRIBUTORS)}, not {self.contributors!r}."
        return None


@frozen
class KernelContext:
    """What one PE's kernel is called with; `kernel_args` makes the nine arguments of it.

    Pointers are None where the rank has no such tensor. `pe` of `n_pe` is the place of the PE among those of its rank.
    """

    in_ptr: Any
    out_ptr: Any
    scratch_ptr: Any
    count: int
    rank: int
    world: int
    pe: int
    n_pe: int
    topo_kind: int
    collective: Collective


def kernel_args(ctx: KernelContext) -> tuple[Any, ...]:
    """Return the nine arguments as they are: what a module does that publishes none."""
    return (
        ctx.in_ptr, ctx.out_ptr, ctx.scratch_ptr, ctx.count, ctx.rank, ctx.world, ctx.pe, ctx.n_pe, ctx.topo_kind,
    )  # fmt: skip


@frozen
class Cost:
    """What a closed form is computed from: ranks, bytes as nccl counts them, GB/s and ns of one link and direction.

    `pipeline` is as in `Collective`: False asks for the time of whole steps, where a form tells the two apart.
    `message` are the bytes of the largest message, `stored` those of the largest packet that a switch has in whole
    before it goes on, 0 where none does; `pes` of a rank share out what it sends.
    """

    world: int
    nbytes: float
    bandwidth: float
    latency: float
    network: Network
    pipeline: bool = True
    message: float = math.inf
    stored: float = 0.0
    pes: int = 1

    @property
    def part(self) -> float:
        """The bytes of one of as many parts as there are ranks."""
        return self.nbytes / self.world

    @property
    def hop(self) -> float:
        """The latency between neighbours in ns of messages as large as may be; `hop_of` those of a size."""
        return self.hop_of(math.inf)

    def hop_of(self, nbytes: float) -> float:
        """Return the latency between neighbours in ns: of one link, or of the two that lead over a switch.

        A switch that stores what it passes on adds one packet of the `nbytes` that a rank sends: while it sends one
        on, the next one comes.
        """
        if not self.network.switched:
            return self.latency
        return 2 * self.latency + min(self.stored, self.message, nbytes / self.pes) / self.bandwidth
