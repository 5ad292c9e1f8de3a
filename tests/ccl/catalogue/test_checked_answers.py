"""The answers of a plug-in's record: each is checked at the call that it is given for, whatever others are like."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.catalogue.checked_answers import checked
from kernbench_ccl.collectives import COLLECTIVES, CallShape, CollectiveKind, Piece, combined, moved, right_outputs
from kernbench_ccl.collectives.traffic import Traffic
from kernbench_core.cli import main
from kernbench_core.errors import PluginError
from kernbench_core.plugins import load_plugins, own_plugins

RANKS = 5
CALL = CallShape(RANKS, 8, None, 3)


def one(call: CallShape, rank: int) -> int:
    return call.count


def next_of(call: CallShape, rank: int) -> list[Piece]:
    return [moved((rank + 1) % call.world, 0, call.count)]


def kind(**fields: Any) -> CollectiveKind:
    """Return a checked record, right but for these fields."""
    return checked(CollectiveKind(**{"name": "odd", "brings": one, "ends": next_of, "rooted": True, **fields}), fault)


def fault(what: str) -> PluginError:
    return PluginError(f"odd {what}; repair it.")


def piece(*of: Any) -> Callable[[CallShape, int], list[Piece]]:
    """Return an `ends` of one piece, which is as told for the last rank alone."""
    return lambda call, rank: next_of(call, rank) if rank < RANKS - 1 else [Piece(*of)]


AT = "for rank 4 of 5 (count 8, root 3)"
ENDS = {
    "a rank below": (piece(8, 0, (-2,), False), "pieces of ranks from 0 to 4, not "
        f"Piece(count=8, first=0, ranks=(-2,), reduced=False), {AT}"),
    "a rank above": (piece(8, 0, (5,), False), "pieces of ranks from 0 to 4, not "
        f"Piece(count=8, first=0, ranks=(5,), reduced=False), {AT}"),
    "a rank in half": (piece(8, 0, (1.5,), False), "pieces of ranks from 0 to 4, not "
        f"Piece(count=8, first=0, ranks=(1.5,), reduced=False), {AT}"),
    "elements beyond": (piece(4, 5, (2,), False), "elements that ranks bring, and rank 2 brings 8, not "
        f"Piece(count=4, first=5, ranks=(2,), reduced=False), {AT}"),
    "elements before": (piece(4, -1, (2,), False), "elements in whole numbers from 0, not "
        f"Piece(count=4, first=-1, ranks=(2,), reduced=False), {AT}"),
    "less than nothing": (piece(-4, 8, (2,), False), "elements in whole numbers from 0, not "
        f"Piece(count=-4, first=8, ranks=(2,), reduced=False), {AT}"),
    "moved of two": (piece(8, 0, (1, 2), False), "pieces of one rank, or reductions of different ones, not "
        f"Piece(count=8, first=0, ranks=(1, 2), reduced=False), {AT}"),
    "ranks in a list": (piece(8, 0, [1], False), "what moved and combined return, not "
        f"Piece(count=8, first=0, ranks=[1], reduced=False), {AT}"),
    "a tuple": (lambda call, rank: [(rank, 0, call.count)], "what moved and combined return, not (4, 0, 8), " + AT),
    "a number": (lambda call, rank: call.count, f"a list of what moved and combined return, or None, not 8, {AT}"),
    "a piece alone": (lambda call, rank: moved(0, 0, 8), "a list of what moved and combined return, or None, not "
        f"Piece(count=8, first=0, ranks=(0,), reduced=False), {AT}"),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
def test_what_a_rank_ends_with_is_there(case: str) -> None:
    """Asked for one rank of five, of a root that is not the first."""
    ends, must = ENDS[case]
    with pytest.raises(PluginError) as caught:
        kind(ends=ends).out_count(CALL, 4)
    assert str(caught.value) == f"odd must give as ends {must}; repair it."


@pytest.mark.parametrize("given_count", [8.0, -8, "8", True, float("nan")])
def test_a_rank_brings_a_whole_number_of_elements(given_count: object) -> None:
    with pytest.raises(PluginError) as caught:
        kind(brings=lambda call, rank: given_count).in_count(CALL, 4)
    assert str(caught.value) == (
        f"odd must give as brings a number of elements from 0, or None, not {given_count!r}, {AT}; repair it."
    )


def test_whole_numbers_of_numpy_are_as_good() -> None:
    """They go on as Python's own."""
    record = kind(brings=lambda call, rank: np.int64(8), ends=piece(np.int64(8), np.int64(0), (np.int32(1),), False))
    assert (type(record.in_count(CALL, 4)), record.out_count(CALL, 4)) == (int, 8)


@pytest.mark.parametrize("factor", [-1.78, float("inf"), float("nan"), "2", None, True, 1j])
def test_a_factor_is_a_finite_number(factor: object) -> None:
    record = kind(factor=lambda world: 2 if world < RANKS else factor)
    assert record.busbw(8, 4, RANKS - 1) == 4
    with pytest.raises(PluginError) as caught:
        record.busbw(8, 4, RANKS)
    must = f"must give as factor a finite number of at least 0, not {factor!r}, for 5 ranks"
    assert str(caught.value) == f"odd {must}; repair it."


def test_sizes_are_those_of_a_barrier_and_of_what_is_in_place() -> None:
    """At the call that breaks it."""
    with pytest.raises(PluginError, match=r"not both, as with 8 elements in and 8 out, for rank 4 of 5 \(count 8, r"):
        kind(barrier=True).ends(CALL, 4)
    halves = kind(in_place=True, ends=lambda call, rank: [moved(0, 0, call.count // 2)])
    with pytest.raises(PluginError, match=r"part of it, but of 8 and 4 elements, for rank 4 of 5 \(count 8, root 3\)"):
        halves.ends(CALL, 4)
    assert halves.out_count(evolve(CALL, world=2), 1) == 4


def bad_traffic(**fields: Any) -> Callable[[CallShape, float], Traffic]:
    right = Traffic(((0, 4),), lambda r: 1.0, lambda r: 1.0, lambda inside: 1.0)
    return lambda call, size: evolve(right, **fields)


@pytest.mark.parametrize(
    ("field", "answer", "ask", "must"),
    [
        ("send", lambda r: "x" if r == 4 else 0, lambda t: t.send(4), f"send of its traffic BYTES 'x', {AT}"),
        ("receive", lambda r: -1, lambda t: t.receive(4), f"receive of its traffic BYTES -1, {AT}"),
        ("cross", lambda s: None, lambda t: t.cross(frozenset({1})), "cross of its traffic BYTES None, ALL"),
        ("work", lambda hops: hops(0, 1) / 0.5j, lambda t: t.work(lambda a, b: 1),
         "work of its traffic BYTES -2j, ALL"),
        ("everywhere", float("inf"), lambda t: None, "everywhere of its traffic BYTES inf, ALL"),
        ("pairs", ((0, 5),), lambda t: None, "pairs of its traffic tuples of two ranks from 0 to 4, not (0, 5), ALL"),
        ("pairs", 3, lambda t: None, "pairs of its traffic tuples of two ranks from 0 to 4, not 3, ALL"),
    ],
)  # fmt: skip
def test_a_traffic_is_of_bytes_between_ranks(field: str, answer: Any, ask: Callable[[Traffic], Any], must: str) -> None:
    """Of each function, when it is asked."""
    record = kind(traffic=bad_traffic(**{field: answer}))
    with pytest.raises(PluginError) as caught:
        assert record.traffic is not None
        ask(record.traffic(CALL, 64.0))
    must = must.replace("BYTES", "bytes, finite and at least 0, not").replace("ALL", "for 5 ranks (count 8, root 3)")
    assert str(caught.value) == f"odd must give as {must}; repair it."


def test_what_it_raises_is_told_with_its_own_line_alone() -> None:
    """And what does not take its arguments, without any."""
    with pytest.raises(PluginError) as caught:
        kind(ends=lambda call, rank: [combined(3, 0, 1 // (rank - 4))]).ends(CALL, 4)
    told, *lines = str(caught.value).splitlines()
    assert told == (
        "odd must give an answer as ends, but that raised ZeroDivisionError: integer division or modulo by zero, "
        f"{AT}; repair it."
    )
    assert [Path(line.split('"')[1]).name for line in lines if line.startswith("  File")] == [Path(__file__).name]
    with pytest.raises(PluginError) as caught:
        kind(factor=lambda: 1.0).busbw(8, 4, 5)
    assert str(caught.value).startswith("odd must have as factor a function of the number of ranks, but that raised Ty")
    assert str(caught.value).endswith("takes 0 positional arguments but 1 was given; repair it.")
    with pytest.raises(PluginError, match=r"TypeError: combined must be given several ranks, as range\(call.world\), "):
        kind(ends=lambda call, rank: [combined(3, 0, 1)], reduces=True).ends(CALL, 4)  # type: ignore[arg-type]


def test_each_call_has_answers_of_its_own() -> None:
    """Those of one are not given for another, of the same object or an equal one."""
    asked: list[CallShape] = []

    def brings(call: CallShape, rank: int) -> int:
        asked.append(call)
        return call.count * (rank + call.root)

    record = kind(brings=brings, ends=lambda call, rank: [moved(rank, 0, call.count * call.root)])
    calls = [CALL, evolve(CALL), evolve(CALL, root=2), evolve(CALL, count=1), CALL]
    assert [(record.in_count(call, 1), record.out_count(call, 1)) for call in calls] == [
        (32, 24), (32, 24), (24, 16), (4, 3), (32, 24)
    ]  # fmt: skip
    assert len(asked) == 4


@given(st.data())
def test_what_is_let_through_is_there(data: st.DataObject) -> None:
    """Random pieces: refused where numpy, told to raise, cannot take the elements one by one; else the same data."""
    world = data.draw(st.integers(1, 4))
    sizes = [data.draw(st.integers(0, 5)) for _ in range(world)]
    numbers, ranks = st.integers(-1, 5), st.integers(-1, world)
    table = [
        data.draw(st.lists(st.builds(moved, ranks, numbers, numbers), min_size=1, max_size=3)) for _ in range(world)
    ]
    record = kind(brings=lambda call, rank: sizes[rank], ends=lambda call, rank: table[rank])
    inputs = [np.arange(size, dtype=np.float32) + 10 * rank for rank, size in enumerate(sizes)]
    call = CallShape(world, 5)
    wanted: list[list[float]] | None = []
    for pieces in table:
        places = [(p.ranks[0], p.first + at) for p in pieces for at in range(p.count)]
        there = all(0 <= r < world and 0 <= at < sizes[r] for r, at in places)
        odd = any(min(p.count, p.first, *p.ranks) < 0 or p.ranks[0] >= world for p in pieces)
        beyond = not odd and any(p.first > sizes[p.ranks[0]] for p in pieces)
        if not there or odd or beyond or wanted is None:
            wanted = None
        else:
            wanted.append([float(inputs[r][at]) for r, at in places])
    if wanted is None:
        with pytest.raises(PluginError):
            right_outputs(record, call, inputs)
    else:
        assert [None if o is None else o.tolist() for o in right_outputs(record, call, inputs)] == wanted


@pytest.mark.parametrize("name", COLLECTIVES)
def test_what_comes_with_kernbench_answers_the_same(name: str) -> None:
    """Of every rank, for several numbers of ranks and roots, checked or not."""
    record = COLLECTIVES[name]
    again = checked(record, fault)
    for world in (1, 2, 5, 8):
        for root in {0, world - 1} if record.rooted else {0}:
            call = CallShape(world, 16, "avg" if record.reduces else None, root)
            for rank in range(world):
                ends = record.ends(call, rank)
                assert again.brings(call, rank) == record.brings(call, rank)
                assert again.ends(call, rank) == (None if ends is None else tuple(ends))
            assert again.factor(world) == record.factor(world)
            if record.traffic is not None and again.traffic is not None and world > 1:
                left, right = record.traffic(call, 64.0), again.traffic(call, 64.0)
                assert tuple(left.pairs) == tuple(right.pairs)
                assert [left.send(r) for r in range(world)] == [right.send(r) for r in range(world)]
                assert [left.receive(r) for r in range(world)] == [right.receive(r) for r in range(world)]
                assert left.cross(frozenset({0})) == right.cross(frozenset({0}))
                assert left.work(lambda a, b: abs(a - b)) == right.work(lambda a, b: abs(a - b))
                assert left.everywhere == right.everywhere


NUDGE = '''\
import math

from kernbench_ccl.collectives import CollectiveKind, moved
from kernbench_ccl.contract import kernel_args as kernel_args, share
from kernbench_core.plugins import AlgorithmEntry, CollectiveEntry

COLLECTIVE, TOPO_NAME_TO_KIND = "nudge", {"*": 0}


def before(call, rank):
    columns = math.isqrt(call.world)
    return rank - columns if columns > 1 else (rank - 1) % call.world


NUDGE = CollectiveKind("nudge", lambda c, r: c.count, lambda c, r: [moved(before(c, r), 0, c.count)], FACTOR)


def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    columns = math.isqrt(world)
    start, end = share(count, n_pe, pe)
    for at in range(start, end, tl.collective.tile):
        n = min(tl.collective.tile, end - at)
        tl.send(tl.load(in_ptr + at, shape=(n,)), (rank + columns) % world)
        tl.store(out_ptr + at, tl.recv((n,), tl.collective.dtype, (rank - columns) % world))


kernbench_api = 1
def kernbench_collectives():
    return [CollectiveEntry("nudge", "acme_nudge:NUDGE", "The vector of the rank above.")]


def kernbench_algorithms():
    return [AlgorithmEntry("acme.up_nudge", "acme_nudge:kernel", "Up.")]
'''
"""A shift by a row of packages that forgets to close the columns: right for two and three ranks."""


@pytest.mark.parametrize("proves", [False, True])
@pytest.mark.parametrize(
    ("factor", "must"),
    [
        ("lambda world: 1", "ends pieces of ranks from 0 to 3, not Piece(count=1, first=0, ranks=(-2,), reduced=Fal"),
        ("lambda world: 3 - world", "factor a finite number of at least 0, not -1, for 4 ranks"),
    ],
)
def test_a_record_that_is_wrong_for_four_ranks_ends_the_command(
    factor: str,
    must: str,
    proves: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As a fault of the plug-in, where it was right data before; for two it is proved and timed."""
    monkeypatch.syspath_prepend(tmp_path)
    source = NUDGE.replace("FACTOR", factor)
    if "factor" in must:
        source = source.replace("rank - columns if columns > 1 else (rank - 1)", "(rank - columns)")
    (tmp_path / "acme_nudge.py").write_text(source)
    monkeypatch.delitem(sys.modules, "acme_nudge", raising=False)
    own = own_plugins()
    plugins = load_plugins([*own, "acme = acme_nudge"], installed=False)
    time = ["ccl", "nudge", "--topology", "tiny", "-b", "1K", "-e", "1K", "-j", "1"]
    command = ["ccl", "check", "acme.up_nudge", "-j", "1"] if proves else time
    assert main([*command, "--ranks", "2"], plugins) == 0
    capsys.readouterr()
    if proves and "factor" in must:
        assert main([*command, "--ranks", "4"], plugins) == 0  # no proof asks for bandwidth
        return
    assert main([*command, "--ranks", "4"], plugins) == 6
    err = capsys.readouterr().err
    assert f"error: collective 'nudge' of acme_nudge (source tree) must give as {must}" in err
    assert "; repair or reinstall acme_nudge (source tree)." in err and "Traceback" not in err
    monkeypatch.delitem(sys.modules, "acme_nudge", raising=False)
