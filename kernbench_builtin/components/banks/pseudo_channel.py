"""One pseudo-channel with banks: when each of its commands may be given, and which of them comes first."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from kernbench_builtin.components.banks.queues import READ, WRITE, Burst
from kernbench_builtin.components.banks.timing import BankTiming
from kernbench_builtin.components.banks.waiting import CLOSED, WaitingBursts
from kernbench_core.wire import Wire

#: Column commands that are settled in one step when nothing can come between them: one 4 KiB chunk's share.
LOOKAHEAD = 32


class PseudoChannel(WaitingBursts):
    """Keep the banks of one pseudo-channel: open rows, the earliest time of each command, refreshes, what waits.

    `on_read(place, job, number, start, end, opening)` is called when so many bursts of a read are settled, with data
    from `start` to `end` (ns; `opening` is the longest that one of their rows took to open).
    """

    def __init__(
        self,
        wire: Wire,
        timing: BankTiming,
        banks: int,
        groups: int,
        burst_bytes: int,
        per_bank: bool,
        on_read: Callable[[PseudoChannel, Any, int, float, float, float], None],
    ) -> None:
        super().__init__(banks, groups)
        self.wire = wire
        self.timing = timing
        self._burst_bytes = burst_bytes
        self._per_bank = per_bank
        self._on_read = on_read
        self._opening = [0.0] * banks
        self._conflict = [False] * banks
        self._act_to_ref = 0.0
        self._recent: deque[float] = deque([-math.inf] * 4, maxlen=4)
        self._ref_bank = 0
        t, written = timing, timing.tCWL + timing.tBL
        # of each kind of column command: to its data, to a column command of the other kind, to the precharge
        self._after = ((t.tCL, t.tRTW, t.tRTP), (t.tCWL, written + t.tWTR_S, written + t.tWR))
        self._same_group = written + t.tWTR_L
        #: When the next refresh is due, in ns.
        self.next_ref = timing.tREFI
        #: When the last column command that is settled comes.
        self.last_col = -math.inf
        #: How many column commands found their row open, their bank closed, or another row open.
        self.hits = self.misses = self.conflicts = 0
        self.refreshes = 0
        #: A list to keep (ns, command, bank, row) in, for tests; None keeps nothing.
        self.trace: list[tuple[float, str, int, int]] | None = None

    def blocked(self) -> int | None:
        """Return the bank that a refresh that is due keeps from commands; None for all."""
        return self._ref_bank if self._per_bank else None

    # Commands -------------------------------------------------------------------------------------

    def give_columns(self, burst: Burst, now: float) -> None:
        """Give the column command of a burst, and with it those that will follow whatever else arrives.

        The next one is certain when it is the oldest of all, can come at the first time that the bus allows, and the
        other kind cannot have its turn before: too few writes are about, or too many for a read to go before them. That
        another pseudo-channel takes its clock cannot be: who gave a column command the shortest time before goes first.
        """
        mode = self.queue.mode
        leaving, beat = self.queue.leaving[mode], self.timing.tCCD_S
        ahead = LOOKAHEAD if self.queue.certain(mode) else 1
        job, number, longest, start = burst.job, 0, 0.0, now
        given, time, following = 0, now, burst
        while True:
            if following.job is not job:
                if mode == READ:
                    self._settled(job, number, start, time - beat, longest)
                job, number, longest, start = following.job, 0, 0.0, time
            opening = self._take(mode, following, time)
            if opening > longest:
                longest = opening
            number += 1
            given += 1
            after = self._following(mode, time + beat) if given < ahead else None
            if after is None:
                break
            following = after
            time += beat
            leaving.append(time)
        self._after_columns(mode, time, given)
        if mode == READ:
            self._settled(job, number, start, time, longest)

    def _following(self, mode: int, time: float) -> Burst | None:
        """Return the oldest burst, if it can have its column command at `time` ns and nothing can come before it."""
        queue = self.queue
        order = queue.order[mode]
        while order and order[0].issued:
            order.popleft()
        if not order or time >= self.next_ref or (mode == WRITE and queue.count[WRITE] <= queue.sizes.drain_to):
            return None
        burst = order[0]
        bank = burst.bank
        if self._open[bank] != burst.row or self._bank_col[mode][bank] > time:
            return None
        return None if self._group_col[mode][self._group[bank]] > time else burst

    def _settled(self, job: Any, number: int, first: float, last: float, opening: float) -> None:
        """Tell of so many reads of a request, from the command at `first` to that at `last` ns."""
        to_data = self.timing.tCL
        self._on_read(self, job, number, first + to_data, last + to_data + self.timing.tBL, opening)

    def _take(self, mode: int, burst: Burst, time: float) -> float:
        """Take a burst out, and note what its column command at `time` ns holds up; return how long its row opened."""
        bank, row = burst.bank, burst.row
        bank_rows = self._rows[mode][bank]
        waiting = bank_rows[row]
        waiting.popleft()
        burst.issued = True
        self.queue.count[mode] -= 1
        free = time + self._after[mode][2]
        if self._bank_pre[bank] < free:
            self._bank_pre[bank] = free
        if not waiting:
            del bank_rows[row]
            self._hit[mode].discard(bank)
            if bank_rows:
                self._sort(mode, bank)
            else:
                del self._rows[mode][bank]
        group = self._group[bank]
        self._group_col[mode][group] = time + self.timing.tCCD_L
        if mode == WRITE and self._group_col[READ][group] < time + self._same_group:
            self._group_col[READ][group] = time + self._same_group
        if self.trace is not None:
            self.trace.append((time, "RD" if mode == READ else "WR", bank, row))
        opening = self._opening[bank]
        if not opening:
            self.hits += 1
            return 0.0
        self._opening[bank] = 0.0
        if self._conflict[bank]:
            self.conflicts += 1
        else:
            self.misses += 1
        return opening

    def _after_columns(self, mode: int, last: float, number: int) -> None:
        """Note what so many column commands, the last one at `last` ns, hold up beside their banks."""
        t, wire = self.timing, self.wire
        to_data, to_other, _ = self._after[mode]
        self.last_col = last
        self._col[mode] = gate = last + t.tCCD_S
        if self._col[1 - mode] < last + to_other:
            self._col[1 - mode] = last + to_other
        took = number * t.tBL
        wire.hold(number * self._burst_bytes, last + to_data + t.tBL - took, took)
        following, bank_col, group_col, groups = math.inf, self._bank_col[mode], self._group_col[mode], self._group
        for bank in self._hit[mode]:
            time, of_group = bank_col[bank], group_col[groups[bank]]
            if time < of_group:
                time = of_group
            if time < following:
                following = time
                if time <= gate:
                    following = gate
                    break
        self.column_at = following

    def give_row(self, burst: Burst, now: float) -> float:
        """Give the row command for the bank of a burst; return from when on the row-command bus is free then (ns)."""
        bank = burst.bank
        self._row = None
        if self._open[bank] == CLOSED:
            self._activate(burst, now)
            return now + self.timing.tACT
        self._conflict[bank] = True
        if self.trace is not None:
            self.trace.append((now, "PRE", bank, self._open[bank]))
        self.precharge_at = self._after_precharge
        if self._bank_act[bank] < now + self.timing.tRP:
            self._bank_act[bank] = now + self.timing.tRP
        self._set_closed(bank)
        return now + self.timing.tPRE

    def _activate(self, burst: Burst, now: float) -> None:
        t, bank = self.timing, burst.bank
        opening = t.tRCDRD if self.queue.mode == READ else t.tRCDWR
        self._opening[bank] = opening + (t.tRP if self._conflict[bank] else 0.0)
        self._bank_col[READ][bank] = now + t.tRCDRD
        self._bank_col[WRITE][bank] = now + t.tRCDWR
        self._bank_pre[bank] = now + t.tRAS
        self._bank_act[bank] = now + t.tRC
        self._group_act[self._group[bank]] = now + t.tRRD_L
        self._act_to_ref = now + t.tRRD_S
        self._recent.append(now)
        act = self._recent[0] + t.tFAW
        self._act = act = act if act > self._act_to_ref else self._act_to_ref
        self.activate_at = self._after_activation if self._after_activation > act else act
        self._set_open(bank, burst.row)
        if self.trace is not None:
            self.trace.append((now, "ACT", bank, burst.row))

    def _close(self, bank: int, now: float) -> None:
        if self._bank_act[bank] < now + self.timing.tRP:
            self._bank_act[bank] = now + self.timing.tRP
        self._set_closed(bank)

    # Refresh --------------------------------------------------------------------------------------

    def maintenance_at(self, now: float) -> float:
        """Return when the next command of a refresh may come; before it is due, when it is."""
        due = self.next_ref
        if due > now:
            return due
        banks = (self._ref_bank,) if self._per_bank else range(len(self._open))
        opened = [self._bank_pre[bank] for bank in banks if self._open[bank] != CLOSED]
        if opened:
            return max(due, *opened)
        if self._per_bank:
            return max(due, self._bank_act[self._ref_bank], self._act_to_ref)
        return max(due, *self._bank_act)

    def maintain(self, now: float) -> None:
        """Close what a refresh that is due needs closed, or else refresh."""
        t, banks = self.timing, (self._ref_bank,) if self._per_bank else range(len(self._open))
        opened = [bank for bank in banks if self._open[bank] != CLOSED]
        if opened:
            self._note(now, "PREpb" if self._per_bank else "PREA", opened[0])
            for bank in opened:
                self._close(bank, now)
            self.look_again()
            return
        self._note(now, "REFpb" if self._per_bank else "REF", self._ref_bank)
        for bank in banks:
            self._bank_act[bank] = now + (t.tRFCpb if self._per_bank else t.tRFC)
            self._conflict[bank] = False
            self._opening[bank] = 0.0
        if self._per_bank:
            self._act = max(self._act, now + t.tRREFD)
            self._act_to_ref = now + t.tRREFD
        self._count_refresh(1)
        self.look_again()

    def skip_refreshes(self, now: float) -> None:
        """Count refreshes that were over before `now` in idle time, all but those whose traces are left then.

        Those that close a row are given instead: what a trace has of a bank ends with its precharge.
        """
        t = self.timing
        lasts = 2 * (t.tRC + t.tRP + t.tWR + max(t.tRFC, t.tRFCpb))
        number = math.floor((now - lasts - self.next_ref) / t.tREFI)
        if number > 0 and max(self._open) == CLOSED:
            banks = len(self._open)
            many = number if self._per_bank else banks
            for bank in range(self._ref_bank, self._ref_bank + min(banks, many)):
                self._conflict[bank % banks] = False
                self._opening[bank % banks] = 0.0
            self._count_refresh(number)

    def _count_refresh(self, number: int) -> None:
        self.refreshes += number
        self.next_ref += number * self.timing.tREFI
        if self._per_bank:
            self._ref_bank = (self._ref_bank + number) % len(self._open)

    def _note(self, now: float, what: str, bank: int) -> None:
        if self.trace is not None:
            self.trace.append((now, what, bank, self._open[bank]))
