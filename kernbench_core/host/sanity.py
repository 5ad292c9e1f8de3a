"""Checks at the end of every run: a result that fails one must not be used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench_core.engine.bound import KnownHops, formula_latency, one_way_latency, transit_latency
from kernbench_core.errors import SanityError
from kernbench_core.host.lost_messages import lost_messages
from kernbench_core.host.timing import resource_uses
from kernbench_core.kernel.commands import command_of
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.units import format_bandwidth, format_time

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.fabric import RoundTrip
    from kernbench_core.host.timing import TimingResult
    from kernbench_core.oplog.log import OpRecord

#: Sentences of one check that an error shows.
FEW = 2


def check(hardware: Hardware, result: TimingResult, horizon_ns: float = 0.0) -> None:
    """Raise SanityError, with a line for each check that fails, two and a count where it fails often.

    `horizon_ns` is when the last of what was under way at the end of the run would have ended.
    """
    problems = [sentence for failed in findings(hardware, result, horizon_ns).values() for sentence in _few(failed)]
    if problems:
        raise SanityError("do not use this result: " + "\n  ".join(problems))


def findings(hardware: Hardware, result: TimingResult, horizon_ns: float = 0.0) -> Mapping[str, list[str]]:
    """Return what each check says, by what it looks at; nothing where all is well. See `check`."""
    bounds = _round_trip_bounds(hardware)
    stopped = horizon_ns > result.total_ns
    checks = {
        "answers": _answered_once(hardware),
        "left": _nothing_left(hardware, stopped=stopped),
        "receipts": _received_once(hardware),
        "bytes": _bytes_conserved(hardware),
        "work": _work_takes_time(hardware),
        "memory": _memory_takes_time(hardware, bounds),
        "peaks": _not_above_peak(hardware),
        "bandwidth": _not_above_bandwidth(hardware, max(result.total_ns, horizon_ns)),
        "capacity": _not_overbooked(hardware, result, horizon_ns),
        "phases": _phases_sum(result),
        "bounds": _not_below_bound(hardware, bounds),
    }
    return {what: list(failed) for what, failed in checks.items()}


def _few(sentences: list[str]) -> list[str]:
    """Keep the first sentences of one check, and say how many more there are: one bad model fails in every place."""
    more = len(sentences) - FEW
    return [*sentences[:FEW], f"({more} more like this.)"] if more > 0 else sentences


def _answered_once(hardware: Hardware) -> Iterator[str]:
    """Compare what was asked with what was answered; a second answer to one request is refused when it comes."""
    if hardware.issued != hardware.completed:
        sent, answered = hardware.issued, hardware.completed
        yield f"{sent} memory transactions were sent but {answered} answered; each must be answered once."
        yield from (f"{lost}." for lost in lost_messages(hardware))
    unfinished = 0 if hardware.op_logger is None else hardware.op_logger.unfinished
    if unfinished:
        yield f"{unfinished} ops began but never ended; each must end once."


def _nothing_left(hardware: Hardware, *, stopped: bool) -> Iterator[str]:
    """Name the first component that still holds something.

    Of a run that was `stopped` when its programs had ended, what nobody waits for, such as the last credits of queues,
    may still be on its way through a component.
    """
    passing = hardware.under_way if stopped else {}
    for component in hardware.components.values():
        waiting = sum(msg not in passing for msg in component.waiting)
        left = len(tuple(component.awaiting())) + len(component.serving) + waiting
        if left:
            yield (
                f"{component.id} has {left} messages in service, in its queue or unanswered at the end of the run; "
                "all must be done."
            )
            return


def _received_once(hardware: Hardware) -> Iterator[str]:
    """Name messages between PEs that nobody received; compare what was put on the fabric with what got into slots."""
    for part in hardware.shared:
        yield from part.unreceived()
    pushed, landed = hardware.pushed_bytes, hardware.landed_bytes
    if pushed != landed:
        yield f"{pushed} B of messages between PEs were sent but {landed} B got into their slots; none may be lost."


def _bytes_conserved(hardware: Hardware) -> Iterator[str]:
    """Compare what passed the wires of each memory at the end of a path with what its transactions were to move.

    A memory with several neighbours is left out: messages of other kinds pass its wires too.
    """
    carried: dict[str, int] = {}
    neighbours: dict[str, set[str]] = {}
    for source, destination in hardware.graph.edges:
        for end, other in ((source, destination), (destination, source)):
            if end in hardware.moved_bytes:
                nbytes = hardware.components[source].out_ports[destination].bytes_carried
                carried[end] = carried.get(end, 0) + nbytes
                neighbours.setdefault(end, set()).add(other)
    for memory, moved in sorted(hardware.moved_bytes.items()):
        if len(neighbours.get(memory, ())) == 1 and carried[memory] != moved:
            yield f"{carried[memory]} B passed the wires of {memory}, but its transactions move {moved} B."


def _work_takes_time(hardware: Hardware) -> Iterator[str]:
    """Name the first op, or stage of a tile, that moves or computes something in no time."""
    if hardware.op_logger is None:
        return
    log = hardware.op_logger.log
    for row in log.columns.instant_rows():
        record = log.at_row(row, dependencies=False)
        work = _work_of(record)
        if work:
            yield f"{record} {work} in no time; work must take time."
            return


def _round_trip_bounds(hardware: Hardware) -> list[tuple[RoundTrip, float]]:
    """Pair each kind of round trip with its lower bound in ns."""
    graph, components = hardware.graph, hardware.components
    hops: KnownHops = {}
    return [(trip, formula_latency(graph, components, _alone(trip), hops)) for trip in hardware.round_trips.values()]


def _alone(trip: RoundTrip) -> Transaction:
    """Return a transaction like those that made the trip."""
    return Transaction(trip.op, trip.regions, trip.total, trip.path, _nothing)


def _memory_takes_time(hardware: Hardware, bounds: Sequence[tuple[RoundTrip, float]]) -> Iterator[str]:
    """Name memories that answered as soon as the wires allowed: their own part of the way took no time."""
    for trip, bound in bounds:
        if not trip.total or trip.least_ns > bound:  # more than the wires alone, which never take longer than the bound
            continue  # below their time, past a memory that says it takes some, any node of the way is too fast
        if transit_latency(hardware.graph, hardware.components, _alone(trip)) in (trip.least_ns, bound):
            yield (
                f"{trip.path[-1]} answered a {trip.op} of {trip.total} B from {trip.path[0]} in 0 ns: its "
                f"round trip of {format_time(trip.least_ns)} is what the wires alone take; memory must take time."
            )


def _not_above_peak(hardware: Hardware) -> Iterator[str]:
    """Name the first op of each unit that was faster than the peak that its unit declares."""
    for component in hardware.components.values():
        if component.rates.too_fast is not None:
            msg, flops, took, peak = component.rates.too_fast
            command = command_of(msg)
            op = type(msg).__name__ if command is None else command.in_words
            yield (
                f"{component.id} computed {op} at {flops / took:.5g} GFLOP/s ({flops:.0f} operations in "
                f"{format_time(took)}), above its declared peak of {peak:.5g} GFLOP/s; no op "
                "can be faster."
            )


def _not_above_bandwidth(hardware: Hardware, time: float) -> Iterator[str]:
    """Name memories that moved more, until `time` ns, than they declare that they can.

    One that was given lists of addresses is left out: these come over its wires, and are nothing that it moves.
    """
    addressed = {memory for (_, memory, _, nbytes, _), trip in hardware.round_trips.items() if nbytes != trip.total}
    for memory, moved in sorted(hardware.moved_bytes.items()):
        peak = hardware.components[memory].peak_bandwidth
        if peak and memory not in addressed and moved > peak * time * (1 + 1e-9):
            yield (
                f"{memory} moved {moved} B in {format_time(time)}, more than its peak_bandwidth of "
                f"{format_bandwidth(peak)} allows; have what it moves take the time, or declare another peak."
            )


def _work_of(record: OpRecord) -> str:
    """Say what an op does, by the regions that it touches or, for stages, by its sizes; "" when that is nothing.

    What is handed on where it lies (`copied` False: a slot of a queue) is not moved.
    """
    if record.params.get("copied") is False:
        return ""
    nbytes = sum(access.nbytes for access in record.reads) + (record.writes.nbytes if record.writes else 0)
    params = record.params
    if nbytes:
        return f"touches {nbytes} B"
    products = math.prod(_count(params.get(name)) for name in "mkn")
    if products:
        return f"makes {products} products"
    for name, sentence in (("elements", "computes {} elements"), ("nbytes", "moves {} B")):
        if _count(params.get(name)):
            return sentence.format(params[name])
    return ""


def _count(value: object) -> int:
    """Return a size of an op; what is no number is none."""
    return value if isinstance(value, int) else 0


def _not_overbooked(hardware: Hardware, result: TimingResult, horizon_ns: float) -> Iterator[str]:
    """Name what was busy for longer than there was time: until the end and, of wires, until all that is under way ends.

    What nobody waited for, such as the last credits of queues, is still under way when a run ends.
    """
    for use in resource_uses(hardware, result.total_ns, above=1.0):
        yield f"{use.name} was busy for {use.utilisation:.1%} of the time; no resource can pass 100 %."
    end = max(result.total_ns, horizon_ns)
    for wire in hardware.wires:
        if wire.busy_ns > end and wire.busy_by(result.total_ns) <= result.total_ns:
            yield f"{wire.name} was busy for {wire.busy_ns / end:.1%} of the time; no resource can pass 100 %."


def _phases_sum(result: TimingResult) -> Iterator[str]:
    for phase, length in result.phases.items():
        if length < 0:
            yield f"the phase {phase} lasts {length!r} ns; every instant of the run must belong to one phase."
    total = sum(result.phases.values())
    if total != result.total_ns:
        yield f"the phases sum to {total!r} ns, but the run took {result.total_ns!r} ns."


def _not_below_bound(hardware: Hardware, bounds: Sequence[tuple[RoundTrip, float]]) -> Iterator[str]:
    for trip, bound in bounds:
        if trip.least_ns < bound:
            yield (
                f"a {trip.op} of {trip.total} B from {trip.path[0]} to {trip.path[-1]} took "
                f"{format_time(trip.least_ns)}, below its lower bound of {format_time(bound)}."
            )
    for found in hardware.one_ways.values():
        bound = one_way_latency(hardware.graph, hardware.components, MsgBase(found.nbytes, found.path))
        if found.least_ns < bound:
            yield (
                f"a message of {found.nbytes} B from {found.path[0]} to {found.path[-1]} took "
                f"{format_time(found.least_ns)}, below its lower bound of {format_time(bound)}."
            )


def _nothing(_: Transaction) -> None:
    """Ignore an answer that never comes."""
