"""No promise is more than a quarter, and three points, above what comes: of what gains little, nothing, or loses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.explain.verdict import RunVerdict
from kernbench_core.memory import Interleave, Shard
from tests.builtin.explain.promises import gained, over, promised, ran, rules

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
    for at in range(8 - tl.program_id(0) * 8, 16 - tl.program_id(0) * 8):
        tl.store(b + at * 2048, tl.exp(tl.load(a + at * 2048, shape=(2048,))))


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


def reads_all_at_one_place(a: Any, b: Any, tl: Any) -> None:
    """Add up blocks that all PEs of two packages load."""
    total = tl.zeros((8192,), "f32")
    for at in range(0, 1 << 15, 8192):
        total = total + tl.load(a + at, shape=(8192,))
    tl.store(b + tl.program_id(0) * 8192, total)


def test_blocks_that_go_to_other_packages_come_by_links() -> None:
    """Which bound what other places for them gain."""

    def verdict_of(spread: bool) -> RunVerdict:
        def bench(rt: Any) -> None:
            a = rt.tensor((1 << 21,), "f32", name="a", placement=Interleave(4096) if spread else None, resident=True)
            rt.launch(reads_all_at_one_place, a, rt.empty((1 << 19,), "f32", name="b"))

        return ran(bench, "default")

    before, after = verdict_of(False), verdict_of(True)
    assert promised(before, "hot-place") > 0.2 and kept(promised(before, "hot-place"), gained(before, after))


def in_tiles(a: Any, b: Any, c: Any, tile_k: int, tl: Any) -> None:
    """Multiply 64 rows of each PE by a matrix, as one composite."""
    at = tl.program_id(0) * 64 * 256
    where = tl.ref(a + at, (64, 256)), tl.ref(b, (256, 256)), c + at
    tl.wait(tl.composite("gemm", *where, tile_m=64, tile_n=64, tile_k=tile_k))


@pytest.mark.parametrize("tile_k", [16, 32])
def test_larger_tiles_of_composites_bring_what_is_promised(tile_k: int) -> None:
    """Where others move while a tile is on its way, its latency is not all that goes."""
    before, after = (ran(over(in_tiles, [(256, 256)] * 3, each)) for each in (tile_k, 4 * tile_k))
    assert kept(promised(before, "small-tiles"), gained(before, after))


def exponentials(a: Any, b: Any, tl: Any) -> None:
    """Compute one tile, as a composite."""
    at = tl.program_id(0) << 14
    tl.wait(tl.composite("math", tl.ref(a + at, (64, 256)), None, b + at, math_op="exp", tile_m=64, tile_n=256))


def test_the_cause_of_a_composite_is_what_gains_more() -> None:
    """Its math, of ten times the speed, gains more than addresses that are translated ten times as fast."""
    faster = [], ["components.pe_mmu.params.walk_time=10 ns"], ["components.pe_math.params.clock=9.6 GHz"]

    def bench(rt: Any) -> None:
        rt.launch(exponentials, *(rt.tensor((256, 256), "f16", name=name, resident=True) for name in "ab"))

    before, walks, math = (ran(bench, set=sets) for sets in faster)
    assert gained(before, math) > gained(before, walks)
    assert before.limiter is not None and before.limiter.cause.startswith("for its math: pe_math is at work ")


def loads_thrice(a: Any, b: Any, once: bool, tl: Any) -> None:
    """Add up a block three times, loaded as often, or once."""
    at, x = tl.program_id(0) * 1024, None
    for _ in range(3):
        x = tl.load(a + at, shape=(1024,)) if x is None or not once else x
        tl.store(b + at, x)


@pytest.mark.parametrize(("kernel", "rule"), [(loads_thrice, "moved-again"), (sums_in_turn, "in-turn")])
def test_what_one_launch_of_several_does_worse_saves_of_its_time(kernel: Any, rule: str) -> None:
    """Of five that do the same; where all do it worse, each saves as much, but for what the first finds cold."""

    def verdict_of(*better: bool) -> RunVerdict:
        def bench(rt: Any) -> None:
            a, b = (rt.tensor((1 << 16,), "f32", name=name, resident=True) for name in "ab")
            for each in better:
                rt.launch(kernel, a, b, each)

        return ran(bench)

    none, one, every = verdict_of(*[False] * 5), verdict_of(False, *[True] * 4), verdict_of(*[True] * 5)
    assert kept(promised(none, rule), gained(none, every)) and promised(none, rule) > gained(none, every) / 2
    assert kept(promised(one, rule), gained(one, every))


def in_parts(a: Any, b: Any, parts: int, tl: Any) -> None:
    """Compute on so many parts of a program."""
    for at in range(tl.program_id(0) * parts, (tl.program_id(0) + 1) * parts):
        tl.store(b + at * 256, tl.exp(tl.load(a + at * 256, shape=(256,))))


@pytest.mark.parametrize(
    ("programs", "pes", "others"), [(4, [0, 1], 0), (8, [0, 1, 2], 0), (3, [1], 0), (8, [0, 1], 5)]
)
def test_programs_that_pes_keeps_from_others_need_no_cut(programs: int, pes: list[int], others: int) -> None:
    """As many as there are PEs, or fewer, with other launches on all PEs or none, of which nothing is saved."""

    def verdict_of(pes: list[int] | None) -> RunVerdict:
        def bench(rt: Any) -> None:
            a, b = (rt.tensor((1 << 15,), "f32", name=name, resident=True) for name in "ab")
            rt.launch(in_parts, a, b, 4, grid=(programs,), pes=pes)
            for _ in range(others):
                rt.launch(in_parts, a, b, 7, grid=(4,))

        return ran(bench)

    before, after = verdict_of(pes), verdict_of(None)
    [told] = (each for each in before.advice if each.rule == "idle-pes")
    assert told.sentence.startswith(f"leave out pes= of rt.launch, or give it more PEs: {programs} programs are on ")
    came = gained(before, after)
    assert kept(told.gain, came) and told.gain > came - 0.03
