"""A slow second controller with banks: every clock, every rule, every burst looked at again, in whole clocks.

It shares no code with the model. The rules stand as data sheets print them, as the least time from one command to a
later one; a command may come when every earlier one is long enough ago. Its policy is that of docs/hbm.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

#: (clock, command, bank, row).
Command = tuple[int, str, int, int]
COLUMN = {"read": "RD", "write": "WR"}


@attrs.define(eq=False)
class Burst:
    place: int
    bank: int
    row: int
    at: float
    """From when on it may be let in, in clocks."""
    request: Request | None = None
    number: int = 0
    given_at: int = -1
    """The clock of its column command."""


@attrs.define(eq=False)
class Request:
    op: str
    known: float
    """When it comes to the front end, in clocks; its bursts count from their own times on."""
    bursts: list[Burst]
    """In order of address."""
    outside: int = 0
    queues: int = 0
    """How many queues its bursts go to."""
    taken_at: int = -1
    """The clock at which its last burst was let in."""


@attrs.define(eq=False)
class Queue:
    """What one scheduler sees: reads and writes that are let in, and those that wait in front."""

    places: list[int]
    inside: dict[str, list[Burst]] = attrs.field(factory=lambda: {"read": [], "write": []})
    front: dict[str, list[Burst]] = attrs.field(factory=lambda: {"read": [], "write": []})
    mode: str = "read"


@attrs.define(eq=False)
class Place:
    """One pseudo-channel: its commands so far, its open rows, its next refresh."""

    open: dict[int, int] = attrs.field(factory=dict)
    openers: dict[int, Burst] = attrs.field(factory=dict)
    """The burst that the row of a bank was opened for, until it has its column command."""
    last: dict[tuple[str, int], int] = attrs.field(factory=dict)
    trace: list[Command] = attrs.field(factory=list)
    due: float = 0.0
    next_bank: int = 0


@attrs.define(eq=False)
class Oracle:
    t: Mapping[str, float]
    """Times in clocks, by the names of data sheets."""
    places: int
    together: int
    banks: int
    groups: int
    stacks: int
    shared: bool
    read_queue: int
    write_queue: int
    drain_from: int
    drain_to: int
    refresh: str
    front_end: int
    state: list[Place] = attrs.field(init=False)
    channels: list[list[Queue]] = attrs.field(init=False)
    bus_free: list[int] = attrs.field(init=False)
    waiting: list[Request] = attrs.field(init=False)
    number: int = 0
    inside: int = 0

    def __attrs_post_init__(self) -> None:
        self.state = [Place(due=self.t["tREFI"]) for _ in range(self.places)]
        self.channels = []
        for first in range(0, self.places, self.together):
            members = list(range(first, min(self.places, first + self.together)))
            self.channels.append([Queue(members)] if self.shared else [Queue([member]) for member in members])
        self.bus_free = [0] * len(self.channels)

    # The rules ------------------------------------------------------------------------------------

    def least(self, first: str, second: str, bank: int, other: int) -> float:
        t = self.t
        size = self.banks // (self.groups * self.stacks)
        same_bank, same_group = bank == other, bank // size == other // size
        same_stack = bank // size % self.stacks == other // size % self.stacks
        one, group = same_bank, same_group
        written = t["tCWL"] + t["tBL"]
        return {
            "ACT ACT": max(t["tRRD_L"] if group else t["tRRD_S"], t["tRC"] if one else 0),
            "ACT RD": t["tRCDRD"] * one, "ACT WR": t["tRCDWR"] * one, "ACT PRE": t["tRAS"] * one,
            "PRE ACT": t["tRP"] * one, "RD PRE": t["tRTP"] * one, "WR PRE": (written + t["tWR"]) * one,
            "RD RD": t["tCCD_L"] if group else t["tCCD_S"] if same_stack else t["tCCD_R"], "PRE PRE": t["tPPD"],
            "WR WR": t["tCCD_L"] if group else t["tCCD_S"],
            "WR RD": written + (t["tWTR_L"] if group else t["tWTR_S"]), "RD WR": t["tRTW"],
            "PRE REF": t["tRP"], "ACT REF": t["tRC"], "REF REF": t["tRFC"], "REF ACT": t["tRFC"],
            "PRE REFpb": t["tRP"] * one, "ACT REFpb": t["tRC"] if one else t["tRRD_S"],
            "REFpb ACT": t["tRFCpb"] if one else t["tRREFD"], "REFpb REFpb": t["tRFCpb"] if one else t["tRREFD"],
        }.get(f"{first} {second}", 0)  # fmt: skip

    def may(self, place: Place, what: str, bank: int, now: int) -> bool:
        for (before, other), when in place.last.items():
            if now - when < self.least(before, what, bank, other):
                return False
        if what == "ACT":
            activations = [when for when, command, _, _ in place.trace if command == "ACT"]
            return len(activations) < 4 or now - activations[-4] >= self.t["tFAW"]
        return True

    def give(self, place: Place, what: str, bank: int, row: int, now: int) -> None:
        place.trace.append((now, what, bank, row))
        place.last[what, bank] = now

    # One clock ------------------------------------------------------------------------------------

    def run(self, requests: Sequence[Request], clocks: int) -> None:
        """Serve requests, in the order in which they come, for so many clocks."""
        self.waiting = list(requests)
        for now in range(clocks):
            while self.waiting and self.waiting[0].known <= now and self.inside < self.front_end:
                self.inside += 1
                self.enter(self.waiting.pop(0), 0)
            for channel, queues in enumerate(self.channels):
                for queue in queues:
                    self.let_in(queue, now)
                self.maintain(channel, now)
                self.give_column(self.columns(channel, now), now)
                self.give_row(channel, self.rows(channel, now), now)

    def enter(self, request: Request, not_before: int, here: Queue | None = None) -> None:
        """Send bursts to their queues, not before a clock; to `here` not before the one before it."""
        queues_of: list[Queue] = []
        for burst in request.bursts:
            self.number += 1
            queues = self.channels[burst.place // self.together]
            queue = next(queue for queue in queues if burst.place in queue.places)
            burst.request, burst.number = request, self.number
            burst.at = max(burst.at, not_before - (queue is here))
            queue.front[request.op].append(burst)
            queues_of += [queue] if queue not in queues_of else []
        request.queues = len(queues_of)
        request.outside = len(request.bursts)

    def let_in(self, queue: Queue, now: int) -> None:
        """Let bursts in, and with the last of a request the next request; turn reads and writes."""
        came = True
        while came:
            came = False
            for op, room in (("read", self.read_queue), ("write", self.write_queue)):
                front, inside = queue.front[op], queue.inside[op]
                while front and front[0].at <= now and len(inside) < room:
                    came = True
                    burst = front.pop(0)
                    inside.append(burst)
                    assert burst.request is not None
                    burst.request.outside -= 1
                    if burst.request.outside:
                        continue
                    burst.request.taken_at = now
                    if self.waiting and self.waiting[0].known <= now:
                        self.enter(self.waiting.pop(0), now + 1, queue if burst.request.queues == 1 else None)
                    else:
                        self.inside -= 1
        reads, writes = len(queue.inside["read"]), len(queue.inside["write"])
        if queue.mode == "read" and writes and (writes >= self.drain_from or not reads):
            queue.mode = "write"
        elif queue.mode == "write" and (not writes or (reads and writes <= self.drain_to)):
            queue.mode = "read"

    def members(self, channel: int) -> range:
        return range(channel * self.together, min(self.places, (channel + 1) * self.together))

    def maintain(self, channel: int, now: int) -> None:
        """Give one command of a refresh that is due."""
        if self.refresh == "none" or self.bus_free[channel] > now:
            return
        for number in self.members(channel):
            place = self.state[number]
            if place.due > now:
                continue
            single = self.refresh == "per_bank"
            banks = [place.next_bank] if single else list(range(self.banks))
            opened = [bank for bank in banks if bank in place.open]
            if opened:
                if all(bank not in place.openers and self.may(place, "PRE", bank, now) for bank in opened):
                    place.trace.append((now, "PREpb" if single else "PREA", opened[0], place.open[opened[0]]))
                    for bank in opened:
                        place.last["PRE", bank] = now
                        del place.open[bank]
                    self.bus_free[channel] = now + int(self.t["tPRE"])
                    return
            elif self.may(place, "REFpb" if single else "REF", place.next_bank, now):
                self.give(place, "REFpb" if single else "REF", place.next_bank, -1, now)
                place.due += self.t["tREFI"]
                place.next_bank = (place.next_bank + 1) % self.banks if single else 0
                self.bus_free[channel] = now + int(self.t["tPRE"])
                return

    def seen(self, channel: int, now: int) -> list[list[Burst]]:
        """Return the bursts that a scheduler sees, bank by bank, without those of banks that wait for a refresh."""
        found = []
        for queue in self.channels[channel]:
            for number in queue.places:
                place = self.state[number]
                due = self.refresh != "none" and place.due <= now
                every = self.refresh == "all_bank" or place.next_bank in place.openers
                for bank in range(self.banks):
                    if due and (every or bank == place.next_bank):
                        continue
                    found.append([
                        burst for burst in queue.inside[queue.mode] if burst.place == number and burst.bank == bank
                    ])  # fmt: skip
        return [bursts for bursts in found if bursts]

    def columns(self, channel: int, now: int) -> list[Burst]:
        """Return the bursts that may have their column command now: row hits, and those that a row was opened for."""
        hits = [burst for bursts in self.seen(channel, now) for burst in bursts]
        hits = [burst for burst in hits if self.state[burst.place].open.get(burst.bank) == burst.row]
        for number in self.members(channel):
            hits += self.state[number].openers.values()
        return [burst for burst in hits if self.may(self.state[burst.place], self.command(burst), burst.bank, now)]

    def rows(self, channel: int, now: int) -> list[Burst]:
        """Return the bursts whose bank may have a row command now: the oldest of each bank."""
        found = []
        for bursts in self.seen(channel, now):
            oldest = min(bursts, key=lambda burst: burst.number)
            place, bank = self.state[oldest.place], oldest.bank
            if bank in place.openers or place.open.get(bank) == oldest.row:
                continue
            if self.may(place, "PRE" if bank in place.open else "ACT", bank, now):
                found.append(oldest)
        return found

    def command(self, burst: Burst) -> str:
        assert burst.request is not None
        return COLUMN[burst.request.op]

    def leave(self, burst: Burst) -> None:
        """Take a burst out of its queue."""
        assert burst.request is not None
        for queue in self.channels[burst.place // self.together]:
            if burst.place in queue.places:
                queue.inside[burst.request.op].remove(burst)

    def give_column(self, columns: list[Burst], now: int) -> None:
        def rank(burst: Burst) -> tuple[bool, int]:
            given = self.state[burst.place].trace
            last = max((when for when, what, _, _ in given if what in ("RD", "WR")), default=-99)
            return last != now - self.t["tCCD_S"], burst.number

        if columns:
            burst = min(columns, key=rank)
            place = self.state[burst.place]
            burst.given_at = now
            self.give(place, self.command(burst), burst.bank, burst.row, now)
            if place.openers.get(burst.bank) is burst:
                del place.openers[burst.bank]
            else:
                self.leave(burst)

    def give_row(self, channel: int, rows: list[Burst], now: int) -> None:
        if not rows or self.bus_free[channel] > now:
            return
        burst = min(rows, key=lambda burst: burst.number)
        place = self.state[burst.place]
        if burst.bank in place.open:
            self.give(place, "PRE", burst.bank, place.open.pop(burst.bank), now)
            self.bus_free[channel] = now + int(self.t["tPRE"])
        else:
            place.open[burst.bank] = burst.row
            place.openers[burst.bank] = burst
            self.leave(burst)
            self.give(place, "ACT", burst.bank, burst.row, now)
            self.bus_free[channel] = now + int(self.t["tACT"])
