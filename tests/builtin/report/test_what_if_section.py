"""The section says what the command says: a change in percent, one within the spread as none."""

from __future__ import annotations

import re
from typing import Any

from kernbench_builtin.pages.report import RunPage
from kernbench_builtin.pages.report.what_if_section import WHAT_IF
from tests.builtin.report.pages import HOSTILE, result


def took(kernel_ns: float, total_ns: float, refused: str = "") -> dict[str, Any]:
    return {"kernel_ns": kernel_ns, "total_ns": total_ns, "refused": refused}


def spread(low_ns: float, high_ns: float) -> dict[str, Any]:
    return {"median_ns": low_ns, "low_ns": low_ns, "high_ns": high_ns, "runs": 8}


def test_each_change_beyond_the_spread_is_in_percent() -> None:
    """Kernels take 100 ns with a spread of 2, all 1000 ns with one of 10; the resource that gains most comes first."""
    found = {
        "now": took(100, 1000), "kernels": spread(99, 101), "total": spread(995, 1005), "chosen": ["lanes of pe_math"],
        "rows": [
            {"resource": "SRAM", "twice": took(98, 990), "free": took(101, 1010)},
            {"resource": "PCIe", "twice": took(100, 750), "free": took(100, 500)},
            {"resource": HOSTILE, "twice": took(90, 989), "free": took(60, 960)},
            {"resource": "queues", "twice": took(0, 0, "full"), "free": took(97, 1000)},
        ],
    }  # fmt: skip
    html = WHAT_IF.html(RunPage("r", result(native={"what_if": found})))
    cells = re.findall(r"<td.*?>(.*?)</td>", html, re.DOTALL)
    rows = [[*cells[at : at + 4], cells[at + 5]] for at in range(0, len(cells), 6)]
    assert rows == [
        [rows[0][0], "-10.0 %", "-1.1 %", "-40.0 %", "-4.0 %"],
        ["queues", "not known", "not known", "-3.0 %", "no change"],
        ["PCIe", "no change", "-25.0 %", "no change", "-50.0 %"],
    ]
    assert "<p class=\"note\">No change beyond the spread: SRAM.</p>" in html and "by lanes of pe_math;" in html
    assert HOSTILE not in html


def test_a_run_that_was_not_asked_has_no_section() -> None:
    assert WHAT_IF.html(RunPage("r", result())) == WHAT_IF.html(RunPage("r", result(native={"ops": 1}))) == ""
