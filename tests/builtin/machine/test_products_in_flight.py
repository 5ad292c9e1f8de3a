"""`tl.dot(…, wait=False)`: products stream, what uses a result waits for it, and space is theirs until they end."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.errors import KernelError, PendingDataError, TcmOverflowError
from kernbench_core.values.region import Region, overlaps

ROWS, COLUMNS, START = 8, 8, 7
AROUND = 2 * ROWS + COLUMNS - 2
ARRAY = [f"components.pe_gemm.params.{each}" for each in (f"rows={ROWS}", f"columns={COLUMNS}", f"overhead={START}ns")]


def run(kernel: Any, plugins: Any, sets: list[str] | None = None) -> Any:
    """Run a kernel on one PE with two square matrices of f16 and an output; give the result of the run."""

    def bench(rt: Any) -> None:
        given = [rt.tensor((64, 64), "f16", name=name) for name in "ab"]
        rt.launch(kernel, *given, rt.empty((16, 64, 64), "f32", name="out"), grid=(1,))

    return kb.run(bench, "tiny", {}, plugins=plugins, set=[*ARRAY, *(sets or [])])


def products(result: Any) -> list[tuple[float, float]]:
    """When each product was served."""
    return [(op.t_start, op.t_end) for op in result.op_log if op.op_kind == "gemm"]


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("accumulate", [False, True])
def test_products_that_nobody_waits_for_stream_and_others_do_not(plugins: Any, n: int, accumulate: bool) -> None:
    """n T and one fill and drain, apart from each other or added up; with waits each pays, and the way of a command."""

    def kernel(a_ptr: Any, b_ptr: Any, out: Any, tl: Any) -> None:
        a, b, acc = tl.load(a_ptr, shape=(64, 64)), tl.load(b_ptr, shape=(64, 64)), None
        results = []
        for _ in range(n):
            acc = tl.dot(a, b, acc if accumulate else None, wait=wait)
            results.append(acc)
        tl.store(out, acc)

    entering = 8 * 8 * 64  # blocks of 8 x 8, 64 cycles each
    took = {}
    for wait in (False, True):
        spans = products(run(kernel, plugins))
        assert len(spans) == n
        took[wait] = spans[-1][1] - spans[0][0]
    assert took[False] == START + n * entering + AROUND
    assert took[True] >= n * (START + entering + AROUND) + (n - 1) * 2  # two wires of 1 ns and more
    assert n > 1 or took[True] == took[False]


@pytest.mark.parametrize("use", ["+", "store", "dot", "view", "wait", "wait all", "composite", "bias", "end"])
def test_a_use_of_a_result_waits_for_it(plugins: Any, use: str) -> None:
    """By itself, whatever uses it; `acc` alone does not."""

    def kernel(a_ptr: Any, b_ptr: Any, out: Any, tl: Any) -> None:
        a, b = tl.load(a_ptr, shape=(64, 64)), tl.load(b_ptr, shape=(64, 64))
        c = tl.dot(a, b, out_dtype="f16", wait=False)
        mark = tl.full((1,), 1.0, "f32")
        assert mark is not None
        if use == "+":
            c + 1.0
        elif use == "store":
            tl.store(out, c)
        elif use == "dot":
            tl.dot(c, b)
        elif use == "view":
            tl.trans(tl.reshape(c, (32, 128)))
        elif use == "wait":
            tl.wait(c)
        elif use == "wait all":
            tl.wait()
        elif use == "composite":
            tl.composite("gemm", c, b, tl.ref(out, (64, 64)))
        elif use == "bias":
            tl.composite("gemm", a, b, tl.ref(out, (64, 64)), epilogue=[("bias", c)])
        if use != "end":
            tl.full((2,), 1.0, "f32")

    log = run(kernel, plugins).op_log
    (end,) = [op.t_end for op in log if op.op_id is not None and op.op_kind == "gemm" and op.op_id[1] == 2]
    mark, *after = [op for op in log if op.op_name == "full"]
    assert mark.t_end < end
    assert all(op.t_start > end for op in log if op.op_id is not None and op.op_id[1] > 3)
    assert len(after) == (use != "end")


def test_a_result_on_its_way_is_pending_and_stays_so(plugins: Any) -> None:
    """`tl.wait` gives time only; reading waits first, and is then refused as ever."""

    def kernel(a_ptr: Any, b_ptr: Any, out: Any, tl: Any) -> None:
        a = tl.load(a_ptr, shape=(64, 64))
        c = tl.dot(a, a, wait=False)
        assert repr(c).startswith("Tensor(f32[64, 64], in flight, not known yet, of tl.dot at ")
        tl.wait(c)
        assert "f32[64, 64], of tl.dot at " in repr(c)
        tl.dot(a, a, wait=False)[0, 0]

    with pytest.raises(PendingDataError) as raised:
        run(kernel, plugins)
    assert "an element at" in str(raised.value) and "the result of tl.dot made at" in str(raised.value)


def test_an_accumulator_must_be_live_and_ones_own(plugins: Any) -> None:
    """Also where it is on its way."""

    def freed(a_ptr: Any, b_ptr: Any, out: Any, tl: Any) -> None:
        a = tl.load(a_ptr, shape=(64, 64))
        c = tl.dot(a, a, wait=False)
        tl.free(c)
        tl.dot(a, a, c, wait=False)

    with pytest.raises(KernelError) as raised:
        run(freed, plugins)
    assert str(raised.value).startswith("tl.dot at ")
    assert " must be given a live tensor, and f32 [64, 64] of tl.dot, born at " in str(raised.value)
    assert "; free it after its last use." in str(raised.value)


def test_products_on_their_way_hold_the_space_of_all_that_they_use(plugins: Any) -> None:
    """Five results do not fit at once, and do one after the other; names that are gone change nothing."""

    def kernel(a_ptr: Any, b_ptr: Any, out: Any, tl: Any) -> None:
        for _ in range(5):
            a = tl.load(a_ptr, shape=(64, 64))
            c = tl.dot(a, a, wait=False)
            del a
            if wait:
                tl.wait(c)
            del c

    room = ["pe.tcm.capacity=64KiB"]  # 8 KiB in, 16 KiB out: two of each and a half
    for wait in (True, False):
        if wait:
            assert len(products(run(kernel, plugins, sets=room))) == 5
            continue
        with pytest.raises(TcmOverflowError) as raised:
            run(kernel, plugins, sets=[*room, "components.pe_gemm.params.clock=0.01GHz"])
        assert "tl.dot f32 [64, 64], born at" in str(raised.value)


# Made-up kernels ------------------------------------------------------------------------------------------

names = st.sampled_from("pqrs")
steps = st.one_of(
    st.tuples(st.just("load"), names, st.integers(0, 3), st.booleans()),
    st.tuples(st.just("dot"), names, names, names, st.none() | names, st.sampled_from((False, False, False, True))),
    st.tuples(st.sampled_from(("free", "drop", "wait", "store", "add")), names),
)


def narrow(tile: Any) -> bool:
    """Whether a tile was loaded, and is of f16."""
    return str(tile.dtype) in ("f16", "float16")


def perform(tl: Any, pointers: tuple[Any, ...], out: Any, program: list[tuple[Any, ...]]) -> int:
    """Do the steps on four names, as far as they make sense; return how many tiles were stored."""
    held: dict[str, Any] = {}
    stored = 0
    for what, name, *rest in program:
        if what == "load":
            held[name] = tl.load(pointers[rest[0]], shape=(16, 16), wait=rest[1])
        elif what == "dot":
            left, right, acc = (None if each is None else held.get(each) for each in rest[:3])
            if left is None or right is None or not narrow(left) or not narrow(right):
                continue
            acc = None if acc is None or narrow(acc) else acc
            held[name] = tl.dot(left, right, acc, wait=rest[3])
        elif held.get(name) is None:
            continue
        elif what in ("free", "drop"):
            tile = held.pop(name)
            if what == "free" and not any(each is tile for each in held.values()):
                tl.free(tile)
        elif what == "wait":
            tl.wait(held[name])
        elif what == "store" and stored < 16:
            tl.store(out + stored * 256, held[name])
            stored += 1
        elif what == "add" and not narrow(held[name]):
            held[name] = held[name] + held[name]
    return stored


def tcm(access: Any) -> list[Region]:
    """The bytes of a scratchpad that an access touches."""
    return list(access.regions) if access is not None and access.space == "tcm" else []


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=4, max_size=24), st.sampled_from((1, 2)), st.booleans())
def test_no_space_is_handed_on_while_a_product_uses_it(
    plugins: Any, program: list[tuple[Any, ...]], servers: int, pipelined: bool
) -> None:
    """In any program: ops whose times overlap never touch what one of them writes, and read what is there by then.

    Only a product that is added to a sum on its way begins before that has ended.
    """
    numbers = [np.random.default_rng(i).integers(-2, 3, (16, 16)).astype(np.float16) for i in range(4)]

    def kernel(x0: Any, x1: Any, x2: Any, x3: Any, out: Any, tl: Any) -> None:
        perform(tl, (x0, x1, x2, x3), out, program)

    def bench(rt: Any) -> None:
        given = [rt.tensor(array, name=f"x{i}") for i, array in enumerate(numbers)]
        out = rt.zeros((16, 16, 16), "f32", name="out")
        rt.launch(kernel, *given, out, grid=(1,))
        rt.check(out, lambda: expected(program, numbers), rtol=1e-2, atol=1e-2)

    given = (f"servers={servers}", f"pipelined={str(pipelined).lower()}")
    more = [f"components.pe_gemm.params.{each}" for each in given]
    result = kb.run(bench, "tiny", {}, plugins=plugins, set=[*ARRAY, *more], verify_data=True)
    assert result.verified and not result.hazards
    log = list(result.op_log)
    for one, other in combinations(log, 2):  # in the order of their starts
        if other.t_start >= one.t_end:
            continue
        (one_reads, one_writes), (reads, writes) = (
            ([region for access in op.reads for region in tcm(access)], tcm(op.writes)) for op in (one, other)
        )
        assert not any(overlaps(a, b) for a in one_writes + one_reads for b in writes), (one, other)
        early = [a for a in one_writes for b in reads if overlaps(a, b)]
        if early:
            assert other.op_kind == one.op_kind == "gemm" and other.params["accumulate"], (one, other)
            factors = [region for access in other.reads[:2] for region in tcm(access)]
            assert not any(overlaps(a, b) for a in early for b in factors)
            assert one.t_end < other.t_end


class Eager:
    """`tl` for the expected values: numpy, at once."""

    def __init__(self, out: Any) -> None:
        self.out = out

    def load(self, array: Any, shape: Any, wait: bool) -> Any:
        return array.astype(np.float16)

    def dot(self, a: Any, b: Any, acc: Any, wait: bool) -> Any:
        product = a.astype(np.float32) @ b.astype(np.float32)
        return product if acc is None else acc + product

    def store(self, place: int, tile: Any) -> None:
        self.out[place // 256] = tile

    def free(self, tile: Any) -> None:
        """Do nothing."""

    wait = free


def expected(program: list[tuple[Any, ...]], numbers: list[Any]) -> Any:
    """What the stores leave."""
    out = np.zeros((16, 16, 16), np.float32)
    with np.errstate(all="ignore"):
        perform(Eager(out), tuple(numbers), 0, program)
    return out
