"""How figures, their changes and what was run otherwise are written."""

from __future__ import annotations

import pytest

from kernbench_builtin.compare.formatting import (
    both_texts,
    cause_line,
    change_text,
    figure_text,
    percent_text,
    rows_section,
    section,
    total_line,
    unknown_section,
)
from kernbench_builtin.compare.moved_rows import ChangedInput, MovedFigure, MovedRow


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (100.0, 103.0, "+3.00 %"), (100.0, 99.5, "-0.50 %"), (100.0, 0.0, "-100.00 %"), (100.0, 1099.9, "+999.90 %"),
        (100.0, 1100.0, "11 ×"), (1.0, 12345.0, "1.23e+04 ×"), (1e6, 1e6 + 50, "+0.01 %"), (1e6, 1e6 + 49, "+0.0049 %"),
        (1e9, 1e9 - 1, "-1e-07 %"), (0.0, 5.0, ""), (None, 5.0, ""), (5.0, None, ""),
    ],
)  # fmt: skip
def test_percent(before: float | None, after: float | None, told: str) -> None:
    """Two digits, fewer where they would be nothing, a ratio where it is large; of nothing there is no share."""
    assert percent_text(before, after) == told


@pytest.mark.parametrize(
    ("figure", "before", "after", "told"),
    [
        ("busy_ns", 1.0, 2.5, ("1 ns", "2.5 ns")),
        ("time_ns", 9123.25, 9124.25, ("9.123 us", "9.124 us")),
        ("time_ns", 9123.25, 9123.5, ("9,123.25 ns", "9,123.50 ns")),
        ("time_ns", 9123.5, 9123.25, ("9,123.50 ns", "9,123.25 ns")),
        ("time_ns", 1e6, 1e6 + 2.0**-16, ("1,000,000.000000 ns", "1,000,000.000015 ns")),
        ("ns", 5.0, 5.0, ("5 ns", "5 ns")),
        ("hbm_bytes", 1 << 20, (1 << 20) + 1, ("1,048,576 B", "1,048,577 B")),
        ("ops", 100_001, 100_002, ("100,001", "100,002")),
        ("gb_per_s", 25.6, None, ("25.6 GB/s", "none")),
    ],
)  # fmt: skip
def test_two_figures_are_told_apart(
    figure: str, before: float | None, after: float | None, told: tuple[str, str]
) -> None:
    """With their units; with all their digits where four do not tell them apart."""
    assert both_texts(figure, before, after) == told


def test_units_are_those_of_the_name() -> None:
    assert [figure_text(figure, 1536.0) for figure in ("ns", "waited_ns", "bytes", "hbm_bytes", "gb_per_s", "ops")] == [
        "1.536 us", "1.536 us", "1.5 KiB", "1.5 KiB", "1.536 TB/s", "1536",
    ]  # fmt: skip
    assert change_text("bytes", -1536) == "-1.5 KiB"
    assert change_text("ns", 2.0**-16) == "+0.01526 ps"


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (ChangedInput("configuration", "a.b", "8 ns", "9 ns"), "configuration a.b: 8 ns → 9 ns"),
        (ChangedInput("configuration", "a.b", "", None), "configuration a.b: '' → none"),
        (ChangedInput("params", "tile", 64, "64"), "parameter tile: 64 → '64'"),
        (ChangedInput("params", "x", None, 4, "before"), "parameter x: absent → 4"),
        (ChangedInput("params", "x", None, 4), "parameter x: none → 4"),
        (ChangedInput("models", "a.b", "", "0123456789abcdef"), "model a.b: unknown → 0123456789ab"),
        (ChangedInput("sources", "k.py", "0" * 64, None, "after"), "source k.py: 000000000000 → absent"),
        (ChangedInput("plugins", "acme", "acme 1.0", "acme 1.1"), "plug-in acme: acme 1.0 → acme 1.1"),
        (ChangedInput("options", "seed", 0, 1), "option seed: 0 → 1"),
        (ChangedInput("params", "s", "a" * 50, "b"), f"parameter s: '{'a' * 38}… → b"),
    ],
)
def test_what_was_run_otherwise(cause: ChangedInput, told: str) -> None:
    """Values as a configuration has them, digests in short, and what was not there."""
    assert cause_line(cause) == told


def test_the_total() -> None:
    """By how much it rose or fell, or that it did not."""
    assert total_line(100.0, 100.0) == "total time 100 ns, the same"
    assert total_line(100.0, 100.0, same=True) == "the same: 100 ns, and no figure moved"
    assert total_line(0.0, 2.0) == "total time 0 ns → 2 ns, +2 ns"
    assert total_line(4.0, 2.0) == "total time 4 ns → 2 ns, -2 ns (-50.00 %)"


def row(name: str, sort: str = "phase", about: str = "") -> MovedRow:
    """Return a row of 1 ns more."""
    return MovedRow(sort, name, (MovedFigure("ns", 1.0, 2.0),), about)


def test_sections_have_as_many_lines_as_asked_for() -> None:
    """And say how many more there are; of nothing there is no section."""
    assert section("head", ["a", "b", "c"], 2) == ["", "head", "  a", "  b", "  … and 1 more"]
    assert section("head", ["a", "b"], 2) == section("head", ["a", "b"]) == ["", "head", "  a", "  b"]
    assert section("head", []) == rows_section("link", [], 3) == unknown_section({}) == []
    line = "  1 ns → 2 ns  +1 ns  +100.00 %"
    assert rows_section("phase", [row("a"), row("b")], 1) == ["", "phases, 2 moved", f"{line}  a", "  … and 1 more"]
    assert rows_section("phase", [row("a" * 45)], 1) == ["", "phases, 1 moved", f"{line}  {'a' * 45}"]
    assert rows_section("phase", [row("a" * 46)], 1) == ["", "phases, 1 moved", line, f"    {'a' * 46}"]
    assert rows_section("phase", [row("a" * 99)], 1)[-1] == f"    {'a' * 73}…"
    assert unknown_section({"link": "w", "op": "v", "path": "w"}) == [
        "", "not compared: links, critical path (w)", "not compared: ops (v)",
    ]  # fmt: skip


def test_a_thing_is_told_with_what_it_is() -> None:
    """The kind of a link in brackets, what a line says behind its place; a long one is cut."""
    text = "x = tl.load(" + "a + " * 20 + "b)"
    assert rows_section("link", [row("a->b", "link", "pe wire")], 1)[2] == "  a->b (pe wire)"
    assert rows_section("line", [row("k.py:3→4", "line", "a = b")], 1)[2] == "  k.py:3→4  a = b"
    (told,) = [line for line in rows_section("line", [row("k.py:3", "line", text)], 1) if "k.py" in line]
    assert len(told) == 78 and told.endswith("…")
