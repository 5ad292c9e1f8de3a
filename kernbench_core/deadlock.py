"""The deadlock report: who waits for what, since when, and the shortest cycle of waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_core.context import RunContext
    from kernbench_core.host_program import Shared

_MOST_LINES = 20


def deadlock_report(ctx: RunContext, shared: Shared) -> str:
    """Describe a simulation in which nothing can happen any more, for a person."""
    now = ctx.env.now
    lines = [f"deadlock at simulated time {format_time(now)}: nothing is left to happen, but something still waits."]
    pending = [request for request in shared.requests if request.response is None]
    lines += [f"  host waits for {type(r).__name__} since {format_time(r.born)}" for r in pending]
    lines += kernels_that_wait(ctx)
    lines += _section("PEs that were launched but never started", _never_started(ctx))
    lines += _section("components that are busy or hold messages", _components(ctx))
    cycle = shortest_cycle(waits(ctx))
    lines.append("  wait-for cycle: " + (" -> ".join([*cycle, cycle[0]]) if cycle else "none; an answer was lost"))
    return "\n".join(lines)


def kernels_that_wait(ctx: RunContext) -> list[str]:
    """Return the lines of a report that say where the kernels are; none when no kernel waits."""
    return _section("kernels that wait", _kernels(ctx))


def waits(ctx: RunContext) -> dict[str, tuple[str, ...]]:
    """Return the wait-for graph: component id -> ids of the components that hold what it waits for."""
    return {
        component.id: tuple(sorted({msg.path[msg.hop] for msg in component.awaiting() if msg.path} - {component.id}))
        for component in ctx.components.values()
    }


def shortest_cycle(graph: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the nodes of the shortest cycle, starting at its smallest name; empty when there is none."""
    best: tuple[str, ...] = ()
    for start in sorted(graph):
        came_from: dict[str, str] = {}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for follower in graph.get(node, ()):
                if follower == start:
                    found = [node]
                    while found[-1] != start:
                        found.append(came_from[found[-1]])
                    if not best or len(found) < len(best):
                        best = tuple(reversed(found))
                    queue.clear()
                    break
                if follower not in came_from:
                    came_from[follower] = node
                    queue.append(follower)
    return best


def _kernels(ctx: RunContext) -> Iterable[str]:
    now = ctx.env.now
    for component in ctx.components.values():
        waiting = component.waits_in_words()
        if waiting is not None:
            yield f"{component.id} {waiting.sentence}, for {format_time(now - waiting.since_ns)}"


def _never_started(ctx: RunContext) -> Iterable[str]:
    if ctx.graph.design is None:
        return
    for launch in ctx.launches:
        for pe in sorted(set(launch.programs) - set(launch.started_ns)):
            yield ctx.graph.design.pes[pe].prefix


def _components(ctx: RunContext) -> Iterable[str]:
    now = ctx.env.now
    for component in ctx.components.values():
        oldest = min((since for _, since in component.serving), default=None)
        out = sum(1 for _ in component.awaiting())
        if oldest is None and not component.waiting and not out:
            continue
        age = f", the oldest for {format_time(now - oldest)}" if oldest is not None else ""
        yield (
            f"{component.id} ({component.node.impl}): serves {len(component.serving)}{age}; {len(component.waiting)} "
            f"wait in its queue; {out} of its messages are unanswered"
        )


def _section(title: str, rows: Iterable[str]) -> list[str]:
    listed = list(rows)
    if not listed:
        return []
    more = [f"    and {len(listed) - _MOST_LINES} more"] if len(listed) > _MOST_LINES else []
    return [f"  {title}:", *(f"    {row}" for row in listed[:_MOST_LINES]), *more]
