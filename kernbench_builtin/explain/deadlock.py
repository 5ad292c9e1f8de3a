"""The deadlock report: who waits for what, since when, and the shortest cycle of waits.

Kernels that wait alike are one line. What a kernel waits for at other PEs it knows from its commands (`awaits`); what
that is in words, its units say (`open_waits`); who launched it, and where, the host programs of the run know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernbench_builtin.explain.last_actions import before_that, ended_program, idle_pes, last_call, pe_names
from kernbench_builtin.explain.wait_graph import KernelWait, spell, stuck, wait_graph, waits, way_out
from kernbench_core.callsite import describe_site
from kernbench_core.host.launch_names import called
from kernbench_core.host.lost_messages import lost_messages
from kernbench_core.host.wait_cycle import shortest_cycle
from kernbench_core.topology.naming import pe_prefix
from kernbench_core.units import format_time
from kernbench_core.wording import join_names

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.host.host_program import HostProgram, LaunchHandle, Shared
    from kernbench_core.host.session import GraphEngine

_MOST_LINES = 20
#: Lines about kernels: three for each rank of a node, and a heading.
_MOST_KERNEL_LINES = 64
#: Lines about calls of which some ranks have made theirs.
_MOST_CALL_LINES = 8
#: Ranks that wait in one call at the same lines and are told in full; the others are named.
_MOST_ALIKE = 3


def diagnosis(session: GraphEngine, over: bool) -> list[str]:
    """Return the lines on who waits, for a person: for what, where nothing can happen any more; else which kernels."""
    hardware, shared = session.hardware, session.shared
    found = waiting_kernels(hardware, shared)
    if not over:
        return _section("kernels that wait", _kernels(hardware, shared, found), _MOST_KERNEL_LINES)
    lines = [f"  {line}" for line in _programs(shared, hardware.env.now)]
    lines += _section("kernels that wait", _kernels(hardware, shared, found), _MOST_KERNEL_LINES)
    lost = lost_messages(hardware)
    lines += _section("messages that were lost", lost)
    lines += _section("PEs that were launched but never started", _never_started(hardware, shared))
    lines += _section("calls that only some ranks have made", _open_calls(shared), _MOST_CALL_LINES)
    if any(kernel.awaits for kernel in found):
        graph = wait_graph(hardware, shared, found)
        idle = (*idle_pes(hardware, shared, graph.idle), *(ended_program(shared, program) for program in graph.ended))
        lines += _section("waited for, and idle", idle)
        cycle = shortest_cycle(stuck(graph.waits))
        told = (*cycle, cycle[0]) if cycle else way_out(graph.waits, graph.words)
        lines.append(f"  {'' if cycle else 'no '}wait-for cycle: " + spell([graph.words[node] for node in told]))
        return lines
    if any(program.waits_because for program in shared.programs):
        return lines
    lines += _section("components that are busy or hold messages", _components(hardware))
    cycle = shortest_cycle(waits(hardware))
    none = f"none; {'a message' if lost else 'an answer'} was lost"
    lines.append("  wait-for cycle: " + (spell([*cycle, cycle[0]]) if cycle else none))
    return lines


def waiting_kernels(hardware: Hardware, shared: Shared) -> list[KernelWait]:
    """Return the kernels that wait, in the order of PEs."""
    running: dict[int, LaunchHandle] = {}
    for handle in shared.launches:
        for pe in handle.launch.started_ns:
            if pe not in handle.launch.ended_ns:
                running[pe] = handle
    indices = {site.pe_cpu: site.index for site in hardware.layout.pes}
    details: dict[str | None, list[str]] = {}
    for component in hardware.components.values():
        for told in component.open_waits():
            details.setdefault(pe_prefix(component.id), []).append(told.sentence)
    found = []
    for component in hardware.components.values():
        waiting = component.waits_in_words()
        if waiting is not None:
            index = indices.get(component.id)
            words = tuple(dict.fromkeys(details.get(pe_prefix(component.id), ())))
            found.append(KernelWait(component.id, index, waiting, None if index is None else running.get(index), words))
    return sorted(found, key=lambda kernel: (kernel.pe is None, kernel.pe))  # sip2 before sip10


# Host programs ------------------------------------------------------------------------------------------


def _programs(shared: Shared, now: float) -> Iterable[str]:
    """Yield what each host program waits for; those that wait alike are one line."""
    if len(shared.programs) == 1:
        for request in shared.requests:
            if request.response is None:
                yield f"host waits for {type(request).__name__} since {format_time(request.born)}"
        return
    alike: dict[tuple[str, str, str], list[HostProgram]] = {}
    for program in shared.programs[1:]:
        if program.bridge.finished and program.waits_for is None:
            alike.setdefault(("", "", ""), []).append(program)
            continue
        line = "at its end" if program.site is None else f"at {describe_site(program.site)}"
        alike.setdefault((line, _host_waits_for(program), program.waits_because), []).append(program)
    for (line, sentence, because), programs in alike.items():
        names, several = join_names(program.name for program in programs), len(programs) > 1
        if not line:
            yield f"{names} {'have' if several else 'has'} ended"
            continue
        longest = now - min(program.waits_since_ns for program in programs)
        yield f"{names} {line} {'wait' if several else 'waits'} for {sentence}, for {format_time(longest)}"
        if because:
            yield f"  {because}"


def _host_waits_for(program: HostProgram) -> str:
    waited = program.waits_for
    if isinstance(waited, str) or waited is None:
        return waited or "nothing"
    handle = getattr(waited, "launch", None)
    label = getattr(waited, "label", "")
    return label or (f"the launch of {handle.kernel.__name__!r}" if handle is not None else type(waited).__name__)


# Kernels ------------------------------------------------------------------------------------------------


def _kernels(hardware: Hardware, shared: Shared, found: list[KernelWait]) -> Iterable[str]:
    """Yield the lines about kernels: a heading for each launch that has a label, then those that wait alike as one."""
    launches: dict[tuple[str, str], dict[str, list[KernelWait]]] = {}
    for kernel in found:
        names = (owner(shared, kernel), _heading(kernel))
        launches.setdefault(names, {}).setdefault(kernel.waiting.sentence, []).append(kernel)
    told: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    more: dict[tuple[str, frozenset[tuple[str, str]]], list[str]] = {}
    for (who, heading), groups in launches.items():
        lines = ((_where(kernel), _did(hardware, kernel)) for kernels in groups.values() for kernel in kernels)
        alike = heading, frozenset(lines)
        told[alike] = told.get(alike, 0) + 1
        if who and heading and told[alike] > _MOST_ALIKE:
            more.setdefault(alike, []).append(who)
            continue
        if heading:
            yield ", ".join(part for part in (who, heading) if part) + ":"
        for kernels in groups.values():
            yield from (("  " if heading else "") + line for line in _alike(hardware, kernels))
    for (heading, _), ranks in more.items():
        yield f"{join_names(ranks)}, {heading}: {'wait' if len(ranks) > 1 else 'waits'} at the same lines"


def _where(kernel: KernelWait) -> str:
    """Return the calls and lines that a kernel waits in, without what it waits for."""
    return "; ".join(detail.partition(" waits for ")[0] for detail in kernel.details) or kernel.waiting.sentence


def _did(hardware: Hardware, kernel: KernelWait) -> str:
    """Return what a kernel that waits for other PEs did last, without when."""
    found = last_call(hardware, kernel.pe) if kernel.awaits and kernel.pe is not None else None
    return "" if found is None else found[0]


def _alike(hardware: Hardware, kernels: list[KernelWait]) -> Iterable[str]:
    """Yield the lines about kernels that wait alike: of the one that has waited longest, and what all did last."""
    first = min(kernels, key=lambda kernel: kernel.waiting.since_ns)
    age = format_time(hardware.env.now - first.waiting.since_ns)
    more = f" ({len(kernels)} PEs wait so)" if len(kernels) > 1 else ""
    if not first.details or first.handle is None:
        yield f"{first.component} {first.waiting.sentence}, for {age}{more}"
    else:
        name = getattr(first.handle.launch.kernel, "__name__", repr(first.handle.launch.kernel))
        yield f"{first.component} waits in kernel {name!r}, for {age}{more}:"
    yield from (f"  {detail}" for detail in first.details)
    pes = [kernel.pe for kernel in kernels if kernel.pe is not None and kernel.awaits]
    yield from (f"  {line}" for line in before_that(hardware, pes))


def _heading(kernel: KernelWait) -> str:
    handle = kernel.handle
    return "" if handle is None or not handle.label else called(handle)


def owner(shared: Shared, kernel: KernelWait) -> str:
    """Return whose kernel it is: a host program other than the bench, else its rank where it is of a collective."""
    return "" if kernel.handle is None else _owner(kernel.handle, kernel.pe)


def _owner(handle: LaunchHandle, pe: int | None) -> str:
    if handle.program.number:
        return handle.program.name
    launch = handle.launch
    return "" if launch.collective is None or pe is None else f"rank {launch.peers.place_of(pe)[0]}"


def _never_started(hardware: Hardware, shared: Shared) -> Iterable[str]:
    """Yield the PEs that a launch has not reached, by what called it: all ranks that call alike as one."""
    groups: dict[str, tuple[dict[str, None], list[int]]] = {}
    for handle in shared.launches:
        missing = sorted(set(handle.launch.programs) - set(handle.launch.started_ns))
        if missing:
            owners, pes = groups.setdefault(called(handle), ({}, []))
            owners.update(dict.fromkeys(name for name in (_owner(handle, pe) for pe in missing) if name))
            pes += missing
    for launch, (owners, pes) in groups.items():
        who = f"{join_names(owners)}, " if owners else ""
        yield f"{who}{launch}: {pe_names(hardware, pes)}"


def _open_calls(shared: Shared) -> Iterable[str]:
    """Yield what packages that keep calls of several programs (`open_calls`) say of those that only some have made."""
    for kept in shared.kept.values():
        yield from getattr(kept, "open_calls", tuple)()


def _components(hardware: Hardware) -> Iterable[str]:
    now = hardware.env.now
    for component in hardware.components.values():
        oldest = min((since for _, since in component.serving), default=None)
        out = sum(1 for _ in component.awaiting())
        if oldest is None and not component.waiting and not out:
            continue
        age = f", the oldest for {format_time(now - oldest)}" if oldest is not None else ""
        yield (
            f"{component.id} ({component.node.impl}): serves {len(component.serving)}{age}; {len(component.waiting)} "
            f"wait in its queue; {out} of its messages are unanswered"
        )


def _section(title: str, rows: Iterable[str], most: int = _MOST_LINES) -> list[str]:
    listed = list(rows)
    if not listed:
        return []
    more = [f"    and {len(listed) - most} more"] if len(listed) > most else []
    return [f"  {title}:", *(f"    {row}" for row in listed[:most]), *more]
