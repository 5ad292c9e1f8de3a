"""The table reads as nccl-tests' does, fits its terminal, and names the best algorithm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.measure import SweepRow
from kernbench_ccl.measure.table import Busy, fitted, footer, layout
from tests.ccl.measure.rows import measured, row


def test_a_row_in_a_pipe_has_the_columns_and_widths_of_nccl_tests():
    """Twelve characters of size and count, eight of type, six of redop and root, then both halves."""
    found = layout(None, largest=67108864)
    line = found.line(row(67108864, us=1211.2))
    assert found.width == 118
    assert line == (
        "    67108864      33554432       f16     sum      -1"
        "  1211.20    5.00   10.00       0  1211.20    5.00   10.00       0"
    )
    assert line.split() == [
        "67108864", "33554432", "f16", "sum", "-1", "1211.20", "5.00", "10.00", "0", "1211.20", "5.00", "10.00", "0",
    ]  # fmt: skip


def test_the_header_has_both_halves_titles_and_units():
    """Three comment lines, as in nccl-tests."""
    groups, titles, units = layout(None, largest=1).header()
    assert groups[0] == titles[0] == units[0] == "#"
    assert groups.split() == ["#", "out-of-place", "in-place"]
    half = ["time", "algbw", "busbw", "#wrong"]
    assert titles[1:].split() == ["size", "count", "type", "redop", "root", *half, *half]
    assert units[1:].split() == ["(B)", "(elements)", *["(us)", "(GB/s)", "(GB/s)"] * 2]
    assert titles.index("time") < groups.index("out-of-place") < titles.index("#wrong")
    assert titles.rindex("time") < groups.index("in-place") < titles.rindex("#wrong")


@pytest.mark.parametrize(
    ("width", "wide", "missing"),
    [
        (118, False, ()), (100, False, ()), (90, False, ()), (86, False, ("root",)), (80, False, ("redop", "root")),
        (193, True, ()), (144, True, ()), (143, True, ("root",)), (138, True, ("redop", "root")),
    ],
)  # fmt: skip
def test_a_line_fits_the_terminal_and_what_is_missing_is_known(width, wide, missing):
    """Columns that the header says go, the fewest that will do; every other figure is shown."""
    found = layout(width, largest=65536, wide=wide)
    one = row(65536, us=31415.9, formula_ns=9e6)
    assert found.missing == missing
    assert all(len(line) <= width for line in [*found.header(), found.line(one)])
    half = ["time", "algbw", "busbw", "#wrong"]
    more = ["bound", "formula", "eff", "binds", "events", "wall"] if wide else []
    said = [title for title in ("type", "redop", "root") if title not in missing]
    assert [column.title for column in found.columns] == ["size", "count", *said, *half, *half, *more]
    assert found.line(one).split().count("31415.9") == 2


def test_a_wide_table_of_a_narrow_terminal_is_about_one_half():
    """It goes without what says least of why; what is too wide even so is shown whole, and the terminal wraps it."""
    found = layout(80, largest=65536, wide=True)
    assert (found.missing, found.gap) == (("in-place", "count", "events", "wall", "type", "redop", "root"), 1)
    half, more = ["time", "algbw", "busbw", "#wrong"], ["bound", "formula", "eff", "binds"]
    assert [column.title for column in found.columns] == ["size", *half, *more]
    assert all(len(line) <= 80 for line in [*found.header(), found.line(row(65536, us=31415.9, formula_ns=9e6))])
    assert layout(40, largest=65536, wide=True).line(row(65536)).split()[0] == "65536"


def test_what_has_no_in_place_form_says_so():
    """As nccl-tests says N/A for what it does not report."""
    assert layout(None, largest=1).line(row(1024, in_place=False)).split()[-4:] == ["N/A"] * 4


def test_wide_names_the_bound_the_formula_and_what_binds():
    """The columns of --wide hold the figures of the row."""
    extra = layout(None, largest=1, wide=True).columns[-6:]
    assert {column.title: column.cell(row(1024, formula_ns=9000.0)) for column in extra} == {
        "bound": "6.00", "formula": "9.00", "eff": "50.0", "binds": " 91% sip0->sip1",
        "events": "1234", "wall": "0.00",
    }  # fmt: skip


def test_links_are_named_by_what_they_join():
    """Packages, or a package and its switch; anything else by its own name."""
    kind = "scale_up wire"
    assert Busy("sip3.io0.link_switch0->fabric.switch0", kind, 1.0).short == "sip3->switch0"
    assert Busy("fabric.switch0->sip3.io0.link_switch0", kind, 1.0).short == "switch0->sip3"
    assert Busy("sip0.cube0.pe3.pe_dma", "pe_dma", 1.0).short == "sip0.cube0.pe3.pe_dma"


@given(st.floats(0, 1e12), st.integers(5, 9))
def test_fitted_never_exceeds_its_width_and_keeps_the_value(value, width):
    """Numbers lose decimals before they break a column."""
    text = fitted(value, width)
    assert len(text) <= width
    assert float(text) == pytest.approx(value, rel=0.5, abs=0.006)


def test_the_footer_counts_wrong_values_and_averages_the_bus_bandwidth():
    """The last lines of nccl-tests: both halves of every row count."""
    rows = [row(1024), SweepRow(2048, 1024, "f16", "sum", -1, "a", measured(1, 30.0, 5), measured(1, 20.0, 2), 0.0)]
    assert footer(rows) == ["# Out of bounds values : 7 FAILED", "# Avg bus bandwidth    : 17.5", "#"]
    assert footer(rows[:1])[0] == "# Out of bounds values : 0 OK"
    unchecked = SweepRow(8, 4, "f16", "sum", -1, "a", measured(1, 30.0, None), None, 0.0)
    assert footer([unchecked])[0] == "# Out of bounds values : not checked"


def test_races_fail_below_the_table_too():
    """They give exit code 1, where no value is wrong."""
    raced = SweepRow(8, 4, "f16", "sum", -1, "a", measured(1, races=2), measured(1, races=1), 0.0)
    assert footer([row(1024), raced])[:2] == ["# Out of bounds values : 0 OK", "# Races                : 3 FAILED"]


def test_json_has_every_figure_of_a_row():
    """Times in ns, nothing rounded."""
    found = row(1024, formula_ns=9000.5, bound_reason="cut").to_json()
    assert found["bound_ns"] == 6000.0
    assert found["formula_ns"] == 9000.5
    assert found["bound_reason"] == "cut"
    assert found["efficiency"] == 0.5
    assert found["out_of_place"]["time_ns"] == 12000.0
    assert found["out_of_place"]["binds"]["utilisation"] == 0.914
    assert found["in_place"]["binds"] is None
    assert row(8, in_place=False).to_json()["in_place"] is None


def test_every_key_of_a_row_is_documented():
    """In docs/collectives.md, where --json is described."""
    text = (Path(__file__).parents[3] / "docs" / "collectives.md").read_text(encoding="utf-8")
    found = row(8).to_json()
    keys = [*found, *found["out_of_place"], *found["out_of_place"]["binds"]]
    assert [key for key in keys if f"`{key}`" not in text] == []
