"""One collective, timed as a row of `kernbench ccl` is: by itself, on data that is on the device when it begins."""

from __future__ import annotations

from functools import partial
from typing import Literal

from kernbench_ccl.catalogue import Algorithm, Catalogue
from kernbench_ccl.collectives import CallShape, CollectiveKind, exact_inputs, right_outputs
from kernbench_ccl.collectives.inputs import FEW
from kernbench_ccl.measure.auto_door import auto_door
from kernbench_ccl.measure.sweep import counts_of, size_of
from kernbench_ccl.measure.trials import TrialCall
from kernbench_ccl.plan import Settings, choose_algorithm, load_ccl, make_group, plan_collective
from kernbench_ccl.plan.backend import elapsed_ns
from kernbench_ccl.plan.configuration import AUTO
from kernbench_ccl.plan.groups import CHOSEN_BY
from kernbench_ccl.plan.selection import make_collective
from kernbench_ccl.reductions import refuse_redop
from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.host import DeviceTensor, Runtime
from kernbench_core.params import did_you_mean
from kernbench_core.peers import Channel
from kernbench_core.units import parse_quantity
from kernbench_core.values import Array
from kernbench_core.values.dtypes import dtype_of, epsilon


def bench(
    rt: Runtime,
    collective: str = "all_reduce",
    size: str = "64 KiB",
    algo: str = AUTO,
    dtype: str = "f16",
    redop: Literal["sum", "product", "max", "min", "avg"] = "sum",
    root: int = 0,
    settings: str = "",
) -> None:
    """Time one collective over all SIPs as a row of `kernbench ccl` does, out of place: time and bandwidths.

    Args:
        collective: Its name, as `kernbench ccl list` has it.
        size: Its size as nccl-tests counts it, with the unit.
        algo: The algorithm, or an entry of ccl.yaml; auto is the fastest here.
        dtype: Of the elements.
        redop: The reduction, of a collective that reduces.
        root: The rank that a rooted collective begins or ends at.
        settings: How it runs, as the defaults of ccl.yaml: "chunk=4 KiB, pipeline=off".
    """
    catalogue = Catalogue.of(rt.plugins)
    kind, dtype = _kind(catalogue, collective), _dtype(dtype)
    refusal = refuse_redop(redop, dtype) if kind.reduces else None
    if refusal is not None:
        raise UsageError(f"parameter 'redop': {refusal}")
    world = rt.mesh[0]
    (count,) = counts_of([_nbytes(size)], kind, dtype, world)
    nbytes = size_of(count, kind, dtype, world)
    if not 0 <= root < world:
        raise UsageError(f"parameter 'root' must be a rank from 0 to {world - 1}, not {root!r}.")
    sets = [] if algo == AUTO else [f"collectives.{collective}={algo}"]
    sets += [f"defaults.{text.strip()}" for text in settings.split(",") if text.strip()]
    config = load_ccl(catalogue=catalogue, sets=sets)
    call = CallShape(world, count, redop if kind.reduces else None, root)
    door = auto_door(rt, TrialCall(kind, dtype, call.redop, root), collective)
    algorithm, how = choose_algorithm(catalogue, config, collective, rt.design, world, nbytes, door)
    time_ns = _timed(rt, catalogue, algorithm, how, call, dtype)
    algbw = nbytes / time_ns if time_ns else 0.0
    rt.report(
        algorithm=algorithm.name, size_bytes=nbytes, time_ns=time_ns, algbw_gb_per_s=algbw,
        busbw_gb_per_s=kind.busbw(nbytes, time_ns, world),
    )  # fmt: skip


def _timed(
    rt: Runtime, catalogue: Catalogue, algorithm: Algorithm, settings: Settings, call: CallShape, dtype: str
) -> float:
    """Launch a call once on data of its own, have what ranks end with checked, and return the time in ns."""
    kind = algorithm.kind
    group = make_group(
        rt.pes, channel=Channel("ccl", settings.slots, settings.slot_bytes, settings.tier, CHOSEN_BY)
    )
    asked = make_collective(
        group, algorithm, settings, rt.design, dtype, catalogue.networks, redop=call.redop, root=call.root
    )
    inputs, results = _places(rt, kind, call, dtype)
    pes = "auto" if settings.pes is None else settings.pes
    rounding = FEW * epsilon(dtype) if call.redop == "avg" else 0.0
    handle = plan_collective(rt, group, asked, algorithm, inputs, results, call.count, pes=pes).launch(rt)
    for rank, result in results.items():
        if result is not None:
            rt.check(result, partial(_right, kind, call, dtype, rank), rtol=rounding, atol=0.0)
    return elapsed_ns(handle)


def _kind(catalogue: Catalogue, collective: str) -> CollectiveKind:
    """Return the collective of a name; UsageError where there is none that moves data."""
    known = {name: kind for name, kind in catalogue.collectives.items() if not kind.barrier}
    if collective not in known:
        hint = did_you_mean(collective, known)
        raise UsageError(f"parameter 'collective' must be a collective that moves data, not {collective!r}.{hint}")
    return known[collective]


def _dtype(name: str) -> str:
    try:
        return dtype_of(name)
    except KernbenchError as fault:
        raise UsageError(f"parameter 'dtype': {fault}") from None


def _nbytes(size: str) -> int:
    try:
        return int(parse_quantity(size, "size", positive=True))
    except ValueError as fault:
        raise UsageError(f"parameter 'size' {fault}") from None


def _places(
    rt: Runtime, kind: CollectiveKind, call: CallShape, dtype: str
) -> tuple[dict[int, DeviceTensor | None], dict[int, DeviceTensor | None]]:
    """Place what each rank brings, and make room for what it ends with."""
    inputs: dict[int, DeviceTensor | None] = {}
    results: dict[int, DeviceTensor | None] = {}
    for rank in range(call.world):
        n_in, n_out = kind.in_count(call, rank), kind.out_count(call, rank)
        given = _brought(kind, call, dtype, rank) if rt.data else (n_in,)
        inputs[rank] = (
            rt.tensor(given, dtype, name=f"in of rank {rank}", device=rank, resident=True) if n_in else None
        )
        results[rank] = rt.empty((n_out,), dtype, name=f"out of rank {rank}", device=rank) if n_out else None
    return inputs, results


def _brought(kind: CollectiveKind, call: CallShape, dtype: str, rank: int) -> Array:
    """Return what a rank brings: integers that every order of reducing keeps exact."""
    return exact_inputs(dtype, call.redop, kind.in_count(call, rank), call.world, rank)


def _right(kind: CollectiveKind, call: CallShape, dtype: str, rank: int) -> Array:
    """Return what a rank must end with."""
    found = right_outputs(kind, call, [_brought(kind, call, dtype, each) for each in range(call.world)])[rank]
    assert found is not None, "it has an output"
    return found
