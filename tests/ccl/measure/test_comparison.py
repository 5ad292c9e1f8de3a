"""The comparison names the best algorithm of each size, and shows everything of each with --wide."""

from __future__ import annotations

import pytest

from kernbench_ccl.measure.comparison import Comparison, WideComparison, crossovers, fastest
from tests.ccl.measure.rows import measured, row


def test_the_comparison_marks_the_best_and_what_is_wrong():
    """A star for the least right time, '!' for wrong data or a race, '-' where an algorithm did not run."""
    compared = Comparison(("ring", "double_tree", "torus"))
    assert compared.header() == [
        "#       size        ring  double_tree       torus",
        "#        (B)        (us)         (us)        (us)",
    ]
    times = {"ring": measured(12.5), "double_tree": measured(11.25)}
    assert compared.line(1024, times) == "        1024      12.50        11.25*          -"
    faulty = {"ring": measured(1, wrong=3), "double_tree": measured(2, races=1), "torus": measured(3, wrong=None)}
    assert compared.line(1024, faulty) == "        1024       1.00!        2.00!       3.00*"


def test_crossovers_are_said_in_a_sentence():
    """From which size to which each algorithm is best."""
    def at(size, best):
        return size, {name: measured(1.0 if name == best else 2.0) for name in ("ring", "tree", "torus")}

    assert crossovers([at(1024, "tree"), at(2048, "tree"), at(4096, "ring"), at(8192, "torus")]) == (
        "tree is best up to 2 KiB, ring at 4 KiB, torus from 8 KiB."
    )
    assert crossovers([at(1024, "ring"), at(2048, "ring")]) == "ring is best at every size."
    assert crossovers([]) == "No algorithm ran."
    assert fastest({"b": measured(1.0), "a": measured(1.0)}) == "b"


def test_what_is_wrong_or_races_is_never_best():
    """However short its time is; where each is so, nobody is best."""
    good, wrong, racing = measured(2.0), measured(1.0, wrong=1), measured(1.0, races=1)
    assert fastest({"bad": wrong, "racy": racing, "ring": good}) == "ring"
    assert fastest({"bad": wrong, "racy": racing}) is None
    rows = [(1024, {"bad": wrong, "ring": good}), (2048, {"bad": wrong, "ring": racing})]
    assert crossovers(rows) == "ring is best up to 1 KiB, none from 2 KiB."
    assert crossovers(rows[1:]) == "none is best at every size."


def test_wide_has_a_line_for_each_algorithm():
    """The bound, the closed form and what binds stand beside each time."""
    compared = WideComparison.of(["ring", "double_tree", "torus"], None, 1024)
    more = ("  binds                            events    wall", "  (out of place)                              (s)")
    assert compared.header() == [
        f"#       size  algorithm         time      bound   formula    eff{more[0]}",
        f"#        (B)                    (us)       (us)      (us)    (%){more[1]}",
    ]
    rows = {"ring": row(1024, 12.5), "double_tree": row(1024, 11.25, formula_ns=9000.0)}
    ring, tree, torus = compared.lines(1024, rows, {"torus": "error"})
    assert ring.split() == ["1024", "ring", "12.50", "6.00", "-", "48.0", "91%", "sip0->sip1", "1234", "0.00"]
    assert tree.split() == ["double_tree", "11.25*", "6.00", "9.00", "53.3", "91%", "sip0->sip1", "1234", "0.00"]
    assert torus == "              torus            error"


@pytest.mark.parametrize("width", [60, 100, 120, 140])
def test_columns_of_a_wide_comparison_move_together(width):
    """Nothing goes: what does not fit even so is the terminal's to wrap."""
    names = ["halving_doubling", "ring"]
    compared = WideComparison.of(names, width, 64 << 20)
    rows = {name: row(64 << 20, 31415.9, formula_ns=9e6) for name in names}
    lines = [*compared.header(), *compared.lines(64 << 20, rows)]
    assert max(map(len, lines)) <= max(width, 92)
    words = " ".join(lines).split()
    for word in ("31415.90*", "6.00", "9000.00", "0.0", "91%", "sip0->sip1", "1234", "0.00"):
        assert words.count(word) == 2
    assert words.count("67108864") == 1


def test_algorithms_that_do_not_fit_beside_each_other_stand_below():
    """Without --wide a line of each has its time only."""
    names = ["halving_doubling", "double_binary_tree", "ring", "torus", "mesh", "a", "b"]
    assert Comparison(tuple(names)).fits(110)
    assert not Comparison(tuple(names)).fits(109)
    compared = WideComparison.of(names[:3], 60, 1024, wide=False)
    rows = {"ring": row(1024, 12.5), "halving_doubling": row(1024, 11.25)}
    assert [*compared.header(), *compared.lines(1024, rows, {"double_binary_tree": "error"})] == [
        "#       size  algorithm                time",
        "#        (B)                           (us)",
        "        1024  halving_doubling        11.25*",
        "              double_binary_tree      error",
        "              ring                    12.50",
    ]
    rows["halving_doubling"] = row(1024, 11.25, races=2)
    assert compared.lines(1024, rows) == [
        "        1024  halving_doubling        11.25!",
        "              double_binary_tree          -",
        "              ring                    12.50*",
    ]
