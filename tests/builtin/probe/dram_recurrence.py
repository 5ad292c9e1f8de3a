"""What a saturated pseudo-channel serves, by a recurrence over its bursts: derived in `dram_expected`.

Every burst, in order of age, takes the first slots that the older ones of its turn have left: of the row commands, of
the activations, of its group and of the data bus. No clock is stepped, and each slot is as long as a rule says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import attrs

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_workload import WRITE, RowPlace

_NEVER = -1e18


class Slots:
    """Give one user to each slot of `length` clocks."""

    __slots__ = ("_after", "_length")

    def __init__(self, length: float) -> None:
        self._length = length
        self._after: dict[int, int] = {}

    def first(self, at: float) -> float:
        """Return the first clock from `at` on that is in a free slot."""
        slot = root = int(at // self._length)
        after = self._after
        while root in after:
            root = after[root]
        if slot == root:
            return at
        while slot != root:
            after[slot], slot = root, after[slot]
        return root * self._length

    def take(self, at: float) -> None:
        """Take the slot of `at`."""
        slot = int(at // self._length)
        self._after[slot] = slot + 1


class CommandBus:
    """Give each clock of a row-command bus to one command; those that are not given in the end can be given back."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: set[int] = set()

    def take(self, at: float, clocks: float) -> Iterator[float]:
        """Take the first so many free clocks from `at` on, and yield them."""
        for _ in range(int(clocks)):
            at = self.first(at)
            self._taken.add(int(at))
            yield at

    def first(self, at: float) -> float:
        """Return the first clock from `at` on that is free."""
        clock = int(at)
        if clock not in self._taken:
            return at
        while clock in self._taken:
            clock += 1
        return clock

    def give_back(self, clocks: Iterable[float]) -> None:
        """Free some clocks."""
        self._taken.difference_update(map(int, clocks))


@attrs.define
class _Bank:
    """One bank: its row, when it was opened, and from when on it may be closed and opened again (clocks)."""

    due: float
    """When its next refresh is due."""
    row: int = -1
    opened: float = _NEVER
    closable: float = 0.0
    openable: float = 0.0
    last: float = _NEVER


@attrs.define(eq=False)
class _Turn:
    """The slots of one turn of reads or writes, and what its bursts did, until it is known where it ends."""

    acts: list[Slots]
    bus: list[Slots]
    groups: list[Slots]
    group_acts: list[Slots]
    banks: dict[int, _Bank] = attrs.field(factory=dict)
    #: (clock of the first row command, bank, what the bank is from then on): before the end of the turn, in order.
    changes: list[tuple[float, int, _Bank]] = attrs.field(factory=list)
    #: Clocks of the row-command bus.
    commands: list[float] = attrs.field(factory=list)


class Recurrence:
    """Keep the banks of a pseudo-channel, or of several with one queue, and serve bursts in turns of reads and writes.

    Banks and groups of the second follow those of the first.
    """

    def __init__(self, g: DramGeometry, bus: CommandBus | None = None, places: int = 1) -> None:
        """Begin with all banks closed; others may take clocks of the row-command `bus`, too."""
        clock = g.timing["tCK"]
        self._t = {name: value / clock for name, value in g.timing.items()}
        self._g = g
        self._places = places
        self._bus = bus or CommandBus()
        self._per_group = max(1, g.banks // g.bank_groups)
        single = g.refresh == "per_bank"
        every = math.inf if g.refresh == "none" else self._t["tREFI"]
        self._held = self._t["tRREFD"] if single else 0.0
        self._every = every
        #: From one refresh of a bank to the next, and how long it takes.
        self._again = every * g.banks if single else every
        self._refresh = self._t["tRFCpb" if single else "tRFC"]
        self._banks = [
            _Bank(every * (bank + 1) if single else every) for _ in range(places) for bank in range(g.banks)
        ]
        #: When the last column command of each group came, by kind.
        never = [_NEVER] * g.bank_groups * places
        self._columns = (never, never.copy())
        self._now = self._turn()

    def _turn(self) -> _Turn:
        t, groups, places = self._t, self._g.bank_groups * self._places, range(self._places)
        return _Turn(
            [Slots(max(t["tFAW"] / 4, t["tRRD_S"])) for _ in places],
            [Slots(t["tCCD_S"]) for _ in places],
            [Slots(t["tCCD_L"]) for _ in range(groups)], [Slots(t["tRRD_L"]) for _ in range(groups)],
        )  # fmt: skip

    def begin(self) -> None:
        """Begin a turn of reads or of writes."""
        self._now = self._turn()

    def column(self, kind: int, place: RowPlace, seen: float) -> tuple[float, float]:
        """Return the clock at which a burst leaves its queue, which shows it from `seen` on after all of its turn, and
        that of its column command: it leaves with the activation of its row, or with that.
        """
        return self._column(self._now, kind, *place, seen)

    def end(self, kind: int, end: float, served: Sequence[tuple[int, float]]) -> None:
        """End a turn after the clock `end`: of what was begun, (bank, clock) of each column command were `served`."""
        self._keep(self._now, kind, end, served)

    def hit_at(self, number: int, seen: float) -> float:
        """Return the clock of the column command of a read of the open row of a bank that is seen from `seen` on."""
        turn, t = self._now, self._t
        bank = turn.banks.get(number) or self._banks[number]
        groups, bus = turn.groups[number // self._per_group], turn.bus[number // self._g.banks]
        at = max(seen, bank.opened + t["tRCDRD"], bank.last + t["tCCD_L"])
        while (later := groups.first(bus.first(at))) > at:
            at = later
        return at

    def row_until(self, number: int, at: float) -> tuple[int, float]:
        """Return what row of a bank is open at clock `at`, -1 for none, and from when on it may be closed."""
        bank = self._now.banks.get(number) or self._banks[number]
        row = -1 if at >= bank.due else bank.row
        return row, min(max(at, bank.closable), max(at, bank.due))

    def _column(self, turn: _Turn, kind: int, number: int, row: int, seen: float) -> tuple[float, float]:
        """Return when one burst that is seen from `seen` on leaves its queue, and the clock of its column command."""
        t = self._t
        bank = turn.banks.get(number)
        if bank is None:
            bank = turn.banks[number] = attrs.evolve(self._banks[number])
        group = number // self._per_group
        groups, bus = turn.groups[group], turn.bus[number // self._g.banks]
        least = max(seen, self._after_other(kind, group))
        while least >= bank.due:
            self._refreshed(turn, bank, number)
        while True:
            opens = bank.row != row
            if opens:
                self._open(turn, bank, number, row, seen)
            at = max(least, bank.opened + t["tRCDWR" if kind == WRITE else "tRCDRD"], bank.last + t["tCCD_L"])
            while (later := groups.first(bus.first(at))) > at:
                at = later
            if at < bank.due or (opens and bank.opened < bank.due):
                break  # a row is not closed before the burst that it was opened for
            self._refreshed(turn, bank, number)
        groups.take(at)
        bus.take(at)
        bank.last = at
        held = t["tCWL"] + t["tBL"] + t["tWR"] if kind == WRITE else t["tRTP"]
        bank.closable = max(bank.closable, at + held)
        return (bank.opened if opens else at), at

    def _open(self, turn: _Turn, bank: _Bank, number: int, row: int, seen: float) -> None:
        """Close and open a bank as soon as there are slots for it."""
        t = self._t
        at = max(seen, bank.openable)
        first = at
        if bank.row >= 0:
            first = at = self._command(turn, max(seen, bank.closable), t["tPRE"])
            at = max(at + t["tRP"], bank.opened + t["tRC"])
        if self._held and at >= self._every:
            at += max(0.0, self._held - at % self._every)
        acts, group_acts = turn.acts[number // self._g.banks], turn.group_acts[number // self._per_group]
        while (later := self._bus.first(group_acts.first(acts.first(at)))) > at:
            at = later
        acts.take(at)
        group_acts.take(at)
        self._command(turn, at, t["tACT"])
        bank.row, bank.opened, bank.closable, bank.last = row, at, at + t["tRAS"], _NEVER
        turn.changes.append((first, number, attrs.evolve(bank)))

    def _refreshed(self, turn: _Turn, bank: _Bank, number: int) -> None:
        """Refresh a bank when that is due, closed before."""
        if bank.row >= 0:
            bank.openable = max(bank.due, bank.closable) + self._t["tRP"]
        # with all of its banks a pseudo-channel has hardly ever none open
        bank.openable = max(bank.due + (0.0 if self._held else self._t["tRP"]), bank.openable) + self._refresh
        bank.row, bank.last, due = -1, _NEVER, bank.due
        bank.due += self._again
        turn.changes.append((due, number, attrs.evolve(bank)))

    def _command(self, turn: _Turn, at: float, clocks: float) -> float:
        """Take so many clocks of the row-command bus; return the first one."""
        taken = list(self._bus.take(at, clocks))
        turn.commands += taken
        return taken[0]

    def _after_other(self, kind: int, group: int) -> float:
        """Return before when the bus does not turn to a kind."""
        t, others, many = self._t, self._columns[1 - kind], self._g.bank_groups
        last = max(others[group // many * many : (group // many + 1) * many])
        if kind == WRITE:
            return last + t["tRTW"]
        written = t["tCWL"] + t["tBL"]
        return max(last + written + t["tWTR_S"], others[group] + written + t["tWTR_L"])

    def _keep(self, turn: _Turn, kind: int, end: float, served: Sequence[tuple[int, float]]) -> None:
        """Take over what was done until `end`: rows that were opened, and columns that were `served`."""
        t = self._t
        self._bus.give_back(clock for clock in turn.commands if clock > end)
        held = t["tCWL"] + t["tBL"] + t["tWR"] if kind == WRITE else t["tRTP"]
        for first, number, changed in turn.changes:
            if first <= end:
                bank = self._banks[number] = changed
                if bank.opened > end:  # it was closed, but not opened any more
                    bank.row, bank.openable = -1, first + t["tRP"]
        for number, at in served:
            bank = self._banks[number]
            bank.closable = max(bank.closable, at + held)
            group = number // self._per_group
            if at <= end:  # a burst whose row was opened goes when the bus is turned for it anyhow
                self._columns[kind][group] = max(self._columns[kind][group], at)
