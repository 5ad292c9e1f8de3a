"""One pseudo-channel with banks: when each of its commands may be given, and which of them comes first."""

from __future__ import annotations

import math
from collections import deque

from kernbench_builtin.components.banks.queues import Bank, BankLine, Burst, Gate, Requests, Side
from kernbench_builtin.components.banks.timing import ALL, CLOSED, NEVER, READ, WRITE, BankTiming
from kernbench_builtin.components.banks.waiting import WaitingBursts
from kernbench_core.wire import Wire

#: Column commands that are settled in one step when nothing can come between them: one 4 KiB chunk's share.
LOOKAHEAD = 32


class PseudoChannel(WaitingBursts):
    """Keep the banks of one pseudo-channel: open rows, the earliest time of each command, refreshes, what waits.

    `requests` is told of reads that are settled.
    """

    __slots__ = (
        "_act_takes", "_act_to_ref", "_apart", "_beat", "_burst_bytes", "_burst_takes", "_faw", "_in_group",
        "_of_stacks", "_per_bank", "_ppd", "_pre_takes", "_ras", "_rc", "_recent", "_ref_bank", "_requests", "_rp",
        "_rrd", "_rrd_group", "_same_group", "_to_column", "_to_data", "_to_other", "_to_precharge", "conflicts",
        "hits", "misses", "next_ref", "refreshes", "timing", "trace", "wire",
    )  # fmt: skip

    def __init__(
        self,
        wire: Wire,
        timing: BankTiming,
        banks: int,
        groups: int,
        stacks: int,
        burst_bytes: int,
        per_bank: bool,
        requests: Requests,
    ) -> None:
        """Make a pseudo-channel of so many banks, in `groups` of each of `stacks` stack IDs."""
        super().__init__(banks, groups * stacks)
        #: The gates of reads that a read of a stack ID holds up, by the number of its bank: those of the others.
        self._of_stacks: list[list[Gate]] = []
        if stacks > 1 and timing.tCCD_R > timing.tCCD_S:
            size = banks // (groups * stacks)
            gates = [self.lines[READ][first].gate for first in range(0, banks, size)]
            self._of_stacks = [
                [gate for number, gate in enumerate(gates) if (number - bank // size) % stacks]
                for bank in range(banks)
            ]  # fmt: skip
        self.wire = wire
        self.timing = timing
        self._burst_bytes = burst_bytes
        self._per_bank = per_bank
        self._requests = requests
        self._act_to_ref = 0.0
        self._recent: deque[float] = deque([-NEVER] * 4, maxlen=4)
        self._ref_bank = 0
        self._note_times(timing)
        #: When the next refresh is due, in ns.
        self.next_ref = timing.tREFI
        self.last_col = -NEVER
        #: How many column commands found their row open, their bank closed, or another row open.
        self.hits = self.misses = self.conflicts = 0
        self.refreshes = 0
        #: A list to keep (ns, command, bank, row) in, for tests; None keeps nothing.
        self.trace: list[tuple[float, str, int, int]] | None = None

    def _note_times(self, t: BankTiming) -> None:
        """Keep times as attributes, by kind of column command where it makes a difference."""
        written = t.tCWL + t.tBL
        # to the data, to a column command of the other kind, to the precharge
        self._to_data = [t.tCL, t.tCWL]
        self._to_other = [t.tRTW, written + t.tWTR_S]
        self._to_precharge = [t.tRTP, written + t.tWR]
        self._same_group = written + t.tWTR_L
        self._beat, self._in_group, self._apart, self._burst_takes = t.tCCD_S, t.tCCD_L, t.tCCD_R, t.tBL
        self._to_column = [t.tRCDRD, t.tRCDWR]
        self._ras, self._rc, self._rp, self._faw = t.tRAS, t.tRC, t.tRP, t.tFAW
        self._rrd, self._rrd_group = t.tRRD_S, t.tRRD_L
        self._act_takes, self._pre_takes, self._ppd = t.tACT, t.tPRE, t.tPPD

    def blocked(self) -> int:
        """Return the bank that a refresh that is due keeps from commands; `ALL` for all.

        They are all where its row waits for the burst that it was opened for, which others could put off for ever.
        """
        if self._per_bank:
            bank: Bank = self.banks[self._ref_bank]
            if bank.opener is None:
                return self._ref_bank
        return ALL

    # Commands -------------------------------------------------------------------------------------

    def give_columns(self, burst: Burst, now: float) -> None:
        """Give the column command of a burst, and with it those that will follow whatever else arrives.

        The next one is certain when it is the oldest of all, can come at the first time that the bus allows, and the
        other kind cannot have its turn before: too few writes are about, or too many for a read to go before them. That
        another pseudo-channel takes its clock cannot be: who gave a column command the shortest time before goes first.
        """
        queue, beat = self.queue, self._beat
        turn: Side = queue.sides[burst.line.kind]
        mode, to_data = turn.kind, self._to_data[READ]
        ahead = LOOKAHEAD if turn is queue.turn and queue.is_alone and (queue.only_reads or queue.certain()) else 1
        job, number, longest, start = burst.job, 0, 0.0, now
        given, time, following = 0, now, burst
        while True:
            if following.job is not job:
                if mode == READ:
                    end = time - beat + to_data + self._burst_takes
                    self._requests.settled(self, job, number, start + to_data, end, longest)
                job, number, longest, start = following.job, 0, 0.0, time
            if following.line.bank.opener is not following:
                turn.count -= 1
                turn.left = time
                if given:
                    turn.leaving.append(time)
            opening = self._take(mode, following, time)
            if opening > longest:
                longest = opening
            number += 1
            given += 1
            after = self._following(turn, time + beat) if given < ahead else None
            if after is None:
                break
            following = after
            time += beat
        self._after_columns(mode, time, given)
        if mode == READ:
            end = time + to_data + self._burst_takes
            self._requests.settled(self, job, number, start + to_data, end, longest)

    def _following(self, turn: Side, time: float) -> Burst | None:
        """Return the oldest burst, if it can have its column command at `time` ns and nothing can come before it."""
        order = turn.order
        while order:
            burst: Burst = order[0]
            if not burst.issued:
                break
            order.popleft()
        if not order or time >= self.next_ref or (turn.kind == WRITE and turn.count <= self.queue.drain_to):
            return None
        line = burst.line
        if line.bank.open != burst.row or line.column_at > time or line.gate.at > time:
            return None
        return burst

    def _take(self, mode: int, burst: Burst, time: float) -> float:
        """Take a burst out of its line, the oldest there of the open row, and note what its column command at `time` ns
        holds up; return how long its row opened.
        """
        line = burst.line
        bank, waiting, row, rows = line.bank, line.waiting, burst.row, line.rows
        mine: BankLine = self._mine[line.number]
        self._hold(bank, burst, time + self._to_precharge[mode])
        burst.issued = True
        oldest: Burst = waiting[0]
        while oldest.issued:
            waiting.popleft()
            if not waiting:
                break
            oldest = waiting[0]
        left = rows[row] - 1
        if left:
            rows[row] = left
            hit = oldest if oldest.row == row else line.find_hit(row)
            line.hit = hit
            if line is mine:
                line.move(self._for_column, hit)  # type: ignore[arg-type]
            else:
                line.leave()
        else:
            del rows[row]
            line.hit = None
            line.leave()
        if line is mine:
            if rows and oldest.row != row:
                self._wants_precharge(line, bank)
        elif mine.closing is not None:
            self._note_precharge(bank)
        if mine.closing is not None:
            self._closes = None
        line.gate.at = time + self._in_group
        if self._of_stacks and mode == READ:
            self._hold_stacks(line.number, time + self._apart)
        if mode == WRITE:
            reads: Gate = self.lines[READ][line.number].gate
            if reads.at < time + self._same_group:
                reads.at = time + self._same_group
        if self.trace is not None:
            self.trace.append((time, "RD" if mode == READ else "WR", bank.number, row))
        opening = bank.opening
        if not opening:
            self.hits += 1
            return 0.0
        bank.opening = 0.0
        if bank.conflict:
            self.conflicts += 1
        else:
            self.misses += 1
        return opening

    def _hold(self, bank: Bank, burst: Burst, until: float) -> None:
        """Keep the row of a bank open until `until` (ns) for a burst that has its column command."""
        if bank.opener is None:
            if bank.precharge_at < until:
                bank.precharge_at = until
            return
        if bank.held < until:
            bank.held = until
        if bank.opener is burst:
            bank.opener = None
            bank.precharge_at = bank.held
            self.openers -= 1

    def _hold_stacks(self, bank: int, until: float) -> None:
        """Keep reads of the other stack IDs than that of a bank from coming before `until` (ns)."""
        gate: Gate
        for gate in self._of_stacks[bank]:
            if gate.at < until:
                gate.at = until

    def _after_columns(self, mode: int, last: float, number: int) -> None:
        """Note what so many column commands, the last one at `last` ns, hold up beside their banks."""
        self.last_col = last
        col = self._col
        col[mode] = gate = last + self._beat
        of_other = last + self._to_other[mode]
        if col[1 - mode] < of_other:
            col[1 - mode] = of_other
        took = number * self._burst_takes
        self.wire.hold(number * self._burst_bytes, last + self._to_data[mode] + self._burst_takes - took, took)
        following = NEVER
        for _, burst in self._for_column:
            line = burst.line
            time, rest = line.column_at, col[line.kind]
            if time < line.gate.at:
                time = line.gate.at
            if time < rest:
                time = rest
            if time < following:
                following = time
                if time <= gate:
                    break
        self.column_at = following

    def give_row(self, burst: Burst, now: float) -> float:
        """Give the row command for the bank of a burst; return from when on the row-command bus is free then (ns)."""
        bank = burst.line.bank
        if bank.open == CLOSED:
            self._activate(burst, now)
            return now + self._act_takes
        bank.conflict = True
        self._closes = None
        self._pre = now + self._ppd
        if self.trace is not None:
            self.trace.append((now, "PRE", bank.number, bank.open))
        self.precharge_at = self._after_precharge if self._after_precharge > self._pre else self._pre
        self._close(bank, now)
        return now + self._pre_takes

    def _activate(self, burst: Burst, now: float) -> None:
        """Open the row of a burst in its bank, which is closed."""
        line = burst.line
        bank, number = line.bank, line.number
        to_column, (reads, writes) = self._to_column, self.lines
        self._opens = None
        bank.opening = to_column[line.kind] + self._rp if bank.conflict else to_column[line.kind]
        each: BankLine = reads[number]
        each.column_at = now + to_column[READ]
        each = writes[number]
        each.column_at = now + to_column[WRITE]
        bank.precharge_at = NEVER
        bank.held = now + self._ras
        bank.opener = burst
        self.openers += 1
        side: Side = self.queue.sides[line.kind]
        side.count -= 1
        side.left = now
        bank.activate_at = now + self._rc
        bank.gate.at = now + self._rrd_group
        self._act_to_ref = act = now + self._rrd
        recent = self._recent
        recent.append(now)
        of_four = recent[0] + self._faw
        if of_four > act:
            act = of_four
        self._act = act
        self.activate_at = self._after_activation if self._after_activation > act else act
        bank.open = burst.row
        line.hit = burst
        self._wants_column(line)
        if self.trace is not None:
            self.trace.append((now, "ACT", number, burst.row))

    def _close(self, bank: Bank, now: float) -> None:
        """Close the row of a bank: bursts that wait for the bank need an activation."""
        number = bank.number
        free = now + self._rp
        if bank.activate_at < free:
            bank.activate_at = free
        bank.open = CLOSED
        reads, writes = self.lines
        line: BankLine = reads[number]
        line.hit = None
        line = writes[number]
        line.hit = None
        line = self._mine[number]
        if line.rows:
            self._wants_activation(line, bank)
        else:
            line.stop_closing(self._for_precharge)

    # Refresh --------------------------------------------------------------------------------------

    def maintenance_at(self, now: float) -> float:
        """Return when the next command of a refresh may come; before it is due, when it is."""
        due = self.next_ref
        if due > now:
            return due
        banks = self._of_refresh()
        opened = [bank.precharge_at for bank in banks if bank.open != CLOSED]
        if opened:
            return max(due, self._pre, max(opened))
        if self._per_bank:
            return max(due, self._act_to_ref, self.banks[self._ref_bank].activate_at)
        return max(due, max([bank.activate_at for bank in banks]))

    def _of_refresh(self) -> list[Bank]:
        """Return the banks that the next refresh is of."""
        return [self.banks[self._ref_bank]] if self._per_bank else self.banks

    def maintain(self, now: float) -> None:
        """Close what a refresh that is due needs closed, or else refresh."""
        t, banks = self.timing, self._of_refresh()
        opened = [bank for bank in banks if bank.open != CLOSED]
        if opened:
            self._note(now, "PREpb" if self._per_bank else "PREA", opened[0])
            self._pre = now + self._ppd
            for bank in opened:
                self._close(bank, now)
            self.look_again()
            return
        self._note(now, "REFpb" if self._per_bank else "REF", self.banks[self._ref_bank])
        for bank in banks:
            bank.activate_at = now + (t.tRFCpb if self._per_bank else t.tRFC)
            bank.conflict = False
            bank.opening = 0.0
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
        if number > 0 and max([bank.open for bank in self.banks]) == CLOSED:
            banks = len(self.banks)
            for place in range(self._ref_bank, self._ref_bank + min(banks, number if self._per_bank else banks)):
                bank = self.banks[place % banks]
                bank.conflict = False
                bank.opening = 0.0
            self._count_refresh(number)

    def _count_refresh(self, number: int) -> None:
        self.refreshes += number
        self.next_ref += number * self.timing.tREFI
        if self._per_bank:
            self._ref_bank = (self._ref_bank + number) % len(self.banks)

    def _note(self, now: float, what: str, bank: Bank) -> None:
        if self.trace is not None:
            self.trace.append((now, what, bank.number, bank.open))
