"""The queue of events, in the form that runs and in Python: in the order that sorting gives."""

from __future__ import annotations

import gc
import importlib.util
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.events import queue as running
from kernbench_core.events.faults import IntoThePast, ScheduledTwice

SOURCE = Path(__file__).parents[3] / "kernbench_core/events/queue.py"


def from_source() -> ModuleType:
    """Return the queue as queue.py has it, whichever form runs."""
    spec = importlib.util.spec_from_file_location("queue_of_python", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FORMS = {"running": running, "source": from_source()}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
entries = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.integers(-1, 1), st.integers(0, 2**60)),
    max_size=60,
    unique=True,
)


class Happening:
    """An event: it says that it has happened, and may schedule others then."""

    _ok = True

    def __init__(self, name: Any, then: Callable[[Any], None]) -> None:
        self.name = name
        self.callbacks: Any = [then]


def scheduled(form: Any, name: Any, then: Callable[[Any], None]) -> Any:
    """Return a message that does the same."""

    class Message(form.Scheduled):  # type: ignore[misc]
        _ok = True

    made = Message()
    made.name = name
    made.callbacks = (then,)
    return made


@forms
@given(entries, entries, st.booleans())
def test_events_happen_as_sorting_says(
    form: Any, first: list[tuple[float, int, int]], later: list[tuple[float, int, int]], messages: bool
) -> None:
    """By time, priority, key; what an event schedules for its own time, or later, comes in its turn."""
    queue, happened = form.EventQueue(), []
    left = [entry for entry in later if entry not in first]

    def then(event: Any) -> None:
        happened.append(event.name)
        while left and left[-1] > event.name:
            queue.push(*left[-1], make(left.pop()))

    def make(entry: tuple[float, int, int]) -> Any:
        return scheduled(form, entry, then) if messages else Happening(entry, then)

    for entry in first:
        queue.push(*entry, make(entry))
    assert len(queue) == len(first) and sorted(entry[:3] for entry in queue) == sorted(first)
    expected: list[tuple[float, int, int]] = []
    pending, rest = list(first), list(left)
    while pending:
        now = min(pending)
        pending.remove(now)
        expected.append(now)
        while rest and rest[-1] > now:
            pending.append(rest.pop())
    while queue:
        queue.run(7, 100.0)
    assert happened == expected and queue.happened == len(expected)
    assert queue.now == (expected[-1][0] if expected else 0.0)


@forms
def test_it_stops_at_its_limits(form: Any) -> None:
    """After so many events, and before one that is later than it may be, which stays."""
    queue, happened = form.EventQueue(), []
    for time in range(5):
        queue.push(float(time), 0, time, Happening(time, lambda event: happened.append(event.name)))
    queue.run(2, 10.0)
    assert happened == [0, 1] and len(queue) == 3 and queue.happened == 2
    queue.run(100, 3.0)
    assert happened == [0, 1, 2, 3] and len(queue) == 1 and queue[0][:3] == (4.0, 0, 4) and queue.happened == 4
    assert [entry[2] for entry in queue.drain()] == [4] and not queue


@forms
def test_what_cannot_happen_is_raised(form: Any) -> None:
    """A time that is over, and a second time of the same event; what an event raises is raised as it was."""
    queue = form.EventQueue()
    queue.push(5.0, 0, 0, Happening("first", lambda _: queue.push(4.0, 0, 1, late)))
    late = Happening("late", print)
    with pytest.raises(IntoThePast) as past:
        queue.run(10, 10.0)
    assert past.value.event is late and past.value.time == 4.0 and queue.now == 5.0 and len(queue) == 1
    assert queue.happened == 1
    queue.clear()
    for make in (Happening, lambda name, then: scheduled(form, name, then)):
        twice = make("twice", lambda _: None)
        queue.push(6.0, 0, 0, twice)
        queue.push(6.0, 0, 1, twice)
        with pytest.raises(ScheduledTwice) as again:
            queue.run(10, 10.0)
        assert again.value.event is twice
    error = TypeError("of a model")

    def fail(_: Any) -> None:
        raise error

    queue.push(7.0, 0, 0, Happening("raises", fail))
    with pytest.raises(TypeError) as raised:
        queue.run(10, 10.0)
    assert raised.value is error
    failed = Happening("failed", lambda _: None)
    failed._ok, failed._value = False, KeyError("of a process")  # type: ignore[attr-defined]
    queue.push(8.0, 0, 0, failed)
    with pytest.raises(KeyError) as unhandled:
        queue.run(10, 10.0)
    assert unhandled.value is failed._value  # type: ignore[attr-defined]
    assert queue.happened == 1 + 2 * 2 + 1 + 1  # what is raised is raised inside an event


@forms
def test_a_message_has_one_callback(form: Any) -> None:
    """In a tuple: it is unpacked, which is quicker than to go through it."""
    queue = form.EventQueue()
    message = scheduled(form, "a message", lambda _: None)
    message.callbacks *= 2
    queue.push(1.0, -1, 0, message)
    with pytest.raises(ValueError, match="too many values to unpack"):
        queue.run(10, 10.0)


@forms
def test_what_it_holds_is_collected_with_it(form: Any) -> None:
    """Events that lead back to their queue keep neither alive, and what has happened is let go."""
    queue = form.EventQueue()
    kept = Happening("kept", lambda _: None)
    kept.queue = queue  # type: ignore[attr-defined]
    gone = Happening("gone", lambda _: None)
    queue.push(1.0, 0, 0, gone)
    queue.push(2.0, 0, 1, kept)
    seen = weakref.ref(kept), weakref.ref(gone)
    queue.run(1, 10.0)
    del gone
    assert seen[1]() is None
    del queue, kept
    gc.collect()
    assert seen[0]() is None


@forms
def test_a_thousand_that_wait_happen_in_order(form: Any) -> None:
    """What the queue holds moves to other memory as it grows: nothing is lost, and the order is kept."""
    queue, happened = form.EventQueue(), []
    times = [float(number * 7919 % 1009) for number in range(1009)]
    for key, time in enumerate(times):
        queue.push(time, 0, key, Happening(time, lambda event: happened.append(event.name)))
    assert sorted(entry[0] for entry in queue) == sorted(times)
    queue.run(len(times), 2000.0)
    assert happened == sorted(times)


@forms
def test_a_place_is_found_by_identity(form: Any) -> None:
    """Behind the object itself and at even places only; an equal one is not found, nor one among what is found."""
    one, two, three = (object() for _ in range(3))
    pairs = (one, three, two, "two")
    assert [form.place_of(pairs, (two, one, three), hop) for hop in range(3)] == [3, 1, -1]
    assert [form.place_of(found, (one,), hop) for found, hop in (((), 0), (pairs, 1), (pairs, -1))] == [-1, -1, -1]
    name = "".join(("a", "b"))
    assert form.place_of(("".join(("a", "b")), one), (name,), 0) == -1 and form.place_of((name, one), (name,), 0) == 1
