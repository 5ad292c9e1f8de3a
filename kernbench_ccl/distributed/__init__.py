"""`import kernbench_ccl.distributed as dist`: torch.distributed's API for ranks that are SIPs of one simulated machine.

`dist.spawn(fn)` in a bench runs `fn(rank, rt, *args)` for every rank as a host program of its own, side by side in
simulated time. There the functions mean what they mean in torch: names, arguments, in place or not, and in the same
order on all ranks. What kernbench has not is refused by name. docs/distributed.md shows each with an example.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.distributed.calls import (
    Call,
    ReduceOp,
    Work,
    all_gather_into_tensor,
    all_reduce,
    all_to_all_single,
    broadcast,
    reduce,
    reduce_scatter_tensor,
)
from kernbench_ccl.distributed.checks import is_index
from kernbench_ccl.distributed.list_calls import all_gather, all_to_all, gather, reduce_scatter, scatter
from kernbench_ccl.distributed.plugin_calls import collective, plugin_function
from kernbench_ccl.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from kernbench_ccl.distributed.torch_names import BACKENDS, REFUSED, UnsupportedName
from kernbench_ccl.distributed.world import Here, ProcessGroup, bench_runtime, here, start_world
from kernbench_core.errors import DeadlockError, UnsupportedError, UsageError
from kernbench_core.host import pick_pes
from kernbench_core.params import did_you_mean
from kernbench_core.wording import brief

__all__ = [
    "P2POp", "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "collective", "destroy_process_group", "gather",
    "get_backend", "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "init_process_group", "irecv", "is_initialized", "isend", "new_group", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send", "spawn",
]  # fmt: skip

__tracebackhide__ = True

_BACKEND = "kernbench"


def spawn(fn: Callable[..., Any], nprocs: int | None = None, args: Sequence[object] = ()) -> list[Any]:
    """Run `fn(rank, rt, *args)` for each rank, side by side in simulated time, and give what each returned.

    Rank r is the r-th SIP of the bench's device; its `rt` has the PEs and the memory of that SIP. There are `nprocs`
    ranks, by default as many as SIPs. An error in one ends the run and names the rank. DeadlockError when ranks have
    ended that others still count on: whose call of a collective, or receipt of a message, is missing.
    """
    call = "dist.spawn"
    rt = bench_runtime(call)
    sips = sorted({site.sip for site in rt.pes})
    ranks = len(sips) if nprocs is None else nprocs
    if not isinstance(ranks, int) or isinstance(ranks, bool) or not 1 <= ranks <= len(sips):
        raise UsageError(
            f"{call}: nprocs must be a number of ranks from 1 to {len(sips)}, one for each SIP of the device, not "
            f"{nprocs!r}; choose a topology with more SIPs, or leave it out."
        )
    if not callable(fn):
        raise UsageError(f"{call}: fn must be a function fn(rank, rt, …), not {brief(fn)}.")
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn):
        raise UsageError(f"{call}: fn must be a plain function, with neither yield nor async: it would never run.")
    try:
        inspect.signature(fn).bind(0, rt, *args)
    except TypeError as error:
        raise UsageError(f"{call}: fn must be one to call as fn(rank, rt, *args): {error}.") from None
    world = start_world(rt, sips[:ranks])

    def program(rank: int, *given: Any) -> Any:
        value = fn(rank, *given)
        for finish in list(world.at_end.get(rank, {}).values()):
            finish()
        return value

    values = rt.side_by_side(program, sips[:ranks], tuple(args), name="rank")
    left = world.open_calls()
    if left:
        raise DeadlockError(
            "\n  ".join([f"{call}: every rank must have made the same calls at its end, and not all have.", *left])
        )
    return values


# Groups -------------------------------------------------------------------------------------------------


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: object = None,
    world_size: int = -1,
    rank: int = -1,
    store: object = None,
    group_name: str = "",
    pg_options: object = None,
    device_id: object = None,
    *,
    config: str | Path | None = None,
    set: Iterable[str] = (),
    pes: Iterable[int] | None = None,
) -> None:
    """Join the group of all ranks; each rank calls it once, before any collective, and it takes no simulated time.

    `config` is a ccl.yaml, merged over the built-in one, and `set` holds `key.path=value` texts merged over that; they
    choose algorithms and queues. `pes` are positions among the PEs of a SIP: those that move data, by default all.
    `backend` may be one of torch's: it is taken for kernbench's, and `warnings` of the result say so.
    What torch needs beside these to find the other processes must be left out.
    """
    call = "dist.init_process_group"
    own = here(call)
    given = {
        "init_method": init_method, "timeout": timeout, "store": store, "group_name": group_name or None,
        "pg_options": pg_options, "device_id": device_id,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise UnsupportedError(f"{call}: {name} must be left out: dist.spawn has started the ranks already.")
    _take_backend(own, call, backend)
    for name, value, right in (("world_size", world_size, len(own.world.sips)), ("rank", rank, own.rank)):
        if value not in (-1, right):
            raise UsageError(f"{call}: {name} must be left out or {right}, as dist.spawn has it, not {brief(value)}.")
    if own.rank in own.world.joined:
        raise UsageError(f"{call} must be called once by each rank, and rank {own.rank} has called it before.")
    _configure(own, call, config, tuple(set), _positions(own, call, pes))
    own.world.joined.add(own.rank)


def _take_backend(own: Here, call: str, backend: object) -> None:
    """Take one of torch's backends for kernbench's, and note it in the result; UnsupportedError for another."""
    if backend in (None, _BACKEND):
        return
    named = [part.rpartition(":")[2] for part in str(backend).lower().split(",")]  # "cpu:gloo,cuda:nccl"
    if any(name not in (*BACKENDS, _BACKEND) for name in named):
        raise UnsupportedError(
            f"{call}: backend must be left out, {_BACKEND!r}, or one of torch's ({', '.join(BACKENDS)}), which are "
            f"taken for it, not {backend!r}; leave it out."
        )
    own.rt.shared.notes[
        f"{call}: backend {backend!r} was taken for {_BACKEND!r}, the only one: collectives run on the simulated PEs."
    ] = None


def _configure(
    own: Here, call: str, config: str | Path | None, sets: tuple[str, ...], pes: tuple[int, ...] | None
) -> None:
    """Load ccl.yaml for the first rank that joins; the others must name the same."""
    from kernbench_ccl.plan import load_ccl

    world = own.world
    source = (None if config is None else str(config), sets, pes)
    if not world.groups:
        file = None if config is None else own.rt.input_file(config)
        found = load_ccl(file, catalogue=Catalogue.of(own.rt.plugins), sets=sets)
        for algorithm in found.files():
            own.rt.input_file(algorithm)
        world.configure(found, source)
        world.add_group(own.rt.design.pes, tuple(range(len(world.sips))), "world", pes)
    elif source != world.source:
        raise UsageError(
            f"{call}: config, set and pes must be the same on all ranks, and rank {own.rank} gives others than the "
            "first."
        )


def _positions(own: Here, call: str, pes: Iterable[int] | None) -> tuple[int, ...] | None:
    """Return positions among the PEs of a SIP, or one, gone through once; UsageError for others."""
    if pes is None:
        return None
    given: Any = tuple(pes) if isinstance(pes, Iterable) and not isinstance(pes, str) else (pes,)
    pick_pes(own.rt.pes, given, call)
    return tuple(int(position) for position in given)


def is_initialized() -> bool:
    """Return whether this rank has joined the group of all ranks."""
    own = here("dist.is_initialized")
    return own.rank in own.world.joined


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group, by default all of them; it must not be used by this rank any more.

    When all its ranks have left, its queues are given up: their slots are free again.
    """
    call = "dist.destroy_process_group"
    own = here(call)
    own.world.leave(own.rank, own.group(group, call), own.rt)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: object = None,
    backend: str | None = None,
    pg_options: object = None,
    *,
    sort_ranks: bool = True,
    pes: Iterable[int] | None = None,
) -> ProcessGroup:
    """Make a group of some ranks, by default all; every rank calls it, with the same ranks, also those outside.

    As in torch the group has its ranks in ascending order; without `sort_ranks`, in that of `ranks`. `pes` are
    positions among the PEs of a SIP: those that move data, by default as in `init_process_group`.
    """
    call = "dist.new_group"
    own = here(call)
    everyone = own.group(None, call)
    _take_backend(own, call, backend)
    for name, value in (("timeout", timeout), ("pg_options", pg_options)):
        if value is not None:
            raise UnsupportedError(f"{call}: {name} must be left out; settings are in ccl.yaml.")
    listed: Any = list(everyone.ranks) if ranks is None else ranks
    if isinstance(ranks, Iterable) and not isinstance(ranks, str):
        listed = list(ranks)
    right = isinstance(listed, list) and all(is_index(rank) and 0 <= rank < everyone.size() for rank in listed)
    if not right or not listed or len({int(rank) for rank in listed}) < len(listed):
        raise UsageError(
            f"{call}: ranks must be different ranks from 0 to {everyone.size() - 1}, not {brief(listed)}; name at "
            "least one."
        )
    chosen = tuple(int(rank) for rank in (sorted(listed) if sort_ranks else listed))
    positions = _positions(own, call, pes)
    details = {"ranks": f"ranks {list(chosen)}", "pes": "" if positions is None else f"pes {list(positions)}"}
    number = own.enter(own.world.made_groups, "new_group", {name: words for name, words in details.items() if words})
    if len(own.world.groups) > number + 1:
        return own.world.groups[number + 1]
    return own.world.add_group(own.rt.design.pes, chosen, f"group {number + 1}", positions)


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the place of the calling rank in a group, -1 when it is not in it."""
    own, found = _rank_and_group("dist.get_rank", group)
    return found.ranks.index(own.rank) if own.rank in found.ranks else -1


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks of a group, -1 when the calling rank is not in it."""
    own, found = _rank_and_group("dist.get_world_size", group)
    return found.size() if own.rank in found.ranks else -1


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """Return the ranks of a group, in its order."""
    return list(_rank_and_group("dist.get_process_group_ranks", group)[1].ranks)


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """Return the rank that is at a place of a group."""
    found = _rank_and_group("dist.get_global_rank", group)[1]
    if not is_index(group_rank) or not 0 <= group_rank < found.size():
        raise UsageError(
            f"dist.get_global_rank: group_rank must be a place in the group {found.name()!r}, from 0 to "
            f"{found.size() - 1}, not {brief(group_rank)}."
        )
    return found.ranks[group_rank]


def get_group_rank(group: ProcessGroup | None, global_rank: int) -> int:
    """Return the place of a rank in a group."""
    found = _rank_and_group("dist.get_group_rank", group)[1]
    if global_rank not in found.ranks:
        raise UsageError(
            f"dist.get_group_rank: global_rank must be a rank of the group {found.name()!r}, one of "
            f"{list(found.ranks)}, not {brief(global_rank)}."
        )
    return found.ranks.index(global_rank)


def _rank_and_group(call: str, group: ProcessGroup | None) -> tuple[Here, ProcessGroup]:
    """Return who asks about a group, and the group, all ranks where it is None; who asks need not be in it."""
    own = here(call)
    return own, own.group(None, call) if group is None else own.known(group, call)


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name of the only backend."""
    here("dist.get_backend").group(group, "dist.get_backend")
    return _BACKEND


# The barrier --------------------------------------------------------------------------------------------


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: object = None) -> Work | None:
    """Wait until every rank of the group is here, and what each launched before is over."""
    call = "dist.barrier"
    own = here(call)
    found = own.group(group, call)
    if device_ids is not None:
        raise UnsupportedError(f"{call}: device_ids must be left out: every rank is one SIP.")
    own.rt.wait_all()
    if own.world.config.catalogue.methods_of("barrier"):
        return Call(own, found, call, "barrier", 1, "int8", None, None, details={"size": ""}).run(async_op)
    token = own.world.tokens.get(own.rank)
    if token is None:
        token = own.world.tokens[own.rank] = own.rt.zeros((1,), "int32", name=f"barrier of rank {own.rank}")
    details = {"size": ""}
    return Call(own, found, call, "all_reduce", 1, "int32", token, token, "max", details=details).run(async_op)


def __getattr__(name: str) -> Any:
    if name in REFUSED:
        raise UnsupportedName(f"torch.distributed.{name} is not there in kernbench; {REFUSED[name]}.")
    if not name.startswith("_"):
        found = plugin_function(name)
        if found is not None:
            return found
    hint = "" if name.startswith("_") else f".{did_you_mean(name, __all__)}"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
