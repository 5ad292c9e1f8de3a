"""The answer in one line: as it is where nobody draws, by the library of terminals elsewhere."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from kernbench_core.compute.on_demand import HostReads
from kernbench_core.runs.summary import print_summary
from kernbench_core.runs.text_report import make_console, show


def printed(result: Any) -> str:
    out = io.StringIO()
    print_summary(result, out)
    return out.getvalue()


def test_it_says_bench_time_and_verdict(samples: ModuleType) -> None:
    """In one line."""
    told = "gemm on tiny: 412.3 us, data verified: 1 tensor, largest error 0.00012\n"
    assert printed(samples.make_result()) == told


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"verification": None},
        {"interrupted": True, "unwritten": ("--out", "--trace", "--json")},
        {"host_reads": HostReads(2, 2)},
    ],
)
def test_a_pipe_gets_what_a_console_would_write(samples: ModuleType, changed: dict[str, Any]) -> None:
    """Letter for letter."""
    result = samples.make_result(**changed)
    out = io.StringIO()
    show(Text.assemble(*result.words()), make_console(out))
    assert printed(result).endswith(out.getvalue())


@pytest.mark.parametrize(
    ("bench", "lines"),
    [("gemm\x1b[2J", ["gemm\\x1b[2J on tiny:"]), ("ge\nmm", ["ge", "mm on tiny:"]), ("行" * 60, ["行" * 60])],
)
def test_a_name_that_would_act_is_shown(samples: ModuleType, bench: str, lines: list[str]) -> None:
    """And wide letters are as wide as they are."""
    found = printed(samples.make_result(bench=bench)).splitlines()
    assert all(line.startswith(start) for line, start in zip(found, lines, strict=False))


def test_a_narrow_window_breaks_the_line(samples: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """As COLUMNS says, for a pipe."""
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, printed(samples.make_result()).splitlines())) <= 40


def test_a_terminal_has_it_in_colours(samples: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict above all."""
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        "kernbench_core.runs.text_report.make_console",
        lambda stream: Console(file=stream, force_terminal=True, color_system="standard", width=100),
    )
    print_summary(samples.make_result(), out)
    assert "\x1b[1;32mdata verified\x1b[0m" in out.getvalue()
