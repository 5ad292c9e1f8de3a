"""Payloads follow what numpy does to elements: moves keep them, reductions join them, all else is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.collectives import COLLECTIVES, CallShape
from kernbench_ccl.prove.payloads import Payload, PayloadError, Stretch, contribution, joined
from kernbench_ccl.prove.postconditions import differences, right_payload, spell_fault, spell_held, spell_right
from kernbench_ccl.prove.symbols import Symbols
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, AssemblyValue, Part, ResultValue, Value
from kernbench_core.values.views import FillValue, ground

ITEM = 2  # bytes of an f16


def elements(payload: Payload) -> list[Counter[tuple[Any, int]]]:
    """Return what each element holds: the naive form of a payload."""
    out: list[Counter[tuple[Any, int]]] = []
    for segment in payload:
        assert segment.start == len(out)
        for i in range(segment.end - segment.start):
            out.append(Counter({(o, f if isinstance(o, str) else f + i): n for (o, f), n in segment.terms.items()}))
    return out


def symbols(count: int, world: int = 3, redop: str | None = "sum") -> tuple[Symbols, list[Value]]:
    """Return symbols that know `world` vectors of `count` elements."""
    found = Symbols(redop, "f16", world)
    vectors: list[Value] = [ResultValue((-1, rank), (count,), "f16") for rank in range(world)]
    for rank, vector in enumerate(vectors):
        found.contribute(vector, rank)
    return found, vectors


def math(name: str, reads: list[Value], out: Value, **params: object) -> OpDescription:
    """Describe a math op."""
    accesses = tuple(Access("tcm", (), value) for value in reads)
    return OpDescription("math", name, {"op": name, "axis": None, **params}, accesses, Access("tcm", (), out), (0, 1))


def result(*shape: int, dtype: str = "f16") -> ResultValue:
    """Return the result of some op."""
    return ResultValue((0, 1), shape, dtype)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 11), st.integers(1, 5), st.integers(0, 11)), max_size=8))
def test_assemblies_are_painted_as_numpy_paints(parts: list[tuple[int, int, int, int]]) -> None:
    """Contiguous parts of several vectors, overlapping or not, over a fill."""
    found, vectors = symbols(12)
    naive: list[Counter[tuple[Any, int]]] = [Counter() for _ in range(12)]  # the fill is the neutral 0
    pieces = [ground(FillValue(np.zeros((), np.float16)), 12 * ITEM)]
    for source, src, size, dst in parts:
        n = min(size, 12 - src, 12 - dst)
        pieces.append(Part(Region(dst * ITEM, n * ITEM), vectors[source], Region(src * ITEM, n * ITEM)))
        for i in range(n):
            naive[dst + i] = Counter({(source, src + i): 1})
    assert elements(found.of(AssemblyValue((12,), "f16", tuple(pieces)))) == naive


def test_strided_parts_are_followed_row_by_row() -> None:
    """A column of a matrix, and a row that is spread."""
    found, (a, *_) = symbols(12)
    column = AssemblyValue((3,), "f16", (Part(Region(0, 6), a, Region(2, 2, 3, 8)),))
    assert elements(found.of(column)) == [Counter({(0, e): 1}) for e in (1, 5, 9)]
    spread = Part(Region(0, 4, 2, 8), a, Region(8, 2, 4, 4))
    both = AssemblyValue((6,), "f16", (spread, Part(Region(4, 4), a, Region(0, 4))))
    assert elements(found.of(both)) == [Counter({(0, e): 1}) for e in (4, 6, 0, 1, 8, 10)]


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(0, 3))
def test_reductions_count_contributions(chosen: list[int], cut: int) -> None:
    """Adding vectors, and parts of them, adds counts, as on multisets."""
    found, vectors = symbols(5)
    total: Value = vectors[chosen[0]]
    naive = [Counter({(chosen[0], i): 1}) for i in range(5)]
    for number, rank in enumerate(chosen[1:]):
        out = ResultValue((0, number), (5,), "f16")
        turned = AssemblyValue((5,), "f16", (
            Part(Region(0, (5 - cut) * ITEM), vectors[rank], Region(cut * ITEM, (5 - cut) * ITEM)),
            Part(Region((5 - cut) * ITEM, cut * ITEM), vectors[rank], Region(0, cut * ITEM)),
        ))  # fmt: skip
        found.tell(math("add", [total, turned], out), "k.py:1")
        naive = [have + Counter({(rank, (i + cut) % 5): 1}) for i, have in enumerate(naive)]
        total = out
    assert elements(found.of(total)) == naive


MOVES: dict[str, tuple[list[tuple[int, ...]], tuple[int, ...], dict[str, object], Any]] = {
    "trans": ([(3, 4)], (4, 3), {}, lambda a: a.T),
    "flip": ([(3, 4)], (3, 4), {"axis": 1}, lambda a: np.flip(a, 1)),
    "cat": ([(12,), (12,)], (24,), {"axis": 0}, lambda a, b: np.concatenate([a, b])),
    "join": ([(12,), (12,)], (12, 2), {}, lambda a, b: np.stack([a, b], -1)),
    "broadcast_to": ([(1, 12)], (3, 12), {}, lambda a: np.broadcast_to(a, (3, 12))),
    "split": ([(6, 2)], (6,), {"part": 1}, lambda a: a[..., 1]),
}


@pytest.mark.parametrize("op", MOVES)
def test_moves_move_as_numpy_does(op: str) -> None:
    """Elements come out where numpy puts them."""
    shapes, shape, params, move = MOVES[op]
    found, vectors = symbols(12)
    operands = [vector.reshape(to) for vector, to in zip(vectors, shapes, strict=False)]
    out = result(*shape)
    found.tell(math(op, operands, out, shape_out=shape, dtype="f16", **params), "k.py:1")
    numbers = [np.arange(12).reshape(to) + 100 * rank for rank, to in enumerate(shapes)]
    assert elements(found.of(out)) == [Counter({divmod(int(n), 100): 1}) for n in move(*numbers).reshape(-1)]


def test_a_known_mask_chooses() -> None:
    """`where` with a mask of the kernel's own."""
    found, (a, b, _) = symbols(4)
    mask, out = ArrayValue(np.array([True, False, False, True])), result(4)
    found.tell(math("where", [mask, a, b], out, shape_out=(4,), dtype="f16"), "k.py:1")
    assert elements(found.of(out)) == [Counter({(s, i): 1}) for i, s in enumerate((0, 1, 1, 0))]


def test_a_reduction_along_an_axis_joins_rows() -> None:
    """tl.sum over rows is as good as adding them."""
    found, (a, *_) = symbols(12)
    out = result(4)
    found.tell(math("sum", [a.reshape((3, 4))], out, axis=0), "k.py:1")
    assert elements(found.of(out)) == [Counter({(0, i): 1, (0, i + 4): 1, (0, i + 8): 1}) for i in range(4)]


@pytest.mark.parametrize(
    ("redop", "op", "neutral"),
    [("sum", "add", 0.0), ("product", "mul", 1.0), ("max", "maximum", -np.inf), ("min", "minimum", np.inf)],
)
def test_the_neutral_number_is_no_contribution(redop: str, op: str, neutral: float) -> None:
    """A sum may begin with zeros, a product with ones."""
    found, (a, *_) = symbols(4, redop=redop)
    start, out = ArrayValue(np.full((), neutral, np.float16)), result(4)
    found.tell(math(op, [start, a], out), "k.py:1")
    assert found.of(out) == found.of(a)


@pytest.mark.parametrize(("op", "number"), [("div", 3.0), ("mul", 1 / 3)])
def test_an_average_is_a_division_by_the_number_of_vectors(op: str, number: float) -> None:
    """By three for three, or times a third."""
    found, (a, *_) = symbols(4, redop="avg")
    out = result(4)
    found.tell(math(op, [a, ArrayValue(np.asarray(number, np.float16))], out), "k.py:1")
    assert [segment.scaled for segment in found.of(out)] == [1]


REFUSED: list[tuple[str, list[Any], str]] = [
    ("exp", [0], "tl.exp at k.py:7 must not be done to payload, which may only be moved, cast and reduced by sum."),
    ("mul", [0, 1], "tl.mul at k.py:7 must not be done to payload, which may only be moved, cast and reduced by sum."),
    ("neg", [0], "tl.neg at k.py:7 must not be done to payload, which may only be moved, cast and reduced by sum."),
]


@pytest.mark.parametrize(("op", "reads", "sentence"), REFUSED)
def test_anything_else_is_refused(op: str, reads: list[int], sentence: str) -> None:
    """The op and its line are named."""
    found, vectors = symbols(4)
    with pytest.raises(PayloadError) as refused:
        found.tell(math(op, [vectors[i] for i in reads], result(4)), "k.py:7")
    assert str(refused.value) == sentence
    assert refused.value.line == "k.py:7"


def test_payload_keeps_its_dtype_and_its_elements() -> None:
    """Neither halves of elements nor another reading of the bytes."""
    found, (a, *_) = symbols(4)
    with pytest.raises(PayloadError) as read:
        found.of(AssemblyValue((4,), "int16", a.parts()))
    assert str(read.value) == "payload must keep its dtype, and f16 is read as int16; cast it instead."
    with pytest.raises(PayloadError) as halves:
        found.of(AssemblyValue((2,), "f16", (Part(Region(0, 4), a, Region(1, 4)),)))
    assert str(halves.value) == "payload must be moved in whole elements of 2 B, not in parts of them."
    with pytest.raises(PayloadError) as cast:
        found.tell(math("cast", [a], result(4, dtype="int16")), "k.py:7")
    assert str(cast.value) == (
        "tl.cast at k.py:7: payload of f16 must be cast to a dtype that holds it, not to int16."
    )
    wide = result(4, dtype="f32")
    found.tell(math("cast", [a], wide), "k.py:7")
    assert found.of(wide) == found.of(a)


def test_segments_that_continue_each_other_are_one() -> None:
    """However a vector was cut."""
    pieces = [contribution(1, i, i, i + 1) for i in range(5)]
    assert joined(pieces) == (contribution(1, 0, 0, 5),)


@pytest.mark.parametrize(
    ("name", "rank", "expected"),
    [
        ("all_reduce", 1, [{(r, i): 1 for r in range(3)} for i in range(2)]),
        ("reduce_scatter", 1, [{(r, 2 + i): 1 for r in range(3)} for i in range(2)]),
        ("all_gather", 1, [{(r, i): 1} for r in range(3) for i in range(2)]),
        ("broadcast", 1, [{(2, i): 1} for i in range(2)]),
        ("scatter", 1, [{(2, 2 + i): 1} for i in range(2)]),
        ("all_to_all", 1, [{(r, 2 + i): 1} for r in range(3) for i in range(2)]),
        ("send_recv", 0, [{(2, i): 1} for i in range(2)]),
    ],
)
def test_collectives_end_with_what_torch_says(name: str, rank: int, expected: list[dict[Any, int]]) -> None:
    """Three ranks, two elements, the last rank is the root."""
    redop = "sum" if "reduce" in name else None
    found = right_payload(COLLECTIVES[name], CallShape(3, 2, redop, 2), rank)
    assert found is not None
    assert elements(found) == [Counter(terms) for terms in expected]


def test_uneven_splits_lie_behind_each_other() -> None:
    """Rank 1 gets column 1, from where row r has it."""
    counts = ((1, 0, 2), (3, 1, 0), (0, 2, 1))
    found = right_payload(COLLECTIVES["all_to_all"], CallShape(3, 3, counts=counts), 1)
    assert found is not None
    assert elements(found) == [Counter({(1, 3): 1}), Counter({(2, 0): 1}), Counter({(2, 1): 1})]
    assert right_payload(COLLECTIVES["gather"], CallShape(3, 2, root=1), 0) is None


def test_differences_are_told_in_words() -> None:
    """Neighbours that differ alike are one difference."""
    right = right_payload(COLLECTIVES["all_reduce"], CallShape(4, 8, "sum"), 0)
    assert right is not None
    held = (
        Stretch(0, 2, {(r, 0): 1 for r in range(4)}),
        Stretch(2, 6, {(0, 2): 1, (1, 2): 2, (2, 3): 1}),
        Stretch(6, 8, {(r, 6): 1 for r in range(4)}),
    )
    (wrong,) = differences(held, right)
    assert (wrong.start, wrong.end) == (2, 6)
    assert spell_right(wrong, "sum") == "the sum of elements 2-5 of ranks 0-3"
    assert spell_fault(wrong) == "hold rank 1 twice and elements 3-6 of rank 2 and lack ranks 2 and 3"
    assert spell_held(wrong.found) == "elements 2-5 of rank 0, elements 2-5 of rank 1 twice and elements 3-6 of rank 2"
