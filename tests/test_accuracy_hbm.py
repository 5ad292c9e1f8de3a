"""The rows of HBM on the page of accuracy: few of them anew, each as near as the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_core.plugins import Plugins
from tests.conftest import loaded_tool


def test_lone_bursts_take_the_times_of_the_standard(plugins: Plugins) -> None:
    """Just before a clock edge, so that nothing is added but that."""
    with loaded_tool("accuracy/hbm") as tool:
        rows = tool.compare(plugins, [], [])
    assert [row[0].split(": ")[1] for row in rows] == ["lone read, row open", "lone read, another row open"] * 3
    for case, value, reference, unit, error in rows:
        assert unit == "ns" and error == pytest.approx(value / reference - 1)
        assert 0 <= value - reference < 0.001, case


def test_what_the_model_costs_is_taken_from_its_own_page() -> None:
    page = "| simulation on `default` | 1 | `gemm` 3 |\n\n"
    page += "| pattern | times as long |\n|---|---|\n| a, b | 0.5 |\n| c | 2 |\n\n"
    told = (
        "Processor time against the model before, whose turns lost rows that were open: a, b 0.5; c 2. Against "
        "`builtin.hbm_ctrl`, the default, which is as it was: `gemm` 3."
    )
    docs = Path(__file__).parents[1] / "docs"
    with loaded_tool("accuracy/hbm") as tool:
        assert tool.costs(page) == told
        said = tool.costs((docs / "hbm.md").read_text(encoding="utf-8"))
    assert len(said.split(";")) == 4 and said in (docs / "accuracy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [4, 8, 10, 13, 16, 18, 19, 20])
def test_cases_are_as_near_as_the_page_says(plugins: Plugins, number: int) -> None:
    """Mixed streams and turns, random bursts and rows, one bank: of each what is cheap."""
    with loaded_tool("accuracy/hbm") as tool:
        case = tool.CASES[number]
        rows = tool.compare(plugins, [case], [])[:3]
    most = {4: 0.01, 8: 0.01, 10: 0.02, 13: 0.05, 16: 0.03}.get(number, 0.025)
    for name, _, _, unit, error in rows:
        assert unit == "GB/s" and abs(error) <= most, (name, error)


def test_a_dependent_read_beside_a_stream_waits_as_long_as_the_page_says(plugins: Plugins) -> None:
    with loaded_tool("accuracy/hbm") as tool:
        rows = tool.compare(plugins, [], [tool.DEPENDENT[3], tool.DEPENDENT[5]])[:2]
    assert [abs(error) <= most for (*_, error), most in zip(rows, (0.12, 0.02), strict=True)] == [True, True]
