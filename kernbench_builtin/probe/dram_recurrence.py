"""What a saturated pseudo-channel serves, by a recurrence over its bursts: derived in docs/hbm.md.

Every burst, in order of age, takes the first slots that the older ones of its turn have left: of the row commands, of
the activations, of its group and of the data bus. No clock is stepped, and each slot is as long as a rule says.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import attrs

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_workload import READ, WRITE, RowPlace

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
    commands: Slots
    bus: list[Slots]
    groups: list[Slots]
    group_acts: list[Slots]
    banks: dict[int, _Bank] = attrs.field(factory=dict)
    #: (clock of the first row command, bank, what the bank is from then on): before the end of the turn, in order.
    changes: list[tuple[float, int, _Bank]] = attrs.field(factory=list)


class Recurrence:
    """Keep the banks of a pseudo-channel, or of several with one queue, and serve turns of bursts one after the other.

    Banks and groups of the second follow those of the first.
    """

    def __init__(self, g: DramGeometry, commands: Slots | None = None, places: int = 1) -> None:
        """Begin with all banks closed; `commands` are clocks of the row-command bus that others take, too."""
        clock = g.timing["tCK"]
        self._t = {name: value / clock for name, value in g.timing.items()}
        self._g = g
        self._places = places
        self._sharing = max(1, min(g.buses, g.channels) // places)
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
        self.now = 0.0
        #: When each burst that was served had its column command.
        self.served_at: list[float] = []
        self._reading = self._turn()
        if commands is not None:
            self._reading.commands = commands

    def _turn(self) -> _Turn:
        t, groups, places = self._t, self._g.bank_groups * self._places, range(self._places)
        return _Turn(
            [Slots(max(t["tFAW"] / 4, t["tRRD_S"])) for _ in places], Slots(self._sharing),
            [Slots(t["tCCD_S"]) for _ in places],
            [Slots(t["tCCD_L"]) for _ in range(groups)], [Slots(t["tRRD_L"]) for _ in range(groups)],
        )  # fmt: skip

    def serve(self, kind: int, bursts: Sequence[RowPlace], number: int, window: int) -> list[int]:
        """Serve `number` of `bursts`, of which `window` are seen at a time; return which, as indices."""
        turn, start = self._turn(), self.now
        leave: list[float] = []
        columns: list[float] = []
        for index, (bank, row) in enumerate(bursts[: number + window - 1]):
            seen = start if index < window else heapq.heappop(leave)
            at = self._column(turn, kind, bank, row, max(seen, start))
            columns.append(at)
            heapq.heappush(leave, at + 1)
        served = sorted(sorted(range(len(columns)), key=columns.__getitem__)[:number])
        end = max(columns[index] for index in served)
        self._keep(turn, kind, end, [(bursts[index][0], columns[index]) for index in served])
        self.served_at += [columns[index] for index in served]
        self.now = end + 1
        return served

    def read(self, place: RowPlace, at: float) -> float:
        """Return the clock of the column command of a read that comes at `at`, after all that were read before."""
        return self._column(self._reading, READ, *place, at)

    def row_until(self, number: int, at: float) -> tuple[int, float]:
        """Return what row of a bank is open at clock `at`, -1 for none, and from when on it may be closed."""
        bank = self._reading.banks.get(number) or self._banks[number]
        row = -1 if at >= bank.due else bank.row
        return row, min(max(at, bank.closable), max(at, bank.due))

    def _column(self, turn: _Turn, kind: int, number: int, row: int, seen: float) -> float:
        """Return the clock of the column command of one burst that is seen from `seen` on."""
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
            if bank.row != row:
                self._open(turn, bank, number, row, seen)
            at = max(least, bank.opened + t["tRCDWR" if kind == WRITE else "tRCDRD"], bank.last + t["tCCD_L"])
            while (later := groups.first(bus.first(at))) > at:
                at = later
            if at < bank.due:
                break
            self._refreshed(turn, bank, number)
        groups.take(at)
        bus.take(at)
        bank.last = at
        held = t["tCWL"] + t["tBL"] + t["tWR"] if kind == WRITE else t["tRTP"]
        bank.closable = max(bank.closable, at + held)
        return at

    def _open(self, turn: _Turn, bank: _Bank, number: int, row: int, seen: float) -> None:
        """Close and open a bank as soon as there are slots for it."""
        t, commands = self._t, turn.commands
        at = max(seen, bank.openable)
        first = at
        if bank.row >= 0:
            first = at = self._command(commands, max(seen, bank.closable), t["tPRE"])
            at = max(at + t["tRP"], bank.opened + t["tRC"])
        if self._held and at >= self._every:
            at += max(0.0, self._held - at % self._every)
        acts, group_acts = turn.acts[number // self._g.banks], turn.group_acts[number // self._per_group]
        while (later := commands.first(group_acts.first(acts.first(at)))) > at:
            at = later
        acts.take(at)
        group_acts.take(at)
        self._command(commands, at, t["tACT"])
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

    def _command(self, commands: Slots, at: float, clocks: float) -> float:
        """Take so many slots of the row-command bus; return when the first one is."""
        first = commands.first(at)
        for _ in range(int(clocks)):
            at = commands.first(at)
            commands.take(at)
        return first

    def _after_other(self, kind: int, group: int) -> float:
        """Return before when the bus does not turn to a kind."""
        t, others, many = self._t, self._columns[1 - kind], self._g.bank_groups
        last = max(others[group // many * many : (group // many + 1) * many])
        if kind == WRITE:
            return last + t["tRTW"]
        written = t["tCWL"] + t["tBL"]
        return max(last + written + t["tWTR_S"], others[group] + written + t["tWTR_L"])

    def _keep(self, turn: _Turn, kind: int, end: float, served: list[tuple[int, float]]) -> None:
        """Take over what was done until `end`: rows that were opened, and columns that were `served`."""
        t = self._t
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
            self._columns[kind][group] = max(self._columns[kind][group], at)
