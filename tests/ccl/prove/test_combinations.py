"""Algorithms that are wrong in one combination only: of reduction, place, PEs, steps, tiles and slots."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from kernbench_ccl.catalogue import read_file
from kernbench_ccl.prove import Wanted, check
from kernbench_ccl.prove.proof_case import RACE, UNHEARD

HEAD = """\
from kernbench_ccl.contract import share
COLLECTIVE = "{collective}"
{more}

def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective
    start, end = share(count, n_pe, pe)
    tiles = [(at, min(c.tile, end - at)) for at in range(start, end, c.tile)]
"""
EXCHANGE = """
for at, n in tiles:
    total = mine = tl.load(in_ptr + at, shape=(n,))
    for d in range(1, world):
        tl.send(mine, (rank + d) % world)
        total = {add}
    {finish}
    tl.store(out_ptr + at, total)
"""
COMBINED = "c.combine(tl, total, tl.recv((n,), c.dtype, (rank - d) % world))"
FINISHED = "total = c.finish(tl, total)"
IN_THE_OUTPUT = """
for at, n in tiles:
    if c.pipeline:
        total = mine = tl.load(in_ptr + at, shape=(n,))
    else:
        tl.store(out_ptr + at, tl.full((n,), 0.0, c.dtype))  # step by step sums wait in the output: gone in place
        total = mine = tl.load(in_ptr + at, shape=(n,))
    for d in range(1, world):
        tl.send(mine, (rank + d) % world)
        total = c.combine(tl, total, tl.recv((n,), c.dtype, (rank - d) % world))
    tl.store(out_ptr + at, c.finish(tl, total))
"""
OF_PES = """
base = pe * count
for at in range(0, count, c.tile):
    n = min(c.tile, count - at)
    x = tl.load(in_ptr + base + at, shape=(n,))
    if pe:
        tl.send(x, (rank, 0))
        total = tl.recv((n,), c.dtype, (rank, 0))
    else:
        for other in range(1, n_pe):
            x = {add}
        total = x
        for d in range(1, world):
            tl.send(x, (rank + d) % world)
            total = c.combine(tl, total, tl.recv((n,), c.dtype, (rank - d) % world))
        total = c.finish(tl, total)
        for other in range(1, n_pe):
            tl.send(total, (rank, other))
    tl.store(out_ptr + base + at, total)
"""
FOUR_WAYS = """
way = pe % 4
step = (1, -1, 1, {fourth})[way]
for at, n in tiles:
    x = tl.load(in_ptr + at, shape=(n,))
    tl.store(out_ptr + rank * count + at, x)
    for d in range(1, world):
        tl.send(x, (rank + step) % world)
        x = tl.recv((n,), c.dtype, (rank - step) % world)
        owner = rank - d if way in (0, 2) else rank + d
        tl.store(out_ptr + owner % world * count + at, x)
"""
CHAIN = """
place = (rank - c.root) % world
for at, n in tiles:
    if place == 0:
        tile = tl.load(in_ptr + at, shape=(n,))
    else:
        tile = tl.recv((n,), c.dtype, (rank - 1) % world, copy=False)
    {early}
    if place < world - 1:
        tl.send(tile, (rank + 1) % world)
    tl.store(out_ptr + at, tile)
"""
ALL_AT_ONCE = """
batch = 1 if world <= 4 else {batch}
for at, n in tiles:
    tl.store(out_ptr + rank * count + at, tl.load(in_ptr + at, shape=(n,)))
for d in range(1, world):
    peer, other = (rank + d) % world, (rank - d) % world
    for first in range(0, len(tiles), max(1, batch)):
        for at, n in tiles[first : first + batch]:
            tl.send(tl.load(in_ptr + at, shape=(n,)), peer)
        for at, n in tiles[first : first + batch]:
            tl.store(out_ptr + other * count + at, tl.recv((n,), c.dtype, other))
"""
COLLECTS = """
boss, token = world - 1, tl.zeros((1,), "int32")
if pe == 0 and rank != boss:
    tl.send(token, boss)
    tl.recv((1,), "int32", boss)
elif pe == 0:
    for r in range(boss):
        tl.recv((1,), "int32", r, wait={wait})
    for r in range(boss):
        tl.send(token, r)
for other in range(1, n_pe):
    if pe == 0:
        tl.send(token, (rank, other))
    elif pe == other:
        tl.recv((1,), "int32", (rank, 0))
"""


def faults(folder: Path, collective: str, body: str, ranks: list[int], more: str = "") -> list[frozenset[str]]:
    """Check an algorithm, and return what each of its faults is about."""
    file = folder / "mine.py"
    file.write_text(HEAD.format(collective=collective, more=more) + indent(dedent(body), "    "))
    (found,) = check(read_file(file), Wanted(ranks, ["fully_connected"]))
    return [fault.about for fault in found.faults]


@pytest.mark.parametrize(
    ("collective", "right", "wrong", "ranks", "more"),
    [
        ("all_reduce", EXCHANGE.format(add=COMBINED, finish=FINISHED),
         EXCHANGE.format(add=COMBINED, finish=f"if c.pipeline: {FINISHED}"), [3], ""),
        ("all_reduce", EXCHANGE.format(add=COMBINED, finish=FINISHED),
         EXCHANGE.format(add=COMBINED, finish=f"if n_pe == 1: {FINISHED}"), [9], ""),
        ("all_reduce", EXCHANGE.format(add=COMBINED, finish=FINISHED), IN_THE_OUTPUT, [3], ""),
        ("all_reduce", OF_PES.format(add="c.combine(tl, x, tl.recv((n,), c.dtype, (rank, other)))"),
         OF_PES.format(add="x + tl.recv((n,), c.dtype, (rank, other))"), [2], 'CONTRIBUTORS = ("pe",)'),
        ("all_gather", FOUR_WAYS.format(fourth=-1), FOUR_WAYS.format(fourth=1), [3], "WAYS = 4"),
        ("all_gather", ALL_AT_ONCE.format(batch=1), ALL_AT_ONCE.format(batch="len(tiles)"), [5], ""),
    ],
)  # fmt: skip
def test_what_is_wrong_in_one_combination_is_found(
    tmp_path: Path, collective: str, right: str, wrong: str, ranks: list[int], more: str
) -> None:
    """And what is right there is proved."""
    assert faults(tmp_path, collective, right, ranks, more) == []
    assert faults(tmp_path, collective, wrong, ranks, more) != []


def test_a_slot_that_is_used_after_it_was_given_back_is_a_fault(tmp_path: Path) -> None:
    """By a rank of one PE, too."""
    assert faults(tmp_path, "broadcast", CHAIN.format(early=""), [3]) == []
    early = "if place: tl.free(tile)"
    assert RACE in frozenset().union(*faults(tmp_path, "broadcast", CHAIN.format(early=early), [3]))


def test_a_barrier_has_not_heard_of_what_nobody_waited_for(tmp_path: Path) -> None:
    """Whatever has come by then."""
    assert faults(tmp_path, "barrier", COLLECTS.format(wait=True), [3]) == []
    assert UNHEARD in frozenset().union(*faults(tmp_path, "barrier", COLLECTS.format(wait=False), [3]))
