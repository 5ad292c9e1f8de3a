"""One pseudo-channel with banks: when each command may be given, and which request comes next."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from kernbench_builtin.components.banks.timing import BankTiming, QueueSizes
from kernbench_core.environment import Environment
from kernbench_core.wire import Wire

READ, WRITE = 0, 1
CLOSED = -1
#: Column commands that are settled in one step when nothing can come between them: one 4 KiB chunk's share.
LOOKAHEAD = 32


class Burst:
    """Be one burst of a request, from its arrival (ns) to its column command."""

    __slots__ = ("at", "bank", "issued", "job", "last", "row", "seq")

    def __init__(self, at: float, bank: int, row: int, job: Any) -> None:
        self.at = at
        self.bank = bank
        self.row = row
        self.job = job
        self.seq = 0
        self.issued = False
        #: Whether it is the last of its request in this channel: when it is taken in is an answer's time.
        self.last = False


class _Wake:
    """Be the event that wakes a channel; one that was overtaken by an earlier one does nothing."""

    __slots__ = ("callbacks", "time")

    _ok = True
    _value = None

    def __init__(self, time: float) -> None:
        self.callbacks: Any = None
        self.time = time


class BankChannel:
    """Schedule one channel: FR-FCFS over open pages, writes kept back and drained, refresh of all banks at once.

    `on_read(burst, start, end, opening)` and `on_write(burst, now)` are called when a read's data is settled for
    `start` to `end` (ns; `opening` is what its row took to open) and when a write is taken into its queue.
    """

    def __init__(
        self,
        env: Environment,
        wire: Wire,
        timing: BankTiming,
        banks: int,
        groups: int,
        sizes: QueueSizes,
        burst_bytes: int,
        on_read: Callable[[BankChannel, Burst, float, float, float], None],
        on_write: Callable[[Burst, float], None],
    ) -> None:
        self.env = env
        self.wire = wire
        self.timing = timing
        self._burst_bytes = burst_bytes
        self._on_read = on_read
        self._on_write = on_write
        self._group = [bank // (banks // groups) for bank in range(banks)]
        self._sizes = sizes
        self._depth = (sizes.reads, sizes.writes)
        self._ingress: tuple[deque[Burst], deque[Burst]] = (deque(), deque())
        self._order: tuple[deque[Burst], deque[Burst]] = (deque(), deque())
        self._rows: tuple[dict[int, dict[int, deque[Burst]]], ...] = ({}, {})
        self._count = [0, 0]
        #: When column commands that are settled already will be given: until then their bursts are in the queue.
        self._leaving: tuple[deque[float], deque[float]] = (deque(), deque())
        self._seq = 0
        self._mode = READ
        self._open = [CLOSED] * banks
        self._opening = [0.0] * banks
        self._conflict = [False] * banks
        # earliest time of each command, by bank, by bank group, and for the whole channel
        self._bank_col = ([0.0] * banks, [0.0] * banks)
        self._bank_act = [0.0] * banks
        self._bank_pre = [0.0] * banks
        self._group_col = ([0.0] * groups, [0.0] * groups)
        self._group_act = [0.0] * groups
        self._col = [0.0, 0.0]
        self._act = 0.0
        self._recent: deque[float] = deque([-math.inf] * 4, maxlen=4)
        self._next_ref = timing.tREFI
        self._wake_at = math.inf
        #: How many column commands found their row open, their bank closed, or another row open.
        self.hits = self.misses = self.conflicts = 0
        self.refreshes = 0
        #: A list to keep (ns, command, bank, row) in, for tests; None keeps nothing.
        self.trace: list[tuple[float, str, int, int]] | None = None

    def add(self, kind: int, bursts: list[Burst]) -> None:
        """Take in bursts in the order in which they arrive; each counts from its own time on."""
        bursts[-1].last = True
        self._ingress[kind].extend(bursts)
        self._wake(max(bursts[0].at, self.env.now))

    # Waking ---------------------------------------------------------------------------------------

    def _wake(self, time: float) -> None:
        if time < self._wake_at:
            self._wake_at = time
            wake: Any = _Wake(time)
            self.env.call_at(time, wake, self._on_wake)

    def _on_wake(self, wake: Any) -> None:
        if wake.time != self._wake_at:
            return
        self._wake_at = math.inf
        now = wake.time
        if self._next_ref <= now:
            self._refresh(now)
        following = self._admit(now)
        while True:
            self._choose_mode()
            acted, next_time = self._scan(now)
            if not acted:
                break
            following = self._admit(now)
        following = self._next_event(now, following, next_time)
        if following < math.inf:
            self._wake(following)

    def _admit(self, now: float) -> float:
        """Take waiting bursts into the queues, where there is room; return when the next one arrives."""
        following = math.inf
        for kind in (READ, WRITE):
            ingress, order, rows = self._ingress[kind], self._order[kind], self._rows[kind]
            leaving = self._leaving[kind]
            while leaving and leaving[0] <= now:
                leaving.popleft()
            taken = len(leaving)
            room = self._depth[kind] - self._count[kind] - taken
            while ingress and room:
                burst = ingress[0]
                if burst.at > now:
                    following = min(following, burst.at)
                    break
                ingress.popleft()
                room -= 1
                self._seq += 1
                burst.seq = self._seq
                order.append(burst)
                bank_rows = rows.get(burst.bank)
                if bank_rows is None:
                    rows[burst.bank] = {burst.row: deque((burst,))}
                elif burst.row in bank_rows:
                    bank_rows[burst.row].append(burst)
                else:
                    bank_rows[burst.row] = deque((burst,))
                if kind == WRITE:
                    self._on_write(burst, now)
            if ingress and not room and leaving:
                following = min(following, max(leaving[0], ingress[0].at))
            self._count[kind] = self._depth[kind] - taken - room
        return following

    def _next_event(self, now: float, following: float, next_time: float) -> float:
        """Return when to wake: at the next command, or before it where what arrives may change something.

        `following` is when the next burst can be taken in, `next_time` when the next command can come.
        """
        mode = self._mode
        idle = [not (self._count[k] or self._leaving[k] or self._ingress[k]) for k in (READ, WRITE)]
        if self._leaving[mode] and not idle[1 - mode]:
            next_time = min(next_time, self._leaving[mode][-1])  # the other kind may have its turn then
        if following < next_time and idle[READ]:
            next_time = self._next_arrival(WRITE, min(next_time, self._next_ref))
        elif following < next_time and idle[WRITE]:
            next_time = self._next_arrival(READ, min(next_time, self._next_ref))
        else:
            next_time = min(next_time, following)
        return min(next_time, self._next_ref) if self._count[READ] or self._count[WRITE] else next_time

    def _next_arrival(self, kind: int, before: float) -> float:
        """Return when a burst that comes first changes anything, where only one kind is about; at the latest `before`.

        One that neither ends a write nor can have a command when it is taken in may as well be taken in later.
        """
        arrival = 0.0
        room = self._depth[kind] - self._count[kind] - len(self._leaving[kind])
        slots = iter(self._leaving[kind])
        for burst in self._ingress[kind]:
            arrival = max(arrival, burst.at)
            if room:
                room -= 1
            else:
                arrival = max(arrival, next(slots, math.inf))
            if arrival >= before:
                break
            if burst.last and kind == WRITE:
                return arrival
            before = min(before, max(arrival, self._earliest(kind, burst)))
        return before

    def _earliest(self, kind: int, burst: Burst) -> float:
        """Return before when no command for a burst can come as things stand."""
        bank = burst.bank
        group = self._group[bank]
        row = self._open[bank]
        if row == burst.row:
            return max(self._bank_col[kind][bank], self._group_col[kind][group], self._col[kind])
        if row != CLOSED:
            return self._bank_pre[bank]
        return max(self._bank_act[bank], self._group_act[group], self._act, self._recent[0] + self.timing.tFAW)

    def _choose_mode(self) -> None:
        """Drain writes from the upper mark or when no read waits, down to the lower mark or to the last."""
        reads, writes = (self._count[kind] + len(self._leaving[kind]) for kind in (READ, WRITE))
        if self._mode == READ:
            if writes and (writes >= self._sizes.drain_from or not reads):
                self._mode = WRITE
        elif not writes or (reads and writes <= self._sizes.drain_to):
            self._mode = READ

    # Choosing commands ----------------------------------------------------------------------------

    def _scan(self, now: float) -> tuple[bool, float]:
        """Give what can be given now: the oldest ready column command, the oldest activation, precharges.

        Return whether anything was given, and else when the next command can be.
        """
        mode, groups, opened, bank_pre = self._mode, self._group, self._open, self._bank_pre
        bank_col, group_col, any_col = self._bank_col[mode], self._group_col[mode], self._col[mode]
        bank_act, group_act = self._bank_act, self._group_act
        any_act = max(self._act, self._recent[0] + self.timing.tFAW)
        column: Burst | None = None
        activate: Burst | None = None
        precharge: list[int] = []
        following = math.inf
        for bank, rows in self._rows[mode].items():
            row = opened[bank]
            if row in rows:
                time = bank_col[bank]
                if time < any_col:
                    time = any_col
                if time < group_col[groups[bank]]:
                    time = group_col[groups[bank]]
                if time <= now:
                    burst = rows[row][0]
                    if column is None or burst.seq < column.seq:
                        column = burst
            elif row == CLOSED:
                time = bank_act[bank]
                if time < any_act:
                    time = any_act
                if time < group_act[groups[bank]]:
                    time = group_act[groups[bank]]
                if time <= now:
                    burst = next(iter(rows.values()))[0]
                    if activate is None or burst.seq < activate.seq:
                        activate = burst
            else:
                time = bank_pre[bank]
                if time <= now:
                    precharge.append(bank)
            if now < time < following:
                following = time
        for bank in precharge:
            self._precharge(bank, now)
        if activate is not None:
            self._activate(activate, now)
        if column is not None:
            self._columns(column, now)
        return bool(precharge) or activate is not None or column is not None, following

    def _columns(self, burst: Burst, now: float) -> None:
        """Give a column command, and with it those that will follow it whatever else arrives.

        The next one is certain when it is the oldest of all, can come at the first time that the bus allows, and the
        other kind cannot have its turn before: no write is about, or too many are for a read to go before them.
        """
        mode, order = self._mode, self._order[self._mode]
        bank_col, group_col = self._bank_col[mode], self._group_col[mode]
        writes, low = self._count, self._sizes.drain_to if mode == WRITE else -1
        certain = mode == WRITE or not (writes[WRITE] or self._ingress[WRITE])
        time = now
        for _ in range(LOOKAHEAD):
            self._column(burst, time)
            if time > now:
                self._leaving[mode].append(time)
            while order and order[0].issued:
                order.popleft()
            if not order or not certain or writes[WRITE] <= low:
                return
            burst = order[0]
            if self._open[burst.bank] != burst.row:
                return
            time = self._col[mode]
            ready = max(bank_col[burst.bank], group_col[self._group[burst.bank]])
            if ready > time or time >= self._next_ref:
                return

    # Commands -------------------------------------------------------------------------------------

    def _column(self, burst: Burst, time: float) -> None:
        t, mode, bank = self.timing, self._mode, burst.bank
        group = self._group[bank]
        self._take(burst)
        opening, self._opening[bank] = self._opening[bank], 0.0
        if not opening:
            self.hits += 1
        elif self._conflict[bank]:
            self.conflicts += 1
        else:
            self.misses += 1
        self._col[mode] = time + t.tCCD_S
        self._group_col[mode][group] = time + t.tCCD_L
        if mode == READ:
            start, other, pre = time + t.tCL, time + t.tRTW, time + t.tRTP
        else:
            start = time + t.tCWL
            written = start + t.tBL
            other, pre = written + t.tWTR_S, written + t.tWR
            if self._group_col[READ][group] < written + t.tWTR_L:
                self._group_col[READ][group] = written + t.tWTR_L
        if self._col[1 - mode] < other:
            self._col[1 - mode] = other
        if self._bank_pre[bank] < pre:
            self._bank_pre[bank] = pre
        end = start + t.tBL
        wire = self.wire
        wire.available_at = end
        wire.busy_ns += t.tBL
        wire.bytes_carried += self._burst_bytes
        if self.trace is not None:
            self.trace.append((time, "RD" if mode == READ else "WR", bank, burst.row))
        if mode == READ:
            self._on_read(self, burst, start, end, opening)

    def _take(self, burst: Burst) -> None:
        """Take a burst out of its queue."""
        rows = self._rows[self._mode]
        bank_rows = rows[burst.bank]
        waiting = bank_rows[burst.row]
        waiting.popleft()
        if not waiting:
            del bank_rows[burst.row]
            if not bank_rows:
                del rows[burst.bank]
        burst.issued = True
        self._count[self._mode] -= 1

    def _activate(self, burst: Burst, now: float) -> None:
        t, bank = self.timing, burst.bank
        group = self._group[bank]
        self._open[bank] = burst.row
        self._opening[bank] = (t.tRCDRD if self._mode == READ else t.tRCDWR) + (t.tRP if self._conflict[bank] else 0.0)
        self._bank_col[READ][bank] = now + t.tRCDRD
        self._bank_col[WRITE][bank] = now + t.tRCDWR
        self._bank_pre[bank] = now + t.tRAS
        self._bank_act[bank] = now + t.tRC
        self._group_act[group] = now + t.tRRD_L
        self._act = now + t.tRRD_S
        self._recent.append(now)
        if self.trace is not None:
            self.trace.append((now, "ACT", bank, burst.row))

    def _precharge(self, bank: int, now: float) -> None:
        self._conflict[bank] = True
        self._close(bank, now)

    def _close(self, bank: int, now: float) -> None:
        if self.trace is not None:
            self.trace.append((now, "PRE", bank, self._open[bank]))
        self._open[bank] = CLOSED
        self._bank_act[bank] = max(self._bank_act[bank], now + self.timing.tRP)

    def _refresh(self, now: float) -> None:
        """Refresh as often as is due: what fell into idle time happened then, only the last of it matters."""
        t = self.timing
        missed = math.floor((now - self._next_ref) / t.tREFI)
        due = self._next_ref + missed * t.tREFI
        self.refreshes += missed + 1
        self._next_ref = due + t.tREFI
        precharge_at = max([due, *(self._bank_pre[b] for b, row in enumerate(self._open) if row != CLOSED)])
        for bank, row in enumerate(self._open):
            if row != CLOSED:
                self._close(bank, precharge_at)
        start = max([due, *self._bank_act])
        for bank in range(len(self._open)):
            self._bank_act[bank] = start + t.tRFC
            self._conflict[bank] = False
            self._opening[bank] = 0.0
        if self.trace is not None:
            self.trace.append((start, "REF", 0, 0))
