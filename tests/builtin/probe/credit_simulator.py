"""A network of routers with credits, of another make, for tests: cycle by cycle, flit by flit, integers, no events.

It shares nothing with the package. Arbiters are fair: who stands next after the last winner, or, with `lottery`, any.
Times are cycles; a decision takes one, so `overhead` is at least `routing` + 1.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Sequence

from attrs import define, field, frozen

STEPS = {"e": (0, 1), "w": (0, -1), "s": (1, 0), "n": (-1, 0)}


@frozen
class Network:
    """The network: its size, its routers, and cycles before the first router (`into`) and after the last (`out`)."""

    rows: int
    columns: int
    wrap: bool = False
    vcs: int = 4
    buffer: int = 8
    overhead: int = 4
    routing: int = 1
    credit: int = 2
    link: int = 1
    into: int = 5
    out: int = 5
    dateline: bool = True
    lottery: bool = False


@define(eq=False)
class _Packet:
    number: int
    hops: list[tuple[str, int | None]]
    flits: int
    passed: int = 0


@define(eq=False)
class _Queue:
    """A virtual channel of an input, or of a source (`back` None), and the output channel that its packet holds."""

    back: tuple[tuple[int, int], str, int] | None
    flits: deque[tuple[_Packet, int, int]] = field(factory=deque)
    goes: tuple[str, int] | None = None
    asks_from: int = 0
    likes: int = 0


@define(eq=False)
class _Router:
    inputs: dict[str, list[_Queue]]
    credits: dict[tuple[str, int], int]
    held: set[tuple[str, int]] = field(factory=set)
    waiting: deque[tuple[int, _Packet]] = field(factory=deque)
    wire_free: int = 0
    winners: dict[object, int] = field(factory=dict)


class CreditSimulator:
    """Simulate packets; `fullest` is the most flits that a buffer has held, `moved` the links crossed by flits."""

    def __init__(self, network: Network, seed: int = 1) -> None:
        self.net = network
        self.dice = random.Random(seed)
        self.fullest = self.moved = 0
        self.landing: dict[int, list[tuple[_Queue, _Packet, int]]] = defaultdict(list)
        self.paying: dict[int, list[tuple[tuple[int, int], str, int]]] = defaultdict(list)
        self.routers: dict[tuple[int, int], _Router] = {}
        places = [(r, c) for r in range(network.rows) for c in range(network.columns)]
        for place in places:
            feeders = {way: self._from(place, way) for way in STEPS}
            inputs = {
                way: [_Queue((back, way, vc)) for vc in range(network.vcs)]
                for way, back in feeders.items()
                if back is not None
            }
            inputs["source"] = [_Queue(None) for _ in range(network.vcs)]
            inputs = dict(sorted(inputs.items(), key=lambda item: feeders.get(item[0]) or place))
            ways = [way for way in STEPS if self._to(place, way) is not None]
            credits = {(way, vc): network.buffer for way in ways for vc in range(network.vcs)}
            self.routers[place] = _Router(inputs, credits)
        self.places = places

    def latencies(self, packets: Sequence[tuple[int, int, int, int]], limit: int = 10**6) -> list[int | None]:
        """Return the latency of each packet (cycle, source, goal, flits), in order of cycles; None if it never came.

        It gives up when nothing has moved for `limit` cycles, or so many have passed since the last was made.
        """
        done: list[int | None] = [None] * len(packets)
        left, begun, now, last_move = len(packets), 0, 0, 0
        while left and now - last_move < limit and now < packets[-1][0] + limit:
            while begun < len(packets) and packets[begun][0] + self.net.into <= now:
                _, source, goal, flits = packets[begun]
                packet = _Packet(begun, self._hops(source, goal), flits)
                router = self.routers[divmod(source, self.net.columns)]
                came = max(now, router.wire_free)
                router.wire_free = came + flits
                router.waiting.append((came, packet))
                begun += 1
            for queue, packet, index in self.landing.pop(now, ()):
                self._land(queue, packet, index, now)
            for place, way, vc in self.paying.pop(now, ()):
                self.routers[place].credits[way, vc] += 1
            for place in self.places:
                for ended in self._cycle(place, now):
                    done[ended] = now + self.net.overhead - self.net.routing - 1 + 1 + self.net.out
                    left -= 1
            if self.landing:
                last_move = now
            now += 1
        return [None if end is None else end - packet[0] for end, packet in zip(done, packets, strict=True)]

    def _to(self, place: tuple[int, int], way: str) -> tuple[int, int] | None:
        row, column = place[0] + STEPS[way][0], place[1] + STEPS[way][1]
        size = self.net.columns if way in "ew" else self.net.rows
        if self.net.wrap and size > 2:
            return row % self.net.rows, column % self.net.columns
        return (row, column) if 0 <= row < self.net.rows and 0 <= column < self.net.columns else None

    def _from(self, place: tuple[int, int], way: str) -> tuple[int, int] | None:
        return self._to(place, {"e": "w", "w": "e", "s": "n", "n": "s"}[way])

    def _hops(self, source: int, goal: int) -> list[tuple[str, int | None]]:
        """Return the direction and class of each hop: before (0) or behind (1) the end of a ring, or None."""
        here, there = divmod(source, self.net.columns), divmod(goal, self.net.columns)
        hops: list[tuple[str, int | None]] = []
        for axis, size, ways in ((1, self.net.columns, "ew"), (0, self.net.rows, "sn")):
            gap = there[axis] - here[axis]
            ring = self.net.wrap and size > 2
            if self.net.wrap:
                gap %= size
                if 2 * gap > size or (2 * gap == size and here[axis] % 2 == 1):
                    gap -= size
            way, at = ways[gap < 0], here[axis]
            crosses = not 0 <= at + gap < size
            for _ in range(abs(gap)):
                behind = int(not 0 <= at < size) if crosses else (here[axis] + there[axis]) % 2
                hops.append((way, behind if ring and self.net.dateline else None))
                at += 1 if gap > 0 else -1
        return [*hops, ("sink", None)]

    def _land(self, queue: _Queue, packet: _Packet, index: int, now: int) -> None:
        if not queue.flits:
            queue.asks_from = now + (self.net.routing if index == 0 else 0)
        queue.flits.append((packet, index, now))
        self.fullest = max(self.fullest, len(queue.flits))

    def _cycle(self, place: tuple[int, int], now: int) -> list[int]:
        """Decide for one router and cycle; return the packets whose last flit goes to its sink."""
        router, ended = self.routers[place], []
        self._start(router, now, now)
        names = list(router.inputs)
        chosen: dict[str, dict[int, int]] = defaultdict(dict)
        for port, name in enumerate(names):
            queues = router.inputs[name]
            ready = [number for number, queue in enumerate(queues) if self._may_go(router, queue, now)]
            if ready:
                best = self._next(ready, router.winners.get(name, -1))
                goes = queues[best].goes
                assert goes is not None
                chosen[goes[0]][port] = best
        for way, asking in chosen.items():
            port = self._next(sorted(asking), router.winners.get(("to", way), -1))
            router.winners["to", way] = port
            router.winners[names[port]] = asking[port]
            packet = self._move(place, way, router.inputs[names[port]][asking[port]], now)
            if packet is not None:
                ended.append(packet.number)
        self._channels(router, now)
        self._start(router, now, now + 1)
        return ended

    def _next(self, asking: Sequence[int], last: int) -> int:
        """Return who is to be served: the first after the last winner, going round, or any by lot."""
        if self.net.lottery:
            return self.dice.choice(asking)
        return next((number for number in asking if number > last), asking[0])

    def _start(self, router: _Router, now: int, begins: int) -> None:
        """Give waiting packets to queues of the source that are free."""
        for queue in router.inputs["source"]:
            if router.waiting and router.waiting[0][0] <= now and not queue.flits:
                came, packet = router.waiting.popleft()
                queue.flits.extend((packet, index, came + index) for index in range(packet.flits))
                queue.asks_from = max(came, begins) + self.net.routing

    def _may_go(self, router: _Router, queue: _Queue, now: int) -> bool:
        if queue.goes is None or not queue.flits or queue.flits[0][2] > now:
            return False
        return queue.goes[0] == "sink" or router.credits[queue.goes] > 0

    def _move(self, place: tuple[int, int], way: str, queue: _Queue, now: int) -> _Packet | None:
        """Send one flit; return its packet when it was the last and this is its goal."""
        router = self.routers[place]
        packet, index, _ = queue.flits.popleft()
        assert queue.goes is not None
        goes = queue.goes
        if queue.back is not None:
            self.paying[now + self.net.credit].append(queue.back)
        last = index + 1 == packet.flits
        if last:
            queue.goes = None
            router.held.discard(goes)
            if queue.flits:
                queue.asks_from = max(queue.flits[0][2], now + 1) + self.net.routing
        if way == "sink":
            return packet if last else None
        router.credits[goes] -= 1
        following = self._to(place, way)
        assert following is not None
        arrives = now + self.net.overhead - self.net.routing - 1 + self.net.link
        self.landing[arrives].append((self.routers[following].inputs[way][goes[1]], packet, index))
        self.moved += 1
        return None

    def _channels(self, router: _Router, now: int) -> None:
        """Give free output channels to packets in front of their queues: each asks for one."""
        wishes: dict[tuple[str, int], dict[int, _Queue]] = defaultdict(dict)
        half = -(-self.net.vcs // 2)
        for number, queue in enumerate(queue for queues in router.inputs.values() for queue in queues):
            if queue.goes is not None or not queue.flits or queue.flits[0][1] or now < queue.asks_from:
                continue
            packet = queue.flits[0][0]
            way, behind = packet.hops[packet.passed]
            channels = {None: range(self.net.vcs), 0: range(half), 1: range(half, self.net.vcs)}[behind]
            order = [channels[(queue.likes + step) % len(channels)] for step in range(len(channels))]
            free = [vc for vc in order if (way, vc) not in router.held]
            if free:
                wishes[way, self.dice.choice(free) if self.net.lottery else free[0]][number] = queue
        for wish, queues in wishes.items():
            number = self._next(sorted(queues), router.winners.get(wish, -1))
            router.winners[wish] = number
            winner = queues[number]
            packet = winner.flits[0][0]
            behind = packet.hops[packet.passed][1]
            winner.likes = wish[1] - (half if behind == 1 else 0) + 1
            winner.goes = wish
            router.held.add(wish)
            packet.passed += 1
