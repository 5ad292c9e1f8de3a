"""`kernbench sweep`: options that end the command before there is a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernbench_builtin
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins

SCHEMA = Path(kernbench_builtin.__file__).parent / "sweeps" / "planning" / "plan.schema.json"


@pytest.mark.parametrize("more", [(), ("nobody_s_bench",)])
def test_the_schema_is_all_that_is_printed(
    more: tuple[str, ...], plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the file that lies beside the sources; no bench is asked for, and one that is named is not looked for."""
    assert main(["sweep", "--schema", *more], plugins) == 0
    assert capsys.readouterr() == (SCHEMA.read_text(encoding="utf-8"), "")
