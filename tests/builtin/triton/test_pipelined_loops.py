"""Loops whose loads go ahead: as fast as the slower of loads and work, with the same data, and only where they may."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench as kb
from tests.builtin.triton.kernels import walking

# mypy: disable-error-code="import-not-found"


def time_of(n: int, *, work: int = 1, loads: bool = True, stages: int = 2, on: bool = True) -> float:
    """Return the ns of a launch of one program of n iterations, whose sums must be right."""
    x, out = np.arange(10 * 512, dtype=np.float32), np.zeros(512, np.float32)
    with kb.triton("tiny", pipeline_loops=on) as sim:
        walking()[(1,)](x, out, n, WORK=work, LOADS=loads, BLOCK=512, num_stages=stages)
    if loads:
        assert out.tolist() == (work * x.reshape(10, 512)[:n].sum(0)).tolist()
    assert sim.verified and sim.result is not None and not sim.result.hazards
    return sim.launches[0].time_ns


def test_an_iteration_takes_the_longer_of_load_and_work() -> None:
    """Without pipelining, or with one stage, it takes both; the work alone is measured without loads."""
    alone = [time_of(n, work=16, loads=False) for n in (3, 6, 10)]
    loads = time_of(10, on=False) - time_of(10, loads=False) - time_of(6, on=False) + time_of(6, loads=False)
    ahead = [time_of(n, work=16) for n in (3, 6, 10)]
    work = (alone[2] - alone[1]) / 4
    assert loads / 4 < work
    issued = (ahead[2] - ahead[1]) / 4 - work  # the PE's time to hand the load to its DMA
    assert 0 < issued < 0.05 * work and ahead[1] - ahead[0] == pytest.approx(3 * (work + issued), abs=1e-3)
    for on, stages in ((True, 1), (False, 2)):
        both = time_of(10, work=16, on=on, stages=stages) - time_of(6, work=16, on=on, stages=stages)
        assert both == pytest.approx(4 * work + loads, abs=1e-3)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_no_more_is_under_way_than_stages_say(stages: int) -> None:
    """And nothing is loaded twice, nor for an iteration that does not come."""
    x, out = np.ones(9 * 512, np.float32), np.zeros(512, np.float32)
    with kb.triton("tiny", pipeline_loops=True) as sim:
        walking()[(1,)](x, out, 9, WORK=1, LOADS=True, BLOCK=512, num_stages=stages)
    assert sim.result is not None
    ops = sim.result.ops
    loads = np.array(list(ops["name"])) == "dma_read"
    begins, ends = ops["t_start"][loads][1:], ops["t_end"][loads][1:]  # without the one before the loop
    assert len(begins) == 9
    assert max(int(((begins <= at) & (at < ends)).sum()) for at in begins) == stages


def nesting() -> Any:
    """Give a kernel that loads a tile in a loop, and others in a loop inside."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):  # noqa: N803
        at = tl.arange(0, BLOCK)
        for i in range(4):
            total = tl.load(x_ptr + i * BLOCK + at)
            for j in range(4):
                total += tl.load(y_ptr + j * BLOCK + at)
            tl.store(out_ptr + i * BLOCK + at, total)

    return kernel


def test_only_the_innermost_loop_loads_ahead() -> None:
    """A load of the outer one begins behind all that the iteration before it did."""
    x, y, out = np.ones(64, np.float32), np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with kb.triton("tiny", pipeline_loops=True) as sim:
        nesting()[(1,)](x, y, out, BLOCK=16)
    assert out.reshape(4, 16).tolist() == [(1 + y.reshape(4, 16).sum(0)).tolist()] * 4
    assert sim.result is not None
    ops = sim.result.ops
    names = np.array(list(ops["name"]))
    stores, begins = ops["t_end"][names == "dma_write"], ops["t_start"][names == "dma_read"]
    for end in stores[:-1]:
        assert (begins >= end).sum() % 5 == 0 and (begins >= end).sum() > 0


def copying() -> Any:
    """Give a kernel that stores a tile again and again, and loads others into it, a step further on each, at first."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, out_ptr, n, loads, first, step, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # noqa: N803
        row = tl.arange(0, ROWS)[:, None]  # rows of several distances, each a piece of its own
        at = row * row * (COLUMNS + 2) + tl.arange(0, COLUMNS)[None, :]
        tile = tl.zeros((ROWS, COLUMNS), tl.float32)
        for i in tl.range(0, n, num_stages=2):
            if i < loads:
                tile = tl.load(x_ptr + first + i * step + at)
            tl.store(out_ptr + at, tile)

    return kernel


def moves(sim: Any) -> str:
    """Return the loads and stores of a run in order of issue, as r and w."""
    ops = sim.result.ops
    names = np.array(list(ops["name"]))[np.argsort(ops["issue"])]
    return "".join({"dma_read": "r", "dma_write": "w"}.get(name, "") for name in names)


@pytest.mark.parametrize(
    ("size", "n", "loads", "first", "step", "rows", "issued"),
    [
        (58, 5, 5, 0, 10, 1, "rwrrwrwrww"),
        (48, 7, 5, 0, 10, 1, "rwrrwrwrwwww"),
        (48, 7, 5, 40, -10, 1, "rwrrwrwrwwww"),
        (128, 6, 4, 0, 10, 4, "rwrrwrwwww"),
        (128, 6, 4, 30, -10, 4, "rwrrwrwwww"),
    ],
)
def test_nothing_goes_ahead_of_the_last_iteration_or_from_outside_of_the_tensor(
    size: int, n: int, loads: int, first: int, step: int, rows: int, issued: str
) -> None:
    """The tensor's last tile does, in either direction, and none of which a part lies beyond."""
    with kb.triton("tiny", pipeline_loops=True, verify_data=False) as sim:
        x, out = np.ones(size, np.float32), np.zeros(128, np.float32)
        copying()[(1,)](x, out, n, loads, first, step, ROWS=rows, COLUMNS=8)
    assert moves(sim) == issued


@pytest.mark.parametrize(("nbytes", "issued"), [(4 * 4096 - 64, "rwrwrw"), (4 * 4096, "rwrrww")])
def test_a_tile_goes_ahead_where_half_of_the_largest_hole_holds_it(nbytes: int, issued: str) -> None:
    """Beside the last two of 4 KiB the scratchpad has room for two more, or for a line less."""
    x, out = np.ones(3 * 1024, np.float32), np.zeros(1024, np.float32)
    with kb.triton("tiny", pipeline_loops=True, set=[f"pe.tcm.capacity={nbytes} B"], verify_data=False) as sim:
        copying()[(1,)](x, out, 3, 3, 0, 1024, ROWS=1, COLUMNS=1024)
    assert moves(sim) == issued


def scanning() -> Any:
    """Give a kernel that reads and writes one vector at places that go on by steps, guarded by an atomic op or not."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, n, first, step, to, by, since, LOCK: tl.constexpr, SAME: tl.constexpr):  # noqa: N803
        at = tl.arange(0, 8)
        for i in tl.range(0, n, num_stages=3):
            if LOCK:
                tl.atomic_add(y_ptr + 300, 1)
            x = tl.load(x_ptr + first + i * step + at, mask=at < 7, other=i // 3)
            out_ptr = x_ptr if SAME else y_ptr
            if i >= since:
                tl.store(out_ptr + to + i * by + at, x + 1)

    return kernel


@settings(max_examples=30)
@given(
    st.integers(0, 7), st.integers(0, 30), st.integers(-3, 9), st.integers(0, 30), st.integers(-3, 9),
    st.sampled_from([0, 3]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_data_is_that_of_one_iteration_after_the_other(
    n: int, first: int, step: int, to: int, by: int, since: int, same: bool, lock: bool
) -> None:
    """Of loops that write what they read later, too."""
    first, to = first + 24, to + 24
    x, y = np.arange(400, dtype=np.float32), np.zeros(400, np.float32)
    right, other = x.copy(), y.copy()
    for i in range(n):
        tile = right[first + i * step :][:8].copy()
        tile[7] = i // 3
        if i >= since:
            (right if same else other)[to + i * by :][:8] = tile + 1
        other[300] += lock
    with kb.triton("tiny", pipeline_loops=True) as sim:
        scanning()[(1,)](x, y, n, first, step, to, by, since, LOCK=lock, SAME=same)
    assert x.tolist() == right.tolist() and y.tolist() == other.tolist()
    assert sim.verified


def times(kernel: Any, *args: Any, **named: Any) -> list[float]:
    """Return the ns of a launch without and with pipelining."""
    found = []
    for on in (False, True):
        given = [each.copy() if isinstance(each, np.ndarray) else each for each in args]
        with kb.triton("tiny", pipeline_loops=on) as sim:
            kernel()[(1,)](*given, **named)
        found.append(sim.launches[0].time_ns)
    return found


def test_nothing_goes_ahead_of_what_orders_programs_or_writes_there() -> None:
    """An atomic op, or a store to the tensor, leaves the loop as it is; without them it gains."""
    x, y = np.zeros(400, np.float32), np.zeros(400, np.float32)
    for lock, same in ((False, True), (True, False), (False, False)):
        plain, ahead = times(scanning, x, y, 6, 0, 8, 0, 8, 0, LOCK=lock, SAME=same)
        assert (ahead < plain) is not (lock or same) and ahead <= plain


def test_configurations_that_differ_in_stages_are_tried_each() -> None:
    """Autotune finds the deeper one, where loops are pipelined; else one is like the other."""
    for on in (True, False):
        x, out = np.ones(4096, np.float32), np.zeros(512, np.float32)
        with kb.triton("tiny", pipeline_loops=on) as sim:
            import triton

            configs = [triton.Config({"BLOCK": 512}, num_stages=stages) for stages in (1, 2)]
            triton.autotune(configs=configs, key=["n"])(walking())[(1,)](x, out, 8, WORK=4, LOADS=True)
        shallow, deep = (trial.time_ns for trial in sim.tunings[0].trials)
        assert shallow is not None and deep is not None and (deep < shallow) is on
        assert on or deep == shallow


def test_the_result_tells_of_stages_where_they_change_nothing() -> None:
    """And not where loops take them."""
    for on in (True, False):
        x, out = np.ones(1024, np.float32), np.zeros(512, np.float32)
        with kb.triton("tiny", pipeline_loops=on) as sim:
            walking()[(1,)](x, out, 2, WORK=1, LOADS=True, BLOCK=512, num_stages=2, num_warps=8)
        assert sim.result is not None
        told = [each.sentence.split(" ", 1)[0] for each in sim.result.not_modelled if each.component == "the kernel"]
        assert told == (["num_warps"] if on else ["num_stages", "num_warps"])
        assert sim.result.manifest["pipeline_loops"] is on


def told(sim: Any) -> list[str]:
    """Return what the result tells of loads that wait for their iteration, without where they stand."""
    sentences = [each.sentence for each in sim.result.not_modelled if each.sentence.startswith("tl.load at ")]
    return [re.sub(r"\w+\.py:\d+", "LINE", each) for each in sentences]


def test_the_result_tells_why_a_load_waits_for_its_iteration() -> None:
    """An atomic op, a store to the tensor, another loop inside, steps that are not equal; else nothing."""
    ends = "is not under way before its iteration (num_stages), as"
    whys = {
        (True, False): f"tl.load at LINE {ends} tl.atomic_add at LINE may order programs.",
        (False, True): f"tl.load at LINE {ends} LINE writes 'x_ptr' in its loop.",
        (False, False): None,
    }
    for (lock, same), why in whys.items():
        x, y = np.zeros(400, np.float32), np.zeros(400, np.float32)
        with kb.triton("tiny") as sim:
            scanning()[(1,)](x, y, 6, 0, 8, 0, 8, 0, LOCK=lock, SAME=same)
        assert told(sim) == ([] if why is None else [why])
    with kb.triton("tiny") as sim:
        nesting()[(1,)](np.ones(64, np.float32), np.ones(64, np.float32), np.ones(64, np.float32), BLOCK=16)
    assert told(sim) == [f"tl.load at LINE {ends} another loop is inside of its loop."]
    for power, said in ((1, []), (2, [f"tl.load at LINE {ends} it does not go on by equal steps."])):
        with kb.triton("tiny") as sim:
            skipping()[(1,)](np.ones(800, np.float32), np.zeros(8, np.float32), 8, 8, power, BLOCK=8)
        assert told(sim) == said


def skipping() -> Any:
    """Give a kernel whose first program adds up the first tiles of a vector; the others write one behind these."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, out_ptr, n, upto, power, BLOCK: tl.constexpr):  # noqa: N803
        at = tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        if tl.program_id(0) == 0:
            for i in range(n):
                if i < upto:
                    total += tl.load(x_ptr + (i * i if power == 2 else i) * BLOCK + at)
            tl.store(out_ptr + at, total)
        else:
            tl.store(x_ptr + upto * BLOCK + at, total)

    return kernel


def test_a_tile_that_no_iteration_asks_for_races_with_nobody() -> None:
    """And one that is asked for races as it does without pipelining."""
    for upto, races in ((4, 0), (3, 1)):
        for on in (False, True):
            x, out = np.ones(64, np.float32), np.zeros(8, np.float32)
            with kb.triton("tiny", pipeline_loops=on) as sim:
                kernel = skipping() if races == 0 else racing()
                kernel[(2,)](x, out, 8, upto, 1, BLOCK=8)
            assert sim.result is not None and len(sim.result.hazards) == races
            assert sum("tl.load" in repr(each) for each in sim.result.hazards) == races


def racing() -> Any:
    """Give a kernel whose second program writes what the first reads in a loop."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, out_ptr, n, upto, power, BLOCK: tl.constexpr):  # noqa: N803
        at = tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        if tl.program_id(0) == 0:
            for i in range(n):
                total += tl.load(x_ptr + i * BLOCK + at)
            tl.store(out_ptr + at, total)
        else:
            tl.store(x_ptr + upto * power * BLOCK + at, total)

    return kernel


def test_memory_that_nobody_has_written_is_not_read_ahead(tmp_path: Path) -> None:
    """A loop that leaves out what is not there is right, of an array without content."""

    def kernel(x_ptr, n, upto, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803, F821
        at = tl.arange(0, BLOCK)  # type: ignore[name-defined]  # noqa: F821
        total = tl.zeros((BLOCK,), tl.float32)  # type: ignore[name-defined]  # noqa: F821
        for i in range(upto):
            tl.store(x_ptr + i * BLOCK + at, total + i)  # type: ignore[name-defined]  # noqa: F821
        for i in range(n):
            if i < upto:
                total += tl.load(x_ptr + i * BLOCK + at)  # type: ignore[name-defined]  # noqa: F821
        tl.store(x_ptr + upto * BLOCK + at, total)  # type: ignore[name-defined]  # noqa: F821

    source = textwrap.dedent(inspect.getsource(kernel))
    source = f"import triton\nimport triton.language as tl\n\n@triton.jit\n{source}"
    (tmp_path / "k.py").write_text(re.sub("  #.*", "", source))
    given = {"x_ptr": "empty:f32:64", "n": "8", "upto": "7", "BLOCK": "8"}
    result = kb.run(f"{tmp_path / 'k.py'}:kernel", "tiny", given, grid="1", outputs=True)
    assert result.outputs is not None and result.outputs["x_ptr"][-8:].tolist() == [21.0] * 8


def widening() -> Any:
    """Give a kernel that needs more and more room in a loop of loads."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # noqa: N803
        at = tl.arange(0, BLOCK)
        kept = ()
        total = tl.zeros((BLOCK,), tl.float32)
        for i in range(n):
            x = tl.load(x_ptr + i * BLOCK + at)
            kept = (*kept, x + 1.0)
            total += x
        for each in kept:
            total += each
        tl.store(out_ptr + at, total)

    return kernel


def test_what_is_read_ahead_gives_way_to_what_the_program_needs() -> None:
    """In any scratchpad in which it runs without, it runs with it, and gives the same."""
    ran = []
    for blocks in range(7, 15):
        gave = []
        for on in (False, True):
            x, out = np.arange(8 * 256, dtype=np.float32), np.zeros(256, np.float32)
            with kb.triton("tiny", pipeline_loops=on, set=[f"pe.tcm.capacity={blocks} KiB"]):
                try:
                    widening()[(1,)](x, out, 8, BLOCK=256, num_stages=4)
                    gave.append(out.tolist())
                except kb.KernbenchError as error:
                    gave.append(type(error).__name__)
        ran.append(isinstance(gave[0], list))
        assert gave[0] == gave[1]
        assert not ran[-1] or gave[0] == (2 * x.reshape(8, 256).sum(0) + 8).tolist()
    assert True in ran and False in ran


@settings(max_examples=12)
@given(
    st.integers(2, 5), st.integers(0, 30), st.integers(-3, 9), st.integers(0, 30), st.integers(-3, 9),
    st.sampled_from([0, 3]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_races_are_those_of_one_iteration_after_the_other(
    n: int, first: int, step: int, to: int, by: int, since: int, same: bool, lock: bool
) -> None:
    """Between the same lines, of two programs that do the same."""
    found = []
    for on in (False, True):
        x, y = np.arange(400, dtype=np.float32), np.zeros(400, np.float32)
        with kb.triton("tiny", pipeline_loops=on) as sim:
            scanning()[(2,)](x, y, n, first + 24, step, to + 24, by, since, LOCK=lock, SAME=same)
        assert sim.result is not None
        found.append({frozenset((each.first.line, each.second.line)) for each in sim.result.hazards})
    assert found[0] == found[1]
