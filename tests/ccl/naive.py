"""The plainest algorithm for every collective: each PE sends its shares straight to the PEs of its place.

It is registered as `naive.<collective>`; tests of the API use it where what matters is not the algorithm. Each message
is one tile, and parts are reduced in rank order.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.contract import kernel_args, share
from kernbench_ccl.plugin import ALGORITHMS
from kernbench_core.plugins import AlgorithmEntry, Plugins, Provider, Registry, load_plugins
from tests.core.shapes import NETWORKS


def exchange(tl: Any, x: Any, sends: dict[int, tuple[int, int]], gets: dict[int, tuple[int, int]]) -> dict[int, Any]:
    """Send pieces of `x` (rank: start, size), receive pieces (rank: start, size), and give them by rank."""
    sent = [
        tl.send(tl.load(x + start, shape=(size,)), rank, wait=False) for rank, (start, size) in sends.items() if size
    ]
    found = {rank: tl.recv((size,), x.dtype, rank) for rank, (_, size) in gets.items() if size}
    for handle in sent:
        tl.wait(handle)
    return found


def algorithm(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Do what `tl.collective` asks for."""
    call = tl.collective
    start, end = share(count, n_pe, pe)
    size = end - start
    others = [other for other in range(world) if other != rank]
    here = dict.fromkeys(others, (start, size))
    theirs = {other: (other * count + start, size) for other in others}
    own = (rank * count + start, size)
    root = rank == call.root
    if call.name in ("all_reduce", "reduce", "reduce_scatter") and size:
        parts, mine = call.name == "reduce_scatter", call.name != "reduce" or root
        to = theirs if parts else here if call.name == "all_reduce" else {} if root else {call.root: (start, size)}
        found = exchange(tl, in_ptr, to, here if mine else {})
        if mine:
            found[rank] = tl.load(in_ptr + (own[0] if parts else start), shape=(size,))
            total = found[0]
            for other in range(1, world):
                total = call.combine(tl, total, found[other])
            tl.store(out_ptr + start, call.finish(tl, total))
    elif call.name in ("all_gather", "gather") and size:
        mine = call.name == "all_gather" or root
        to = here if call.name == "all_gather" else {} if mine else {call.root: (start, size)}
        found = exchange(tl, in_ptr, to, here if mine else {})
        if mine:
            found[rank] = tl.load(in_ptr + start, shape=(size,))
            for other, x in found.items():
                tl.store(out_ptr + (other * count + start), x)
    elif call.name in ("broadcast", "scatter") and size:
        to = theirs if call.name == "scatter" else here
        found = exchange(tl, in_ptr, to, {}) if root else exchange(tl, out_ptr, {}, {call.root: here[call.root]})
        if call.name == "scatter" and root:
            found[rank] = tl.load(in_ptr + own[0], shape=(size,))
        if found:
            tl.store(out_ptr + start, found[call.root])
    elif call.name == "all_to_all":
        _all_to_all(tl, call, in_ptr, out_ptr, count, rank, world, pe, n_pe)
    elif call.name == "barrier":
        _meet(tl, rank, world, pe)


def _all_to_all(
    tl: Any, call: Any, in_ptr: Any, out_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int
) -> None:
    sizes = call.counts or ((count,) * world,) * world
    at = [sum(sizes[rank][:other]) for other in range(world)]
    to = [sum(sizes[other][rank] for other in range(before)) for before in range(world)]
    out, back = {}, {}
    for other in range(world):
        start, end = share(sizes[rank][other], n_pe, pe)
        out[other] = (at[other] + start, end - start)
        start, end = share(sizes[other][rank], n_pe, pe)
        back[other] = (to[other] + start, end - start)
    own_from, own_to = out.pop(rank), back.pop(rank)
    found = exchange(tl, in_ptr, out, back)
    if own_from[1]:
        tl.store(out_ptr + own_to[0], tl.load(in_ptr + own_from[0], shape=(own_from[1],)))
    for other, x in found.items():
        tl.store(out_ptr + back[other][0], x)


def _meet(tl: Any, rank: int, world: int, pe: int) -> None:
    if pe:
        return
    for other in range(world):
        if other != rank:
            tl.send(tl.zeros((1,), "int8"), other, wait=False)
    for other in range(world):
        if other != rank:
            tl.recv((1,), "int8", other)


def _module(collective: str) -> str:
    name = f"tests.ccl.naive_{collective}"
    module = ModuleType(name, f"Do {collective} the plain way.")
    module.__dict__.update(
        COLLECTIVE=collective, kernel=algorithm, kernel_args=kernel_args,
        TOPO_NAME_TO_KIND={name: number for number, name in enumerate(NETWORKS)},
    )  # fmt: skip
    sys.modules[name] = module
    return name


def plugins() -> Plugins:
    """Return the installed plug-ins, with the naive algorithms in place of the installed ones."""
    provider = Provider("naive", "tests", "")
    entries = [
        (AlgorithmEntry(f"naive.naive_{name}", f"{_module(name)}:kernel", "The plain way."), provider)
        for name in COLLECTIVES
        if name != "send_recv"
    ]
    return load_plugins().having(ALGORITHMS, Registry("algorithm", entries))
