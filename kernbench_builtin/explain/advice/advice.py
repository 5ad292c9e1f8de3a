"""What to try, read from the figures of a run: rules, each of one change and its evidence, the most promising first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from kernbench_builtin.explain.advice.facts import Facts, kind_of
from kernbench_builtin.explain.advice.moved import BURST
from kernbench_core.units import format_bytes, format_time

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.kernels import KernelUse
    from kernbench_builtin.machines.figures.launch import PathCall

FACT: Final = "fact"
"""What advice is about that names a cause, and no change of which it is known that it gains."""
#: What gains less by its estimate is not worth a line.
_LEAST: Final = 0.08
#: Transfers of so many bytes or fewer take mostly latency, where that is most of them.
_SMALL: Final = 8 << 10
#: Where less of what programs move is moved by one alone, they share it.
_SHARED: Final = 0.7
#: Blocks are to be so many times as large, at most.
_LARGER: Final = 4


@attrs.frozen
class Advice:
    """Say what to try and why: `rule` names it, `gain` is the share of the time that it could save, an upper bound.

    `about` is "kernel", "run" for what happens around kernels, or "fact" for what nothing is advised of.
    """

    rule: str
    sentence: str
    gain: float
    about: str = "kernel"

    @property
    def line(self) -> str:
        """The line of a verdict that says it."""
        return f"{'note' if self.about == FACT else 'try'}: {self.sentence}"


Rule = Callable[[Facts], Iterator[Advice]]


def advise(facts: Facts) -> tuple[Advice, ...]:
    """Return what the rules say of a run, what could gain most first; then what is about the run, and facts."""
    found = [each for rule in RULES for each in rule(facts) if each.gain >= _LEAST]
    kinds = ("kernel", "run", FACT)
    return tuple(sorted(found, key=lambda each: (kinds.index(each.about), -each.gain, each.rule)))


def _try(rule: str, change: str, evidence: str, gain: float, about: str = "kernel") -> Advice:
    gain = min(gain, 0.95)
    return Advice(rule, f"{change}: {evidence}; about {gain:.0%} less time.", gain, about)


def _note(rule: str, evidence: str, gain: float) -> Advice:
    return Advice(rule, f"{evidence}.", gain, FACT)


def _line(call: PathCall | None) -> str:
    return "" if call is None or not call.line else f" ({call.line})"


def _waits(facts: Facts) -> float:
    """The share of the path of loads and stores."""
    return facts.share("load") + facts.share("store")


def _own_share(facts: Facts) -> float:
    """Return which share of what programs move no other program moves, about."""
    return min(1.0, facts.distinct / facts.moved.nbytes) if facts.moved.nbytes else 1.0


def _scattered(facts: Facts) -> bool:
    """Whether loads and stores touch pieces of less than a burst, of equal steps."""
    moved = facts.moved
    return moved.pieces > 2 * moved.transfers and moved.short > moved.pieces / 2


def idle_pes(facts: Facts) -> Iterator[Advice]:
    """PEs without a program; what all programs load, and a way there and back, is not divided among more of them."""
    if facts.busy_pes >= facts.all_pes:
        return
    trips = facts.trips
    together = sum(trips.values()) or 1.0
    divided = (trips["serialisation"] + trips["service"]) / together, trips["queueing"] / together
    own = _own_share(facts)
    of_loads = divided[0] * own + divided[1] * (2 * own - 1)
    _, turns = facts.turns("load")
    if turns > 2 and own > 0.5:  # a loop over its own data is divided, with its ways there and back
        of_loads = max(of_loads, 1 - 1 / turns)
    parts = facts.share("product") + facts.share("compute") + facts.share("composite") + facts.share("issue")
    gain = (1 - facts.busy_pes / facts.all_pes) * (parts + _waits(facts) * of_loads + facts.share("atomic"))
    have = "has" if facts.busy_pes == 1 else "have"
    told = f"{facts.busy_pes} of {facts.all_pes} PEs {have} a program"
    if gain > 0.15 and facts.all_pes >= 2 * facts.busy_pes:  # else parts would be uneven, and lie badly in memory
        yield _try("idle-pes", f"cut the work into {facts.all_pes} programs", told, gain)
    else:
        yield _note("idle-pes", told, 1 - facts.busy_pes / facts.all_pes)


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
        if products > 0.5:  # rows that are split take as long, and are to be joined
            yield _try("last-round", f"cut the work into a multiple of {facts.pes} programs", told, gain)
        else:
            yield _note("last-round", told, gain)
    elif gain > 0.25 and facts.more_work > 0.1 and facts.share("message") < 0.3:  # else it waits for others
        told = (
            f"PEs take {format_time(facts.mean_ns)} on average, and {facts.last.last}, which has more to do, "
            f"{format_time(facts.last.time_ns)}"
        )
        yield _try("uneven", "give each PE the same work", told, gain)


def far_data(facts: Facts) -> Iterator[Advice]:
    """Data in the memory of other packages or cubes."""
    waits, moved = _waits(facts) + facts.share("atomic") + facts.share("composite"), facts.moved
    if not moved.nbytes or waits < 0.3:
        return
    package, cube = moved.package / moved.nbytes, moved.cube / moved.nbytes
    slower = 1 - moved.as_near_ns / moved.far_ns if moved.far_ns else 0.5
    if package > 0.1:
        slower = max(slower, 0.5)  # of a tensor in pieces only where it begins is known
        told = f"{package:.0%} of the bytes of loads and stores come from or go to another package"
        rounds = math.ceil(facts.programs[1] * facts.packages / facts.all_pes) / max(facts.programs[0], 1)
        gain = 1 - rounds * (1 - waits * slower * min(1.0, 2 * package))
        if gain > 0.1:
            one = "one package (--device sip:0)" if facts.packages > 1 else "place tensors in the package of the device"
            yield _try("far-package", one, told, gain)
        elif not facts.triton:
            change = "give each package a copy (placement={'sip': kb.Replicate(), …})"
            change = change if _own_share(facts) < _SHARED else "place tensors in the package of the PEs that use them"
            yield _try("far-package", change, told, waits * slower * package)
        else:
            yield _note("far-package", told, waits * package)
    elif waits * cube > 0.2:
        told = f"{cube:.0%} of the bytes of loads and stores come from or go to another cube"
        gain = waits * slower * min(1.0, moved.far_ns / moved.ns) if moved.far_ns else 0.4 * waits * cube
        if facts.triton:
            yield _note("far-cube", told, gain)
        else:
            way = "give each cube a copy (placement={'cube': kb.Replicate(), …})"
            way = way if _own_share(facts) < _SHARED else (
                "place tensors so that each PE reads its own cube's HBM (placement=kb.Shard(…))"
            )  # fmt: skip
            yield _try("far-cube", way, told, gain)


def not_ahead(facts: Facts) -> Iterator[Advice]:
    """Loads, again and again, that nothing is computed under; of two there is but one to go ahead."""
    overlap = facts.overlap
    most = min(overlap.late_ns, overlap.working_ns)
    could = (most - overlap.hidden_ns) / overlap.time_ns if overlap.time_ns else 0.0
    memory = facts.use("hbm_ctrl channel")
    full = memory is not None and memory.mean_utilisation > 0.6
    load, turns = facts.turns("load")
    if facts.share("load") < 0.15 or overlap.times <= 2 or full or overlap.hidden_ns > most / 4:
        return
    told = (
        f"units work under loads for {overlap.hidden_ns / overlap.time_ns:.0%} of the time, and could for "
        f"{most / overlap.time_ns:.0%}"
    )
    line, why = facts.waiting
    if line:
        told = f"tl.load at {line} is not under way before its iteration, as {why}: {told}"
    if facts.triton and why and not line:
        change = "num_stages=3" if "num_stages" in why else "drop --no-pipeline-loops"
        yield _try("loads-ahead", change, f"{why}; {told}", could)
    elif facts.triton or turns <= 2 or facts.reads or facts.share("message") > 0.1:
        yield _note("loads-ahead", told, could)
    else:
        change = f"issue tl.load{_line(load)} one turn of its loop earlier, with wait=False"
        yield _try("loads-ahead", change, told, could)


def moved_again(facts: Facts) -> Iterator[Advice]:
    """What a program loads although it had it before, where the scratchpad has room for all that it loads."""
    moved, (most, room) = facts.moved, facts.scratchpad
    share = moved.again / moved.loaded if moved.loaded else 0.0
    each = (moved.loaded - moved.again) / max(facts.pes, 1)
    load, _ = facts.turns("load")
    gain = facts.share("load") * share
    least = 2 * _LEAST if facts.triton else _LEAST  # whose loops bring tiles ahead, which one that keeps them does not
    if share > 0.2 and load is not None and each < room - most and gain > least:
        told = (
            f"{share:.0%} of what programs load they had loaded before, and {format_bytes(room - most)} of the "
            f"scratchpad are free for {format_bytes(round(each))}"
        )
        change = f"load before the loop what tl.load{_line(load)} loads again and again, and keep it"
        yield _try("moved-again", change, told, gain)


def small_transfers(facts: Facts) -> Iterator[Advice]:
    """Loads and stores of scattered bytes, or of so few that they take latency."""
    moved, waits = facts.moved, _waits(facts)
    if not moved.transfers or waits < 0.3:
        return
    used = facts.distinct / facts.burst_bytes if facts.burst_bytes else 1.0
    if used < 0.5:
        told = f"{used:.0%} of the bytes of each burst of HBM ({BURST} B) are used, by any program"
        gain = waits * (1 - used)
        if _scattered(facts):
            yield _try("scattered", "lay out an array for each field, instead of structs", told, gain)
        else:
            yield _note("scattered", told, gain)
    elif _scattered(facts) and not (moved.near > moved.short / 2 and facts.latency > 0.5):  # these take no longer
        piece = round(moved.nbytes / moved.pieces)
        told, gain = f"loads and stores touch pieces of {format_bytes(piece)}", waits * (1 - piece / BURST)
        if moved.near > moved.short / 2:
            gain = facts.share("load") * (1 - facts.latency) / 2
            way = "load all that lies between, in one tl.load, and take it apart there (tl.reshape, tl.split)"
        elif moved.folded > moved.short / 2:
            way = "load the tile as it lies in memory, row by row, and turn it with tl.trans"
        elif facts.programs[1] * piece >= facts.all_pes * BURST:
            way = f"blocks of {BURST // max(piece, 1)} neighbours or more along the dimension that lies together"
        else:  # which would leave PEs without a program
            way = "lay out the array so that what a program loads lies together (transpose it once)"
        yield _try("scattered", way, told, gain)
    elif facts.latency > 0.5:
        yield from _short(facts, waits)


def _short(facts: Facts, waits: float) -> Iterator[Advice]:
    """Transfers of few chunks each that a PE makes one after the other."""
    moved, (most, room) = facts.moved, facts.scratchpad
    each = moved.nbytes / moved.transfers
    kinds = sorted(("load", "store"), key=lambda kind: -facts.share(kind))
    call, turns = facts.turns(kinds[0])
    if call is None or each > _SMALL or facts.round_trips > 4 * moved.transfers or _LARGER * most > room:
        return
    told = f"a load or store moves {format_bytes(round(each))} on average, which is mostly latency"
    gain = waits * facts.latency * (1 - 1 / _LARGER)
    if turns >= _LARGER:
        told += f", and a program waits for {turns:,.0f} of {call.call}{_line(call)} one after the other"
        yield _try("small-transfers", f"a loop with {_LARGER} times as much in each turn", told, gain)
    elif facts.own_programs >= _LARGER:
        told += f", and a PE has {facts.own_programs:,} programs, one after the other"
        yield _try("small-transfers", f"programs with blocks of {_LARGER} times as many rows", told, gain)


def masked(facts: Facts) -> Iterator[Advice]:
    """Blocks of which masks leave much out."""
    share, computes = facts.moved.masked, facts.share("compute") * facts.vector_work
    if share > 0.3:
        told = f"masks leave out {share:.0%} of the elements of blocks, which are computed all the same"
        if computes * share > 3 * _LEAST:  # less is lost in start-up: 15 % of an estimate gave nothing
            change = f"blocks of {1 - share:.0%} of their elements, to fit the shape"
            yield _try("masked", change, told, computes * share)
        else:
            yield _note("masked", told, share)


def small_tiles(facts: Facts) -> Iterator[Advice]:
    """Arrays that are hardly filled, though tiles could be larger."""
    fill, share = facts.fill, facts.share("product")
    if fill is None or share < 0.3 or fill.lost < 0.5:
        return
    product, turns = facts.turns("product")
    products = facts.products
    if fill.filling_ns > fill.unfilled_ns:
        told = f"{fill.kind} starts, fills and drains for {fill.filling_ns / fill.busy_ns:.0%} of its time at work"
        gain = share * fill.filling_ns / fill.busy_ns * (1 - 1 / _LARGER)
        if products.adds and turns >= _LARGER and facts.share("compute") < 0.1:
            yield _try("small-tiles", f"a BLOCK_K {_LARGER} times as large for {_called(product)}", told, gain)
        elif products.rows < products.rows_at_most and turns >= _LARGER and facts.share("compute") < 0.1:
            change = f"{_LARGER} times as many rows in each {_called(product)}, in a quarter of the turns"
            yield _try("small-tiles", change, told, gain)
        else:
            yield _note("small-tiles", told, gain)
    elif products.rows < products.rows_at_most:
        told = f"{fill.unfilled_ns / fill.busy_ns:.0%} of the cells of {fill.kind} have no element"
        if turns >= 2 or facts.own_programs >= 2:
            told += f", as products have {products.rows} rows at most"
            change = f"twice as many rows in each {_called(product)}, and half as many of them"
            yield _try("small-tiles", change, told, share * fill.unfilled_ns / fill.busy_ns / 2)
        else:
            yield _note("small-tiles", told, share)


def _called(call: PathCall | None) -> str:
    return "product" if call is None else f"{call.call}{_line(call)}"


def hot_place(facts: Facts) -> Iterator[Advice]:
    """One channel or wire that is much busier than others of its kind."""
    place = "--placement interleaved" if facts.triton else "placement=kb.Interleave(4096) for the tensor there"
    for kind, way in (
        ("hbm_ctrl channel", place),
        ("ucie wire", "place data in the cube of the programs that use it"),
        ("scale_up wire", "send over the links that have less to do (kernbench ccl … --algo all: who is fastest)"),
    ):
        use: KernelUse | None = facts.use(kind)
        least = 1.5 if kind == "scale_up wire" else 2  # of links there are those the other way
        if use is not None and use.utilisation > max(0.5, least * use.mean_utilisation) and use.alike > 1:
            told = (
                f"{use.name} is busy {use.utilisation:.0%} of the time, {use.kind}s are {use.mean_utilisation:.0%} on "
                "average"
            )
            gain = use.utilisation - use.mean_utilisation
            yield _try("hot-place", way, told, gain)


def divisions(facts: Facts) -> Iterator[Advice]:
    """A vector unit that divides much."""
    calls = [call for call in facts.calls("compute") if call.call == "tl.div" and call.commands]
    share = sum(call.ns for call in calls) / facts.path_ns if facts.path_ns else 0.0
    if not calls or share < 0.1:
        return
    worst = calls[0]
    told = f"divisions take {share:.0%} of the path, {format_time(worst.ns / worst.commands)} each"
    saved = facts.divisions
    if saved.once > saved.sigmoid:
        change = f"compute 1 / divisor once and multiply by it{_line(worst)}"
        yield _try("vector-unit", change, told, saved.once / facts.path_ns)
    elif saved.sigmoid:
        change = f"write 1 / (1 + exp(-x)) as tl.sigmoid(x){_line(worst)}"
        yield _try("vector-unit", change, told, saved.sigmoid / facts.path_ns)


def issue(facts: Facts) -> Iterator[Advice]:
    """A PE's CPU that limits."""
    share = facts.share("issue")
    if share > 0.3:
        told = f"the PE's CPU takes {share:.0%} of the path, to issue commands and to read elements"
        if facts.reads:
            yield _note("issue", told, 0.5 * share)
        else:
            yield _try("issue", f"blocks {_LARGER} times as large", told, share * (1 - 1 / _LARGER))


def atomics(facts: Facts) -> Iterator[Advice]:
    """Atomics that PEs queue for, with several of a program at one place."""
    share, moved = facts.share("atomic"), facts.moved
    if share > 0.3 and moved.atomics:
        again = moved.atomics_again / moved.atomics
        lines = ", ".join(dict.fromkeys(call.line for call in facts.calls("atomic")))
        told = f"{share:.0%} of the path are atomics ({lines})"
        if again > 0.25:
            told += f", {again:.0%} of them at a place where the same program had one before"
            yield _try("atomics", "add up in each program first, with one atomic at its end", told, share * again)
        else:
            yield _note("atomics", told, share)


def messages(facts: Facts) -> Iterator[Advice]:
    """PEs that wait for others: for one that takes or sends all messages, for work in turn, for a later launch."""
    share, late = facts.share("message"), facts.share("late")
    pe, most, together = facts.collector
    if share > 0.3 and most >= 4 and most > together / 2:
        told = (
            f"{share:.0%} of the path is messages between PEs, and {pe} sends or receives {most} of {together:,}, one "
            "after the other"
        )
        yield _try("messages", "pass messages on in a tree", told, share * (1 - math.log2(most + 1) / most))
    path = facts.last.path
    computed = sum(call.ns for call in path if kind_of(call) in ("product", "compute"))
    others = (computed - facts.overlap.working_ns) / facts.last.time_ns if facts.last.time_ns else 0.0
    if others > 0.25:
        lines = ", ".join(dict.fromkeys(call.line for call in path if kind_of(call) == "message"))
        told = f"PEs work in turn: for {others:.0%} of the path {facts.last.last} waits for what others compute before"
        change = f"compute what needs no message before tl.recv ({lines})"
        yield _try("in-turn", change, told + " they send", others)
    if late > 0.2:
        told = f"for {late:.0%} of the path PEs wait for a launch that begins later on others"
        yield _try("late-launch", "give ranks equal work before it", told, late)


def around(facts: Facts) -> Iterator[Advice]:
    """Copies and launches that take longer than kernels."""
    copies = facts.phases["host_to_device"] + facts.phases["device_to_host"]
    share = copies / facts.total_ns if facts.total_ns else 0.0
    if share > 0.5:
        what = "host copies take" if facts.copied else "telling the device's page tables where tensors lie takes"
        yield _note("copies", f"{what} {share:.0%} of the run, and none of the kernel's time", share)
    launch = facts.phases["launch"]
    if launch > facts.kernel_ns:
        told = f"launching takes {format_time(launch)}, longer than the kernel"
        if facts.launches > 1:
            gain = launch / facts.total_ns * (1 - 1 / facts.launches)
            change = f"the work of the {facts.launches} launches of {facts.kernel} in one"
            yield _try("launch", change, told, gain, "run")
        else:
            yield _note("launch", told, launch / facts.total_ns)


RULES: Final[tuple[Rule, ...]] = (
    idle_pes, uneven, far_data, not_ahead, moved_again, small_transfers, masked, small_tiles, hot_place, divisions,
    issue, atomics, messages, around,
)  # fmt: skip
"""All of them, in no order."""
