"""Measure what a million mixed op records cost: memory of the process, and time per record on the logging path.

The mix is that of a composite GEMM run: tile-token stages, loads, stores, GEMMs and math ops, each with the parameters
that real commands give. Values are shared, so they do not count.

    python tools/bench_oplog.py [--json] [--quick]
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_engine import Result, command

from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.oplog.logger import OpLogger
from kernbench_core.oplog.parameters import OF_READS
from kernbench_core.values.region import Region
from kernbench_core.values.value import LoadedValue, ResultValue

RECORDS, PES, MAX_MB, MAX_GROWTH = 1_000_000, 64, 80, 1.5
A, B, C = (LoadedValue(shape, "f16") for shape in ((32, 128), (128, 128), (32, 128)))
OUT = ResultValue((0, 0), (32, 128), "f16")


class Message:
    """Stand in for a message: it describes itself."""

    __slots__ = ("captured_at_start", "described")

    def __init__(self, described: OpDescription, early: bool) -> None:
        self.described = described
        self.captured_at_start = early

    def describe(self) -> OpDescription:
        """Return the description."""
        return self.described


def stage(i: int, pe: int) -> OpDescription:
    """Return a tile stage, timing only."""
    params = {
        "stage_type": "DMA_READ",
        "operand": "a",
        "row0": i % 512,
        "rows": 32,
        "col0": i % 7 * 128,
        "cols": 128,
        "nbytes": 8192,
        "m_tile": i % 9,
        "n_tile": i % 11,
        "k_tile": i % 13,
    }
    return OpDescription("memory", "TileToken/DMA_READ", params, stage_of=(pe, i))


def dma(i: int, pe: int) -> OpDescription:
    """Return a load of a strided tile."""
    hbm, tcm = Region((pe << 36) + i * 256, 256, 32, 2048), Region((pe << 37) + i % 99 * 8192, 8192)
    params = {
        "src_addr": hbm.base,
        "src_space": "hbm",
        "dst_addr": tcm.base,
        "dst_space": "tcm",
        "nbytes": 8192,
        "shape": (32, 128),
        "dtype": "f16",
        "handle_id": f"pe{pe}.{i}",
    }
    return OpDescription("memory", "dma_read", params, (Access("hbm", (hbm,), A),), Access("tcm", (tcm,), A), (pe, i))


def gemm(i: int, pe: int) -> OpDescription:
    """Return a GEMM of one tile."""
    at = [Region((pe << 37) + (i + n) % 99 * 8192, size) for n, size in enumerate((8192, 32768, 8192))]
    params = {
        "shape_a": (32, 128),
        "shape_b": (128, 128),
        "shape_out": (32, 128),
        "dtype_in": "f16",
        "dtype_acc": "f32",
        "dtype_out": "f16",
        "transpose_a": False,
        "transpose_b": False,
        "layout_a": "row_major",
        "layout_b": "row_major",
        "layout_out": "row_major",
        "m": 32,
        "k": 128,
        "n": 128,
        "src_a_addr": at[0].base,
        "src_b_addr": at[1].base,
        "src_a_space": "tcm",
        "src_b_space": "tcm",
        "dst_addr": at[2].base,
        "dst_space": "tcm",
        "addr_space": "tcm",
        "accumulate": False,
    }
    reads = (Access("tcm", (at[0],), A), Access("tcm", (at[1],), B))
    return OpDescription("gemm", "gemm_f16", params, reads, Access("tcm", (at[2],), OUT), (pe, i))


def math(i: int, pe: int) -> OpDescription:
    """Return an elementwise op of two operands."""
    at = [Region((pe << 37) + (i + n) % 99 * 8192, 8192) for n in range(3)]
    params = {
        "op": "add",
        "input_addrs": [at[0].base, at[1].base],
        "input_shapes": [(32, 128), (32, 128)],
        "input_spaces": ["tcm", "tcm"],
        "input_dtypes": ["f16", "f16"],
        "in_dtypes": ["f16", "f16"],
        "input_snapshots": OF_READS,
        "dst_addr": at[2].base,
        "dst_space": "tcm",
        "shape_out": (32, 128),
        "dtype": "f16",
        "axis": None,
        "keepdims": False,
        "addr_space": "tcm",
        "mask": False,
    }
    reads = (Access("tcm", (at[0],), A), Access("tcm", (at[1],), C))
    return OpDescription("math", "add", params, reads, Access("tcm", (at[2],), OUT), (pe, i))


def mixed(first: int, count: int) -> Iterator[tuple[str, Message]]:
    """Yield messages with the component that serves them: half stages, the rest dealt evenly."""
    makers = (stage, dma, stage, gemm, stage, math)
    for i in range(first, first + count):
        pe = i % PES
        make = makers[i // PES % len(makers)]
        yield f"sip0.cube0.pe{pe}.{make.__name__}", Message(make(i, pe), make is stage)


def resident() -> int:
    """Return the resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def memory_and_time(quick: bool) -> Iterator[Result]:
    """Log the records and see what the process grew by and how long the logger took."""
    records = RECORDS // 50 if quick else RECORDS
    warm = OpLogger(OpLog())
    for component, message in mixed(0, 2000):
        warm.record_start(0.0, component, message)
        warm.record_end(0.0, component, message)
    gc.collect()
    before = resident()
    log = OpLog()
    logger = OpLogger(log)
    spent = 0.0
    for first in range(0, records, 1000):
        messages = list(mixed(first, min(1000, records - first)))
        began = time.process_time()
        for at, (component, message) in enumerate(messages, first):
            logger.record_start(at / 4, component, message)
            logger.record_end(at / 4 + 8, component, message)
        spent += time.process_time() - began
    del messages
    gc.collect()
    grown = (resident() - before) / 1e6
    began = time.process_time()
    log.sha256()
    hashing = time.process_time() - began
    yield Result(f"memory of {records:,} op records", grown, "MB", None if quick else MAX_MB)
    yield Result("an op record, in start and end hook", spent / records * 1e6, "us")
    yield Result("the hash of them all", hashing, "s")


def memory_of_a_spilled_log(quick: bool) -> Iterator[Result]:
    """Log with a low limit and compare the peak of ten times the records with that of the records."""
    records = RECORDS // (50 if quick else 10)
    peaks = []
    for count in (records, 10 * records):
        asked = [sys.executable, __file__, "--spilled-peak", str(count), str(records // 2)]
        peaks.append(float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout))
    yield Result(f"peak of {records:,} records and their hash, spilled", peaks[0], "MB")
    yield Result("peak of ten times the records", peaks[1] / peaks[0], "times", None if quick else MAX_GROWTH)


def peak() -> int:
    """Return the most KiB that this process has had resident."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def spilled_peak(records: int, limit: int) -> float:
    """Return by how many MB logging and hashing raise the peak memory of this process."""
    log = OpLog(limit, spill_values=True)
    logger = OpLogger(log)
    before = peak()
    for first in range(0, records, 1000):
        for at, (component, message) in enumerate(mixed(first, 1000), first):
            logger.record_start(at / 4, component, message)
            logger.record_end(at / 4 + 8, component, message)
    log.sha256()
    return (peak() - before) / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--spilled-peak"]:
        print(spilled_peak(int(sys.argv[2]), int(sys.argv[3])))
    else:
        sys.exit(command((memory_and_time, memory_of_a_spilled_log), __doc__))
