"""tools/first_parting.py: the first place at which two runs have another order, against plain lists of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kernbench_core as kb
from kernbench_builtin.pages.timeline import load
from kernbench_core.plugins import Plugins
from tools.first_parting import main

SIZE = {"M": 64, "N": 64, "K": 64, "tile_k": 32}


@pytest.fixture(scope="module")
def folder(plugins: Plugins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    for name, latency in (("a", "31.9 ns"), ("b", "30 ns")):
        sets = {"components.hbm_ctrl.params.channel_latency": latency}
        kb.run("gemm", "tiny", SIZE, data=False, set=sets, out=made / name, plugins=plugins)
    return made


def orders(folder: Path) -> dict[str, list[tuple[float, int]]]:
    """Return when each message of an op was on each wire and channel, with the number of its op."""
    timeline = load(folder / "timeline.npz")
    found: dict[str, list[tuple[float, int]]] = {}
    for track, start, op in zip(timeline.spans.track, timeline.spans.start_ns, timeline.spans.op, strict=True):
        if op >= 0 and timeline.tracks[track].kind in ("channel", "wire"):
            found.setdefault(timeline.tracks[track].node, []).append((float(start), int(op)))
    return found


def test_the_first_place_is_the_earliest_whose_order_is_another(folder: Path, capsys: Any) -> None:
    assert main([str(folder / "a"), str(folder / "b"), "--count", "1"]) == 1
    printed = capsys.readouterr().out.splitlines()
    one, other = orders(folder / "a"), orders(folder / "b")
    turns = {
        place: next((at for at, (mine, its) in enumerate(zip(one[place], other[place], strict=True))
                     if mine[1] != its[1]), None)
        for place in one
    }  # fmt: skip
    first = min((one[place][turn][0], place, turn) for place, turn in turns.items() if turn is not None)
    changed = sum(turn is not None for turn in turns.values())
    assert printed[0] == f"channels and wires: {changed} places changed their order"
    assert printed[1] == f"  {first[1]}, turn {first[2]}:"
    assert f"{first[0]:,.3f} to" in printed[2] and "gemm.py:" in printed[2]


def test_a_run_and_itself_part_nowhere(folder: Path, capsys: Any) -> None:
    assert main([str(folder / "a"), str(folder / "a")]) == 0
    assert capsys.readouterr().out == (
        "channels and wires: 0 places changed their order\nunits: 0 places changed their order\n"
    )
