"""A stranger's algorithms: right, wrong on one rank, racing, waiting for ever; to test what the table says of them."""

from __future__ import annotations

from pathlib import Path

SOURCE = '''\
"""Pass every vector around the ring and add it up."""

from kernbench_ccl.contract import kernel_args, share

COLLECTIVE = "all_reduce"
RING, OTHER = 1, 2
TOPO_NAME_TO_KIND = {{"ring": RING, "switch": OTHER}}


def algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    start, end = share(count, n_pe, pe)
    if start == end:
        return
    call = tl.collective
    total = piece = tl.load(in_ptr + start, shape=(end - start,))
    for step in range(world - 1):
        tl.send(piece, (rank + 1) % world)
        piece = tl.recv((end - start,), call.dtype, (rank - 1) % world)
        {combine}
    {finish}
    tl.store(out_ptr + start, call.finish(tl, total))


kernel = algorithm


def refuses(world, network):
    sentence = "acme.{name}_all_reduce must have at most 6 ranks, not {{}}; give fewer."
    return sentence.format(world) if world > 6 else None


def formula(cost):
    return (cost.world - 1) * (cost.latency + cost.nbytes / cost.bandwidth)
'''

COMBINE = "total = call.combine(tl, total, piece)"
KINDS = {
    "passing": (COMBINE, "pass"),
    "skipping": ("total = total if (rank, step) == (2, 1) else call.combine(tl, total, piece)", "pass"),
    "racing": (COMBINE, "tl.store(out_ptr, tl.load(in_ptr, shape=(1,)))  # all PEs, to one place"),
    "waiting": (COMBINE, "tl.recv((1,), call.dtype, (rank + 1) % world)"),
}
"""What each algorithm does with what it gets, and what it does before it stores the result."""


def write_plugin(folder: Path) -> str:
    """Write the algorithms and their plug-in into a folder; return the entry point."""
    for name, (combine, finish) in KINDS.items():
        (folder / f"acme_{name}.py").write_text(SOURCE.format(name=name, combine=combine, finish=finish))
    lines = [
        "from kernbench_core.plugins import AlgorithmEntry",
        "",
        "",
        "kernbench_api = 1\ndef kernbench_algorithms():",
        "    return [",
        *(
            f"        AlgorithmEntry('acme.{name}_all_reduce', 'acme_{name}:kernel', 'Adds up.', 'all_reduce'),"
            for name in KINDS
        ),
        "    ]",
        "",
    ]
    (folder / "acme_ccl.py").write_text("\n".join(lines))
    return "acme = acme_ccl"
