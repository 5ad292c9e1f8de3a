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

_NO_BANK: set[int] = set()
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
        super().__init__(banks)
        self.wire = wire
        self.timing = timing
        self._burst_bytes = burst_bytes
        self._per_bank = per_bank
        self._on_read = on_read
        self._group = [bank // (banks // groups) for bank in range(banks)]
        self._opening = [0.0] * banks
        self._conflict = [False] * banks
        # earliest time of each command, by bank, by bank group, and for the whole pseudo-channel
        self._bank_col = ([0.0] * banks, [0.0] * banks)
        self._bank_act = [0.0] * banks
        self._bank_pre = [0.0] * banks
        self._group_col = ([0.0] * groups, [0.0] * groups)
        self._group_act = [0.0] * groups
        self._col = [0.0, 0.0]
        self._act = 0.0
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
        #: What `scan` found: the oldest that may have a column command, or a row command, and when another one may.
        self.column: Burst | None = None
        self.row: Burst | None = None
        self.next = math.inf
        self._ready_acts = self._ready_pres = 0
        self._next_col = self._next_act = self._next_pre = math.inf
        #: How many column commands found their row open, their bank closed, or another row open.
        self.hits = self.misses = self.conflicts = 0
        self.refreshes = 0
        #: A list to keep (ns, command, bank, row) in, for tests; None keeps nothing.
        self.trace: list[tuple[float, str, int, int]] | None = None

    def earliest(self, kind: int, burst: Burst) -> float:
        """Return before when no command for a burst can come as things stand."""
        bank = burst.bank
        group = self._group[bank]
        row = self._open[bank]
        if row == burst.row:
            return max(self._bank_col[kind][bank], self._group_col[kind][group], self._col[kind])
        if row != CLOSED:
            return self._bank_pre[bank]
        return max(self._bank_act[bank], self._group_act[group], self._act, self._recent[0] + self.timing.tFAW)

    # Choosing -------------------------------------------------------------------------------------

    def scan(self, now: float, row_free: float) -> None:
        """Find the oldest column command and the oldest row command that may come `now`, and before when no other may.

        The row-command bus is free from `row_free` on.
        """
        self.dirty = False
        due = self.next_ref <= now
        if due and not self._per_bank:
            self.column = self.row = None
            self.next = math.inf
            return
        self._scan_columns(now, self._ref_bank if due else -1)
        self._scan_rows(now, row_free, self._ref_bank if due else -1)
        self.next = min(self._next_col, self._next_act, max(self._next_pre, row_free))

    def _scan_columns(self, now: float, blocked: int) -> None:
        mode, found, following = self.queue.mode, None, math.inf
        rows, opened, groups = self._rows[mode], self._open, self._group
        bank_col, group_col, any_col = self._bank_col[mode], self._group_col[mode], self._col[mode]
        for bank in self._hit[mode]:
            if bank == blocked:
                continue
            time = bank_col[bank]
            if time < any_col:
                time = any_col
            if time < group_col[groups[bank]]:
                time = group_col[groups[bank]]
            if time <= now:
                burst = rows[bank][opened[bank]][0]
                if found is None or burst.seq < found.seq:
                    found = burst
            elif time < following:
                following = time
        self.column, self._next_col = found, following

    def _scan_rows(self, now: float, row_free: float, blocked: int) -> None:
        mode, found, acts, pres = self.queue.mode, None, 0, 0
        next_act = next_pre = math.inf
        bank_act, group_act, groups = self._bank_act, self._group_act, self._group
        closed, any_act = self._closed[mode], self._any_act(row_free)
        if any_act > now:
            if closed:
                next_act = any_act
            closed = _NO_BANK
        for bank in closed:
            if bank == blocked:
                continue
            time = bank_act[bank]
            if time < group_act[groups[bank]]:
                time = group_act[groups[bank]]
            if time > now:
                if time < next_act:
                    next_act = time
                continue
            acts += 1
            burst = self._oldest(mode, bank)
            if found is None or burst.seq < found.seq:
                found = burst
        for bank in self._barred[mode]:
            time = self._bank_pre[bank]
            if bank == blocked:
                continue
            if time > now or row_free > now:
                if time < next_pre:
                    next_pre = time
                continue
            pres += 1
            burst = self._oldest(mode, bank)
            if found is None or burst.seq < found.seq:
                found = burst
        self.row, self._ready_acts, self._ready_pres = found, acts, pres
        self._next_act, self._next_pre = next_act, next_pre

    def _any_act(self, row_free: float) -> float:
        return max(self._act, self._recent[0] + self.timing.tFAW, row_free)

    def _wait_after_row(self, bank: int, now: float, row_free: float) -> None:
        """Note before when nothing may come, after a row command for `bank`: what `scan` found else still holds."""
        mode = self.queue.mode
        any_act = self._any_act(row_free)
        if self._open[bank] == CLOSED:
            self._ready_pres -= 1
            self._next_act = min(self._next_act, self._bank_act[bank])
        else:
            self._ready_acts -= 1
            self._next_col = min(self._next_col, max(self._bank_col[mode][bank], self._col[mode]))
        act = max(now if self._ready_acts else self._next_act, any_act)
        pre = max(now if self._ready_pres else self._next_pre, row_free)
        self.next = min(self._next_col, act, pre)

    # Commands -------------------------------------------------------------------------------------

    def give_columns(self, now: float) -> None:
        """Give the column command that was found, and with it those that will follow whatever else arrives.

        The next one is certain when it is the oldest of all, can come at the first time that the bus allows, and the
        other kind cannot have its turn before: too few writes are about, or too many for a read to go before them. That
        another pseudo-channel takes its clock cannot be: who gave a column command the shortest time before goes first.
        """
        burst, queue = self.column, self.queue
        assert burst is not None
        mode, order, leaving = queue.mode, queue.order[queue.mode], queue.leaving[queue.mode]
        bank_col, group_col, groups = self._bank_col[mode], self._group_col[mode], self._group
        counts, low = queue.count, queue.sizes.drain_to if mode == WRITE else -1
        writes = counts[WRITE] + len(queue.leaving[WRITE]) + len(queue.ingress[WRITE])
        certain = len(queue.places) == 1 and (mode == WRITE or writes < queue.sizes.drain_from)
        # inlined in the loop for speed: taking a burst out, and the rules of a column command (a stream -25 %)
        opened, rows, turn_group = self._open, self._rows[mode], self._group_col[READ]
        tCCD_S, tCCD_L, next_ref = self.timing.tCCD_S, self.timing.tCCD_L, self.next_ref  # noqa: N806
        to_data, _, to_pre = self._after[mode]
        burst_time, last = self.timing.tBL, now
        time, hits, conflicts, given = now, 0, 0, 0
        number, job, longest, start = 0, burst.job, 0.0, now
        for _ in range(LOOKAHEAD):
            bank, row = burst.bank, burst.row
            bank_rows = rows[bank]
            waiting = bank_rows[row]
            waiting.popleft()
            if not waiting:
                del bank_rows[row]
                if not bank_rows:
                    del rows[bank]
                self._sort(mode, bank)
            burst.issued = True
            counts[mode] -= 1
            opening = self._opening[bank]
            if opening:
                self._opening[bank] = 0.0
                conflicts += self._conflict[bank]
            else:
                hits += 1
            group = groups[bank]
            group_col[group] = time + tCCD_L
            if mode == WRITE:
                turn_group[group] = max(turn_group[group], time + self._same_group)
            if self._bank_pre[bank] < time + to_pre:
                self._bank_pre[bank] = time + to_pre
            if self.trace is not None:
                self.trace.append((time, "RD" if mode == READ else "WR", bank, row))
            if burst.job is not job:
                if mode == READ:
                    self._on_read(self, job, number, start + to_data, last + to_data + burst_time, longest)
                job, number, longest, start = burst.job, 0, 0.0, time
            number += 1
            given += 1
            if opening > longest:
                longest = opening
            if time > now:
                leaving.append(time)
            last = time
            time += tCCD_S
            while order and order[0].issued:
                order.popleft()
            if not order or not certain or counts[WRITE] <= low:
                break
            burst = order[0]
            bank = burst.bank
            if opened[bank] != burst.row or time >= next_ref:
                break
            if bank_col[bank] > time or group_col[groups[bank]] > time:
                break
        self.hits += hits
        self.conflicts += conflicts
        self.misses += given - hits - conflicts
        self._after_columns(mode, last, given)
        if mode == READ:
            self._on_read(self, job, number, start + to_data, last + to_data + burst_time, longest)

    def _after_columns(self, mode: int, last: float, number: int) -> None:
        """Note what so many column commands, the last one at `last` ns, hold up beside their banks."""
        t, wire = self.timing, self.wire
        to_data, to_other, _ = self._after[mode]
        self.last_col = last
        self._col[mode] = last + t.tCCD_S
        self._col[1 - mode] = max(self._col[1 - mode], last + to_other)
        took = number * t.tBL
        wire.hold(number * self._burst_bytes, last + to_data + t.tBL - took, took)

    def give_row(self, now: float) -> float:
        """Give the row command that was found; return from when on the row-command bus is free then (ns)."""
        burst = self.row
        assert burst is not None
        bank = burst.bank
        if self._open[bank] == CLOSED:
            self._activate(burst, now)
            row_free = now + self.timing.tACT
        else:
            self._conflict[bank] = True
            if self.trace is not None:
                self.trace.append((now, "PRE", bank, self._open[bank]))
            self._close(bank, now)
            row_free = now + self.timing.tPRE
        self.row = None
        self._wait_after_row(bank, now, row_free)
        return row_free

    def _activate(self, burst: Burst, now: float) -> None:
        t, bank = self.timing, burst.bank
        group = self._group[bank]
        self._set_open(bank, burst.row)
        opening = t.tRCDRD if self.queue.mode == READ else t.tRCDWR
        self._opening[bank] = opening + (t.tRP if self._conflict[bank] else 0.0)
        self._bank_col[READ][bank] = now + t.tRCDRD
        self._bank_col[WRITE][bank] = now + t.tRCDWR
        self._bank_pre[bank] = now + t.tRAS
        self._bank_act[bank] = now + t.tRC
        self._group_act[group] = now + t.tRRD_L
        self._act = self._act_to_ref = now + t.tRRD_S
        self._recent.append(now)
        if self.trace is not None:
            self.trace.append((now, "ACT", bank, burst.row))

    def _close(self, bank: int, now: float) -> None:
        self._set_open(bank, CLOSED)
        self._bank_act[bank] = max(self._bank_act[bank], now + self.timing.tRP)

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
        self.dirty = True
        opened = [bank for bank in banks if self._open[bank] != CLOSED]
        if opened:
            self._note(now, "PREpb" if self._per_bank else "PREA", opened[0])
            for bank in opened:
                self._close(bank, now)
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

    def skip_refreshes(self, now: float) -> None:
        """Count refreshes that were over before `now` in idle time, all but those whose traces are left then."""
        t = self.timing
        lasts = 2 * (t.tRC + t.tRP + t.tWR + max(t.tRFC, t.tRFCpb))
        number = math.floor((now - lasts - self.next_ref) / t.tREFI)
        if number > 0:
            banks = len(self._open)
            many = number if self._per_bank else banks
            for bank in range(self._ref_bank, self._ref_bank + min(banks, many)):
                self._set_open(bank % banks, CLOSED)
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
