"""Which algorithm `auto` is where no table was measured: closed forms say what to try, short simulations decide.

Times come from whoever asks, so that nothing here simulates. Sizes are rounded to `BITS` significant bits, so that a
program with many sizes does not try each; more than `steady` bytes are judged by the line through half of that and all
of it: from there on links decide, and each byte more takes as long as the one before. All of it follows from the
machine, the call and the algorithms alone: what a cache holds only saves the simulations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from attrs import frozen

FAR: Final = 3.0
"""How many times as long as the best time so far the closed form of an algorithm is that is not tried."""

BITS: Final = 4
"""The significant bits of a size that is tried: it is at most a sixteenth off."""

LEAST_STEADY: Final = 2 << 20
"""The fewest bytes from which on a straight line is taken: every PE of a preset has several messages then."""

MOST_STEADY: Final = 8 << 20
"""The most bytes that are simulated to choose."""

IN_FLIGHT: Final = 6
"""How many times the bytes that fit on the links of all ranks a steady size is."""


class TrialTimes(Protocol):
    """What is known of algorithms on a machine; sizes are bytes as nccl-tests counts them."""

    @property
    def steady(self) -> int:
        """The size that nothing larger than is simulated, a power of two."""

    def form(self, name: str, nbytes: int) -> float | None:
        """Return the closed form of an algorithm in ns, None where it has none."""

    def time(self, name: str, nbytes: int) -> TrialTime | None:
        """Return the simulated time of an algorithm, None where it cannot be had."""


@frozen
class TriedChoice:
    """The algorithm that was chosen, None where none could be tried, and the estimates in ns of the last ones.

    `tried` are the (algorithm, size) that it took.
    """

    name: str | None
    estimates: Mapping[str, float]
    tried: tuple[tuple[str, int], ...]


def steady_bytes(world: int, bandwidth: float, latency: float) -> int:
    """Return the power of two from which on the time of a collective is a straight line over its size.

    `bandwidth` (B/ns) and `latency` (ns) are those of a link.
    """
    wanted = IN_FLIGHT * world * bandwidth * latency
    found = LEAST_STEADY
    while found < min(wanted, MOST_STEADY):
        found *= 2
    return found


def tried_sizes(nbytes: int, steady: int) -> tuple[int, ...]:
    """Return the sizes whose times tell that of `nbytes`: one near it, or the two that a long line goes through."""
    if nbytes > steady:
        return steady // 2, steady
    grain = 1 << max(0, nbytes.bit_length() - BITS)
    return (max(1, (nbytes + grain // 2) // grain * grain),)


@frozen
class TrialTime:
    """How long an algorithm took in ns, and for how many of them what was busy the longest was busy."""

    ns: float
    busy_ns: float

    def least(self, size: int, nbytes: int) -> float:
        """Return what `nbytes` take at least, where this is of `size`: what is the busiest moves them all."""
        return max(self.ns, self.busy_ns * nbytes / size)

    def most(self, size: int, nbytes: int) -> float:
        """Return what `nbytes` take at most: one part of `size` after the other."""
        return self.ns * nbytes / size


def prolonged(start: tuple[int, TrialTime], end: tuple[int, TrialTime], nbytes: int) -> float:
    """Return the time at `nbytes` on the line through two (size, time), not less steep than its end's busiest part."""
    (first, low), (last, high) = start, end
    each = max((high.ns - low.ns) / (last - first), high.busy_ns / last)
    return high.ns + each * (nbytes - last)


def choose_by_trial(names: Sequence[str], nbytes: int, times: TrialTimes) -> TriedChoice:
    """Try algorithms, those with the least closed forms first, and return the fastest, by name among equals.

    What has no form is always tried. One whose form is `FAR` times the best time so far is left out. Of a large size,
    what takes longer at least than another one at most, by the smaller of two tried sizes, is not tried at the larger.
    """
    first, *more = tried_sizes(nbytes, times.steady)
    forms = {name: times.form(name, first) for name in names}
    tried: list[tuple[str, int]] = []
    began: dict[str, TrialTime] = {}
    for name in sorted(names, key=lambda name: (forms[name] or 0.0, name)):
        form = forms[name]
        if form is not None and began and form > FAR * min(time.ns for time in began.values()):
            continue
        tried.append((name, first))
        time = times.time(name, first)
        if time is not None:
            began[name] = time
    found = {name: time.ns for name, time in began.items()}
    for last in more:
        most = min((time.most(first, nbytes) for time in began.values()), default=0.0)
        near = [name for name, time in began.items() if time.least(first, nbytes) <= most]
        tried += [(name, last) for name in near]
        ends = {name: end for name in near if (end := times.time(name, last)) is not None}
        found = {name: prolonged((first, began[name]), (last, end), nbytes) for name, end in ends.items()}
    best = min(found, key=lambda name: (found[name], name), default=None)
    return TriedChoice(best, found, tuple(tried))


def choose_by_form(names: Sequence[str], nbytes: int, times: TrialTimes) -> str | None:
    """Return the algorithm with the least closed form, by name among equals; None where none has one."""
    forms = {name: form for name in names if (form := times.form(name, nbytes)) is not None}
    return min(forms, key=lambda name: (forms[name], name), default=None)
