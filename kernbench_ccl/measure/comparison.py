"""The table of `--algo all`: the times of several algorithms side by side, or one below the other.

With `--wide`, and in a terminal where they do not fit beside each other, each has a line of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from attrs import frozen

from kernbench_ccl.measure.table import MORE, Measured, SweepRow, TableLayout, fitted, tightened
from kernbench_core.units import format_bytes

_NONE: Mapping[str, str] = MappingProxyType({})
_TIME = 9


@frozen
class Comparison:
    """The times of several algorithms side by side; `names` are theirs, as they head the columns."""

    names: tuple[str, ...]

    def fits(self, width: int | None) -> bool:
        """Whether its lines are as wide as a terminal at most; None is no terminal."""
        return width is None or len(self.header()[-1]) <= width

    def header(self) -> list[str]:
        """Return the lines above the rows."""
        heads = "".join(name.rjust(self._wide(name) + 2) for name in self.names)
        units = "".join("(us)".rjust(self._wide(name) + 2) for name in self.names)
        return [f"#{'size':>11}{heads}", f"#{'(B)':>11}{units}"]

    def line(self, size: int, times: Mapping[str, Measured], failed: Mapping[str, str] = _NONE) -> str:
        """Return one size: the time of each algorithm, the best marked with '*', '!' where it is faulty.

        `failed` has a word for each whose run ended with an error.
        """
        least = min(sound(times).values(), default=0.0)
        cells = []
        for name in self.names:
            found = times.get(name)
            text = f"{failed.get(name, '-')} " if found is None else _marked(found, least)
            cells.append(text.rjust(self._wide(name) + 2))
        return f"{size:>12}{''.join(cells)}".rstrip()

    def _wide(self, name: str) -> int:
        return max(10, len(name))


@frozen
class WideComparison:
    """A line for each algorithm of a size, with what `--wide` adds behind its time.

    `more` is None without `--wide`, for a terminal that is too narrow for the algorithms beside each other.
    """

    names: tuple[str, ...]
    digits: int
    gap: int
    more: TableLayout | None

    @classmethod
    def of(cls, names: Sequence[str], width: int | None, largest: int, wide: bool = True) -> WideComparison:
        """Choose the columns for a terminal of `width` (None: no terminal), `largest` being the largest size."""
        plain = cls(tuple(names), 12, 2, TableLayout(MORE) if wide else None)
        if not wide or width is None or len(plain.header()[0]) <= width:
            return plain
        digits = max(len(str(largest)), len("size"), 5)
        return cls(tuple(names), digits, 1, TableLayout(tuple(tightened(MORE, largest)), 1))

    def header(self) -> list[str]:
        """Return the lines above the rows."""
        heads = [self._begun("size", "algorithm", "time "), self._begun("(B)", "", "(us) ")]
        heads = [f"#{line[1:]}" for line in heads]
        if self.more is None:
            return [line.rstrip() for line in heads]
        titles, units = self.more.header()
        gap = " " * self.gap
        return [(head + gap + " " + more[1:]).rstrip() for head, more in zip(heads, (titles, units), strict=True)]

    def lines(self, size: int, rows: Mapping[str, SweepRow], failed: Mapping[str, str] = _NONE) -> list[str]:
        """Return one size: marks as those of `Comparison`."""
        least = min(sound({name: row.out_of_place for name, row in rows.items()}).values(), default=0.0)
        lines: list[str] = []
        for name in self.names:
            row = rows.get(name)
            first = "" if lines else str(size)
            if row is None:
                lines.append(self._begun(first, name, f"{failed.get(name, '-')} ").rstrip())
                continue
            begun = self._begun(first, name, _marked(row.out_of_place, least))
            more = "" if self.more is None else " " * self.gap + self.more.line(row)
            lines.append(f"{begun}{more}".rstrip())
        return lines

    def _begun(self, size: str, name: str, time: str) -> str:
        longest = max(len("algorithm"), *map(len, self.names))
        gap = " " * self.gap
        return f"{size:>{self.digits}}{gap}{name:<{longest}}{gap}{time:>{_TIME + 1}}"


def _marked(found: Measured, least: float) -> str:
    """Write a time: '*' at the least one, '!' where data is wrong or races."""
    mark = "!" if found.is_faulty else "*" if found.time_ns == least else " "
    return f"{fitted(found.time_ns / 1000, _TIME)}{mark}"


def sound(times: Mapping[str, Measured]) -> dict[str, float]:
    """Return the times in ns of those algorithms whose data is not wrong and does not race."""
    return {name: found.time_ns for name, found in times.items() if not found.is_faulty}


def fastest(times: Mapping[str, Measured]) -> str | None:
    """Return the algorithm that is not faulty with the least time, the first of equal ones; None when there is none."""
    right = sound(times)
    return min(right, key=lambda name: right[name]) if right else None


def crossovers(rows: Sequence[tuple[int, Mapping[str, Measured]]]) -> str:
    """Say in a sentence which algorithm is best from which size to which; "none" where each is faulty."""
    stretches: list[tuple[str, int, int]] = []
    for size, times in rows:
        if not times:
            continue
        best = fastest(times) or "none"
        if stretches and stretches[-1][0] == best:
            stretches[-1] = (best, stretches[-1][1], size)
        else:
            stretches.append((best, size, size))
    if not stretches:
        return "No algorithm ran."
    if len(stretches) == 1:
        return f"{stretches[0][0]} is best at every size."
    said = []
    for number, (name, first, last) in enumerate(stretches):
        if number == 0:
            said.append(f"{name} is best up to {format_bytes(last)}")
        elif number == len(stretches) - 1:
            said.append(f"{name} from {format_bytes(first)}")
        else:
            said.append(f"{name} {_stretch(first, last)}")
    return ", ".join(said) + "."


def _stretch(first: int, last: int) -> str:
    if first == last:
        return f"at {format_bytes(first)}"
    return f"from {format_bytes(first)} to {format_bytes(last)}"
