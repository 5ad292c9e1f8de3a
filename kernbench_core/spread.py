"""How much a time says, by machines that are the same but for a thousandth, and who is shown to be faster so."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from kernbench_core.units import format_time

NOT_KNOWN: Final = "no spread is known: a small difference may be chance; --shake measures it"
"""What is said where times are compared of which nobody measured how much they say."""


@attrs.frozen
class TimeSpread:
    """What a time (ns) came to in `runs` runs on machines that are the same within a tolerance.

    >>> before, after = TimeSpread.of([100.0, 104.0, 102.0]), TimeSpread.of([101.0, 103.0, 105.0])
    >>> before.median_ns, before.width_ns, before.differs_from(after)
    (102.0, 4.0, False)
    """

    median_ns: float
    low_ns: float
    high_ns: float
    runs: int

    @staticmethod
    def of(times_ns: Iterable[float]) -> TimeSpread:
        """Sum up times, of which there is one at least."""
        times = sorted(times_ns)
        return TimeSpread(statistics.median(times), times[0], times[-1], len(times))

    @staticmethod
    def of_json(found: Any) -> TimeSpread | None:
        """Read what `to_json` gave; None for anything else."""
        names = [field.name for field in attrs.fields(TimeSpread)]
        if not isinstance(found, Mapping) or not all(type(found.get(name)) in (int, float) for name in names):
            return None
        return TimeSpread(**{name: found[name] for name in names})

    @property
    def width_ns(self) -> float:
        """From the least to the most, in ns: so far apart do chance alone brings single runs."""
        return self.high_ns - self.low_ns

    def differs_from(self, other: TimeSpread) -> bool:
        """Say whether two medians are further apart than the mean of both spreads.

        Two samples of 8 of one machine are so in less than 1 of 100 pairs, and a difference of twice the spread is
        found (tools/shake_gates.py).
        """
        return abs(self.median_ns - other.median_ns) > (self.width_ns + other.width_ns) / 2

    def compared_with(self, later: TimeSpread) -> str:
        """Say whether a later one is another one, with both medians."""
        mean = format_time((self.width_ns + later.width_ns) / 2)
        medians = f"median {format_time(self.median_ns)} → {format_time(later.median_ns)}"
        if self.differs_from(later):
            return f"{medians}, beyond the spread of {mean}"
        return f"{medians}, within the spread of {mean}: no difference shown"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return attrs.asdict(self)

    def __str__(self) -> str:
        share = f", {self.width_ns / self.median_ns:.2%}" if self.median_ns else ""
        return f"{format_time(self.median_ns)}, spread {format_time(self.width_ns)}{share}"


@attrs.frozen
class Contest:
    """What candidates came to on these machines, by their names: the best one first, by the median."""

    spreads: Mapping[str, TimeSpread]

    @property
    def equals(self) -> tuple[str, ...]:
        """The best, and those that are not shown to differ from it."""
        best = next(iter(self.spreads.values()))
        return tuple(name for name, spread in self.spreads.items() if not spread.differs_from(best))

    @property
    def against(self) -> str:
        """Say whether the best one is shown to be better than the others."""
        (_, first), *others = self.spreads.items()
        if not others:
            return str(first)
        name, other = others[max(0, len(self.equals) - 2)]
        return f"against {name}: {first.compared_with(other)}"


def contest(times: Mapping[str, float], spread_of: Callable[[str], TimeSpread]) -> Contest:
    """Have candidates run again by their single times (ns) until one is beyond the best: the others took longer."""
    found: dict[str, TimeSpread] = {}
    for name in sorted(times, key=lambda name: (times[name], name)):
        spread = found[name] = spread_of(name)
        if spread.differs_from(min(found.values(), key=lambda each: each.median_ns)):
            break
    return Contest(dict(sorted(found.items(), key=lambda item: (item[1].median_ns, item[0]))))
