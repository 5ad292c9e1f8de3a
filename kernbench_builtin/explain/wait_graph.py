"""Who waits for whom: between components by unanswered messages, between kernels by what they await at other PEs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.host.host_program import HostProgram, LaunchHandle, Shared
    from kernbench_core.reporting import Waiting

#: Nodes of a chain of waits that are spelled; of longer ones the middle is counted.
_MOST_NODES: Final = 20
_LAST_NODES: Final = 4


@frozen(eq=False)
class KernelWait:
    """A kernel that waits: on which PE (index, None on a machine built by hand), in which launch, and for what."""

    component: str
    pe: int | None
    waiting: Waiting
    handle: LaunchHandle | None
    #: What its units say of the commands that it waits for.
    details: tuple[str, ...] = ()
    #: PEs for each command that waits for one, of which any may do.
    awaits: tuple[tuple[int, ...], ...] = field(init=False)

    @awaits.default
    def _collect(self) -> tuple[tuple[int, ...], ...]:
        return tuple(dict.fromkeys(command.awaits for command in self.waiting.commands if command.awaits))


def waits(hardware: Hardware) -> dict[str, tuple[str, ...]]:
    """Return the wait-for graph of components: id -> ids of the components that hold what it waits for."""
    return {
        component.id: tuple(sorted({msg.path[msg.hop] for msg in component.awaiting() if msg.path} - {component.id}))
        for component in hardware.components.values()
    }


_Waits = Mapping[str, tuple[tuple[str, ...], ...]]
"""What each node waits for: all of these, of each any one."""


@define(eq=False)
class WaitGraph:
    """What kernels and host programs wait for, and each node in `words`.

    `idle` are the PEs among them that run no kernel, `ended` the host programs that have ended.
    """

    waits: dict[str, tuple[tuple[str, ...], ...]] = field(factory=dict)
    words: dict[str, str] = field(factory=dict)
    idle: list[int] = field(factory=list)
    ended: list[HostProgram] = field(factory=list)


def wait_graph(hardware: Hardware, shared: Shared, kernels: Iterable[KernelWait]) -> WaitGraph:
    """Return the wait-for graph of kernels and host programs.

    A kernel waits for the PEs that it awaits, of which any may do; a PE that runs no kernel waits for the host program
    that it belongs to; and that program for the kernels of the launch that it waits for. The bench's own waits are left
    out.
    """
    sites = hardware.layout.pes
    running = {kernel.pe: kernel for kernel in kernels if kernel.pe is not None}
    programs = {pe.index: program for program in shared.programs[1:] for pe in program.pes}
    found = WaitGraph()

    todo: deque[int | HostProgram] = deque(pe for pe, kernel in running.items() if kernel.awaits)
    while todo:
        item = todo.popleft()
        node = sites[item].prefix if isinstance(item, int) else item.name
        if node in found.waits:
            continue
        groups: list[tuple[int | HostProgram, ...]] = []
        if not isinstance(item, int):
            launch = getattr(item.waits_for, "launch", None)
            groups += [] if launch is None else [(pe,) for pe in launch.programs if pe in running]
            found.words[node] = f"the program of {node}" + ("" if groups else _end(item))
            if item.bridge.finished:
                found.ended.append(item)
        else:
            kernel, program = running.get(item), programs.get(item)
            found.words[node] = node if program is None else f"{node} ({program.name})"
            if kernel is not None:
                groups += kernel.awaits
            else:
                found.idle.append(item)
                if program is not None:
                    groups.append((program,))
                else:
                    found.words[node] += ", which runs no kernel"
        found.waits[node] = tuple(
            tuple(sites[other].prefix if isinstance(other, int) else other.name for other in group) for group in groups
        )
        todo.extend(other for group in groups for other in group)
    return found


def stuck(waits: _Waits) -> dict[str, tuple[str, ...]]:
    """Return the nodes that wait for ever whatever those do that wait for nothing, each with what keeps it.

    A node that waits for any of several is kept only where each of them is.
    """
    left = {node: len(groups) for node, groups in waits.items()}
    waiters: dict[str, list[tuple[str, int]]] = {}
    for node, groups in waits.items():
        for number, group in enumerate(groups):
            for other in group:
                waiters.setdefault(other, []).append((node, number))
    free = dict.fromkeys(node for node, count in left.items() if not count)
    todo, served = deque(free), set()
    while todo:
        for node, number in waiters.get(todo.popleft(), ()):
            if (node, number) not in served:
                served.add((node, number))
                left[node] -= 1
                if not left[node]:
                    free[node] = None
                    todo.append(node)
    return {
        node: tuple(dict.fromkeys(other for group in groups if free.keys().isdisjoint(group) for other in group))
        for node, groups in waits.items()
        if node not in free
    }


def _end(program: HostProgram) -> str:
    """Say why a program will start nothing any more."""
    if program.bridge.finished:
        return ", which has ended"
    waited = program.waits_for
    return f", which waits for {waited if isinstance(waited, str) else type(waited).__name__}"


def way_out(waits: _Waits, order: Iterable[str]) -> tuple[str, ...]:
    """Return the shortest way from the first node, in `order`, to one that waits for no other; without cycles."""
    start = next(iter(order))
    ways: deque[tuple[str, ...]] = deque([(start,)])
    seen = {start}
    while ways:
        way = ways.popleft()
        groups = waits[way[-1]]
        if not groups:
            return way
        for follower in (other for group in groups for other in group):
            if follower not in seen:
                seen.add(follower)
                ways.append((*way, follower))
    return (start,)


def spell(chain: Sequence[str]) -> str:
    """Spell a chain of waits: all of a short one, of a long one both ends and how many are between."""
    between = len(chain) - _MOST_NODES
    if between <= 1:
        return " -> ".join(chain)
    start, end = chain[: _MOST_NODES - _LAST_NODES], chain[-_LAST_NODES:]
    return " -> ".join([*start, f"{between} more", *end])
