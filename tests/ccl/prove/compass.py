"""An algorithm that knows its neighbours by directions, for tests of proofs and of the use of networks."""

from __future__ import annotations

from pathlib import Path

from kernbench_ccl.catalogue import Algorithm, read_file

SOURCE = '''
from kernbench_ccl.contract import kernel_args as kernel_args, share

COLLECTIVE = "all_gather"
TOPO_NAME_TO_KIND = {"ring": 0, "mesh_2d": 1, "torus_2d": 2, "switch": 3}


def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    """Pass every part on along rows to both sides, then rows along columns; a ring is one row that closes."""
    width, height = tl.collective.network.grid(world) if topo_kind in (1, 2) else (world, 1)
    low, high = share(count, n_pe, pe)
    if low == high:
        return
    own = tl.load(in_ptr + low, shape=(high - low,))
    tl.store(out_ptr + rank * count + low, own)
    column, row = rank % width, rank // width
    for size, place, ahead, back, ranks in (
        (width, column, "e", "w", lambda at: [row * width + at]),
        (height, row, "s", "n", lambda at: [at * width + each for each in range(width)]),
    ):
        for to, come, step in ((ahead, back, 1), (back, ahead, -1)):
            for hop in range(1, size):
                going, coming = place - step * (hop - 1), place - step * hop
                if 0 <= going < size and 0 <= place + step < size:
                    for r in ranks(going):
                        tl.send(tl.load(out_ptr + r * count + low, shape=(high - low,)), to, wait=False)  # S
                if 0 <= coming < size:
                    for r in ranks(coming):
                        tl.store(out_ptr + r * count + low, tl.recv((high - low,), tl.collective.dtype, come))
'''


def by_directions(folder: Path) -> Algorithm:
    """Return an all-gather whose kernel knows its neighbours by directions only."""
    path = folder / "compass.py"
    path.write_text(SOURCE)
    return read_file(path)
