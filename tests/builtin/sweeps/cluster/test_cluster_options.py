"""What the command line refuses to say of a cluster, before anything of the sweep is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            ["--scheduler", "tcp://h:1", "-j", "2"],
            "-j must be left out with --scheduler, whose workers say how many points run at once.",
        ),
        (["--patience", "5 s"], "--patience must be given with --scheduler; leave it out."),
        (
            ["--scheduler", "tcp://h:1", "--patience", "5"],
            "option --patience must be a positive time with its unit, as '5 min', not '5'.",
        ),
    ],
)
def test_what_says_two_things_is_refused(
    asked: list[str], sentence: str, tmp_path: Path, plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "none", "-o", str(tmp_path / "s"), *asked], plugins) == 2
    assert capsys.readouterr().err == f"error: {sentence}\n"
    assert not (tmp_path / "s").exists()
