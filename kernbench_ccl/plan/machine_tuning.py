"""A table of times that was measured on one machine, `kernbench ccl tune` writes it and `auto` goes by it there.

`{"schema": "kernbench.machine_tuning/1", "machine": {"key", "topology", "sets"}, "dtype", "entries": [{"collective",
"network", "world", "times": [[nbytes, {algorithm: ns}], …]}]}`: sizes as nccl-tests counts them, from small to large.
An entry has `"settings": {algorithm: ["pes=1", …]}` too, where these were not as where nobody says anything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from attrs import evolve, field, frozen

from kernbench_core.wording import brief

SCHEMA: Final = "kernbench.machine_tuning/1"

LARGEST: Final = 1 << 32
"""Up to so many bytes it is looked where the best algorithm changes."""

TimesByName = Mapping[str, float]
"""Times in ns by the registered names of algorithms."""


@frozen
class MeasuredTimes:
    """What was measured of a collective with a number of ranks in a network: (bytes, times), from small to large."""

    collective: str
    network: str
    world: int
    rows: tuple[tuple[int, TimesByName], ...]
    settings: Mapping[str, tuple[str, ...]] = field(factory=dict)
    """What was not as where nobody says anything, by the names of algorithms, as `KEY=VALUE`."""

    @property
    def cell(self) -> tuple[str, str, int]:
        """What it is of."""
        return self.collective, self.network, self.world

    def at(self, nbytes: int) -> dict[str, float]:
        """Return the time of each algorithm at a size: on the lines between measured sizes, the outermost prolonged.

        Below the smallest size it is the time there. What was not measured at both ends of a line is left out.
        """
        (low, before), (high, after) = self._around(nbytes)
        if low == high:
            return dict(before)
        part = max(0.0, (nbytes - low) / (high - low))
        found = {name: before[name] + part * (after[name] - before[name]) for name in before if name in after}
        return {name: max(ns, min(before[name], after[name])) for name, ns in found.items()}

    def best(self, nbytes: int, able: Sequence[str]) -> str | None:
        """Return the one of `able` that is the fastest at a size, by name among equals; None where it has none."""
        times = {name: ns for name, ns in self.at(nbytes).items() if name in able}
        return min(times, key=lambda name: (times[name], name), default=None)

    @property
    def names(self) -> list[str]:
        """The algorithms that were measured at any size, by name."""
        return sorted({name for _, times in self.rows for name in times})

    def best_name_by_size(self, able: Sequence[str]) -> list[tuple[int | None, str]]:
        """Return which of `able` is the best up to which size, the last one without an end."""
        found: list[tuple[int | None, str]] = []
        low = 1
        for high in (*(nbytes for nbytes, _ in self.rows), None):
            for most, name in self._changes(low, high, able):
                if found and found[-1][1] == name:
                    found.pop()
                found.append((most, name))
            low = low if high is None else high
        return found

    def _changes(self, low: int, high: int | None, able: Sequence[str]) -> list[tuple[int | None, str]]:
        """Return the best of a stretch of sizes and of what it changes to, each with its last size."""
        end = LARGEST if high is None else high
        first, last = self.best(low, able), self.best(end, able)
        if first is None or last is None:
            return []
        if first == last or end - low < 2:
            return [(low, first), (high, last)] if first != last else [(high, last)]
        middle = (low + end) // 2
        return [*self._changes(low, middle, able), *self._changes(middle, high, able)]

    def _around(self, nbytes: int) -> tuple[tuple[int, TimesByName], tuple[int, TimesByName]]:
        """Return the rows that a size lies between, or the last two; twice the same where it is one or the smallest."""
        rows = self.rows
        if nbytes <= rows[0][0] or len(rows) == 1:
            return rows[0], rows[0]
        return next((pair for pair in pairwise(rows) if nbytes <= pair[1][0]), (rows[-2], rows[-1]))


@frozen
class MachineTuning:
    """A measured table; `key` is the machine's, `made_on` says in words which that is, `source` which file it was."""

    key: str
    made_on: str
    dtype: str
    entries: tuple[MeasuredTimes, ...] = ()
    source: str = ""

    def of(self, collective: str, network: str, world: int) -> MeasuredTimes | None:
        """Return what was measured of a collective; None where nothing was."""
        return next((entry for entry in self.entries if entry.cell == (collective, network, world)), None)

    def with_entry(self, entry: MeasuredTimes) -> MachineTuning:
        """Return the table with an entry in place of one of the same cell."""
        others = [each for each in self.entries if each.cell != entry.cell]
        return evolve(self, entries=tuple(sorted([*others, entry], key=lambda each: each.cell)))

    def text(self) -> str:
        """Return the file's text: the same table gives the same."""
        lines = ",\n".join(
            "  " + json.dumps({
                "collective": e.collective, "network": e.network, "world": e.world,
                "times": [[nbytes, dict(sorted(times.items()))] for nbytes, times in e.rows],
                **({"settings": dict(sorted(e.settings.items()))} if e.settings else {}),
            }) for e in self.entries
        )  # fmt: skip
        head = {"schema": SCHEMA, "machine": {"key": self.key, "made_on": self.made_on}, "dtype": self.dtype}
        return f'{json.dumps(head)[:-1]}, "entries": [\n{lines}\n]}}'


def read_machine_tuning(path: Path) -> MachineTuning:
    """Read a table; ValueError("must be …") where the file is none, OSError where it cannot be read."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"must be a table that kernbench ccl tune wrote, and {str(path)!r} is no JSON.") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise ValueError(
            f"must be a table of the schema {SCHEMA!r}, as kernbench ccl tune writes it, and {str(path)!r} has "
            f"{brief(schema)}."
        )
    try:
        entries = tuple(_entry(each) for each in data["entries"])
        return MachineTuning(
            str(data["machine"]["key"]), str(data["machine"]["made_on"]), str(data["dtype"]), entries, str(path)
        )
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        what = fault.args[0] if fault.args else fault
        raise ValueError(
            f"must be a whole table that kernbench ccl tune wrote, and in {str(path)!r} {what!r} is wrong."
        ) from None


def _entry(given: Any) -> MeasuredTimes:
    rows = tuple((int(size), {str(name): float(ns) for name, ns in times.items()}) for size, times in given["times"])
    sizes = [nbytes for nbytes, _ in rows]
    if not rows or sizes != sorted(set(sizes)) or not all(times for _, times in rows):
        raise ValueError("times")
    if not all(math.isfinite(ns) and ns > 0 for _, times in rows for ns in times.values()):
        raise ValueError("times")
    settings = {str(name): tuple(map(str, texts)) for name, texts in given.get("settings", {}).items()}
    return MeasuredTimes(str(given["collective"]), str(given["network"]), int(given["world"]), rows, settings)
