"""What the README says is so: its programs run, and its counts are those of the present code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernbench_core.plugins import Plugins
from kernbench_core.runs import run

REPO = Path(__file__).parents[1]
README = (REPO / "README.md").read_text(encoding="utf-8")


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_kernel_of_the_readme_is_right(plugins: Plugins, tmp_path: Path) -> None:
    """The file that is shown runs on the preset that its comment names, with right data."""
    (source,) = [block for block in python_blocks() if "def bench" in block]
    file = tmp_path / "add_one.py"
    file.write_text(source)
    assert run(file, "tiny", verify_data=True, plugins=plugins).verified is True


def test_the_python_of_the_readme_runs(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines for a notebook print what they promise."""
    (source,) = [block for block in python_blocks() if "import kernbench_core as kb" in block]
    monkeypatch.setattr("kernbench_core.runs.load_plugins", lambda: plugins)
    exec(source, {})
    assert re.match(r"[\d.]+ True \{'kernel': ", capsys.readouterr().out)


def test_the_event_count_of_the_readme_is_the_present_one(plugins: Plugins) -> None:
    """`gemm` 1024 x 1024 x 1024 on `default` takes as many events as the README says."""
    (row,) = re.findall(r"\| `gemm` 1024 x 1024 x 1024 \| `default` \| ([\d,]+) \|", README)
    size = {"M": 1024, "N": 1024, "K": 1024}
    assert run("gemm", params=size, data=False, plugins=plugins).events == int(row.replace(",", ""))
