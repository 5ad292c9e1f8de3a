"""What verification says of a run: where results differ, how many of them, and which op made the worst."""

from __future__ import annotations

import numpy as np

from kernbench_core.compute.executor import DataExecutor, Expected
from kernbench_core.oplog.description import Access
from kernbench_core.oplog.log import OpLog
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from tests.core.compute.recorder import Recorder, host


def test_verify_says_where_how_many_and_who() -> None:
    """A difference is located, counted and traced to its op; NaN equals NaN; a right tensor passes."""
    record = Recorder()
    over, under = host(np.array([0, -1, 0, 2], np.float32)), host(np.array([1, 0, 0, 2], np.float32))
    made = record.op("div", [over, under], (4,), "f32")
    record.store.write("hbm", 0, np.zeros(8, np.float32))
    record.store.write("hbm", 16, made)
    executor = record.executor()
    right = np.array([0, 0, 0, 0, 0, -np.inf, np.nan, 1], np.float32)
    good = executor.verify({"y": (("hbm", 0), right)})
    assert good and (good.checked, good.failures) == (1, ())
    wrong = right.copy()
    wrong[[2, 7]] = [1e-3, 4]
    bad = executor.verify({"y": Expected(Access("hbm", (Region(0, 32),)), wrong), "z": (("hbm", 512), right)})
    assert not bad and bad.max_abs_error == 3.0
    assert bad.failures == (
        "y must equal what is expected within rtol=1e-05, atol=1e-05, but 2 of 8 elements differ: 2, 7; the worst is "
        "[7]: got 1.0, expected 4.0. It was made by div (op 0 of PE 0, sip0.cube0.pe0.unit, 1.000 ns).",
        "z must be there to be compared: A read of hbm 0x200..0x220 must find memory that was written, not 32 "
        "unwritten bytes from 0x200 to 0x220; store to them first.",
    )
    assert executor.verify({"y": (("hbm", 0), wrong, 0.0, 5.0)}).ok
    one = executor.verify({"y": (("hbm", 0), np.where(np.arange(8) == 0, 1, right).astype(np.float32))})
    assert one.failures[0].endswith("got 0.0, expected 1.0. No op made it: it was written by the host.")


def test_integers_are_compared_exactly() -> None:
    """A difference of one in an integer tensor fails."""
    store = MemoryStore()
    store.write("hbm", 0, np.array([1, 2**31 - 1], np.int32))
    found = DataExecutor(OpLog(), store).verify({"n": (("hbm", 0), np.array([1, 2**31 - 2], np.int32))})
    assert found.failures == (
        "n must equal what is expected exactly, but 1 of 2 elements differ; the worst is [1]: got 2147483647, "
        "expected 2147483646. No op made it: it was written by the host.",
    )
