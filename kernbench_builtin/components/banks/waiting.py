"""The bursts that wait for the banks of a pseudo-channel, sorted by what they need next, and when they may have it."""

from __future__ import annotations

import math
from collections import deque

from kernbench_builtin.components.banks.queues import READ, WRITE, Burst, BurstQueue

CLOSED = -1


class WaitingBursts:
    """Keep which row of each bank is open, which bursts wait for it, and the earliest time of each of its commands.

    `column_at`, `activate_at` and `precharge_at` are before when (ns) no command can come for those whose turn it is.
    They follow bursts as they come and commands as they are given: before, nothing is looked through.
    """

    #: Where the bursts come from; set by the queue.
    queue: BurstQueue

    def __init__(self, banks: int, groups: int) -> None:
        self._group = [bank // (banks // groups) for bank in range(banks)]
        self._open = [CLOSED] * banks
        self._rows: tuple[dict[int, dict[int, deque[Burst]]], ...] = ({}, {})
        self._first: tuple[dict[int, Burst], dict[int, Burst]] = ({}, {})
        #: Banks that bursts of a kind wait for: their row is open, none is, another one is.
        self._hit: tuple[set[int], set[int]] = (set(), set())
        self._closed: tuple[set[int], set[int]] = (set(), set())
        self._barred: tuple[set[int], set[int]] = (set(), set())
        # earliest time of each command, by bank, by bank group, and for the whole pseudo-channel
        self._bank_col = ([0.0] * banks, [0.0] * banks)
        self._bank_act = [0.0] * banks
        self._bank_pre = [0.0] * banks
        self._group_col = ([0.0] * groups, [0.0] * groups)
        self._group_act = [0.0] * groups
        self._col = [0.0, 0.0]
        self._act = 0.0
        self.column_at = self.activate_at = self.precharge_at = math.inf
        #: What `row` found, until when (ns) it holds, and when the next of its kind may come when it is given.
        self._row: Burst | None = None
        self._row_until = self._after_activation = self._after_precharge = math.inf

    def take_in(self, kind: int, burst: Burst) -> None:
        """Let a burst be chosen from now on; it is younger than all others."""
        bank, row = burst.bank, burst.row
        bank_rows = self._rows[kind].get(bank)
        if bank_rows is None:
            self._rows[kind][bank] = {row: deque((burst,))}
            self._first[kind][bank] = burst
            self._sort(kind, bank)
        elif row in bank_rows:
            bank_rows[row].append(burst)
        else:
            bank_rows[row] = deque((burst,))
            if row == self._open[bank]:
                self._barred[kind].discard(bank)
                self._row = None
                self._sort(kind, bank)

    def _sort(self, kind: int, bank: int) -> None:
        """Note what the bursts of a kind that wait for a bank need, and when they may have it."""
        row = self._open[bank]
        mine = kind == self.queue.mode
        if row == CLOSED:
            self._closed[kind].add(bank)
            if mine:
                time, of_group = self._bank_act[bank], self._group_act[self._group[bank]]
                if time < of_group:
                    time = of_group
                if time < self._act:
                    time = self._act
                if time < self.activate_at:
                    self.activate_at = time
                if time < self._after_activation:
                    self._after_activation = time
                if time < self._row_until:
                    self._row_until = time
        elif row in self._rows[kind][bank]:
            self._hit[kind].add(bank)
            if mine:
                time = self.may_come(kind, bank, row)
                if time < self.column_at:
                    self.column_at = time
        else:
            self._barred[kind].add(bank)
            if mine:
                time = self._bank_pre[bank]
                if time < self.precharge_at:
                    self.precharge_at = time
                if time < self._after_precharge:
                    self._after_precharge = time
                if time < self._row_until:
                    self._row_until = time

    def may_come(self, kind: int, bank: int, row: int) -> float:
        """Return before when (ns) the next command for a burst of a row cannot come as things stand."""
        opened = self._open[bank]
        if opened == CLOSED:
            time, rest, of_group = self._bank_act[bank], self._act, self._group_act[self._group[bank]]
        elif opened == row:
            time, rest, of_group = self._bank_col[kind][bank], self._col[kind], self._group_col[kind][self._group[bank]]
        else:
            return self._bank_pre[bank]
        if rest > time:
            time = rest
        return of_group if of_group > time else time

    def _set_open(self, bank: int, row: int) -> None:
        """Note which row of a bank that was closed is open, and what the bursts that wait for the bank need now."""
        self._open[bank] = row
        for kind in (READ, WRITE):
            if bank in self._rows[kind]:
                self._closed[kind].discard(bank)
                self._sort(kind, bank)

    def _set_closed(self, bank: int) -> None:
        """Note that no row of a bank is open, and that bursts that wait for it need an activation now."""
        self._open[bank] = CLOSED
        for kind in (READ, WRITE):
            if bank in self._rows[kind]:
                self._hit[kind].discard(bank)
                self._barred[kind].discard(bank)
                self._sort(kind, bank)

    def look_again(self) -> None:
        """Find when each kind of command may come, when it is the other kind's turn or the times have changed."""
        mode = self.queue.mode
        self.column_at = self.activate_at = self.precharge_at = math.inf
        self._row = None
        for bank in self._rows[mode]:
            self._hit[mode].discard(bank)
            self._closed[mode].discard(bank)
            self._barred[mode].discard(bank)
            self._sort(mode, bank)

    # Choosing -------------------------------------------------------------------------------------

    def column(self, now: float, blocked: int) -> Burst | None:
        """Return the oldest burst that may have its column command `now` and is not of the bank `blocked`."""
        mode, found, following = self.queue.mode, None, math.inf
        rows, opened, groups = self._rows[mode], self._open, self._group
        bank_col, group_col = self._bank_col[mode], self._group_col[mode]
        for bank in self._hit[mode]:
            if bank == blocked:
                continue
            time = bank_col[bank]
            if time < group_col[groups[bank]]:
                time = group_col[groups[bank]]
            if time <= now:
                burst = rows[bank][opened[bank]][0]
                if found is None or burst.seq < found.seq:
                    found = burst
            elif time < following:
                following = time
        if found is None:
            self.column_at = following
        return found

    def row(self, now: float, blocked: int) -> Burst | None:
        """Return the oldest burst whose bank may have a row command `now` and is not `blocked`."""
        found = self._row
        if found is not None and now < self._row_until and blocked < 0:
            return found
        mode, found, self._row_until = self.queue.mode, None, math.inf
        if self.activate_at <= now:
            found = self._activation(mode, now, blocked)
        elif self.activate_at < self._row_until:
            self._row_until = self.activate_at
        if self.precharge_at <= now:
            other = self._precharge(mode, now, blocked)
            if found is None or (other is not None and other.seq < found.seq):
                found = other
        elif self.precharge_at < self._row_until:
            self._row_until = self.precharge_at
        self._row = found
        return found

    def _activation(self, mode: int, now: float, blocked: int) -> Burst | None:
        found, more, following = None, False, math.inf
        bank_act, group_act, groups, first = self._bank_act, self._group_act, self._group, self._first[mode]
        for bank in self._closed[mode]:
            if bank == blocked:
                continue
            time = bank_act[bank]
            if time < group_act[groups[bank]]:
                time = group_act[groups[bank]]
            if time <= now:
                burst = first[bank]
                if burst.issued:
                    burst = self._oldest(mode, bank)
                if found is None:
                    found = burst
                    continue
                more = True
                if burst.seq < found.seq:
                    found = burst
            elif time < following:
                following = time
        self._after_activation = now if more else following
        if following < self._row_until:
            self._row_until = following
        if found is None:
            self.activate_at = following
        return found

    def _precharge(self, mode: int, now: float, blocked: int) -> Burst | None:
        found, more, following = None, False, math.inf
        bank_pre, first = self._bank_pre, self._first[mode]
        for bank in self._barred[mode]:
            if bank == blocked:
                continue
            time = bank_pre[bank]
            if time <= now:
                burst = first[bank]
                if burst.issued:
                    burst = self._oldest(mode, bank)
                if found is None:
                    found = burst
                    continue
                more = True
                if burst.seq < found.seq:
                    found = burst
            elif time < following:
                following = time
        self._after_precharge = now if more else following
        if following < self._row_until:
            self._row_until = following
        if found is None:
            self.precharge_at = following
        return found

    def _oldest(self, kind: int, bank: int) -> Burst:
        rows = iter(self._rows[kind][bank].values())
        first = next(rows)[0]
        for waiting in rows:
            if waiting[0].seq < first.seq:
                first = waiting[0]
        self._first[kind][bank] = first  # what comes later is younger
        return first
