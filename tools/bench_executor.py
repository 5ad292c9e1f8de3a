"""Compare phase 2 of a tiled GEMM with the plain numpy computation: time and peak extra memory, side by side.

The op log holds 64 composite GEMMs of 32 x 2048 x 2048 in f16. A and the shared B lie in 64 slabs each, as on a machine
of 64 memory slices; the 64 results are stored to 64 regions and read back as one array. The plain computation casts
both operands to f32, multiplies, and casts the product back. Run: python tools/bench_executor.py
"""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from kernbench_core.executor import DataExecutor
from kernbench_core.oplog import Access, OpDescription, OpLog
from kernbench_core.regions import Region
from kernbench_core.store import MemoryStore
from kernbench_core.values import Array, ResultValue

SIZE, SLABS = 2048, 64
ROWS = SIZE // SLABS
SLAB_BYTES = ROWS * SIZE * 2
MAX_TIME, MAX_MEMORY = 1.5, 1.25


def slabs(base: int) -> tuple[Region, ...]:
    """Return the regions of a matrix whose slabs lie in slices of their own, 1 GiB apart."""
    return tuple(Region(base + (i << 30), SLAB_BYTES) for i in range(SLABS))


def recorded(a: Array, b: Array) -> tuple[OpLog, MemoryStore, tuple[Region, ...]]:
    """Return what phase 1 leaves of the GEMM."""
    log, store = OpLog(), MemoryStore()
    where_a, where_b, where_c = slabs(0), slabs(1 << 24), slabs(1 << 25)
    for i in range(SLABS):
        store.write("hbm", where_a[i], a[i * ROWS : (i + 1) * ROWS])
        store.write("hbm", where_b[i], b[i * ROWS : (i + 1) * ROWS])
    params = {"op": "gemm", "shape_a": (ROWS, SIZE), "shape_b": (SIZE, SIZE), "dtype_in": "f16", "dtype_out": "f16"}
    for i in range(SLABS):
        read_a = Access("hbm", (where_a[i],), store.value("hbm", where_a[i], (ROWS, SIZE), "f16"))
        read_b = Access("hbm", where_b, store.value("hbm", where_b, (SIZE, SIZE), "f16"))
        result = ResultValue((i, 0), (ROWS, SIZE), "f16")
        store.write("hbm", where_c[i], result, writer=(i, 0))
        writes = Access("hbm", (where_c[i],), result)
        described = OpDescription("gemm", "composite_gemm", params, (read_a, read_b), writes, (i, 0))
        log.append(0.0, 100.0, f"sip0.cube0.pe{i}.pe_scheduler", described)
    return log, store, where_c


def plain(a: Array, b: Array) -> Array:
    """Compute the product as a user of numpy would."""
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


def replayed(log: OpLog, store: MemoryStore, where: tuple[Region, ...]) -> Array:
    """Compute it by phase 2."""
    executor = DataExecutor(log, store)
    executor.run()
    return executor.store.read("hbm", where, (SIZE, SIZE), "f16")


def seconds(function: Callable[[], Array]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def peak(function: Callable[[], Array]) -> int:
    """Return the peak of traced memory above the start, in bytes."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    function()
    found = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return found


def main() -> int:
    """Print both ratios; return 1 when one is above its limit."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((SIZE, SIZE), np.float32).astype(np.float16) for _ in range(2))
    a.flags.writeable = b.flags.writeable = False
    plain(a, b)
    plain_s, replay_s = [], []
    for _ in range(7):
        plain_s.append(seconds(lambda: plain(a, b)))
        fresh = recorded(a, b)
        replay_s.append(seconds(lambda fresh=fresh: replayed(*fresh)))
    fresh = recorded(a, b)
    same = np.array_equal(replayed(*fresh), plain(a, b))
    fresh = recorded(a, b)
    plain_peak, replay_peak = peak(lambda: plain(a, b)), peak(lambda: replayed(*fresh))
    time_ratio, memory_ratio = median(replay_s) / median(plain_s), replay_peak / plain_peak
    print(f"plain numpy        {median(plain_s) * 1e3:8.1f} ms   peak {plain_peak / 2**20:6.1f} MiB")
    print(f"phase 2            {median(replay_s) * 1e3:8.1f} ms   peak {replay_peak / 2**20:6.1f} MiB")
    print(f"time ratio         {time_ratio:8.2f}   (at most {MAX_TIME})")
    print(f"memory ratio       {memory_ratio:8.2f}   (at most {MAX_MEMORY})")
    print(f"bytes equal        {same}")
    print(f"process peak       {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.1f} MiB")
    return int(time_ratio > MAX_TIME or memory_ratio > MAX_MEMORY)


if __name__ == "__main__":
    raise SystemExit(main())
