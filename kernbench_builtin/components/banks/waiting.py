"""The bursts that wait for the banks of a pseudo-channel, sorted by what they need next, and when they may have it."""

from __future__ import annotations

from kernbench_builtin.components.banks.queues import Bank, BankLine, Burst, BurstPlace, Gate, Ranked
from kernbench_builtin.components.banks.timing import ALL, CLOSED, NEVER, NONE, READ, WRITE


class WaitingBursts(BurstPlace):
    """Keep which row of each bank is open, which bursts wait for it, and the earliest time of each of its commands.

    `column_at`, `activate_at` and `precharge_at` are before when (ns) no command can come for those whose turn it is.
    They follow bursts as they come and commands as they are given: before, nothing is looked through. Of each line
    of the kind whose turn it is the oldest burst that needs a command is kept with those that need the same one, the
    oldest first: the first that may have it has it, and nothing else is looked through either. A burst that its row was
    opened for needs its column command whosever turn it is, and the row stays open until then: `openers` counts them.
    """

    __slots__ = (
        "_act", "_after_activation", "_after_precharge", "_closes", "_closes_until", "_col", "_for_activation",
        "_for_column", "_for_precharge", "_mine", "_opens", "_opens_until", "_pre", "activate_at", "banks", "column_at",
        "lines", "openers", "precharge_at",
    )  # fmt: skip

    def __init__(self, banks: int, groups: int) -> None:
        """Begin with no row open; `groups` are those of all stack IDs."""
        super().__init__()
        per_group = banks // groups
        gates = [Gate() for _ in range(groups)]
        self.banks = [Bank(number, gates[number // per_group]) for number in range(banks)]
        #: What waits, by kind and bank.
        self.lines = (self._lines(READ, groups), self._lines(WRITE, groups))
        self.openers = 0
        # those whose turn it is
        self._mine = self.lines[READ]
        self._for_column: list[Ranked] = []
        self._for_activation: list[Ranked] = []
        self._for_precharge: list[Ranked] = []
        # earliest time of each command for the whole pseudo-channel
        self._col = [0.0, 0.0]
        self._act = self._pre = 0.0
        self.column_at = self.activate_at = self.precharge_at = NEVER
        # the oldest burst whose bank can be opened, and that whose bank can be closed, as far as they are known; until
        # when (ns) that holds; and when the next one may come when the command is given
        self._opens: Burst | None = None
        self._closes: Burst | None = None
        self._opens_until = self._closes_until = self._after_activation = self._after_precharge = NEVER

    def _lines(self, kind: int, groups: int) -> list[BankLine]:
        per_group = len(self.banks) // groups
        gates = [Gate() for _ in range(groups)]
        return [BankLine(self, kind, bank, gates[bank.number // per_group]) for bank in self.banks]

    def take_in(self, burst: Burst) -> None:
        """Let a burst be chosen from now on; it is younger than all others."""
        line, row = burst.line, burst.row
        rows = line.rows
        line.waiting.append(burst)
        if row in rows:
            rows[row] += 1
            return
        others = len(rows)
        rows[row] = 1
        if not others or row == line.bank.open:
            self._sort(line)

    def _sort(self, line: BankLine) -> None:
        """Note what the bursts of a line need, and when they may have it, if it is their turn."""
        bank = line.bank
        if line is not self._mine[bank.number]:
            return
        row = bank.open
        if row == CLOSED:
            self._wants_activation(line, bank)
            return
        if row in line.rows:
            if line.hit is None:
                line.find_hit(row)
            self._wants_column(line)
        oldest: Burst = line.waiting[0]
        if oldest.row != row:
            self._wants_precharge(line, bank)

    def _wants_column(self, line: BankLine) -> None:
        """Note that bursts of a line find their row open, and when they may have their command."""
        line.move(self._for_column, line.hit)  # type: ignore[arg-type]
        time, rest, of_group = line.column_at, self._col[line.kind], line.gate.at
        if time < rest:
            time = rest
        if time < of_group:
            time = of_group
        if time < self.column_at:
            self.column_at = time

    def _wants_precharge(self, line: BankLine, bank: Bank) -> None:
        """Note that the oldest burst of a line needs another row than the open one, and when that may be closed."""
        line.wait_to_close(self._for_precharge)
        self._note_precharge(bank)

    def _note_precharge(self, bank: Bank) -> None:
        time = bank.precharge_at
        if time < self._pre:
            time = self._pre
        if time < self.precharge_at:
            self.precharge_at = time
        if time < self._after_precharge:
            self._after_precharge = time
        if time < self._closes_until:
            self._closes_until = time

    def _wants_activation(self, line: BankLine, bank: Bank) -> None:
        """Note that the bursts of a line need a row of their bank, which is closed, and when it may be opened."""
        line.stop_closing(self._for_precharge)
        line.move(self._for_activation, line.waiting[0])
        time, of_group, rest = bank.activate_at, bank.gate.at, self._act
        if time < of_group:
            time = of_group
        if time < rest:
            time = rest
        if time < self.activate_at:
            self.activate_at = time
        if time < self._after_activation:
            self._after_activation = time
        if time < self._opens_until:
            self._opens_until = time

    def may_come(self, line: BankLine, row: int) -> float:
        """Return before when (ns) the next command for a burst of a row cannot come as things stand."""
        bank = line.bank
        if bank.open == CLOSED:
            time, rest, of_group = bank.activate_at, self._act, bank.gate.at
        elif bank.open == row:
            time, rest, of_group = line.column_at, self._col[line.kind], line.gate.at
        else:
            return bank.precharge_at
        if rest > time:
            time = rest
        return of_group if of_group > time else time

    def look_again(self) -> None:
        """Find when each kind of command may come, when it is the other kind's turn or the times have changed."""
        for lines in self.lines:
            for line in lines:
                line.among = line.closing = None
        self._for_column, self._for_activation, self._for_precharge = [], [], []
        self._mine = self.lines[self.queue.turn.kind]
        self.column_at = self.activate_at = self.precharge_at = NEVER
        self._opens = self._closes = None
        for line in self._mine:
            if line.rows:
                self._sort(line)
        if self.openers:
            for bank in self.banks:
                opener = bank.opener
                if opener is not None and opener.line is not self._mine[bank.number]:
                    opener.line.hit = opener
                    self._wants_column(opener.line)

    # Choosing -------------------------------------------------------------------------------------

    def column(self, now: float, blocked: int) -> Burst | None:
        """Return the oldest burst that may have its column command `now` and is not of the bank `blocked`, or of any
        with `ALL`; or that its row was opened for.
        """
        following = NEVER
        for _, burst in self._for_column if blocked == NONE else _openers_or_without(blocked, self._for_column):
            line = burst.line
            time, rest = line.column_at, self._col[line.kind]
            if time < line.gate.at:
                time = line.gate.at
            if time < rest:
                time = rest
            if time <= now:
                return burst
            if time < following:
                following = time
        self.column_at = following
        return None

    def row(self, now: float, blocked: int) -> Burst | None:
        """Return the oldest burst whose bank may have a row command `now` and is not `blocked`."""
        opened: Burst | None = None
        closed: Burst | None = None
        if self.activate_at <= now:
            opened = self._opens
            if opened is None or now >= self._opens_until or blocked >= 0:
                opened = self._activation(now, blocked)
        if self.precharge_at <= now:
            closed = self._closes
            if closed is None or now >= self._closes_until or blocked >= 0:
                closed = self._precharge(now, blocked)
        if opened is None or (closed is not None and closed.seq < opened.seq):
            return closed
        return opened

    def _activation(self, now: float, blocked: int) -> Burst | None:
        found: Burst | None = None
        following = NEVER
        for _, burst in self._for_activation if blocked < 0 else _without(blocked, self._for_activation):
            bank = burst.line.bank
            time = bank.activate_at
            if time < bank.gate.at:
                time = bank.gate.at
            if time > now:
                if time < following:
                    following = time
            elif found is None:
                found = burst
            else:
                self._after_activation = now
                break
        else:
            self._after_activation = following
        self._opens, self._opens_until = found, following
        if found is None:
            self.activate_at = following
        return found

    def _precharge(self, now: float, blocked: int) -> Burst | None:
        found: Burst | None = None
        following = NEVER
        for _, burst in self._for_precharge if blocked < 0 else _without(blocked, self._for_precharge):
            time = burst.line.bank.precharge_at
            if time < self._pre:
                time = self._pre
            if time > now:
                if time < following:
                    following = time
            elif found is None:
                found = burst
            else:
                self._after_precharge = now
                break
        else:
            self._after_precharge = following
        self._closes, self._closes_until = found, following
        if found is None:
            self.precharge_at = following
        return found


def _openers_or_without(bank: int, waiting: list[Ranked]) -> list[Ranked]:
    """Return what is of other banks, or what its row was opened for."""
    return [
        each for each in waiting
        if each[1].line.bank.opener is each[1] or (bank != ALL and each[1].line.number != bank)
    ]  # fmt: skip


def _without(bank: int, waiting: list[Ranked]) -> list[Ranked]:
    """Return what is of other banks."""
    return [each for each in waiting if each[1].line.number != bank]
