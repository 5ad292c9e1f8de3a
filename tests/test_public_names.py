"""The examples of exported names that run a bench on a preset."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_core.plugins import Plugins
from tests.core.exported_examples import RUN_A_BENCH, try_example


@pytest.mark.parametrize("name", sorted(RUN_A_BENCH))
def test_the_example_does_what_it_shows(
    name: str, plugins: Plugins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the plug-ins of this tree as those that are installed."""
    for module in ("plugins", "runs.bench_run"):
        monkeypatch.setattr(f"kernbench_core.{module}.load_plugins", lambda: plugins)
    monkeypatch.chdir(tmp_path)
    try_example(name)
