"""Which algorithms are not shown to differ: by the spread of their times on machines that differ by a thousandth."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from kernbench_core.spread import TimeSpread


@frozen
class Contest:
    """What algorithms came to on these machines, by their names: the best one first, by the median."""

    spreads: Mapping[str, TimeSpread]

    @property
    def equals(self) -> tuple[str, ...]:
        """The best, and those that are not shown to differ from it."""
        best = next(iter(self.spreads.values()))
        return tuple(name for name, spread in self.spreads.items() if not spread.differs_from(best))

    @property
    def sentence(self) -> str:
        """Say whether the best one is shown to be better than the others."""
        (best, first), *others = self.spreads.items()
        if not others:
            return f"{best} {first}"
        name, other = others[max(0, len(self.equals) - 2)]
        return f"{best} against {name}: {first.compared_with(other)}"


def contest(times: Mapping[str, float], spread_of: Callable[[str], TimeSpread]) -> Contest:
    """Have algorithms run again in the order of their single times (ns), until one is beyond the best and its spread.

    The others took longer: to run the leaders alone is what it costs.
    """
    found: dict[str, TimeSpread] = {}
    for name in sorted(times, key=lambda name: (times[name], name)):
        spread = found[name] = spread_of(name)
        best = min(found.values(), key=lambda each: each.median_ns)
        if spread.differs_from(best):
            break
    return Contest(dict(sorted(found.items(), key=lambda item: (item[1].median_ns, item[0]))))
