"""The scale-up network as algorithms see it: its shape, which ranks it links, its columns and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import accumulate, pairwise

from attrs import field, frozen

from kernbench_core.plugins import NetworkRegistry, load_plugins
from kernbench_core.topology import Extent, NetworkShape, ScaleUpLink, ScaleUpNetwork, build_alone, open_shape


@cache
def installed_networks() -> NetworkRegistry:
    """Return the shapes of networks that installed plug-ins have: those that are meant where nobody gives any."""
    return load_plugins().networks


@frozen
class Network:
    """The scale-up network of the machine: its shape, how many SIPs it joins, and its columns and rows.

    `name` is a name of `system.network.topology`. A shape without columns and rows has `width` = `world`, `height` = 1.
    `machine` is the network that was built: that of the machine, or a shape laid over its SIPs.
    """

    name: str
    world: int
    width: int
    height: int = 1
    machine: ScaleUpNetwork | None = field(default=None, eq=False, repr=False)

    @classmethod
    def of(cls, built: ScaleUpNetwork) -> Network:
        """Return how algorithms see a network that was built."""
        return cls(built.topology, built.extent.sips, built.extent.width, built.extent.height, built)

    @classmethod
    def alone(cls, name: str, world: int, networks: NetworkRegistry | None = None) -> Network:
        """Return a shape over `world` SIPs, as square as it can be; raise as `build_alone` does."""
        return cls.of(build_alone(networks or installed_networks(), name, world))

    @property
    def shape(self) -> NetworkShape:
        """The shape: the machine's own, or that of this name."""
        return open_shape(installed_networks(), self.name) if self.machine is None else self.machine.shape

    @cached_property
    def linked(self) -> frozenset[tuple[int, int]]:
        """The pairs of ranks whose messages from the first to the second take a link of their own.

        A shape may have a link and not go by it: one that steps one way around a ring goes the long way back.
        """
        pairs = [(a, b) for a, b in self._ends() if a is not None and b is not None]
        step = self.shape.step
        return frozenset((a, b) for pair in pairs for a, b in (pair, pair[::-1]) if step(self._extent, a, b) == b)

    @cached_property
    def switched(self) -> bool:
        """Whether every rank has a link to one switch, and none to another rank."""
        ends = self._ends()
        return bool(ends) and len(ends) == self.world and all(other is None for _, other in ends)

    def ring_order(self, world: int) -> tuple[int, ...]:
        """Return `world` ranks in the order in which a ring visits them, from rank 0 on.

        On a mesh or torus every step is a link, where there is such a way round. In order of their numbers go others:
        ranks of a mesh of odd sides or one row, of other networks, and groups of some of the SIPs.
        """
        return self._round if world == self.world else tuple(range(world))

    @cached_property
    def _round(self) -> tuple[int, ...]:
        by_number = tuple(range(self.world))
        orders = [by_number, *(_rounds(self.width, self.height) if self.width * self.height == self.world else ())]
        linked = self.linked
        return next((order for order in orders if linked.issuperset(pairwise((*order, order[0])))), by_number)

    @property
    def _extent(self) -> Extent:
        return Extent(self.world, self.width, self.height) if self.machine is None else self.machine.extent

    def _ends(self) -> list[tuple[int | None, int | None]]:
        """Return the ranks that each link joins, None for the switch."""
        if self.machine is not None:
            return [(link.first.sip, link.second.sip) for link in self.machine.links]
        links: Sequence[ScaleUpLink] = self.shape.links(self._extent)
        return [(link.sip, link.other_sip) for link in links]

    def grid(self, world: int) -> tuple[int, int]:
        """Return columns and rows that hold `world` ranks: the network's where it joins just these.

        Elsewhere, as for a group of some of the SIPs, the most square grid, not higher than wide.
        """
        if world == self.world and self.width * self.height == world and self.shape.flat:
            return self.width, self.height
        height = next(rows for rows in range(int(world**0.5), 0, -1) if world % rows == 0)
        return world // height, height


def _rounds(width: int, height: int) -> Iterator[tuple[int, ...]]:
    """Yield ways round a grid of ranks, numbered row by row, from rank 0 on; with rows for columns, too.

    Of an even number of rows: to and fro along them, and back up the first column. Of an odd one, on a torus: along
    each row once around. A row ends one place before it began, or one after, and the next one begins below: as many of
    both as bring the last row to column 0.
    """
    for wide, high, down, across in ((width, height, width, 1), (height, width, 1, width)):
        if high % 2 == 0:
            rows = (range(1, wide) if row % 2 == 0 else range(wide - 1, 0, -1) for row in range(high))
            to_and_fro = [row * down + at * across for row, columns in enumerate(rows) for at in columns]
            yield (0, *to_and_fro, *(row * down for row in range(high - 1, 0, -1)))
        elif wide % 2 and high >= wide:
            steps = [1 if row < (high + wide) // 2 else -1 for row in range(high)]
            begins = accumulate((-step for step in steps[:-1]), initial=0)
            yield tuple(
                row * down + (begin + step * at) % wide * across
                for row, (begin, step) in enumerate(zip(begins, steps, strict=True))
                for at in range(wide)
            )
