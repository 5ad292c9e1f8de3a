"""How sentences tell many numbers, and names that end with one: runs of them as their first and last."""

from __future__ import annotations

from collections.abc import Iterable


def number_runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of consecutive numbers, ascending; each number counts once."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def spell_numbers(numbers: Iterable[int]) -> str:
    """Spell numbers: "2-5, 8"."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in number_runs(numbers))


def join_names(names: Iterable[str]) -> str:
    """Join names that differ in the number at their end: "rank 2", "ranks 0-4, 6"."""
    several = list(dict.fromkeys(names))
    if len(several) == 1:
        return several[0]
    kind = several[0].rpartition(" ")[0]
    return f"{kind}s {spell_numbers(int(name.rpartition(' ')[2]) for name in several)}"
