"""What the ranks of one `dist.spawn` share: their programs, the configuration, groups, scratch memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from attrs import define, evolve, field

from kernbench_ccl.distributed.ledger import CallLedger, LedgerEntry
from kernbench_ccl.plan import Group, make_group
from kernbench_ccl.plan.groups import CHOSEN_BY
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.host import DeviceTensor, Runtime, current_program
from kernbench_core.kernel import in_kernel
from kernbench_core.peers import Channel
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm
    from kernbench_ccl.plan import CclConfig, Settings
    from kernbench_core.graph import PeSite

__tracebackhide__ = True

_KEPT: Final = "kernbench_ccl.distributed.world"


@define(eq=False, repr=False)
class ProcessGroup:
    """Ranks that call collectives together, in this order; `group` has their SIPs, PEs and queues.

    torch's class of this name has `rank()`, `size()` and `name()`; so has this one.
    """

    group: Group
    ranks: tuple[int, ...]
    world: World
    ledger: CallLedger
    #: Ranks that have destroyed it.
    left: set[int] = field(factory=set)
    #: The names of the channels that it has used.
    channels: dict[str, None] = field(factory=dict)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.name()!r} of ranks {list(self.ranks)}>"

    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.ranks)

    def rank(self) -> int:
        """Return the place of the calling rank in the group, -1 when it is not in it."""
        own = here("dist.ProcessGroup.rank").rank
        return self.ranks.index(own) if own in self.ranks else -1

    def name(self) -> str:
        """Return what reports call the group."""
        return self.group.name

    def with_channel(self, settings: Settings, purpose: str = "") -> Group:
        """Return the group with the queues that these settings ask for; other settings have queues of their own."""
        slots = (settings.slots, settings.slot_bytes, settings.tier)
        base = self.group.channel.name + purpose
        defaults = self.world.config.defaults
        name = base if slots == (defaults.slots, defaults.slot_bytes, defaults.tier) else f"{base}, {settings.name}"
        self.channels[name] = None
        return evolve(self.group, channel=Channel(name, *slots, CHOSEN_BY))


@define(eq=False)
class World:
    """The ranks of one `dist.spawn`. Rank r is the host program number `first + r`, on the SIP `sips[r]`."""

    first: int
    sips: tuple[int, ...]
    joined: set[int] = field(factory=set)
    groups: list[ProcessGroup] = field(factory=list)
    messages: dict[tuple[int, int], CallLedger] = field(factory=dict)
    made_groups: CallLedger = field(init=False)
    splits: dict[tuple[str, int], dict[int, tuple[Sequence[int], Sequence[int]]]] = field(factory=dict)
    source: tuple[str | None, tuple[str, ...], tuple[int, ...] | None] = (None, (), None)
    #: By rank, what a barrier reduces where no algorithm of its own is registered.
    tokens: dict[int, DeviceTensor] = field(factory=dict)
    spare: dict[tuple[int, str], list[DeviceTensor]] = field(factory=dict)
    #: By group and what a call asks for, the algorithm that serves it.
    served: dict[object, tuple[Algorithm, Settings]] = field(factory=dict)
    #: By rank, what its program must still do, by what for, when its function has returned.
    at_end: dict[int, dict[object, Callable[[], object]]] = field(factory=dict)
    _config: CclConfig | None = None

    @made_groups.default
    def _no_groups(self) -> CallLedger:
        return CallLedger("", tuple(range(len(self.sips))))

    @property
    def config(self) -> CclConfig:
        """The ccl.yaml that the first `init_process_group` loaded."""
        assert self._config is not None
        return self._config

    def open_calls(self) -> list[str]:
        """Say, in a line for each, which calls only some of the ranks have made."""
        ledgers = (self.made_groups, *(group.ledger for group in self.groups), *self.messages.values())
        return [line for ledger in ledgers for line in ledger.told()]

    def configure(self, config: CclConfig, source: tuple[str | None, tuple[str, ...], tuple[int, ...] | None]) -> None:
        """Take the configuration; called by the first rank that joins. `source`: the file, the texts, the PEs."""
        self._config, self.source = config, source

    def add_group(
        self, sites: Sequence[PeSite], ranks: tuple[int, ...], name: str, pes: Iterable[int] | None
    ) -> ProcessGroup:
        """Make a group of these ranks, and keep it; without `pes`, those of the group of all ranks move data."""
        sips = [self.sips[rank] for rank in ranks]
        group = make_group(sites, sips, pes=self.source[2] if pes is None else pes, name=name)
        made = ProcessGroup(group, ranks, self, CallLedger(name, ranks))
        self.groups.append(made)
        return made

    def leave(self, rank: int, group: ProcessGroup, rt: Runtime) -> None:
        """Let a rank leave a group, or all where it is that of all ranks; queues that no rank has any more go."""
        if group is self.groups[0]:
            self.joined.discard(rank)
        else:
            group.left.add(rank)
        for other in self.groups:
            if all(member in other.left or member not in self.joined for member in other.ranks):
                for name in other.channels:
                    rt.close_channel(name)
                other.channels.clear()


@define(eq=False)
class Here:
    """The rank that calls, and its host program."""

    world: World
    rank: int
    rt: Runtime

    def group(self, given: ProcessGroup | None, call: str) -> ProcessGroup:
        """Return the group that a call means: all ranks, where none is given.

        UsageError when there is no group yet or any more, or when this rank is not in it.
        """
        if self.rank not in self.world.joined:
            raise UsageError(
                f"{call} must come after dist.init_process_group, and rank {self.rank} has not called that; call it "
                "first."
            )
        found = self.world.groups[0] if given is None else self.known(given, call)
        if self.rank in found.left:
            raise UsageError(f"{call}: group {found.name()!r} must not be used any more: it was destroyed here.")
        if self.rank not in found.ranks:
            raise UsageError(
                f"{call}: rank {self.rank} must be in the group {found.name()!r}, which is of the ranks "
                f"{list(found.ranks)}; have only these call it."
            )
        return found

    def known(self, given: object, call: str) -> ProcessGroup:
        """Return a group of this world, whether this rank is in it or not; UsageError for anything else."""
        if not isinstance(given, ProcessGroup) or given.world is not self.world:
            other = ", of another one" if isinstance(given, ProcessGroup) else ""
            raise UsageError(
                f"{call}: group must be None or what dist.new_group returned in this dist.spawn, not "
                f"{brief(given)}{other}."
            )
        return given

    def take(self, count: int, dtype: str) -> DeviceTensor:
        """Return scratch memory of this rank for at least `count` elements; what was given back is used again."""
        spare = self.world.spare.setdefault((self.rank, dtype), [])
        fitting = [tensor for tensor in spare if tensor.shape[0] >= count]
        if fitting:
            found = min(fitting, key=lambda tensor: tensor.shape[0])
            spare.remove(found)
            return found
        return self.rt.empty((count,), dtype, name=f"scratch of rank {self.rank}")

    def give_back(self, tensor: DeviceTensor) -> None:
        """Let a later call of this rank use scratch memory again."""
        self.world.spare.setdefault((self.rank, tensor.dtype), []).append(tensor)

    def enter(self, ledger: CallLedger, name: str, details: dict[str, str]) -> int:
        """Write a call down and return its number; a call that does not fit that of another rank never comes back.

        The run goes on without it until nothing can happen any more, and the report says what did not fit.
        """
        call = LedgerEntry(self.rank, name, ledger.next_number(self.rank), details, describe_site(call_site()))
        other = ledger.enter(call)
        if other is not None:
            made = "call was not launched, as it" if ledger.name else "group was not made, as the call"
            self.rt.stall(
                ledger.spell(call), f"this {made} does not fit: rank {other.rank} called {other} at {other.line}"
            )
        return call.number

    def stall(self, call: str, other: str) -> None:
        """Never come back: the call was not launched, because it does not fit what another rank called."""
        self.rt.stall(call, f"this call was not launched, as it does not fit: {other}")


def here(call: str) -> Here:
    """Return the rank that calls; UsageError when the caller is no program that `dist.spawn` started."""
    program = current_program()
    if isinstance(program, Runtime):
        world = program.shared.kept.get(_KEPT)
        if isinstance(world, World) and 0 <= program.number - world.first < len(world.sips):
            return Here(world, program.number - world.first, program)
    if in_kernel():
        raise KernelError(f"{call} must be called by the host program of a rank, not in a kernel; use tl.send there.")
    raise UsageError(
        f"{call} must be called by the program of a rank, which dist.spawn starts; call dist.spawn(fn) in the bench."
    )


def start_world(rt: Runtime, sips: Sequence[int]) -> World:
    """Begin a world of ranks on these SIPs, whose programs are the next that `rt` starts."""
    world = World(len(rt.shared.programs), tuple(sips))
    rt.shared.kept[_KEPT] = world
    return world


def bench_runtime(call: str) -> Runtime:
    """Return the rt of the bench that calls; UsageError for anybody else."""
    program = current_program()
    if in_kernel():
        raise KernelError(f"{call} must be called by the bench, not in a kernel; call it around the launch.")
    if not isinstance(program, Runtime):
        raise UsageError(f"{call} must be called by a bench while it runs; call it in the bench.")
    if program.number:
        raise UsageError(f"{call} must be called by the bench, not by {program.name}; ranks cannot start more ranks.")
    return program
