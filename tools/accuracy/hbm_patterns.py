"""The bursts of the HBM comparison: each a read or a write of a place, in the order in which a channel is asked."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count, islice

from attrs import frozen

from kernbench_builtin.components.dram import DramGeometry, DramPlace
from kernbench_core.values import Region

#: (whether it writes, pseudo-channel, stack ID, group, bank of the group, row, column).
Asked = tuple[bool, int, int, int, int, int, int]
#: Rows that patterns go over, and columns of a row.
ROWS, COLUMNS = 4096, 32


@frozen
class Shape:
    """Say how many stack IDs a pseudo-channel has, groups a stack ID, and banks a group."""

    stacks: int
    groups: int
    banks: int

    def stream(self, write: bool = False, row: int = 0, channels: int = 2) -> Iterator[Asked]:
        """Yield a stream: the pseudo-channel changes first, then group, column, bank, stack ID and row."""
        for index in count():
            rest, channel = divmod(index, channels)
            rest, group = divmod(rest, self.groups)
            rest, column = divmod(rest, COLUMNS)
            rest, bank = divmod(rest, self.banks)
            rest, stack = divmod(rest, self.stacks)
            yield write, channel, stack, group, bank, row + rest, column

    def mixed(self, reads: float) -> Iterator[Asked]:
        """Yield a stream, so many of whose bursts are reads, which ones at random."""
        rng = random.Random(1)
        for _, *place in self.stream():
            yield rng.random() >= reads, *place  # type: ignore[misc]

    def turns(self, each: int) -> Iterator[Asked]:
        """Yield so many reads of a stream, then as many writes of one to other rows of the same banks."""
        reads, writes = self.stream(), self.stream(True, ROWS // 2)
        while True:
            yield from islice(reads, each)
            yield from islice(writes, each)

    def rows(self, bursts: int, reads: float = 1.0) -> Iterator[Asked]:
        """Yield so many bursts that follow each other in a random row, and again."""
        rng = random.Random(1)
        while True:
            channel, stack = rng.randrange(2), rng.randrange(self.stacks)
            group, bank = rng.randrange(self.groups), rng.randrange(self.banks)
            row, first = rng.randrange(ROWS), rng.randrange(COLUMNS) // bursts * bursts
            write = rng.random() >= reads
            for column in range(first, first + bursts):
                yield write, channel, stack, group, bank, row, column

    def stride(self) -> Iterator[Asked]:
        """Yield one burst of a row of every bank, then of the next row."""
        for index in count():
            rest, channel = divmod(index, 2)
            rest, group = divmod(rest, self.groups)
            rest, bank = divmod(rest, self.banks)
            row, stack = divmod(rest, self.stacks)
            yield False, channel, stack, group, bank, row % ROWS, 0

    def staggered(self) -> Iterator[Asked]:
        """Yield a stream over all banks, each of which is at another column."""
        number = 2 * self.stacks * self.groups * self.banks
        for index in count():
            line, place = divmod(index, number)
            rest, channel = divmod(place, 2)
            rest, group = divmod(rest, self.groups)
            stack, bank = divmod(rest, self.banks)
            ahead = place * COLUMNS // number if number <= COLUMNS else place // -(-number // COLUMNS) % COLUMNS
            row, column = divmod(line + ahead, COLUMNS)
            yield False, channel, stack, group, bank, row % ROWS, column

    def one_bank(self, bursts: int) -> Iterator[Asked]:
        """Yield so many bursts of a row of one bank, then of the next row."""
        for index in count():
            row, column = divmod(index, bursts)
            yield False, 0, 0, 0, 0, row % ROWS, column

    def request(self, asked: Asked, g: DramGeometry) -> tuple[str, tuple[Region, ...]]:
        """Return one burst as a request: banks of a group follow each other, those of all its stack IDs."""
        assert g.address is not None
        write, channel, stack, group, bank, row, column = asked
        place = DramPlace(channel, (group * self.stacks + stack) * self.banks + bank, row, column)
        return "write" if write else "read", (Region(g.address(place), g.burst_bytes),)


#: A name, what is asked, how many bursts, and whether all banks are refreshed.
PATTERNS: tuple[tuple[str, Callable[[Shape], Iterator[Asked]], int, bool], ...] = (
    *((f"stream, {kind}", lambda shape, part=part: shape.mixed(part), 20_000, False) for kind, part in (
        ("reads", 1.0), ("writes", 0.0), ("90 % reads", 0.9), ("67 % reads", 0.67), ("half reads", 0.5),
    )),
    ("stream, reads, refresh", lambda shape: shape.mixed(1.0), 60_000, True),
    ("stream, half reads, refresh", lambda shape: shape.mixed(0.5), 60_000, True),
    ("stream of one pseudo-channel", lambda shape: shape.stream(channels=1), 20_000, False),
    ("one bank, rows in sequence", lambda shape: shape.one_bank(COLUMNS), 8_000, False),
    ("one bank, a row each", lambda shape: shape.one_bank(1), 2_000, False),
    *((f"random, {kind}", lambda shape, part=part: shape.rows(1, part), 20_000, False) for kind, part in (
        ("reads", 1.0), ("writes", 0.0), ("67 % reads", 0.67), ("half reads", 0.5),
    )),
    ("stride, a row each", lambda shape: shape.stride(), 20_000, False),
    *((f"random rows, {32 * bursts} B", lambda shape, bursts=bursts: shape.rows(bursts), number, False)
      for bursts, number in ((2, 20_000), (8, 20_000), (32, 60_000))),
    *((f"turns of {each} reads, {each} writes", lambda shape, each=each: shape.turns(each), 20_000, False)
      for each in (1, 16, 64, 256)),
)  # fmt: skip
