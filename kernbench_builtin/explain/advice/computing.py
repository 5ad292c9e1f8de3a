"""Advice on what units compute: blocks and tiles, quotients, and the CPU that issues commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kernbench_builtin.explain.advice.facts import Facts
from kernbench_builtin.explain.advice.rule import LARGER, LEAST, Advice, at_line, larger_turns, noted, suggested
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import PathCall

#: A tile of so many multiplications takes longer than its way.
_FEW_PRODUCTS: Final = 64 * 64 * 64


def masked(facts: Facts) -> Iterator[Advice]:
    """Blocks of which masks leave much out."""
    share, computes = facts.moved.masked, facts.share("compute") * (1 - facts.vectors.starting)
    if share > 0.3:
        told = f"masks leave out {share:.0%} of the elements of blocks, which are computed all the same"
        if computes * share > 3 * LEAST:  # less is lost in start-up: 15 % of an estimate gave nothing
            change = f"blocks of {1 - share:.0%} of their elements, to fit the shape"
            yield suggested("masked", change, told, computes * share)
        else:
            yield noted("masked", told, share)


def small_tiles(facts: Facts) -> Iterator[Advice]:
    """Arrays that are hardly filled, though tiles could be larger."""
    fill, share = facts.fill, facts.share("product")
    if fill is None or share < 0.3 or fill.lost < 0.5:
        return
    product, turns = facts.turns("product")
    products = facts.products
    if fill.filling_ns > fill.unfilled_ns:
        told = f"{fill.kind} starts, fills and drains for {fill.filling_ns / fill.busy_ns:.0%} of its time at work"
        gain = share * fill.filling_ns / fill.busy_ns * (1 - 1 / LARGER)
        if products.adds and turns >= LARGER and facts.share("compute") < 0.1:
            yield suggested("small-tiles", f"a BLOCK_K {LARGER} times as large for {_called(product)}", told, gain)
        elif products.rows < products.rows_at_most and turns >= LARGER and facts.share("compute") < 0.1:
            change = f"{LARGER} times as many rows in each {_called(product)}, in a quarter of the turns"
            yield suggested("small-tiles", change, told, gain)
        else:
            yield noted("small-tiles", told, gain)
    elif products.rows < products.rows_at_most:
        told = f"{fill.unfilled_ns / fill.busy_ns:.0%} of the cells of {fill.kind} have no element"
        if turns >= 2 or facts.own_programs >= 2:
            told += f", as products have {products.rows} rows at most"
            change = f"twice as many rows in each {_called(product)}, and half as many of them"
            yield suggested("small-tiles", change, told, share * fill.unfilled_ns / fill.busy_ns / 2)
        else:
            yield noted("small-tiles", told, share)


def small_composites(facts: Facts) -> Iterator[Advice]:
    """Composites of tiles so small that these mostly wait for their way."""
    share, of_tile = facts.share("composite"), facts.products.of_tile
    if share > 0.5 and 0 < of_tile < _FEW_PRODUCTS and facts.latency > 0.3:
        called = facts.calls("composite")[0]
        told = (
            f"tiles have {of_tile:,.0f} multiplications on average, and {facts.latency:.0%} of their ways is latency"
        )
        gain = share * facts.latency * (1 - 1 / LARGER)
        if facts.latency > 0.5:
            yield suggested("small-tiles", f"tiles {LARGER} times as large in {_called(called)}", told, gain)
        else:  # tiles may wait for it at the same time
            yield noted("small-tiles", told, gain)


def _called(call: PathCall | None) -> str:
    return "product" if call is None else f"{call.call}{at_line(call)}"


def divisions(facts: Facts) -> Iterator[Advice]:
    """A vector unit that divides much."""
    calls = [call for call in facts.calls("compute") if call.call == "tl.div" and call.commands]
    share = sum(call.ns for call in calls) / facts.path_ns if facts.path_ns else 0.0
    if not calls or share < 0.1:
        return
    worst, computes = calls[0], facts.share("compute")
    told = f"divisions take {share:.0%} of the path, {format_time(worst.ns / worst.commands)} each"
    issued = facts.share("issue") * sum(call.commands for call in calls) / sum(call.commands for call in facts.path)
    once = computes * facts.vectors.quotients - (issued if facts.vectors.more_ops else 0.0)
    if facts.vectors.quotients > facts.vectors.sigmoids:
        change = f"compute 1 / divisor once and multiply by it{at_line(worst)}"
        yield suggested("vector-unit", change, told, once)
    elif facts.vectors.sigmoids:
        change = f"write 1 / (1 + exp(-x)) as tl.sigmoid(x){at_line(worst)}"
        yield suggested("vector-unit", change, told, computes * facts.vectors.sigmoids)


def small_ops(facts: Facts) -> Iterator[Advice]:
    """Vector ops of so few elements that they mostly start up."""
    share, starting = facts.share("compute"), facts.vectors.starting
    call, turns = facts.turns("compute")
    most, room = facts.scratchpad
    if share < 0.3 or starting < 0.4 or call is None or LARGER * most > room:
        return
    told = f"vector units start up for {starting:.0%} of their time at work, as each op has few elements"
    gain = share * starting * (1 - 1 / LARGER)
    if facts.own_programs >= LARGER:
        yield suggested("small-ops", f"programs with blocks {LARGER} times as large", told, gain)
    elif min(turns, facts.moves_on) >= LARGER:
        change = f"{larger_turns(facts)}, for {call.call}{at_line(call)}"
        yield suggested("small-ops", change, told, gain)


def by_hand(facts: Facts) -> Iterator[Advice]:
    """Products that vector units add up, which matrix units are for."""
    gain = facts.share("compute") * facts.vectors.by_hand
    if gain > 2 * LEAST:
        sums = [call for call in facts.calls("compute") if call.call in ("tl.sum", "tl.mul")]
        told = f"vector units multiply and add up {facts.vectors.added} products for each element"
        yield suggested("by-hand", f"tl.dot for tl.sum of products{at_line(next(iter(sums), None))}", told, gain)


def wide(facts: Facts) -> Iterator[Advice]:
    """Operands of more bytes than f16 has, of which arrays do fewer; vectors of eight bytes an element."""
    products, computes = facts.products, facts.share("compute") * facts.vectors.wide
    if products.slower > 1 and products.dtype in ("f32", "f64"):
        told = f"products are of {products.dtype}, of which arrays do {1 / products.slower:.2g} of what they do of f16"
        narrower = facts.share("load") * (1 - facts.latency) / 2 if facts.fill is not None else 0.0
        gain = facts.share("product") * (1 - 1 / products.slower) + narrower
        yield suggested("wide", "operands of f16 or bf16, if these are precise enough", told, gain)
    elif computes > 3 * LEAST:
        told = f"vector units compute on elements of 8 B for {facts.vectors.wide:.0%} of their time"
        yield suggested("wide", "f32 or int32, if these are enough", told, computes / 2)


def computed_again(facts: Facts) -> Iterator[Advice]:
    """Ops on the very operands of an op before."""
    work = facts.work
    gain = min(work.repeated_ns / (facts.last.time_ns or 1.0), facts.share("compute") + facts.share("product"))
    if gain > LEAST:
        calls = [call for call in facts.path if call.call.removeprefix("tl.") == work.repeated]
        took = format_time(work.repeated_ns)
        told = f"{facts.last.last} computes for {took} what it had, mostly by tl.{work.repeated}"
        change = f"compute once what tl.{work.repeated}{at_line(next(iter(calls), None))} computes again and again"
        yield suggested("computed-again", change, told, gain)


def issue(facts: Facts) -> Iterator[Advice]:
    """A PE's CPU that limits."""
    share = facts.share("issue")
    if share > 0.3:
        told = f"the PE's CPU takes {share:.0%} of the path, to issue commands and to read elements"
        if facts.reads or max(facts.own_programs, facts.moves_on) < LARGER:  # there is no more to take at once
            yield noted("issue", told, 0.5 * share)
        else:
            yield suggested("issue", f"blocks {LARGER} times as large", told, share * (1 - 1 / LARGER))
