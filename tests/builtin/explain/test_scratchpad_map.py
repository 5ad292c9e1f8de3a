"""The map says what scratchpads held, when, for which line, and for which line."""

from __future__ import annotations

import itertools
from typing import Any

from tests.builtin.explain.recorded_scratchpads import X, recorded
from tests.core.kernel_rig import Rig


def test_blocks_are_held_from_birth_to_their_last_use() -> None:
    """Two tiles and their sum are there at the peak; each with its line, offset and times; freed ones are not."""

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x, shape=(32, 32))
        a = tl.load(x, shape=(16, 16))
        b = tl.load(x, shape=(8, 8), wait=False)
        c = a + a
        tl.free(a)
        tl.wait(b)
        del b
        tl.store(x, c)
        tl.load(x, shape=(32, 32))

    found, _ = recorded(kernel)
    (use,) = found.uses
    line = kernel.__code__.co_firstlineno
    assert (use.pe, use.size, use.peak_bytes, use.peak_ns) == ("sip0.cube0.pe0", 1 << 16, 1024 + 4096, 404.0)
    held = [(h.op, h.shape, h.dtype, h.line, h.nbytes, h.from_ns, h.to_ns) for h in use.at_peak]
    # each load takes 101 ns, the add 11 ns beside the second small load, the store waits for that one: 303 + 101 ns
    assert sorted(held) == [
        ("tl.add", (16, 16), "f32", f"{__file__}:{line + 4}", 1024, 203.0, 505.0),
        ("tl.load", (32, 32), "f32", f"{__file__}:{line + 9}", 4096, 404.0, 505.0),
    ]
    assert use.steps[-1] == (505.0, 0)
    for one, two in itertools.combinations(use.at_peak, 2):
        assert one.offset + one.nbytes <= two.offset or two.offset + two.nbytes <= one.offset


def test_recording_changes_no_log() -> None:
    """The same ops at the same times, and every block is given back as before."""

    def kernel(x: Any, tl: Any) -> None:
        for _ in range(3):
            a = tl.load(x, shape=(16, 16))
            tl.store(x, a + 1.0)

    plain = Rig(2)
    plain.run(kernel, plain.tensor(X))
    _, rig = recorded(kernel, 2)
    assert rig.log.sha256() == plain.log.sha256()
    assert rig.used_tcm() == plain.used_tcm() == 0
