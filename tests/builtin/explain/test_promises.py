"""What advice promises, against runs that carry it out; and where there is nothing to carry out, there is no advice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.explain import advice
from kernbench_builtin.explain.advice.rule import FACT
from kernbench_builtin.explain.verdict import RunVerdict
from tests.builtin.explain.promises import gained, over, promised, ran, rules

# More programs ----------------------------------------------------------------------------------------


def scales(a: Any, n: int, tl: Any) -> None:
    """Load a program's elements, multiply them thirty times and store them."""
    at = a + tl.program_id(0) * n
    x = tl.load(at, shape=(n,))
    for _ in range(30):
        x = x * 1.01
    tl.store(at, x)


def adds_columns(a: Any, b: Any, c: Any, rows: int, tl: Any) -> None:
    """Add up outer products of short columns and rows, one after the other: more programs have as many of them."""
    at, total = tl.program_id(0) * rows, tl.zeros((rows, 16), "f32")
    for k in range(32):
        total = total + tl.load(a + k * 64 + at, shape=(rows, 1)) * tl.load(b + k * 16, shape=(1, 16))
    tl.store(c + at * 16, total)


def exponentiates(a: Any, b: Any, n: int, tl: Any) -> None:
    """Go through a program's elements in a loop."""
    for at in range(tl.program_id(0) * n, (tl.program_id(0) + 1) * n, 1024):
        tl.store(b + at, tl.exp(tl.load(a + at, shape=(1024,))))


def multiplies(a: Any, b: Any, c: Any, rows: int, tl: Any) -> None:
    """Multiply a program's rows by a matrix that all programs load."""
    at = tl.program_id(0) * rows * 128
    tl.store(c + at, tl.dot(tl.load(a + at, shape=(rows, 128)), tl.load(b, shape=(128, 128))))


@pytest.mark.parametrize(
    ("kernel", "shapes", "programs", "each"),
    [
        (scales, [(64,)], 1, 16),
        (scales, [(1024,)], 1, 256),
        (scales, [(16384,)], 1, 4096),
        (adds_columns, [(32, 64), (32, 16), (64, 16)], 2, 16),
        (exponentiates, [(16384,), (16384,)], 1, 4096),
        (exponentiates, [(16384,), (16384,)], 2, 4096),
        (multiplies, [(128, 128), (128, 128), (128, 128)], 1, 32),
        (multiplies, [(512, 128), (128, 128), (512, 128)], 1, 128),
    ],
)
def test_more_programs_bring_what_is_promised(
    kernel: Any, shapes: list[tuple[int, ...]], programs: int, each: int
) -> None:
    """What each command takes however little it does is not divided, nor is what all load."""
    before = ran(over(kernel, shapes, each * 4 // programs, grid=(programs,)))
    told, found = promised(before, "idle-pes"), gained(before, ran(over(kernel, shapes, each, grid=(4,))))
    assert told <= found + 0.05
    assert told >= found - 0.15


@pytest.mark.parametrize(
    ("kernel", "shapes", "each"),
    [
        (exponentiates, [(16384,), (16384,)], 1024),
        (multiplies, [(512, 128), (128, 128), (512, 128)], 32),
    ],
)
def test_programs_of_one_pe_go_to_others(kernel: Any, shapes: list[tuple[int, ...]], each: int) -> None:
    """With all that they have to do, what others load as well among it."""
    before, after = (ran(over(kernel, shapes, each, grid=(16,), pes=pes)) for pes in ([0], None))
    assert promised(before, "idle-pes") == pytest.approx(gained(before, after), abs=0.08)


# More in each turn ------------------------------------------------------------------------------------


def rounds(a: Any, n: int, tl: Any) -> None:
    """Load a program's elements and go over them again and again: there are no more to take at once."""
    at = a + tl.program_id(0) * n
    x = tl.load(at, shape=(n,))
    for _ in range(30):
        x = x * 1.01 + 0.1
    tl.store(at, x)


def parts(a: Any, b: Any, n: int, tl: Any) -> None:
    """Go over a program's elements, so many at a time."""
    for at in range(tl.program_id(0) * 4096, (tl.program_id(0) + 1) * 4096, n):
        x = tl.load(a + at, shape=(n,))
        for _ in range(8):
            x = x * 1.01
        tl.store(b + at, x)


def test_turns_over_the_same_data_are_not_to_do_more() -> None:
    """Blocks that are larger leave PEs without a program, and take longer."""
    before, after = ran(over(rounds, [(256,)], 64)), ran(over(rounds, [(256,)], 256, pes=[0]))
    assert gained(before, after) < 0
    assert not {"small-ops", "issue", "small-transfers"} & rules(before)
    assert any("the PE's CPU takes" in each.line and each.about == FACT for each in before.advice)


def test_turns_over_other_data_are_to_do_more() -> None:
    """And PEs with several programs are to have larger ones."""
    shapes = [(16384,), (16384,)]
    before, after = (ran(over(parts, shapes, n)) for n in (128, 512))
    assert 0.08 < promised(before, "small-ops") <= gained(before, after)
    several, fewer = (ran(over(rounds, [(4096,)], n, grid=(4096 // n,))) for n in (64, 256))
    assert 0.08 < promised(several, "issue") <= gained(several, fewer)


# Other pieces -----------------------------------------------------------------------------------------


def columns(a: Any, b: Any, many: int, turned: bool, tl: Any) -> None:
    """Add up columns of 128 rows, so many at a time, that lie below each other or, turned, one behind the other."""
    me, programs = tl.program_id(0), tl.num_programs(0)
    for i in range(0, 16, many):
        at = me * 16 + i if many > 1 else i * programs + me
        first, strides = (a + at * 128, (1, 128)) if turned else (a + at, (64, 1))
        tl.store(b + at, tl.sum(tl.load(first, shape=(128, many), strides=strides), axis=0))


def test_what_hardly_gains_does_not_hide_what_gains_much() -> None:
    """Columns are to be taken several at a time; turned, they take as long as before."""
    shapes = [(128, 64), (64,)]
    before, turned, several = (ran(over(columns, shapes, *how)) for how in ((1, False), (1, True), (4, False)))
    assert gained(before, turned) < 0
    assert promised(before, "scattered") == 0.0
    assert 0.4 < promised(before, "small-transfers") <= gained(before, several)


def by_element(a: Any, b: Any, backwards: bool, once: bool, tl: Any) -> None:
    """Store a row of addresses for each column, or a block the other way round; loaded at once, or by element."""
    across, down = tl.arange(0, 128)[None, :], tl.arange(0, 32)[:, None]
    if backwards:
        at = tl.arange(0, 4096)
        x = tl.flip(tl.load(a + at)) if once else tl.load(a + 4095 - at)
        tl.store(b + at, x)
    else:
        x = tl.load(a + down) + tl.zeros((32, 128), "f32") if once else tl.load(a + down + across * 0)
        tl.store(b + down * 128 + across, x)


@pytest.mark.parametrize(
    ("backwards", "change"),
    [
        (False, "load each address once, and broadcast it there: tl.load (test_promises.py:{line}) brings the same "
                "bytes for one element after the other; about "),
        (True, "load them as they lie in memory, and turn them with tl.flip: tl.load (test_promises.py:{line}) brings "
               "elements backwards, one by one; about "),
    ],
)  # fmt: skip
def test_loads_by_element_have_a_change_of_their_own(backwards: bool, change: str) -> None:
    before, after = (ran(over(by_element, [(4096,), (4096,)], backwards, once, grid=(1,))) for once in (False, True))
    line = by_element.__code__.co_firstlineno + (5 if backwards else 8)
    [told] = (each for each in before.advice if each.rule == "scattered")
    assert told.sentence.startswith(change.format(line=line))
    assert told.gain == pytest.approx(gained(before, after), abs=0.1)
    assert "scattered" not in rules(after)


# The same again ---------------------------------------------------------------------------------------


def scaled_to_one(a: Any, b: Any, kept: bool, tl: Any) -> None:
    """Load a block three times, or once, for a softmax over it."""
    at = tl.program_id(0) * 1024
    x = tl.load(a + at, shape=(1, 1024))
    most = tl.max(x, axis=1, keep_dims=True)
    x = x if kept else tl.load(a + at, shape=(1, 1024))
    total = tl.sum(tl.exp(x - most), axis=1, keep_dims=True)
    x = x if kept else tl.load(a + at, shape=(1, 1024))
    tl.store(b + at, tl.exp(x - most) / total)


def test_what_is_loaded_again_has_found_its_page() -> None:
    """The walk of the first load stays; and where there is no loop, none is spoken of."""
    before, after = (ran(over(scaled_to_one, [(4096,), (4096,)], kept)) for kept in (False, True))
    [told] = (each for each in before.advice if each.rule == "moved-again")
    first = scaled_to_one.__code__.co_firstlineno + 3
    lines = {f"test_promises.py:{first + more}" for more in (0, 2, 4)}
    begin, _, rest = told.sentence.partition("(")
    assert (begin, {*rest.partition(")")[0].split(" or ")}) == ("keep what tl.load ", lines)
    assert rest.partition(")")[2].startswith(" loads again: 67% of what programs load they had loaded before, and ")
    assert told.gain == pytest.approx(gained(before, after), abs=0.04)


# Several kernels --------------------------------------------------------------------------------------


def rows_by_columns(a: Any, b: Any, c: Any, ahead: bool, tl: Any) -> None:
    """Multiply tiles along a sum: each loaded when it is used, or one turn before."""
    me, total, tiles = tl.program_id(0), tl.zeros((64, 64), "f32"), []

    def ask(k: int) -> tuple[Any, Any]:
        rows = tl.load(a + me * 64 * 256 + k, shape=(64, 64), strides=(256, 1), wait=False)
        return rows, tl.load(b + k * 64, shape=(64, 64), wait=False)

    for k in range(0, 256, 64):
        tiles = tiles or [ask(k)]
        if ahead and k + 64 < 256:
            tiles.append(ask(k + 64))
        total = tl.dot(*tiles.pop(0), total)
    tl.store(c + me * 4096, total)


def then(a: Any, times: int, tl: Any) -> None:
    """Compute on a tile for a while."""
    x = tl.load(a + tl.program_id(0) * 4096, shape=(4096,))
    for _ in range(times):
        x = tl.exp(x)
    tl.store(a + tl.program_id(0) * 4096, x)


@pytest.mark.parametrize("times", [0, 4, 12])
def test_advice_on_a_kernel_stays_beside_a_shorter_one(times: int) -> None:
    """With what it gains of the time of both."""

    def verdict_of(ahead: bool) -> RunVerdict:
        def bench(rt: Any) -> None:
            shapes = ((256, 256), (256, 64), (256, 64))
            a, b, c = (
                rt.tensor(each, "f16", name=name, resident=True) for name, each in zip("abc", shapes, strict=True)
            )
            rt.launch(rows_by_columns, a, b, c, ahead)
            for _ in range(bool(times)):
                rt.launch(then, c, times)

        return ran(bench)

    before, after = verdict_of(False), verdict_of(True)
    [told] = (each for each in before.advice if each.rule == "loads-ahead")
    assert told.gain == pytest.approx(gained(before, after), abs=0.06)
    of_all = " of all kernels, in rows_by_columns" if times else ""
    assert told.sentence.endswith(f"about {told.gain:.0%} less time{of_all}.")
    assert "loads-ahead" not in rules(after)


def test_the_page_names_all_rules() -> None:
    """In its table."""
    sources = [*Path(advice.__file__).parent.glob("*.py")]
    given = {name for source in sources for name in re.findall(r'(?:suggested|noted)\("([a-z-]+)"', source.read_text())}
    page = Path(__file__).parents[3] / "docs" / "explain.md"
    table = " ".join(line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("| `"))
    assert len(given) > 20 and not given - {*re.findall(r"`([a-z-]+)`", table)}
