"""What to try, read from the figures of a run: rules, each with its evidence, the most promising first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from kernbench_builtin.explain.facts import Facts
from kernbench_core.units import format_bytes, format_time

if TYPE_CHECKING:
    from kernbench_core.host.figures.kernels import KernelUse


@attrs.frozen
class Advice:
    """Say what to try and why: `rule` names it, `gain` is the share of the kernel's time that it could save at most.

    `about` is "kernel", or "run" for what happens around kernels.
    """

    rule: str
    sentence: str
    gain: float
    about: str = "kernel"


Rule = Callable[[Facts], Iterator[Advice]]


def advise(facts: Facts) -> tuple[Advice, ...]:
    """Return what the rules say of a run, what could gain most first; what is about the run comes last."""
    found = [each for rule in RULES for each in rule(facts) if each.gain >= _LEAST]
    return tuple(sorted(found, key=lambda each: (each.about != "kernel", -each.gain, each.rule)))


#: Pieces of fewer bytes waste bursts of HBM; transfers of fewer bytes take mostly latency, where that is most of them.
_BURST, _SMALL = 64, 16 << 10
#: What gains less is not worth a line.
_LEAST: Final = 0.05


def idle_pes(facts: Facts) -> Iterator[Advice]:
    """PEs without a program."""
    if facts.busy_pes < facts.all_pes:
        told = f"{facts.busy_pes} of {facts.all_pes} PEs have a program: make the grid larger, or blocks smaller."
        yield Advice("idle-pes", told, min(0.9, 1 - facts.busy_pes / facts.all_pes))


def uneven(facts: Facts) -> Iterator[Advice]:
    """Programs that do not go evenly over the PEs, or take unequal time."""
    most, together = facts.programs
    even = together / facts.pes if facts.pes else 0.0
    gain = 1 - facts.mean_ns / facts.last.time_ns if facts.last.time_ns else 0.0
    if most > 1 and most > even * 1.05:
        told = (
            f"{together} programs on {facts.pes} PEs leave PEs without work in the last round, as one has {most} and "
            f"the mean is {even:.1f}: choose a grid that is a multiple of {facts.pes}."
        )
        yield Advice("last-round", told, gain)
    elif gain > 0.15 and facts.more_work > 0.1 and facts.share("message") < 0.3:  # else it waits for others
        told = (
            f"work is uneven: PEs take {format_time(facts.mean_ns)} on average, and {facts.last.last}, which has more "
            f"to do, {format_time(facts.last.time_ns)}: give each the same."
        )
        yield Advice("uneven", told, gain)


def far_data(facts: Facts) -> Iterator[Advice]:
    """Data in the memory of other packages or cubes."""
    waits = facts.share("load") + facts.share("store") + facts.share("atomic") + facts.share("composite")
    if not facts.moved or waits < 0.3:
        return
    package, cube = facts.far_package / facts.moved, facts.far_cube / facts.moved
    if package > 0.1:
        told = (
            f"{package:.0%} of the bytes of loads and stores come from or go to another package: place tensors where "
            "they are used, give each package a copy, or use one package (--device sip:0)."
        )
        yield Advice("far-package", told, 0.5 * waits * min(1.0, 2 * package))
    elif cube > 0.3 and waits > 0.5:
        told = (
            f"{cube:.0%} of the bytes of loads and stores come from or go to another cube: place tensors (or give "
            "programs to PEs) so that each reads its own cube's HBM."
        )
        yield Advice("far-cube", told, 0.3 * waits * cube)


def not_ahead(facts: Facts) -> Iterator[Advice]:
    """Loads that nothing is computed under."""
    overlap = facts.overlap
    most = min(overlap.late_ns, overlap.working_ns)
    could = (most - overlap.hidden_ns) / overlap.time_ns if overlap.time_ns else 0.0
    memory = facts.use("hbm_ctrl channel")
    full = memory is not None and memory.mean_utilisation > 0.6
    if facts.share("load") > 0.15 and could > 0.1 and overlap.hidden_ns < most / 2 and not full:
        how = facts.waiting or "load ahead (wait=False; loops in Triton do, as deep as num_stages)"
        told = (
            f"{how}: units work under loads for "
            f"{overlap.hidden_ns / overlap.time_ns:.0%} of the time, and could for {most / overlap.time_ns:.0%}."
        )
        yield Advice("loads-ahead", told, could)


def moved_again(facts: Facts) -> Iterator[Advice]:
    """Operands that are loaded many times."""
    waits = facts.share("load") + facts.share("store") + facts.share("composite")
    if not facts.distinct or facts.moved < 2 * facts.distinct or waits < 0.45:
        return
    most, room = facts.scratchpad
    spare = facts.programs[1] >= 4 * facts.all_pes and most < room / 2  # larger tiles leave work for every PE
    larger = f"larger tiles ({format_bytes(room - most)} of the scratchpad are free)" if spare else ""
    ways = ", ".join(filter(None, (larger, "keep what is used again in the scratchpad", "send tiles from PE to PE")))
    times = facts.moved / facts.distinct
    told = f"{format_bytes(facts.moved)} are moved, each byte {times:.1f} times: {ways}."
    yield Advice("moved-again", told, 0.5 * waits * (1 - facts.distinct / facts.moved))


def small_transfers(facts: Facts) -> Iterator[Advice]:
    """Loads and stores of scattered bytes, or of so few that they take latency."""
    waits, trips = facts.share("load") + facts.share("store"), facts.trips
    if not facts.pieces or waits < 0.4:
        return
    piece, each = facts.moved / facts.pieces, facts.moved / facts.transfers
    latency = trips["propagation"] + trips["overhead"]
    if piece < _BURST:
        told = (
            f"loads and stores touch pieces of {format_bytes(round(piece))}: move whole rows, and take columns of them "
            "in the scratchpad (tl.trans)."
        )
        yield Advice("scattered", told, 0.6 * waits)
    elif each < _SMALL and latency > sum(trips.values()) / 2:
        told = (
            f"a load or store moves {format_bytes(round(each))} on average, which is mostly latency: larger blocks, or "
            "more rows a program."
        )
        yield Advice("small-transfers", told, 0.5 * waits)


def masked(facts: Facts) -> Iterator[Advice]:
    """Blocks of which masks leave much out."""
    if facts.masked > 0.3 and facts.share("load") + facts.share("store") > 0.4:
        told = f"masks leave out {facts.masked:.0%} of the bytes of blocks: choose block sizes that divide the shape."
        yield Advice("masked", told, 0.5 * facts.masked)


def small_tiles(facts: Facts) -> Iterator[Advice]:
    """Arrays that are hardly filled."""
    share = facts.share("product") + facts.share("composite")
    if facts.hint and share > 0.2:
        yield Advice("small-tiles", facts.hint, share * facts.lost)


def hot_place(facts: Facts) -> Iterator[Advice]:
    """One channel or wire that is much busier than others of its kind."""
    for kind, way in (
        ("hbm_ctrl channel", "spread addresses (memory.channel_hash, another row stride or placement)"),
        ("ucie wire", "place data and programs so that less crosses there"),
        ("scale_up wire", "spread what is sent over more links"),
    ):
        use: KernelUse | None = facts.use(kind)
        if use is not None and use.utilisation > 0.5 and use.alike > 1 and use.utilisation > 2 * use.mean_utilisation:
            told = (
                f"{use.name} is busy {use.utilisation:.0%} of the time, {use.kind}s are {use.mean_utilisation:.0%} on "
                f"average: {way}."
            )
            yield Advice("hot-place", told, use.utilisation - use.mean_utilisation)


def vector_unit(facts: Facts) -> Iterator[Advice]:
    """A vector unit that limits."""
    share, use = facts.share("compute"), facts.use("pe_math")
    if share > 0.5 and use is not None:
        calls = facts.calls("compute")
        worst = calls[0]
        each = worst.ns / worst.commands if worst.commands else 0.0
        told = (
            f"the vector unit limits: most of it is {worst.call} ({worst.line}), {format_time(each)} each; fewer "
            "passes over a block, cheaper ops (a product for a division)."
        )
        yield Advice("vector-unit", told, 0.3 * share)


def issue(facts: Facts) -> Iterator[Advice]:
    """A PE's CPU that limits."""
    share = facts.share("issue")
    if share > 0.2:
        told = f"the PE's CPU takes {share:.0%} of the path: larger blocks, so that fewer commands are issued."
        yield Advice("issue", told, 0.5 * share)


def atomics(facts: Facts) -> Iterator[Advice]:
    """Atomics that PEs queue for."""
    share = facts.share("atomic")
    if share > 0.3:
        lines = ", ".join(dict.fromkeys(call.line for call in facts.calls("atomic")))
        told = (
            f"{share:.0%} of the path are atomics ({lines}): add up in each program first, so that there are fewer."
        )
        yield Advice("atomics", told, 0.5 * share)


def messages(facts: Facts) -> Iterator[Advice]:
    """A PE that waits for others."""
    share = facts.share("message")
    if share > 0.3:
        calls = facts.calls("message")
        lines = ", ".join(dict.fromkeys(call.line for call in calls))
        each = sum(call.ns for call in calls) / max(1, sum(call.commands for call in calls))
        told = (
            f"{share:.0%} of the path is messages between PEs ({lines}), {format_time(each)} each: do what does not "
            "need them before tl.recv, and send to several PEs at once instead of one after the other."
        )
        yield Advice("messages", told, 0.4 * share)


def around(facts: Facts) -> Iterator[Advice]:
    """Copies and launches that take longer than kernels."""
    copies = facts.phases["host_to_device"] + facts.phases["device_to_host"]
    if copies > facts.total_ns / 2:
        told = (
            f"host copies take {copies / facts.total_ns:.0%} of the run: compare kernels by their own time, or keep "
            "tensors on the device for several launches."
        )
        yield Advice("copies", told, copies / facts.total_ns, "run")
    if facts.phases["launch"] > facts.kernel_ns:
        told = (
            f"launching takes {format_time(facts.phases['launch'])}, longer than the kernel: do more in one launch."
        )
        yield Advice("launch", told, facts.phases["launch"] / facts.total_ns, "run")


RULES: Final[tuple[Rule, ...]] = (
    idle_pes, uneven, far_data, not_ahead, moved_again, small_transfers, masked, small_tiles, hot_place, vector_unit,
    issue, atomics, messages, around,
)  # fmt: skip
"""All of them, in no order."""
