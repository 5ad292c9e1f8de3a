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


#: What gains less is not worth a line.
_LEAST: Final = 0.05


def idle_pes(facts: Facts) -> Iterator[Advice]:
    """PEs without a program."""
    if facts.pes < facts.all_pes:
        told = f"{facts.pes} of {facts.all_pes} PEs have a program: make the grid larger, or blocks smaller."
        yield Advice("idle-pes", told, min(0.9, 1 - facts.pes / facts.all_pes))


def uneven(facts: Facts) -> Iterator[Advice]:
    """Programs that do not go evenly over the PEs, or take unequal time."""
    most, together = facts.programs
    even = together / facts.pes if facts.pes else 0.0
    gain = 1 - facts.mean_ns / facts.last.time_ns if facts.last.time_ns else 0.0
    if most > 1 and most > even * 1.05:
        told = (
            f"{together} programs on {facts.pes} PEs leave PEs without work in the last round, as one has {most} and "
            f"the mean is {even:.1f}: choose a grid that is a multiple of {facts.pes}, or smaller blocks."
        )
        yield Advice("last-round", told, gain)
    elif gain > 0.15:
        told = (
            f"work is uneven: PEs take {format_time(facts.mean_ns)} on average, and {facts.last.last} takes "
            f"{format_time(facts.last.time_ns)}: give each the same, or put its data nearer."
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
    elif cube > 0.3:
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
    if facts.share("load") > 0.15 and could > _LEAST:
        idle = overlap.idle_ns / overlap.time_ns
        also = f", and for {idle:.0%} nothing is under way" if idle > 0.1 else ""
        told = (
            f"loads ahead (num_stages, or wait=False): for {overlap.hidden_ns / overlap.time_ns:.0%} of the time loads "
            f"are under way while units work, and that could be {most / overlap.time_ns:.0%}{also}."
        )
        yield Advice("loads-ahead", told, could)


def moved_again(facts: Facts) -> Iterator[Advice]:
    """Operands that are loaded many times."""
    waits = facts.share("load") + facts.share("store") + facts.share("composite")
    if not facts.must_move or facts.moved < 2 * facts.must_move or waits < 0.3:
        return
    most, room = facts.scratchpad
    spare = facts.programs[1] >= 2 * facts.all_pes and most < room / 2  # larger tiles leave work for every PE
    larger = f"larger tiles ({format_bytes(room - most)} of the scratchpad are free)" if spare else ""
    ways = ", ".join(filter(None, (larger, "keep what is used again in the scratchpad", "send tiles from PE to PE")))
    times = facts.moved / facts.must_move
    told = f"{format_bytes(facts.moved)} are moved, {times:.1f} times the bytes that must be: {ways}."
    yield Advice("moved-again", told, 0.5 * waits * (1 - facts.must_move / facts.moved))


def masked(facts: Facts) -> Iterator[Advice]:
    """Blocks of which masks leave much out."""
    if facts.masked > 0.2:
        told = f"masks leave out {facts.masked:.0%} of the bytes of blocks: choose block sizes that divide the shape."
        yield Advice("masked", told, 0.5 * facts.masked)


def small_tiles(facts: Facts) -> Iterator[Advice]:
    """Arrays that are hardly filled."""
    share = facts.share("product") + facts.share("composite")
    if facts.hint and share > 0.2:
        yield Advice("small-tiles", facts.hint, 0.4 * share)


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
            "passes over a block, cheaper ops (exp2 for exp, a product for a division), or more programs."
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
            f"{share:.0%} of the path are atomics ({lines}): add up in each program first, or give each its own place "
            "and add these up at the end."
        )
        yield Advice("atomics", told, 0.5 * share)


def messages(facts: Facts) -> Iterator[Advice]:
    """A PE that waits for others."""
    share = facts.share("message")
    if share > 0.3:
        lines = ", ".join(dict.fromkeys(call.line for call in facts.calls("message")))
        told = (
            f"{share:.0%} of the path is messages between PEs ({lines}): send in smaller pieces, so that sending, "
            "receiving and computing overlap, or to nearer PEs."
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
    idle_pes, uneven, far_data, not_ahead, moved_again, masked, small_tiles, hot_place, vector_unit, issue, atomics,
    messages, around,
)  # fmt: skip
"""All of them, in no order."""
