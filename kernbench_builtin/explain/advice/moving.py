"""Advice on what programs move: where data lies, and when, how often and in which pieces it is loaded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kernbench_builtin.explain.advice.facts import Facts
from kernbench_builtin.explain.advice.moved import Moved
from kernbench_builtin.explain.advice.rule import (
    LARGER,
    LEAST,
    SHARED,
    Advice,
    at_line,
    larger_turns,
    noted,
    own_share,
    suggested,
    waits,
)
from kernbench_core.units import format_bytes

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.kernels import KernelUse

#: Transfers of so many bytes or fewer take mostly latency, where that is most of them.
_SMALL: Final = 8 << 10
#: Where so much of what loads and stores take is translation, those of more bytes have as many pages to look up.
_WALKS: Final = 0.7
#: Wires that are not a memory's own.
_WAYS: Final = ("noc wire", "ucie wire", "io_noc wire", "scale_up wire")
#: So many pages keep slices of HBM busy, where each lies in another.
_PAGES: Final = 64


def _scattered(facts: Facts) -> bool:
    """Whether loads and stores touch pieces of less than a burst, of equal steps."""
    moved = facts.moved
    return moved.pieces > 2 * moved.transfers and moved.short > moved.pieces / 2


def far_data(facts: Facts) -> Iterator[Advice]:
    """Data in the memory of other packages or cubes."""
    share, moved = waits(facts) + facts.share("atomic") + facts.share("composite"), facts.moved
    if not moved.nbytes or share < 0.3:
        return
    package, own = min(1.0, moved.package_ns / moved.ns), moved.as_own_ns / (moved.package_ns or 1.0)
    saved = share * package * (1 - own)
    cube = moved.cube / moved.nbytes
    if saved > 0.1:
        yield from _far_package(facts, saved)
    elif share * cube > 0.2:
        told = f"{cube:.0%} of the bytes of loads and stores come from or go to another cube"
        slower = 1 - moved.as_near_ns / moved.far_ns if moved.far_ns else 0.5
        gain = share * slower * min(1.0, moved.far_ns / moved.ns) if moved.far_ns else 0.4 * share * cube
        shared = own_share(facts) < SHARED
        if facts.triton or (not shared and moved.owned < moved.cube / 2):  # a gather has no place that is near
            yield noted("far-cube", told, gain)
        else:
            way = "give each cube a copy (placement={'cube': kb.Replicate(), …}; the host copies more)"
            way = way if shared else "place tensors so that each PE reads its own cube's HBM (placement=kb.Shard(…))"
            yield suggested("far-cube", way, told, gain)


def _far_package(facts: Facts, saved: float) -> Iterator[Advice]:
    """Data in other packages, without which such a share of the time would go."""
    moved = facts.moved
    share = moved.package / moved.nbytes
    told = f"{share:.0%}" if share > 0.01 else "few"
    told += " of the bytes of loads and stores come from or go to another package"
    if moved.package < moved.nbytes / 4:
        told += f", which is {min(1.0, moved.package_ns / moved.ns):.0%} of the time of these"
    rounds = math.ceil(facts.programs[1] * facts.packages / facts.all_pes) / max(facts.programs[0], 1)
    gain = 1 - rounds * (1 - saved)  # at least: what is not far takes less than so many times as long
    gain = facts.in_launches(gain)[1]  # others may have more rounds
    shared = own_share(facts) < SHARED
    owned = not shared and moved.owned_package > moved.package / 2
    one = "one package (--device sip:0)" if facts.packages > 1 else "place tensors in the package of the device"
    if owned and not facts.triton and facts.packages > 1:
        change = "place tensors in the package of the PEs that use them"
        yield suggested("far-package", change, told, saved)
    elif gain > LEAST:
        at_most = 1 - facts.packages * (1 - facts.above_roof)  # the roof of one package
        yield suggested("far-package", one, told, min(gain, at_most))
    elif shared and not facts.triton:
        way = "give each package a copy (placement={'sip': kb.Replicate(), …}; the host copies more)"
        yield suggested("far-package", way, told, saved)
    else:  # of what all write and read no place is near
        yield noted("far-package", told, saved)


def not_ahead(facts: Facts) -> Iterator[Advice]:
    """Loads, again and again, that nothing is computed under; of two there is but one to go ahead."""
    overlap, (load, turns), (line, why, of_loop) = facts.overlap, facts.turns("load"), facts.waiting
    ahead = 1 - 2 / max(of_loop, 2.0) if of_loop else 1 - 1 / max(turns, 1.0)  # Triton's loops learn from two turns
    every = min(overlap.late_ns, overlap.working_ns)
    most = every * ahead
    could = (most - overlap.hidden_ns) / overlap.time_ns if overlap.time_ns else 0.0
    ways = sum(facts.least_ns.values()) / (overlap.time_ns or 1.0)  # of the first load, and the last store
    could = min(could, 1 - facts.busiest_place - ways)
    if facts.share("load") < 0.15 or overlap.times <= 2 or overlap.hidden_ns > every / 4:
        return
    told = (
        f"units work under loads for {overlap.hidden_ns / overlap.time_ns:.0%} of the time, and could for "
        f"{most / overlap.time_ns:.0%}"
    )
    if facts.mixed and line not in {call.line for call in facts.path}:  # it is another kernel's
        line, why = "", ""
    if line:
        told = f"tl.load at {line} is not under way before its iteration, as {why}: {told}"
    if facts.triton and "num_stages" in why and not line:
        yield suggested("loads-ahead", "num_stages=3", f"{why}; {told}", could)
    elif facts.triton or turns <= 2 or facts.reads or facts.share("message") > 0.1 or facts.loads_stored:
        yield noted("loads-ahead", told, could)
    else:
        change = f"issue tl.load{at_line(load)} one turn of its loop earlier, with wait=False"
        yield suggested("loads-ahead", change, told, could)


def moved_again(facts: Facts) -> Iterator[Advice]:
    """What a program loads although it had it before, where the scratchpad has room for all that it loads."""
    moved, (most, room) = facts.moved, facts.scratchpad
    share = moved.again / moved.loaded if moved.loaded else 0.0
    each = (moved.loaded - moved.again) / max(facts.pes, 1)
    gain = min(facts.share("load") * moved.again_ns / (moved.loads_ns or 1.0), _of_fewer(facts, moved.again_bursts))
    least = 2 * LEAST if facts.triton else LEAST  # whose loops bring tiles ahead, which one that keeps them does not
    if share > 0.2 and facts.calls("load") and each < room - most and gain > least:
        told = (
            f"{share:.0%} of what programs load they had loaded before, and {format_bytes(room - most)} of the "
            f"scratchpad are free for {format_bytes(round(each))}"
        )
        lines = " or ".join(dict.fromkeys(call.line for call in facts.calls("load")))
        change = f"load before the loop what tl.load ({lines}) loads again and again, and keep it"
        if max(call.commands for call in facts.calls("load")) <= facts.launches * facts.own_programs:  # in no loop
            change = f"keep what tl.load ({lines}) loads again"
        yield suggested("moved-again", change, told, gain)


def _of_fewer(facts: Facts, bursts: float) -> float:
    """Return what is gained at most where so many bursts do not move: the busiest channel has the others."""
    memory = None if facts.mixed else facts.use("hbm_ctrl channel")
    return 1.0 if memory is None else 1 - memory.utilisation * (1 - bursts / max(facts.moved.bursts, 1))


def stored_before(facts: Facts) -> Iterator[Advice]:
    """What a PE loads as it stored it before, where the scratchpad has room for it."""
    moved, (most, room) = facts.moved, facts.scratchpad
    share, each = moved.back / moved.loaded if moved.loaded else 0.0, moved.back / max(facts.pes, 1)
    gain = (facts.share("load") + facts.share("composite") / 2) * share
    gain = min(gain, _of_fewer(facts, moved.back / moved.burst))
    if share > 0.2 and each < room - most:
        calls = facts.calls("load") or facts.calls("composite")
        lines = " or ".join(dict.fromkeys(call.line for call in calls))
        told = (
            f"{share:.0%} of what PEs load they had stored before, and {format_bytes(room - most)} of the "
            f"scratchpad are free for {format_bytes(round(each))}"
        )
        if calls:
            change = f"keep in the scratchpad what {calls[0].call} ({lines}) brings back"
            yield suggested("stored-before", change, told, gain)


def between_launches(facts: Facts) -> Iterator[Advice]:
    """What a PE loads in one launch as it stored it in another, where the scratchpad has room for it."""
    moved, (most, room) = facts.moved, facts.scratchpad
    share, each = moved.between / (moved.loaded_ever or 1), moved.between / max(facts.pes, 1)
    if share > 0.3 and each < room - most:
        told = (
            f"{share:.0%} of what PEs load they had stored in another launch, and {format_bytes(room - most)} of the "
            f"scratchpad are free for {format_bytes(round(each))}"
        )
        change = "do the work of these launches in one, keep what is handed on, and send other PEs what they need"
        yield suggested("between-launches", change, told, waits(facts) * share)


def small_transfers(facts: Facts) -> Iterator[Advice]:
    """Loads and stores of scattered bytes, or of so few that they take latency."""
    moved, share = facts.moved, waits(facts)
    if not moved.transfers or share < 0.3:
        return
    used = facts.distinct / facts.burst_bytes if facts.burst_bytes else 1.0
    if max(moved.repeated, moved.backward) > moved.short / 2 and _scattered(facts):
        yield from _by_element(facts)
    elif used < 0.5:
        told = f"{used:.0%} of the bytes of each burst of HBM ({moved.burst} B) are used, by any program"
        gain = share * (1 - used) * (1 - facts.latency)  # the way there and back stays
        if _scattered(facts):
            change = "lay out together in memory what a program loads together (an array for each field of structs)"
            yield suggested("scattered", change, told, gain)
        else:
            yield noted("scattered", told, gain)
    elif _scattered(facts):
        yield from _in_pieces(facts)
    if facts.trips["translation"] > _WALKS * sum(facts.trips.values()):
        yield noted("page-walks", "loads and stores mostly wait until their pages are found (pe_mmu)", share)
    elif facts.latency > 0.5:
        yield from _short(facts, share)


def _by_element(facts: Facts) -> Iterator[Advice]:
    """Loads of one address for many elements, or of elements in the other order, which have a piece for each."""
    gain, call = facts.share("load") * (1 - facts.stays("load")), next(iter(facts.calls("load")), None)
    if facts.moved.repeated > facts.moved.backward:
        told, way = "the same bytes for one element after the other", "load each address once, and broadcast it there"
    else:
        gain *= 1 - facts.moved.of_burst
        told, way = "elements backwards, one by one", "load them as they lie in memory, and turn them with tl.flip"
    yield suggested("scattered", way, f"tl.load{at_line(call)} brings {told}", gain)


def _in_pieces(facts: Facts) -> Iterator[Advice]:
    """Short pieces of equal steps; the way there and back of a transfer stays, whatever they are."""
    moved, piece = facts.moved, round(facts.moved.of_burst * facts.moved.burst)
    told = f"loads and stores touch pieces of {format_bytes(piece)}"
    loads, stores = (facts.share(kind) * facts.of_bytes(kind) * (1 - moved.of_burst) for kind in ("load", "store"))
    gain = loads + stores
    if moved.near > moved.short / 2:  # one load of all that lies between brings more bytes, and has to be taken apart
        yield noted("scattered", f"{told}, one near the other", gain)
        return
    if moved.folded_stores > moved.short / 2:
        gain, way = stores, "turn the tile with tl.trans, and store it as it lies in memory, row by row"
    elif moved.folded > moved.short / 2:
        gain, way = loads, "load the tile as it lies in memory, row by row, and turn it with tl.trans"
    elif facts.programs[1] * piece >= facts.all_pes * moved.burst:
        times = max(2, moved.burst // max(piece, 1))
        way = f"blocks of {times} times as many neighbours along the dimension that lies together"
    else:  # which would leave PEs without a program
        way = "lay out the array so that what a program loads lies together (transpose it once)"
    yield suggested("scattered", way, told, gain)


def _short(facts: Facts, share: float) -> Iterator[Advice]:
    """Transfers of few chunks each that a PE makes one after the other."""
    moved, (most, room) = facts.moved, facts.scratchpad
    each = moved.nbytes / moved.transfers
    kinds = sorted(("load", "store"), key=lambda kind: -facts.share(kind))
    call, turns = facts.turns(kinds[0])
    if call is None or each > _SMALL or facts.round_trips > 4 * moved.transfers or LARGER * most > room:
        return
    told = f"a load or store moves {format_bytes(round(each))} on average, which is mostly latency"
    gain = share * facts.latency * (1 - 1 / LARGER)
    few = facts.overlap.hidden_ns > 0 and turns <= LARGER**2  # fewer of them hardly load ahead any more
    if facts.loads_stored or few:  # a turn may need what the one before stored
        yield noted("small-transfers", told, gain)
    elif min(turns, facts.moves_on) >= LARGER:
        told += f", and a program waits for {turns:,.0f} of {call.call}{at_line(call)} one after the other"
        yield suggested("small-transfers", larger_turns(facts), told, gain)
    elif facts.own_programs >= LARGER:
        told += f", and a PE has {facts.own_programs:,} programs, one after the other"
        constant = " (a tl.constexpr)" if facts.triton else ""
        yield suggested("small-transfers", f"programs with blocks of {LARGER} times as many rows{constant}", told, gain)


def hot_place(facts: Facts) -> Iterator[Advice]:
    """One channel or wire that is much busier than others of its kind."""
    for kind, change in (
        ("hbm_ctrl channel", "" if facts.triton else "placement=kb.Interleave(4096) for the tensor there"),
        ("ucie wire", "place data in the cube of the programs that use it"),
        ("scale_up wire", "send over the links that have less to do (kernbench ccl … --algo all: who is fastest)"),
    ):
        use: KernelUse | None = facts.use(kind)
        least = 1.5 if kind == "scale_up wire" else 2  # of links there are those the other way
        if use is None or use.alike < 2 or use.utilisation < max(0.5, least * use.mean_utilisation):
            continue
        if kind == "scale_up wire" and facts.share("message") < 0.3:  # what is loaded goes where its data lies
            continue
        mean = use.mean_utilisation
        told = f"{use.name} is busy {use.utilisation:.0%} of the time, {kind}s are {mean:.0%} on average"
        gain = use.utilisation - mean
        if kind != "scale_up wire":  # what is waited for, and not under what units do, is what queues there
            gain = min(gain, facts.queued, facts.above_roof)
        if kind == "hbm_ctrl channel":
            ways = (use.utilisation for use in facts.busiest if use.kind in _WAYS)  # what lies elsewhere comes by these
            gain = min(gain * _spread(facts.moved), 1 - max(ways, default=0.0))
        if change and gain > LEAST:
            yield suggested("hot-place", change, told, gain)
        else:
            yield noted("hot-place", told, use.utilisation - mean)


def _spread(moved: Moved) -> float:
    """Return which part is gained, about, where what lies in the busiest slice of HBM goes to others in blocks."""
    if moved.hot_times < 1.5 or moved.hot_pages <= 1:  # one channel of each slice is busy, or there is but one block
        return 0.0
    return min(1.0, math.log2(moved.hot_pages) / math.log2(_PAGES))
