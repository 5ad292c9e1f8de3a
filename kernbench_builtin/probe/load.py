"""Loaded latency: how long a chunk takes when its path is busy with others like it.

Chunks arrive at random (exponential gaps, seeded) at a share of the rate that the binding wire or channel carries, and
go straight to the fabric: no limit of outstanding requests holds them back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from kernbench_builtin.probe.transfers import Case, Prober, lone_transaction, resources
from kernbench_core.environment import ProcessGenerator
from kernbench_core.host import GraphEngine
from kernbench_core.messages import Transaction

SHARES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
"""Offered loads, as shares of what the binding resource carries."""
CHUNKS = 2000
"""Chunks that one point of the curve is made of."""


@frozen
class Loaded:
    """One point of a curve: offered share of the binding resource's rate, achieved B/ns, latencies in ns."""

    share: float
    offered: float
    achieved: float
    mean_ns: float
    p99_ns: float
    queueing_ns: float


def loaded_latency(
    prober: Prober, case: Case, nbytes: int, shares: Sequence[float] = SHARES, *, count: int = CHUNKS, seed: int = 0
) -> list[Loaded]:
    """Return a point for each offered share; every chunk moves `nbytes`."""
    return [_point(prober, case, nbytes, share, count, seed) for share in shares]


def _point(prober: Prober, case: Case, nbytes: int, share: float, count: int, seed: int) -> Loaded:
    engine = prober.engine(case)
    slots = max(1, prober.capacity(case) // nbytes)
    pieces = [lone_transaction(prober, case, nbytes, offset=index % slots * nbytes) for index in range(count)]
    slowest = max(resources(engine, lone_transaction(prober, case, nbytes)), key=lambda resource: resource.busy_ns)
    gaps = np.random.default_rng(seed).exponential(1.0, count)
    # the mean of the gaps is made exact, so that the offered load is
    gaps *= slowest.busy_ns / share / gaps.mean()
    engine.env.process(_send(engine, case, pieces, gaps.tolist()))
    engine.advance()
    times = np.array([piece.elapsed for piece in pieces])
    span = max(piece.tail for piece in pieces) - min(piece.born for piece in pieces)
    return Loaded(
        share,
        share * nbytes / slowest.busy_ns,
        count * nbytes / span,
        float(times.mean()),
        float(np.quantile(times, 0.99)),
        float(np.mean([piece.queueing for piece in pieces])),
    )


def _send(engine: GraphEngine, case: Case, pieces: list[Transaction], gaps: list[float]) -> ProcessGenerator:
    source = engine.hardware.components[case.source]
    env = engine.env
    for piece, gap in zip(pieces, gaps, strict=True):
        yield env.timeout(gap)
        piece.born, piece.hop = env.now, 1
        source.out_ports[piece.path[1]].send(piece, env.now, env.now)
