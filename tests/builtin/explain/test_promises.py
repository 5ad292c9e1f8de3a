"""What advice promises, against runs that carry it out; and where there is nothing to carry out, there is no advice."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.explain import advice
from kernbench_builtin.explain.advice.rule import FACT
from kernbench_builtin.explain.verdict import RunVerdict
from kernbench_core.memory import Shard

Bench = Callable[[Any], None]


def ran(bench: Bench, topology: str = "tiny", **more: Any) -> RunVerdict:
    found = kb.run(bench, topology, data=False, **more).part(RunVerdict)
    assert found is not None and found.kernel_ns is not None
    return found


def promised(found: RunVerdict, rule: str) -> float:
    """Return what a rule says is gained of kernels; 0.0 where it advises nothing."""
    return max((each.gain for each in found.advice if (each.rule, each.about) == (rule, "kernel")), default=0.0)


def gained(before: RunVerdict, after: RunVerdict) -> float:
    assert before.kernel_ns is not None and after.kernel_ns is not None
    return 1 - after.kernel_ns / before.kernel_ns


def rules(found: RunVerdict) -> set[str]:
    return {each.rule for each in found.advice if each.about != FACT}


def over(kernel: Any, shapes: Sequence[tuple[int, ...]], *args: Any, **launch: Any) -> Bench:
    """Return a program that launches a kernel over tensors of some shapes, all of f32."""

    def bench(rt: Any) -> None:
        names = "abc"[: len(shapes)]
        tensors = [rt.tensor(shape, "f32", name=name, resident=True) for name, shape in zip(names, shapes, strict=True)]
        rt.launch(kernel, *tensors, *args, **launch)

    return bench


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


# Nothing is promised that does not come ---------------------------------------------------------------


LARGE = [(1 << 19,)] * 3


def kept(told: float, came: float) -> bool:
    """Whether a promise is no more than a quarter, and three points, above what came."""
    return told <= 1.25 * max(came, 0.0) + 0.03


def halves(a: Any, b: Any, tl: Any) -> None:
    """Compute on eight blocks of a program."""
    for at in range(tl.program_id(0) * 8, tl.program_id(0) * 8 + 8):
        tl.store(b + at * 2048, tl.exp(tl.load(a + at * 2048, shape=(2048,))))


def passes(a: Any, b: Any, tl: Any) -> None:
    """Compute on what the other program had."""
    at = (1 - tl.program_id(0)) * 4096
    tl.store(b + at, tl.exp(tl.load(a + at, shape=(4096,))))


def at_once(wait: bool, needed: bool) -> Any:
    """Run launches on two groups of PEs in turn; or also such that need one before, on other PEs than its data."""

    def bench(rt: Any) -> None:
        pairs = [[rt.tensor((1 << 15,), "f32", name=f"{name}{at}") for name in "ab"] for at in range(6)]
        for at, (a, b) in enumerate(pairs):
            rt.launch(halves, a, b, grid=(2,), pes=[[0, 1], [2, 3]][at % 2], wait=wait)
            if needed:
                rt.launch(passes, b, a, grid=(2,), pes=[[0, 1], [2, 3]][at % 2], wait=wait)
        rt.wait_all()

    return kb.run(bench, "tiny", data=False)


def test_launches_that_run_at_once_bring_what_is_promised() -> None:
    """Two groups of PEs save three of six launches, though each launch waits for the other group's."""
    before, after = at_once(True, False), at_once(False, False)
    [told] = (each for each in before.verdict.advice if each.rule == "in-sequence")
    came = 1 - after.total_ns / before.total_ns
    assert 0.8 * came < told.gain and kept(told.gain, came)


def test_launches_that_would_race_are_not_to_run_at_once() -> None:
    """Those on the same PEs, too: each PE alone keeps an order."""
    before, after = at_once(True, True), at_once(False, True)
    assert not before.hazards and after.hazards
    assert "in-sequence" not in {each.rule for each in before.verdict.advice}


def takes_apart(a: Any, b: Any, _: Any, once: bool, tl: Any) -> None:
    """Add up one field of two, loaded alone or with the other."""
    total, n = tl.zeros((4096,), "f32"), 1 << 14
    for at in range(tl.program_id(0) * n, (tl.program_id(0) + 1) * n, 4096):
        if once:
            total = total + tl.split(tl.load(a + 2 * at, shape=(4096, 2), strides=(2, 1)))[0]
        else:
            total = total + tl.load(a + 2 * at, shape=(4096,), strides=(2,))
    tl.store(b + tl.program_id(0) * 4096, total)


def in_bursts(a: Any, b: Any, _: Any, dense: bool, bytes_of_row: int, tl: Any) -> None:
    """Load rows of some bytes that lie apart, or one behind the other."""
    n, step = bytes_of_row // 4, bytes_of_row // 4 if dense else 64
    total = tl.zeros((512, n), "f32")
    for row in range(tl.program_id(0) * 2048, (tl.program_id(0) + 1) * 2048, 512):
        total = total + tl.load(a + row * step, shape=(512, n), strides=(step, 1))
    tl.store(b + tl.program_id(0) * 512 * n, total)


def few_by_hand(a: Any, b: Any, c: Any, dot: bool, tl: Any) -> None:
    """Multiply three rows, for which an array takes longer than a vector unit."""
    at = tl.program_id(0) * 3
    x, w = tl.load(a + at * 64, shape=(3, 64)), tl.load(b, shape=(64, 256))
    tl.store(c + at * 256, tl.dot(x, w) if dot else tl.sum(x[:, :, None] * w[None, :, :], axis=1))


def again_beside(a: Any, b: Any, c: Any, keep: bool, tl: Any) -> None:
    """Load a row for each column, or once: of as many bytes, columns take longer."""
    row, total = None, 0.0
    for k in range(8):
        if row is None or not keep:
            row = tl.load(a + tl.program_id(0) * 2048, shape=(2048,))
        total = total + row * tl.load(b + k, shape=(2048,), strides=(64,))
    tl.store(c + tl.program_id(0) * 2048, total)


def takes_halves(a: Any, b: Any, _: Any, __: bool, tl: Any) -> None:
    """Take each half of what there is, again and again: none of them twice."""
    w = tl.load(a + tl.program_id(0) * 16384, shape=(128, 128))
    for _ in range(6):
        left, right = tl.split(tl.reshape(w, (128, 64, 2)))
        w = tl.reshape(tl.join(left, left - right), (128, 128))
    tl.store(b + tl.program_id(0) * 16384, w)


@pytest.mark.parametrize(
    ("kernel", "shapes", "args", "rule"),
    [
        (takes_apart, LARGE, (), "scattered"),
        (in_bursts, LARGE, (32,), "scattered"),
        (in_bursts, LARGE, (28,), "scattered"),
        (few_by_hand, [(12, 64), (64, 256), (12, 256)], (), "by-hand"),
        (again_beside, LARGE, (), "moved-again"),
        (takes_halves, LARGE, (), "computed-again"),
    ],
)
def test_no_more_is_promised_than_comes(
    kernel: Any, shapes: list[tuple[int, ...]], args: tuple[int, ...], rule: str
) -> None:
    """Of what a program does worse than it could, and of what only looks like it."""
    before, after = (ran(over(kernel, shapes, changed, *args)) for changed in (False, True))
    assert kept(promised(before, rule), gained(before, after))


def copies_columns(a: Any, b: Any, tl: Any) -> None:
    """Copy eight columns of 32, which lie together on each PE."""
    tl.store(b + tl.program_id(0) * (1 << 15), tl.load(a + tl.program_id(0) * 8, shape=(1 << 12, 8), strides=(32, 1)))


@pytest.mark.parametrize("burst", ["32 B", "64 B"])
def test_what_is_at_the_roof_is_promised_nothing(burst: str) -> None:
    """Whatever it does otherwise, it has to move all bytes."""

    def bench(rt: Any) -> None:
        a = rt.tensor((1 << 12, 32), "f32", name="a", placement=Shard(1), resident=True)
        rt.launch(copies_columns, a, rt.empty((1 << 17,), "f32", name="b"))

    found = ran(bench, set=[f"components.hbm_ctrl.params.burst_bytes={burst}"])
    assert found.share is not None and found.share > 0.85
    assert not rules(found) & {"scattered", "small-transfers"}


@pytest.mark.parametrize(("turns", "loops"), [(2, 1), (4, 1), (16, 1), (2, 3)])
def test_loops_of_triton_load_ahead_from_their_third_turn(turns: int, loops: int) -> None:
    """Of two turns there is none to go ahead; nor of three loops of two."""

    def verdict_of(stages: int) -> RunVerdict:
        terms = 64 * turns
        a, b, c = (np.ones(shape, np.float16) for shape in ((128, terms), (terms, 128), (128, 128)))
        with kb.triton("tiny") as sim:
            import triton
            import triton.language as tl

            @triton.jit
            def product(a: Any, b: Any, c: Any, terms: tl.constexpr, loops: tl.constexpr) -> None:
                rows, cols = tl.program_id(0) * 64 + tl.arange(0, 64), tl.program_id(1) * 64 + tl.arange(0, 64)
                for _ in range(loops):
                    acc = tl.zeros((64, 64), tl.float32)
                    for k in range(0, terms, 64):
                        at = k + tl.arange(0, 64)
                        first = a + rows[:, None] * terms + at[None, :]
                        acc += tl.dot(tl.load(first), tl.load(b + at[:, None] * 128 + cols[None, :]))
                    tl.store(c + rows[:, None] * 128 + cols[None, :], acc.to(tl.float16))

            product[(2, 2)](a, b, c, terms, loops, num_stages=stages)
        assert sim.result is not None and sim.result.verdict is not None
        return sim.result.verdict

    before, after = verdict_of(1), verdict_of(3)
    assert kept(promised(before, "loads-ahead"), gained(before, after))
    assert (promised(before, "loads-ahead") > 0) == (turns > 4)


def adds_blocks(a: Any, b: Any, early: bool, tl: Any) -> None:
    """Add up blocks that lie in one slice of HBM for all PEs, each loaded when it is used, or a turn before."""
    total, coming = tl.zeros((2048,), "f32"), []
    for at in range(0, 16384, 2048):
        coming.append(tl.load(a + at, shape=(2048,), wait=not early))
        if not early or len(coming) > 1:
            total = total + coming.pop(0)
    for block in coming:
        total = total + block
    tl.store(b + tl.program_id(0) * 2048, total)


def sums_in_turn(a: Any, b: Any, early: bool, tl: Any) -> None:
    """Hand a sum from PE to PE, to which each adds its own: computed before the sum comes, or then."""
    me, own, total = tl.program_id(0), tl.zeros((4096,), "f32"), None
    if me and not early:
        total = tl.recv((4096,), "f32", me - 1)
    for at in range(4):
        own = own + tl.exp(tl.exp(tl.load(a + (me * 4 + at) * 4096, shape=(4096,))))
    if me and early:
        total = tl.recv((4096,), "f32", me - 1)
    own = own if total is None else own + total
    if me < tl.num_programs(0) - 1:
        tl.send(own, me + 1)
    else:
        tl.store(b, own)


def hands_over(a: Any, b: Any, early: bool, tl: Any) -> None:
    """Load tiles ahead for others, as the bench gemm does, and wait for few messages."""
    me, own = tl.program_id(0), []
    for at in range(8):
        own.append(tl.load(a + (me * 8 + at) * 8192, shape=(128, 64), wait=False))
    for tile in own:
        tl.send(tl.dot(tile, tl.trans(tile)).to("f16"), (me + 1) % 4, wait=False)
        tl.recv((128, 128), "f16", (me - 1) % 4)
    tl.store(b + me * 8192, own[0])


@pytest.mark.parametrize(
    ("kernel", "rule"), [(adds_blocks, "loads-ahead"), (sums_in_turn, "in-turn"), (hands_over, "in-turn")]
)
def test_waits_bring_no_less_than_is_promised(kernel: Any, rule: str) -> None:
    """Whether a channel that is busy all the time sets the pace, or PEs one after the other."""
    before, after = (ran(over(kernel, [(1 << 18,), (1 << 18,)], early)) for early in (False, True))
    assert kept(promised(before, rule), gained(before, after))


def test_what_others_compute_is_not_the_slowest_pe_s() -> None:
    """It waits for their messages most of the time."""
    run = kb.run(over(sums_in_turn, [(1 << 18,), (1 << 18,)], False), "tiny", data=False)
    found, [launch] = run.verdict, run.launches
    assert found is not None and found.limiter is not None
    own = sum(op["t_end"] - op["t_start"] for op in run.ops if op["component"] == f"{launch.last}.pe_math")
    assert found.limiter.share > own / launch.time_ns + 0.2
    assert found.limiter.sentence.startswith("the slowest PE and those that it waits for spend ")
