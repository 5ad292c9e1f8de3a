"""Checks at the end of every run: a result that fails one must not be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernbench_core.bound import formula_latency
from kernbench_core.errors import SanityError
from kernbench_core.graph import EdgeKind
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
        *_bytes_conserved(ctx),
        *_work_takes_time(ctx),
        *_not_overbooked(ctx, result),
        *_phases_sum(result),
        *_not_below_bound(ctx),
    ]
    if problems:
        raise SanityError("do not use this result: " + " ".join(problems))


def _answered_once(ctx: RunContext) -> Iterator[str]:
    if ctx.issued != ctx.completed:
        yield f"{ctx.issued} memory transactions were sent but {ctx.completed} answered; each must be answered once."
    unfinished = 0 if ctx.op_logger is None else ctx.op_logger.unfinished
    if unfinished:
        yield f"{unfinished} ops began but never ended; each must end once."


def _bytes_conserved(ctx: RunContext) -> Iterator[str]:
    """Compare what passed the wires of each memory controller with what its transactions were to move."""
    carried: dict[str, int] = {}
    for (source, destination), edge in ctx.graph.edges.items():
        if edge.kind is EdgeKind.HBM:
            nbytes = ctx.components[source].out_ports[destination].bytes_carried
            for end in (source, destination):
                carried[end] = carried.get(end, 0) + nbytes
    for memory, moved in sorted(ctx.moved_bytes.items()):
        if memory in carried and carried[memory] != moved:
            yield f"{carried[memory]} B passed the wires of {memory}, but its transactions move {moved} B."


def _work_takes_time(ctx: RunContext) -> Iterator[str]:
    if ctx.op_logger is None:
        return
    log = ctx.op_logger.log
    for row in log.columns.instant_rows():
        record = log.at_row(row)
        accesses = (*record.reads, record.writes) if record.writes else record.reads
        nbytes = sum(access.nbytes for access in accesses)
        if nbytes:
            yield f"{record} touches {nbytes} B in no time; work must take time."
            return


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
