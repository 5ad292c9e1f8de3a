"""Plan a collective on the machine: choose the PEs, give each its arguments, allocate scratch, and launch it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from kernbench_ccl.contract import PARAMETERS, KernelContext
from kernbench_ccl.plan.queue_sizes import channel_for, message_elements, own_slots
from kernbench_ccl.plan.window import MessageWindow, window_for
from kernbench_core.errors import UsageError
from kernbench_core.graph import EdgeKind
from kernbench_core.host import DeviceTensor
from kernbench_core.kernel import PerPe, Pointer
from kernbench_core.messages import Launch
from kernbench_core.peers import Peers
from kernbench_core.topology import Extent, network_directions
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm
    from kernbench_ccl.contract import Collective
    from kernbench_ccl.plan.groups import Group
    from kernbench_core.host import LaunchHandle, Runtime

__tracebackhide__ = True

ARGUMENTS: Final = PARAMETERS[:-1]
"""The parameters of every algorithm that `kernel_args` gives: all but `tl`."""

MESSAGE_BYTES: Final = 2048
"""The part of a rank's message for another that a PE must have before one more is asked to help."""

FEW: Final = 4
"""How many take part in small messages already: misses of their TLBs overlap."""

LEAST_BYTES: Final = 64
"""What each of those few must have."""

WIDER: Final = 64
"""So many times as wide as all links of its rank a PE's wire and memory must be for the PE to move everything alone.

A PE brings each byte in from its queue and its memory, and takes it out to both; and what it does to one message that
another PE does not do to the next meanwhile adds to the time.
"""


@frozen
class TensorSlice:
    """The elements of a tensor from number `start` on; where a collective reads or writes inside a larger tensor."""

    tensor: DeviceTensor
    start: int = 0

    @property
    def pointer(self) -> Pointer:
        """What a kernel gets for it."""
        return Pointer(self.tensor.allocation, self.start, self.tensor.dtype)


RankTensor = DeviceTensor | TensorSlice | None
"""A rank's input or output; None where the rank has none, as all but the root have in a scatter."""


@frozen
class Planned:
    """A collective that is ready to be launched, as often as wanted.

    `ranks` are those whose tensors are known, `n_pe` is the number of PEs that take part of each rank, `window` is what
    each of them may have under way.
    """

    group: Group
    collective: Collective
    algorithm: Algorithm
    count: int
    n_pe: int
    arguments: Mapping[int, tuple[tuple[object, ...], ...]]
    tensors: Mapping[int, tuple[DeviceTensor, ...]]
    peers: Peers
    window: MessageWindow

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that can be launched."""
        return tuple(self.arguments)

    @property
    def label(self) -> str:
        """What reports call it, as "all_reduce #3 of world"."""
        return f"{self.collective.name} #{self.collective.sequence} of {self.group.name}"

    def launch(
        self, rt: Runtime, ranks: Iterable[int] | None = None, wait: bool = True, label: str | None = None
    ) -> LaunchHandle:
        """Launch it on the PEs of `ranks`, by default of all that were planned, and wait unless `wait` is false.

        PEs that are launched together start together: the collective took `elapsed_ns(handle)`.
        """
        chosen = self.ranks if ranks is None else tuple(ranks)
        pes = [pe for rank in chosen for pe in self.peers.ranks[rank]]
        given = [arguments for rank in chosen for arguments in self.arguments[rank]]
        named = {
            name: _argument(dict(zip(pes, values, strict=True)))
            for name, values in zip(ARGUMENTS, zip(*given, strict=True), strict=True)
        }
        programs = {pe: ((number, 0, 0),) for number, pe in enumerate(pes)}
        launch = Launch(self.algorithm.kernel, named, (len(pes), 1, 1), programs, self.peers, self.collective)
        tensors = [tensor for rank in chosen for tensor in self.tensors[rank]]
        handle = rt.submit(launch, tensors, self.label if label is None else label)
        if wait:
            rt.wait(handle)
        return handle


def plan_collective(
    rt: Runtime,
    group: Group,
    collective: Collective,
    algorithm: Algorithm,
    inputs: Mapping[int, RankTensor] | Sequence[RankTensor],
    outputs: Mapping[int, RankTensor] | Sequence[RankTensor],
    count: int,
    *,
    pes: int | str | None = "auto",
    scratch: Mapping[int, DeviceTensor] | None = None,
) -> Planned:
    """Plan `collective` with `algorithm` for the ranks of `inputs` (by rank, or of all ranks in order).

    `count` counts elements as nccl does. `pes` is how many PEs of each rank take part, or "auto" (or None): as many as
    the message feeds, or one for each way of the algorithm where that is far wider than a rank's links; where every PE
    brings a vector of its own, it is one PE for each vector. `scratch` has the tensors that a rank's algorithm may
    use, where they exist already; where not, they are allocated, which takes the time of telling the MMUs. UsageError
    for a number of PEs that the group has not. A message has fewer elements than the collective's `tile` where a queue
    does not hold so many.
    """
    wanted = collective.vectors if collective.contributors == "pe" else pes
    if wanted in ("auto", None) and one_will_do(rt, group):
        wanted = min(group.n_pe, algorithm.ways)
    item = itemsize(collective.dtype)
    size = collective.kind.size_count(count, group.world) * item
    n_pe = pes_of(group, size, wanted)
    own_in, own_out, given_scratch = _by_rank(inputs), _by_rank(outputs), scratch or {}
    ranks, network = tuple(places[:n_pe] for places in group.pes), collective.network
    extent = Extent(group.world, *(network.grid(group.world) if network.shape.flat else (group.world, 1)))
    queues = algorithm.queues(group.world)
    own = own_slots(rt.graph, (rt.design.pes[pe] for places in ranks for pe in places))
    channel = channel_for(group.channel, own, queues, rt.design.tcm_bytes)
    collective = evolve(collective, tile=message_elements(collective.tile, item, channel, own))
    window = window_for(rt, group, channel, queues, n_pe, collective.tile * item, size)
    if collective.window_bytes is None:
        collective = evolve(collective, held_bytes=window.held, window_bytes=window.under_way)
    peers = Peers(ranks, channel, network_directions(network.shape, extent, ranks))
    need = algorithm.scratch(count, group.world)
    kind = algorithm.kind_of(collective.network)
    arguments: dict[int, tuple[tuple[object, ...], ...]] = {}
    tensors: dict[int, tuple[DeviceTensor, ...]] = {}
    for rank, place in own_in.items():
        spare = given_scratch.get(rank)
        if spare is None and need:
            spare = allocate_scratch(rt, group, rank, need, collective.dtype)
        given = (place, own_out.get(rank), spare)
        source, target, spare_ptr = (None if part is None else part.pointer for part in map(_part, given))
        arguments[rank] = tuple(
            algorithm.arguments(
                KernelContext(source, target, spare_ptr, count, rank, group.world, pe, n_pe, kind, collective)
            )
            for pe in range(n_pe)
        )
        tensors[rank] = tuple({part.tensor: None for part in map(_part, given) if part is not None})
    return Planned(group, collective, algorithm, count, n_pe, arguments, tensors, peers, window)


def allocate_scratch(rt: Runtime, group: Group, rank: int, count: int, dtype: str) -> DeviceTensor:
    """Allocate scratch memory for a rank: `count` elements over the PEs of its SIP."""
    return rt.empty((count,), dtype, name=f"scratch of rank {rank} of {group.name}", device=group.sips[rank])


def pes_of(group: Group, nbytes: int, pes: int | str | None = "auto") -> int:
    """Return how many PEs of each rank take part in a collective of `nbytes`, as nccl-tests counts them.

    "auto": one for each 2 KiB of a rank's part, but four as soon as each has 64 B, at most all that the group has.
    UsageError for a number that the group has not.
    """
    if pes in ("auto", None):
        part = nbytes // group.world
        return max(1, min(group.n_pe, max(-(-part // MESSAGE_BYTES), min(FEW, part // LEAST_BYTES))))
    if not isinstance(pes, int) or isinstance(pes, bool) or not 1 <= pes <= group.n_pe:
        raise UsageError(
            f"pes must be 'auto' or a number of PEs from 1 to {group.n_pe}, which each rank of {group.name} has, not "
            f"{pes!r}; choose another."
        )
    return pes


def one_will_do(rt: Runtime, group: Group) -> bool:
    """Tell whether a single PE moves what all links of its rank carry: its wire and memory are `WIDER` times as wide.

    On such a machine, as the idealised one, more PEs only have to be brought together; on any other all that a message
    feeds take part.
    """
    site = rt.design.pes[group.pes[0][0]]
    out = [edge.bandwidth for edge in rt.graph.edges.values()
           if edge.kind is EdgeKind.SCALE_UP and rt.graph.nodes[edge.src].sip == site.sip]  # fmt: skip
    wires = [edge.bandwidth for (src, _), edge in rt.graph.edges.items()
             if src == f"{site.prefix}.pe_dma" and edge.kind is EdgeKind.ATTACH]  # fmt: skip
    return sum(out) * WIDER <= min([*wires, rt.components[site.hbm_ctrl].peak_bandwidth])


def elapsed_ns(handle: LaunchHandle) -> float:
    """Return the time that a launch took on the device: from its common start to the end of its last PE, in ns.

    Where it was not stamped with a start, its first PE's start counts.
    """
    launch = handle.launch
    start = min(launch.started_ns.values()) if launch.target_start_ns is None else launch.target_start_ns
    return max(launch.ended_ns.values()) - start


def _by_rank(places: Mapping[int, RankTensor] | Sequence[RankTensor]) -> dict[int, RankTensor]:
    return dict(places) if isinstance(places, Mapping) else dict(enumerate(places))


def _part(place: RankTensor) -> TensorSlice | None:
    return TensorSlice(place) if isinstance(place, DeviceTensor) else place


def _argument(values: dict[int, object]) -> object:
    """Return an argument that differs from PE to PE, or the one value that all PEs get."""
    first = next(iter(values.values()))
    plain = all(isinstance(value, int | float | str | bool | None) for value in values.values())
    return first if plain and all(value == first for value in values.values()) else PerPe(values)
