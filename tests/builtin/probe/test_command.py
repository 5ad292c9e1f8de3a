"""`kernbench probe`: what all of its modes do alike."""

from __future__ import annotations

import time

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins


@pytest.mark.parametrize(
    ("endless", "options"),
    [("transfers_command.run", ("--topology", "tiny")), ("traffic_command.run", ("--traffic", "uniform"))],
)
def test_a_limit_covers_every_mode(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], endless: str,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    """As it does a run; whatever never ends there is named by its line."""
    monkeypatch.setattr(f"kernbench_builtin.probe.{endless}", lambda *_, **__: time.sleep(1000))
    assert main(["probe", *options, "--timeout", "20 ms"], plugins) == 5
    told = capsys.readouterr().err
    assert told.startswith(f"error: the run reached its limit of 0.02 s of wall time while probing, in {__file__}:")
    assert told.rstrip().endswith("; raise --timeout if it is only long.")
