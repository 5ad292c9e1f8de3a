"""When a message that came is taken: as many bytes behind those that were sent as the window has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.algorithms._tiles import beats_due


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(0, 40))
def test_each_is_due_when_what_follows_it_fills_the_window(sizes: list[int], room: int) -> None:
    """Tried one by one: the most that fit behind it, but one at least; past the end when all do."""
    for message, due in enumerate(beats_due(sizes, room)):
        behind = max(
            [1, *(count for count in range(len(sizes) - message) if sum(sizes[message + 1 :][:count]) <= room)]
        )
        assert due == (message + behind if message + behind < len(sizes) - 1 else len(sizes))


@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 60))
def test_of_alike_messages_it_is_their_number(size: int, count: int, room: int) -> None:
    """As a window of so many messages has it."""
    lag = max(1, room // size)
    assert beats_due([size] * count, room) == [
        message + lag if message + lag < count - 1 else count for message in range(count)
    ]
