"""What a model does with what it is sent: each check looks at one thing in what came of the drive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Final

from kernbench_builtin.checks.components.component_under_test import SAME, ComponentUnderTest, first_difference
from kernbench_builtin.checks.components.monitor import contents
from kernbench_builtin.checks.components.testbench import DriveResult, Sent
from kernbench_core.component import ComponentBase
from kernbench_core.engine.bound import formula_latency, one_way_latency
from kernbench_core.engine.hardware import Hardware
from kernbench_core.errors import ComponentError
from kernbench_core.host.statistics import statistics
from kernbench_core.memory.atomic_access import AtomicTransaction
from kernbench_core.messages import Transaction
from kernbench_core.testing.kit import CheckFailed, NotApplicable

_ROUNDING: Final = 1e-9


def of_each_drive(look: Callable[[DriveResult], None]) -> Callable[[ComponentUnderTest], None]:
    """Make a check of what looks at one drive: it looks at all of them, and one of them must be for it to look at."""

    @wraps(look)
    def check(under_test: ComponentUnderTest) -> None:
        skipped = []
        drives = under_test.drives_for(look.__name__)
        for drive in drives:
            try:
                look(drive)
            except NotApplicable as reason:
                skipped.append(reason)
        if len(skipped) == len(drives):
            raise skipped[0]

    return check


def serves_without_errors(under_test: ComponentUnderTest) -> None:
    """It is built and serves what fits its kind, and raises nothing."""
    for drive in under_test.drives_for("serves_without_errors"):
        if not drive.monitor.lines:
            raise CheckFailed("it must be driven, and its driver sent it nothing; correct the driver")


def uses_declared_parameters_only(under_test: ComponentUnderTest) -> None:
    """It reads the parameters that it declares, each of them, and no others."""
    params = [each for drive in under_test.drives_for("uses_declared_parameters_only") for each in drive.params]
    read = {name for each in params for name in each.read}
    read |= {param.follows[0] for param in under_test.cls.PARAMS if param.follows is not None}
    if asked := sorted(name for each in params for name in each.asked):
        raise CheckFailed(f"it reads {asked[0]!r}, which its PARAMS do not declare")
    if unused := [param.name for param in under_test.cls.PARAMS if param.name not in read]:
        raise CheckFailed(f"it declares {unused[0]!r} and never reads it; leave it out of PARAMS")


def takes_finite_times(under_test: ComponentUnderTest) -> None:
    """What it gives as a time, to the clock and to wires, is a finite number of ns, on the grid and not in the past."""
    under_test.drives_for("takes_finite_times")


@of_each_drive
def conserves_messages_and_bytes(drive: DriveResult) -> None:
    """All that comes goes on or is answered, once, with all of its bytes; nothing else comes out."""
    _say(drive, "answers", "receipts", "bytes")
    came = Counter(drive.came)
    ours = {each.msg for each in drive.sent}
    for msg, node in came:
        if msg not in ours:
            raise CheckFailed(f"{drive.monitor.label(msg)} of {msg.nbytes} B came to {node}, and nobody sent it")
    held = {msg for component in drive.monitor.components for msg in _held(component)}
    for each in drive.sent:
        label = drive.monitor.label(each.msg)
        times = came[each.msg, each.at_end]
        if not times and each.msg not in held:
            raise CheckFailed(f"{_text(drive, each)} was sent to it, and never came to {each.at_end}")
        if times and isinstance(each.msg, AtomicTransaction) and each.msg.changed_ns is None:
            raise CheckFailed(f"{_text(drive, each)} was answered, and no element changed; call its change before")
        if times > 1:
            raise CheckFailed(f"{label} must come to {each.at_end} once, not {times} times")
        wanted = _bytes_at_end(each)
        if times and each.msg.nbytes != wanted:
            raise CheckFailed(f"{label} must come to {each.at_end} with {wanted} B, not {each.msg.nbytes} B")


@of_each_drive
def keeps_messages_in_order(drive: DriveResult) -> None:
    """What comes from one neighbour and goes on to another leaves as it came, unless it picks, or serves several."""
    if not drive.monitor.overtaken:
        return
    if any(type(each).pick is not ComponentBase.pick or each.servers > 1 for each in drive.monitor.components):
        raise NotApplicable("it picks what it serves, or serves several at once: some may overtake others, and do")
    raise CheckFailed(drive.monitor.overtaken[0])


@of_each_drive
def drains(drive: DriveResult) -> None:
    """When all is served it comes to rest, and holds nothing."""
    _say(drive, "left")
    if held := drive.held:
        raise CheckFailed(f"it must hold nothing in the end, and {held[0]}")


@of_each_drive
def never_undercuts_its_bound(drive: DriveResult) -> None:
    """Nothing is faster than the lower bound of wires, channels and `min_service_ns`, by a formula of its own."""
    _say(drive, "bounds")
    for service in drive.monitor.services:
        if service.end is not None and service.end - service.start < service.least_ns:
            raise CheckFailed(
                f"{service.component} served {service.label} in {service.end - service.start:g} ns, and its "
                f"min_service_ns says {service.least_ns:g} ns"
            )
    if drive.monitor.early:
        raise CheckFailed(drive.monitor.early[0])
    if drive.monitor.changed:
        raise NotApplicable("its bound depends on who asks, as answers_alike_when_asked_again tells")
    if any(msg.nbytes != _bytes_at_end(each) for each in drive.sent for msg, _ in drive.came if msg is each.msg):
        raise NotApplicable("bytes are lost, which saves time, as conserves_messages_and_bytes tells")
    for each in drive.sent:
        if (each.msg, each.at_end) not in drive.came:
            continue
        bound = _bound(_hardware(drive), each)
        if each.msg.elapsed < bound:
            raise CheckFailed(
                f"{_text(drive, each)} came to {each.at_end} after {each.msg.elapsed:g} ns, below its lower bound of "
                f"{bound:g} ns"
            )


@of_each_drive
def answers_alike_when_asked_again(drive: DriveResult) -> None:
    """Its `overhead` and `min_service_ns`, which lower bounds ask for, too, change nothing by being asked."""
    if drive.monitor.changed:
        raise CheckFailed(drive.monitor.changed[0])


@of_each_drive
def never_exceeds_its_peak(drive: DriveResult) -> None:
    """It is no faster than the peak that it declares: bytes, operations, servers at once, the time there is."""
    _say(drive, "peaks", "capacity")
    for component in drive.monitor.components:
        if component.rates.too_fast is not None:
            msg, flops, took, peak = component.rates.too_fast
            raise CheckFailed(
                f"it computed {drive.monitor.label(msg)} at {flops / took:g} operations per ns, above its peak of "
                f"{peak:g}"
            )
        if type(component).run is not ComponentBase.run:
            most = _at_once(drive, component.id)
            if most > component.servers:
                raise CheckFailed(f"{component.id} served {most} messages at once, and has {component.servers} servers")
        _check_bandwidth(drive, component)
        _check_capacity(drive, component)


@of_each_drive
def takes_time(drive: DriveResult) -> None:
    """What reads, writes or computes takes time of its own."""
    _say(drive, "work", "memory")
    monitor = drive.monitor
    if monitor.in_no_time:
        raise CheckFailed(monitor.in_no_time[0])
    if not monitor.accesses and (drive.sent or not monitor.services):
        raise NotApplicable("it answers no reads and writes, and serves no logged op: what passes on may take no time")


@of_each_drive
def counts_what_it_served(drive: DriveResult) -> None:
    """Its statistics are numbers; the time of every message is the sum of its parts, and every wait has a place."""
    _say(drive, "phases")
    hardware = _hardware(drive)
    try:
        statistics(hardware)
    except ComponentError as error:
        raise CheckFailed(str(error)) from None
    arrived = [each.msg for each in drive.sent if (each.msg, each.at_end) in drive.came]
    for msg in arrived:
        parts = msg.propagation + msg.serialisation + msg.overhead + msg.queueing + msg.service
        if parts != msg.elapsed:
            raise CheckFailed(
                f"propagation, serialisation, overhead, queueing and service of {drive.monitor.label(msg)} must sum to "
                f"the {msg.elapsed:g} ns that it took, not to {parts:g} ns"
            )
    buffered = any(component.back_pressure for component in drive.monitor.components)  # a message waits at two places
    if drive.sent and len(arrived) == len(drive.sent) and not buffered:
        queued = sum(msg.queueing for msg in arrived)
        places: Iterable[ComponentBase] = hardware.components.values()
        counted = sum(wire.waited_ns for wire in hardware.wires) + sum(place.waited_ns for place in places)
        if counted != queued:
            raise CheckFailed(
                f"its messages queued for {queued:g} ns together, and {counted:g} ns are counted at places; call "
                "note_wait where a message waits"
            )


def agrees_with_its_other_style(under_test: ComponentUnderTest) -> None:
    """A model that its plug-in says to be another one, written in another style, serves the same at the same times.

    In a whole machine, what comes at one instant may take turns otherwise: it counts where nothing else is sent.
    """
    drives = under_test.drives_for("agrees_with_its_other_style")
    other = under_test.other
    if other is None:
        raise NotApplicable(f"its plug-in names no other model in {SAME}")
    twins = ComponentUnderTest(other, under_test.plugins, under_test.kind).driven()
    pairs = list(zip(drives, twins, strict=True))
    for drive, twin in [pair for pair in pairs if pair[0].sent] or pairs:
        if told := first_difference(sorted(drive.monitor.lines), sorted(twin.monitor.lines)):
            raise CheckFailed(f"of it and of {other}, the same in another style, {told}")


@of_each_drive
def leaves_messages_and_parameters_alone(drive: DriveResult) -> None:
    """What messages carry and the parameters of its node are what they were."""
    for params in drive.params:
        if params.changed:
            raise CheckFailed(f"it must leave its parameters alone, and changes {params.changed[0]!r}")
    for each in drive.sent:
        if each.msg.path not in (each.before.path, each.before.path[::-1]):
            raise CheckFailed(
                f"it must leave the path of {drive.monitor.label(each.msg)} alone, and makes {each.msg.path} of "
                f"{each.before.path}"
            )
        after = contents(each.msg)
        if wrong := [name for name, value in each.carried.items() if after.get(name) != value]:
            raise CheckFailed(
                f"it must leave what messages carry alone, and {wrong[0]} of {drive.monitor.label(each.msg)}, which "
                f"was {each.carried[wrong[0]]!r}, is {after.get(wrong[0])!r}"
            )


def _hardware(drive: DriveResult) -> Hardware:
    assert drive.hardware is not None, "there is one where a drive came to its end"
    return drive.hardware


def _say(drive: DriveResult, *topics: str) -> None:
    """Fail with the first thing that the checks at the end of a whole run say of these topics."""
    sentences: list[str] = [sentence for topic in topics for sentence in drive.said.get(topic, ())]
    if sentences:
        raise CheckFailed(sentences[0].rstrip("."))


def _held(component: ComponentBase) -> Sequence[object]:
    return [*(msg for msg, _ in component.serving), *component.waiting, *component.awaiting()]


def _bytes_at_end(each: Sent) -> int:
    if each.probed:
        return each.before.nbytes
    if isinstance(each.before, AtomicTransaction):
        return each.before.returned
    return each.before.total if isinstance(each.before, Transaction) and each.before.op == "read" else 0


def _text(drive: DriveResult, each: Sent) -> str:
    before, label = each.before, drive.monitor.label(each.msg)
    if isinstance(before, Transaction):
        return f"{label}, a {before.op} of {before.total} B,"
    return f"{label} of {before.nbytes} B"


def _again(msg: Transaction) -> Transaction:
    return Transaction(msg.op, msg.regions, msg.total, msg.path, lambda _: None)


def _bound(hardware: Hardware, each: Sent) -> float:
    """Return the least time in ns in which a message that was sent can have come to its end."""
    if isinstance(each.before, Transaction):
        return formula_latency(hardware.graph, hardware.components, _again(each.before))
    before = each.before
    there = one_way_latency(hardware.graph, hardware.components, before)
    if each.probed:
        return there
    path, nbytes = before.path, before.nbytes
    before.turn_around()
    back = one_way_latency(hardware.graph, hardware.components, before)
    before.path, before.nbytes, before.reply = path, nbytes, False
    return there + back


def _at_once(drive: DriveResult, node: str) -> int:
    """Return the most services that a component had under way at one time; one may begin when another ends."""
    changes = [
        change
        for service in drive.monitor.services
        if service.component == node and service.end is not None and service.end > service.start
        for change in ((service.start, 1), (service.end, -1))
    ]
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def _check_capacity(drive: DriveResult, component: ComponentBase) -> None:
    """Compare the time in which a component and its wires say that they were busy with the time that there was."""
    now = _hardware(drive).env.now
    wires = (*component.internal_wires, *component.out_ports.values())
    places = [(wire.name, wire.busy_by(now), now) for wire in wires]
    if component.keeps_busy:
        places.append((component.id, component.busy_by(now), now * component.servers))
    for name, busy, most in places:
        if drive.sent and busy > most * (1 + _ROUNDING):
            raise CheckFailed(f"{name} must be busy for {most:g} ns at most, all that there were, and says {busy:g} ns")


def _check_bandwidth(drive: DriveResult, component: ComponentBase) -> None:
    """Compare the bytes of all transactions with what the declared peak moves in the time that they took."""
    came = {id(msg) for msg, _ in drive.came}
    asked = [(each.before, each.msg) for each in drive.sent if each.at_end != component.id and id(each.msg) in came]
    reads = [(one, msg) for one, msg in asked if isinstance(one, Transaction) and one.op == "read"]
    peak = component.peak_bandwidth
    if not reads or not peak:
        return
    last = max(one.born for one, _ in reads)
    nbytes = sum(one.total for one, _ in reads if one.born == last)
    took = max(msg.tail for one, msg in reads if one.born == last) - last
    if nbytes > peak * took * (1 + _ROUNDING):
        raise CheckFailed(
            f"{nbytes} B that were read at once came within {took:g} ns, {nbytes / took:g} B/ns, above its "
            f"peak_bandwidth of {peak:g} B/ns"
        )
