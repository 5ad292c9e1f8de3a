"""Checks at the end of every run: a result that fails one must not be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernbench_core.bound import formula_latency
from kernbench_core.errors import SanityError
from kernbench_core.messages import Transaction
from kernbench_core.timing import resource_uses
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_core.context import RunContext
    from kernbench_core.timing import TimingResult


def check(ctx: RunContext, result: TimingResult) -> None:
    """Raise SanityError, with one sentence for each check that fails."""
    problems = [
        *_answered_once(ctx),
        *_not_overbooked(ctx, result),
        *_phases_sum(result),
        *_not_below_bound(ctx),
    ]
    if problems:
        raise SanityError("do not use this result: " + " ".join(problems))


def _answered_once(ctx: RunContext) -> Iterator[str]:
    if ctx.issued != ctx.completed:
        yield f"{ctx.issued} memory transactions were sent but {ctx.completed} answered; each must be answered once."


def _not_overbooked(ctx: RunContext, result: TimingResult) -> Iterator[str]:
    for use in resource_uses(ctx, result.total_ns):
        if use.utilisation > 1.0:
            yield f"{use.name} was busy for {use.utilisation:.1%} of the time; no resource can pass 100 %."


def _phases_sum(result: TimingResult) -> Iterator[str]:
    total = sum(result.phases.values())
    if total != result.total_ns:
        yield f"the phases sum to {total!r} ns, but the run took {result.total_ns!r} ns."


def _not_below_bound(ctx: RunContext) -> Iterator[str]:
    for trip in ctx.round_trips.values():
        sent = Transaction(trip.op, trip.regions, trip.total, trip.path, _nothing)
        bound = formula_latency(ctx.graph, ctx.components, sent)
        if trip.least_ns < bound:
            yield (
                f"a {trip.op} of {trip.total} B from {trip.path[0]} to {trip.path[-1]} took "
                f"{format_time(trip.least_ns)}, below its lower bound of {format_time(bound)}."
            )


def _nothing(_: Transaction) -> None:
    """Ignore an answer that never comes."""
