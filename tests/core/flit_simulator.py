"""A mesh simulator of another make, for tests: single flits, one pass over all channels in each cycle, no events.

Dimension order, unlimited buffers, first come first served by whole packets. It shares nothing with the package.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

ChannelId = tuple[str, int, int]


class _Channel:
    """A wire: packets in the order in which their heads came, one flit a cycle, and the flits in flight."""

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self.queue: deque[int] = deque()
        self.waiting: dict[int, int] = {}
        self.sent = 0
        self.flying: deque[tuple[int, int, bool]] = deque()
        self.next: dict[int, ChannelId] = {}


class FlitSimulator:
    """Simulate a k x k mesh; `delays` are cycles from the start of one channel's flit to the next channel's queue.

    Keys of `delays`: `in` (interface to router), `link`, `out` (router to interface), and `start` (before `in`).
    """

    def __init__(self, k: int, flits: int, delays: Mapping[str, int]) -> None:
        self.k = k
        self.flits = flits
        self.delays = delays
        self.channels: dict[ChannelId, _Channel] = {}
        for place in range(k * k):
            for other in range(k * k):
                for key in self.route(place, other):
                    self.channels.setdefault(key, _Channel(delays[key[0]]))
        self.routes: list[list[ChannelId]] = []
        self.at: list[int] = []

    def route(self, source: int, goal: int) -> Iterator[ChannelId]:
        """Yield the channels of a packet, columns before rows."""
        (r, c), (r2, c2) = divmod(source, self.k), divmod(goal, self.k)
        yield "in", source, source
        while c != c2:
            step = 1 if c2 > c else -1
            yield "link", r * self.k + c, r * self.k + c + step
            c += step
        while r != r2:
            step = 1 if r2 > r else -1
            yield "link", r * self.k + c, (r + step) * self.k + c
            r += step
        yield "out", goal, goal

    def latencies(self, packets: Sequence[tuple[int, int, int]]) -> list[int]:
        """Return the latency in cycles of packets (cycle, source, goal), which come in order of their cycles."""
        self.routes = [list(self.route(source, goal)) for _, source, goal in packets]
        self.at = [0] * len(packets)
        done = [-1] * len(packets)
        left, begun, now = len(packets), 0, 0
        while left:
            while begun < len(packets) and packets[begun][0] + self.delays["start"] == now:
                first = self.channels[self.routes[begun][0]]
                first.queue.append(begun)
                first.waiting[begun] = self.flits
                begun += 1
            for channel in self.channels.values():
                self._receive(channel, now)
            for channel in self.channels.values():
                finished = self._send(channel, now)
                if finished is not None and channel is self.channels[self.routes[finished][-1]]:
                    done[finished] = now + 1 + channel.delay
                    left -= 1
            now += 1
        return [end - packet[0] for end, packet in zip(done, packets, strict=True)]

    def _receive(self, channel: _Channel, now: int) -> None:
        while channel.flying and channel.flying[0][0] == now:
            _, number, head = channel.flying.popleft()
            if head and self.at[number] + 1 < len(self.routes[number]):
                self.at[number] += 1
                channel.next[number] = self.routes[number][self.at[number]]
                self.channels[channel.next[number]].queue.append(number)
            if number in channel.next:
                following = self.channels[channel.next[number]]
                following.waiting[number] = following.waiting.get(number, 0) + 1

    def _send(self, channel: _Channel, now: int) -> int | None:
        """Send a flit of the packet in front, if one is there; return the packet when it was its last."""
        if not channel.queue or not channel.waiting.get(channel.queue[0]):
            return None
        number = channel.queue[0]
        channel.waiting[number] -= 1
        channel.flying.append((now + channel.delay, number, channel.sent == 0))
        channel.sent += 1
        if channel.sent < self.flits:
            return None
        channel.sent = 0
        del channel.waiting[channel.queue.popleft()]
        return number
