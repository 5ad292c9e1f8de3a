"""An explanation is compact tables, in 80 columns too."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import attrs
import pytest

from kernbench_builtin.explain.critical_path import Parts, Segment
from kernbench_builtin.explain.explanation import Achieved, Balance, Explanation, LaunchExplanation, RooflinePoint, Went
from kernbench_builtin.explain.ledger import LedgerRow, QueueingPlace
from kernbench_builtin.explain.text import print_explanation
from kernbench_builtin.explain.usage import Filling, Usage
from kernbench_core.runs.text_report import make_console

HOT = "sip0.cube0.hbm_ctrl0"


def part(**ns: float) -> Parts:
    """Return parts by name."""
    named = ("propagation", "serialisation", "overhead", "queueing", "service")
    return tuple(ns.get(name, 0.0) for name in named)  # type: ignore[return-value]


def made() -> Explanation:
    """Return an explanation made by hand."""
    path = (
        Segment("launch", "host->sip0.io0.io_cpu", "host to io_cpu", None, None, None, 100.0, 150.0,
                part(propagation=40.0, overhead=10.0), None),
        Segment("read", "sip0.cube0.pe0.pe_dma->sip0.cube0.hbm_ctrl0", "pe_dma to hbm_ctrl", (0, 0), "tl.load",
                "/home/me/gemm.py:24", 150.0, 850.0, part(queueing=600.0, serialisation=100.0),
                "sip0.cube0.hbm_ctrl0->sip0.cube0.r0c0"),
        Segment("service", "sip0.cube0.pe0.pe_gemm", "pe_gemm", (0, 1), "tl.dot", "/home/me/gemm.py:27", 850.0, 1100.0,
                part(service=250.0), None),
    )  # fmt: skip
    balance = Balance(2, 500.0, 700.0, 900.0, "sip0.cube0.pe0")
    point = RooflinePoint(
        8e6, 16384, 1000.0, 8e6 / 16384, 8000.0, 16384.0, "compute",
        (Achieved("pe_gemm", 2, 8000.0, 16384.0, "GFLOP/s", "sip0.cube0.pe0.pe_gemm", 6000.0, 8192.0),
         Achieved("hbm_ctrl", 1, 16.384, 102.4, "GB/s", "sip0.cube0.hbm_ctrl0", 16.384, 102.4)),
    )  # fmt: skip
    return Explanation(
        1200.0,
        (
            Went("host_to_device", "write", "host to hbm_ctrl", 100.0, part(queueing=91.0, propagation=9.0)),
            Went("kernel", "read", "pe_dma to hbm_ctrl", 848.0, part(queueing=600.0, serialisation=248.0), HOT),
            Went("kernel", "service", "pe_gemm", 250.0, part(service=250.0)),
            Went("kernel", "answer", "pe_gemm to pe_cpu", 2.0, part(propagation=2.0)),
        ),
        (
            LedgerRow("kernel", "pe_dma reads hbm_ctrl", 2, 1400.0, 0.0, 200.0, 0.0, 1200.0, 0.0),
            LedgerRow("kernel", "command gemm", 1, 260.0, 2.0, 4.0, 0.0, 0.0, 250.0),
        ),
        (QueueingPlace("sip0.cube0.hbm_ctrl0->sip0.cube0.r0c0", "hbm wire", 2, 1200.0, 600.0, 900.0),),
        (LaunchExplanation("gemm_kernel", 100.0, 1100.0, path, point, balance),),
        (Usage("pe_gemm", 2, (0.0,) * 20 + (0.01, 0.5, 1.0) + (0.0,) * 17),),
        (Filling("pe_gemm", 2, 400.0, 50.0), Filling("pe_sfu", 1, 1000.0, 3.0)),
    )


def printed(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Print it as into a pipe of that many columns."""
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()
    print_explanation(made(), make_console(out))
    return out.getvalue().splitlines()


def test_explanation_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time went, the path by kernel line, queueing, messages, use over time, peaks."""
    assert (
        "\n".join(printed(100, monkeypatch))
        == """\

where the time went            time  share  mostly                 queues most at
host to device               100 ns   8.3%
  writes, host to hbm_ctrl   100 ns   8.3%  queue 91%
kernel                       1.1 us  91.7%
  reads, pe_dma to hbm_ctrl  848 ns  70.7%  queue 71%, serial 29%  sip0.cube0.hbm_ctrl0
  pe_gemm at work            250 ns  20.8%
  the rest                     2 ns   0.2%

critical path of gemm_kernel, 1 us, through sip0.cube0.pe0
  its 2 PEs took 700 ns on average; sip0.cube0.pe0 took longest, 900 ns
  kernel line         ops    time  share  mostly                 queues most at
  tl.load gemm.py:24    1  700 ns  70.0%  queue 86%, serial 14%  sip0.cube0.hbm_ctrl0->r0c0
  tl.dot gemm.py:27     1  250 ns  25.0%  service
  launch on its way         50 ns   5.0%  prop 80%, nodes 20%

most queueing                          kind      waits  together    each  longest
sip0.cube0.hbm_ctrl0->sip0.cube0.r0c0  hbm wire      2    1.2 us  600 ns   900 ns

messages                             number    each  prop  serial  nodes  queue  service
pe_dma reads hbm_ctrl                     2  700 ns     -     14%      -    86%        -
command gemm (4 ns unaccounted for)       1  260 ns    1%      2%      -      -      96%

busy over time  used  mean  0 to 1.2 us
pe_gemm            2  3.8%                      ▁▄█

2 pe_gemm at work for 400 ns: 12.5% of it to start, fill and drain

pe_sfu at work for 1 us: 0.3% of it to start, fill and drain

gemm_kernel, achieved       units        rate           peak  of peak
  pe_gemm                       2   8 TFLOP/s  16.38 TFLOP/s    48.8%
    sip0.cube0.pe0.pe_gemm          6 TFLOP/s  8.192 TFLOP/s    73.2%
  hbm_ctrl                      1  16.38 GB/s     102.4 GB/s    16.0%
  roofline: 488 FLOP/B; 8 TFLOP/s of the 16.38 TFLOP/s that the units allow (48.8%)"""
    )


@pytest.mark.parametrize(
    ("width", "rows"),
    [
        (40, ("  reads, pe_… to hbm_ctrl  848 ns  70.7%", "  tl.load gemm.py:24    1  700 ns  70.0%",
              "sip0.cube0.…cube0.r0c0    1.2 us  600 ns", "pe_dma r…bm_ctrl  700 ns    86%        -",
              "  pe_gemm             8 TFLOP/s    48.8%")),
        (60, ("sip0.cub…e0.r0c0  hbm wire      2    1.2 us  600 ns   900 ns",
              "pe_dma reads hbm_ctrl   700 ns     -     14%    86%        -")),
    ],
)  # fmt: skip
def test_numbers_are_whole_in_a_narrow_window(width: int, rows: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns go before a number is cut, the less telling first; the rest of a name is its beginning and its end."""
    lines = printed(width, monkeypatch)
    for row in rows:
        assert row in lines
    assert not any(re.search(r"\d…( |$)", line) for line in lines if "%  " not in line)  # there a text may be cut


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_nothing_is_wider_than_the_window(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column that can do with less gives way."""
    lines = printed(width, monkeypatch)
    assert max(map(len, lines)) <= width
    assert lines[1].startswith("where the time went")


def test_a_line_that_keeps_several_units_busy_says_what_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """A composite is one op; below its line stands what it waited for, by unit."""
    explanation = made()
    (launch,) = explanation.launches
    op = {"op_id": (0, 0), "call": "tl.composite", "line": "/home/me/gemm.py:20"}
    path = [
        attrs.evolve(launch.path[1], **op),
        attrs.evolve(launch.path[2], **op),
        attrs.evolve(launch.path[2], **op, kind="pe_dma", from_ns=1100.0, to_ns=1150.0, parts=part(service=50.0)),
    ]
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    only = attrs.evolve(explanation, launches=(attrs.evolve(launch, path=tuple(path), roofline=None),))
    print_explanation(only, make_console(out))
    text = out.getvalue()
    assert (
        text[text.index("  kernel line") : text.index("most queueing")]
        == """\
  kernel line                  ops    time   share  mostly
  tl.composite gemm.py:20        1    1 us  100.0%  queue 60% at hbm_ctrl0->r0c0
    reads, pe_dma to hbm_ctrl       700 ns   70.0%  queue 86% at hbm_ctrl0->r0c0
    pe_gemm at work                 250 ns   25.0%
    pe_dma at work                   50 ns    5.0%

"""
    )


def test_what_is_balanced_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither PEs of nearly the same time nor units of nearly the same rate have a line."""
    explanation = made()
    (launch,) = explanation.launches
    assert launch.roofline is not None
    even = attrs.evolve(launch.roofline.resources[0], busiest_achieved=4200.0)
    point = attrs.evolve(launch.roofline, resources=(even,))
    balance = Balance(2, 690.0, 700.0, 710.0, "sip0.cube0.pe0")
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    print_explanation(
        attrs.evolve(explanation, launches=(attrs.evolve(launch, roofline=point, balance=balance),)), make_console(out)
    )
    assert "took longest" not in out.getvalue()
    assert "sip0.cube0.pe0.pe_gemm" not in out.getvalue()


def test_issuing_tiny_commands_is_shown_below_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of one unit is split where the PE's processor had a good part in it, and only there."""
    explanation = made()
    (launch,) = explanation.launches
    op = {"op_id": (0, 0), "call": "tl.add", "line": "/home/me/k.py:3"}
    work = attrs.evolve(launch.path[2], **op)
    monkeypatch.setenv("COLUMNS", "80")
    for ns, shown in ((100.0, True), (20.0, False)):
        issue = attrs.evolve(
            launch.path[2], **op, sort="issue", kind="pe_cpu", from_ns=1100.0, to_ns=1100.0 + ns, parts=part(service=ns)
        )
        out = io.StringIO()
        only = attrs.evolve(launch, path=(work, issue), roofline=None)
        print_explanation(attrs.evolve(explanation, launches=(only,)), make_console(out))
        assert ("    pe_cpu issues commands" in out.getvalue()) is shown
