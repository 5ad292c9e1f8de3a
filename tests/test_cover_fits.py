"""tools/cover_fits.py counts how often the errors that fits state cover the truth; here for a few machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kernbench_core.plugins import Plugins
from tests.conftest import loaded_tool


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """Give tools/cover_fits.py."""
    with loaded_tool("cover_fits") as found:
        yield found


@pytest.mark.parametrize(("name", "seeds", "most"), [("copies", range(4), 0.12), ("links", range(1, 3), 0.06)])
def test_the_errors_of_a_few_machines_cover_the_truth(
    tool: ModuleType, plugins: Plugins, tmp_path: Path, name: str, seeds: range, most: float
) -> None:
    """From logs by closed form with 2 % of noise; all but one, as 95 of 100 are asked, and none is so wide as to."""
    family = tool.families(tmp_path)[name]
    dies = tool.on_dies(family, plugins)
    found = [one for seed in seeds for one in tool.trial(family, dies, seed, 0.02, plugins).values()]
    assert len(found) == 2 * len(seeds)
    assert sum(abs(off) <= stated for stated, off in found) >= len(found) - 1
    assert all(0.015 <= stated < most for stated, _ in found)


def test_a_pipelined_ring_by_hand(tool: ModuleType) -> None:
    """Latency decides of one message, a link of many: six steps, and the latency of the last alone."""
    assert tool.pipelined(400.0, 1000.0, 1.0, 0.0) == 6 * (1000 + 100)
    assert tool.pipelined(64 * 2.0**20, 100.0, 10.0, 0.0) == pytest.approx(6 * 16 * 2**20 / 10 + 100)
    assert tool.stepped(400.0, 1000.0, 1.0, 0.0) == 6 * (1000 + 100)
