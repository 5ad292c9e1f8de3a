"""Critical paths: causes followed back, cut, and summed up by kernel line."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.explain.causes import Cause
from kernbench_builtin.explain.critical_path import SORTS, Segment, critical_path, cut, fold, sum_of
from kernbench_core.callsite import call_site

SITE = call_site()
LOAD = ((0, 1), "tl.load", SITE)


def chain(*steps: tuple[float, str, str, Any]) -> Cause:
    """Return the last of a chain of causes that ends at `time`, of `sort`, at `place`, for `owner`."""
    cause = Cause(None, 0.0, "request", "host", "host", None)
    for time, sort, place, owner in steps:
        cause = Cause(cause, time, sort, place, place, owner)
    return cause


def kind_of(node: str) -> str:
    """Return the last part of a node's name."""
    return node.rpartition(".")[2]


def segment(begin: float, end: float, parts: tuple[float, ...], **changed: Any) -> Segment:
    """Return a segment of a load."""
    made = Segment("read", "pe0.dma", "dma", (0, 1), "tl.load", "k.py:1", begin, end, (0.0,) * 5, None)
    return attrs.evolve(made, parts=parts, **changed)


def test_path_follows_causes_back_to_its_begin() -> None:
    """Segments come in time order; what takes no time is left out, what is before the begin is cut off."""
    end = chain((4.0, "command", "pe0.dma", LOAD), (4.0, "service", "pe0.dma", LOAD), (9.0, "service", "pe0.dma", LOAD))
    path = critical_path(end, 2.0, kind_of)
    assert [(each.sort, each.from_ns, each.to_ns, each.kind) for each in path] == [
        ("command", 2.0, 4.0, "dma"),
        ("service", 4.0, 9.0, "dma"),
    ]
    assert path[1].parts == (0.0, 0.0, 0.0, 0.0, 5.0)
    assert (path[1].op_id, path[1].call) == ((0, 1), "tl.load")
    assert path[1].line is not None
    assert path[1].line.startswith(__file__)


def test_issue_belongs_to_the_command_that_it_issues() -> None:
    """The processor's time before a command is of that command's line, though the command does not exist yet."""
    end = chain((2.0, "issue", "pe0.pe_cpu", None), (3.0, "command", "pe0.dma", LOAD))
    assert [each.op_id for each in critical_path(end, 0.0, kind_of)] == [(0, 1), (0, 1)]


def test_ledger_of_a_way_that_ends_at_its_head_is_cut_to_its_length() -> None:
    """Serialisation that comes after the segment is no part of it; what no part explains is queueing."""
    end = chain((10.0, "write", "sram", LOAD))
    end.propagation, end.serialisation, end.overhead = 4.0, 40.0, 3.0
    end.waited_at = "a->b"
    (short,) = critical_path(end, 0.0, kind_of)
    assert (short.parts, short.waited_at) == ((4.0, 3.0, 3.0, 0.0, 0.0), None)
    end.serialisation = 1.0
    (waited,) = critical_path(end, 0.0, kind_of)
    assert (waited.parts, waited.waited_at) == ((4.0, 1.0, 3.0, 2.0, 0.0), "a->b")


def test_wait_for_the_common_start_is_queueing() -> None:
    """Nobody works meanwhile."""
    (waiting,) = critical_path(chain((7.0, "start", "pe0.pe_cpu", None)), 0.0, kind_of)
    assert waiting.parts == (0.0, 0.0, 0.0, 7.0, 0.0)


def test_what_happens_on_the_way_names_both_ends() -> None:
    """A way from one node to another says so, by node and by kind."""
    begin = Cause(None, 0.0, "request", "host", "host", None)
    (way,) = critical_path(Cause(begin, 3.0, "answer", "pe0.dma", "pe0.cpu", LOAD), 0.0, kind_of)
    assert (way.place, way.kind) == ("pe0.dma->pe0.cpu", "dma to cpu")


TIMES = st.lists(st.integers(0, 40), max_size=8).map(sorted)


@given(steps=TIMES, since=st.integers(0, 40))
def test_every_path_tiles(steps: list[int], since: int) -> None:
    """Whatever the chain, segments cover the time from the begin to the end once."""
    end = chain(*((float(time), "service", "unit", None) for time in steps))
    path = critical_path(end, float(since), kind_of)
    covered = [ns for each in path for ns in range(int(each.from_ns), int(each.to_ns))]
    assert covered == list(range(since, max([since, *steps])))


@given(parts=st.tuples(*[st.integers(0, 9)] * 5), edges=TIMES)
def test_cut_keeps_lengths_and_parts(parts: tuple[int, ...], edges: list[int]) -> None:
    """The pieces tile the segment, end at the boundaries inside it, and their parts sum to its parts."""
    begin, length = 5.0, float(sum(parts))
    whole = segment(begin, begin + length, tuple(map(float, parts)))
    pieces = list(cut(whole, sorted({float(edge) for edge in edges})))
    assert [piece.to_ns for piece in pieces][:-1] == sorted({e for e in edges if begin < e < begin + length})
    assert [piece.from_ns for piece in pieces] == [begin, *(piece.to_ns for piece in pieces[:-1])]
    assert pieces[-1].to_ns == begin + length
    assert sum_of(pieces) == whole.parts
    assert all(sum(piece.parts) == piece.ns for piece in pieces)


def test_fold_sums_up_by_kernel_line_the_longest_first() -> None:
    """Segments of one line and call are one row, with its ops counted; those of no op go by what they are."""
    path = [
        segment(0.0, 2.0, (2.0, 0.0, 0.0, 0.0, 0.0)),
        segment(2.0, 6.0, (0.0, 1.0, 0.0, 3.0, 0.0), op_id=(0, 2), waited_at="x->y"),
        segment(6.0, 7.0, (0.0, 0.0, 0.0, 1.0, 0.0), op_id=(0, 2), waited_at="z"),
        segment(7.0, 10.0, (3.0, 0.0, 0.0, 0.0, 0.0), sort="launch", op_id=None, call=None, line=None),
    ]
    first, second = fold(path)
    assert (first.what, first.line, first.ops, first.segments, first.ns, first.share) == (
        "tl.load", "k.py:1", 2, 3, 7.0, 0.7
    )  # fmt: skip
    assert (first.parts, first.waited_at) == ((2.0, 1.0, 0.0, 4.0, 0.0), "x->y")
    assert (second.what, second.line, second.ops, second.ns) == ("launch", None, 0, 3.0)


def test_segment_as_json_leaves_out_what_does_not_apply() -> None:
    """Times and parts are numbers; there is an op only where there is one."""
    plain = segment(0.0, 3.0, (3.0, 0.0, 0.0, 0.0, 0.0), op_id=None, call=None, line=None).to_json()
    assert plain == {
        "sort": "read", "place": "pe0.dma", "kind": "dma", "from_ns": 0.0, "to_ns": 3.0, "parts": {"propagation": 3.0}
    }  # fmt: skip
    assert segment(0.0, 3.0, (0.0, 0.0, 0.0, 3.0, 0.0), waited_at="x").to_json() == {
        "sort": "read", "place": "pe0.dma", "kind": "dma", "op_id": [0, 1], "call": "tl.load", "line": "k.py:1",
        "from_ns": 0.0, "to_ns": 3.0, "parts": {"queueing": 3.0}, "waited_at": "x",
    }  # fmt: skip
    assert plain["sort"] in SORTS
