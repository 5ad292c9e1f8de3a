"""A ring of packages whose messages pass through: which channels they may use there, in two classes with a dateline.

A message is in class 0 up to the link between the last package and the first, and in class 1 behind it; one that does
not cross it keeps to one class, by the parity of its ends. Only links, and what joins them in a package, have classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from kernbench_core.topology import naming


class PackageRing:
    """Know the ports of links of a ring of packages; none where packages make no ring, or nothing passes through."""

    def __init__(self, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        self._sips = {name: sip for name in outputs if (sip := naming.parse(name).sip) is not None}
        links = [(a, b) for a, out in outputs.items() for b in out if self._between(a, b)]
        joined: dict[int, set[int]] = {}
        for a, b in links:
            joined.setdefault(self._sips[a], set()).add(self._sips[b])
        count = len(joined)
        ring = count > 4 and all(joined.get(i) == {(i - 1) % count, (i + 1) % count} for i in range(count))
        ports = {end for link in links for end in link} if ring else set()
        passes = any(len(ports & out.keys()) > 1 for name, out in outputs.items() if name not in ports)
        self._last = count - 1
        self._ports = ports if passes else set()

    def has_classes(self, source: str, destination: str) -> bool:
        """Say whether the channels between two routers come in two classes."""
        return source in self._ports or destination in self._ports

    def classes(self, nodes: Sequence[str]) -> list[int | None]:
        """Return the class for each step between the nodes of a path; None where there are none."""
        steps = list(pairwise(nodes))
        ends = [self._sips[node] for node in nodes if node in self._ports]
        crosses = any(self._closes(*step) for step in steps)
        number = 0 if crosses or not ends else (ends[0] + ends[-1]) % 2
        found: list[int | None] = []
        for step in steps:
            found.append(number if self.has_classes(*step) else None)
            number += self._closes(*step)
        return found

    def _between(self, a: str, b: str) -> bool:
        return a in self._sips and b in self._sips and self._sips[a] != self._sips[b]

    def _closes(self, a: str, b: str) -> bool:
        """Say whether a step leads over the link between the last package and the first."""
        return a in self._ports and b in self._ports and {self._sips[a], self._sips[b]} == {0, self._last}
