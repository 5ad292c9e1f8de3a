"""An explanation as it is told: its JSON, the command's pages, and the line on fill and drain."""

from __future__ import annotations

import pytest

import kernbench_core as kb
from kernbench_core.cli import main
from tests.builtin.machine.explained_runs import BENCHES, explain


def test_json_carries_all_of_it() -> None:
    """`--json` has the whole path, the ledger, the places, the use over time and the roofline, as strict JSON."""
    import json

    result = explain("vector-add", params=BENCHES["vector-add"])
    found = json.loads(json.dumps(result.to_json(), allow_nan=False))["explain"]
    assert set(found) == {"where", "ledger", "queueing", "launches", "utilisation", "filling"}
    assert found["filling"] == []
    (launch,) = found["launches"]
    assert launch["path"][0]["from_ns"] == launch["injected_ns"]
    assert launch["path"][-1]["to_ns"] == launch["completed_ns"]
    assert launch["roofline"]["hbm_bytes"] > 0
    assert launch["balance"]["pes"] == 4
    assert {"phase", "sort", "kind", "ns", "waited_at", "queueing"} < set(found["where"][0])
    assert all(len(kind["utilisation"]) == 40 for kind in found["utilisation"]["kinds"])
    assert "explain" not in kb.run("vector-add", "tiny", {"n": 100}).to_json()


def test_it_says_how_much_of_the_matrix_units_time_was_fill_and_drain() -> None:
    """Each of 4 PEs: 16 products stream, and pay 10 + 94 + 32 ns once; 2 that are waited for pay them twice."""
    for ahead, products, fills in ((2, 16, 1), (0, 2, 2)):
        result = explain("gemm-stream", params={"products": str(products), "ahead": ahead})
        (found,) = result.to_json()["explain"]["filling"]
        busy, filling = 4 * (products * 1024 + fills * 136), 4 * fills * 136
        assert found == {
            "kind": "pe_gemm", "units": 4, "busy_ns": busy, "filling_ns": filling, "share": filling / busy
        }  # fmt: skip


@pytest.mark.parametrize("width", [80, 100])
def test_command_prints_it_within_the_window(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--explain` adds its tables below the result's; none is wider than the window."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["run", "softmax", "--topology", "tiny", "-p", "rows=16", "--explain"]) == 0
    text = capsys.readouterr().out
    added = text[text.index("where the time went") :]
    assert max(map(len, added.splitlines())) <= width
    for title in ("critical path of softmax_kernel", "most queueing", "messages", "busy over time", "roofline: "):
        assert title in added


def test_quiet_is_one_line_whatever_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing follows it."""
    assert main(["run", "softmax", "--topology", "tiny", "-p", "rows=16", "--explain", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 and lines[0].startswith("softmax on tiny: ")
