"""Loads, stores, masks and names of the kernel language, against numpy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.errors import (
    KernelError,
    OutOfBoundsError,
    PageFaultError,
    PendingDataError,
    ShapeError,
    UninitializedReadError,
    UnsupportedError,
)
from kernbench_core.kernel.tl.language import DIFFERS, OURS, REFUSED, SAME, TLContext, constexpr, table
from tests.core.kernel.tl.bodies import collect
from tests.core.kernel_rig import Rig

X = np.arange(96, dtype=np.float32).reshape(8, 12)
DOCS = Path(__file__).parents[4] / "docs" / "language.md"


def refused(body: Callable[..., Any], kind: type[Exception], *arrays: Any) -> str:
    """Give the first line of what a kernel's error says, its own line number as LINE."""
    with pytest.raises(kind) as caught:
        collect(body, *arrays)
    return str(caught.value).partition("\n")[0].replace(f"{__file__}:{body.__code__.co_firstlineno}", "LINE")


# Loads ------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_any_pointer_load_equals_numpy(data: Any) -> None:
    """Affine and gathered, masked and not, one and two dimensions, with `other`."""
    m, n = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    sm, sn = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 4))
    limit = data.draw(st.integers(0, 96))
    masked = data.draw(st.booleans())
    offsets = np.arange(m)[:, None] * sm + np.arange(n)[None, :] * sn

    def body(x: Any, tl: Any) -> Any:
        where = tl.arange(0, m)[:, None] * sm + tl.arange(0, n)[None, :] * sn
        mask = where < limit if masked else None
        return tl.load(x + where, mask=mask, other=-1.0 if masked else None).numpy()

    got, _ = collect(body, X)
    want = X.ravel()[offsets]
    np.testing.assert_array_equal(got, np.where(offsets < limit, want, -1.0) if masked else want)


def test_a_gather_by_loaded_indices() -> None:
    """Loaded integers are addresses; the gather moves one element each, in any order."""
    index = np.array([5, 90, 5, 0, 17], np.int32)
    got, rig = collect(lambda x, i, tl: tl.load(x + tl.load(i, shape=(5,))).numpy(), X, index)
    np.testing.assert_array_equal(got, X.ravel()[index])
    assert rig.log[1].params["nbytes"] == 20


def test_the_direct_form() -> None:
    """A tile with strides, its transpose by strides, another dtype, a scalar, a broadcast row, and a mask."""
    got, _ = collect(
        lambda x, tl: [
            tl.load(x + 13, shape=(3, 4), strides=(12, 1)).numpy(),
            tl.load(x, shape=(12, 8), strides=(1, 12)).numpy(),
            tl.load(x, shape=(4,), dtype=tl.int32).numpy(),
            tl.load(x + 7).numpy(),
            tl.load(x, shape=(3, 12), strides=(0, 1)).numpy(),
            tl.load(x + 95, shape=(3,), strides=(-5,)).numpy(),
            tl.load(x + 84, shape=(2, 12), mask=tl.arange(0, 2)[:, None] < 1, other=9).numpy(),
            tl.load(tl.ref(x, (2, 2), strides=(12, 1))).numpy(),
        ],
        X,
    )
    wants = (
        X[1:4, 1:5], X.T, X.ravel()[:4].view(np.int32), X[0, 7], np.tile(X[0], (3, 1)), X.ravel()[[95, 90, 85]],
        np.stack([X[7], np.full(12, 9, np.float32)]), X[:2, :2],
    )  # fmt: skip
    for tile, want in zip(got, wants, strict=True):
        np.testing.assert_array_equal(tile, want)


def test_other_may_be_a_tensor() -> None:
    """Then the load is followed by a timed choice."""
    def body(x: Any, tl: Any) -> Any:
        r = tl.arange(0, 6)
        tl.store(x + r, tl.load(x + r, mask=r < 4, other=r * 10))

    _, rig = collect(body, X)
    assert rig.ops() == ["dma_read", "where", "dma_write"]
    tensor = next(iter(rig.memory._live.values()))
    np.testing.assert_array_equal(rig.numpy(tensor).ravel()[:6], [0, 1, 2, 3, 40, 50])


# Stores -----------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_any_store_equals_numpy(data: Any) -> None:
    """Masked or not, ready or pending data: masked-off elements keep what they held."""
    m, n = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    limits = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5))
    pending, box = data.draw(st.booleans()), data.draw(st.booleans())

    def kernel(x: Any, y: Any, tl: Any) -> None:
        r, c = tl.arange(0, m)[:, None], tl.arange(0, n)[None, :]
        mask = (r < limits[0]) & (c < limits[1]) if box else (r + c) % 2 == 0
        tile = tl.load(x, shape=(m, n), strides=(12, 1))
        tl.store(y + r * 12 + c, tile + 1.0 if pending else tile, mask=mask)

    rig = Rig()
    y = rig.tensor(np.zeros_like(X))
    rig.run(kernel, rig.tensor(X), y)
    r, c = np.arange(m)[:, None], np.arange(n)[None, :]
    mask = (r < limits[0]) & (c < limits[1]) if box else (r + c) % 2 == 0
    want = np.zeros_like(X)
    want[:m, :n][mask] = (X[:m, :n] + pending)[mask]
    np.testing.assert_array_equal(rig.numpy(y), want)


def test_a_pending_mask_reads_merges_and_writes() -> None:
    """The mask is a comparison of floats: the merge is one op, and the old content is read for it."""

    def kernel(x: Any, y: Any, tl: Any) -> None:
        tile = tl.load(x, shape=(8, 12))
        tl.store(y, tile * 2.0, mask=tile > 50.0)

    rig = Rig()
    y = rig.tensor(np.full_like(X, -1))
    rig.run(kernel, rig.tensor(X), y)
    np.testing.assert_array_equal(rig.numpy(y), np.where(X > 50, X * 2, -1))
    assert rig.ops() == ["dma_read", "mul", "gt", "dma_read", "masked_store"]
    assert [access.space for access in rig.log[-1].reads] == ["hbm", "tcm", "tcm"]


def test_stores_cast_broadcast_and_take_numbers() -> None:
    """Numbers and index tensors become tiles by a timed command; tiles are cast to the pointer's dtype."""

    def kernel(x: Any, h: Any, tl: Any) -> None:
        tl.store(x + tl.arange(0, 12), 7)
        tl.store(x + 12, tl.arange(0, 12).to(tl.int64))
        tl.store(h, tl.load(x + 12, shape=(12,)))
        tl.store(x + 24 + tl.arange(0, 2)[:, None] * 12 + tl.arange(0, 12)[None, :], tl.load(x, shape=(12,)))

    rig = Rig()
    x, h = rig.tensor(X), rig.empty((12,), "f16")
    rig.run(kernel, x, h)
    want = X.copy()
    want[0] = 7
    want[1] = np.arange(12)
    want[2:4] = 7
    np.testing.assert_array_equal(rig.numpy(x), want)
    np.testing.assert_array_equal(rig.numpy(h), np.arange(12, dtype=np.float16))
    assert rig.ops()[:6] == ["full", "dma_write", "copy", "dma_write", "dma_read", "cast"]


# What is refused ----------------------------------------------------------------------------------------


def test_bad_accesses_are_sentences() -> None:
    """Bounds, memory nobody wrote, shapes, things that are no pointers, masks that are pending."""
    assert refused(lambda x, tl: tl.load(x + 90, shape=(2, 12)), OutOfBoundsError, X) == (
        "tl.load at LINE must stay inside tensor 't0' of shape (8, 12), and reaches element [9, 5]; correct the index "
        "arithmetic, or mask it off."
    )
    assert refused(lambda x, tl: tl.load(3), ShapeError, X) == (
        "tl.load at LINE must be given a pointer, not int; pass a tensor to the launch and use the argument."
    )
    assert refused(lambda x, tl: tl.load(x, strides=(1,)), ShapeError, X) == (
        "tl.load at LINE must be given a shape when it is given strides or a dtype; add shape=."
    )
    assert refused(lambda x, tl: tl.store(x, "seven"), ShapeError, X) == (
        "tl.store at LINE must be given tensors and numbers, not str 'seven'; load it, or make it with tl.arange or "
        "tl.full."
    )
    assert refused(lambda x, tl: tl.exp(x), ShapeError, X) == (
        "tl.exp at LINE must be given tensors and numbers, not a pointer; load it first."
    )
    body = lambda x, tl: tl.load(x + tl.arange(0, 4), mask=tl.load(x + tl.arange(0, 4)) > 1.0)  # noqa: E731
    assert refused(body, PendingDataError, X) == (
        "the mask of tl.load at LINE must be known while the kernel runs, and the result of tl.gt made at LINE exists "
        "only after it; load the whole tile and choose with tl.where."
    )
    assert refused(lambda x, tl: tl.arange(4, 4), ShapeError, X) == (
        "tl.arange at LINE must be given an end above its start, not (4, 4); skip the empty tile."
    )
    assert refused(lambda x, tl: tl.load(x + tl.arange(0, 3), mask=tl.arange(0, 4) < 2), ShapeError, X) == (
        "the pointers and mask of tl.load at LINE must have operands that broadcast, not (3,) and (4,); reshape one of "
        "them."
    )
    assert refused(lambda x, tl: tl.wait(x), KernelError, X).startswith(
        "tl.wait at LINE must be given handles of this kernel, not Pointer;"
    )
    assert refused(lambda x, tl: tl.free(x), KernelError, X) == (
        "tl.free at LINE must be given a tensor of the scratchpad, not Pointer; only those take space."
    )
    assert refused(lambda x, tl: tl.static_assert(1 > 2, "no"), KernelError, X) == (
        "tl.static_assert at LINE must hold, and does not. no"
    )
    assert refused(lambda x, tl: tl.device_assert(tl.load(x, shape=(3,), dtype="int32") < 0), KernelError, X) == (
        "tl.device_assert at LINE must hold, and does not."
    )


def test_a_tensor_that_the_host_freed_is_a_page_fault() -> None:
    """The line, the element and the tensor are named."""
    rig = Rig()
    x = rig.tensor(X, "gone")
    rig.memory.free(x)

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x)

    with pytest.raises(PageFaultError) as caught:
        rig.run(kernel, x)
    assert str(caught.value) == (
        f"tl.load at {__file__}:{kernel.__code__.co_firstlineno + 1} must reach memory that is mapped, and element "
        f"[0, 0] of tensor 'gone' is not: virtual address {x.va:#x} must be mapped, and no tensor lies at or below it; "
        "was the tensor freed? Free a tensor after its last use.\n"
        "  in kernel 'kernel', program (0, 0, 0), on "
        "sip0.cube0.pe0 at 0 ns"
    )


def test_numbers_go_to_one_place() -> None:
    """A store of a number through one pointer writes one element."""
    def kernel(x: Any, tl: Any) -> None:
        tl.store(x + 5, 2.5)
        tl.store(x + 6, tl.load(x + 7) + np.float64(0.5))

    rig = Rig()
    x = rig.tensor(X)
    rig.run(kernel, x)
    want = X.copy()
    want[0, 5:7] = 2.5, 7.5
    np.testing.assert_array_equal(rig.numpy(x), want)


def test_the_first_element_that_nobody_wrote_is_named() -> None:
    """Row, column, tensor, line and remedy: through a strided tile, in a tensor of two axes and of three."""
    rig = Rig(pes=2)

    def tile(x: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(x, tl.zeros((3, 6), "f32"), strides=(8, 1))
            tl.load(x + 2, shape=(4, 4), strides=(8, 1))

    def said(kernel: Any, shape: tuple[int, ...]) -> str:
        with pytest.raises(UninitializedReadError) as caught:
            rig.run(kernel, rig.empty(shape, name="w"))
        return str(caught.value).partition("\n")[0].replace(f"{__file__}:{kernel.__code__.co_firstlineno + 3}", "LINE")

    sentence = (
        "tl.load at LINE must read memory that was written, and element {} of tensor 'w' was not; store to it first, "
        "or make the tensor with rt.zeros."
    )
    assert said(tile, (8, 8)) == sentence.format([3, 2])
    assert said(tile, (4, 2, 8)) == sentence.format([1, 1, 2])


# Names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REFUSED)
def test_refused_names_say_why(name: str) -> None:
    """Each is one sentence with the line and what to do instead."""
    assert refused(lambda x, tl: getattr(tl, name), UnsupportedError, X) == (
        f"tl.{name} at LINE is a name of Triton's that kernbench refuses: {REFUSED[name]}."
    )


def test_every_name_is_in_the_table() -> None:
    """What the table promises exists, what exists is in the table, and nothing is in it twice."""
    public = {name for name in dir(TLContext) if not name.startswith("_")}
    plumbing = {"binary", "unary", "operator", "operand", "check_operand", "math", "gemm", "reduction", "scan", "op_id",
                "wait_for", "wait_for_any", "in_flight", "known", "determined", "data_of", "made_before",
                "note_read", "shown"}  # fmt: skip
    assert {*SAME, *DIFFERS, *OURS} == public - plumbing
    assert len({*SAME, *DIFFERS, *OURS, *REFUSED}) == len(SAME) + len(DIFFERS) + len(OURS) + len(REFUSED)


def test_unknown_names_are_corrected() -> None:
    """A misspelt name gets the closest one."""
    text = refused(lambda x, tl: tl.laod(x), KernelError, X)
    assert text == "LINE: AttributeError: tl has no name 'laod'. Did you mean tl.load?"
    text = refused(lambda x, tl: tl.qqq, KernelError, X)  # and it may be a call of a plug-in that is left out
    assert text.partition(" It may belong to a plug-in ")[0] == "LINE: AttributeError: tl has no name 'qqq'."


def test_the_documentation_holds_the_generated_table() -> None:
    """docs/language.md says what the code says, name for name."""
    text = DOCS.read_text(encoding="utf-8")
    between = re.search(r"<!-- table begins -->\n(.*)<!-- table ends -->", text, re.DOTALL)
    assert between is not None
    assert between[1] == table()
    assert all(f"`tl.{name}" in text for name in OURS)


def test_constexpr_and_hints_are_accepted() -> None:
    """Annotations by import or string, a call, and hints that change nothing."""

    def kernel(x: Any, BLOCK: constexpr, OTHER: "tl.constexpr", tl: Any) -> None:  # type: ignore[name-defined] # noqa: F821, N803, UP037
        offsets = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 4), OTHER)
        for _ in tl.static_range(2):
            for step in tl.range(0, 2, num_stages=3):
                seen.append(step)
        tl.assume(True)
        tl.debug_barrier()
        tl.load(x + offsets, eviction_policy="evict_last", cache_modifier=".ca")
        assert tl.constexpr(3) == 3

    seen: list[int] = []
    rig = Rig()
    rig.run(kernel, rig.tensor(X), 4, 4)
    assert seen == [0, 1, 0, 1]
