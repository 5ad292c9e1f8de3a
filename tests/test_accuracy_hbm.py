"""The rows of HBM on the page of accuracy: few of them anew, each as near as the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_core.plugins import Plugins
from tests.conftest import loaded_tool


def test_lone_bursts_take_the_times_of_the_standard(plugins: Plugins) -> None:
    """Just before a clock edge, so that nothing is added but that."""
    with loaded_tool("accuracy/hbm") as tool:
        rows = tool.compare(plugins, [])
    assert [row[0].split(": ")[1] for row in rows] == ["lone read, row open", "lone read, another row open"] * 3
    for case, value, reference, unit, error in rows:
        assert unit == "ns" and error == pytest.approx(value / reference - 1)
        assert 0 <= value - reference < 0.001, case


def test_what_the_model_costs_is_taken_from_its_own_page() -> None:
    page = "| simulation on `default` | 1 | `gemm` 3 |\n\n"
    page += "| pattern | times as long |\n|---|---|\n| a, b | 0.5 |\n| c | 2 |\n\n"
    told = (
        "Processor time against the model before, without buses and clocks: a, b 0.5; c 2. Against "
        "`builtin.hbm_ctrl`, the default, which is as it was: `gemm` 3."
    )
    docs = Path(__file__).parents[1] / "docs"
    with loaded_tool("accuracy/hbm") as tool:
        assert tool.costs(page) == told
        said = tool.costs((docs / "hbm.md").read_text(encoding="utf-8"))
    assert len(said.split(";")) == 5 and said in (docs / "accuracy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", range(10))
def test_every_case_is_as_near_as_the_page_says(plugins: Plugins, number: int) -> None:
    with loaded_tool("accuracy/hbm") as tool:
        case = tool.CASES[number]
        rows = tool.compare(plugins, [case])[: len(case.ramulator)]
        most = 0.003 if number in (0, 1, 5) else 0.05 if number < 6 else tool.ABOUT.within
    for name, _, _, unit, error in rows:
        assert unit == "of peak" and abs(error) <= most, (name, error)
