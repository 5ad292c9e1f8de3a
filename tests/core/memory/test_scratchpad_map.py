"""The map says what scratchpads held, when, for which line, and draws it in the given width."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.memory.scratchpad_map import TcmMap, TcmUse, _most, lines
from tests.core.kernel_rig import Rig

X = np.arange(1024, dtype=np.float32).reshape(32, 32)


def recorded(kernel: Any, pes: int = 1) -> tuple[TcmMap, Rig]:
    """Run a kernel with a recorder."""
    rig = Rig(pes, scratchpad_map=True)
    rig.run(kernel, rig.tensor(X))
    return rig.recorder.result(rig.env.now), rig


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


def test_the_page_fits_its_width_and_names_the_peak() -> None:
    """One chart, one table with alike blocks together, one line for each other PE; all within the width."""

    def kernel(x: Any, tl: Any) -> None:
        tiles = [tl.load(x, shape=(16, 16)) for _ in range(2 + tl.program_id(0))]
        tl.store(x, tiles[0])

    found, _ = recorded(kernel, 3)
    text = lines(found, 80)
    assert text[0] == "TCM of sip0.cube0.pe2: at most 4 KiB of 64 KiB (6.2%), first at 303 ns"
    assert max(map(len, text)) <= 80
    assert [row for row in text if row.startswith("4 x tl.load f32 [16, 16]")]
    assert text[-2:] == ["sip0.cube0.pe1  3 KiB at 202 ns", "sip0.cube0.pe0  2 KiB at 101 ns"]
    assert found.to_json()[0]["peak_bytes"] == 4096
    assert "steps" not in found.to_json()[1]


def test_many_other_pes_are_one_line() -> None:
    """The most, the mean and the least of them."""
    uses = tuple(TcmUse(f"pe{n}", 1 << 20, 1024 * (20 - n), float(n), (), ((0.0, 0),)) for n in range(12))
    assert lines(TcmMap(uses, 100.0))[-1] == (
        "the 11 other PEs: at most 19 KiB (pe1), on average 14 KiB, at least 9 KiB (pe11)"
    )
    assert lines(TcmMap((), 0.0)) == ["TCM: no kernel ran"]


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), min_size=1, max_size=12),
    st.integers(1, 20),
)
def test_columns_show_the_most_of_their_stretch(steps: list[tuple[int, int]], columns: int) -> None:
    """Compared with looking at every time of a fine grid."""
    steps.sort(key=lambda step: step[0])
    most = _most([(float(t), used) for t, used in steps], 100.0, columns)
    want = [0] * columns
    before = 0
    for (now, used), after in zip(steps, [*(t for t, _ in steps[1:]), 100], strict=True):
        first = min(int(now / (100.0 / columns)), columns - 1)
        want[first] = max(want[first], before, used)
        last = min(int(after / (100.0 / columns)), columns - 1)
        for column in range(first, last + 1):
            want[column] = max(want[column], used)
        before = used
    assert most == want


def test_scratchpads_that_held_nothing_are_one_line() -> None:
    """A kernel of composites alone holds no tensor; what they are staged in is not what the map counts."""
    nothing = TcmUse("sip0.cube0.pe0", 1 << 16, 0, 0.0, (), ())
    assert lines(TcmMap((nothing, nothing), 100.0)) == [
        "TCM: no kernel held a tensor in a scratchpad (tiles of composites are staged in room of their own)"
    ]
