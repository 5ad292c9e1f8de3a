"""The example's part of runs, and the one of the page of plug-ins: what each says, against what the run has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernbench_builtin.checks.run_part_checks import KIT
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import run

REPO = Path(__file__).parents[3]


@pytest.fixture
def with_example(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """Give the plug-ins of this tree with the example's."""
    monkeypatch.syspath_prepend(REPO / "plugins_example")
    sources = [f"{source.name} = {source.module}" for source in plugins.sources]
    return load_plugins([*sources, "example = kernbench_example.plugin"], installed=False)


def test_no_unit_is_busy_in_the_gaps_of_the_example(with_example: Plugins) -> None:
    """Every op of a unit lies outside of them, and they with what units took are the whole run."""
    result = run("vector-add", "tiny", {"n": 64}, idle=True, plugins=with_example)
    gaps = result.idle.gaps
    assert gaps and list(gaps) == sorted(gaps, key=lambda gap: gap[0] - gap[1])
    starts, ends = result.ops["t_start"], result.ops["t_end"]
    busy = [
        (start, end)
        for start, end, op in zip(starts, ends, result.ops["name"], strict=True)
        if op == "add" and end > start
    ]
    assert busy and not any(begin < end and start < stop for start, end in busy for begin, stop in gaps)
    assert 0 < result.idle.share < 1
    assert [gap for gap in gaps if gap[0] == 0.0]  # the host copies first


def test_the_part_of_the_page_of_plugins_is_one(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it stands there, in a file of its own; every check of the kit passes."""
    block = re.search(r"```python\n(from typing import Annotated.*?EnergyPart.*?)```", _page(), re.DOTALL)
    assert block is not None
    text = block[1].replace("acme_models.energy", "energy_part")
    (tmp_path / "energy_part.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    sources = [f"{source.name} = {source.module}" for source in plugins.sources]
    found = load_plugins([*sources, str(tmp_path / "energy_part.py")], installed=False)
    result = run("gemm", "tiny", {"M": 64, "N": 64, "K": 64}, energy=True, plugins=found)
    moved = sum(row["bytes"] for row in result.links if row["kind"] == "hbm_ctrl channel")
    assert moved and result.energy.joules == pytest.approx(moved * 8 * 4e-12)
    under_test = KIT.opens(found, "energy")
    for check in KIT.checks:
        check.function(under_test)


def _page() -> str:
    return (REPO / "docs" / "plugins.md").read_text()
