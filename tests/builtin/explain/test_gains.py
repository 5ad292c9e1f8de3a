"""What a verdict says is tried out: causes against the native engine's what-if, promised gains against runs."""

from __future__ import annotations

from typing import Any

import pytest

import kernbench as kb
from kernbench_builtin.explain.advice.rule import FACT
from kernbench_builtin.explain.verdict import RunVerdict
from kernbench_builtin.native.timing import library_file
from kernbench_core.memory import Interleave

BLOCK = 4096
VECTOR = ("vector-add", {"n": 65536})
NAIVE = ("gemm-naive", {"M": 128, "N": 128, "K": 256})
TILES = ("gemm-composite", {"M": 128, "N": 128, "K": 256, "tile_m": 64, "tile_n": 64, "tile_k": 64})
SCRATCHPAD = "the scratchpad (pe_tcm) and its wires"
LATENCY = "the latency of the way there and back, memory's too"


def verdict_of(bench: Any, params: dict[str, Any] | None = None, *sets: str, **more: Any) -> tuple[RunVerdict, Any]:
    run = kb.run(bench, "tiny", params or {}, set=[*sets], data=False, **more)
    found = run.part(RunVerdict)
    assert found is not None and found.kernel_ns is not None
    return found, run


@pytest.mark.skipif(library_file() is None, reason="the native engine was not compiled")
@pytest.mark.parametrize(
    ("bench", "setting", "resource", "cause"),
    [
        (VECTOR, "components.pe_tcm.params.write_bandwidth=4GB/s", "scratchpads", SCRATCHPAD),
        (VECTOR, "components.pe_tcm.params.latency=1us", "scratchpads", SCRATCHPAD),
        (NAIVE, "components.pe_tcm.params.write_bandwidth=8GB/s", "scratchpads", SCRATCHPAD),
        (VECTOR, "components.pe_dma.params.descriptor_overhead=5us", "set-up of the DMAs", "set-up in the DMA"),
        (NAIVE, "components.pe_dma.params.overhead=1us", "set-up of the DMAs", "set-up in the DMA"),
        (VECTOR, "components.pe_mmu.params.walk_time=1us", "address translation", "translation of addresses"),
        (NAIVE, "components.pe_mmu.params.tlb_overhead=1us", "address translation", "translation of addresses"),
        (VECTOR, "components.hbm_ctrl.params.overhead=1us", "HBM", LATENCY),
        (NAIVE, "components.router.params.overhead=1us", "mesh of the cubes", LATENCY),
        (VECTOR, "pe.links.data.bandwidth=4GB/s", "wires inside PEs", SCRATCHPAD),
        (VECTOR, "pe.links.control.latency=1us", "wires inside PEs", "the way of commands to the DMA and back"),
        (NAIVE, "pe.links.control.latency=1us", "wires inside PEs", "the way of commands to its units and back"),
        (TILES, "components.pe_gemm.params.overhead=1us", "matrix units", "for its products"),
        (TILES, "components.pe_fetch_store.params.overhead=2us", "schedulers of tiles", "for bringing tiles"),
        (TILES, "components.pe_tcm.params.read_bandwidth=4GB/s", "scratchpads", "for bringing tiles"),
        (TILES, "pe.links.control.latency=1us", "wires inside PEs", "for the way of tiles from unit to unit"),
        (TILES, "components.pe_mmu.params.walk_time=1us", "address translation", "translation of addresses"),
    ],
)
def test_a_cause_is_what_gains_most_where_it_goes(
    bench: tuple[str, dict[str, Any]], setting: str, resource: str, cause: str
) -> None:
    """Of a part that was made slow."""
    found, run = verdict_of(*bench, setting, what_if=True)
    assert run.native.gains.ranked()[0][0].name == resource
    assert found.limiter is not None and cause in found.limiter.cause


def reads_one_place(x: Any, y: Any, rep: int, early: bool, tl: Any) -> None:
    """Read the same blocks on all PEs, the next one while one is worked on, or each when the last is done."""
    total, before = tl.zeros((BLOCK,), "f32"), None
    for i in range(16):
        block = tl.load(x + i * BLOCK, shape=(BLOCK,), wait=not early)
        if not early or before is not None:
            total = worked(block if before is None else before, total, rep, tl)
        before = block if early else None
    total = total if before is None else worked(before, total, rep, tl)
    tl.store(y + tl.program_id(0) * BLOCK, total)


def worked(block: Any, total: Any, rep: int, tl: Any) -> Any:
    for _ in range(rep):
        block = tl.exp(block)
    return total + block


def at_one_place(rt: Any, rep: int, early: bool, spread: bool) -> None:
    x = rt.tensor((64 * BLOCK,), "f32", name="x", placement=Interleave(4096) if spread else None)
    rt.launch(reads_one_place, x, rt.empty((4 * BLOCK,), "f32", name="y"), rep, early)


@pytest.mark.parametrize("rep", [1, 2, 3, 4])
@pytest.mark.parametrize(("rule", "early"), [("hot-place", True), ("hot-place", False), ("loads-ahead", False)])
def test_what_is_promised_of_a_hot_channel_comes(rule: str, early: bool, rep: int) -> None:
    """About: no more than half as much again, and no more than the roof, or the channel, leaves."""
    before, _ = verdict_of(at_one_place, {"rep": rep, "early": early, "spread": False})
    after, _ = verdict_of(at_one_place, {"rep": rep, "early": True if rule == "loads-ahead" else early,
                                         "spread": rule == "hot-place"})  # fmt: skip
    assert before.kernel_ns is not None and after.kernel_ns is not None and before.share is not None
    promised = max((each.gain for each in before.advice if (each.rule, each.about) == (rule, "kernel")), default=0.0)
    gained = 1 - after.kernel_ns / before.kernel_ns
    assert promised <= max(1.8 * gained, gained + 0.12) and promised <= 1 - before.share + 1e-9


def hands_on(w: Any, y: Any, tl: Any) -> None:
    """Store a block, and say so by a message; the other one reads it then."""
    total, said = tl.full((BLOCK,), 1.0, "f32"), tl.full((16,), 1.0, "f32")
    for _ in range(16):
        if tl.program_id(0) == 0:
            total = total + 1.0
            tl.store(w, total)
            tl.send(said, 1)
            tl.recv((16,), "f32", 1)
        elif tl.program_id(0) == 1:
            came = tl.recv((16,), "f32", 0)
            total = total + tl.load(w, shape=(BLOCK,))
            tl.send(came, 0)
    tl.store(y + tl.program_id(0) * BLOCK, total)


def test_what_another_pe_stores_is_not_to_be_loaded_before_its_message() -> None:
    """That would be a race."""

    def bench(rt: Any) -> None:
        rt.launch(hands_on, rt.zeros((BLOCK,), "f32", name="w"), rt.empty((4 * BLOCK,), "f32", name="y"))

    found, run = verdict_of(bench)
    assert not run.hazards
    assert "in-turn" not in {each.rule for each in found.advice}


@pytest.mark.parametrize(
    ("bench", "params", "setting"),
    [
        ("gemm", {"M": 256, "N": 128, "K": 256}, "components.pe_cpu.params.dispatch_overhead=300ns"),
        ("softmax", {"rows": 128, "cols": 512}, "pe.links.control.latency=300ns"),
        (*VECTOR, "pe.links.control.latency=1us"),
    ],
)
def test_one_launch_waits_for_no_other_and_who_sends_nothing_for_no_turn(
    bench: str, params: dict[str, Any], setting: str
) -> None:
    """However long commands take to their units."""
    found, _ = verdict_of(bench, params, setting)
    assert not {"late-launch", "in-turn"} & {each.rule for each in found.advice}


def again(x: Any, tl: Any) -> None:
    """Compute the same products, two at a time."""
    tiles = tl.zeros((128, 128), "f16"), tl.zeros((128, 128), "f16")
    before = tl.dot(*tiles, wait=False)
    for _ in range(15):
        each = tl.dot(*tiles, wait=False)
        tl.wait(before)
        before = each
    tl.wait(before)


def test_what_is_computed_twice_at_once_counts_once() -> None:
    """It takes no longer than the kernel."""
    bench = lambda rt: rt.launch(again, rt.empty((16,), "f32"))  # noqa: E731
    found, _ = verdict_of(bench, {}, "components.pe_gemm.params.servers=2")
    [told] = (each for each in found.advice if each.rule == "computed-again")
    assert found.kernel_ns is not None
    assert told.gain <= 1
    named = told.sentence.split(" computes for ")[1].split(" what it had")[0]
    assert float(named.removesuffix(" us")) * 1000 <= found.kernel_ns


def rules(found: RunVerdict) -> set[str]:
    return {each.rule for each in found.advice if each.about != FACT}


def works(x: Any, y: Any, tl: Any) -> None:
    """Compute for long on each block."""
    at = tl.program_id(0) * 16 * BLOCK
    for i in range(16):
        block = tl.load(x + at + i * BLOCK, shape=(BLOCK,))
        for _ in range(4):
            block = tl.exp(block)
        tl.store(y + at + i * BLOCK, block)


def copies(x: Any, y: Any, tl: Any) -> None:
    """Keep HBM busy."""
    at = tl.program_id(0) * 16 * BLOCK
    blocks = [tl.load(x + at + i * BLOCK, shape=(BLOCK,), wait=False) for i in range(16)]
    for i, block in enumerate(blocks):
        tl.store(y + at + i * BLOCK, block)


def waits(x: Any, y: Any, tl: Any) -> None:
    """Load few bytes, one after the other."""
    at = tl.program_id(0) * 16 * BLOCK
    for i in range(32):
        tl.load(x + at + i * 16, shape=(16,))


@pytest.mark.parametrize("launches", [1, 3])
def test_launches_one_after_the_other_have_the_cause_of_one(launches: int) -> None:
    def bench(rt: Any) -> None:
        x, y = (rt.empty((64 * BLOCK,), "f32", name=name) for name in "xy")
        for _ in range(launches):
            rt.launch(works, x, y)

    found, _ = verdict_of(bench)
    assert found.limiter is not None and found.limiter.kind == "compute"
    assert "way of commands" not in found.limiter.cause


@pytest.mark.parametrize("others", [0, 4])
def test_a_kernel_beside_others_has_not_what_these_show(others: int) -> None:
    """The slowest one waits for the latency of short loads, whatever others do to HBM."""

    def bench(rt: Any) -> None:
        x, y = (rt.empty((64 * BLOCK,), "f32", name=name) for name in "xy")
        rt.launch(waits, x, y)
        for number in range(others):
            rt.launch(copies if number < 1 else named(f"copies{number}"), x, y)

    def named(name: str) -> Any:
        kernel = type(copies)(copies.__code__, copies.__globals__, name)
        kernel.__annotations__ = copies.__annotations__
        return kernel

    found, _ = verdict_of(bench)
    assert found.limiter is not None and "HBM" not in found.limiter.cause
    assert ("small-transfers" in rules(found)) == (not others)


def in_place(x: Any, y: Any, tl: Any) -> None:
    """Load in each turn what the one before stored."""
    at = tl.program_id(0) * BLOCK
    for _ in range(16):
        tl.store(x + at, tl.load(x + at, shape=(BLOCK,)) * 2.0)


def test_what_a_turn_stores_is_not_to_be_loaded_a_turn_earlier() -> None:
    def bench(rt: Any) -> None:
        rt.launch(in_place, rt.zeros((4 * BLOCK,), "f32", name="x"), rt.empty((4 * BLOCK,), "f32", name="y"))

    assert not {"loads-ahead", "small-transfers"} & rules(verdict_of(bench)[0])


def adds(a: Any, b: Any, tl: Any) -> None:
    at = tl.program_id(0) * BLOCK
    tl.store(b + at, tl.load(a + at, shape=(BLOCK,)) + 1.0)


@pytest.mark.parametrize("waits_for_first", [True, False])
def test_a_launch_that_reads_what_one_before_the_last_wrote_has_to_wait(waits_for_first: bool) -> None:
    """Of three on PEs of their own."""

    def bench(rt: Any) -> None:
        a, b, c, d, e, f = (rt.tensor((4 * BLOCK,), "f32", name=name, resident=True) for name in "abcdef")
        for number, (given, made) in enumerate(((a, b), (c, d), (b if waits_for_first else e, f))):
            rt.launch(adds, given, made, grid=(1,), pes=[number])

    assert ("in-sequence" in rules(verdict_of(bench)[0])) != waits_for_first


@pytest.mark.parametrize("hands_on", [True, False])
def test_launches_are_joined_only_where_none_needs_another(hands_on: bool) -> None:
    """Its end is what programs of the next one rely on; it saves the launches but one, of all."""

    def bench(rt: Any) -> None:
        x, y = (rt.zeros((4 * BLOCK,), "f32", name=name) for name in "xy")
        for number in range(6):
            rt.launch(adds, *((x, y) if number % 2 == 0 or not hands_on else (y, x)))

    found, run = verdict_of(bench)
    [told] = [each for each in found.advice if each.rule == "launch"]
    assert (told.about == FACT) == hands_on
    if not hands_on:
        assert told.gain == pytest.approx(run.phases["launch"] / run.total_ns * 5 / 6)


def of_a_vector(a: Any, x: Any, y: Any, tl: Any) -> None:
    """Multiply rows by a vector."""
    at = tl.program_id(0) * 8
    rows = tl.load(a + at * 1024, shape=(8, 1024))
    tl.store(y + at, tl.sum(rows * tl.load(x, shape=(1, 1024)), axis=1))


def test_a_matrix_and_a_vector_are_no_product_for_an_array() -> None:
    def bench(rt: Any) -> None:
        shapes = ((32, 1024), (1, 1024), (32,))
        rt.launch(of_a_vector, *(rt.empty(shape, "f32", name=name) for name, shape in zip("axy", shapes, strict=True)))

    assert "by-hand" not in rules(verdict_of(bench)[0])
