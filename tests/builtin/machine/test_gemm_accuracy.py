"""Matrix units against arrays that stream: every case of the comparison is within its limit, most are exact."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tools.accuracy.gemm import ABOUT, compare, stepped, tiled
from tools.accuracy.gemm import Fold as Need


@pytest.mark.parametrize("sizes", [(512,), (1024, 2048)])
def test_every_case_is_within_the_limit(sizes: tuple[int, ...]) -> None:
    """Exact but for whole composites, which also fetch their first tile and write back their last one."""
    rows = compare(sizes)
    assert len({case for case, *_ in rows}) == len(rows) > 20
    for case, ours, reference, unit, error in rows:
        assert (unit, error) == ("ns", ours / reference - 1)
        assert 0 < error < ABOUT.within if case.endswith("the composite") else error == 0, (case, ours, reference)


def test_the_stepped_array_is_right_where_it_can_be_counted_by_hand() -> None:
    """2 x 2 cells: 2 cycles to load, 3 to stream, 2 until the last result; the second load hides behind the stream."""
    folds = [Need(2, 3, 0, 0), Need(2, 3, 1, 0)]
    assert stepped((2, 2), folds, overlap=True) == [2 + 3 + 2 - 1, 2 + 3 + 3 + 2 - 1]
    assert stepped((2, 2), folds, overlap=False) == [7 - 1, 14 - 1]
    assert stepped((2, 2), [Need(4, 3, 0, 0), Need(4, 3, 1, 0)], overlap=True) == [8, 4 + 4 + 3 + 2 - 1]


def test_the_manual_says_how_much_room_an_array_needs_to_stream(plugins: Any) -> None:
    """Each row of its table, to the nanosecond; with less room the array waits for tiles."""
    text = (Path(__file__).parents[3] / "docs" / "pe_pipeline.md").read_text(encoding="utf-8")
    cells = r"(\d+) x (\d+)(?: \(preset\))?", r"(\d+)", r"(\d+ \w+)", r"(\d+) GB/s", *[r"(\d+) ns"] * 3
    between = r" \| "
    table = re.findall(rf"^\| {between.join(cells)} \|$", text, re.MULTILINE)
    assert len(table) == 4
    for rows, columns, tiles, registers, bandwidth, alike, streamed, took in table:
        given = {
            "components.pe_gemm.params.rows": rows, "components.pe_gemm.params.columns": columns,
            "components.pe_scheduler.params.tiles_in_flight": tiles, "components.pe_scheduler.params.staging": "8 MiB",
            "components.pe_fetch_store.params.register_file": registers, "pe.links.data.bandwidth": f"{bandwidth} GB/s",
            "components.pe_tcm.params.read_bandwidth": f"{bandwidth} GB/s",
        }  # fmt: skip
        _, found = tiled(512, [f"{key}={value}" for key, value in given.items()], plugins)
        entering = 64 * 128 * (128 // int(rows)) * (128 // int(columns))
        fill = 10 + 2 * int(rows) + int(columns) - 2
        assert (int(alike), int(streamed), int(took)) == (entering, entering + fill, round(found)), rows
        assert found >= entering + fill
