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

    def __attrs_post_init__(self) -> None:
        self.state = [Place(due=self.t["tREFI"]) for _ in range(self.places)]
        self.channels = []
        for first in range(0, self.places, self.together):
            members = list(range(first, min(self.places, first + self.together)))
            self.channels.append([Queue(members)] if self.shared else [Queue([member]) for member in members])
        self.bus_free = [0] * len(self.channels)

    # The rules ------------------------------------------------------------------------------------

    def least(self, first: str, second: str, same_bank: bool, same_group: bool) -> float:
        t = self.t
        one, group = same_bank, same_group
        written = t["tCWL"] + t["tBL"]
        return {
            "ACT ACT": max(t["tRRD_L"] if group else t["tRRD_S"], t["tRC"] if one else 0),
            "ACT RD": t["tRCDRD"] * one, "ACT WR": t["tRCDWR"] * one, "ACT PRE": t["tRAS"] * one,
            "PRE ACT": t["tRP"] * one, "RD PRE": t["tRTP"] * one, "WR PRE": (written + t["tWR"]) * one,
            "RD RD": t["tCCD_L"] if group else t["tCCD_S"], "WR WR": t["tCCD_L"] if group else t["tCCD_S"],
            "WR RD": written + (t["tWTR_L"] if group else t["tWTR_S"]), "RD WR": t["tCL"] + t["tBL"] + 2 - t["tCWL"],
            "PRE REF": t["tRP"], "ACT REF": t["tRC"], "REF REF": t["tRFC"], "REF ACT": t["tRFC"],
            "PRE REFpb": t["tRP"] * one, "ACT REFpb": t["tRC"] if one else t["tRRD_S"],
            "REFpb ACT": t["tRFCpb"] if one else t["tRREFD"], "REFpb REFpb": t["tRFCpb"] if one else t["tRREFD"],
        }.get(f"{first} {second}", 0)  # fmt: skip

    def may(self, place: Place, what: str, bank: int, now: int) -> bool:
        size = self.banks // self.groups
        for (before, other), when in place.last.items():
            if now - when < self.least(before, what, bank == other, bank // size == other // size):
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
        waiting = list(requests)
        number, inside = 0, 0
        for now in range(clocks):
            while waiting and waiting[0].known <= now and inside < self.front_end:
                inside += 1
                number = self.enter(waiting.pop(0), number, 0)
            for channel, queues in enumerate(self.channels):
                for queue in queues:
                    for _ in self.let_in(queue, now):
                        if waiting and waiting[0].known <= now:
                            number = self.enter(waiting.pop(0), number, now + 1)
                        else:
                            inside -= 1
                self.maintain(channel, now)
                columns, rows = self.candidates(channel, now)
                self.give_column(columns, now)
                self.give_row(channel, rows, now)

    def enter(self, request: Request, number: int, not_before: int) -> int:
        for burst in request.bursts:
            number += 1
            burst.request, burst.number, burst.at = request, number, max(burst.at, not_before)
            queues = self.channels[burst.place // self.together]
            next(queue for queue in queues if burst.place in queue.places).front[request.op].append(burst)
        request.outside = len(request.bursts)
        return number

    def let_in(self, queue: Queue, now: int) -> list[Request]:
        """Let bursts in, turn reads and writes, and return the requests that are inside as a whole."""
        whole = []
        for op, room in (("read", self.read_queue), ("write", self.write_queue)):
            front, inside = queue.front[op], queue.inside[op]
            while front and front[0].at <= now and len(inside) < room:
                burst = front.pop(0)
                inside.append(burst)
                assert burst.request is not None
                burst.request.outside -= 1
                if not burst.request.outside:
                    burst.request.taken_at = now
                    whole.append(burst.request)
        reads, writes = len(queue.inside["read"]), len(queue.inside["write"])
        if queue.mode == "read" and writes and (writes >= self.drain_from or not reads):
            queue.mode = "write"
        elif queue.mode == "write" and (not writes or (reads and writes <= self.drain_to)):
            queue.mode = "read"
        return whole

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
                if all(self.may(place, "PRE", bank, now) for bank in opened):
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

    def candidates(self, channel: int, now: int) -> tuple[list[Burst], list[Burst]]:
        """Return the bursts that may have their column command now, and those whose bank may have a row command."""
        columns, rows = [], []
        for queue in self.channels[channel]:
            ready = queue.inside[queue.mode]
            for number in queue.places:
                place = self.state[number]
                due = self.refresh != "none" and place.due <= now
                if due and self.refresh == "all_bank":
                    continue
                for bank in range(self.banks):
                    mine = [burst for burst in ready if burst.place == number and burst.bank == bank]
                    if not mine or (due and bank == place.next_bank):
                        continue
                    hits = [burst for burst in mine if place.open.get(bank) == burst.row]
                    if hits:
                        columns += hits if self.may(place, COLUMN[queue.mode], bank, now) else []
                    elif self.may(place, "PRE" if bank in place.open else "ACT", bank, now):
                        rows.append(min(mine, key=lambda burst: burst.number))
        return columns, rows

    def give_column(self, columns: list[Burst], now: int) -> None:
        def rank(burst: Burst) -> tuple[bool, int]:
            given = self.state[burst.place].trace
            last = max((when for when, what, _, _ in given if what in ("RD", "WR")), default=-99)
            return last != now - self.t["tCCD_S"], burst.number

        if columns:
            burst = min(columns, key=rank)
            assert burst.request is not None
            burst.given_at = now
            self.give(self.state[burst.place], COLUMN[burst.request.op], burst.bank, burst.row, now)
            for queue in self.channels[burst.place // self.together]:
                if burst.place in queue.places:
                    queue.inside[burst.request.op].remove(burst)

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
            self.give(place, "ACT", burst.bank, burst.row, now)
            self.bus_free[channel] = now + int(self.t["tACT"])
