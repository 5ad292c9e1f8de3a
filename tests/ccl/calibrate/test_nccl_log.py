"""nccl-tests' output: columns by its header, ranks and collective from what stands above, every fault at its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.calibrate.nccl_log import NcclLine, is_nccl, read_nccl
from kernbench_core.errors import ConfigError

HEADER = """\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
ROWS = """\
        1024           256     float     sum      -1    32.03    0.03    0.06      0    32.17    0.03    0.06      0
     1048576        262144     float     sum      -1     1e+3   13.67   23.92      0      N/A    0.00    0.00    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 81.112
"""


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
        NcclLine(15, 1024, "f32", "sum", 0, 32030.0, 32170.0), NcclLine(16, 1 << 20, "f32", "sum", 0, 1e6, None),
    )  # fmt: skip


def test_a_log_may_have_several_runs_each_with_its_own_ranks() -> None:
    """Of one collective after another, as a script prints them; what MPI writes before each line is left out."""
    first = "/x/build/alltoall_perf -g 2\n" + devices(2) + HEADER + ROWS
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


@given(st.lists(st.tuples(st.integers(1, 2**40), st.floats(0.01, 1e7), st.floats(0.01, 1e7)), min_size=1, max_size=20))
def test_every_line_of_a_table_is_a_row(rows: list[tuple[int, float, float]]) -> None:
    """In order, with two decimals of a us."""
    lines = [f"{n} {n // 4} float sum -1 {a:.2f} 0 0 0 {b:.2f} 0 0 0" for n, a, b in rows]
    (table,) = read_nccl("a.log", HEADER + "\n".join(lines))
    assert [(line.size, line.out_of_place, line.in_place) for line in table.lines] == [
        (n, pytest.approx(a * 1e3, abs=6), pytest.approx(b * 1e3, abs=6)) for n, a, b in rows
    ]


def test_remarks_among_the_lines_are_no_rows() -> None:
    """As `kernbench ccl` has them."""
    text = "# all_reduce: 4 ranks, the SIPs of tiny\n" + HEADER + ROWS + "# 1 MiB: 128 KiB of a PE under way\n"
    (table,) = read_nccl("a.log", text)
    assert (table.collective, table.ranks, len(table.lines)) == ("all_reduce", 4, 2)


def faults(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        read_nccl("a.log", text)
    return caught.value.problems


def test_all_lines_that_are_wrong_are_told_at_once() -> None:
    lines = [
        "0 16 float sum -1 3.5 0 0 0 4 0 0 0",
        "64 16 quad sum -1 3.5 0 0 0 4 0 0 0",
        "64 16 float mulsum -1 fast 0 0 0 1e400 0 0 0",
        "64 16 float sum -1 3.5 0 0",
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
        "a.log:6: time must be a positive number of us or N/A, not '1e400'.",
        "a.log:7: a line of the table must have a word for each column of its header, not 8 columns, and its header "
        "names 13; restore the line.",
    )


@pytest.mark.parametrize("text", ["", "size count kind time\n1 2 3 4\n", "64 16 float sum -1 3.5 0 0 0\n", HEADER])
def test_a_text_without_a_table_is_told(text: str) -> None:
    assert faults(text) == (
        "a.log:1: a log of nccl-tests must have a table, a line that begins size count type and lines of numbers below "
        "it, and this one has none; give the output as it was printed.",
    )
    assert is_nccl(text) == (text == HEADER)
