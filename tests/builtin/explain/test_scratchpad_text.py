"""What scratchpads held, in the given width of a terminal."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.explain.scratchpad_map import TcmMap, TcmUse
from kernbench_builtin.explain.scratchpad_text import _most, lines
from tests.builtin.explain.recorded_scratchpads import recorded


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
