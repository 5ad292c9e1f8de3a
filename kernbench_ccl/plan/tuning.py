"""Which algorithm `auto` is: what was measured to be fastest, and a rule where nothing was.

The table is `tuning.json` beside this file, when a measurement has written it:
`{"schema": "kernbench.tuning/1", "machines": [key, …], "measured": [algorithm, …], "entries": [{"collective",
"network", "world", "best": [[nbytes, algorithm], …]}]}`, where each algorithm is the best up to its nbytes and the last
one also above. It holds for the machines of these keys alone, as far as nobody else is registered than was measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen

SCHEMA: Final = "kernbench.tuning/1"
FILE: Final = Path(__file__).with_name("tuning.json")
LARGE: Final = 64 * 1024
"""From how many bytes of each rank on bandwidth counts more than the number of steps, by the rule."""

OTHER_KIND: Final = math.log(2)
"""How much further a measurement counts as when just one of both numbers of ranks is a power of two."""

_FEW_STEPS: Final = ("direct", "halving_doubling", "binomial_tree", "double_binary_tree", "ring")
_BANDWIDTH: Final = {
    "ring": ("ring_bidirectional", "ring", "chain", "double_binary_tree"),
    "mesh_2d": ("mesh", "ring_bidirectional", "ring", "chain"),
    "torus_2d": ("torus", "ring_bidirectional", "ring", "chain"),
    "fully_connected": ("direct", "halving_doubling", "ring", "chain"),
    "switch": ("ring", "halving_doubling", "direct", "chain"),
}


@frozen
class TuningEntry:
    """What was measured for a collective, a network and a number of ranks: (bytes up to which, algorithm)."""

    collective: str
    network: str
    world: int
    best: tuple[tuple[int, str], ...]

    def at(self, nbytes: int) -> str:
        """Return the algorithm that was best for a size."""
        return next((name for most, name in self.best if nbytes <= most), self.best[-1][1])


@frozen
class Tuning:
    """A measured table; empty where nothing was measured. `machines` are keys of those that it was measured on.

    `measured` are the algorithms that could have been the best.
    """

    entries: tuple[TuningEntry, ...] = ()
    machines: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset()

    def choose(self, collective: str, network: str, world: int, nbytes: int, able: Sequence[str]) -> str | None:
        """Return one of `able`, the registered names of algorithms that do these ranks on this network.

        `nbytes` is the size as nccl-tests counts it. It is what was measured with the nearest number of ranks, else
        what the rule says; None when `able` is empty.
        """
        for entry in self.nearest(collective, network, world):
            if entry.at(nbytes) in able:
                return entry.at(nbytes)
        return by_rule(collective, network, world, nbytes, able)

    def covers(self, collective: str, network: str, world: int) -> TuningEntry | None:
        """Return what was measured for just these ranks; None where nothing was."""
        cell = (collective, network, world)
        return next((e for e in self.entries if (e.collective, e.network, e.world) == cell), None)

    def nearest(self, collective: str, network: str, world: int) -> list[TuningEntry]:
        """Return what was measured for a collective and a network, the nearest number of ranks first.

        Near is a small ratio; powers of two, which some algorithms are made for, are near each other.
        """

        def distance(entry: TuningEntry) -> tuple[float, int]:
            other = _power_of_two(entry.world) != _power_of_two(world)
            return abs(math.log(entry.world / world)) + OTHER_KIND * other, entry.world

        found = [e for e in self.entries if (e.collective, e.network) == (collective, network)]
        return sorted(found, key=distance)

    def basis(self, collective: str, network: str, world: int, key: str | None) -> str:
        """Say what `choose` goes by on a machine of a key: a measurement, and of what else, or the rule."""
        entries = self.nearest(collective, network, world)
        if not entries:
            return "by rule, nothing was measured here"
        others = [] if entries[0].world == world else [f"with {entries[0].world} ranks"]
        if key not in self.machines:
            others.append("on packages and links of default")
        return " ".join(["by measurement", " ".join(others)]).strip()


def _power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


@cache
def shipped() -> Tuning:
    """Return the table of the package."""
    return load_tuning()


def load_tuning(path: Path = FILE) -> Tuning:
    """Read a measured table; an empty one where there is no file, or it is of another version."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Tuning()
    if data.get("schema") != SCHEMA:
        return Tuning()
    return Tuning(
        tuple(
            TuningEntry(e["collective"], e["network"], e["world"], tuple((int(n), str(name)) for n, name in e["best"]))
            for e in data["entries"]
        ),
        frozenset(data.get("machines", ())),
        frozenset(data.get("measured", ())),
    )


def by_rule(collective: str, network: str, world: int, nbytes: int, able: Sequence[str]) -> str | None:
    """Choose without measurements: few steps for what is small, the network's own method for what is large."""
    methods = {name: name.partition(".")[2].removesuffix(f"_{collective}") for name in able}
    order = _FEW_STEPS if nbytes < LARGE else _BANDWIDTH.get(network, ())
    for wanted in (*order, *_BANDWIDTH["ring"], *_FEW_STEPS):
        for name, method in methods.items():
            if method == wanted:
                return name
    return next(iter(able), None)
