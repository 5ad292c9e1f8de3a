"""The report is a compact table in a terminal and plain text elsewhere."""

from __future__ import annotations

import io
import json
from types import ModuleType
from typing import Any

import attrs
import pytest
from rich.cells import cell_len
from rich.console import Console

from kernbench_builtin.explain.result_text import bar, print_result
from kernbench_builtin.machines.figures.kernels import ArrayFill, KernelFigures, KernelUse
from kernbench_builtin.machines.figures.roofline import Achieved, RooflinePoint
from kernbench_builtin.machines.figures.tables import figures_of_session
from kernbench_core.compute.on_demand import HostReads
from kernbench_core.host.statistics import Statistic
from kernbench_core.host.timing import ResourceUse, TimingResult
from kernbench_core.runs.result import RunResult, json_text
from kernbench_core.runs.text_report import make_console
from tests.core.toy_machine import toy_engine


def plain(samples: ModuleType, *, verbose: bool = False, verification: str | None = "RIGHT", **changed: object) -> str:
    out = io.StringIO()
    result = samples.make_result(verification and getattr(samples, verification), **changed)
    print_result(result, make_console(out), verbose=verbose)
    return out.getvalue().removesuffix("\n")


def test_plain_report(samples: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal there are no colours, no bars and no boxes."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert (
        plain(samples)
        == """\
gemm on tiny   M=64  b=params/b.npy

total time        412.3 us
  host to device   18.2 us   4.4%
  launch            1.1 us   0.3%
  kernel            380 us  92.2%
  device to host     13 us   3.2%

busiest of its kind     kind        busy        mean  run moved
sip0.cube0.pe0.pe_gemm  pe_gemm    81.2%  50.0% of 4          -
sip0.io0.pcie_ep->host  pcie wire  25.0%           -      6 MiB

data verified: 1 tensor, largest error 0.00012
4,096 ops, 1,234,567 events in 2.00 s (617 k events/s), 3.25 s in all
2 late starts; sip0.cube3.pe7 was the latest, 12.5 ns after the common stamp
2 things not modelled: -v"""
    )


def test_a_failure_is_shown_where_it_is(samples: ModuleType) -> None:
    """A wrong result names the tensor, place and value."""
    text = plain(samples, verification="WRONG")
    assert "DATA IS WRONG: 1 of 2 tensors, largest error 3\n  tensor 'c' differs at (0, 1): 4.0 must be 1.0.\n" in text


def test_a_long_failure_keeps_its_indentation(samples: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its lines goes on below its own start."""
    monkeypatch.setenv("COLUMNS", "60")
    failure = "tensor 'c' must equal what is expected, " + "y " * 10 + "of:\n  1.0: made by " + "x " * 40
    wrong = attrs.evolve(samples.WRONG, failures=(failure,))
    out = io.StringIO()
    print_result(samples.make_result(wrong), make_console(out))
    told = out.getvalue().partition("largest error 3\n")[2].splitlines()[:4]
    assert told[:2] == ["  tensor 'c' must equal what is expected, y y y y y y y y y", "  y of:"]
    assert told[2].startswith("    1.0: made by x x ") and told[3].startswith("    x x ")


def test_not_verified_and_interrupted_are_said(samples: ModuleType) -> None:
    """Silence is never taken for a verdict."""
    assert "\ndata not verified (--verify-data does)\n" in plain(samples, verification=None)
    nothing = "\ndata not verified: nothing compares it with a reference (rt.check does)\n"
    assert nothing in plain(samples, verification="NOTHING")
    assert "\ninterrupted: everything here covers only what ran\n" in plain(samples, interrupted=True)
    read = plain(samples, verification="NOTHING", host_reads=HostReads(3, 2))
    assert "\nhost reads: 2 of 3 confirmed; the run compares no tensor with a reference\n" in read


def test_verbose_lists_everything(samples: ModuleType) -> None:
    """-v shows each ignored thing with its component and count, each late start, and the hash."""
    text = plain(samples, verbose=True)
    assert "  Refresh is left out.    builtin.hbm_ctrl         512\n" in text
    assert "  sip0.cube0.pe1 by 2 ns\n" in text
    assert text.endswith("op log SHA-256 " + "ab" * 32)


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_report_fits_its_window(samples: ModuleType, width: int) -> None:
    """No line is wider than the window, and shares are drawn."""
    out = io.StringIO()
    print_result(samples.make_result(), Console(file=out, width=width, force_terminal=True, color_system=None))
    lines = out.getvalue().splitlines()
    assert max(cell_len(line.rstrip()) for line in lines) <= width
    assert any("█" in line for line in lines)


@pytest.mark.parametrize(
    ("share", "drawn"), [(0.0, ""), (0.0001, "▏"), (0.5, "████"), (0.53, "████▎"), (1.0, "████████"), (2.0, "████████")]
)
def test_bars_are_drawn_to_an_eighth(share: float, drawn: str) -> None:
    """A bar is proportional, never empty for something, never too long."""
    assert bar(share, 8) == drawn


def test_reported_rows_are_a_table_at_the_end(samples: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts stand left, numbers right; what a row leaves out is a dash."""
    rows = ({"tile": "64", "kernel_ns": 6099.0, "DMA_READ": 1024}, {"tile": "128", "kernel_ns": 85.5})
    monkeypatch.delenv("COLUMNS", raising=False)
    assert plain(samples, rows=rows).endswith(
        """

                  DMA
tile    kernel   READ
64    6.099 us  1,024
128    85.5 ns      -"""
    )


def test_reported_rows_move_together_in_a_narrow_window(samples: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of blanks is given up before any cell is cut."""
    rows = ({"one": "x" * 9, "two": "y" * 9, "three": "z" * 9},)
    monkeypatch.setenv("COLUMNS", "29")
    assert plain(samples, rows=rows).splitlines()[-1] == "xxxxxxxxx yyyyyyyyy zzzzzzzzz"
    monkeypatch.setenv("COLUMNS", "33")
    assert plain(samples, rows=rows).splitlines()[-1] == "xxxxxxxxx  yyyyyyyyy  zzzzzzzzz"


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (99, "sip0.cube0.pe0.pe_cpu->sip0.cube0.pe0.pe_scheduler  pe wire           5.8%  2.4% of 1024  78.23 KiB"),
        (98, "sip0.cube0.pe0.pe_cpu->sip0.cube0.pe0.pe_scheduler  pe wire           5.8%  2.4% of 1024"),
        (80, "sip0.cube0.pe0.pe_cpu…be0.pe0.pe_scheduler  pe wire           5.8%  2.4% of 1024"),
        (60, "sip0.cube0.…_scheduler  pe wire           5.8%  2.4% of 1024"),
        (59, "sip0.cube0.pe0.pe….pe0.pe_scheduler  pe wire           5.8%"),
        (40, "sip0.cube0.pe0.pe…pe0.pe_scheduler  5.8%"),
        (20, "sip0.cu…eduler  5.8%"),
    ],
)
def test_a_narrow_window_keeps_names_and_how_busy_they_are(samples: ModuleType, width: int, row: str) -> None:
    """Bars go first, then bytes, then the middle of names; before less than 22 letters are left, means and kinds."""
    long = ResourceUse("sip0.cube0.pe0.pe_cpu->sip0.cube0.pe0.pe_scheduler", "pe wire", 0.058, 58.0, 80104, 1024, 0.024)
    channel = ResourceUse("sip0.cube0.hbm_ctrl0#pc0", "hbm_ctrl channel", 0.023, 23.0, 512, 16, 0.023)
    result = samples.make_result()
    result = attrs.evolve(result, timing=attrs.evolve(result.timing, busiest=(long, channel)))
    out = io.StringIO()
    print_result(result, Console(file=out, width=width, force_terminal=True, color_system=None))
    assert [line.rstrip() for line in out.getvalue().splitlines() if "eduler" in line] == [row]


def test_times_are_whole_in_a_window_too_narrow_for_their_bars(samples: ModuleType) -> None:
    """Forty columns hold all of the words."""
    out = io.StringIO()
    print_result(samples.make_result(), Console(file=out, width=40, force_terminal=True, color_system=None))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines[lines.index("total time        412.3 us") + 1].startswith("  host to device  ")
    assert not any("█" in line or "…" in line for line in lines[:8])


KERNELS = KernelFigures(
    380_000.0,
    (
        KernelUse("sip0.cube0.pe0.pe_gemm", "pe_gemm", 0.9, 0.81, 342_000.0, 0, 4, 0.6),
        KernelUse("sip0.cube0.hbm_ctrl0#pc0", "hbm_ctrl channel", 0.3, 0.28, 114_000.0, 4096, 16, 0.25, 1, 3072),
    ),
    RooflinePoint(
        7.6e8, 38_000_000, 380_000.0, 20.0, 2000.0, 2000.0, "memory",
        (Achieved("pe_gemm", 4, 2000.0, 4096.0, "GFLOP/s"), Achieved("hbm_ctrl", 4, 100.0, 400.0, "GB/s")),
    ),
    (ArrayFill("pe_gemm", 4, 1_000_000.0, 500_000.0, 250_000.0),),
)  # fmt: skip


def test_the_page_speaks_of_kernels(samples: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was busiest while they ran, beside the whole run and what was busiest there; rates against peaks."""
    monkeypatch.delenv("COLUMNS", raising=False)
    timing = attrs.evolve(samples.TIMING, busiest=samples.TIMING.busiest[::-1])
    text = plain(samples, kernels=KERNELS, timing=timing)
    begin = text.index("busiest of its kind")
    assert text[begin : text.index("\n\n", begin)] == """\
busiest of its kind       kind              kernel         mean  moved    run  run moved
sip0.cube0.pe0.pe_gemm    pe_gemm            90.0%   60.0% of 4      -  81.0%          -
sip0.cube0.hbm_ctrl0#pc0  hbm_ctrl channel   30.0%  25.0% of 16  3 KiB  28.0%      4 KiB
sip0.io0.pcie_ep->host    pcie wire              -            -      -  25.0%      6 MiB
achieved in kernels, of peak: pe_gemm 2 TFLOP/s (48.8%), HBM 100 GB/s (25.0%)"""


def test_statistics_are_in_the_table_and_in_the_object() -> None:
    """With their unit, over how many, and what they are; a run without any shows no table."""
    engine = toy_engine(pes=1)
    engine.run(lambda rt: rt.tensor((64,), "f32"))
    found = (
        Statistic("acme.x", "hits", 1234567, "", "sum", 4, "Hits."),
        Statistic("acme.x", "wait", 1500.0, "ns", "max", 4, "Longest wait."),
        Statistic("acme.y", "room", 4096, "B", "mean", 1, "Room."),
        Statistic("acme.y", "share", 0.25, "", "mean", 2, "Share."),
    )

    def page(timing: TimingResult) -> tuple[str, dict[str, Any]]:
        out = io.StringIO()
        result = RunResult(
            bench="b", params={}, topology="toy", device="all", timing=timing, wall_s=0.0,
            op_log_sha256=None, manifest={}, op_log=engine.op_log, store=engine.store,
            parts={"figures": figures_of_session(engine)},
        )  # fmt: skip
        print_result(result, Console(file=out, width=80))
        return out.getvalue(), json.loads(json_text(result.to_json()))

    text, data = page(attrs.evolve(engine.get_timing_result(), statistics=found))
    lines = [line.split() for line in text.splitlines()]
    assert ["hits", "1,234,567", "sum", "of", "4", "acme.x", "Hits."] in lines
    assert ["wait", "1.5", "us", "max", "of", "4", "acme.x", "Longest", "wait."] in lines
    assert ["room", "4", "KiB", "acme.y", "Room."] in lines
    assert ["share", "0.25", "mean", "of", "2", "acme.y", "Share."] in lines
    assert data["statistics"] == [attrs.asdict(each) for each in found]
    text, data = page(engine.get_timing_result())
    assert "counted" not in text
    assert data["statistics"] == []
