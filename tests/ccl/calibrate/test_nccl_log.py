"""nccl-tests' output: columns by its header, ranks and collective from what stands above, every fault at its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.calibrate.nccl_log import NcclLine, NcclTable, is_nccl
from kernbench_ccl.calibrate.nccl_log import read_nccl as scanned

HEADER = """\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
ROWS = """\
        1024           256     float     sum      -1    32.03    0.03    0.06      0    32.17    0.03    0.06      0
     1048576        262144     float     sum      -1 7.671e+1   13.67   23.92      0      N/A    0.00    0.00    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 81.112
"""


def read_nccl(name: str, text: str, ranks: int | None = None) -> list[NcclTable]:
    """Return the tables of a log that has no fault."""
    tables, problems = scanned(name, text, ranks)
    assert problems == []
    return tables


def devices(ranks: int) -> str:
    return "# Using devices\n" + "".join(
        f"#  Rank {rank:2} Group  0 Pid    944 on node device {rank:2} [0x0f] NVIDIA A100\n" for rank in range(ranks)
    )


def test_a_run_is_read_with_what_stands_above_its_table() -> None:
    """Times are ns; N/A was not measured."""
    text = "./build/all_reduce_perf -b 1K -e 1M -f 2 -g 8\n# nThread 1 nGpus 8\n" + devices(8) + HEADER + ROWS
    assert is_nccl(text)
    (table,) = read_nccl("a.log", text)
    assert (table.collective, table.ranks, table.at) == ("all_reduce", 8, 13)
    assert table.lines == (
        NcclLine(15, 1024, "f32", "sum", 0, 32030.0, 32170.0), NcclLine(16, 1 << 20, "f32", "sum", 0, 76710.0, None),
    )  # fmt: skip


def test_a_log_may_have_several_runs_each_with_its_own_ranks() -> None:
    """Of one collective after another, as a script prints them; what MPI writes before each line is left out."""
    first = "/x/build/alltoall_perf -g 2\n" + devices(2) + HEADER + ROWS.replace(" sum", "none")
    second = "# Collective test starting: all_gather_perf\n" + devices(4) + HEADER + ROWS
    text = "".join(f"[1] {line}\n" for line in first.splitlines()) + "".join(
        f"0:{line}\n" for line in second.splitlines()
    )
    found = [(table.collective, table.ranks, len(table.lines)) for table in read_nccl("a.log", text)]
    assert found == [("alltoall", 2, 2), ("all_gather", 4, 2)]


def test_an_old_table_without_root_and_one_without_in_place_are_read_by_their_headers() -> None:
    old = "size count type redop time algbw busbw error time algbw busbw error\n64 16 half max 3.5 0 0 2e-07 4 0 0 0\n"
    (table,) = read_nccl("a.log", old)
    assert table.lines == (NcclLine(2, 64, "f16", "max", 0, 3500.0, 4000.0),)
    assert (table.collective, table.ranks) == (None, None)
    single = "size count type root time algbw busbw #wrong\n64 16 int8 3 3.5 0 0 0\n"
    assert read_nccl("a.log", single)[0].lines == (NcclLine(2, 64, "int8", None, 3, 3500.0, None),)


@given(st.lists(st.tuples(st.integers(1, 2**38), st.floats(0.01, 1e7), st.floats(0.01, 1e7)), min_size=1, max_size=20))
def test_every_line_of_a_table_is_a_row(rows: list[tuple[int, float, float]]) -> None:
    """In order, as nccl-tests prints them: a time of 7 columns, a bandwidth of two decimals of the time unrounded."""

    def half(nbytes: int, us: float) -> str:
        time = f"{us:7.0f}" if us >= 1e4 else f"{us:7.1f}" if us >= 100 else f"{us:7.2f}"
        return f"{time} {nbytes / us / 1e3:6.2f} 0 0"

    lines = [f"{4 * n} {n} float sum -1 {half(4 * n, a)} {half(4 * n, b)}" for n, a, b in rows]
    (table,) = read_nccl("a.log", HEADER + "\n".join(lines))
    for line, (n, *times) in zip(table.lines, rows, strict=True):
        assert line.size == 4 * n
        for ns, us in zip((line.out_of_place, line.in_place), times, strict=True):
            assert ns == pytest.approx(us * 1e3, rel=5e-4, abs=6)


def test_lines_of_no_bytes_measured_nothing() -> None:
    """As nccl-tests prints sizes that leave no element to a rank: its own time, and no data's."""
    nothing = "0 0 float sum -1 5.70 0.00 0.00 0 5.54 0.00 0.00 0\n"
    (table,) = read_nccl("a.log", HEADER + nothing * 3 + ROWS)
    assert [line.line for line in table.lines] == [7, 8]
    assert faults(HEADER + nothing) == () and faults(HEADER + nothing.replace("0 0", "0 1", 1)) == (
        "a.log:4: size must be a positive number of bytes, not '0'.",
    )


def test_a_table_of_an_old_version_is_read_by_its_own_header() -> None:
    """Which had no root, and an error of the data in place of how many were wrong; lines may have a process."""
    text = (
        "size count type redop time algbw busbw error time algbw busbw error\n"
        "(B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n"
        "1048576 262144 float sum 177.0 5.93 11.11 5e-07 174.8 6.00 11.25 5e-07\n"
    )
    (table,) = read_nccl("a.log", "".join(f" 0: {line}\n" for line in text.splitlines()))
    assert table.lines == (NcclLine(3, 1048576, "f32", "sum", 0, 177e3, 174.8e3),)


def test_remarks_among_the_lines_are_no_rows() -> None:
    """As `kernbench ccl` has them."""
    text = "# all_reduce: 4 ranks, the SIPs of tiny\n" + HEADER + ROWS + "# 1 MiB: 128 KiB of a PE under way\n"
    (table,) = read_nccl("a.log", text)
    assert (table.collective, table.ranks, len(table.lines)) == ("all_reduce", 4, 2)


def faults(text: str, ranks: int | None = None) -> tuple[str, ...]:
    _, problems = scanned("a.log", text, ranks)
    return tuple(problems)


def test_all_lines_that_are_wrong_are_told_at_once() -> None:
    lines = [
        "0 16 float sum -1 3.5 0 0 0 4 0 0 0",
        "64 16 quad sum -1 3.5 0 0 0 4 0 0 0",
        "64 16 float mulsum -1 fast 0 0 0 1e400 0 0 0",
        "64 16 float sum -1 3.5 0 0",
        "64 16 float sum -1 1e-9 0 0 0 4 0 0 0",
        "128 32 float sum -1 3.5 0 0 0 4 0 0 0",
    ]
    dtypes = (
        "float, half, bfloat16, double, int8, uint8, int32, uint32, int64, uint64, f8e4m3, f8e5m2, fp8_e4m3, fp8_e5m2"
    )
    assert faults(HEADER + "\n".join(lines)) == (
        "a.log:4: size must be a positive number of bytes, not '0'.",
        f"a.log:5: type must be one of {dtypes}, not 'quad'.",
        "a.log:6: redop must be one of sum, prod, max, min, avg, none, not 'mulsum'; leave such rows out.",
        "a.log:6: time must be a positive number of us or N/A, not 'fast'.",
        "a.log:6: time must be below 1e+15 us, not '1e400'.",
        "a.log:7: a line of the table must have a word for each column of its header, not 8 columns, and its header "
        "names 13; restore the line.",
        "a.log:8: time must be at least 1e-06 us, not '1e-9'.",
    )


@pytest.mark.parametrize(("cells", "told"), [
    ("9" * 19 + " 16 float", f"size must be below 10^18 B, not '{'9' * 19}'."),
    ("9" * 99 + " 16 float", f"size must be a positive number of bytes, not '{'9' * 99}'."),
    ("6\u00b2 16 float", "size must be a positive number of bytes, not '6\u00b2'."),
    ("65536 " + "1" * 101 + " float",
     "a word of the table must have at most 100 characters, not 101; restore the line."),
    ("65536 " + "1" * 99 + " float",
     f"count must be size / 4 B, or one rank's part of that, not '{'1' * 99}'; restore the line."),
])  # fmt: skip
def test_figures_that_no_table_has_are_told_at_their_line(cells: str, told: str) -> None:
    """Not read as numbers that they are not, nor as another line."""
    assert faults(HEADER + row(f"{cells} sum")) == (f"a.log:4: {told}",)


def row(cells: str, time: str = "10.80", algbw: str = "6.07", wrong: str = "0") -> str:
    """Return a line of 64 KiB, its first cells as given, measured in place within a rounding of its bandwidth."""
    return f"{cells} -1 {time} {algbw} 9.10 {wrong} 10.75 6.10 9.14 N/A\n"


def test_a_line_must_agree_with_itself() -> None:
    """Size over time is the bandwidth within the digits of both, the count is the size's, and no data are wrong."""
    text = HEADER + row("65536 16384 float sum") + row("65536 77 float sum", "10800", "6.07", "12")
    text += row("65536 16384 float sum", "10.80", "6.08") + row("65536 16384 float sum", "10.80", "6.06", "1e-3")
    units = "restore the line, or the units above it."
    assert faults(text) == (
        "a.log:5: count must be size / 4 B, or one rank's part of that, not '77'; restore the line.",
        f"a.log:5: algbw must be size / time, which is 0.006068 GB/s, not '6.07'; {units}",
        "a.log:5: #wrong must be 0 or N/A, not '12'; leave out what was measured with wrong data.",
        f"a.log:6: algbw must be size / time, which is 6.068 GB/s, not '6.08'; {units}",
        f"a.log:7: algbw must be size / time, which is 6.068 GB/s, not '6.06'; {units}",
        "a.log:7: #wrong must be 0 or N/A, not '1e-3'; leave out what was measured with wrong data.",
    )


@pytest.mark.parametrize(("count", "ranks", "fits"), [
    (16384, None, True), (16384, 4, True), (4096, 4, True), (4096, None, True), (4096, 8, False), (32768, 4, False),
    (0, None, False), (3, None, False),
])  # fmt: skip
def test_a_count_is_that_of_all_or_of_a_ranks_part(count: int, ranks: int | None, fits: bool) -> None:
    """As of a gather; where nobody knows the ranks, of any part."""
    assert (not faults(HEADER + row(f"65536 {count} float none"), ranks)) == fits
    if ranks is not None:
        assert (not faults(devices(ranks) + HEADER + row(f"65536 {count} float none"))) == fits


@pytest.mark.parametrize(("unit", "time", "ns"), [
    ("ns", "10800", 10800.0), ("us", "10.80", 10800.0), ("ms", "0.0108", 10800.0), ("s", "1.08e-5", 10800.0),
])  # fmt: skip
def test_times_are_in_the_unit_below_their_own_header(unit: str, time: str, ns: float) -> None:
    """The other half has its own; a time that is none names it."""
    head, _, rest = HEADER.partition("(us)")
    (table,) = read_nccl("a.log", f"{head}({unit}){rest}" + row("65536 16384 float sum", time))
    assert table.lines[0].out_of_place == pytest.approx(ns) and table.lines[0].in_place == 10750.0
    assert faults(f"{head}({unit}){rest}" + row("65536 16384 float sum", "-1")) == (
        f"a.log:4: time must be a positive number of {unit} or N/A, not '-1'.",
    )


def test_units_that_are_not_read_are_refused_at_their_line() -> None:
    good = row("65536 16384 float sum")
    assert faults(HEADER.replace("(us)", "(min)", 1).replace("(GB/s)", "(Gb/s)", 1) + good) == (
        "a.log:3: the unit of time must be (us) or (ns) or (ms) or (s), not '(min)'; convert the column.",
        "a.log:3: the unit of algbw must be (GB/s), not '(Gb/s)'; convert the column.",
    )
    assert faults(HEADER.replace("(us)", "", 1) + good) == (
        "a.log:3: units must be one for each column that has one, not 7 for size, count, time, algbw, busbw, time, "
        "algbw, busbw; restore the line.",
    )


def test_units_of_columns_that_were_cut_off_are_passed_over() -> None:
    """Those in place, of a table of which only the first half was kept."""
    text = "size count type redop root time algbw busbw #wrong\n#" + HEADER.splitlines()[2].replace("(us)", "(ms)", 1)
    (table,) = read_nccl("a.log", f"{text}\n65536 16384 float sum -1 0.0108 6.07 9.10 0\n")
    assert table.lines == (NcclLine(3, 65536, "f32", "sum", 0, pytest.approx(10800.0), None),)


@pytest.mark.parametrize("between", [
    "", devices(4), "# Collective test concluded: all_reduce_perf\n" + devices(4),
])  # fmt: skip
def test_a_table_has_what_stands_above_it_and_nothing_of_the_one_before(between: str) -> None:
    found = read_nccl("a.log", "all_reduce_perf\n" + devices(2) + HEADER + ROWS + between + HEADER + ROWS)
    assert [(table.collective, table.ranks) for table in found] == [
        ("all_reduce", 2), (None, 4 if between else None),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "size count kind time\n1 2 3 4\n", "64 16 float sum -1 3.5 0 0 0\n", HEADER])
def test_a_text_without_a_table_is_told(text: str) -> None:
    assert faults(text) == (
        "a.log:1: a log of nccl-tests must have a table, a line that begins size count type and lines of numbers below "
        "it, and this one has none; give the output as it was printed.",
    )
    assert is_nccl(text) == (text == HEADER)
