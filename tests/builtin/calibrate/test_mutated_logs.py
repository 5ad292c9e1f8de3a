"""Logs with random faults: refused at their place, or read as what they say; no other error, and no silent factor."""

from __future__ import annotations

import csv
from collections.abc import Callable
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.calibrate import open_logs
from kernbench_core.calibration import LogOptions, LogRow
from kernbench_core.errors import ConfigError
from kernbench_core.plugins import Plugins

SIZES = [1 << at for at in range(16, 27, 2)]


def nccl() -> str:
    """Return a run of nccl-tests over eight ranks, whose bandwidths have three digits and more."""

    def half(size: int, us: float) -> str:
        return f"{us:8.2f} {size / us / 1e3:7.2f} {1.75 * size / us / 1e3:7.2f}      0"

    def us(size: int) -> float:
        return 29 + size / 2e5

    return "\n".join([
        "# all_reduce_perf -b 64K -e 64M -f 4 -g 8", "# Using devices",
        *(f"#  Rank  {at} Group  0 Pid  1728 on node device  {at} [0x0f] NVIDIA A100" for at in range(8)),
        "#                                     out-of-place                       in-place",
        "#       size         count      type   redop    root" + "     time   algbw   busbw #wrong" * 2,
        "#        (B)    (elements)                          " + "     (us)  (GB/s)  (GB/s)       " * 2,
        *(f"{size:12} {size // 4:12}     float     sum      -1 {half(size, us(size) + 1)} {half(size, us(size))}"
          for size in SIZES),
        "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 135.455", "#", "",
    ])  # fmt: skip


COPIES = (
    "# of a Monday\nkind, bytes, time\nh2d, 64 B, 2.4 us\nh2d, 64 KiB, 4.1 us\nd2h, 1M, 0.0309 ms\nh2d, 1e6, 31 us\n"
)
PRODUCTS = "dtype,M,N,K,who,time_us\nf16,64,128,256,me,2.5\nf32,1024,1024,512,you,1e2\nint8,8,8,8,,9\n"
_NOISE = "0123456789.,-+eE \t#\"'()KMGiBusnm\x00\x1b\r\n\u00b2\u0663é%"
_UNITS = {"ps": Decimal("1e-3"), "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "B": 1} | {
    unit: number**power
    for power, letter in enumerate("KMGT", 1)
    for unit, number in ((letter, 1024), (f"{letter}iB", 1024), (f"{letter}B", 1000), (f"{letter.lower()}B", 1000))
}


def mutated(text: str, random: Random) -> str:
    """Return a text with up to three faults: of characters, words or lines."""
    for _ in range(random.randint(1, 3)):
        lines = text.split("\n")
        at, place = random.randrange(len(lines)), random.randrange(len(text) + 1)
        words = lines[at].split(" ")
        kind = random.randrange(9)
        if kind == 0:
            text = text[:place] + random.choice(_NOISE) + text[place:]
        elif kind == 1:
            text = text[:place] + text[place + random.randint(1, 4) :]
        elif kind == 2:
            text = text[:place] + random.choice(_NOISE) + text[place + 1 :]
        elif kind == 3:
            text = text[:place]
        elif kind == 4:
            text = text.replace("us", random.choice(["ms", "ns", "s", "min"]), random.choice([1, -1]))
        else:
            change: Callable[[list[str], int], None] = random.choice([_drop, _double, _swap])
            change(words if kind < 7 else lines, at)
            lines = lines if kind >= 7 else [*lines[:at], " ".join(words), *lines[at + 1 :]]
            text = "\n".join(lines)
    return text


def _drop(items: list[str], at: int) -> None:
    del items[at % len(items)]


def _double(items: list[str], at: int) -> None:
    items.insert(at, items[at % len(items)])


def _swap(items: list[str], at: int) -> None:
    one, other = at % len(items), (7 * at + 3) % len(items)
    items[one], items[other] = items[other], items[one]


def rows_of(plugins: Plugins, folder: pytest.TempPathFactory, text: str, form: str | None) -> list[LogRow]:
    """Return the rows of a log; none where it is refused, with its name before every fault."""
    log = folder.getbasetemp() / "mutated.log"
    log.write_bytes(text.encode())
    try:
        return open_logs([log], plugins, LogOptions(), form).rows
    except ConfigError as error:
        assert error.problems and all(problem.startswith(f"{log}:") for problem in error.problems)
        assert all(problem.isprintable() for problem in error.problems)
        return []


@given(st.randoms(use_true_random=False), st.sampled_from([None, "nccl"]))
def test_a_table_with_faults_is_refused_or_read_as_it_was(
    plugins: Plugins, tmp_path_factory: pytest.TempPathFactory, random: Random, form: str | None
) -> None:
    """Its lines say everything twice: a row that is left is one of those that were there, to the digits printed."""
    right = {row.label: row.ns for row in rows_of(plugins, tmp_path_factory, nccl(), form)}
    assert len(right) == 2 * len(SIZES)
    for row in rows_of(plugins, tmp_path_factory, mutated(nccl(), random), form):
        assert row.ns == pytest.approx(right[row.label], rel=0.05)


@given(st.randoms(use_true_random=False), st.sampled_from([(COPIES, "copies"), (PRODUCTS, "gemm")]), st.booleans())
def test_a_csv_with_faults_is_refused_or_read_as_it_stands(
    plugins: Plugins, tmp_path_factory: pytest.TempPathFactory, random: Random, log: tuple[str, str], named: bool
) -> None:
    """By a reader of a few lines, in decimals."""
    text = mutated(log[0], random)
    for row in rows_of(plugins, tmp_path_factory, text, log[1] if named else None):
        lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
        header = [cell.strip().lower() for cell in next(csv.reader(lines[:1], skipinitialspace=True))]
        line = text.splitlines()[int(row.place.rpartition(":")[2]) - 1]
        cells = dict(
            zip(header, (cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))), strict=True)
        )
        (time,) = (name for name in header if name.startswith("time"))
        assert row.ns == pytest.approx(float(exact(cells[time], time.removeprefix("time").strip("_"))), rel=1e-9)
        sizes = [exact(cells[name]) for name in ("m", "n", "k", "bytes") if name in header]
        found = row.case
        assert sizes == ([found.m, found.n, found.k] if log[1] == "gemm" else [found.nbytes])  # type: ignore[attr-defined]


def exact(cell: str, unit: str = "") -> Decimal:
    """Return a number with its unit."""
    digits = cell.rstrip("npmusBkKMGiT ")
    return Decimal(digits) * _UNITS[cell[len(digits) :].strip() or unit or "B"]
