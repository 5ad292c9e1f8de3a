"""docs/accuracy.md is what tools/accuracy finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.accuracy import __main__ as command
from tools.accuracy.comparison import AREAS, About, Row, areas, rows_of
from tools.accuracy.page import SHOWN, page

PAGE = (Path(__file__).parents[1] / "docs" / "accuracy.md").read_text(encoding="utf-8")
ABOUT = About("Adding, twice", "a slide rule", "the numbers", "the haste", "too high", "nothing", 0.05)


def test_a_page_tells_of_the_worst_and_the_median_case() -> None:
    text = page([(ABOUT, [Row("one", 10.1, 10, "ns", 0.01), Row("two", 9.6, 10, "ns", -0.04), Row("x", 5, 5, "B", 0)])])
    assert "| [Adding, twice](#adding-twice) | 3 | 4.00% | 1.00% | 5.0% |" in text
    assert "*Which way it errs:* too high" in text
    lines = ("| one | 10.1 | 10 | ns | +1.00% |", "| two | 9.6 | 10 | ns | -4.00% |", "| x | 5 | 5 | B | +0.00% |")
    assert text.splitlines()[-3:] == list(lines)


def test_of_many_cases_those_with_the_largest_errors_are_shown_in_their_order() -> None:
    rows = [Row(f"case {number}", 100 + number % 50, 100, "ns", number % 50 / 100) for number in range(50)]
    text = page([(ABOUT, rows)])
    assert f"The {SHOWN} of 50 cases with the largest errors:" in text
    shown = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| case ")]
    assert shown == ["case", *(f"case {number}" for number in range(50 - SHOWN, 50))]


def test_errors_are_computed_from_the_figures_and_not_believed() -> None:
    class Area:
        ABOUT = ABOUT

        def compare(self) -> list[tuple[str, float, float, str, float]]:
            return [("half", 5.0, 10.0, "ns", 0.0)]

    assert rows_of(Area()) == [Row("half", 5.0, 10.0, "ns", -0.5)]


@pytest.mark.parametrize("name", AREAS)
def test_the_page_has_what_is_said_of_each_comparison(name: str) -> None:
    ((_, area),) = areas((name,))
    about = area.ABOUT
    assert f"## {about.title}" in PAGE
    for said in (about.reference, about.equal, about.differs, about.direction, about.cost):
        assert said in PAGE


@pytest.mark.parametrize("name", AREAS)
def test_the_page_shows_what_is_found_today(name: str) -> None:
    """Each comparison by itself, as close as the page says: with the line that sums it up."""
    ((_, area),) = areas((name,))
    rows = rows_of(area)
    assert [row for row in rows if abs(row.error) > area.ABOUT.within] == []
    found = page([(area.ABOUT, rows)])
    assert found[found.index("| [") :].splitlines()[0] in PAGE.splitlines()
    section = found[found.index("## ") :]
    assert f"{section}\n## " in PAGE or PAGE.endswith(section)


def test_a_page_that_another_run_would_write_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Area:
        ABOUT = ABOUT

        def compare(self) -> list[tuple[str, float, float, str, float]]:
            return [("one", 10.25, 10.0, "ns", 0.0)]

    monkeypatch.setattr(command, "PAGE", tmp_path / "accuracy.md")
    monkeypatch.setattr(command, "areas", lambda names: [("adding", Area())])
    assert command.main([]) == 0 and command.main(["--check"]) == 0
    assert capsys.readouterr().out == ""
    command.PAGE.write_text(command.PAGE.read_text().replace("10.25", "10.24"))
    assert command.main(["--check"]) == 1
    assert "-| one | 10.24 | 10 | ns | +2.50% |\n+| one | 10.25 | 10 | ns | +2.50% |\n" in capsys.readouterr().out
