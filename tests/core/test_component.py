"""Components: the fast machinery equals the naive one, both styles agree, times are exact."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.graph import Edge
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Machine, Probe, edge
from tests.core.reference_model import Behaviour, ReferenceMachine

SIZES = (0, 1, 64, 100, 256, 4096)


@attrs.frozen
class Service:
    """The parameters of one node of a random machine, from which both models are made."""

    base: float = 0.0
    per_byte: float = 0.0
    interval: float | None = None
    servers: int = 0
    on_head: bool = False

    def ns(self, nbytes: int) -> float:
        return self.base + self.per_byte * nbytes

    def behaviour(self) -> Behaviour:
        interval = self.interval or 0.0
        return Behaviour(self.ns, not self.servers, lambda nbytes: interval, max(1, self.servers), self.on_head)

    def model(self) -> type[ComponentBase]:
        service = self

        class Fast(ComponentBase):
            ON_HEAD = service.on_head

            if service.servers:

                def start(self) -> None:
                    self.servers = service.servers
                    super().start()

                def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
                    yield env.timeout(service.ns(msg.nbytes))
            else:

                def overhead(self, msg: MsgBase) -> float:
                    return service.ns(msg.nbytes)

                if service.interval is not None:

                    def interval(self, msg: MsgBase) -> float:
                        return service.interval or 0.0

        return Fast


Feeds = Sequence[tuple[tuple[str, ...], float, int]]


def compare(services: dict[str, Service], edges: Sequence[Edge], feeds: Feeds) -> int:
    """Run both machines and assert equal logs and completions; return how many completions there were."""
    probes = {end for each in edges for end in (each.src, each.dst)} - set(services)
    fast = Machine({**{n: s.model() for n, s in services.items()}, **dict.fromkeys(probes, Probe)}, edges)
    naive = ReferenceMachine(
        {**{n: s.behaviour() for n, s in services.items()}, **dict.fromkeys(probes, Behaviour())}, edges
    )
    for path, at, nbytes in feeds:
        fast.send(path, at, nbytes)
        naive.feed(path, at, nbytes)
    fast.run()
    naive.run()
    served = [(n.t_start, n.t_end, n.component, int(n.label[4:])) for n in fast.log]
    assert sorted(served) == sorted(entry for entry in naive.log if entry[2] in services)
    arrived = [(a.time, a.node, int(a.label[4:]), a.head, a.tail) for a in fast.arrivals]
    by_sink = lambda entries: sorted(entries, key=lambda entry: entry[1])  # noqa: E731
    assert by_sink(arrived) == by_sink(naive.completions)
    for msg in (arrival.message for arrival in fast.arrivals):
        parts = msg.propagation + msg.serialisation + msg.overhead + msg.queueing + msg.service
        assert parts == msg.tail - msg.born
    return len(arrived)


GRIDLESS = st.sampled_from((0.0, 1.0, 2.0, 0.3, 1 / 3, 7.77))
SERVICES = st.builds(
    Service,
    base=GRIDLESS,
    per_byte=st.sampled_from((0.0, 0.01, 1 / 64)),
    interval=st.sampled_from((None, None, 0.0, 1.0, 2.5)),
    servers=st.sampled_from((0, 0, 1)),
    on_head=st.booleans(),
)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[dict[str, Service], list[Edge], list[tuple[tuple[str, ...], float, int]]]:
    """Draw a mesh of up to five nodes between three sources and two sinks, and messages that often tie."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    services = {name: draw(SERVICES) for name in names}
    sources, sinks = ["s0", "s1", "x2"], ["t0", "a1"]
    pairs = [(a, b) for a in [*sources, *names] for b in names if a != b] + [(a, b) for a in names for b in sinks]
    wires = st.tuples(st.sampled_from((1.0, 3.0, 10.0, 64.0)), st.sampled_from((1.0, 2.0, 0.3)), st.sampled_from((0, 16)))
    edges = []
    for src, dst in pairs:
        bandwidth, latency, header = draw(wires)
        edges.append(edge(src, dst, bandwidth=bandwidth, latency=latency, header_bytes=header, payload_bytes=256))
    feeds = []
    for _ in range(draw(st.integers(1, 40))):
        middle = [draw(st.sampled_from(names))]
        for _ in range(draw(st.integers(0, 3))):
            others = [name for name in names if name != middle[-1]]
            if others:
                middle.append(draw(st.sampled_from(others)))
        path = (draw(st.sampled_from(sources)), *middle, draw(st.sampled_from(sinks)))
        feeds.append((path, float(draw(st.integers(0, 6))), draw(st.sampled_from(SIZES))))
    return services, edges, feeds


@settings(max_examples=150, deadline=None)
@given(workloads())
def test_equals_the_naive_model_on_tied_workloads(drawn: tuple[dict[str, Service], list[Edge], Feeds]) -> None:
    """Fast and naive agree bit for bit on random meshes whose messages meet at equal times."""
    services, edges, feeds = drawn
    assert compare(services, edges, feeds) == len(feeds)


@pytest.mark.parametrize("servers", [0, 1, 3], ids=["overhead", "run", "run with three servers"])
def test_equals_the_naive_model_over_many_completions(servers: int) -> None:
    """A long seeded workload through a fan-in and fan-out mesh gives the same log and completions."""
    rng = random.Random(7 + servers)
    names = [f"n{i:02d}" for i in range(12)]
    services = {
        name: Service(
            base=rng.choice((0.0, 1.0, 5.0)) if servers < 2 else rng.uniform(0.5, 9.0),
            per_byte=0.0 if servers < 2 else rng.uniform(0.001, 0.01),
            interval=rng.choice((None, 1.0)) if not servers else None,
            servers=servers,
            on_head=rng.random() < 0.5,
        )
        for name in names
    }
    sources, sinks = [f"s{i}" for i in range(6)], [f"t{i}" for i in range(4)]
    pairs = [(a, b) for a in [*sources, *names] for b in names if a != b] + [(a, b) for a in names for b in sinks]
    edges = [edge(a, b, bandwidth=rng.choice((8.0, 64.0)), latency=rng.choice((1.0, 2.0))) for a, b in pairs]
    feeds = []
    for _ in range(15000):
        middle = rng.sample(names, rng.randint(1, 4))
        feeds.append(((rng.choice(sources), *middle, rng.choice(sinks)), float(rng.randint(0, 40000)), rng.choice(SIZES)))
    assert compare(services, edges, feeds) == 15000
