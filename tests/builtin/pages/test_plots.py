"""Small plots: what they draw is as large as the numbers say, and every number stands there as text."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.plots import blocks, held, over_time, roofline, spans, stacked

SVG = "{http://www.w3.org/2000/svg}"


def drawn(text: str, tag: str) -> list[ElementTree.Element]:
    """Return the elements of a kind."""
    return list(ElementTree.fromstring(text).iter(SVG + tag))


@given(st.lists(st.floats(10, 1000), min_size=1, max_size=9))
def test_shares_fill_the_whole_in_their_order(values: list[float]) -> None:
    """Each begins where the one before ends, and is as wide as its share; its title tells it."""
    rects = drawn(stacked([(f"<{i}>", value) for i, value in enumerate(values)], width=1000.0), "rect")
    at = 0.0
    for i, (rect, value) in enumerate(zip(rects, values, strict=True)):
        assert float(rect.get("x", "")) == pytest.approx(at, abs=0.01)
        at += 1000.0 * value / sum(values)
        assert float(rect.get("x", "")) + float(rect.get("width", "")) == pytest.approx(at, abs=0.52)
        title = rect.find(f"{SVG}title")
        assert title is not None and str(title.text).startswith(f"<{i}>: ")
    beside = drawn(stacked([("a", 30.0), ("b", 20.0)], width=1000.0, whole=200.0), "rect")
    assert [(float(each.get("x", "")), float(each.get("width", ""))) for each in beside] == [(0, 150), (150, 100)]


def test_columns_are_as_high_as_the_use() -> None:
    """Nothing where nothing was used, at least a pixel where anything was, and no more than all."""
    ground, *columns = drawn(over_time([0.0, 0.5, 0.001, 1.7], width=40.0, height=20.0), "rect")
    assert ground.get("height") == "20"
    assert [(float(c.get("x", "")), float(c.get("height", ""))) for c in columns] == [(10, 10), (20, 1), (30, 20)]


def test_what_a_memory_held_is_a_staircase() -> None:
    """Up to the most that it held, each step at its time, the last until the end."""
    (area,) = drawn(held([(0.0, 0.0), (25.0, 512.0), (50.0, 1024.0), (75.0, 0.0)], 100.0, 4096.0), "polygon")
    points = [tuple(map(float, pair.split(","))) for pair in area.get("points", "").split()]
    bottom, top = points[0][1], min(y for _, y in points)
    width = points[-1][0] - points[0][0]
    steps = {round((x - points[0][0]) / width, 3): round((bottom - y) / (bottom - top), 3) for x, y in points}
    assert steps == {0.0: 0.0, 0.25: 0.5, 0.5: 1.0, 0.75: 0.0, 1.0: 0.0}
    assert {"1 KiB", "0 B", "0 ns", "100 ns"} <= {text.text for text in drawn(held([(0, 1024)], 100.0, 1), "text")}


@given(st.floats(0.01, 1000), st.floats(1, 1e5), st.floats(1, 1e4), st.sampled_from([0.01, 0.5, 1.0]))
def test_a_point_lies_as_far_under_the_roof_as_it_achieved(
    intensity: float, peak: float, bandwidth: float, share: float
) -> None:
    """On the roof with all that was attainable, below it with less, whatever the numbers."""
    attainable = min(peak, bandwidth * intensity)
    svg = roofline([("k", intensity, share * attainable)], peak, bandwidth)
    (point,), (roof,) = drawn(svg, "circle"), drawn(svg, "polyline")
    start, ridge, end = (tuple(map(float, pair.split(","))) for pair in roof.get("points", "").split())
    x, y = float(point.get("cx", "")), float(point.get("cy", ""))
    slope = (ridge[1] - start[1]) / (ridge[0] - start[0]) if ridge[0] != start[0] else 0.0
    above = ridge[1] if x >= ridge[0] else ridge[1] + slope * (x - ridge[0])
    assert y >= above - 1
    if share > 0.999:
        assert y == pytest.approx(above, abs=2)
    assert end[1] == pytest.approx(ridge[1])


def test_without_a_point_there_is_no_roofline() -> None:
    """None that moved bytes and computed: nothing to place."""
    assert roofline([], 1.0, 1.0) == ""
    assert roofline([("k", math.inf, 3.0), ("l", 0.0, 3.0)], 1.0, 1.0) == ""
    assert roofline([("k", 1.0, 3.0)], 0.0, 1.0) == ""


def title_of(element: ElementTree.Element) -> str:
    found = element.find(f"{SVG}title")
    return "" if found is None else str(found.text)


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(50, 100)), min_size=1, max_size=4))
def test_spans_lie_where_their_times_are(lanes: list[tuple[float, float]]) -> None:
    """A span begins and ends on its lane as its times do between begin and end; what is near it is told with it."""
    told = [(f"<{n}>", [(at, at + long, "<first>"), (at + long, at + long + 0.5, "next")])
            for n, (at, long) in enumerate(lanes)]  # fmt: skip
    svg = spans(told, 0.0, 1000.5)
    grounds = [each for each in drawn(svg, "rect") if each.get("class") == "kb-ground"]
    bars = [each for each in drawn(svg, "rect") if each.get("class") != "kb-ground"]
    assert len(grounds) == len(bars) == len(lanes)
    for ground, bar, (at, long) in zip(grounds, bars, lanes, strict=True):
        left, width = float(ground.get("x", "")), float(ground.get("width", ""))
        assert bar.get("y") == ground.get("y")
        assert (float(bar.get("x", "")) - left) / width == pytest.approx(at / 1000.5, abs=1e-3)
        assert float(bar.get("width", "")) / width == pytest.approx((long + 0.5) / 1000.5, abs=1e-3)
        assert title_of(bar) == "<first>, and 1 more"
    assert {f"<{n}>" for n in range(len(lanes))} < {text.text for text in drawn(svg, "text")}


def test_blocks_are_where_their_rows_and_columns_are() -> None:
    """A table of 4 rows and 8 columns: a box is as large as its part; a label stands where there is room."""
    wide, thin = (0, "PE 0", "<0>", [(0, 2, 0, 8)]), (9, "PE 1", "<1>", [(2, 3, 0, 1), (3, 4, 0, 1)])
    svg = blocks((4, 8), [wide, thin])
    paths = drawn(svg, "path")
    assert [(path.get("class"), title_of(path)) for path in paths] == [("kb-c0 kb-cut", "<0>"), ("kb-c1 kb-cut", "<1>")]
    assert [path.get("d") for path in paths] == [
        "M0.0 0.0H360.0V90.0H0.0z", "M0.0 90.0H45.0V135.0H0.0zM0.0 135.0H45.0V180.0H0.0z"
    ]  # fmt: skip
    assert [(text.text, text.get("x"), text.get("y")) for text in drawn(svg, "text")] == [("PE 0", "180.0", "49.0")]


def test_spans_side_by_side_stay_two() -> None:
    """One that ends where the next begins, if both are wide; of many thin ones one is drawn."""
    wide = [(0.0, 50.0, "a"), (50.0, 100.0, "b")]
    thin = [(at / 100, at / 100 + 0.005, str(at)) for at in range(10_000)]
    bars = drawn(spans([("", wide), ("", thin)], 0.0, 100.0), "rect")
    titles = [title_of(bar) for bar in bars if bar.get("class") != "kb-ground"]
    assert titles == ["a", "b", "0, and 9,999 more"]
