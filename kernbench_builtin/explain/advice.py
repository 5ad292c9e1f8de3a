"""What to try, read from the figures of a run: rules, each with its evidence, the most promising first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from kernbench_builtin.explain.facts import Facts, kind_of
from kernbench_builtin.explain.moved import BURST
from kernbench_core.units import format_bytes, format_time

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.kernels import KernelUse


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


#: Transfers of so many bytes or fewer take mostly latency, where that is most of them.
_SMALL: Final = 8 << 10
#: What gains less is not worth a line.
_LEAST: Final = 0.05


def idle_pes(facts: Facts) -> Iterator[Advice]:
    """PEs without a program, but where loads of scattered bytes would crowd memory the more."""
    if facts.busy_pes < facts.all_pes and not (_scattered(facts) and facts.share("load") > 0.5):
        have = "has" if facts.busy_pes == 1 else "have"
        told = f"{facts.busy_pes} of {facts.all_pes} PEs {have} a program: make the grid larger, or blocks smaller."
        yield Advice("idle-pes", told, min(0.9, 1 - facts.busy_pes / facts.all_pes))


def uneven(facts: Facts) -> Iterator[Advice]:
    """Programs that do not go evenly over the PEs, where products take the time; or that take unequal time."""
    most, together = facts.programs
    even = together / facts.pes if facts.pes else 0.0
    gain = 1 - facts.mean_ns / facts.last.time_ns if facts.last.time_ns else 0.0
    products = facts.share("product") + facts.share("composite")
    if most > 1 and most > even * 1.05 and products > 0.5:  # rows that are split take as long, and are to be joined
        told = (
            f"{together} programs on {facts.pes} PEs leave PEs without work in the last round, as one has {most} and "
            f"the mean is {even:.1f}: divide the work into a multiple of {facts.pes}."
        )
        yield Advice("last-round", told, gain)
    elif gain > 0.25 and facts.more_work > 0.1 and facts.share("message") < 0.3:  # else it waits for others
        told = (
            f"work is uneven: PEs take {format_time(facts.mean_ns)} on average, and {facts.last.last}, which has more "
            f"to do, {format_time(facts.last.time_ns)}: give each the same."
        )
        yield Advice("uneven", told, gain)


def far_data(facts: Facts) -> Iterator[Advice]:
    """Data in the memory of other packages or cubes."""
    waits = facts.share("load") + facts.share("store") + facts.share("atomic") + facts.share("composite")
    if not facts.moved.nbytes or waits < 0.3:
        return
    package, cube = facts.moved.package / facts.moved.nbytes, facts.moved.cube / facts.moved.nbytes
    if package > 0.1:
        way = "" if facts.placement == "near" else " (--placement near)"
        told = (
            f"{package:.0%} of the bytes of loads and stores come from or go to another package: place tensors where "
            f"they are used{way}, give each package a copy, or use one package (--device sip:0)."
        )
        yield Advice("far-package", told, 0.5 * waits * min(1.0, 2 * package))
    elif waits * cube > 0.35:
        told = (
            f"{cube:.0%} of the bytes of loads and stores come from or go to another cube: place tensors (or give "
            "programs to PEs) so that each reads its own cube's HBM, or give each cube a copy."
        )
        yield Advice("far-cube", told, 0.3 * waits * cube)


def not_ahead(facts: Facts) -> Iterator[Advice]:
    """Loads, again and again, that nothing is computed under; of two there is but one to go ahead."""
    overlap = facts.overlap
    most = min(overlap.late_ns, overlap.working_ns)
    could = (most - overlap.hidden_ns) / overlap.time_ns if overlap.time_ns else 0.0
    memory = facts.use("hbm_ctrl channel")
    full = memory is not None and memory.mean_utilisation > 0.6
    ever = facts.share("load") > 0.15 and overlap.times > 2 and not full
    if ever and could > 0.1 and overlap.hidden_ns < most / 4:
        how = facts.waiting or "load ahead (wait=False; loops in Triton do, as deep as num_stages)"
        told = (
            f"{how}: units work under loads for "
            f"{overlap.hidden_ns / overlap.time_ns:.0%} of the time, and could for {most / overlap.time_ns:.0%}."
        )
        yield Advice("loads-ahead", told, could)


def moved_again(facts: Facts) -> Iterator[Advice]:
    """What a PE loads although it had it before."""
    waits = facts.share("load") + facts.share("composite")
    share = facts.moved.again / facts.moved.loaded if facts.moved.loaded else 0.0
    if share > 0.3 and waits > 0.3:
        most, room = facts.scratchpad
        told = (
            f"{share:.0%} of what a PE loads it had loaded before: keep it in the scratchpad, of which "
            f"{format_bytes(room - most)} are free, or make tiles larger."
        )
        yield Advice("moved-again", told, 0.5 * waits * share)


def _scattered(facts: Facts) -> bool:
    """Whether loads and stores touch pieces of less than a burst, several each, of equal steps."""
    moved = facts.moved
    several = moved.pieces > 2 * moved.transfers
    return several and moved.nbytes < BURST * moved.pieces and moved.strided > moved.pieces / 2


def small_transfers(facts: Facts) -> Iterator[Advice]:
    """Loads and stores of scattered bytes, or of so few that they take latency."""
    moved, waits, trips = facts.moved, facts.share("load") + facts.share("store"), facts.trips
    if not moved.transfers or waits < 0.4:
        return
    latency = trips["propagation"] + trips["overhead"]
    used = facts.distinct / facts.burst_bytes if facts.burst_bytes else 1.0
    if used < 0.5:
        told = (
            f"{used:.0%} of the bytes of each burst of HBM ({BURST} B) are used, by any program: lay out together what "
            "is used together (an array for each field)."
        )
        yield Advice("scattered", told, 0.6 * waits)
    elif _scattered(facts):
        told = (
            f"loads and stores touch pieces of {format_bytes(round(moved.nbytes / moved.pieces))}: move whole rows, "
            "with more columns a program, or take columns of them in the scratchpad (tl.trans)."
        )
        yield Advice("scattered", told, 0.6 * waits)
    elif latency > sum(trips.values()) / 2:
        yield from _short(facts, waits)


def _short(facts: Facts, waits: float) -> Iterator[Advice]:
    """Transfers of few chunks each that a PE makes one after the other."""
    each = facts.moved.nbytes / facts.moved.transfers
    calls = [call for kind in ("load", "store") for call in facts.calls(kind)]
    worst = max(calls, key=lambda call: call.ns)
    times = worst.commands // facts.launches
    if each <= _SMALL and times > 3 and facts.round_trips <= 4 * facts.moved.transfers:
        told = (
            f"a load or store moves {format_bytes(round(each))} on average, which is mostly latency, and a PE waits "
            f"for {times:,} of {worst.call} ({worst.line}) one after the other: larger blocks, or more rows a program."
        )
        yield Advice("small-transfers", told, 0.5 * waits * (1 - 1 / times))


def masked(facts: Facts) -> Iterator[Advice]:
    """Blocks of which masks leave much out."""
    share = facts.moved.masked
    if share > 0.3 and facts.share("load") + facts.share("store") > 0.4:
        told = f"masks leave out {share:.0%} of the bytes of blocks: choose block sizes that divide the shape."
        yield Advice("masked", told, 0.5 * share)


def small_tiles(facts: Facts) -> Iterator[Advice]:
    """Arrays that are hardly filled, though tiles could be larger."""
    fill, share = facts.fill, facts.share("product") + facts.share("composite")
    if fill is None or share < 0.5 or fill.lost < 0.5:
        return
    if fill.filling_ns > fill.unfilled_ns:
        told = (
            f"{fill.kind} starts, fills and drains for {fill.filling_ns / fill.busy_ns:.0%} of its time at work: "
            "larger tiles, or products in a row (wait=False)."
        )
        yield Advice("small-tiles", told, share * fill.filling_ns / fill.busy_ns)
    elif facts.rows < facts.rows_at_most:
        told = (
            f"{fill.unfilled_ns / fill.busy_ns:.0%} of the cells of {fill.kind} have no element: larger tiles, as "
            f"products have {facts.rows} rows at most."
        )
        yield Advice("small-tiles", told, share * fill.unfilled_ns / fill.busy_ns)


def hot_place(facts: Facts) -> Iterator[Advice]:
    """One channel or wire that is much busier than others of its kind."""
    for kind, way in (
        ("hbm_ctrl channel", "spread addresses (another placement or row stride, or channel_hash of hbm_ctrl)"),
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


def divisions(facts: Facts) -> Iterator[Advice]:
    """A vector unit that divides much."""
    calls = [call for call in facts.calls("compute") if call.call == "tl.div" and call.commands]
    share = sum(call.ns for call in calls) / facts.path_ns if facts.path_ns else 0.0
    if share > 0.25:
        worst = calls[0]
        told = (
            f"divisions take {share:.0%} of the path, {format_time(worst.ns / worst.commands)} each at {worst.line}: "
            "multiply by what was divided once, and write 1 / (1 + exp(-x)) as tl.sigmoid."
        )
        yield Advice("vector-unit", told, 0.3 * share)


def issue(facts: Facts) -> Iterator[Advice]:
    """A PE's CPU that limits."""
    share = facts.share("issue")
    if share > 0.3:
        told = f"the PE's CPU takes {share:.0%} of the path: larger blocks, so that fewer commands are issued."
        yield Advice("issue", told, 0.5 * share)


def atomics(facts: Facts) -> Iterator[Advice]:
    """Atomics that PEs queue for, with several of a PE at one place."""
    share, moved = facts.share("atomic"), facts.moved
    if share > 0.3 and moved.atomics_again > moved.atomics / 4:
        lines = ", ".join(dict.fromkeys(call.line for call in facts.calls("atomic")))
        told = (
            f"{share:.0%} of the path are atomics ({lines}), {moved.atomics_again / moved.atomics:.0%} of them at a "
            "place where the same PE had one before: add up in each program first."
        )
        yield Advice("atomics", told, 0.5 * share)


def messages(facts: Facts) -> Iterator[Advice]:
    """PEs that wait for others: for one that takes or sends all messages, for work in turn, for a later launch."""
    share, late = facts.share("message"), facts.share("late")
    pe, most, together = facts.collector
    if share > 0.3 and most >= 4 and most > together / 2:
        told = (
            f"{share:.0%} of the path is messages between PEs, and {pe} sends or receives {most} of {together:,}, one "
            "after the other: pass them on in a tree, in which others work, too."
        )
        yield Advice("messages", told, 0.4 * share)
    path = facts.last.path
    computed = sum(call.ns for call in path if kind_of(call) in ("product", "compute"))
    others = (computed - facts.overlap.working_ns) / facts.last.time_ns if facts.last.time_ns else 0.0
    if others > 0.25:
        lines = ", ".join(dict.fromkeys(call.line for call in path if kind_of(call) == "message"))
        told = (
            f"PEs work in turn: for {others:.0%} of the path {facts.last.last} waits for what others compute before "
            f"they send ({lines}): compute what needs no message before tl.recv, and send as soon as can be."
        )
        yield Advice("in-turn", told, others)
    if late > 0.2:
        told = (
            f"for {late:.0%} of the path PEs wait for a launch that begins later on others: give ranks equal work "
            "before it."
        )
        yield Advice("late-launch", told, late)


def around(facts: Facts) -> Iterator[Advice]:
    """Copies and launches that take longer than kernels."""
    copies = facts.phases["host_to_device"] + facts.phases["device_to_host"]
    if copies > facts.total_ns / 2:
        what, rest = ("host copies take", ", or keep tensors on the device for several launches")
        if not facts.copied:
            what, rest = ("telling the device's page tables where tensors lie takes", "")
        told = f"{what} {copies / facts.total_ns:.0%} of the run: compare kernels by their own time{rest}."
        yield Advice("copies", told, copies / facts.total_ns, "run")
    if facts.phases["launch"] > facts.kernel_ns:
        told = (
            f"launching takes {format_time(facts.phases['launch'])}, longer than the kernel: do more in one launch."
        )
        yield Advice("launch", told, facts.phases["launch"] / facts.total_ns, "run")


RULES: Final[tuple[Rule, ...]] = (
    idle_pes, uneven, far_data, not_ahead, moved_again, small_transfers, masked, small_tiles, hot_place, divisions,
    issue, atomics, messages, around,
)  # fmt: skip
"""All of them, in no order."""
