"""What every algorithm is tried on: ranks, counts, PEs, in place or not, pipelined or step by step, against numpy."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kernbench_ccl.catalogue import Algorithm, read_algorithm
from kernbench_ccl.collectives import CallShape, CollectiveKind, exact_inputs
from kernbench_ccl.contract import Collective, Network
from kernbench_core.values.dtypes import numpy_dtype
from tests.ccl.numpy_results import expected
from tests.ccl.untimed_machine import run_collective

RANKS = range(2, 18)
TILE = 3


def algorithm_named(name: str) -> Algorithm:
    """Load an algorithm that comes with kernbench, without plug-ins."""
    return read_algorithm(importlib.import_module(f"kernbench_ccl.algorithms.{name}"), f"ccl.{name}")


def network_of(name: str, world: int) -> Network:
    """Make a network of `world` SIPs; flat ones as square as it goes."""
    if name not in ("mesh_2d", "torus_2d"):
        return Network(name, world, world)
    height = next(rows for rows in range(int(world**0.5), 0, -1) if world % rows == 0)
    return Network(name, world, world // height, height)


def counts_for(kind: CollectiveKind, world: int) -> Sequence[int]:
    """One element, few, a prime, and several rounds of tiles; `count` is of one part where there is one per rank."""
    if kind.size_count(1, 2) > 1:
        return (1, 2, TILE + 2, 3 * TILE + 2)
    return (1, max(1, world - 1), 13, 3 * TILE * world + 5)


def check(
    name: str,
    world: int,
    count: int,
    n_pe: int = 1,
    *,
    in_place: bool = False,
    dtype: str = "int64",
    redop: str | None = "sum",
    network: str = "ring",
    **call: Any,
) -> None:
    """Run an algorithm of ours on integers and compare every rank's whole memory with numpy."""
    algorithm = algorithm_named(name)
    kind = algorithm.kind
    call.setdefault("held_bytes", 4 * TILE * numpy_dtype(dtype).itemsize)
    collective = Collective(
        kind, dtype, network_of(network, world), tuple(range(world)), tile=TILE,
        redop=redop if kind.reduces else None, **call,
    )  # fmt: skip
    counts, root = collective.counts, collective.root
    calls = [CallShape(world, count, collective.redop, r if kind.rooted else root, counts) for r in range(world)]
    sizes = [kind.in_count(calls[r], r) for r in range(world)]
    inputs = [exact_inputs(dtype, collective.redop, size, world, r) for r, size in enumerate(sizes)]
    right = expected(algorithm.collective, inputs, redop=collective.redop, root=root, counts=counts)
    held = [kind.out_count(calls[r], r) for r in range(world)]
    ins = {r: x.copy() for r, x in enumerate(inputs)}
    outs = {r: np.full(held[r], 99, numpy_dtype(dtype)) for r in range(world)}
    offsets: tuple[dict[int, int], dict[int, int]] = ({}, {})
    if in_place:
        for r in range(world):
            if held[r] >= sizes[r]:
                offsets[0][r] = r * count if held[r] > sizes[r] else 0
                outs[r][offsets[0][r] : offsets[0][r] + sizes[r]] = inputs[r]
                ins[r] = outs[r]
            else:
                offsets[1][r] = r * count
                outs[r] = ins[r]
    run_collective(algorithm, collective, count, n_pe, ins, outs, offsets)
    for r in range(world):
        first = offsets[1].get(r, 0)
        if right[r] is not None:
            np.testing.assert_array_equal(outs[r][first : first + held[r]], right[r], err_msg=f"rank {r}")
        if not in_place:
            np.testing.assert_array_equal(ins[r], inputs[r], err_msg=f"the input of rank {r}")


def cases(name: str, ranks: Sequence[int] = RANKS, every: bool = False) -> Iterator[dict[str, Any]]:
    """Yield calls of an algorithm: all numbers of ranks that it does not refuse, with all counts.

    How many PEs, in place or not, pipelined or not are varied along; with `every` all combinations are there.
    """
    algorithm = algorithm_named(name)
    kind = algorithm.kind
    networks = list(algorithm.topologies) if len(algorithm.topologies) == 1 else ["ring"]
    for network, world in itertools.product(networks, ranks):
        if algorithm.refusal(network_of(network, world)) is not None:
            continue
        for index, count in enumerate(counts_for(kind, world)):
            varied = list(itertools.product((1, 3, 5), (False, True), (False, True)))
            number = 5 * world + 3 * index
            for n_pe, in_place, pipeline in varied if every else [varied[number % 12]]:
                if not in_place or kind.name != "all_to_all":
                    yield {
                        "world": world, "count": count, "n_pe": n_pe, "in_place": in_place, "network": network,
                        "pipeline": pipeline,
                    }  # fmt: skip
