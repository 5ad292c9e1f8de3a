"""Advice on how programs share work: over PEs, in launches, by messages and atomics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from kernbench_builtin.explain.advice.facts import Facts, kind_of
from kernbench_builtin.explain.advice.rule import LEAST, Advice, noted, own_share, suggested, waits
from kernbench_core.units import format_bytes, format_time

#: Where PEs have so many programs on average, and one has two or more, a few of them are too many.
_LITTLE_MORE: Final = 1.15
#: So many atomics of a program may be what it has to say at its end, whatever its share of the work.
_FEW: Final = 2
#: Of the operands of a product that is cut up, each program has so much alone, about.
_OF_PRODUCTS: Final = 0.25
#: A message of fewer bytes takes mostly the latency of its way.
_SHORT: Final = 1 << 10


def idle_pes(facts: Facts) -> Iterator[Advice]:
    """PEs without a program; what all programs load, and a way there and back, is not divided among more of them."""
    if facts.busy_pes >= facts.all_pes or facts.apart_ns > 0.25 * facts.total_ns:  # others could have the rest
        return
    near = facts.triton and facts.packages > 1  # arrays lie where the programs are that use them
    pes = facts.all_pes // facts.packages if near else facts.all_pes
    several = facts.turns("atomic")[1] > _FEW  # one of each program is not divided among more of them
    atomics = facts.share("atomic") * (1 - facts.busy_pes / pes) if several else 0.0
    kept = facts.programs[1] > facts.pes  # programs are dealt to all PEs that may have them
    rounds = math.ceil(facts.programs[1] * facts.busy_pes / max(facts.pes, 1) / pes)  # as launches at one time have
    whole = (1 - rounds / max(facts.own_programs, 1)) * (1 - facts.share("message") - facts.share("atomic"))
    less = whole if kept else _divided(facts, pes / facts.busy_pes)
    gain = min(less + atomics, 1 - facts.busiest_place, facts.above_roof)
    have = "has" if facts.busy_pes == 1 else "have"
    told = f"{facts.busy_pes} of {facts.all_pes} PEs {have} a program"
    uneven = pes < 2 * facts.busy_pes and not kept  # and parts would lie badly in memory
    in_line = _polls(facts) or (facts.share("atomic") > 0.3 and not several)  # more programs would wait longer
    if gain > 0.15 and not uneven and not in_line and not _loads_for_others(facts):
        change = f"cut the work into {pes} programs"
        if kept:
            change = "leave out pes= of rt.launch, or give it more PEs"
            told = f"{facts.programs[1]:,} programs are on {facts.busy_pes} of {facts.all_pes} PEs"
        elif near:
            change += ", on one package (--device sip:0)"
        elif not facts.triton and facts.moved.nbytes:
            change += ", and place tensors beside them (kb.Shard(…) what is theirs, kb.Replicate() what they share)"
        yield suggested("idle-pes", change, told, gain)
    else:
        yield noted("idle-pes", told, 1 - facts.busy_pes / facts.all_pes)


def _loads_for_others(facts: Facts) -> bool:
    """Whether the slowest PE sends, or receives, most messages, and waits for loads and stores."""
    pe, most, together = facts.collector
    return most >= 8 and most > together / 2 and pe == facts.last.last and waits(facts) > 0.5


def _in_a_tree(facts: Facts) -> bool:
    """Whether PEs have as few messages each as in a tree: who is at its root has to wait."""
    _, most, together = facts.collector
    return 0 < most <= 2 * math.log2(together + 1)


def _polls(facts: Facts) -> bool:
    """Whether programs ask by atomics, again and again, whether others have come so far."""
    return facts.reads and facts.share("atomic") > 0.3


def _divided(facts: Facts, times: float) -> float:
    """Return which share of the path goes where programs have so many times less to do each, about.

    Of each command there goes only what more bytes, or elements, take longer for, and of what all programs load
    nothing. Commands go where a PE has several programs, or those of a loop over what lies together and is its own.
    """
    own, (_, turns), (_, stores) = own_share(facts), facts.turns("load"), facts.turns("store")
    if facts.programs[1] == 1 and facts.share("product"):  # which does not show what several would share
        own = _OF_PRODUCTS
    own_loop = own > 0.5 and min(turns, stores) > 2 and facts.moved.pieces <= 2 * facts.moved.transfers
    several = facts.own_programs * (min(turns, stores) if own_loop else 1.0)
    fewer = 1 - math.ceil(several / times) / several if several >= 2 else 0.0
    smaller = 1 - 1 / times
    snippets = facts.moved.piece < facts.moved.burst * times  # are what smaller programs would move
    found = facts.share("issue") * fewer + facts.share("composite") * smaller
    for kind in ("product", "compute"):
        found += facts.share(kind) * max(fewer, smaller * _on_elements(facts, kind))
    for kind in ("load", "store"):
        queued = _queued(facts, kind) if facts.busy_pes > 1 else 0.0
        goes = max(0.0, 1 - facts.stays(kind) - facts.of_commands.get(kind, 0.0) - queued)
        of_fewer = fewer if facts.own_programs > 1 else own * fewer
        found += facts.share(kind) * max(of_fewer, 0.0 if snippets else own * smaller * goes)
    return found


def _queued(facts: Facts, kind: str) -> float:
    """Return which part of the time of a kind of calls they queue, behind what others move as well."""
    trips = facts.own_trips[kind]
    return trips["queueing"] / (sum(trips.values()) or 1.0)


def _on_elements(facts: Facts, kind: str) -> float:
    """Return which part of the time of a kind of calls their elements take."""
    calls = [call for call in facts.last.path if kind_of(call) == kind]
    ns = sum(facts.on_elements.get(unit, 0.0) for unit in {call.unit for call in calls})
    return min(1.0, ns / sum(call.ns for call in calls)) if calls else 0.0


def uneven(facts: Facts) -> Iterator[Advice]:
    """Programs that do not go evenly over the PEs, where products take the time; or that take unequal time."""
    most, together = facts.programs
    even = together / facts.pes if facts.pes else 0.0
    gain = 1 - facts.mean_ns / facts.last.time_ns if facts.last.time_ns else 0.0
    products = facts.share("product") + facts.share("composite")
    if most > 1 and most > even * 1.05:
        told = (
            f"{together} programs on {facts.pes} PEs leave PEs without work in the last round, as one has {most} and "
            f"the mean is {even:.1f}"
        )
        if products > 0.5 or even < _LITTLE_MORE:  # rows that are split take as long, and are to be joined
            yield suggested("last-round", f"cut the work into a multiple of {facts.pes} programs", told, gain)
        else:
            yield noted("last-round", told, gain)
    elif gain > 0.25 and facts.slower > 0.25:
        told = f"{facts.last.last} takes {1 + facts.slower:.1f} times as long for the same commands as other PEs"
        yield noted("slow-pe", told, gain)
    elif gain > 0.25 and facts.more_work > 0.2 and facts.share("message") < 0.3 and not (
        _polls(facts)
        or _in_a_tree(facts)
        or facts.collector[0] == facts.last.last
        or facts.work.waiting_ns > 0.3 * facts.last.time_ns  # for others, in turn
    ):
        told = (
            f"PEs take {format_time(facts.mean_ns)} on average, and {facts.last.last}, which has more to do, "
            f"{format_time(facts.last.time_ns)}"
        )
        yield suggested("uneven", "give each PE the same work", told, gain)


def atomics(facts: Facts) -> Iterator[Advice]:
    """Atomics that PEs queue for, with several of a program at one place."""
    share, moved = facts.share("atomic"), facts.moved
    if share > 0.3 and moved.atomics:
        again = moved.atomics_again / moved.atomics
        lines = ", ".join(dict.fromkeys(call.line for call in facts.calls("atomic")))
        told = f"{share:.0%} of the path are atomics ({lines})"
        if again > 0.25 and not _polls(facts):
            told += f", {again:.0%} of them at a place where the same program had one before"
            yield suggested("atomics", "add up in each program first, with one atomic at its end", told, share * again)
        else:
            yield noted("atomics", told, share)


def messages(facts: Facts) -> Iterator[Advice]:
    """PEs that wait for others: for one that takes or sends all messages, or for a later launch."""
    share, late = facts.share("message"), facts.share("late")
    pe, most, together = facts.collector
    if share > 0.3 and most >= 4 and most > together / 2:
        told = (
            f"{share:.0%} of the path is messages between PEs, and {pe} sends or receives {most} times, of "
            f"{together:,} messages, one after the other"
        )
        yield suggested("messages", "pass messages on in a tree", told, share * (1 - math.log2(most + 1) / most))
    elif share > 0.3 and facts.message_bytes < _SHORT:
        size = format_bytes(round(facts.message_bytes))
        yield noted("messages", f"{share:.0%} of the path is messages between PEs, of {size} on average", share)
    elif _loads_for_others(facts):
        told = f"{pe} loads and stores, and sends or receives {most} of {together:,} messages"
        yield noted("messages", told, waits(facts))
    if late > 0.2:
        told = f"for {late:.0%} of the path PEs wait for a launch that begins later on others"
        yield suggested("late-launch", "give ranks equal work before it", told, late)


def in_turn(facts: Facts) -> Iterator[Advice]:
    """PEs that wait for messages, and then do what needed none; or that compute one after the other."""
    path, work, took = facts.last.path, facts.work, facts.last.time_ns or 1.0
    receives = [call for call in path if kind_of(call) == "message" and "send" not in call.call]
    lines = ", ".join(dict.fromkeys(call.line for call in receives))
    computed = sum(call.ns for call in path if kind_of(call) in ("product", "compute"))
    others = (computed - facts.overlap.working_ns) / took if facts.message_bytes else 0.0
    gain = max(min(work.waiting_ns, work.free_ns) / took, others)  # they could do so, too
    gain = min(gain, sum(call.ns for call in receives) / took + max(others, 0.0))  # of what it waits in the end
    if gain > LEAST and min(work.waiting_ns, work.free_ns) > LEAST * took:
        told = (
            f"{facts.last.last} waits {format_time(work.waiting_ns)} for messages, and then loads and computes for "
            f"{format_time(work.free_ns)} what follows from none"
        )
        where = f" ({lines})" if lines else ""
        yield suggested("in-turn", f"do what needs no message before tl.recv{where}", told, gain)
    elif others > 0.25:
        told = f"PEs work in turn: for {others:.0%} of the path {facts.last.last} waits for what others compute before"
        yield noted("in-turn", told + " they send", others)


def around(facts: Facts) -> Iterator[Advice]:
    """Copies, page tables and launches that take longer than kernels."""
    copies, tables = (ns / (facts.total_ns or 1.0) for ns in facts.around_ns)
    if copies + tables > 0.4:
        took = {"host copies take": copies, "telling the MMUs of tensors takes": tables}
        told = " and ".join(f"{what} {share:.0%}" for what, share in took.items() if share > LEAST)
        yield noted("copies", f"{told} of the run, and none of the kernel's time", copies + tables)
    launch = facts.phases["launch"]
    if launch > facts.kernel_ns or (facts.launches > 3 and launch > 0.1 * facts.total_ns):
        than = "longer than the kernel" if launch > facts.kernel_ns else f"{launch / facts.total_ns:.0%} of the run"
        told = f"launching takes {format_time(launch)}, {than}"
        if facts.launches > 1 and not facts.hands_on:  # what one reads of another has to be there
            gain = launch / facts.total_ns * (facts.launches - 1) / facts.all_launches
            change = f"do the work of the {facts.launches} launches of {facts.kernel} in one"
            yield suggested("launch", change, told, gain, "run")
        else:
            yield noted("launch", told, launch / facts.total_ns)


def in_sequence(facts: Facts) -> Iterator[Advice]:
    """Launches that wait for others with which they share no PE, and of which none needs what another one wrote."""
    idle = facts.phases["launch"] + facts.kernel_ns * (1 - facts.busiest_place)
    gain = min(facts.apart_ns, idle) / facts.total_ns if facts.total_ns else 0.0
    told = "launches run one after the other that share no PE, and none uses what another one writes"
    yield suggested("in-sequence", "rt.launch(…, wait=False)", told, gain, "run")
