"""Synthetic traffic: who sends to whom. The patterns, and what each of them asks of every wire of a mesh.

Patterns are those of Dally and Towles, "Principles and Practices of Interconnection Networks", section 3.2, as BookSim
draws them: coordinate-wise in both dimensions, and a node that a pattern sends to itself does send to itself, through
its router and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from kernbench_builtin.machines import Mesh, line, naming
from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.wording import brief

PlaceArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Random: TypeAlias = np.random.Generator


@frozen(eq=False)
class Permutation:
    """Send everything of a place to one other: `table[source]` is its destination."""

    table: PlaceArray

    def draw(self, random: Random, sources: PlaceArray) -> PlaceArray:
        """Return the destinations of packets from these places."""
        found: PlaceArray = self.table[sources]
        return found

    def matrix(self) -> PlaceArray:
        """Return which share of what each place (row) sends goes to each place (column)."""
        return np.eye(len(self.table))[self.table]


@frozen(eq=False)
class Spread:
    """Send to any of `places`, each as likely, the sender too; but a `share` of the packets to one of `hot`."""

    places: int
    hot: tuple[int, ...] = ()
    share: float = 0.0

    def draw(self, random: Random, sources: PlaceArray) -> PlaceArray:
        """Return the destinations of packets from these places."""
        found: PlaceArray = random.integers(self.places, size=len(sources))
        if self.hot:
            hit = random.random(len(sources)) < self.share
            found = np.where(hit, np.array(self.hot)[random.integers(len(self.hot), size=len(sources))], found)
        return found

    def matrix(self) -> PlaceArray:
        """Return which share of what each place (row) sends goes to each place (column)."""
        row = np.full(self.places, (1.0 - self.share) / self.places)
        np.add.at(row, list(self.hot), self.share / max(1, len(self.hot)))  # a router may be named twice
        return np.tile(row, (self.places, 1))


Pattern: TypeAlias = Permutation | Spread


def _moved(mesh: Mesh, move: Callable[[PlaceArray, PlaceArray], tuple[PlaceArray, PlaceArray]]) -> Permutation:
    rows, columns = np.divmod(np.arange(mesh.places), mesh.spec.columns)
    to_rows, to_columns = move(rows, columns)
    return Permutation(to_rows * mesh.spec.columns + to_columns)


def _transpose(mesh: Mesh) -> Pattern:
    rows, columns = mesh.spec.rows, mesh.spec.columns
    if rows != columns:
        raise UsageError(
            f"--traffic transpose must have as many rows as columns, not {rows} x {columns}; "
            "choose another pattern or make mesh.rows equal mesh.columns."
        )
    return _moved(mesh, lambda r, c: (c, r))


def _bitcomp(mesh: Mesh) -> Pattern:
    rows, columns = mesh.spec.rows, mesh.spec.columns
    return _moved(mesh, lambda r, c: (rows - 1 - r, columns - 1 - c))


def _tornado(mesh: Mesh) -> Pattern:
    rows, columns = mesh.spec.rows, mesh.spec.columns
    return _moved(mesh, lambda r, c: ((r + (rows + 1) // 2 - 1) % rows, (c + (columns + 1) // 2 - 1) % columns))


def _neighbor(mesh: Mesh) -> Pattern:
    rows, columns = mesh.spec.rows, mesh.spec.columns
    return _moved(mesh, lambda r, c: ((r + 1) % rows, (c + 1) % columns))


def _uniform(mesh: Mesh) -> Pattern:
    return Spread(mesh.places)


PATTERNS: Mapping[str, Callable[[Mesh], Pattern] | None] = MappingProxyType(
    {
        "uniform": _uniform,
        "transpose": _transpose,
        "bitcomp": _bitcomp,
        "tornado": _tornado,
        "neighbor": _neighbor,
        "hotspot": None,
        "permutation": None,
    }
)
"""Every pattern by its name; those without a function have parameters of their own."""


def make_pattern(
    name: str, mesh: Mesh, hot: Sequence[str] = (), share: float | None = None, seed: int = 0
) -> Pattern:
    """Return a pattern on a mesh.

    Args:
        name: one of `PATTERNS`.
        mesh: what it is to run on.
        hot: the hot spots of `hotspot`, written `r3c4`; default the router in the middle.
        share: which part of the packets goes to them, above 0, at most 1; default 0.1.
        seed: which of all permutations `permutation` is.

    Raises:
        UsageError: there is no such pattern, or it does not fit the mesh or the arguments.
    """
    if name not in PATTERNS:
        raise UsageError(f"--traffic must be one of {', '.join(PATTERNS)}, not {brief(name)}.{_close(name)}")
    make = PATTERNS[name]
    if name == "hotspot":
        return _hotspot(mesh, hot, 0.1 if share is None else share)
    if hot or share is not None:
        option = "--hotspot" if hot else "--hotspot-share"
        raise UsageError(f"option {option} must be given together with --traffic hotspot, not with {name}.")
    return Permutation(np.random.default_rng(seed).permutation(mesh.places)) if make is None else make(mesh)


def _close(name: str) -> str:
    hint = did_you_mean(name, PATTERNS)
    return hint if "Did you mean" in hint else ""


def _hotspot(mesh: Mesh, hot: Sequence[str], share: float) -> Pattern:
    if not 0.0 < share <= 1.0:
        raise UsageError(f"--hotspot-share must be a number above 0 and at most 1, not {share:g}.")
    known = {naming.mesh_router(*mesh.cell(place)).removeprefix("mesh."): place for place in range(mesh.places)}
    if not hot:
        return Spread(mesh.places, (mesh.spec.rows // 2 * mesh.spec.columns + mesh.spec.columns // 2,), share)
    last = next(reversed(known))
    for name in hot:
        if name.removeprefix("mesh.") not in known:
            raise UsageError(
                f"--hotspot must name routers from r0c0 to {last}, separated by commas, not {brief(name)}."
            )
    return Spread(mesh.places, tuple(known[name.removeprefix("mesh.")] for name in hot), share)


def wire_shares(mesh: Mesh, pattern: Pattern) -> dict[tuple[str, str], float]:
    """Return how many flits cross each wire for every flit that each node offers: its expected channel load.

    Times the offered load in flits/node/cycle, that is the flits per cycle that the wire has to carry.
    """
    spec = mesh.spec
    pairs = pattern.matrix().reshape(spec.rows, spec.columns, spec.rows, spec.columns)
    shares: dict[tuple[str, str], float] = dict.fromkeys(mesh.edges, 0.0)
    arriving = pairs.sum(axis=(0, 1))
    for row in range(spec.rows):
        for column in range(spec.columns):
            router, interface = naming.mesh_router(row, column), naming.mesh_interface(row, column)
            shares[interface, router] = 1.0
            shares[router, interface] = float(arriving[row, column])
    along_rows = pairs.sum(axis=2)
    for start in range(spec.columns):
        for end in range(spec.columns):
            for a, b in pairwise(line(start, end, spec.columns, spec.wrap)):
                for row in range(spec.rows):
                    edge = naming.mesh_router(row, a), naming.mesh_router(row, b)
                    shares[edge] += float(along_rows[row, start, end])
    along_columns = pairs.sum(axis=1)
    for start in range(spec.rows):
        for end in range(spec.rows):
            for a, b in pairwise(line(start, end, spec.rows, spec.wrap)):
                for column in range(spec.columns):
                    edge = naming.mesh_router(a, column), naming.mesh_router(b, column)
                    shares[edge] += float(along_columns[start, end, column])
    return shares


def mean_hops(mesh: Mesh, pattern: Pattern) -> float:
    """Return over how many links between routers a packet goes on average."""
    links = (share for (src, dst), share in wire_shares(mesh, pattern).items() if ".ni" not in src + dst)
    return sum(links) / mesh.places
