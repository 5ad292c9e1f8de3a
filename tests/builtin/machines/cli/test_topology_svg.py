"""`kernbench topology show --svg`: a picture in a file, of a view or of one part."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins


def titles(file: Path) -> set[str | None]:
    """Return the names of what is drawn."""
    return {each.text for each in ElementTree.parse(file).getroot().iter("{http://www.w3.org/2000/svg}title")}


@pytest.mark.parametrize(
    ("asked", "drawn"),
    [
        ((), "host"),
        (("--view", "cube"), "sip0.cube0.m_cpu"),
        (("--node", "sip0.cube0"), "sip0.cube0.m_cpu"),
        (("--node", "sip0.cube0.pe0"), "sip0.cube0.pe0.pe_cpu"),
    ],
)
def test_a_view_or_a_part_is_drawn(plugins: Plugins, tmp_path: Path, asked: tuple[str, ...], drawn: str) -> None:
    """The file is SVG that names what it shows; nothing is printed."""
    file = tmp_path / "m.svg"
    assert main(["topology", "show", "tiny", "--svg", str(file), *asked], plugins) == 0
    assert drawn in titles(file)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            ("--node", "sip0"),
            "error: --node must be given with --svg FILE, not alone, as 'sip0' is here.\n",
        ),
        (
            ("--svg", "m.svg", "--node", "sip7"),
            "error: node must be a part of the machine, such as sip0, sip0.cube0, sip0.cube0.pe3, not 'sip7'. Did you "
            "mean 'sip0'?\n",
        ),
    ],
)
def test_what_cannot_be_drawn_is_told(
    plugins: Plugins,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: tuple[str, ...],
    told: str,
) -> None:
    """One sentence, exit code 2, and no file."""
    monkeypatch.chdir(tmp_path)
    assert main(["topology", "show", "tiny", *asked], plugins) == 2
    assert capsys.readouterr().err == told
    assert not list(tmp_path.iterdir())
